"""What was asked and answered, with its citations; marks of sentences."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0011_routing"),
        ("retrieval", "0006_calibration"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="snapshot",
            options={
                "ordering": ["turn", "interaction", "number"],
                "verbose_name": "citation",
                "verbose_name_plural": "citations",
            },
        ),
        migrations.AlterField(
            model_name="calibration",
            name="basis",
            field=models.CharField(
                choices=[
                    ("similarity", "similarity"),
                    ("rerank", "reranker"),
                    ("sentences", "reranker, sentence by sentence"),
                ],
                max_length=10,
                verbose_name="basis",
            ),
        ),
        migrations.AlterField(
            model_name="snapshot",
            name="turn",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="snapshots",
                to="retrieval.turn",
            ),
        ),
        migrations.CreateModel(
            name="Interaction",
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
                    "public_id",
                    models.UUIDField(default=uuid.uuid4, editable=False, unique=True),
                ),
                (
                    "door",
                    models.CharField(
                        choices=[
                            ("portal", "portal"),
                            ("api", "API"),
                            ("turn", "turn of an agent"),
                            ("mcp", "MCP"),
                        ],
                        max_length=10,
                        verbose_name="door",
                    ),
                ),
                (
                    "conversation_id",
                    models.UUIDField(null=True, verbose_name="conversation"),
                ),
                ("question", models.TextField(blank=True, verbose_name="question")),
                (
                    "queries",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        default=list,
                        size=None,
                        verbose_name="searched for",
                    ),
                ),
                (
                    "knowledge_base_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        size=None,
                        verbose_name="knowledge bases",
                    ),
                ),
                (
                    "layer_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=None,
                        null=True,
                        size=None,
                        verbose_name="layers",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("found", "found"),
                            ("partly_found", "partly found"),
                            ("not_found", "not found"),
                        ],
                        max_length=12,
                        verbose_name="outcome",
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            (
                                "grounded",
                                "grounded: the client writes from the passages",
                            ),
                            (
                                "extractive",
                                "extractive: only the documents' own sentences",
                            ),
                        ],
                        max_length=10,
                        verbose_name="answer mode",
                    ),
                ),
                (
                    "level",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("high", "high"),
                            ("medium", "medium"),
                            ("low", "low"),
                        ],
                        max_length=6,
                        verbose_name="confidence",
                    ),
                ),
                (
                    "basis",
                    models.CharField(
                        blank=True,
                        choices=[("similarity", "similarity"), ("rerank", "rerank")],
                        max_length=10,
                        verbose_name="judged by",
                    ),
                ),
                ("score", models.FloatField(null=True, verbose_name="best score")),
                ("hits", models.JSONField(default=list, verbose_name="handed back")),
                (
                    "notes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=30),
                        default=list,
                        size=None,
                        verbose_name="notes",
                    ),
                ),
                (
                    "tuning_version",
                    models.PositiveIntegerField(default=0, verbose_name="settings"),
                ),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="at",
                    ),
                ),
                (
                    "acting",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="really asked by",
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.agentclient",
                        verbose_name="agent client",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="interactions",
                        to="retrieval.turn",
                        verbose_name="turn",
                    ),
                ),
            ],
            options={
                "verbose_name": "interaction",
                "verbose_name_plural": "interactions",
                "ordering": ["-at", "-pk"],
                "default_permissions": ("view",),
            },
        ),
        migrations.AddField(
            model_name="snapshot",
            name="interaction",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="snapshots",
                to="retrieval.interaction",
            ),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.UniqueConstraint(
                fields=("interaction", "number"), name="snapshot_number_once_in_ask"
            ),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.UniqueConstraint(
                fields=("interaction", "ref"), name="snapshot_ref_once_in_ask"
            ),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("turn__isnull", True),
                    ("interaction__isnull", True),
                    _connector="XOR",
                ),
                name="snapshot_of_turn_or_ask",
            ),
        ),
        migrations.AddIndex(
            model_name="interaction",
            index=models.Index(fields=["owner", "-at"], name="interaction_by_owner"),
        ),
        migrations.AddIndex(
            model_name="interaction",
            index=models.Index(fields=["at"], name="interaction_by_time"),
        ),
        migrations.AddConstraint(
            model_name="interaction",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["found", "partly_found", "not_found"])
                ),
                name="interaction_status_known",
            ),
        ),
    ]
