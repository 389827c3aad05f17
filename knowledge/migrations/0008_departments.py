from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0007_sections"),
    ]

    operations = []
