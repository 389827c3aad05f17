import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0008_departments"),
        ("retrieval", "0002_tuning"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SearchDay",
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
                ("day", models.DateField(verbose_name="day")),
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
                ("searches", models.PositiveIntegerField(verbose_name="searches")),
                (
                    "layer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.layer",
                        verbose_name="layer",
                    ),
                ),
            ],
            options={
                "ordering": ["day"],
                "default_permissions": (),
                "indexes": [models.Index(fields=["day"], name="search_day_by_day")],
            },
        ),
        migrations.CreateModel(
            name="SearchLog",
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
                ("at", models.DateTimeField(auto_now_add=True, verbose_name="at")),
                (
                    "by_agent",
                    models.BooleanField(default=False, verbose_name="by an agent"),
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
                ("query", models.TextField(verbose_name="question")),
                (
                    "metadata_filter",
                    models.JSONField(default=dict, verbose_name="filter"),
                ),
                ("count", models.PositiveSmallIntegerField(verbose_name="asked for")),
                (
                    "knowledge_bases",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        size=None,
                        verbose_name="knowledge bases",
                    ),
                ),
                (
                    "layers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=None,
                        null=True,
                        size=None,
                        verbose_name="layers",
                    ),
                ),
                (
                    "layers_ignored",
                    models.PositiveIntegerField(
                        default=0, verbose_name="ignored names"
                    ),
                ),
                (
                    "fallback_reason",
                    models.CharField(
                        blank=True, max_length=200, verbose_name="why it fell back"
                    ),
                ),
                (
                    "tuning_version",
                    models.PositiveIntegerField(default=0, verbose_name="settings"),
                ),
                (
                    "model",
                    models.CharField(blank=True, max_length=200, verbose_name="model"),
                ),
                ("rankings", models.JSONField(default=dict)),
                (
                    "fused",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("reranked", models.JSONField(default=dict)),
                ("hits", models.JSONField(default=list)),
                (
                    "returned",
                    models.PositiveSmallIntegerField(
                        default=0, verbose_name="passages"
                    ),
                ),
                (
                    "withheld",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
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
                ("confidence", models.FloatField(null=True)),
                (
                    "labels",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40),
                        default=list,
                        size=None,
                    ),
                ),
                ("stage_ms", models.JSONField(default=dict)),
                ("total_ms", models.FloatField(default=0.0, verbose_name="time (ms)")),
                ("hidden_rows", models.PositiveIntegerField(null=True)),
                (
                    "layer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.layer",
                        verbose_name="layer",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
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
                    "token",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.apitoken",
                        verbose_name="token",
                    ),
                ),
            ],
            options={
                "verbose_name": "search",
                "verbose_name_plural": "searches",
                "ordering": ["-at", "-pk"],
                "permissions": [("export_searchlog", "Can export the search log")],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["-at", "-id"], name="search_log_by_time")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["found", "partly_found", "not_found"])
                        ),
                        name="search_log_status_known",
                    )
                ],
            },
        ),
    ]
