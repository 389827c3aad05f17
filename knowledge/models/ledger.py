"""What was used, and who pays for it."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from knowledge.models.department import Department


class Kind(models.TextChoices):
    """What was used. Searches and asks are counted one by one, the rest in tokens."""

    SEARCH = "search", _("searches")
    ASK = "ask", _("questions")
    EMBEDDING = "embedding", _("embedding")
    REWRITE = "rewrite", _("rewriting")
    RERANK = "rerank", _("reranking")
    INGEST = "ingest", _("indexing")


COUNTED = (Kind.SEARCH, Kind.ASK)
# Tokens in a billing unit; a search or an ask is one by itself.
UNIT_TOKENS = 1000


class LedgerEntry(models.Model):
    """One use, charged to the department of that moment (R24).

    `units` are searches or tokens. `amount` is null where no price was set then; a
    price that changes later changes no entry. Nothing in the product changes or deletes
    a row, and none names a person.
    """

    at = models.DateTimeField(_("at"), auto_now_add=True)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    units = models.PositiveBigIntegerField(_("units"))
    department = models.ForeignKey(
        Department,
        verbose_name=_("department"),
        on_delete=models.PROTECT,
        null=True,
        related_name="entries",
        db_index=False,
    )
    amount = models.DecimalField(
        _("amount"), max_digits=20, decimal_places=9, null=True
    )
    currency = models.CharField(_("currency"), max_length=3, blank=True)

    class Meta:
        """Read by month and department."""

        verbose_name = _("ledger entry")
        verbose_name_plural = _("ledger")
        ordering = ["-at", "-pk"]
        default_permissions = ("view",)
        indexes = [models.Index(fields=["at"], name="ledger_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=Kind.values), name="ledger_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(amount__isnull=True, currency="")
                | (models.Q(amount__gte=0) & ~models.Q(currency="")),
                name="ledger_money_has_a_currency",
            ),
        ]

    def __str__(self) -> str:
        """Return what was used."""
        return f"{self.units} {self.kind}"
