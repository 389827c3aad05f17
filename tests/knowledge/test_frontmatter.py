"""The YAML head: what is read, and what is refused."""

import datetime

import pytest

from knowledge.frontmatter import (
    MAX_FRONT_MATTER,
    FrontMatterError,
    declared_date,
    parse_front_matter,
    superseded_files,
)


@pytest.mark.req("S1-ING-07")
def test_updated_is_preferred_to_date() -> None:
    head = parse_front_matter(
        "---\ntitle: Rules\ndate: 2024-01-02\nupdated: 2025-03-04\n"
        "supersedes: old/rules.md\n---\n# Rules\n"
    )
    assert head.values["title"] == "Rules"
    assert declared_date(head.values) == datetime.date(2025, 3, 4)
    assert superseded_files(head.values) == ("old/rules.md",)


def test_date_is_used_when_updated_is_absent_or_no_date() -> None:
    assert declared_date({"updated": "soon", "date": "2024-01-02T10:00"}) == (
        datetime.date(2024, 1, 2)
    )
    assert declared_date({"date": "2024-13-45"}) is None
    assert declared_date({}) is None


def test_values_stay_as_written() -> None:
    head = parse_front_matter(
        "---\nversion: 1.10\nok: yes\ntags: [a, b]\nx: {y: z}\n---\n"
    )
    assert head.values == {"version": "1.10", "ok": "yes", "tags": ["a", "b"]}


def test_several_files_may_be_superseded() -> None:
    assert superseded_files({"supersedes": ["a.md", " b.md "]}) == ("a.md", "b.md")
    assert superseded_files({"supersedes": "a.md, b.md"}) == ("a.md", "b.md")


@pytest.mark.parametrize(
    "text",
    [
        "no head",
        "---\nno end",
        "text\n---\na: b\n---\n",
        "---\n\nTwo rules around a paragraph.\n\n---\n",
    ],
)
def test_a_text_without_a_head_is_left_whole(text: str) -> None:
    head = parse_front_matter(text)
    assert (head.values, head.body_start) == ({}, 0)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("a: &x [1]\nb: *x", "aliases"),
        ("a: [b", "not valid YAML"),
        ("a: !!python/object/apply:os.system [ls]", "not valid YAML"),
        ("a: " + "[" * 40 + "]" * 40, "nested too deeply"),
        ("a: " + "x" * MAX_FRONT_MATTER, "longer than"),
    ],
)
def test_a_dangerous_or_broken_head_is_refused(source: str, why: str) -> None:
    with pytest.raises(FrontMatterError, match=why):
        parse_front_matter(f"---\n{source}\n---\nbody")
