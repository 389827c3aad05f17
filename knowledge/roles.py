"""The ready roles, as groups: what each may do, wherever its members are granted.

A role holds verbs; which knowledge bases they apply to is decided by grants and denies
alone (R22).
"""

from typing import Any

from django.apps import apps as installed_apps
from django.contrib.auth.management import create_permissions
from django.contrib.contenttypes.management import create_contenttypes

VIEW = [
    "view_knowledgebase",
    "view_layer",
    "view_source",
    "view_document",
    "view_passage",
    "view_ingestrun",
    "view_registerentry",
    "view_neverrule",
    "view_questionset",
    "view_question",
    "view_setrun",
    "view_receipt",
    "view_impactreport",
]
OPERATE = [
    *VIEW,
    "switch_source",
    "reindex_source",
    "run_questionset",
    "view_searchlab",
    "view_tuningrecord",
    "view_feedback",
    "view_learneditem",
]
EDIT = [
    *OPERATE,
    "add_source",
    "change_source",
    "delete_source",
    "add_registerentry",
    "change_registerentry",
    "delete_registerentry",
    "add_questionset",
    "change_questionset",
    "delete_questionset",
    "add_question",
    "change_question",
    "delete_question",
    "change_learneditem",
]
# How oneself is told of pending questions.
CONTACTS = [f"{act}_contact" for act in ("view", "add", "change", "delete")]
ADMINISTER = [
    *EDIT,
    "add_knowledgebase",
    "change_knowledgebase",
    "delete_knowledgebase",
    "grant_knowledgebase",
    "add_layer",
    "change_layer",
    "delete_layer",
    "add_neverrule",
    "change_neverrule",
    "delete_neverrule",
    "view_auditentry",
    "view_apitoken",
    "add_apitoken",
    "change_apitoken",
    "view_agentclient",
    "add_agentclient",
    "change_agentclient",
    "purge_source",
    "view_embeddingspace",
    "view_calibration",
    "change_tuningrecord",
    "view_department",
    "add_department",
    "change_department",
    "delete_department",
    "view_ledgerentry",
    "view_pendingquestion",
    "answer_pendingquestion",
    "approve_pendingquestion",
    "view_subscriber",
    "change_subscriber",
    *CONTACTS,
    "reset_learning",
]
# Reads what was searched and what it cost; of the passages in it, what they may read.
AUDIT = [
    "view_searchlog",
    "export_searchlog",
    "view_auditentry",
    "view_department",
    "view_ledgerentry",
    "view_receipt",
    "view_feedback",
    "view_learneditem",
]
# Settles what the documents did not answer, by way of its own verbs.
APPROVE = [
    *VIEW,
    "view_pendingquestion",
    "answer_pendingquestion",
    "approve_pendingquestion",
    *CONTACTS,
]
# The apps whose permissions the roles hold; no codename is in two of them.
APPS = ("knowledge", "retrieval", "approvals")
# Group name -> codenames.
ROLES = {
    "Viewer": VIEW,
    "Operator": OPERATE,
    "Editor": EDIT,
    "Approver": APPROVE,
    "Administrator": ADMINISTER,
    "Auditor": AUDIT,
}


def ensure_roles(**_kwargs: Any) -> None:
    """Make the role groups and the group of everyone; does nothing when they stand.

    Runs after every migration. A role is given what it lacks and is never trimmed, so
    an operator's own additions survive.
    """
    for label in APPS:
        app = installed_apps.get_app_config(label)
        if app.models_module is None:
            return
        create_contenttypes(app, verbosity=0)
        create_permissions(app, verbosity=0)
    from django.contrib.auth.models import Group, Permission

    from knowledge.permissions import EVERYONE

    Group.objects.get_or_create(name=EVERYONE)
    permissions = {
        permission.codename: permission
        for permission in Permission.objects.filter(content_type__app_label__in=APPS)
    }
    for name, codenames in ROLES.items():
        group, _created = Group.objects.get_or_create(name=name)
        group.permissions.add(
            *(
                permissions[codename]
                for codename in codenames
                if codename in permissions
            )
        )
