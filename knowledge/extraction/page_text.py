"""What was read from one page of a PDF."""

from __future__ import annotations

from dataclasses import dataclass, field

from knowledge.extraction.lines import Line


@dataclass(slots=True)
class PageText:
    """What was read from one page, before the text is put together."""

    number: int
    width: float
    height: float
    extractor: str = "pypdf"
    lines: list[Line] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    images: int = 0
    unmapped: int = 0
    failed: bool = False

    @property
    def is_blank(self) -> bool:
        """Whether no letter or digit was read."""
        texts = [line.text for line in self.lines] + self.plain
        return not any(character.isalnum() for text in texts for character in text)
