"""New passages go into the indexes at once, not into a list that every search reads."""

from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models

SET = """
DO $$
DECLARE
    held regclass;
BEGIN
    FOR held IN
        SELECT i.indexrelid::regclass
        FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_am a ON a.oid = c.relam
        WHERE a.amname = 'gin' AND i.indrelid = 'knowledge_passage'::regclass
    LOOP
        EXECUTE format('ALTER INDEX %%s SET (fastupdate = %s)', held);
        PERFORM gin_clean_pending_list(held);
    END LOOP;
END
$$
"""


class Migration(migrations.Migration):
    """The indexes stay as they are; what waits in their lists is put in."""

    dependencies = [("knowledge", "0012_legacy")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(SET % "off", SET % "on")],
            state_operations=[
                migrations.RemoveIndex("passage", "passage_search_vector"),
                migrations.RemoveIndex("passage", "passage_codes"),
                migrations.RemoveIndex("passage", "passage_meta"),
                migrations.AddIndex(
                    "passage",
                    GinIndex(
                        models.Func(
                            models.F("knowledge_base"),
                            template="ARRAY[%(expressions)s]",
                        ),
                        models.F("search_vector"),
                        name="passage_search_vector",
                        fastupdate=False,
                    ),
                ),
                migrations.AddIndex(
                    "passage",
                    GinIndex(fields=["codes"], name="passage_codes", fastupdate=False),
                ),
                migrations.AddIndex(
                    "passage",
                    GinIndex(
                        fields=["metadata"],
                        opclasses=["jsonb_path_ops"],
                        name="passage_meta",
                        fastupdate=False,
                    ),
                ),
            ],
        )
    ]
