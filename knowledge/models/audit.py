"""Who did what, written in the transaction that did it."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from knowledge.models.person import User


class AuditEntry(models.Model):
    """One act. Nothing in the product changes or deletes a row.

    The target is named by label as well as by id, and the knowledge base by its plain
    id, so that an entry outlives both.
    """

    at = models.DateTimeField(_("at"), auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("actor"),
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    actor_label = models.CharField(_("actor's name"), max_length=200)
    verb = models.CharField(_("verb"), max_length=40)
    target_type = models.CharField(_("kind of target"), max_length=60)
    target_id = models.BigIntegerField(_("target's id"))
    target_label = models.CharField(_("target"), max_length=300)
    knowledge_base_id = models.BigIntegerField(
        _("knowledge base's id"), null=True, db_index=True
    )
    detail = models.JSONField(_("detail"), default=dict)

    class Meta:
        """Newest first."""

        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(
                fields=["target_type", "target_id", "-at"], name="audit_by_target"
            )
        ]

    def __str__(self) -> str:
        """Return the act as a sentence without its time."""
        return f"{self.actor_label} {self.verb} {self.target_label}"


def record(
    actor: "User | None", verb: str, target: models.Model, **detail: object
) -> AuditEntry:
    """Write one entry; call it inside the transaction of the act.

    `actor` None is the system itself. `detail` must be JSON. The knowledge base is
    taken from the target.
    """
    if target._meta.model_name == "knowledgebase":
        knowledge_base_id = target.pk
    else:
        knowledge_base_id = getattr(target, "knowledge_base_id", None)
    return AuditEntry.objects.create(
        actor=actor,
        actor_label=str(actor)[:200] if actor is not None else "Strata Portal",
        verb=verb,
        target_type=target._meta.model_name or "",
        target_id=target.pk,
        target_label=str(target)[:300],
        knowledge_base_id=knowledge_base_id,
        detail=detail,
    )
