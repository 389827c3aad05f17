from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0003_search_log"),
    ]

    operations = []
