"""Turns, trace steps and snapshots."""

import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# A source that moves takes its snapshots along to the other knowledge base, in the same
# statement, so that they are seen by whoever may see the source.
FOLLOW = """
ALTER TABLE retrieval_snapshot ADD CONSTRAINT snapshot_source_belongs
FOREIGN KEY (source_id, knowledge_base_id)
REFERENCES knowledge_source (id, knowledge_base_id) ON UPDATE CASCADE
"""
# The apps below know nothing of snapshots; whoever deletes a source leaves the time.
REMOVED = """
CREATE FUNCTION retrieval_say_when_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.removed_at := now();
    RETURN NEW;
END
$$;
CREATE TRIGGER snapshot_says_when_removed
BEFORE UPDATE OF source_id ON retrieval_snapshot FOR EACH ROW
WHEN (OLD.source_id IS NOT NULL AND NEW.source_id IS NULL)
EXECUTE FUNCTION retrieval_say_when_removed();
"""
UNDO_REMOVED = """
DROP TRIGGER snapshot_says_when_removed ON retrieval_snapshot;
DROP FUNCTION retrieval_say_when_removed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0009_agents"),
        ("retrieval", "0003_search_log"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Turn",
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
                    "knowledge_base_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        size=None,
                        verbose_name="knowledge bases",
                    ),
                ),
                (
                    "conversation_id",
                    models.UUIDField(null=True, verbose_name="conversation"),
                ),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="started",
                    ),
                ),
                (
                    "used_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="last used",
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True, verbose_name="ended")),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="turns",
                        to="knowledge.agentclient",
                        verbose_name="agent client",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="acts for",
                    ),
                ),
            ],
            options={
                "verbose_name": "turn",
                "verbose_name_plural": "turns",
                "ordering": ["-started_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="TurnStep",
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
                ("query", models.TextField(blank=True, verbose_name="query")),
                (
                    "count",
                    models.PositiveSmallIntegerField(verbose_name="passages asked for"),
                ),
                (
                    "knowledge_base_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        default=list,
                        size=None,
                        verbose_name="searched",
                    ),
                ),
                (
                    "tuning_version",
                    models.PositiveIntegerField(default=0, verbose_name="settings"),
                ),
                ("hits", models.JSONField(default=list, verbose_name="given")),
                ("withheld", models.JSONField(default=list, verbose_name="withheld")),
                ("labels", models.JSONField(default=list, verbose_name="labels")),
                (
                    "citations_saved",
                    models.BooleanField(default=False, verbose_name="citations saved"),
                ),
                (
                    "stage_ms",
                    models.JSONField(
                        default=dict, verbose_name="milliseconds by stage"
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="at",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="retrieval.turn",
                    ),
                ),
            ],
            options={
                "verbose_name": "trace step",
                "verbose_name_plural": "trace steps",
                "ordering": ["turn", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Snapshot",
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
                ("number", models.PositiveIntegerField(verbose_name="number")),
                ("revision", models.BigIntegerField(verbose_name="revision")),
                ("start", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("ref", models.CharField(max_length=60, verbose_name="ref")),
                ("text", models.TextField(blank=True, verbose_name="text")),
                (
                    "text_sha256",
                    models.CharField(max_length=64, verbose_name="SHA-256 of the text"),
                ),
                (
                    "cut",
                    models.BooleanField(default=False, verbose_name="shown in part"),
                ),
                (
                    "title",
                    models.CharField(blank=True, max_length=300, verbose_name="title"),
                ),
                ("clause_path", models.TextField(blank=True, verbose_name="section")),
                ("layer", models.CharField(max_length=60, verbose_name="layer")),
                (
                    "file",
                    models.CharField(blank=True, max_length=500, verbose_name="file"),
                ),
                ("page", models.PositiveIntegerField(null=True, verbose_name="page")),
                ("lines", models.CharField(max_length=24, verbose_name="lines")),
                ("date", models.DateField(null=True, verbose_name="date")),
                (
                    "date_source",
                    models.CharField(
                        blank=True, max_length=12, verbose_name="date read from"
                    ),
                ),
                ("text_origin", models.CharField(max_length=4, verbose_name="read as")),
                (
                    "places",
                    models.JSONField(
                        default=list, verbose_name="where the matched passages sit"
                    ),
                ),
                ("score", models.FloatField(verbose_name="fused score")),
                ("indexed_at", models.DateTimeField(verbose_name="indexed")),
                (
                    "saved_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="saved",
                    ),
                ),
                ("removed_at", models.DateTimeField(null=True, verbose_name="removed")),
                ("purged_at", models.DateTimeField(null=True, verbose_name="erased")),
                (
                    "document",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.document",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.knowledgebase",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.source",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="retrieval.turn",
                    ),
                ),
            ],
            options={
                "verbose_name": "citation",
                "verbose_name_plural": "citations",
                "ordering": ["turn", "number"],
                "indexes": [
                    models.Index(fields=["revision"], name="snapshot_by_revision")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("turn", "number"), name="snapshot_number_once"
                    ),
                    models.UniqueConstraint(
                        fields=("turn", "ref"), name="snapshot_ref_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gt", 0)),
                        name="snapshot_number_positive",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            FOLLOW,
            "ALTER TABLE retrieval_snapshot DROP CONSTRAINT snapshot_source_belongs",
        ),
        migrations.RunSQL(REMOVED, UNDO_REMOVED),
    ]
