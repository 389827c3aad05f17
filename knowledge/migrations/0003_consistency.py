"""Keys over several columns, which Django's models cannot say.

A passage's layer, source and knowledge base can only be ones that belong together; when
a source moves, the database carries everything below it along in the same statement;
when a passage goes, its vectors go.
"""

from django.db import migrations

KEYS = [
    (
        "knowledge_source",
        "source_layer_belongs",
        "FOREIGN KEY (layer_id, knowledge_base_id) "
        "REFERENCES knowledge_layer (id, knowledge_base_id)",
    ),
    (
        "knowledge_document",
        "document_source_belongs",
        "FOREIGN KEY (source_id, knowledge_base_id) "
        "REFERENCES knowledge_source (id, knowledge_base_id) "
        "ON UPDATE CASCADE ON DELETE CASCADE",
    ),
    (
        "knowledge_passage",
        "passage_source_belongs",
        "FOREIGN KEY (source_id, layer_id, knowledge_base_id) "
        "REFERENCES knowledge_source (id, layer_id, knowledge_base_id) "
        "ON UPDATE CASCADE ON DELETE CASCADE",
    ),
    (
        "knowledge_passage",
        "passage_document_belongs",
        "FOREIGN KEY (document_id, source_id) "
        "REFERENCES knowledge_document (id, source_id) ON DELETE CASCADE",
    ),
    (
        "knowledge_passagetokens",
        "tokens_die_with_passage",
        "FOREIGN KEY (passage_id) REFERENCES knowledge_passage (id) ON DELETE CASCADE",
    ),
    (
        "knowledge_passagetokens",
        "tokens_die_with_space",
        "FOREIGN KEY (space_id) "
        "REFERENCES knowledge_embeddingspace (id) ON DELETE CASCADE",
    ),
]
VECTOR_KEYS = [
    (
        "knowledge_passagevector",
        "vector_passage_belongs",
        "FOREIGN KEY (passage_id, knowledge_base_id) "
        "REFERENCES knowledge_passage (id, knowledge_base_id) "
        "ON UPDATE CASCADE ON DELETE CASCADE",
    ),
    (
        "knowledge_passagevector",
        "vector_space_belongs",
        "FOREIGN KEY (space_id, dimension) "
        "REFERENCES knowledge_embeddingspace (id, dimension) ON DELETE CASCADE",
    ),
    (
        "knowledge_passagevector",
        "vector_has_dimension",
        "CHECK (vector_dims(embedding) = dimension)",
    ),
    (
        "knowledge_stagedvector",
        "staged_dies_with_space",
        "FOREIGN KEY (space_id) "
        "REFERENCES knowledge_embeddingspace (id) ON DELETE CASCADE",
    ),
]


def has_extension(schema_editor, name):
    """Return whether an extension is installed in this database."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = %s", [name])
        return cursor.fetchone() is not None


def add_keys(apps, schema_editor):
    """Add the keys; without vectors, the index of the branch in their place."""
    vectors = has_extension(schema_editor, "vector")
    for table, name, key in KEYS + (VECTOR_KEYS if vectors else []):
        schema_editor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {key}")
    if not vectors and has_extension(schema_editor, "pg_trgm"):
        schema_editor.execute(
            "CREATE INDEX passage_text_trigrams ON knowledge_passage "
            "USING gin (text gin_trgm_ops)"
        )


def drop_keys(apps, schema_editor):
    """Drop what add_keys added."""
    vectors = has_extension(schema_editor, "vector")
    for table, name, _key in KEYS + (VECTOR_KEYS if vectors else []):
        schema_editor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    schema_editor.execute("DROP INDEX IF EXISTS passage_text_trigrams")


class Migration(migrations.Migration):
    """Runs once the tables stand."""

    dependencies = [("knowledge", "0002_vectors")]
    operations = [migrations.RunPython(add_keys, drop_keys)]
