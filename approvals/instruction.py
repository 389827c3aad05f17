"""The written instruction for whoever answers a question (S2-APR-08, S2-PRV-02).

It stands beside the form in the admin, in each message that asks for an answer, and in
docs/privacy.md.
"""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TITLE: Final = _("How to answer")
LEAD: Final = _(
    "What you write here becomes part of the documents: everybody who may read the "
    "layer can find it, and agents repeat it word for word."
)
DO: Final[tuple[str | Promise, ...]] = (
    _(
        "Write the question as anybody could ask it, and the answer so that it is whole "
        "without the conversation."
    ),
    _("Answer only what you know or can look up, and say from when on it holds."),
    _(
        "Look at the passages beside the question first: if the answer stands there, say "
        "so when you ignore it, so that the search can be mended."
    ),
    _(
        "Ignore, with a reason, what must never be answered by a machine, and what "
        "concerns one person alone."
    ),
)
NEVER_COPY: Final[tuple[str | Promise, ...]] = (
    _("names of customers, colleagues or anybody else"),
    _("phone numbers, addresses of e-mail, addresses of homes"),
    _("account numbers, IBANs, bank codes and card numbers"),
    _("numbers of orders, parcels, contracts, bills and customers"),
    _("numbers of people and their documents: PESEL, CNP, INN, CCCD, passports"),
    _("what happened to one customer: dates, amounts and places of their case"),
)
NEVER_COPY_TITLE: Final = _("Never copy from the customer's question")
MARKED: Final = _(
    "What looks like such a detail is marked. Remove it; keep it only where it belongs "
    "to nobody, such as the bank's own hotline."
)


def as_text() -> str:
    """Return the instruction as lines of plain text, for messages."""
    return "\n".join(
        [
            str(LEAD),
            *(f"- {each}" for each in DO),
            f"{NEVER_COPY_TITLE}:",
            *(f"- {each}" for each in NEVER_COPY),
            str(MARKED),
        ]
    )
