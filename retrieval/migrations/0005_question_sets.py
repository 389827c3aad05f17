"""Question sets, their runs, and the checks of proposed settings."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0004_turns"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="QuestionSet",
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
                    "name",
                    models.CharField(max_length=120, unique=True, verbose_name="name"),
                ),
                (
                    "description",
                    models.TextField(blank=True, verbose_name="description"),
                ),
                (
                    "checks_settings",
                    models.BooleanField(
                        default=True,
                        help_text="New search settings are tried against it before they are saved.",
                        verbose_name="checks settings",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="created"),
                ),
                ("version", models.PositiveIntegerField(default=1, editable=False)),
                (
                    "asked_as",
                    models.ForeignKey(
                        blank=True,
                        help_text="Whose view of them is searched. Empty: that of whoever runs it.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="asked as",
                    ),
                ),
                (
                    "knowledge_bases",
                    models.ManyToManyField(
                        help_text="The questions are asked of these alone.",
                        related_name="question_sets",
                        to="knowledge.knowledgebase",
                        verbose_name="knowledge bases",
                    ),
                ),
            ],
            options={
                "verbose_name": "question set",
                "verbose_name_plural": "question sets",
                "ordering": ["name"],
                "permissions": [("run_questionset", "Can run question sets")],
            },
        ),
        migrations.CreateModel(
            name="Question",
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
                ("key", models.CharField(blank=True, max_length=80, verbose_name="id")),
                ("text", models.CharField(max_length=1000, verbose_name="question")),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("en", "English"),
                            ("vi", "Vietnamese"),
                            ("pl", "Polish"),
                            ("ro", "Romanian"),
                            ("ru", "Russian"),
                            ("mixed", "mixed"),
                        ],
                        max_length=5,
                        verbose_name="language",
                    ),
                ),
                (
                    "is_answerable",
                    models.BooleanField(default=True, verbose_name="in the documents"),
                ),
                (
                    "places",
                    models.JSONField(
                        blank=True, default=list, verbose_name="expected places"
                    ),
                ),
                ("notes", models.TextField(blank=True, verbose_name="notes")),
                ("extra", models.JSONField(default=dict, editable=False)),
                ("position", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "question_set",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="questions",
                        to="retrieval.questionset",
                        verbose_name="question set",
                    ),
                ),
            ],
            options={
                "verbose_name": "question",
                "verbose_name_plural": "questions",
                "ordering": ["question_set", "position", "pk"],
            },
        ),
        migrations.CreateModel(
            name="SetRun",
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
                ("set_version", models.PositiveIntegerField()),
                ("values", models.JSONField(default=dict, verbose_name="settings")),
                (
                    "tuning_version",
                    models.PositiveIntegerField(verbose_name="settings version"),
                ),
                ("is_trial", models.BooleanField(default=False, verbose_name="trial")),
                (
                    "label",
                    models.CharField(blank=True, max_length=120, verbose_name="name"),
                ),
                (
                    "knowledge_base_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("fingerprint", models.CharField(max_length=64)),
                (
                    "asked_as_label",
                    models.CharField(max_length=200, verbose_name="asked as"),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        default="queued",
                        max_length=8,
                        verbose_name="state",
                    ),
                ),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("lease_until", models.DateTimeField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "total",
                    models.PositiveIntegerField(default=0, verbose_name="questions"),
                ),
                ("done", models.PositiveIntegerField(default=0, verbose_name="asked")),
                ("ndcg", models.FloatField(null=True, verbose_name="nDCG@10")),
                ("recall", models.FloatField(null=True, verbose_name="recall@5")),
                (
                    "refusal_accuracy",
                    models.FloatField(null=True, verbose_name="refusal accuracy"),
                ),
                (
                    "refusal_recall",
                    models.FloatField(null=True, verbose_name="refusal recall"),
                ),
                (
                    "false_refusal_rate",
                    models.FloatField(null=True, verbose_name="false refusals"),
                ),
                ("ranked_questions", models.PositiveIntegerField(default=0)),
                ("judged_questions", models.PositiveIntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="requested"),
                ),
                (
                    "queued_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="queued"
                    ),
                ),
                (
                    "finished_at",
                    models.DateTimeField(null=True, verbose_name="finished"),
                ),
                (
                    "asked_as",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="asked as",
                    ),
                ),
                (
                    "question_set",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="retrieval.questionset",
                        verbose_name="question set",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="requested by",
                    ),
                ),
            ],
            options={
                "verbose_name": "question set run",
                "verbose_name_plural": "question set runs",
                "ordering": ["-created_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="QuestionOutcome",
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
                ("hits", models.JSONField(default=list)),
                ("rank", models.PositiveSmallIntegerField(null=True)),
                ("ndcg", models.FloatField(null=True)),
                ("recall", models.FloatField(null=True)),
                ("refused", models.BooleanField(null=True)),
                ("confidence", models.FloatField(null=True)),
                ("milliseconds", models.FloatField(default=0)),
                (
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outcomes",
                        to="retrieval.question",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outcomes",
                        to="retrieval.setrun",
                    ),
                ),
            ],
            options={
                "verbose_name": "outcome of a question",
                "verbose_name_plural": "outcomes of questions",
            },
        ),
        migrations.CreateModel(
            name="TuningCheck",
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
                    "after",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="retrieval.setrun",
                    ),
                ),
                (
                    "before",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="retrieval.setrun",
                    ),
                ),
                (
                    "proposal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="retrieval.tuningproposal",
                    ),
                ),
            ],
            options={
                "verbose_name": "check of proposed settings",
                "verbose_name_plural": "checks of proposed settings",
                "ordering": ["after__question_set__name", "pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key", ""), _negated=True),
                fields=("question_set", "key", "language"),
                name="question_key_once",
            ),
        ),
        migrations.AddIndex(
            model_name="setrun",
            index=models.Index(
                fields=["question_set", "-created_at"], name="set_run_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="setrun",
            index=models.Index(fields=["fingerprint"], name="set_run_fingerprint"),
        ),
        migrations.AddConstraint(
            model_name="questionoutcome",
            constraint=models.UniqueConstraint(
                fields=("run", "question"), name="outcome_of_run_and_question_once"
            ),
        ),
    ]
