import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import knowledge.models.memory


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0009_agents"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="user",
            options={
                "permissions": [
                    ("view_as", "Can see the portal as another person sees it")
                ],
                "verbose_name": "person",
                "verbose_name_plural": "people",
            },
        ),
        migrations.AddField(
            model_name="knowledgebase",
            name="owner",
            field=models.OneToOneField(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memory",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.CreateModel(
            name="Conversation",
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
                    "started_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="started"),
                ),
                (
                    "ends_at",
                    models.DateTimeField(
                        db_index=True,
                        default=knowledge.models.memory.idle_end,
                        verbose_name="ends",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="conversations",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
            ],
            options={
                "verbose_name": "conversation",
                "verbose_name_plural": "conversations",
                "ordering": ["-started_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Statement",
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
                ("text", models.CharField(max_length=2000, verbose_name="text")),
                ("digest", models.CharField(editable=False, max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="remembered"),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="statements",
                        to="knowledge.conversation",
                        verbose_name="conversation",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statements",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statement",
                        to="knowledge.source",
                    ),
                ),
            ],
            options={
                "verbose_name": "statement",
                "verbose_name_plural": "statements",
                "ordering": ["-created_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "conversation", "digest"),
                        name="statement_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
    ]
