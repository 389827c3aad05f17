"""Departments: who pays for what is searched and what is kept searchable."""

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _


class Department(models.Model):
    """A part of the organisation that use is charged to (S3-BIL-01, R24).

    A price of null is no price: use is counted in units, and no money is shown.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    search_price = models.DecimalField(
        _("price of a search"),
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("Left empty, searches are counted and cost nothing."),
    )
    token_price = models.DecimalField(
        _("price of 1,000 tokens"),
        max_digits=12,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_(
            "Tokens that are embedded, reranked or rewritten. Left empty, they are "
            "counted and cost nothing."
        ),
    )
    currency = models.CharField(
        _("currency"),
        max_length=3,
        default="EUR",
        validators=[
            RegexValidator(
                r"^[A-Z]{3}\Z", _("Write the currency's three letters, such as EUR.")
            )
        ],
        help_text=_("Its three letters, such as EUR."),
    )

    class Meta:
        """By name."""

        verbose_name = _("department")
        verbose_name_plural = _("departments")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(search_price__gte=0)
                | models.Q(search_price__isnull=True),
                name="department_search_price_not_negative",
            ),
            models.CheckConstraint(
                condition=models.Q(token_price__gte=0)
                | models.Q(token_price__isnull=True),
                name="department_token_price_not_negative",
            ),
        ]

    def __str__(self) -> str:
        """Return the name."""
        return self.name
