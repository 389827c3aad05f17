"""Documents of which an older version kept no text."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0011_routing")]

    operations = [
        migrations.AlterField(
            model_name="document",
            name="text_sha256",
            field=models.CharField(
                blank=True, max_length=64, verbose_name="SHA-256 of the text"
            ),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("text", ""),
                    models.Q(("text_sha256", ""), _negated=True),
                    _connector="OR",
                ),
                name="document_text_has_hash",
            ),
        ),
    ]
