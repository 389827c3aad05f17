"""What lies on a PDF's pages: comments that show, and the values of form fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pypdf import PageObject
from pypdf.generic import ArrayObject, DictionaryObject, StreamObject

from knowledge.extraction.fragments import Fragment, make_fragment

_MOST_FIELDS = 20_000
# Bits of an annotation's and of a form field's flags.
_HIDDEN = 1 << 1
_PASSWORD = 1 << 13
_PUSH_BUTTON = 1 << 16


def _annotations(page: PageObject) -> Iterator[DictionaryObject]:
    """Yield the annotations of a page that are not hidden."""
    annotations = page.get("/Annots")
    annotations = annotations.get_object() if annotations is not None else None
    if not isinstance(annotations, ArrayObject):
        return
    for index, reference in enumerate(annotations):
        annotation = reference.get_object()
        if index > _MOST_FIELDS:
            return
        if not isinstance(annotation, DictionaryObject):
            continue
        if not int(annotation.get("/F", 0)) & _HIDDEN:
            yield annotation


def comments(page: PageObject) -> Iterator[str]:
    """Yield the comments whose text shows on the page."""
    for annotation in _annotations(page):
        if annotation.get("/Subtype") == "/FreeText":
            yield str(annotation.get("/Contents", ""))


def form_values(page: PageObject, order: int) -> Iterator[Fragment]:
    """Yield the values of form fields, placed where the page shows them."""
    for annotation in _annotations(page):
        box = annotation.get("/Rect")
        text = _field_value(annotation)
        if not text or box is None:
            continue
        left, bottom, right, top = (float(value) for value in box.get_object())
        left, right = min(left, right), max(left, right)
        bottom, top = min(bottom, top), max(bottom, top)
        rows = [row for row in text.splitlines() if row.strip()]
        size = min(12.0, max(4.0, (top - bottom) / max(1.3 * len(rows), 1.3)))
        for number, row in enumerate(rows):
            baseline = top - 1.2 * size * (number + 1) + 0.2 * size
            end = max(right, left + 1.0)
            order += 1
            yield make_fragment(
                row.strip(), (left, baseline), (end, baseline), size, order=order
            )


def _field_value(annotation: DictionaryObject) -> str:
    """Return the value of a form field; of a tick box, whether it is ticked."""
    if annotation.get("/Subtype") != "/Widget":
        return ""
    kind, value = _inherited(annotation, "/FT"), _inherited(annotation, "/V")
    flags = _inherited(annotation, "/Ff")
    flags = flags if isinstance(flags, int) else 0
    if kind == "/Btn":
        state = annotation.get("/AS")
        if flags & _PUSH_BUTTON or state is None:
            return ""
        return "☐" if state == "/Off" else "☒"
    if value is None or kind == "/Sig" or flags & _PASSWORD:
        return ""
    if isinstance(value, ArrayObject):
        return "\n".join(str(one.get_object()) for one in value)
    if isinstance(value, StreamObject):
        return value.get_data().decode("utf-8", "replace")
    return str(value)


def _inherited(annotation: DictionaryObject, key: str) -> Any:
    node: Any = annotation
    for _ in range(20):
        if not isinstance(node, DictionaryObject):
            return None
        if key in node:
            return node[key].get_object()
        parent = node.get("/Parent")
        node = parent.get_object() if parent is not None else None
    return None
