"""The settings of the search, with their history."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0001_initial"),
        ("knowledge", "0010_memory"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="TuningProposal",
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
                ("values", models.JSONField(default=dict)),
                ("based_on", models.PositiveIntegerField()),
                ("restored", models.PositiveIntegerField(null=True)),
                (
                    "note",
                    models.CharField(blank=True, max_length=300, verbose_name="reason"),
                ),
                ("saved_version", models.PositiveIntegerField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "proposed settings",
                "verbose_name_plural": "proposed settings",
                "ordering": ["-created_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="TuningRecord",
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
                    "version",
                    models.PositiveIntegerField(unique=True, verbose_name="version"),
                ),
                ("values", models.JSONField(default=dict, verbose_name="values")),
                ("changes", models.JSONField(default=dict, verbose_name="changes")),
                (
                    "note",
                    models.CharField(blank=True, max_length=300, verbose_name="reason"),
                ),
                (
                    "restored",
                    models.PositiveIntegerField(
                        null=True, verbose_name="restored version"
                    ),
                ),
                (
                    "saved_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="saved"),
                ),
                (
                    "saved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="saved by",
                    ),
                ),
            ],
            options={
                "verbose_name": "search settings",
                "verbose_name_plural": "search settings",
                "ordering": ["-version"],
            },
        ),
        migrations.CreateModel(
            name="SearchLab",
            fields=[],
            options={
                "verbose_name": "search lab",
                "verbose_name_plural": "search lab",
                "proxy": True,
                "default_permissions": ("view",),
                "indexes": [],
                "constraints": [],
            },
            bases=("retrieval.tuningrecord",),
        ),
    ]
