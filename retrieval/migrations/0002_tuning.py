from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0001_initial"),
        ("knowledge", "0010_memory"),
    ]

    operations = []
