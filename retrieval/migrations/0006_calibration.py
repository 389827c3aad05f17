"""How scores are judged, with its history."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0005_question_sets"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Calibration",
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
                ("scorer", models.CharField(max_length=200)),
                ("model_id", models.CharField(max_length=200, verbose_name="model")),
                (
                    "basis",
                    models.CharField(
                        choices=[("similarity", "similarity"), ("rerank", "reranker")],
                        max_length=10,
                        verbose_name="basis",
                    ),
                ),
                ("scale", models.JSONField(default=dict, verbose_name="scale")),
                ("measured", models.JSONField(default=dict, verbose_name="measured")),
                (
                    "answerable",
                    models.PositiveIntegerField(verbose_name="answerable questions"),
                ),
                (
                    "unanswerable",
                    models.PositiveIntegerField(verbose_name="unanswerable questions"),
                ),
                (
                    "sources",
                    models.CharField(
                        blank=True, max_length=1000, verbose_name="question sets"
                    ),
                ),
                (
                    "fitted_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="fitted"),
                ),
                (
                    "fitted_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="fitted by",
                    ),
                ),
            ],
            options={
                "verbose_name": "calibration",
                "verbose_name_plural": "calibrations",
                "ordering": ["-fitted_at", "-pk"],
                "indexes": [
                    models.Index(
                        fields=["scorer", "basis", "-fitted_at"],
                        name="calibration_by_scorer",
                    )
                ],
            },
        ),
    ]
