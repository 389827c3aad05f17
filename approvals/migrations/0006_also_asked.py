"""Other wordings by which an approved answer is found."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0005_hashed_callers"),
    ]

    operations = [
        migrations.AddField(
            model_name="pendingquestion",
            name="also_asked",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=300),
                blank=True,
                default=list,
                size=None,
                verbose_name="other wordings",
            ),
        ),
    ]
