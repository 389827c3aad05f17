"""What the three branches of a search need of the database."""

import django.contrib.postgres.indexes
from django.db import migrations, models


def keep_vectors_inline(apps, schema_editor):
    """Keep vectors of up to some 2,000 dimensions beside their row.

    Comparing a query with each visible vector reads them one after the other; out of
    line, each would be a look-up of its own.
    """
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('knowledge_passagevector')")
        if cursor.fetchone()[0] is not None:
            cursor.execute(
                "ALTER TABLE knowledge_passagevector SET (toast_tuple_target = 8160)"
            )


def use_default_target(apps, schema_editor):
    """Undo keep_vectors_inline for rows written from now on."""
    schema_editor.execute(
        "ALTER TABLE IF EXISTS knowledge_passagevector RESET (toast_tuple_target)"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0003_consistency"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="passage",
            name="passage_search_vector",
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(
                condition=models.Q(("supersedes", ""), _negated=True),
                fields=["supersedes"],
                name="document_by_superseded",
            ),
        ),
        migrations.AddIndex(
            model_name="passage",
            index=django.contrib.postgres.indexes.GinIndex(
                models.Func(
                    models.F("knowledge_base"), template="ARRAY[%(expressions)s]"
                ),
                models.F("search_vector"),
                name="passage_search_vector",
            ),
        ),
        migrations.AddIndex(
            model_name="source",
            index=models.Index(
                condition=models.Q(
                    ("enabled", False), ("expires_at__isnull", False), _connector="OR"
                ),
                fields=["knowledge_base"],
                name="source_perhaps_hidden",
            ),
        ),
        migrations.RunPython(keep_vectors_inline, use_default_target),
    ]
