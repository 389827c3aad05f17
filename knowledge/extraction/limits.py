"""Bounds that a parse may not pass, so that no document can stop the installation."""

from __future__ import annotations

from dataclasses import dataclass

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one extraction: bytes, counts and seconds."""

    file_bytes: int = 50 * MEBIBYTE
    unpacked_bytes: int = 200 * MEBIBYTE
    zip_members: int = 2_000
    zip_ratio: int = 100
    zip_ratio_from_bytes: int = MEBIBYTE
    text_characters: int = 20_000_000
    blocks: int = 200_000
    pages: int = 5_000
    json_depth: int = 64
    wall_seconds: float = 60.0
    cpu_seconds: int = 60
    memory_bytes: int = 1024 * MEBIBYTE
