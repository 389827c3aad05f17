"""Agent clients; each token that a model drives belongs to one from now on."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def give_clients(apps, schema_editor):
    """Give each agent's token a client of its own, bound to what the token covered."""
    AgentClient = apps.get_model("knowledge", "AgentClient")
    ApiToken = apps.get_model("knowledge", "ApiToken")
    KnowledgeBase = apps.get_model("knowledge", "KnowledgeBase")
    for token in ApiToken.objects.filter(kind="agent_client"):
        client = AgentClient.objects.create(
            owner_id=token.owner_id, name=f"{token.name[:100]} ({token.prefix})"
        )
        covered = KnowledgeBase.objects if token.covers_all else token.knowledge_bases
        client.knowledge_bases.set(covered.all())
        token.knowledge_bases.clear()
        token.client = client
        token.covers_all = False
        token.save(update_fields=["client", "covers_all"])


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0008_departments"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="source",
            options={
                "ordering": ["-created_at", "-pk"],
                "permissions": [
                    ("switch_source", "Can switch a source on and off"),
                    ("reindex_source", "Can index a source again"),
                    ("purge_source", "Can erase a source and every copy of its words"),
                ],
                "verbose_name": "source",
                "verbose_name_plural": "sources",
            },
        ),
        migrations.CreateModel(
            name="AgentClient",
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
                ("name", models.CharField(max_length=120, verbose_name="name")),
                (
                    "search_enabled",
                    models.BooleanField(
                        default=True,
                        help_text="Off: it finds nothing, at once.",
                        verbose_name="may search",
                    ),
                ),
                (
                    "most_results",
                    models.PositiveSmallIntegerField(
                        default=20,
                        help_text="How many passages a search may ask for in each knowledge base: 1 to 20.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(20),
                        ],
                        verbose_name="most results",
                    ),
                ),
                (
                    "recalls_memory",
                    models.BooleanField(
                        default=False,
                        help_text="Its turns also find what is remembered about that person.",
                        verbose_name="recalls memory",
                    ),
                ),
                (
                    "search_type",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("semantic", "meaning alone"),
                            ("lexical", "words and codes alone"),
                            ("hybrid", "meaning, words and codes"),
                        ],
                        max_length=8,
                        verbose_name="searches by",
                    ),
                ),
                (
                    "count",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Only a lower count than the deployment's has an effect.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(20),
                        ],
                        verbose_name="results if none are asked for",
                    ),
                ),
                (
                    "similarity_floor",
                    models.FloatField(
                        blank=True,
                        help_text="Cosine below which meaning alone finds nothing. Only a higher one than the deployment's has an effect.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(-1),
                            django.core.validators.MaxValueValidator(1),
                        ],
                        verbose_name="least similarity",
                    ),
                ),
                (
                    "keyword_weight",
                    models.FloatField(
                        blank=True,
                        help_text="Only a lower weight than the deployment's has an effect.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(10),
                        ],
                        verbose_name="weight of words",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="created"),
                ),
                (
                    "knowledge_bases",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The knowledge bases that its turns search. It can name none.",
                        related_name="agent_clients",
                        to="knowledge.knowledgebase",
                        verbose_name="bound to",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        help_text="It never finds what this person may not search.",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_clients",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="acts for",
                    ),
                ),
            ],
            options={
                "verbose_name": "agent client",
                "verbose_name_plural": "agent clients",
                "ordering": ["name", "pk"],
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="client",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tokens",
                to="knowledge.agentclient",
                verbose_name="agent client",
            ),
        ),
        migrations.RunPython(give_clients, migrations.RunPython.noop),
        # The keys of the new rows are checked now: a table with checks that wait
        # cannot be altered.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="apitoken",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("client__isnull", False), ("kind", "agent_client")),
                    models.Q(
                        models.Q(("kind", "agent_client"), _negated=True),
                        ("client__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="token_of_agent_has_client",
            ),
        ),
        migrations.AddConstraint(
            model_name="agentclient",
            constraint=models.UniqueConstraint(
                fields=("owner", "name"),
                name="agent_client_name_once",
                violation_error_message="This person already has an agent client of that name.",
            ),
        ),
        migrations.AddConstraint(
            model_name="agentclient",
            constraint=models.CheckConstraint(
                condition=models.Q(("most_results__range", (1, 20))),
                name="agent_client_most_results_1_to_20",
            ),
        ),
        migrations.AddConstraint(
            model_name="agentclient",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("count__isnull", True), ("count__range", (1, 20)), _connector="OR"
                ),
                name="agent_client_count_1_to_20",
            ),
        ),
        migrations.AddConstraint(
            model_name="agentclient",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("search_type__in", ["", "semantic", "lexical", "hybrid"])
                ),
                name="agent_client_search_type_known",
            ),
        ),
    ]
