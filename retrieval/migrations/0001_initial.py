"""The allowances of the API's callers, in an unlogged table."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """The first."""

    initial = True

    dependencies: list[tuple[str, str]] = []

    operations = [
        migrations.CreateModel(
            name="RequestAllowance",
            fields=[
                (
                    "caller",
                    models.CharField(max_length=40, primary_key=True, serialize=False),
                ),
                ("ready_at", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(
            "ALTER TABLE retrieval_requestallowance SET UNLOGGED",
            "ALTER TABLE retrieval_requestallowance SET LOGGED",
        ),
    ]
