"""What a question names: one clause, and the words beside it."""

from __future__ import annotations

from dataclasses import dataclass

from knowledge.structure.numbers import Unit

BARE = "bare"

Part = tuple[Unit, str]


@dataclass(frozen=True, slots=True)
class Reference:
    """One clause that a question names.

    `kind` is the unit whose number is meant, or "bare"; `number` the whole number as
    `number_key` gives it (`28(2)(a)`). `labelled` tells that it can be nothing but a
    clause. `within` are the containing units, the outermost first. `before` and
    `after` are the words beside it, which may name its document; `connected` tells
    that a preposition links the latter. `lead` is what opens the question ("In the
    Statute, …"). A bare number that is `attached` to a name may be its version.
    """

    written: str
    kind: str
    number: str
    labelled: bool
    within: tuple[Part, ...] = ()
    before: str = ""
    after: str = ""
    connected: bool = False
    lead: str = ""
    version: str = ""
    attached: bool = False
