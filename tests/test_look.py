"""The look keeps its own rules: one file of tokens, contrast, nothing inline."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "static" / "strata_portal"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
TOKENS = (STATIC / "css" / "tokens.css").read_text(encoding="utf-8")
STYLES = sorted((STATIC / "css").glob("*.css"))

PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
READABLE = (
    ("ink", "paper"),
    ("ink", "surface"),
    ("ink", "hover"),
    ("ink-soft", "paper"),
    ("ink-soft", "sunken"),
    ("ink-faint", "paper"),
    ("ink-faint", "surface"),
    ("ink-faint", "sunken"),
    ("ink-faint", "hover"),
    ("accent", "paper"),
    ("accent", "surface"),
    ("accent", "hover"),
    ("accent-strong", "accent-soft"),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("cited-ink", "cited"),
    ("found", "found-soft"),
    ("partly", "partly-soft"),
    ("partly", "paper"),
    ("absent", "absent-soft"),
    ("failed", "failed-soft"),
    ("failed", "surface"),
    ("failed", "paper"),
    ("on-failed", "failed"),
    ("pending", "pending-soft"),
)
DISTINCT = (
    ("line-strong", "surface"),
    ("line-strong", "paper"),
    ("cited-line", "cited"),
    ("accent", "paper"),
)


def luminance(colour: str) -> float:
    """Return the relative luminance of "#rrggbb" as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def themes() -> list[dict[str, str]]:
    """Return the colours of each theme: light, dark, and both in high contrast."""
    ordinary, _, rest = TOKENS.partition("@media (prefers-contrast: more)")
    themes: list[dict[str, str]] = []
    for half in (1, 2):
        plain = {pair[0]: pair[half] for pair in PAIR.findall(ordinary)}
        strong = {pair[0]: pair[half] for pair in PAIR.findall(rest)}
        themes += [plain, plain | strong]
    return themes


@pytest.mark.parametrize("theme", themes(), ids=["light", "light+", "dark", "dark+"])
def test_text_and_edges_stand_out_from_what_they_stand_on(
    theme: dict[str, str],
) -> None:
    weak = [
        f"{front} on {back}: {contrast(theme[front], theme[back]):.2f} < {least}"
        for pairs, least in ((READABLE, 4.5), (DISTINCT, 3))
        for front, back in pairs
        if contrast(theme[front], theme[back]) < least
    ]
    assert weak == []


@pytest.mark.parametrize(
    "style",
    [path for path in STYLES if path.name != "tokens.css"],
    ids=lambda path: path.name,
)
def test_only_the_tokens_name_colours_and_sizes(style: Path) -> None:
    found = [
        f"{number}: {line.strip()}"
        for number, line in enumerate(
            style.read_text(encoding="utf-8").splitlines(), start=1
        )
        if not line.startswith(("@media", "    unicode-range"))
        and re.search(
            r"#[0-9a-fA-F]{3,8}\b|\d(px|rem|pt)\b|\b(rgb|hsl|oklch)a?\(", line
        )
    ]
    assert found == []


@pytest.mark.parametrize("style", STYLES, ids=lambda path: path.name)
def test_styles_name_tokens_and_files_that_exist(style: Path) -> None:
    text = style.read_text(encoding="utf-8")
    defined = set(re.findall(r"(--[\w-]+):", TOKENS + text))
    assert set(re.findall(r"var\((--[\w-]+)", text)) <= defined
    for target in re.findall(r'url\("([^"]+)"\)', text):
        assert (style.parent / target).resolve().is_file(), target


@pytest.mark.parametrize(
    "page", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates"))
)
def test_templates_hold_nothing_a_strict_policy_refuses(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<style\b|\sstyle=|\son\w+=|javascript:", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)


def test_templates_name_icons_that_the_sprite_has() -> None:
    sprite = (STATIC / "img" / "icons.svg").read_text(encoding="utf-8")
    icons = set(re.findall(r'<symbol id="([\w-]+)"', sprite))
    used = {
        name
        for page in TEMPLATES
        for name in re.findall(
            r'includes/icon\.html" with name="([\w-]+)"',
            page.read_text(encoding="utf-8"),
        )
    }
    assert used <= icons
