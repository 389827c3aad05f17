import django.contrib.postgres.fields
from django.db import migrations, models

# Whatever a search shows of a layer, knowledge base or source, a change of it raises the
# knowledge base's version, whoever makes it: results are cached by that version.
TOUCH = """
CREATE FUNCTION strata_touch_knowledge_base() RETURNS trigger AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE knowledge_knowledgebase SET version = version + 1
        WHERE id = OLD.knowledge_base_id;
    END IF;
    IF TG_OP = 'INSERT' OR (
        TG_OP = 'UPDATE' AND NEW.knowledge_base_id <> OLD.knowledge_base_id
    ) THEN
        UPDATE knowledge_knowledgebase SET version = version + 1
        WHERE id = NEW.knowledge_base_id;
    END IF;
    RETURN NULL;
END
$$ LANGUAGE plpgsql;

CREATE TRIGGER layer_touches_knowledge_base
AFTER INSERT OR UPDATE OR DELETE ON knowledge_layer
FOR EACH ROW EXECUTE FUNCTION strata_touch_knowledge_base();

CREATE TRIGGER source_change_touches_knowledge_base
AFTER UPDATE ON knowledge_source
FOR EACH ROW WHEN (
    (OLD.enabled, OLD.expires_at, OLD.path, OLD.layer_id, OLD.knowledge_base_id)
    IS DISTINCT FROM
    (NEW.enabled, NEW.expires_at, NEW.path, NEW.layer_id, NEW.knowledge_base_id)
) EXECUTE FUNCTION strata_touch_knowledge_base();

CREATE TRIGGER source_removal_touches_knowledge_base
AFTER DELETE ON knowledge_source
FOR EACH ROW EXECUTE FUNCTION strata_touch_knowledge_base();

CREATE FUNCTION strata_raise_version() RETURNS trigger AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END
$$ LANGUAGE plpgsql;

CREATE TRIGGER knowledge_base_raises_version
BEFORE UPDATE OF slug, name ON knowledge_knowledgebase
FOR EACH ROW WHEN ((OLD.slug, OLD.name) IS DISTINCT FROM (NEW.slug, NEW.name))
EXECUTE FUNCTION strata_raise_version();
"""
FORGET = """
DROP TRIGGER knowledge_base_raises_version ON knowledge_knowledgebase;
DROP FUNCTION strata_raise_version();
DROP TRIGGER source_removal_touches_knowledge_base ON knowledge_source;
DROP TRIGGER source_change_touches_knowledge_base ON knowledge_source;
DROP TRIGGER layer_touches_knowledge_base ON knowledge_layer;
DROP FUNCTION strata_touch_knowledge_base();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0010_memory"),
    ]

    operations = [
        migrations.AddField(
            model_name="layer",
            name="routing_patterns",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=200),
                blank=True,
                default=list,
                help_text="Searches that hold one of these words go to this layer first.",
                size=None,
                verbose_name="routing patterns",
            ),
        ),
        migrations.RunSQL(TOUCH, FORGET),
    ]
