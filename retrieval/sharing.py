"""How the named clauses of a question share the room that there is. Pure."""

from collections.abc import Sequence

from retrieval.budget import cut_at_word

# A clause up to this length is never cut (S1-MIS-02), and of each later one as much is
# kept (S1-MIS-03).
HEAD = 200


def shares(texts: Sequence[str], budget: int, beside: Sequence[int] = ()) -> list[int]:
    """Return how many characters of each clause are given, the whole or the beginning.

    In order, each gets what is left divided by the clauses still to fit, after keeping
    room for the head of every later one (S1-MIS-03). One that no longer fits is left out
    whole, and so is every one after it (S1-MIS-04): the list is then shorter. The first
    always comes, cut to the budget if need be. `beside` are the characters of what is
    said of each, its citation, which take room as its text does.
    """
    said = [*beside, *([0] * (len(texts) - len(beside)))]
    heads = [
        len(cut_at_word(text, HEAD)) + more
        for text, more in zip(texts, said, strict=True)
    ]
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
        text, more = texts[index], said[index]
        free = left - sum(later) - more
        share = max((left - sum(later)) // (len(later) + 1), heads[index]) - more
        if len(text) <= max(share, min(HEAD, free)):
            given.append(len(text))
        else:
            least = 1 if given else min(HEAD, budget)
            given.append(len(cut_at_word(text, max(least, min(share, left - more)))))
        left -= given[-1] + more
    return given
