"""What the keyword branch needs to know of layers and sources."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0005_source_register"),
    ]

    operations = [
        migrations.AddField(
            model_name="layer",
            name="matches_without_accents",
            field=models.BooleanField(
                default=False,
                help_text="A search for regulamin pozyczek then finds regulamin pożyczek here, and says so. Not for Vietnamese, where other marks make another word.",
                verbose_name="matches without accents",
            ),
        ),
        # 0: the passages' terms are of an older make; the worker writes them anew.
        migrations.AddField(
            model_name="source",
            name="terms_version",
            field=models.PositiveSmallIntegerField(
                db_index=True, default=0, editable=False
            ),
        ),
        migrations.AddConstraint(
            model_name="layer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("matches_without_accents", False),
                    models.Q(("languages__contains", ["vi"]), _negated=True),
                    _connector="OR",
                ),
                name="layer_keeps_vietnamese_marks",
                violation_error_message="A layer with Vietnamese among its languages cannot match without accents: other marks make another word. Take Vietnamese out of its languages, or leave the option off.",
            ),
        ),
    ]
