"""A document opened at a cited place, and its original file."""

from codecs import getincrementaldecoder
from pathlib import PurePosixPath
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db import models
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from knowledge.language import language_of
from knowledge.models import Document, Original, Passage, Source
from knowledge.permissions import Reader
from retrieval.citations import parse_ref, resolve_ref
from retrieval.lines import Span, Text, Window, bounds_of, fill
from retrieval.outline import outline_of
from retrieval.passages import cite_span
from retrieval.results import Citation
from retrieval.views import path_of, reader_of

PROBE_BYTES = 65_536
# Of a document without a text, so many passages are shown at a time.
UNKEPT_PASSAGES = 40
# Formats that a browser shows without running anything of them.
SHOWN_INLINE = {
    "pdf": "application/pdf",
    "text": "text/plain",
    "log": "text/plain",
    "markdown": "text/plain",
    "csv": "text/plain",
    "json": "text/plain",
}
# A text from outside is shown in an origin of its own, where nothing runs. Browsers
# show no PDF in a sandbox; their viewer is a plugin of ours to allow, for that file
# alone.
INERT = "sandbox; default-src 'none'; frame-ancestors 'self'"
INERT_PDF = (
    "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; "
    "frame-ancestors 'self'"
)


@login_required
@require_safe
@never_cache
def read_page(request: HttpRequest, ref: str) -> HttpResponse:
    """Open a revision at the span that a ref names, highlighted.

    Absent, forbidden and malformed refs get the same 404.
    """
    reader = reader_of(request)
    found = resolve_ref(reader, ref)
    if found is None:
        return unkept_page(request, *unkept_at(reader, ref))
    document, start, end = found
    return document_page(request, document, (start, end))


@login_required
@require_safe
@never_cache
def source_page(request: HttpRequest, public_id: str) -> HttpResponse:
    """Open the current text of a source."""
    document = (
        Document.objects.visible_to(reader_of(request))
        .select_related("source__layer", "knowledge_base", "original")
        .defer("blocks")
        .filter(source__public_id=public_id, is_current=True)
        .first()
    )
    if document is None:
        raise Http404
    if not document.keeps_text:
        return unkept_page(request, document, None)
    return document_page(request, document, None)


def unkept_at(reader: Reader, ref: str) -> tuple[Document, Span]:
    """Return the document and the span of an old passage, or raise Http404.

    Its document's text was not kept (S1-ING-08), so that only the passage is there.
    """
    parsed = parse_ref(ref)
    if parsed is None:
        raise Http404
    number, start, end = parsed
    passage = (
        Passage.objects.visible_to(reader)
        .select_related("document__source__layer", "document__knowledge_base")
        .filter(
            document__number=number,
            document__text_sha256="",
            start__lte=start,
            end__gte=end,
        )
        .first()
    )
    if passage is None:
        raise Http404
    return passage.document, (start, end)


