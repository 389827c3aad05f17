"""The source register: decided candidates, and rules of what may never enter."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0004_search_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="NeverRule",
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
                            ("name", "by path or file name"),
                            ("format", "by format"),
                            ("content", "by words in it"),
                        ],
                        max_length=10,
                        verbose_name="recognised",
                    ),
                ),
                (
                    "pattern",
                    models.CharField(
                        help_text="A name such as *.pst or contacts/*, a format such as csv, or words such as purchase price. Capitals and line breaks make no difference.",
                        max_length=200,
                        verbose_name="pattern",
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        help_text="A sentence. Whoever uploads such a file reads it.",
                        verbose_name="reason",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(auto_now_add=True, verbose_name="added"),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="added by",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="never_rules",
                        to="knowledge.knowledgebase",
                        verbose_name="knowledge base",
                    ),
                ),
            ],
            options={
                "verbose_name": "never-rule",
                "verbose_name_plural": "never-rules",
                "ordering": ["-created_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("knowledge_base", "kind", "pattern"),
                        name="never_rule_once",
                        violation_error_message="This knowledge base already has this rule.",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("knowledge_base__isnull", True)),
                        fields=("kind", "pattern"),
                        name="never_rule_for_all_once",
                        violation_error_message="This rule already holds for all.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["name", "format", "content"])),
                        name="never_rule_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "format"), _negated=True),
                            (
                                "pattern__in",
                                [
                                    "text",
                                    "markdown",
                                    "log",
                                    "csv",
                                    "json",
                                    "docx",
                                    "pdf",
                                ],
                            ),
                            _connector="OR",
                        ),
                        name="never_rule_format_known",
                        violation_error_message="There is no such format.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("pattern__regex", "\\S")),
                        name="never_rule_has_pattern",
                        violation_error_message="Give a pattern.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason__regex", "\\S")),
                        name="never_rule_has_reason",
                        violation_error_message="Give a reason.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RegisterEntry",
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
                    "title",
                    models.CharField(
                        help_text="In words, such as: price list of our suppliers.",
                        max_length=300,
                        verbose_name="what it is",
                    ),
                ),
                (
                    "location",
                    models.CharField(
                        blank=True,
                        help_text="A file such as prices.csv or sales/prices.csv, a folder such as sales, or an address. Where it is rejected, it is stopped at every upload.",
                        max_length=500,
                        verbose_name="path or file name",
                    ),
                ),
                (
                    "decision",
                    models.CharField(
                        choices=[("accepted", "accepted"), ("rejected", "rejected")],
                        max_length=10,
                        verbose_name="decision",
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        help_text="A sentence. Whoever uploads what is rejected reads it.",
                        verbose_name="reason",
                    ),
                ),
                (
                    "decided_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        editable=False,
                        verbose_name="decided",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="decided by",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="register",
                        to="knowledge.knowledgebase",
                        verbose_name="knowledge base",
                    ),
                ),
            ],
            options={
                "verbose_name": "register entry",
                "verbose_name_plural": "register entries",
                "ordering": ["-decided_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("location", ""), _negated=True),
                        fields=("knowledge_base", "location"),
                        name="register_entry_location_once",
                        violation_error_message="The register of this knowledge base already has this place.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("decision__in", ["accepted", "rejected"])),
                        name="register_entry_decision_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason__regex", "\\S")),
                        name="register_entry_has_reason",
                        violation_error_message="Give a reason.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("title__regex", "\\S")),
                        name="register_entry_says_what",
                        violation_error_message="Say what it is.",
                    ),
                ],
            },
        ),
    ]
