"""The scales that results are judged on, with their history."""

from django.contrib import admin
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from knowledge.scoping import AuditedAdmin
from retrieval.models import Calibration


@admin.register(Calibration)
class CalibrationAdmin(AuditedAdmin[Calibration]):
    """Fits, newest first; the newest of a model and basis holds (D12)."""

    actions = None
    list_display = (
        "model_id",
        "basis",
        "holds",
        "medium",
        "high",
        "false_refusals",
        "refusals",
        "fitted_by",
        "fitted_at",
    )
    list_filter = ("basis",)
    list_select_related = ("fitted_by",)
    fields = (
        "model_id",
        "basis",
        "holds",
        "medium",
        "high",
        "offsets",
        "crossing",
        "answerable",
        "unanswerable",
        "false_refusals",
        "refusals",
        "sources",
        "fitted_by",
        "fitted_at",
    )
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A fit comes from questions, by `manage.py calibrate`."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Calibration | None = None
    ) -> bool:
        """Nobody changes a record."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Calibration | None = None
    ) -> bool:
        """Nobody deletes a record."""
        return False

    @admin.display(description=gettext_lazy("holds"), boolean=True)
    def holds(self, obj: Calibration) -> bool:
        """Whether it is the newest of its model and basis."""
        return Calibration.objects.of(obj.scorer, obj.basis).first() == obj

    @admin.display(description=gettext_lazy("medium mark at"))
    def medium(self, obj: Calibration) -> str:
        """The raw score at the medium mark."""
        return number_format(obj.scale["medium"], decimal_pos=4)

    @admin.display(description=gettext_lazy("high mark at"))
    def high(self, obj: Calibration) -> str:
        """The raw score at the high mark."""
        return number_format(obj.scale["high"], decimal_pos=4)

    @admin.display(description=gettext_lazy("added by the query's language"))
    def offsets(self, obj: Calibration) -> str:
        """What is added to a raw score before it is compared."""
        shown = (
            f"{language} {number_format(offset, decimal_pos=4)}"
            for language, offset in obj.scale["offsets"].items()
        )
        return " · ".join(shown) or _("nothing")

    @admin.display(description=gettext_lazy("added between languages"))
    def crossing(self, obj: Calibration) -> str:
        """What is added where the passage is in another language."""
        return number_format(obj.scale["crossing"], decimal_pos=4)

    @admin.display(description=gettext_lazy("false refusals, held out"))
    def false_refusals(self, obj: Calibration) -> str:
        """Of answerable questions that it was not fitted on."""
        return held_out_share(obj, "false_refusal_rate")

    @admin.display(description=gettext_lazy("right refusals, held out"))
    def refusals(self, obj: Calibration) -> str:
        """Of unanswerable questions that it was not fitted on."""
        return held_out_share(obj, "recall")


def held_out_share(row: Calibration, name: str) -> str:
    """Return a share in per cent; a dash where too few questions were held out."""
    shares = row.measured.get("held_out")
    if not shares:
        return "–"
    return f"{number_format(100 * shares[name], decimal_pos=1)} %"
