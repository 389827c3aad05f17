"""Chunks: offsets, cuts, overlap, context and the model's window."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.chunking.chunks import (
    MAX_CONTEXT_TOKENS,
    PRESETS,
    Chunk,
    Preset,
    embedded_text,
)
from knowledge.chunking.cutting import chunk_document
from knowledge.extraction.blocks import Block, BlockKind
from knowledge.extraction.plaintext import read_blocks
from knowledge.sentences import split_sentences
from knowledge.structure.sections import build_sections

SENTENCE = "This sentence is about as long as most sentences in a contract are. "


def count_pieces(texts: Sequence[str]) -> list[int]:
    """Count four characters a token, as subword models do on average."""
    return [-(-len(text) // 4) for text in texts]


def chunk(
    text: str,
    preset: Preset = PRESETS["text"],
    *,
    title: str = "Rules",
    window: int = 512,
    reserved: int = 4,
) -> list[Chunk]:
    blocks = list(read_blocks(text, markdown=True))
    sections = build_sections(text, blocks)
    return chunk_document(
        text, title, blocks, sections, preset, count_pieces,
        window=window, reserved=reserved,
    )  # fmt: skip


words = st.text(alphabet="abcdeĐж", min_size=1, max_size=12)
plain_sentences = st.lists(words, min_size=1, max_size=30).map(
    lambda parts: " ".join(parts).capitalize() + "."
)
paragraphs = st.lists(plain_sentences, min_size=1, max_size=8).map(" ".join)
lines = st.one_of(
    paragraphs,
    st.sampled_from(
        ["# Part", "## Section", "### 3. Clause", "(a) item;", "1.1 Head. X."]
    ),
    st.lists(words, min_size=2, max_size=4).map(
        lambda cells: "| " + " | ".join(cells) + " |"
    ),
    st.text(alphabet="x", min_size=400, max_size=3000),
    st.just("   "),
)
documents = st.lists(lines, min_size=0, max_size=14).map("\n\n".join)
presets = st.sampled_from(
    [
        *PRESETS.values(),
        Preset("small", "characters", 200, 60),
        Preset("few", "tokens", 60, 12),
    ]
)


@pytest.mark.req("S2-CHK-02", "S2-CHK-04", "R9")
@settings(max_examples=150, deadline=None)
@given(documents, presets)
def test_every_character_is_in_a_chunk_and_each_fits(text: str, preset: Preset) -> None:
    chunks = chunk(text, preset, window=128)
    covered = bytearray(len(text))
    for index, one in enumerate(chunks):
        assert one.ordinal == index
        body = text[one.start : one.end]
        assert body == body.strip()
        assert body
        covered[one.start : one.end] = b"x" * len(body)
        if preset.unit == "characters":
            assert len(body) <= preset.size
        (tokens,) = count_pieces([embedded_text(one.context, body)])
        assert tokens <= 128 - 4
        if preset.unit == "tokens":
            assert tokens <= preset.size or tokens <= 128 - 4
    left = [c for c, seen in zip(text, covered, strict=True) if not seen]
    assert not "".join(left).strip()
    for before, after in pairwise(chunks):
        assert before.start <= after.start
        assert before.end < after.end


@pytest.mark.req("S2-CHK-01", "S2-CHK-03", "R9")
@pytest.mark.parametrize(("name", "overlap"), [("voice", 50), ("voice-wide", 100)])
def test_voice_takes_500_tokens_and_repeats_some(name: str, overlap: int) -> None:
    text = " ".join(
        f"The rent of room {number} is due in May." for number in range(400)
    )
    chunks = chunk(text, PRESETS[name], window=1024)
    bodies = [embedded_text(one.context, text[one.start : one.end]) for one in chunks]
    assert 450 < max(count_pieces(bodies)) <= 500
    shared = [text[after.start : before.end] for before, after in pairwise(chunks)]
    assert overlap - 20 < max(count_pieces(shared)) <= overlap


@pytest.mark.req("S2-CHK-02", "R9")
@pytest.mark.parametrize("length", [540, 720])
def test_no_chunk_lies_within_the_one_before_it(length: int) -> None:
    """One word that fills chunks, after sentences short enough to be its overlap."""
    sentences = " ".join(f"{letter} few short words." for letter in "ABCDEFGHIJKLMNO")
    text = f"# Part\n\n{sentences}\n\n{'x' * length}"
    chunks = chunk(text, PRESETS["voice-wide"], window=128)
    for before, after in pairwise(chunks):
        assert before.start <= after.start
        assert before.end < after.end


@pytest.mark.req("S2-CHK-04", "S1-CHK-02")
@settings(max_examples=100, deadline=None)
@given(documents)
def test_cuts_fall_between_sentences_or_are_marked(text: str) -> None:
    blocks = list(read_blocks(text, markdown=True))
    edges = {0, len(text)}
    for block in blocks:
        edges |= {block.start, block.end}
        for start, end in split_sentences(text, block.start, block.end):
            edges |= {start, start + len(text[start:end].rstrip())}
    for one in chunk(text):
        assert one.cut_start or one.start in edges
        assert one.cut_end or one.end in edges


@pytest.mark.req("R9", "S2-CHK-02")
def test_the_overlap_is_the_last_whole_sentences_that_fit() -> None:
    text = " ".join(f"Sentence number {i} has some words in it." for i in range(120))
    chunks = chunk(text)
    spans = split_sentences(text)
    starts = [start for start, _ in spans]
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        assert after.start in starts
        overlap = before.end - after.start
        assert 0 < overlap <= 150
        longer = starts[starts.index(after.start) - 1]
        assert before.end - longer > 150


@pytest.mark.req("R9", "S1-CHK-02")
def test_a_sentence_longer_than_a_chunk_is_cut_at_words_and_marked() -> None:
    text = "Before it. " + " ".join(["word"] * 700) + ". After it."
    chunks = chunk(text)
    assert len(chunks) > 2
    cut = [one for one in chunks if one.cut_end]
    assert cut
    for one in cut:
        assert text[one.end] == " "
        assert text[one.end - 4 : one.end] == "word"
    assert [one.cut_end for one in chunks[:-1]] == [one.cut_start for one in chunks[1:]]


def test_a_word_longer_than_a_chunk_is_cut_between_characters() -> None:
    text = "a\u0301" * 2000
    chunks = chunk(text)
    assert "".join(text[one.start : one.end] for one in chunks) == text
    assert all(text[one.start] == "a" for one in chunks)


def test_a_chunk_does_not_straddle_two_sections_of_some_size() -> None:
    text = "# One\n\n" + SENTENCE * 9 + "\n\n# Two\n\n" + SENTENCE * 9
    first, second = chunk(text)
    assert text[second.start :].startswith("# Two")
    assert first.path == ("One",)
    assert second.path == ("Two",)
    assert second.context == "Rules > Two"


def test_small_sections_share_a_chunk_under_their_common_parent() -> None:
    text = "# Parts\n\n" + "".join(f"## Part {i}\n\n{SENTENCE}\n\n" for i in range(4))
    (only,) = chunk(text)
    assert only.path == ("Parts",)


def test_a_heading_stays_with_what_follows() -> None:
    text = "# One\n\n" + (SENTENCE * 40 + "\n\n## Sub\n\n") * 3 + SENTENCE
    for one in chunk(text):
        assert not text[one.start : one.end].endswith("Sub")


@pytest.mark.req("D8")
def test_the_context_is_title_and_path_and_no_part_of_the_text() -> None:
    text = "# 7. Termination\n\n7.2 Notice. " + SENTENCE * 30
    one = chunk(text, title="Service Agreement")[-1]
    assert one.context == "Service Agreement > 7 Termination > 7.2 Notice"
    assert embedded_text(one.context, "text") == f"{one.context}\ntext"
    assert embedded_text("", "text") == "text"


def test_a_table_that_goes_on_has_its_head_in_the_context() -> None:
    rows = [f"| {i} | {SENTENCE} | {i} EUR |" for i in range(40)]
    text = "| Number | Service | Price |\n" + "\n".join(rows)
    first, second, *_ = chunk(text)
    assert "Number | Service" not in first.context
    assert second.context.endswith("Number | Service | Price")
    assert not second.cut_start


@pytest.mark.req("R9")
def test_a_long_context_is_shortened_before_the_text_is_cut() -> None:
    heading = "A very long heading that says much about little " * 4
    text = f"# {heading}\n\n## {heading}x\n\n" + SENTENCE * 5
    chunks = chunk(text, title="T " * 60, window=160)
    for one in chunks:
        body = text[one.start : one.end]
        (tokens,) = count_pieces([embedded_text(one.context, body)])
        assert tokens <= 156
        assert count_pieces([one.context])[0] <= max(
            MAX_CONTEXT_TOKENS, 156 - len(body) // 4
        )


def test_tokens_are_counted_in_few_calls() -> None:
    calls: list[int] = []

    def count(texts: Sequence[str]) -> list[int]:
        calls.append(len(texts))
        return count_pieces(texts)

    text = " ".join(f"Sentence number {i} has words." for i in range(3000))
    blocks = list(read_blocks(text, markdown=False))
    chunk_document(
        text, "T", blocks, (), PRESETS["voice"], count, window=512, reserved=4
    )
    assert sum(calls) < 8_000
    assert len(calls) < 15


def test_a_blank_document_has_no_chunks() -> None:
    assert chunk("") == []
    assert chunk(" \n\n ") == []


def test_text_between_blocks_is_not_lost() -> None:
    text = "Loose start. Block one. Loose end."
    blocks = [Block(BlockKind.PARAGRAPH, 13, 23)]
    (only,) = chunk_document(
        text, "T", blocks, (), PRESETS["text"], count_pieces, window=512, reserved=4
    )
    assert (only.start, only.end) == (0, len(text))


def test_a_long_log_is_cut_between_lines() -> None:
    text = "\n".join(f"2024-05-01 10:00:00 INFO request {i} served" for i in range(200))
    for one in chunk(text):
        assert text[one.start : one.start + 4] == "2024"
        assert not one.cut_start
        assert not one.cut_end
