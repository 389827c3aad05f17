"""Callers of wordings that were kept by name become keyed hashes."""

from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.utils.crypto import salted_hmac


def hash_callers(apps: Apps, schema_editor: Any) -> None:
    """Put the keyed hash of each caller in its place."""
    wordings: Any = apps.get_model("approvals", "Wording")._default_manager
    # A hash holds no colon, so that this may run again.
    named = wordings.filter(caller__contains=":").order_by()
    for name in list(named.values_list("caller", flat=True).distinct()):
        digest = salted_hmac("approvals.callers", name, algorithm="sha256").hexdigest()
        wordings.filter(caller=name).update(caller=digest)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0004_answers_told_later")]

    operations = [
        migrations.RunPython(hash_callers, migrations.RunPython.noop, elidable=True),
    ]
