"""XML by local names, so that one reader serves all versions of a format."""

from __future__ import annotations

from typing import Any, TypeAlias

from lxml import etree  # type: ignore[import-untyped]

# lxml ships no types.
Element: TypeAlias = Any


def parse_xml(data: bytes) -> Element | None:
    """Return the root element, or None for what is no XML.

    Entities stay unresolved and nothing is fetched.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, recover=True, remove_comments=True
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return None


def parse_html(data: bytes) -> Element | None:
    """Return the root element of a page, or None."""
    try:
        return etree.fromstring(data, etree.HTMLParser(no_network=True))
    except etree.XMLSyntaxError:
        return None


def local_name(element: Element) -> str:
    """Return an element's name without its namespace; "" for a comment or the like."""
    tag = element.tag
    return tag.rsplit("}", maxsplit=1)[-1] if isinstance(tag, str) else ""


def attribute(element: Element, name: str) -> str:
    """Return an attribute's value whatever its namespace, or ""."""
    for key, value in element.attrib.items():
        if str(key).rsplit("}", maxsplit=1)[-1] == name:
            return str(value)
    return ""


def child(element: Element | None, *names: str) -> Element | None:
    """Return the first child by a path of names, or None."""
    for name in names:
        if element is None:
            return None
        element = next((one for one in element if local_name(one) == name), None)
    return element


def value_of(element: Element | None, *names: str) -> str | None:
    """Return the `val` of a child by a path of names, or None without the child."""
    found = child(element, *names)
    return None if found is None else attribute(found, "val")


def is_on(element: Element | None, name: str) -> bool:
    """Tell whether a switch stands among the children and is not off."""
    value = value_of(element, name)
    return value is not None and value not in {"0", "false", "off", "none"}


def has_ancestor(element: Element, name: str) -> bool:
    """Tell whether an element lies inside one of that name."""
    return any(local_name(one) == name for one in element.iterancestors())
