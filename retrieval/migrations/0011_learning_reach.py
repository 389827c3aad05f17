"""Ratings follow their source, and a version rises only where routing changes."""

from django.db import migrations, models

# What an affinity counts for routing, before and after. Pinning may have one of an older
# rule applied, so it counts as a change.
TOUCH = """
CREATE OR REPLACE FUNCTION strata_touch_of_affinity() RETURNS trigger AS $$
DECLARE
    changed retrieval_learneditem := coalesce(NEW, OLD);
    was_on boolean := TG_OP <> 'INSERT' AND OLD.state = 'on';
    is_on boolean := TG_OP <> 'DELETE' AND NEW.state = 'on';
BEGIN
    IF changed.kind <> 'affinity' OR NOT (was_on OR is_on) THEN
        RETURN NULL;
    END IF;
    IF was_on AND is_on
        AND (OLD.seen, OLD.rule, OLD.is_pinned) = (NEW.seen, NEW.rule, NEW.is_pinned)
    THEN
        RETURN NULL;
    END IF;
    UPDATE knowledge_knowledgebase SET version = version + 1
    WHERE id = ANY(changed.knowledge_base_ids);
    RETURN NULL;
END
$$ LANGUAGE plpgsql;
"""
BEFORE = """
CREATE OR REPLACE FUNCTION strata_touch_of_affinity() RETURNS trigger AS $$
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
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0010_impact")]

    operations = [
        migrations.RemoveIndex("passagefeedback", "feedback_by_revision"),
        migrations.RemoveField("passagefeedback", "knowledge_base"),
        migrations.AlterField(
            "learneditem",
            "rule",
            models.PositiveSmallIntegerField(default=2, verbose_name="rule"),
        ),
        migrations.RunSQL(TOUCH, BEFORE),
    ]
