"""Ratings, signals and what is learned of them; an id for each answer."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


# A learned affinity decides where a search goes: a change of one raises the version of
# its knowledge base, under which results are cached.
TOUCH = """
CREATE FUNCTION strata_touch_of_affinity() RETURNS trigger AS $$
DECLARE
    changed retrieval_learneditem := coalesce(NEW, OLD);
BEGIN
    IF changed.kind = 'affinity' THEN
        UPDATE knowledge_knowledgebase SET version = version + 1
        WHERE id = ANY(changed.knowledge_base_ids);
    END IF;
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE TRIGGER affinity_touches_knowledge_base
AFTER INSERT OR UPDATE OF seen, state, rule, is_pinned OR DELETE ON retrieval_learneditem
FOR EACH ROW EXECUTE FUNCTION strata_touch_of_affinity();
"""
FORGET = """
DROP TRIGGER affinity_touches_knowledge_base ON retrieval_learneditem;
DROP FUNCTION strata_touch_of_affinity();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0011_routing"),
        ("retrieval", "0008_receipts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="interaction",
            name="learned_ids",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                default=list,
                size=None,
                verbose_name="learned items",
            ),
        ),
        migrations.AddField(
            model_name="interaction",
            name="rewritten_by",
            field=models.CharField(
                blank=True, max_length=10, verbose_name="reworded by"
            ),
        ),
        migrations.AddField(
            model_name="searchlog",
            name="chose_layers",
            field=models.BooleanField(default=False, verbose_name="layers were named"),
        ),
        migrations.AddField(
            model_name="searchlog",
            name="conversation_id",
            field=models.UUIDField(null=True, verbose_name="conversation"),
        ),
        migrations.AddField(
            model_name="searchlog",
            name="interaction_id",
            field=models.UUIDField(null=True, unique=True, verbose_name="answer"),
        ),
        migrations.CreateModel(
            name="Feedback",
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
                    "interaction_id",
                    models.UUIDField(unique=True, verbose_name="answer"),
                ),
                ("is_helpful", models.BooleanField(verbose_name="helpful")),
                (
                    "reasons",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("wrong", "It is wrong"),
                                ("outdated", "It is out of date"),
                                ("incomplete", "Something is left out"),
                                ("beside", "It answers another question"),
                                ("unclear", "It is hard to understand"),
                            ],
                            max_length=10,
                        ),
                        default=list,
                        size=None,
                        verbose_name="reasons",
                    ),
                ),
                (
                    "comment",
                    models.TextField(blank=True, verbose_name="in their words"),
                ),
                (
                    "better_query",
                    models.TextField(blank=True, verbose_name="better question"),
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
                    "given_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="given",
                    ),
                ),
                (
                    "changed_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="last changed",
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
                    "correct_layer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.layer",
                        verbose_name="right layer",
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
            ],
            options={
                "verbose_name": "rating",
                "verbose_name_plural": "ratings",
                "ordering": ["-changed_at", "-pk"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="LearningState",
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
                ("read_to", models.BigIntegerField(default=0)),
                (
                    "since",
                    models.DateTimeField(null=True, verbose_name="nothing before"),
                ),
                ("queued_at", models.DateTimeField(null=True)),
                ("run_at", models.DateTimeField(null=True, verbose_name="last run")),
                ("outcome", models.JSONField(default=dict, verbose_name="what it did")),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("pk", 1)), name="learning_state_is_one"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PassageFeedback",
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
                    "worth",
                    models.CharField(
                        choices=[
                            ("useful", "useful"),
                            ("wrong", "wrong"),
                            ("outdated", "outdated"),
                        ],
                        max_length=8,
                        verbose_name="worth",
                    ),
                ),
                ("ref", models.CharField(max_length=60, verbose_name="ref")),
                ("revision", models.BigIntegerField(verbose_name="revision")),
                (
                    "passage_id",
                    models.BigIntegerField(null=True, verbose_name="passage"),
                ),
                (
                    "given_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="given",
                    ),
                ),
                (
                    "feedback",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="passages",
                        to="retrieval.feedback",
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
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.source",
                        verbose_name="source",
                    ),
                ),
            ],
            options={
                "verbose_name": "rating of a passage",
                "verbose_name_plural": "ratings of passages",
                "ordering": ["-given_at", "-pk"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="LearningSignal",
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
                    "kind",
                    models.CharField(
                        choices=[
                            ("reworded", "asked again in other words"),
                            ("layer_switch", "asked again in another layer"),
                            ("follow_up", "went on with another question"),
                            ("feedback", "rated"),
                            ("answered", "reworded by a model, and found"),
                        ],
                        max_length=12,
                        verbose_name="kind",
                    ),
                ),
                ("first", models.UUIDField(verbose_name="question")),
                ("second", models.UUIDField(null=True, verbose_name="then")),
                (
                    "knowledge_base_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        size=None,
                        verbose_name="knowledge bases",
                    ),
                ),
                ("at", models.DateTimeField(verbose_name="at")),
                (
                    "layer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.layer",
                        verbose_name="layer",
                    ),
                ),
            ],
            options={
                "verbose_name": "signal",
                "verbose_name_plural": "signals",
                "ordering": ["at", "pk"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="LearnedItem",
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
                    "kind",
                    models.CharField(
                        choices=[
                            ("synonym", "synonym"),
                            ("rewrite", "rewrite"),
                            ("affinity", "layer affinity"),
                        ],
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                ("key", models.CharField(max_length=100)),
                ("term", models.TextField(verbose_name="word or question")),
                (
                    "value",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        default=list,
                        size=None,
                        verbose_name="searched for too",
                    ),
                ),
                (
                    "knowledge_base_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        size=None,
                        verbose_name="knowledge bases",
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("reworded", "from questions asked again in other words"),
                            ("rated", "from what people said of answers"),
                            ("chosen", "from layers that people chose"),
                            (
                                "model",
                                "from searches of a language model that found something",
                            ),
                            ("imported", "from an earlier product"),
                        ],
                        max_length=10,
                        verbose_name="learned",
                    ),
                ),
                (
                    "rule",
                    models.PositiveSmallIntegerField(default=1, verbose_name="rule"),
                ),
                ("seen", models.PositiveIntegerField(default=0, verbose_name="seen")),
                (
                    "usage_count",
                    models.PositiveIntegerField(default=0, verbose_name="used"),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, verbose_name="did not help"),
                ),
                (
                    "last_seen_at",
                    models.DateTimeField(null=True, verbose_name="last seen"),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(null=True, verbose_name="last used"),
                ),
                (
                    "learned_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="learned",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("on", "in use"),
                            ("off", "switched off"),
                            ("removed", "removed for good"),
                        ],
                        default="on",
                        max_length=8,
                        verbose_name="state",
                    ),
                ),
                (
                    "is_pinned",
                    models.BooleanField(default=False, verbose_name="pinned"),
                ),
                ("decided_at", models.DateTimeField(null=True, verbose_name="decided")),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="decided by",
                    ),
                ),
                (
                    "layer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.layer",
                        verbose_name="layer",
                    ),
                ),
                (
                    "evidence",
                    models.ManyToManyField(
                        related_name="items", to="retrieval.learningsignal"
                    ),
                ),
            ],
            options={
                "verbose_name": "learned item",
                "verbose_name_plural": "learned items",
                "ordering": ["-usage_count", "-seen", "pk"],
                "permissions": [("reset_learning", "Can reset what was learned")],
                "default_permissions": ("view", "change"),
            },
        ),
        migrations.AddIndex(
            model_name="feedback",
            index=models.Index(fields=["-changed_at"], name="feedback_by_time"),
        ),
        migrations.AddIndex(
            model_name="passagefeedback",
            index=models.Index(fields=["revision"], name="feedback_by_revision"),
        ),
        migrations.AddConstraint(
            model_name="passagefeedback",
            constraint=models.UniqueConstraint(
                fields=("feedback", "ref"), name="feedback_once_for_a_passage"
            ),
        ),
        migrations.AddConstraint(
            model_name="passagefeedback",
            constraint=models.CheckConstraint(
                condition=models.Q(("worth__in", ["useful", "wrong", "outdated"])),
                name="feedback_worth_known",
            ),
        ),
        migrations.AddIndex(
            model_name="learningsignal",
            index=models.Index(fields=["at"], name="signal_by_time"),
        ),
        migrations.AddIndex(
            model_name="learningsignal",
            index=models.Index(fields=["first"], name="signal_by_first"),
        ),
        migrations.AddConstraint(
            model_name="learningsignal",
            constraint=models.UniqueConstraint(
                fields=("kind", "first", "second"),
                name="signal_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddIndex(
            model_name="learneditem",
            index=models.Index(fields=["kind", "key"], name="learned_by_key"),
        ),
        migrations.AddConstraint(
            model_name="learneditem",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["synonym", "rewrite", "affinity"])),
                name="learned_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="learneditem",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["on", "off", "removed"])),
                name="learned_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="learneditem",
            constraint=models.CheckConstraint(
                condition=models.Q(("knowledge_base_ids__len__gt", 0)),
                name="learned_of_some_knowledge_base",
            ),
        ),
        migrations.AddConstraint(
            model_name="learneditem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "affinity"), _negated=True),
                    ("layer__isnull", False),
                    _connector="OR",
                ),
                name="learned_affinity_has_layer",
            ),
        ),
        migrations.RunSQL(TOUCH, FORGET),
    ]
