"""The database extensions, first and alone.

pgvector is not a trusted extension: creating it takes a superuser, or somebody who
did so before. Where it cannot be had, the schema is still made, with trigram
similarity in the place of the meaning branch (R8).
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.utils import OperationalError, ProgrammingError


def create_extensions(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    """Create the first of vector and pg_trgm that this server has."""
    connection = editor.connection
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM pg_available_extensions "
            "WHERE name IN ('vector', 'pg_trgm')"
        )
        available = {name for (name,) in cursor.fetchall()}
    for name in ("vector", "pg_trgm"):
        if name not in available:
            continue
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE EXTENSION IF NOT EXISTS {name}")
        except (OperationalError, ProgrammingError):
            # No right to create it here: the other one may still be had.
            continue


class Migration(migrations.Migration):
    """Not atomic, so that one refused extension does not undo the other."""

    atomic = False
    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [
        migrations.RunPython(
            create_extensions, migrations.RunPython.noop, elidable=False
        )
    ]
