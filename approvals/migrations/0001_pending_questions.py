"""Questions that wait for a person, their wordings, and what agents are told."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("knowledge", "0011_routing"),
        ("retrieval", "0009_feedback_and_learning"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PendingQuestion",
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
                ("question", models.TextField(verbose_name="question")),
                (
                    "language",
                    models.CharField(blank=True, max_length=2, verbose_name="language"),
                ),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("voice", "voice"),
                            ("widget", "widget"),
                            ("api", "API"),
                            ("portal", "portal"),
                        ],
                        max_length=6,
                        verbose_name="channel",
                    ),
                ),
                (
                    "knowledge_base_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        size=None,
                        verbose_name="asked of",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("approved", "approved"),
                            ("ignored", "ignored"),
                            ("duplicate", "duplicate"),
                        ],
                        default="pending",
                        max_length=9,
                        verbose_name="state",
                    ),
                ),
                (
                    "asked_count",
                    models.PositiveIntegerField(default=1, verbose_name="asked"),
                ),
                (
                    "asker_count",
                    models.PositiveIntegerField(default=1, verbose_name="by how many"),
                ),
                ("first_asked_at", models.DateTimeField(verbose_name="first asked")),
                ("last_asked_at", models.DateTimeField(verbose_name="last asked")),
                (
                    "snoozed_until",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="put off until"
                    ),
                ),
                (
                    "ignored_because",
                    models.CharField(
                        blank=True, max_length=500, verbose_name="why it is ignored"
                    ),
                ),
                ("locked_until", models.DateTimeField(blank=True, null=True)),
                ("answer", models.TextField(blank=True, verbose_name="answer")),
                (
                    "question_as_answered",
                    models.CharField(
                        blank=True,
                        max_length=300,
                        verbose_name="question as it is published",
                    ),
                ),
                (
                    "answered_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="answered"
                    ),
                ),
                (
                    "four_eyes",
                    models.BooleanField(
                        default=False, verbose_name="needs a second person"
                    ),
                ),
                (
                    "approved_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="approved"
                    ),
                ),
                (
                    "gap",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not asked again yet"),
                            ("closed", "closed"),
                            ("open", "still open"),
                        ],
                        default="",
                        max_length=6,
                        verbose_name="gap",
                    ),
                ),
                (
                    "gap_checked_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="asked again"
                    ),
                ),
                ("revision", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "announced_revision",
                    models.PositiveIntegerField(default=0, editable=False),
                ),
                ("version", models.PositiveIntegerField(default=1, editable=False)),
                (
                    "approved_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="approved by",
                    ),
                ),
                (
                    "assigned_to",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="assigned to",
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="answered by",
                    ),
                ),
                (
                    "layer",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.layer",
                        verbose_name="layer",
                    ),
                ),
                (
                    "locked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="being edited by",
                    ),
                ),
                (
                    "original",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="duplicates",
                        to="approvals.pendingquestion",
                        verbose_name="same as",
                    ),
                ),
                (
                    "source",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="pending_question",
                        to="knowledge.source",
                        verbose_name="source",
                    ),
                ),
            ],
            options={
                "verbose_name": "pending question",
                "verbose_name_plural": "pending questions",
                "ordering": ["-asker_count", "-asked_count", "first_asked_at", "pk"],
                "permissions": [
                    ("answer_pendingquestion", "Can answer and sort pending questions"),
                    ("approve_pendingquestion", "Can approve and withdraw answers"),
                ],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Delivery",
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
                ("revision", models.PositiveIntegerField(verbose_name="revision")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("answer", "answer"),
                            ("changed", "changed answer"),
                            ("withdrawn", "withdrawn answer"),
                        ],
                        max_length=9,
                        verbose_name="kind",
                    ),
                ),
                (
                    "delivery_id",
                    models.UUIDField(default=uuid.uuid4, editable=False, unique=True),
                ),
                ("sequence", models.BigIntegerField(verbose_name="number")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="made",
                    ),
                ),
                ("pushed_at", models.DateTimeField(null=True, verbose_name="sent")),
                (
                    "acknowledged_at",
                    models.DateTimeField(null=True, verbose_name="acknowledged"),
                ),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="knowledge.agentclient",
                        verbose_name="agent client",
                    ),
                ),
                (
                    "pending",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="approvals.pendingquestion",
                        verbose_name="pending question",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery",
                "verbose_name_plural": "deliveries",
                "ordering": ["client", "sequence"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SettlingMark",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, primary_key=True, serialize=False
                    ),
                ),
                ("settled_before", models.DateTimeField()),
            ],
            options={
                "verbose_name": "settling mark",
                "verbose_name_plural": "settling marks",
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("pk", 1)), name="settling_mark_is_one"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Subscriber",
            fields=[
                (
                    "client",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="subscriber",
                        serialize=False,
                        to="knowledge.agentclient",
                        verbose_name="agent client",
                    ),
                ),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("voice", "voice"),
                            ("widget", "widget"),
                            ("api", "API"),
                        ],
                        default="api",
                        help_text="Where the people are whose questions it asks.",
                        max_length=6,
                        verbose_name="channel",
                    ),
                ),
                ("last_sequence", models.BigIntegerField(default=0, editable=False)),
                (
                    "push_url",
                    models.URLField(
                        blank=True,
                        help_text="An address that takes signed messages. Empty: it asks by itself.",
                        max_length=500,
                        verbose_name="send answers to",
                    ),
                ),
                (
                    "secret_number",
                    models.PositiveIntegerField(default=1, editable=False),
                ),
                (
                    "push_attempts",
                    models.PositiveIntegerField(
                        default=0, editable=False, verbose_name="failed attempts"
                    ),
                ),
                (
                    "push_after",
                    models.DateTimeField(
                        editable=False, null=True, verbose_name="next attempt"
                    ),
                ),
                (
                    "push_problem",
                    models.CharField(
                        blank=True,
                        editable=False,
                        max_length=300,
                        verbose_name="last problem",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery to an agent client",
                "verbose_name_plural": "deliveries to agent clients",
                "ordering": ["client__name", "client_id"],
                "default_permissions": ("view", "change"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("channel__in", ["voice", "widget", "api"])),
                        name="subscriber_channel_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Wording",
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
                ("text", models.TextField(blank=True, verbose_name="wording")),
                (
                    "digest",
                    models.CharField(db_index=True, editable=False, max_length=64),
                ),
                (
                    "language",
                    models.CharField(blank=True, max_length=2, verbose_name="language"),
                ),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("voice", "voice"),
                            ("widget", "widget"),
                            ("api", "API"),
                            ("portal", "portal"),
                        ],
                        max_length=6,
                        verbose_name="channel",
                    ),
                ),
                ("caller", models.CharField(editable=False, max_length=80)),
                ("at", models.DateTimeField(verbose_name="asked")),
                (
                    "finds",
                    models.BooleanField(null=True, verbose_name="finds the answer"),
                ),
                ("vector", models.BinaryField(null=True)),
                ("space", models.CharField(blank=True, editable=False, max_length=64)),
                (
                    "told_at",
                    models.DateTimeField(null=True, verbose_name="seen by the asker"),
                ),
                (
                    "asker",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="asked by",
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
                    "interaction",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="wording",
                        to="retrieval.interaction",
                        verbose_name="interaction",
                    ),
                ),
                (
                    "pending",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="wordings",
                        to="approvals.pendingquestion",
                        verbose_name="pending question",
                    ),
                ),
            ],
            options={
                "verbose_name": "wording",
                "verbose_name_plural": "wordings",
                "ordering": ["at", "pk"],
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="pendingquestion",
            index=models.Index(
                fields=["state", "-asker_count", "-asked_count", "first_asked_at"],
                name="pending_question_by_want",
            ),
        ),
        migrations.AddIndex(
            model_name="pendingquestion",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["knowledge_base_ids"], name="pending_question_by_base"
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["pending", "approved", "ignored", "duplicate"])
                ),
                name="pending_question_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("channel__in", ["voice", "widget", "api", "portal"])
                ),
                name="pending_question_channel_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(("gap__in", ["", "closed", "open"])),
                name="pending_question_gap_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("original__isnull", False),
                        ("state", "duplicate"),
                        models.Q(("original", models.F("pk")), _negated=True),
                    ),
                    models.Q(
                        models.Q(("state", "duplicate"), _negated=True),
                        ("original__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="pending_question_duplicate_has_original",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ignored_because", ""), ("state", "ignored"), _negated=True
                ),
                name="pending_question_ignored_has_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("approved_at__isnull", False),
                        ("state", "approved"),
                        models.Q(("answer", ""), _negated=True),
                    ),
                    models.Q(
                        models.Q(("state", "approved"), _negated=True),
                        ("approved_at__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="pending_question_approved_has_answer",
            ),
        ),
        migrations.AddConstraint(
            model_name="pendingquestion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("approved_by", models.F("author")),
                    ("four_eyes", True),
                    _negated=True,
                ),
                name="pending_question_four_eyes",
                violation_error_message="Whoever wrote an answer cannot approve it here.",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                fields=("client", "sequence"), name="delivery_number_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                fields=("client", "pending", "revision"), name="delivery_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["answer", "changed", "withdrawn"])),
                name="delivery_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="wording",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("channel__in", ["voice", "widget", "api", "portal"])
                ),
                name="wording_channel_known",
            ),
        ),
    ]
