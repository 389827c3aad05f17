"""What the head of each page of the portal says of the reader's own questions."""

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from approvals.mine import count_news


def news(request: HttpRequest) -> dict[str, object]:
    """Return `news`, how many of the person's questions were settled unseen.

    Counted by the pages that show it alone.
    """
    return {"news": SimpleLazyObject(lambda: count_news(request.user.pk))}
