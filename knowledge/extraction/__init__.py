"""From a file's bytes to its text with locators; one module a format.

The format is told by content; the name only tells the kinds of text apart. Importing
this package loads no parser: `extract_in_child` runs `extract` in a process of its
own, which can be killed.
"""

from __future__ import annotations

from knowledge.extraction.blocks import (
    Block,
    BlockKind,
    Extracted,
    ExtractionError,
    Page,
)
from knowledge.extraction.child import extract_in_child
from knowledge.extraction.extracting import extract
from knowledge.extraction.limits import Limits
from knowledge.extraction.sniffing import sniff

__all__ = [
    "Block",
    "BlockKind",
    "Extracted",
    "ExtractionError",
    "Limits",
    "Page",
    "extract",
    "extract_in_child",
    "sniff",
]
