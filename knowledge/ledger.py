"""Writing the ledger: each use in one statement, at the department of that moment."""

from collections.abc import Mapping
from typing import Final

from django.db import connection

from knowledge.models.ledger import COUNTED, UNIT_TOKENS, Kind

# The department and its price are read by the statement that writes, so that an entry
# can never hold yesterday's.
CHARGE: Final = """
INSERT INTO knowledge_ledgerentry (at, kind, units, department_id, amount, currency)
SELECT statement_timestamp(), used.kind, used.units, payer.id, used.units * price.each,
       CASE WHEN price.each IS NULL THEN '' ELSE payer.currency END
FROM unnest(%(kinds)s::text[], %(units)s::bigint[]) AS used (kind, units)
LEFT JOIN knowledge_department AS payer
       ON payer.id = (SELECT department_id FROM {holder} WHERE id = %(holder)s)
CROSS JOIN LATERAL (
    SELECT CASE WHEN used.kind = ANY(%(counted)s) THEN payer.search_price
                ELSE payer.token_price / %(unit)s END AS each
) AS price
"""
PERSON: Final = CHARGE.format(holder="knowledge_user")
KNOWLEDGE_BASE: Final = CHARGE.format(holder="knowledge_knowledgebase")


def charge_person(user_id: int | None, used: Mapping[Kind, int]) -> None:
    """Charge uses to a person's department, in searches or tokens; none of 0 units."""
    charge(PERSON, user_id, used)


def charge_knowledge_base(knowledge_base_id: int, used: Mapping[Kind, int]) -> None:
    """Charge uses to a knowledge base's department, in tokens; none of 0 units."""
    charge(KNOWLEDGE_BASE, knowledge_base_id, used)


def charge(statement: str, holder: int | None, used: Mapping[Kind, int]) -> None:
    """Write an entry for each kind that was used."""
    entries = {str(kind): units for kind, units in used.items() if units > 0}
    if not entries:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            statement,
            {
                "kinds": list(entries),
                "units": list(entries.values()),
                "holder": holder,
                "counted": [str(kind) for kind in COUNTED],
                "unit": UNIT_TOKENS,
            },
        )
