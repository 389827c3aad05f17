"""How the named clauses of a question share the room that there is. Pure."""

from collections.abc import Sequence

from retrieval.budget import cut_at_word

# A clause up to this length is never cut (S1-MIS-02), and of each later one as much is
# kept (S1-MIS-03).
HEAD = 200


def shares(texts: Sequence[str], budget: int) -> list[int]:
    """Return how many characters of each clause are given, the whole or the beginning.

    In order, each gets what is left divided by the clauses still to fit, after keeping
    room for the head of every later one (S1-MIS-03). One that no longer fits is left out
    whole, and so is every one after it (S1-MIS-04): the list is then shorter. The first
    always comes, cut to the budget if need be.
    """
    heads = [len(cut_at_word(text, HEAD)) for text in texts]
    fitting, needed = 0, 0
    for head in heads:
        needed += head
        if needed > budget:
            break
        fitting += 1
    given: list[int] = []
    left = budget
    for index in range(max(fitting, min(len(texts), 1))):
        later = heads[index + 1 : fitting]
        share = max((left - sum(later)) // (len(later) + 1), heads[index])
        text = texts[index]
        if len(text) <= max(share, min(HEAD, left - sum(later))):
            given.append(len(text))
        else:
            given.append(len(cut_at_word(text, max(1, min(share, left)))))
        left -= given[-1]
    return given
