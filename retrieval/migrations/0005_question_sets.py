from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0004_turns"),
    ]

    operations = []
