from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0005_question_sets"),
    ]

    operations = []