def unkept_page(
    request: HttpRequest, document: Document, span: Span | None
) -> HttpResponse:
    """Show the passages of a document whose text an older version did not keep."""
    rows = Passage.objects.visible_to(reader_of(request)).filter(document=document)
    pages = Paginator(rows.order_by("ordinal"), UNKEPT_PASSAGES)
    number = request.GET.get("page", "")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        page = pages.get_page(int(number))
    else:
        before = 0 if span is None else rows.filter(end__lte=span[0]).count()
        page = pages.get_page(before // UNKEPT_PASSAGES + 1)
    passages = list(page.object_list)
    return render(
        request,
        "retrieval/unkept.html",
        {
            "document": document,
            "source": document.source,
            "cited": next(
                (row.pk for row in passages if span and row.end > span[0]), None
            ),
            "passages": passages,
            "pages": page,
            "numbers": list(pages.get_elided_page_range(page.number)),
            "language": language_of(
                "\n".join(row.text for row in passages),
                document.source.layer.languages,
            ),
        },
    )


def document_page(
    request: HttpRequest, document: Document, span: Span | None
) -> HttpResponse:
    """Render one revision with its outline, and the cited span where there is one."""
    text = Text(document.text)
    bounds = bounds_of(text, span, wanted_offset(request))
    blocks = blocks_within(document, bounds)
    window = fill(bounds, text, blocks, document.pages, span)
    citation = cite_span(document, *(span or (0, max(len(document.text), 1))))
    original = document.original
    shown_inline = original is not None and original.kind in SHOWN_INLINE
    # Without a cited place the original opens at its first page.
    page = citation.page if span is not None else None
    return render(
        request,
        "retrieval/document.html",
        {
            "document": document,
            "source": document.source,
            "citation": citation,
            "clause": path_of(citation),
            "place": place_of(citation),
            "span": span,
            "window": window,
            "outline": outline_of(document, text, window, span),
            "language": language_of(
                document.text[window.start : window.end],
                document.source.layer.languages,
            ),
            "has_current": document.is_current or has_current(document.source),
            "original": original,
            "shown_inline": shown_inline,
            "fragment": f"#page={page}" if page and original_is_pdf(original) else "",
            # Beside the text there is no room for the viewer's own side bar.
            "frame_fragment": f"#page={page or 1}&navpanes=0"
            if original_is_pdf(original)
            else "",
            "beside": shown_inline and request.GET.get("view") == "original",
        },
    )


def blocks_within(document: Document, bounds: Window) -> list[list[Any]]:
    """Return the blocks that a window touches; a long text has very many."""
    within = models.Func(
        models.F("blocks"),
        models.Value("$[*] ? (@[1] < $end && @[2] > $start)"),
        models.Value(
            {"start": bounds.start, "end": bounds.end}, output_field=models.JSONField()
        ),
        function="jsonb_path_query_array",
        output_field=models.JSONField(),
    )
    found: list[list[Any]] = (
        Document.objects.filter(pk=document.pk).values_list(within, flat=True).get()
    )
    return found


def wanted_offset(request: HttpRequest) -> int | None:
    """Return where the address asks a part to begin, as an offset, or None."""
    wanted = request.GET.get("from", "")
    return (
        int(wanted)
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 10
        else None
    )


def place_of(citation: Citation) -> str:
    """Say on which page and lines the cited place stands."""
    several = "-" in citation.lines
    if citation.page is None:
        sentence = (
            _("Cited: lines %(lines)s.") if several else _("Cited: line %(lines)s.")
        )
    else:
        sentence = (
            _("Cited: page %(page)s, lines %(lines)s.")
            if several
            else _("Cited: page %(page)s, line %(lines)s.")
        )
    return sentence % {"page": citation.page, "lines": citation.lines}


def has_current(source: Source) -> bool:
    """Tell whether a source has a text that searches find now."""
    return source.documents.filter(is_current=True).exists()


def original_is_pdf(original: Original | None) -> bool:
    """Tell whether there is an original that has pages to open at."""
    return original is not None and original.kind == "pdf"


@login_required
@require_safe
@never_cache
def original_file(request: HttpRequest, number: int) -> FileResponse:
    """Hand back the file of a revision, byte for byte as it came in.

    Only formats that run nothing are shown in the browser; all else is a download.
    """
    document = (
        Document.objects.visible_to(reader_of(request))
        .select_related("original")
        .defer("text", "blocks", "pages")
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
    head = opened.read(PROBE_BYTES)
    opened.seek(0)
    response = FileResponse(
        opened,
        as_attachment=download,
        filename=PurePosixPath(original.name).name,
        content_type=content_type_of(original.kind, head),
    )
    response["X-Content-Type-Options"] = "nosniff"
    is_shown_pdf = original_is_pdf(original) and not download
    response["Content-Security-Policy"] = INERT_PDF if is_shown_pdf else INERT
    return response


def content_type_of(kind: str, head: bytes) -> str:
    """Return the type a file is sent with; UTF-8 is said where its head is UTF-8."""
    content_type = SHOWN_INLINE.get(kind, "application/octet-stream")
    if content_type != "text/plain":
        return content_type
    decoder = getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head)
    except UnicodeDecodeError:
        return content_type
    return "text/plain; charset=utf-8"
