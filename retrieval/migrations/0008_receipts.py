"""Receipts, which the database lets nobody change or delete."""

import django.db.models.deletion
from django.db import migrations, models

# A setting that only a database for tests has lets tables be emptied as a whole.
APPEND_ONLY = """
CREATE FUNCTION retrieval_refuse_receipt_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' AND current_setting('strata.may_empty', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'Receipts are never changed or deleted.'
    USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER receipt_is_never_changed
BEFORE UPDATE OR DELETE ON retrieval_receipt
FOR EACH ROW EXECUTE FUNCTION retrieval_refuse_receipt_change();
CREATE TRIGGER receipt_is_never_emptied
BEFORE TRUNCATE ON retrieval_receipt
FOR EACH STATEMENT EXECUTE FUNCTION retrieval_refuse_receipt_change();

-- The one change of words: a purge takes them away, salt and all.
CREATE TRIGGER receipt_words_are_never_deleted
BEFORE DELETE ON retrieval_receiptwords
FOR EACH ROW EXECUTE FUNCTION retrieval_refuse_receipt_change();
CREATE TRIGGER receipt_words_are_only_removed
BEFORE UPDATE ON retrieval_receiptwords
FOR EACH ROW WHEN (
    (NEW.id, NEW.receipt_id, NEW.part) IS DISTINCT FROM (OLD.id, OLD.receipt_id, OLD.part)
    OR OLD.text IS NULL OR NEW.text IS NOT NULL OR NEW.salt IS NOT NULL
) EXECUTE FUNCTION retrieval_refuse_receipt_change();
CREATE TRIGGER receipt_words_are_never_emptied
BEFORE TRUNCATE ON retrieval_receiptwords
FOR EACH STATEMENT EXECUTE FUNCTION retrieval_refuse_receipt_change();

-- Where a source stands today may change, but only as the source does: what has lost its
-- source or its knowledge base gets no other.
CREATE TRIGGER receipt_reads_are_never_deleted
BEFORE DELETE ON retrieval_receiptread
FOR EACH ROW EXECUTE FUNCTION retrieval_refuse_receipt_change();
CREATE TRIGGER receipt_reads_follow_their_source
BEFORE UPDATE ON retrieval_receiptread
FOR EACH ROW WHEN (
    (NEW.id, NEW.receipt_id, NEW.position, NEW.revision, NEW.removed_at)
    IS DISTINCT FROM (OLD.id, OLD.receipt_id, OLD.position, OLD.revision, OLD.removed_at)
    OR (NEW.source_id IS NOT NULL AND NEW.source_id IS DISTINCT FROM OLD.source_id)
    OR (OLD.source_id IS NULL AND NEW.knowledge_base_id IS NOT NULL
        AND NEW.knowledge_base_id IS DISTINCT FROM OLD.knowledge_base_id)
) EXECUTE FUNCTION retrieval_refuse_receipt_change();
CREATE TRIGGER receipt_reads_are_never_emptied
BEFORE TRUNCATE ON retrieval_receiptread
FOR EACH STATEMENT EXECUTE FUNCTION retrieval_refuse_receipt_change();
-- By name the last of them, so that the check above has passed.
CREATE TRIGGER receipt_reads_say_when_removed
BEFORE UPDATE OF source_id ON retrieval_receiptread FOR EACH ROW
WHEN (OLD.source_id IS NOT NULL AND NEW.source_id IS NULL)
EXECUTE FUNCTION retrieval_say_when_removed();
"""
UNDO_APPEND_ONLY = """
DROP TRIGGER receipt_reads_say_when_removed ON retrieval_receiptread;
DROP TRIGGER receipt_reads_are_never_emptied ON retrieval_receiptread;
DROP TRIGGER receipt_reads_follow_their_source ON retrieval_receiptread;
DROP TRIGGER receipt_reads_are_never_deleted ON retrieval_receiptread;
DROP TRIGGER receipt_words_are_never_emptied ON retrieval_receiptwords;
DROP TRIGGER receipt_words_are_only_removed ON retrieval_receiptwords;
DROP TRIGGER receipt_words_are_never_deleted ON retrieval_receiptwords;
DROP TRIGGER receipt_is_never_emptied ON retrieval_receipt;
DROP TRIGGER receipt_is_never_changed ON retrieval_receipt;
DROP FUNCTION retrieval_refuse_receipt_change();
"""
# A source that moves takes its rows along to the other knowledge base, in the same
# statement, so that receipts are opened by whoever may read the source.
FOLLOW = """
ALTER TABLE retrieval_receiptread ADD CONSTRAINT receipt_read_source_belongs
FOREIGN KEY (source_id, knowledge_base_id)
REFERENCES knowledge_source (id, knowledge_base_id) ON UPDATE CASCADE
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0011_routing"),
        ("retrieval", "0007_interactions"),
    ]

    operations = [
        migrations.CreateModel(
            name="Receipt",
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
                    "number",
                    models.PositiveBigIntegerField(unique=True, verbose_name="number"),
                ),
                (
                    "public_id",
                    models.CharField(max_length=40, unique=True, verbose_name="id"),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("draft", "checked draft"),
                            ("extractive", "sentences word for word"),
                        ],
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                (
                    "interaction",
                    models.UUIDField(
                        db_index=True, null=True, verbose_name="interaction"
                    ),
                ),
                ("signed", models.TextField(verbose_name="signed part")),
                (
                    "sha256",
                    models.CharField(
                        max_length=64, verbose_name="SHA-256 of the signed part"
                    ),
                ),
                (
                    "signature",
                    models.CharField(max_length=128, verbose_name="signature"),
                ),
                ("key_id", models.CharField(max_length=64, verbose_name="key")),
                (
                    "issued_at",
                    models.DateTimeField(db_index=True, verbose_name="issued"),
                ),
            ],
            options={
                "verbose_name": "receipt",
                "verbose_name_plural": "receipts",
                "ordering": ["-number"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("number__gt", 0)),
                        name="receipt_number_positive",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReceiptRead",
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
                ("position", models.PositiveSmallIntegerField()),
                ("revision", models.BigIntegerField(verbose_name="revision")),
                ("removed_at", models.DateTimeField(null=True, verbose_name="removed")),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="knowledge.knowledgebase",
                    ),
                ),
                (
                    "receipt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reads",
                        to="retrieval.receipt",
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
            ],
            options={
                "verbose_name": "passage of a receipt",
                "verbose_name_plural": "passages of receipts",
                "ordering": ["receipt", "position"],
                "indexes": [
                    models.Index(fields=["revision"], name="receipt_by_revision")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("receipt", "position"), name="receipt_read_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReceiptWords",
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
                ("part", models.CharField(max_length=40, verbose_name="part")),
                ("salt", models.CharField(max_length=32, null=True)),
                ("text", models.TextField(null=True, verbose_name="text")),
                (
                    "removed_at",
                    models.DateTimeField(null=True, verbose_name="words removed"),
                ),
                ("removal_key", models.CharField(blank=True, max_length=64)),
                ("removal_signature", models.CharField(blank=True, max_length=128)),
                (
                    "receipt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="words",
                        to="retrieval.receipt",
                    ),
                ),
            ],
            options={
                "verbose_name": "words of a receipt",
                "verbose_name_plural": "words of receipts",
                "ordering": ["receipt", "part"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("receipt", "part"), name="receipt_part_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("removal_key", ""),
                                ("removal_signature", ""),
                                ("removed_at__isnull", True),
                                ("salt__isnull", False),
                                ("text__isnull", False),
                            ),
                            models.Q(
                                ("removed_at__isnull", False),
                                ("salt__isnull", True),
                                ("text__isnull", True),
                                models.Q(("removal_key", ""), _negated=True),
                                models.Q(("removal_signature", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="receipt_words_or_removal",
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            FOLLOW,
            "ALTER TABLE retrieval_receiptread "
            "DROP CONSTRAINT receipt_read_source_belongs",
        ),
        migrations.RunSQL(APPEND_ONLY, UNDO_APPEND_ONLY),
    ]
