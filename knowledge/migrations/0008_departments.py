import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0007_sections"),
    ]

    operations = [
        migrations.CreateModel(
            name="Department",
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
                    "search_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Left empty, searches are counted and cost nothing.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                        verbose_name="price of a search",
                    ),
                ),
                (
                    "token_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Tokens that are embedded, reranked or rewritten. Left empty, they are counted and cost nothing.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                        verbose_name="price of 1,000 tokens",
                    ),
                ),
                (
                    "currency",
                    models.CharField(
                        default="EUR",
                        help_text="Its three letters, such as EUR.",
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z",
                                "Write the currency's three letters, such as EUR.",
                            )
                        ],
                        verbose_name="currency",
                    ),
                ),
            ],
            options={
                "verbose_name": "department",
                "verbose_name_plural": "departments",
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("search_price__gte", 0),
                            ("search_price__isnull", True),
                            _connector="OR",
                        ),
                        name="department_search_price_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("token_price__gte", 0),
                            ("token_price__isnull", True),
                            _connector="OR",
                        ),
                        name="department_token_price_not_negative",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="knowledgebase",
            name="department",
            field=models.ForeignKey(
                blank=True,
                help_text="Pays for indexing its documents.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="knowledge_bases",
                to="knowledge.department",
                verbose_name="department",
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="department",
            field=models.ForeignKey(
                blank=True,
                help_text="Pays for this person's searches.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="people",
                to="knowledge.department",
                verbose_name="department",
            ),
        ),
        migrations.CreateModel(
            name="LedgerEntry",
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
                    "kind",
                    models.CharField(
                        choices=[
                            ("search", "searches"),
                            ("ask", "questions"),
                            ("embedding", "embedding"),
                            ("rewrite", "rewriting"),
                            ("rerank", "reranking"),
                            ("ingest", "indexing"),
                        ],
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                ("units", models.PositiveBigIntegerField(verbose_name="units")),
                (
                    "amount",
                    models.DecimalField(
                        decimal_places=9,
                        max_digits=20,
                        null=True,
                        verbose_name="amount",
                    ),
                ),
                (
                    "currency",
                    models.CharField(blank=True, max_length=3, verbose_name="currency"),
                ),
                (
                    "department",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="knowledge.department",
                        verbose_name="department",
                    ),
                ),
            ],
            options={
                "verbose_name": "ledger entry",
                "verbose_name_plural": "ledger",
                "ordering": ["-at", "-pk"],
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["at"], name="ledger_by_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "search",
                                    "ask",
                                    "embedding",
                                    "rewrite",
                                    "rerank",
                                    "ingest",
                                ],
                            )
                        ),
                        name="ledger_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("amount__isnull", True), ("currency", "")),
                            models.Q(
                                ("amount__gte", 0),
                                models.Q(("currency", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="ledger_money_has_a_currency",
                    ),
                ],
            },
        ),
    ]
