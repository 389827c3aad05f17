"""What a document is cut into, how large, and what is embedded."""

from __future__ import annotations

from dataclasses import dataclass

CHUNKER_VERSION = "2"
MAX_CONTEXT_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Preset:
    """A layer's chunk size and overlap, both in `unit` (characters or tokens)."""

    name: str
    unit: str
    size: int
    overlap: int


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("text", "characters", 1200, 150),
        Preset("voice", "tokens", 500, 50),
        Preset("voice-wide", "tokens", 500, 100),
    )
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of the text with what is embedded before it.

    `cut_start` and `cut_end` mark a chunk that begins or stops inside a sentence.
    """

    ordinal: int
    start: int
    end: int
    context: str
    path: tuple[str, ...]
    cut_start: bool
    cut_end: bool


def embedded_text(chunk_context: str, chunk_text: str) -> str:
    """Return what is embedded, hashed and counted for a passage."""
    return f"{chunk_context}\n{chunk_text}" if chunk_context else chunk_text
