"""What the ledger adds up to: by department, kind and month."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.db.models import Count, Min, QuerySet, Sum
from django.db.models.functions import TruncMonth
from django.utils import timezone

from knowledge.models import Department, LedgerEntry
from knowledge.models.ledger import COUNTED, UNIT_TOKENS, Kind

# How far back a department's own page looks.
YEARS: Final = 2


@dataclass(frozen=True, slots=True)
class Used:
    """What was used of one kind: entries, units (searches or tokens), billing units.

    `amounts` holds money by currency; empty where no price was set.
    """

    entries: int
    units: int
    billed: Decimal
    amounts: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Bill:
    """One department's use in one month; `month` is its first moment.

    `department` None is what belongs to none.
    """

    month: datetime
    department: Department | None
    used: Mapping[str, Used]

    @property
    def billed(self) -> Decimal:
        """All of its billing units."""
        return sum((each.billed for each in self.used.values()), Decimal(0))

    @property
    def amounts(self) -> dict[str, Decimal]:
        """All of its money, by currency."""
        return added(each.amounts for each in self.used.values())


def months() -> list[datetime]:
    """Return the first moments of the months since the first entry, newest first."""
    first = LedgerEntry.objects.aggregate(first=Min("at"))["first"]
    month = this_month()
    found = [month]
    while first is not None and found[-1] > timezone.localtime(first):
        found.append(month_before(found[-1]))
    return found


def bills_of_month(month: datetime) -> list[Bill]:
    """Return a month's bills by department's name, what belongs to none last."""
    found = bills(LedgerEntry.objects.filter(at__gte=month, at__lt=month_after(month)))
    return sorted(
        found, key=lambda bill: (bill.department is None, str(bill.department))
    )


def bills_of_department(department: Department) -> list[Bill]:
    """Return a department's bills of the last months, newest first."""
    month = this_month()
    since = month.replace(year=month.year - YEARS)
    found = bills(department.entries.filter(at__gte=since))
    return sorted(found, key=lambda bill: bill.month, reverse=True)


def bills(entries: QuerySet[LedgerEntry]) -> list[Bill]:
    """Return a bill for each month and department of some entries."""
    rows = (
        entries.order_by()
        .values("department", "kind", "currency", month=TruncMonth("at"))
        .annotate(entries=Count("pk"), units=Sum("units"), amount=Sum("amount"))
    )
    parts: dict[tuple[datetime, int | None], list[Mapping[str, Any]]] = {}
    for row in rows:
        parts.setdefault((row["month"], row["department"]), []).append(row)
    departments = Department.objects.in_bulk(
        [key for _month, key in parts if key is not None]
    )
    return [
        Bill(
            month=month,
            department=None if key is None else departments[key],
            used=used_of(each),
        )
        for (month, key), each in parts.items()
    ]


def used_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Used]:
    """Return what was used by kind, whatever the currency."""
    used: dict[str, Used] = {}
    for kind in Kind:
        mine = [row for row in rows if row["kind"] == kind]
        if mine:
            units = sum(row["units"] for row in mine)
            used[str(kind)] = Used(
                entries=sum(row["entries"] for row in mine),
                units=units,
                billed=billed(kind, units),
                amounts=added(
                    {row["currency"]: row["amount"]}
                    for row in mine
                    if row["amount"] is not None
                ),
            )
    return used


def added(amounts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """Return the sums by currency."""
    sums: dict[str, Decimal] = {}
    for each in amounts:
        for currency, amount in each.items():
            sums[currency] = sums.get(currency, Decimal(0)) + amount
    return dict(sorted(sums.items()))


def billed(kind: Kind, units: int) -> Decimal:
    """Return billing units: searches one by one, tokens by the thousand."""
    return Decimal(units) if kind in COUNTED else Decimal(units) / UNIT_TOKENS


def this_month() -> datetime:
    """Return the first moment of the current month."""
    return timezone.localtime().replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )


def month_after(month: datetime) -> datetime:
    """Return the first moment of the month after one."""
    year, number = divmod(month.year * 12 + month.month, 12)
    return month.replace(year=year, month=number + 1)


def month_before(month: datetime) -> datetime:
    """Return the first moment of the month before one."""
    year, number = divmod(month.year * 12 + month.month - 2, 12)
    return month.replace(year=year, month=number + 1)
