from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0005_source_register"),
    ]

    operations = []
