"""Reports of what quotes a changed source; what an import of old content brings."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# A source that moves takes its reports along, as it does citations and receipts.
FOLLOW = """
ALTER TABLE retrieval_impactreport ADD CONSTRAINT impact_source_belongs
FOREIGN KEY (source_id, knowledge_base_id)
REFERENCES knowledge_source (id, knowledge_base_id) ON UPDATE CASCADE
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0012_legacy"),
        ("retrieval", "0009_feedback_and_learning"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="interaction",
            name="basis",
            field=models.CharField(
                blank=True,
                choices=[
                    ("similarity", "similarity"),
                    ("rerank", "rerank"),
                    ("v0", "an older scale"),
                ],
                max_length=10,
                verbose_name="judged by",
            ),
        ),
        migrations.AlterField(
            model_name="interaction",
            name="door",
            field=models.CharField(
                choices=[
                    ("portal", "portal"),
                    ("api", "API"),
                    ("turn", "turn of an agent"),
                    ("mcp", "MCP"),
                    ("import", "import"),
                ],
                max_length=10,
                verbose_name="door",
            ),
        ),
        migrations.CreateModel(
            name="FormerReceipt",
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
                (
                    "former_id",
                    models.CharField(
                        max_length=80, unique=True, verbose_name="former id"
                    ),
                ),
                (
                    "receipt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="former",
                        to="retrieval.receipt",
                    ),
                ),
            ],
            options={
                "verbose_name": "former id of a receipt",
                "verbose_name_plural": "former ids of receipts",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ImpactReport",
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
                (
                    "title",
                    models.CharField(blank=True, max_length=300, verbose_name="title"),
                ),
                (
                    "path",
                    models.CharField(blank=True, max_length=500, verbose_name="path"),
                ),
                (
                    "act",
                    models.CharField(
                        choices=[("replacement", "replaced"), ("removal", "removed")],
                        max_length=12,
                        verbose_name="what is done",
                    ),
                ),
                (
                    "moment",
                    models.CharField(
                        choices=[
                            ("before", "before it goes live"),
                            ("after", "as it went live"),
                        ],
                        max_length=6,
                        verbose_name="looked at",
                    ),
                ),
                ("generation", models.PositiveIntegerField(editable=False, null=True)),
                (
                    "old_revision",
                    models.BigIntegerField(null=True, verbose_name="old revision"),
                ),
                (
                    "new_revision",
                    models.BigIntegerField(null=True, verbose_name="new revision"),
                ),
                ("figures", models.JSONField(default=dict, verbose_name="figures")),
                (
                    "made_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="at",
                    ),
                ),
                (
                    "earlier",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="later",
                        to="retrieval.impactreport",
                        verbose_name="report before",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.knowledgebase",
                        verbose_name="knowledge base",
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "original",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.original",
                        verbose_name="new file",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.source",
                        verbose_name="source",
                    ),
                ),
            ],
            options={
                "verbose_name": "impact report",
                "verbose_name_plural": "impact reports",
                "ordering": ["-made_at", "-pk"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="ImpactSpan",
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
                ("kind", models.CharField(max_length=10)),
                ("key", models.CharField(max_length=60)),
                ("outcome", models.CharField(max_length=10)),
                ("revision", models.BigIntegerField()),
                ("start", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("now", models.TextField(blank=True)),
                (
                    "report",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="spans",
                        to="retrieval.impactreport",
                    ),
                ),
            ],
            options={
                "verbose_name": "quoted span",
                "verbose_name_plural": "quoted spans",
                "ordering": ["report", "pk"],
                "default_permissions": (),
            },
        ),
        migrations.AddConstraint(
            model_name="impactreport",
            constraint=models.UniqueConstraint(
                condition=models.Q(("act", "replacement"), ("moment", "after")),
                fields=("source", "old_revision", "new_revision"),
                name="impact_of_publication_once",
            ),
        ),
        migrations.RunSQL(
            FOLLOW,
            "ALTER TABLE retrieval_impactreport DROP CONSTRAINT impact_source_belongs",
        ),
    ]
