"""Departments with their prices, and what the ledger adds up to."""

import csv
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from knowledge.admin.parts import deletion_of, is_key
from knowledge.admin.records import RecordAdmin
from knowledge.billing import (
    Bill,
    added,
    bills_of_department,
    bills_of_month,
    months,
    this_month,
)
from knowledge.models import Department, LedgerEntry
from knowledge.models.audit import record
from knowledge.models.ledger import COUNTED, Kind
from knowledge.scoping import ScopedAdmin, actor_of

PRICES = ("search_price", "token_price", "currency")


@admin.register(Department)
class DepartmentAdmin(ScopedAdmin[Department]):
    """Departments: who belongs to one is said on the person's page."""

    list_display = ("name", "people_in_it", "search_price", "token_price", "currency")
    search_fields = ("name",)
    fields = ("name", *PRICES)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Department]:
        """Add what the list shows."""
        return super().get_queryset(request).annotate(number=models.Count("people"))

    @admin.display(description=gettext_lazy("people"), ordering="number")
    def people_in_it(self, obj: Any) -> int:
        """How many people belong to it."""
        return int(obj.number)

    def save_model(
        self,
        request: HttpRequest,
        obj: Department,
        form: Any,
        change: bool,  # noqa: FBT001
    ) -> None:
        """Save with the audit entry, which keeps the prices that hold from now on."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(
                actor_of(request),
                "changed" if change else "created",
                obj,
                **{name: str(getattr(obj, name) or "") for name in PRICES},
            )

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """Refuse, in a sentence, to delete a department that was charged."""
        counts, missing, _none = deletion_of(self, request, objs)
        in_the_way = [
            ngettext(
                "%(department)s was charged %(count)s time, and the ledger is kept.",
                "%(department)s was charged %(count)s times, and the ledger is kept.",
                count,
            )
            % {"department": obj, "count": count}
            for obj in objs
            if (count := obj.entries.count())
        ]
        return [str(obj) for obj in objs], counts, missing, in_the_way


@admin.register(LedgerEntry)
class LedgerAdmin(RecordAdmin[LedgerEntry]):
    """The ledger, added up: a month by departments, or a department by months."""

    def get_urls(self) -> list[URLPattern]:
        """Offer the sums alone; a single entry tells nothing."""
        return [
            path(
                "",
                self.admin_site.admin_view(self.changelist_view),
                name="knowledge_ledgerentry_changelist",
            ),
            path(
                "csv/",
                self.admin_site.admin_view(self.csv_view),
                name="knowledge_ledgerentry_csv",
            ),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the sums."""
        self.refuse_strangers(request)
        department, month = department_of(request), month_of(request)
        found = sums(department, month)
        return TemplateResponse(
            request,
            "admin/knowledge/ledgerentry/sums.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Ledger"),
                "opts": self.opts,
                "kinds": [(kind.label, kind in COUNTED) for kind in Kind],
                "rows": [row_of(bill) for bill in found],
                "total": row_of_all(found),
                "month": month,
                "months": months(),
                "department": department,
                "departments": Department.objects.all(),
                **(extra_context or {}),
            },
        )

    def csv_view(self, request: HttpRequest) -> HttpResponse:
        """Give the same sums as a table."""
        self.refuse_strangers(request)
        department, month = department_of(request), month_of(request)
        response = HttpResponse(
            content_type="text/csv; charset=utf-8",
            headers={
                "Content-Disposition": 'attachment; filename="ledger.csv"',
                "Cache-Control": "no-store",
            },
        )
        table = csv.writer(response)
        table.writerow(
            [
                *("month", "department", "kind", "entries", "units"),
                *("billing_units", "amount"),
            ]
        )
        for bill in sums(department, month):
            table.writerows(lines_of(bill))
        return response

    def refuse_strangers(self, request: HttpRequest) -> None:
        """Raise PermissionDenied for who may not read the ledger."""
        if not self.has_view_permission(request):
            raise PermissionDenied


def sums(department: Department | None, month: datetime) -> list[Bill]:
    """Return the bills that a page shows."""
    if department is not None:
        return bills_of_department(department)
    return bills_of_month(month)


def department_of(request: HttpRequest) -> Department | None:
    """Return the department that the address names; raises Http404 for none."""
    key = request.GET.get("department", "")
    if not key:
        return None
    found = Department.objects.filter(pk=int(key)).first() if is_key(key) else None
    if found is None:
        raise Http404(_("Not found."))
    return found


def month_of(request: HttpRequest) -> datetime:
    """Return the month that the address names as 2026-05, else the current one."""
    named = request.GET.get("month", "")
    if not named:
        return this_month()
    try:
        month = datetime.strptime(named, "%Y-%m")  # noqa: DTZ007 - made aware below
        return timezone.make_aware(month)
    except (ValueError, OverflowError) as error:
        raise Http404(_("Not found.")) from error


def row_of(bill: Bill) -> dict[str, Any]:
    """Return a bill as the page's table takes it: a figure for each kind."""
    return {
        "bill": bill,
        "units": [
            used.units if (used := bill.used.get(kind)) is not None else None
            for kind in Kind.values
        ],
        "billed": bill.billed,
        "amounts": bill.amounts.items(),
    }


def row_of_all(found: Sequence[Bill]) -> dict[str, Any]:
    """Return the sums of all rows."""
    return {
        "units": [
            sum(bill.used[kind].units for bill in found if kind in bill.used)
            for kind in Kind.values
        ],
        "billed": sum(bill.billed for bill in found),
        "amounts": added(bill.amounts for bill in found).items(),
    }


def lines_of(bill: Bill) -> list[list[object]]:
    """Return a bill as lines of a table, one for each kind."""
    name = str(bill.department) if bill.department is not None else ""
    # A table program takes a cell that begins so for a formula.
    name = f"'{name}" if name.startswith(("=", "+", "-", "@")) else name
    return [
        [
            f"{timezone.localtime(bill.month):%Y-%m}",
            name,
            kind,
            used.entries,
            used.units,
            f"{used.billed:f}",
            " + ".join(f"{amount:f} {code}" for code, amount in used.amounts.items()),
        ]
        for kind, used in bill.used.items()
    ]
