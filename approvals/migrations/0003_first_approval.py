"""Since when a question has had an approved answer, however often that was changed."""

from django.db import migrations, models

# What was changed since the first approval has its source since then.
FILL = """
UPDATE approvals_pendingquestion AS question
SET first_approved_at = LEAST(
    question.approved_at,
    (SELECT created_at FROM knowledge_source WHERE id = question.source_id)
)
WHERE question.approved_at IS NOT NULL OR question.source_id IS NOT NULL
"""


class Migration(migrations.Migration):
    """Add the moment, and fill it from what is known."""

    dependencies = [("approvals", "0002_notifications")]

    operations = [
        migrations.AddField(
            model_name="pendingquestion",
            name="first_approved_at",
            field=models.DateTimeField(
                editable=False, null=True, verbose_name="first approved"
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
