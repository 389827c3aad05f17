"""What a reply says: out of a mail's parts and quoted lines, or a message's text. Pure.

A reply comes from outside, and what is read here is never more than plain text: HTML is
turned into the text that it shows, control characters go, and nothing in it is a
command but the few headings that a person may write before the answer.
"""

import re
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
# Replies of one word, without the signs around it.
_APPROVE: Final = frozenset({"approve", "approved"})
_IGNORE: Final = frozenset({"ignore", "ignored"})
_SIGNS = re.compile(r"[\W_]+")
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
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")
# The headers that tell where a mail went, also after it was passed on.
_TO: Final = ("to", "cc", "delivered-to", "x-original-to", "envelope-to")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person replied.

    `answer` is the text behind the headings; `question` and `layer` are "" where there
    is no such heading, `kept` are the details that are to stay. `approves` is set by a
    reply that is this one word, `ignores` by that heading or word, whose reason is
    `ignored_because`. A reply that does either is never an answer.
    """

    answer: str
    question: str = ""
    layer: str = ""
    kept: tuple[str, ...] = ()
    approves: bool = False
    ignores: bool = False
    ignored_because: str = ""


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
    if "ignore" in found:
        # The reason may stand on the heading's line or below it.
        because = " ".join(found["ignore"]).strip() or " ".join(answer.split())
        return Reply("", ignores=True, ignored_because=because)
    word = "" if found else _SIGNS.sub("", answer).casefold()
    return Reply(
        answer=answer,
        question=" ".join(found.get("question", [])),
        layer=" ".join(found.get("layer", [])),
        kept=tuple(found.get("keep", [])),
        approves=word in _APPROVE,
        ignores=word in _IGNORE,
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
    headers = _headers(mail)

    def first(name: str, default: str = "") -> str:
        return headers.get(name, [default])[0]

    recipients = [text for name in _TO for text in headers.get(name, [])]
    return Mail(
        sender=parseaddr(first("from"))[1].casefold(),
        recipients=tuple(each for _name, each in getaddresses(recipients) if each),
        message_id=first("message-id")[:200],
        text=above_quote(_body(mail), marker),
        is_automatic=first("auto-submitted", "no").casefold() != "no"
        or first("precedence").casefold() in {"bulk", "junk", "list", "auto_reply"}
        or not parseaddr(first("return-path", "<a@b>"))[1],
    )


def _headers(mail: EmailMessage) -> dict[str, list[str]]:
    """Return the headers as they came, by their names in small letters.

    The library's own reading of a header breaks over junk in it, and tells no more of
    an address or an id than is written there.
    """
    found: dict[str, list[str]] = {}
    for name, value in mail.raw_items():
        text = str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        plain = " ".join(_CONTROLS.sub(" ", text).split())
        found.setdefault(name.casefold(), []).append(plain)
    return found


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
