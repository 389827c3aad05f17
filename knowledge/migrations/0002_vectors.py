"""The vectors, where the database has the extension (R8)."""

import django.db.models.deletion
import pgvector.django.vector
from django.db import migrations, models


class CreateVectorModel(migrations.CreateModel):
    """CreateModel that leaves the database alone where there is no vector type."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        """Create the table where the extension stands."""
        if has_vectors(schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        """Drop the table where the extension stands."""
        if has_vectors(schema_editor):
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def has_vectors(schema_editor):
    """Return whether the vector extension is installed in this database."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        return cursor.fetchone() is not None


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0001_initial"),
    ]

    operations = [
        CreateVectorModel(
            name="PassageVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("knowledge_base_id", models.BigIntegerField()),
                ("dimension", models.PositiveIntegerField()),
                ("embedded_sha256", models.CharField(max_length=64)),
                ("embedding", pgvector.django.vector.VectorField()),
                (
                    "passage",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="vectors",
                        to="knowledge.passage",
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="vectors",
                        to="knowledge.embeddingspace",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["space", "embedded_sha256"], name="vector_by_sha256"
                    ),
                    models.Index(
                        fields=["knowledge_base_id", "space"],
                        name="vector_by_knowledge_base",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("space", "passage"), name="vector_once_in_space"
                    )
                ],
            },
        ),
        CreateVectorModel(
            name="StagedVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("embedded_sha256", models.CharField(max_length=64)),
                ("embedding", pgvector.django.vector.VectorField()),
                ("packed", models.BinaryField()),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "space",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="knowledge.embeddingspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("space", "embedded_sha256"), name="staged_once_in_space"
                    )
                ],
            },
        ),
    ]
