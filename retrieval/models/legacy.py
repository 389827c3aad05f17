"""What an import of an older version's content leaves, beside the content itself."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from retrieval.models.receipt import Receipt


class FormerReceipt(models.Model):
    """The id that a receipt had where it was issued first.

    The receipt was signed here when it was brought in; by this id it opens too.
    """

    former_id = models.CharField(_("former id"), max_length=80, unique=True)
    receipt = models.OneToOneField(
        Receipt, on_delete=models.PROTECT, related_name="former"
    )

    class Meta:
        """Written by the import alone."""

        verbose_name = _("former id of a receipt")
        verbose_name_plural = _("former ids of receipts")
        default_permissions = ()

    def __str__(self) -> str:
        """Return the former id."""
        return self.former_id
