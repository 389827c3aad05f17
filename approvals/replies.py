"""What a reply says: out of a mail's parts and quoted lines, or a message's text. Pure.

A reply comes from outside, and what is read here is never more than plain text: HTML is
turned into the text that it shows, control characters go, and nothing in it is a
command but the few headings that a person may write before the answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from email.utils import getaddresses, parseaddr
from typing import Final

from lxml import html  # type: ignore[import-untyped]
from lxml.etree import ParserError  # type: ignore[import-untyped]

from knowledge.sanitizing import clean_document_text, strip_invisible

_HEADING = re.compile(r"\s*(question|layer|keep|ignore)\s*:\s*(.*)", re.IGNORECASE)
_APPROVE: Final = frozenset({"approve", "approved"})
_TAG = re.compile(
    r"</?(?:a|b|body|br|div|em|font|head|html|i|iframe|img|li|link|meta|object|ol|p|pre"
    r"|script|span|strong|style|svg|table|tbody|td|th|title|tr|u|ul)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_HIDDEN: Final = ("script", "style", "head", "title", "template", "noscript", "iframe")
_BLOCKS: Final = ("p", "div", "li", "tr", "table", "ul", "ol", "h1", "h2", "h3", "pre")
# Who speaks before the lines that a mail program quotes: `On …, … wrote:`.
_ATTRIBUTION = re.compile(
    r"^.{0,200}(?:@|[0-9]{1,2}[:.][0-9]{2}).{0,200}:\s*$", re.DOTALL
)
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person replied.

    `answer` is the text behind the headings; `question`, `layer` and `ignored_because`
    are "" where there is no such heading, `kept` are the details that are to stay.
    `approves` is set by a reply that is this one word.
    """

    answer: str
    question: str = ""
    layer: str = ""
    ignored_because: str = ""
    kept: tuple[str, ...] = ()
    approves: bool = False


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail that came in: from whom, to whom, its id, what it says above the quote.

    `is_automatic` tells of holiday notices and bounces, which answer nothing.
    """

    sender: str
    recipients: tuple[str, ...]
    message_id: str
    text: str
    is_automatic: bool


def read_reply(text: str) -> Reply:
    """Return what a text says, with its headings."""
    lines = plain_text(text).split("\n")
    found: dict[str, list[str]] = {}
    while lines:
        if not lines[0].strip():
            lines.pop(0)
            continue
        heading = _HEADING.fullmatch(lines[0])
        if heading is None:
            break
        found.setdefault(heading[1].lower(), []).append(heading[2].strip())
        lines.pop(0)
    answer = "\n".join(lines).strip()
    return Reply(
        answer=answer,
        question=" ".join(found.get("question", [])),
        layer=" ".join(found.get("layer", [])),
        ignored_because=" ".join(found.get("ignore", [])),
        kept=tuple(found.get("keep", [])),
        approves=not found and answer.rstrip(".!").casefold() in _APPROVE,
    )


def plain_text(text: str) -> str:
    """Return a text from outside as plain lines: no tags, nothing that is not seen."""
    cleaned, _removed = clean_document_text(text)
    if _TAG.search(cleaned):
        cleaned = text_of_html(cleaned)
    lines = (line.rstrip() for line in strip_invisible(cleaned).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def text_of_html(markup: str) -> str:
    """Return the text that HTML shows; scripts and styles show none."""
    try:
        tree = html.fromstring(f"<div>{markup}</div>")
    except (ParserError, ValueError):
        return re.sub(r"<[^<>]*>", " ", markup)
    for element in list(tree.iter(*_HIDDEN)):
        element.drop_tree()
    for element in tree.iter("br"):
        element.tail = f"\n{element.tail or ''}"
    for element in tree.iter(*_BLOCKS):
        element.tail = f"\n{element.tail or ''}"
    return str(tree.text_content())


def read_mail(raw: bytes, marker: str) -> Mail:
    """Return a mail that came in. `marker` stands where its quote of ours begins."""
    mail = message_from_bytes(raw, policy=default)
    automatic = str(mail.get("Auto-Submitted", "no")).strip().casefold()
    precedence = str(mail.get("Precedence", "")).strip().casefold()
    return Mail(
        sender=parseaddr(str(mail.get("From", "")))[1].casefold(),
        recipients=tuple(_recipients(mail)),
        message_id=str(mail.get("Message-ID", "")).strip()[:200],
        text=above_quote(_body(mail), marker),
        is_automatic=automatic != "no"
        or precedence in {"bulk", "junk", "list", "auto_reply"}
        or not parseaddr(str(mail.get("Return-Path", "<a@b>")))[1],
    )


def _recipients(mail: EmailMessage) -> Iterator[str]:
    """Yield the addresses that a mail went to."""
    for name in ("To", "Cc", "Delivered-To", "X-Original-To", "Envelope-To"):
        values = [str(each) for each in mail.get_all(name, [])]
        yield from (address for _name, address in getaddresses(values) if address)


def _body(mail: EmailMessage) -> str:
    """Return the text of a mail: its plain part, else what its HTML shows."""
    part = mail.get_body(preferencelist=("plain", "html"))
    if part is None:
        return ""
    try:
        content = str(part.get_content())
    except (LookupError, ValueError):
        # A character set that does not exist.
        payload = part.get_payload(decode=True)
        content = (
            payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
        )
    return text_of_html(content) if part.get_content_subtype() == "html" else content


def above_quote(text: str, marker: str) -> str:
    """Return what a person wrote above the quote of our message and their signature."""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if marker in line or line == "-- ":
            break
        lines.append(line)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith(">")):
        lines.pop()
    # The lines that say who is quoted: the last ones behind an empty one.
    start = max(
        (at + 1 for at, line in enumerate(lines) if not line.strip()), default=0
    )
    if start and _ATTRIBUTION.match("\n".join(lines[start:])):
        del lines[start:]
    return "\n".join(lines).strip()
