"""What exact look-ups need: numbers by knowledge base, and what a document is called.

The structure map of older documents stays as it is, without keys; indexing a source
again completes it (S1-ING-08).
"""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

TAKE_OVER = """
UPDATE knowledge_section s SET knowledge_base_id = d.knowledge_base_id
FROM knowledge_document d WHERE d.id = s.document_id
"""
BELONGS = """
ALTER TABLE knowledge_section ADD CONSTRAINT section_document_belongs
FOREIGN KEY (document_id, knowledge_base_id)
REFERENCES knowledge_document (id, knowledge_base_id)
ON UPDATE CASCADE ON DELETE CASCADE
"""
BELONGS_NO_MORE = (
    "ALTER TABLE knowledge_section DROP CONSTRAINT section_document_belongs"
)


class Migration(migrations.Migration):
    """A section moves with its document, as a passage does with its source."""

    dependencies = [
        ("knowledge", "0006_keywords"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="section", name="section_by_number"),
        migrations.AddField(
            model_name="document",
            name="names",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=80), default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="section",
            name="unit",
            field=models.CharField(blank=True, default="", max_length=12),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="section",
            name="key",
            field=models.CharField(blank=True, default="", max_length=60),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="section",
            name="knowledge_base",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="sections",
                to="knowledge.knowledgebase",
            ),
        ),
        migrations.RunSQL(TAKE_OVER, migrations.RunSQL.noop),
        # Rows with a pending check of a key cannot be altered in one transaction.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="section",
            name="knowledge_base",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="sections",
                to="knowledge.knowledgebase",
            ),
        ),
        migrations.AddIndex(
            model_name="document",
            index=django.contrib.postgres.indexes.GinIndex(
                models.Func(
                    models.F("knowledge_base"), template="ARRAY[%(expressions)s]"
                ),
                models.F("names"),
                name="document_by_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(
                fields=("id", "knowledge_base"), name="document_in_knowledge_base"
            ),
        ),
        migrations.AddIndex(
            model_name="section",
            index=models.Index(
                condition=models.Q(("key", ""), _negated=True),
                fields=["knowledge_base", "key"],
                name="section_by_key",
            ),
        ),
        migrations.RunSQL(BELONGS, BELONGS_NO_MORE),
    ]
