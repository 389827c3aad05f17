"""A document opened at a cited place, and its original file."""

from bisect import bisect_left, bisect_right
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from knowledge.models import Document, Original, Source
from retrieval.citations import resolve_ref
from retrieval.passages import cite_span
from retrieval.views import reader_of

PROBE_BYTES = 65_536
# A longer text is shown in parts, so that a browser is not handed a whole handbook.
PART_LINES = 2_000
LEAD_LINES = 500
MOST_SECTIONS = 400
# Formats that a browser shows without running anything of them.
SHOWN_INLINE = {
    "pdf": "application/pdf",
    "text": "text/plain",
    "log": "text/plain",
    "markdown": "text/plain",
    "csv": "text/plain",
    "json": "text/plain",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a line that is cited, or not; `first` begins the cited span."""

    text: str
    cited: bool
    first: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a document as the page shows it.

    `page` is the number of the page that begins with it, else None. `kind` is "heading",
    "code" or "".
    """

    number: int
    parts: Sequence[Part]
    kind: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The lines of one part of a document, and where the parts beside it begin."""

    lines: Sequence[Line]
    first: int
    last: int
    total: int
    before: int | None
    after: int | None


def parts_of(text: str, start: int, span: tuple[int, int] | None) -> list[Part]:
    """Cut a line that begins at offset `start` where the cited span begins and ends."""
    if span is None:
        return [Part(text, cited=False)]
    left = min(max(span[0] - start, 0), len(text))
    right = min(max(span[1] - start, 0), len(text))
    if left >= right:
        return [Part(text, cited=False)]
    first = start <= span[0] < start + len(text)
    return [
        part
        for part in (
            Part(text[:left], cited=False),
            Part(text[left:right], cited=True, first=first),
            Part(text[right:], cited=False),
        )
        if part.text
    ]


def window_of(
    document: Document, span: tuple[int, int] | None, first_line: int | None
) -> Window:
    """Return the lines to show: all, or a part around the span or from a line on."""
    texts = document.text.split("\n")
    starts = [0]
    for text in texts:
        starts.append(starts[-1] + len(text) + 1)
    total = len(texts)
    first = 1
    if total > PART_LINES:
        if first_line is not None:
            first = min(max(first_line, 1), total)
        elif span is not None:
            first = max(bisect_right(starts, span[0]) - LEAD_LINES, 1)
    last = min(first + PART_LINES - 1, total)
    return Window(
        lines=list(lines_of(document, texts, starts, span, first, last)),
        first=first,
        last=last,
        total=total,
        before=max(first - PART_LINES, 1) if first > 1 else None,
        after=last + 1 if last < total else None,
    )


def lines_of(
    document: Document,
    texts: Sequence[str],
    starts: Sequence[int],
    span: tuple[int, int] | None,
    first: int,
    last: int,
) -> Iterator[Line]:
    """Yield lines `first` to `last`, counted from 1."""
    pages = {
        bisect_right(starts, page["start"]): page["number"] for page in document.pages
    }
    kinds: dict[int, str] = {}
    for kind, start, end, _level in document.blocks:
        if kind in {"heading", "code"}:
            begin = bisect_right(starts, start)
            for number in range(begin, bisect_left(starts, end, begin) + 1):
                kinds[number] = kind
    for number in range(first, last + 1):
        yield Line(
            number=number,
            parts=parts_of(texts[number - 1], starts[number - 1], span),
            kind=kinds.get(number, ""),
            page=pages.get(number),
        )


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A section in the outline: where its line is and how deep it stands."""

    title: str
    line: int
    level: int
    here: bool


def outline_of(
    document: Document, span: tuple[int, int] | None
) -> list[OutlineEntry]:
    """Return the document's sections; numbered clauses only while they are few."""
    sections = list(document.sections.only("title", "path", "start", "end", "level", "kind"))
    if len(sections) > MOST_SECTIONS:
        sections = [section for section in sections if section.kind == "heading"]
    starts = [0]
    at = document.text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = document.text.find("\n", at + 1)
    here = None
    if span is not None:
        inside = [s for s in sections if s.start <= span[0] < s.end]
        here = inside[-1].pk if inside else None
    levels = sorted({section.level for section in sections})
    return [
        OutlineEntry(
            title=section.path[-1] if section.path else section.title,
            line=bisect_right(starts, section.start),
            level=min(levels.index(section.level) + 1, 6),
            here=section.pk == here,
        )
        for section in sections[:MOST_SECTIONS]
    ]


@login_required
@require_safe
@never_cache
def read_page(request: HttpRequest, ref: str) -> HttpResponse:
    """Open a revision at the span that a ref names, highlighted.

    Absent, forbidden and malformed refs get the same 404.
    """
    found = resolve_ref(reader_of(request), ref)
    if found is None:
        raise Http404
    document, start, end = found
    return document_page(request, document, (start, end))


@login_required
@require_safe
@never_cache
def source_page(request: HttpRequest, public_id: str) -> HttpResponse:
    """Open the current text of a source."""
    source = (
        Source.objects.visible_to(reader_of(request)).filter(public_id=public_id).first()
    )
    document = None
    if source is not None:
        document = (
            Document.objects.visible_to(reader_of(request))
            .select_related("source__layer", "knowledge_base", "original")
            .filter(source=source, is_current=True)
            .first()
        )
    if document is None:
        raise Http404
    return document_page(request, document, None)


def document_page(
    request: HttpRequest, document: Document, span: tuple[int, int] | None
) -> HttpResponse:
    """Render one revision with its outline, and the cited span where there is one."""
    wanted = request.GET.get("line", "")
    first_line = int(wanted) if wanted.isdecimal() and len(wanted) < 9 else None
    citation = cite_span(document, *(span or (0, max(len(document.text), 1))))
    current = None
    if not document.is_current:
        current = Document.objects.filter(source=document.source, is_current=True).first()
    original = document.original
    page = citation.page if span is not None else None
    return render(
        request,
        "retrieval/document.html",
        {
            "document": document,
            "source": document.source,
            "citation": citation,
            "span": span,
            "window": window_of(document, span, first_line),
            "outline": outline_of(document, span),
            "current": current,
            "original": original,
            "shown_inline": original is not None and original.kind in SHOWN_INLINE,
            "is_pdf": original is not None and original.kind == "pdf",
            "page": page,
            "view": "original" if request.GET.get("view") == "original" else "text",
        },
    )


@login_required
@require_safe
@never_cache
def original_file(request: HttpRequest, number: int) -> HttpResponse:
    """Hand back the file of a revision, byte for byte as it came in.

    Only formats that run nothing are shown in the browser; all else is a download.
    """
    document = (
        Document.objects.visible_to(reader_of(request))
        .select_related("original")
        .defer("text", "blocks")
        .filter(number=number, original__isnull=False)
        .first()
    )
    if document is None or document.original is None:
        raise Http404
    original = document.original
    download = "download" in request.GET or original.kind not in SHOWN_INLINE
    try:
        opened = original.file.open("rb")
    except FileNotFoundError as error:
        raise Http404(_("The original file is missing from the storage.")) from error
    response = FileResponse(
        opened,
        as_attachment=download,
        filename=PurePosixPath(original.name).name,
        content_type=content_type_of(original),
    )
    response["X-Content-Type-Options"] = "nosniff"
    if original.kind != "pdf":
        # Browsers show no PDF in a sandbox; its viewer runs nothing of ours.
        response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def content_type_of(original: Original) -> str:
    """Return the type a file is sent with; UTF-8 is said where the file is UTF-8."""
    content_type = SHOWN_INLINE.get(original.kind, "application/octet-stream")
    if content_type != "text/plain":
        return content_type
    with original.file.storage.open(original.file.name) as stored:
        head = stored.read(PROBE_BYTES)
    decoder = getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head)
    except UnicodeDecodeError:
        return content_type
    return "text/plain; charset=utf-8"
