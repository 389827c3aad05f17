"""The demo corpus is whole, extracts to its texts, and loads once."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest
from django.core.management import CommandError, call_command
from django.test import TestCase
from pytest_django.fixtures import Settings

from knowledge.actions import delete_knowledge_base, delete_source, switch_source
from knowledge.chunking.chunks import PRESETS
from knowledge.chunking.cutting import chunk_document
from knowledge.codes import code_keys
from knowledge.extraction import Extracted, Limits, extract
from knowledge.models import (
    AuditEntry,
    IngestRun,
    KnowledgeBase,
    Layer,
    Source,
    User,
)
from knowledge.permissions import Reader
from knowledge.structure.sections import build_sections
from knowledge.tokens import find_token
from strata_portal.demo.build import texts
from strata_portal.demo.loader import DemoError, load_demo
from strata_portal.demo.manifest import (
    CORPUS,
    DemoFile,
    DemoLayer,
    read_manifest,
)
from strata_portal.demo.markup import read_text

MANIFEST = read_manifest()
LAYERS = [layer for base in MANIFEST.knowledge_bases for layer in base.layers]
BUILT = list(texts())
LANGUAGES = {"en", "vi", "pl", "ro", "ru"}
PASSWORD = "correct horse battery staple"


def name_of(value: object) -> str | None:
    """Name a parametrised test by its file."""
    return value.name if isinstance(value, Path) else None


@cache
def extracted(path: Path) -> Extracted:
    """Return what the product reads from a file."""
    return extract(path, path.name, Limits())


def in_order(words: list[str], found: Iterator[str]) -> list[str]:
    """Return the words from the first one on that `found` does not hold in order."""
    for index, word in enumerate(words):
        if word not in found:
            return words[index : index + 8]
    return []


def test_every_file_is_listed_once() -> None:
    """The manifest and the folder agree."""
    listed = [file.location for file in MANIFEST.files]
    assert len(listed) == len(set(listed))
    assert set(listed) == {path for path in CORPUS.rglob("*") if path.is_file()}


def test_every_built_file_has_its_text() -> None:
    """Word and PDF files, and nothing else, are built from a text."""
    built = {path for path in CORPUS.rglob("*") if path.suffix in {".docx", ".pdf"}}
    assert {target for _text, target in BUILT} == built


@pytest.mark.parametrize("suffix", [".docx", ".md", ".pdf"])
def test_all_languages_in_all_formats(suffix: str) -> None:
    """Each format is there in each of the five languages."""
    found = {file.language for file in MANIFEST.files if file.location.suffix == suffix}
    assert found == LANGUAGES


def test_sizes_stay_in_bounds() -> None:
    """The repository carries little: 300 kB for a file, 2 MB in all."""
    sizes = [file.location.stat().st_size for file in MANIFEST.files]
    assert max(sizes) < 300_000
    assert sum(sizes) < 2_000_000


@pytest.mark.parametrize(("text", "target"), BUILT, ids=name_of)
def test_built_file_extracts_to_its_text(text: Path, target: Path) -> None:
    """Each word of the text is extracted, in its order."""
    wanted = read_text(text)
    words = "\n".join(part.text for part in wanted.parts).split()
    found = extracted(target)
    assert in_order(words, iter(found.text.split())) == []
    assert found.title == wanted.title


@pytest.mark.parametrize(("text", "target"), BUILT, ids=name_of)
def test_manifest_tells_the_date_of_a_built_file(text: Path, target: Path) -> None:
    """A file without front matter has its date from the manifest."""
    file = next(file for file in MANIFEST.files if file.location == target)
    assert file.date == read_text(text).updated


@pytest.mark.parametrize(
    "file",
    [file for file in MANIFEST.files if file.location.suffix == ".md"],
    ids=lambda file: file.path,
)
@pytest.mark.req("S1-ING-07")
def test_markdown_has_title_and_date(file: DemoFile) -> None:
    """Front matter gives the title that the manifest lists, and a date."""
    found = extracted(file.location)
    assert found.title == file.title
    assert {"updated", "date"} & set(found.front_matter)


def test_superseding_files_name_files_of_their_knowledge_base() -> None:
    """What a file replaces is there."""
    named = 0
    for base in MANIFEST.knowledge_bases:
        files = [file for layer in base.layers for file in layer.files]
        for file in files:
            replaced = extracted(file.location).front_matter.get("supersedes")
            if replaced:
                named += 1
                assert replaced in {other.path for other in files}
    assert named == 3


@pytest.mark.parametrize(
    ("path", "codes"),
    [
        ("facilities/FM-00-danh-muc-bieu-mau.docx", {"bm12", "qt07a", "xn05"}),
        ("facilities/AC04-access-cards.md", {"ac04", "ls01", "fm09"}),
        ("facilities/QT-07-muon-thiet-bi.md", {"qt07"}),
        ("prices/price-list-analyses-2026.pdf", {"or22", "wa03", "wa03x"}),
        ("prices/bang-gia-kham-2026.docx", {"xm16"}),
        ("prices/tarify-stantsii-2026.md", {"пп1", "рб3"}),
        ("regulations/regulamin-stypendiow.pdf", {"st01", "st04"}),
    ],
)
def test_codes_are_found(path: str, codes: set[str]) -> None:
    """Forms, procedures and articles of price lists are known by their codes."""
    assert codes <= set(code_keys(extracted(CORPUS / path).text))


def test_at_most_three_hundred_passages() -> None:
    """The demo stays small enough to ingest while a newcomer waits."""
    counts = [passages(file, layer) for layer in LAYERS for file in layer.files]
    assert all(counts)
    assert 150 <= sum(counts) <= 300


def passages(file: DemoFile, layer: DemoLayer) -> int:
    """Return into how many passages a file is cut, at four characters a token."""
    found = extracted(file.location)
    chunks = chunk_document(
        found.text,
        found.title,
        found.blocks,
        build_sections(found.text, found.blocks),
        PRESETS[layer.options.get("chunk_preset", "text")],
        lambda texts: [-(-len(text) // 4) for text in texts],
        window=512,
        reserved=8,
    )
    return len(chunks)


def searchable(username: str) -> set[str]:
    """Return the knowledge bases that a demo reader may search."""
    reader = Reader.for_user(User.objects.get(username=username))
    return set(KnowledgeBase.objects.visible_to(reader).values_list("slug", flat=True))


def listed(username: str) -> set[str]:
    """Return the knowledge bases that a demo reader may know of."""
    reader = Reader.for_user(User.objects.get(username=username))
    return set(KnowledgeBase.objects.listed_to(reader).values_list("slug", flat=True))


class LoadedDemoTests(TestCase):
    """The demo in an empty installation, loaded once for all tests of the class."""

    said: ClassVar[list[str]]
    administrator: ClassVar[User]

    @classmethod
    def setUpTestData(cls) -> None:
        """Load the demo."""
        cls.said = []
        loaded = load_demo(password=PASSWORD, progress=cls.said.append)
        cls.administrator = loaded.administrator

    def test_every_layer_and_source_is_there(self) -> None:
        """All that the manifest lists is there and queued, and progress was told."""
        assert Layer.objects.count() == len(LAYERS)
        assert Source.objects.count() == len(MANIFEST.files)
        assert IngestRun.objects.count() == len(MANIFEST.files)
        assert Layer.objects.get(
            knowledge_base__slug="regulations", name="main"
        ).archived_patterns == ["archive/*"]
        assert len(self.said) > len(MANIFEST.files)

    @pytest.mark.req("S3-VIS-02", "S3-VIS-03")
    def test_readers_see_different_parts(self) -> None:
        """Each demo reader shows one rule of visibility."""
        everything = {base.slug for base in MANIFEST.knowledge_bases}
        assert searchable("admin") == listed("admin") == everything
        assert searchable("piotr") == {"facilities", "prices"}
        assert searchable("elena") == {"regulations"}
        assert searchable("oleg") == listed("oleg") == {"regulations", "facilities"}
        assert searchable("linh") == {"regulations", "facilities", "prices"}
        assert searchable("ada") == {"regulations", "facilities", "human-resources"}
        assert listed("ada") == searchable("ada") | {"laboratory"}

    def test_people_have_the_given_password(self) -> None:
        """One password for all, and staff are those who work in the admin."""
        people = list(User.objects.all())
        assert len(people) == len(MANIFEST.people) + 1
        assert all(person.check_password(PASSWORD) for person in people)
        staff = {person.username for person in people if person.is_staff}
        assert staff == {"admin", "piotr"}

    def test_second_load_changes_nothing(self) -> None:
        """Rows, grants and what somebody switched off or deleted stay as they are."""
        switched, deleted = Source.objects.all()[:2]
        switch_source(switched, enabled=False, actor=self.administrator)
        delete_source(deleted, actor=self.administrator)
        before = AuditEntry.objects.count(), Source.objects.count()
        said: list[str] = []

        again = load_demo(password="another password", progress=said.append)

        assert (again.added, again.people) == (0, ())
        assert (AuditEntry.objects.count(), Source.objects.count()) == before
        assert not Source.objects.get(pk=switched.pk).enabled
        assert User.objects.get(username="elena").check_password(PASSWORD)
        assert said == ["Demo: all files are loaded."]


def test_interrupted_load_goes_on_with_what_is_left(
    db: None, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing files are added, not so a deleted knowledge base; --now ingests them."""
    settings.PORTAL_EMBEDS = False

    def stop(line: str) -> None:
        if ", 3 of " in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_demo(password=PASSWORD, progress=stop)
    assert Source.objects.count() == 3
    for knowledge_base in KnowledgeBase.objects.exclude(slug="prices"):
        delete_knowledge_base(knowledge_base, actor=None)

    call_command("load_demo", now=True)

    sources = Source.objects.values_list("layer__name", "state", "passage_count")
    assert {layer for layer, _state, _count in sources} == {"main", "earlier"}
    assert {state for _l, state, _c in sources} == {"ready"}, capsys.readouterr().out
    assert all(count for _layer, _state, count in sources)


def test_command_takes_the_administrator_who_is_there(
    db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An installation keeps its administrator; the password comes from the file."""
    own = User.objects.create_superuser("grace", password="a password of her own")
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")

    call_command("load_demo", password_file=file, token=True)

    assert own.check_password("a password of her own")
    assert len(searchable("grace")) == len(MANIFEST.knowledge_bases)
    assert User.objects.get(username="elena").check_password(PASSWORD)
    out = capsys.readouterr().out
    assert PASSWORD not in out
    token = out.split("API token of grace: ")[1].strip()
    row = find_token(token)
    assert row is not None
    assert row.owner == own


def test_command_tells_the_password_it_drew(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a file the people's password is printed, once."""
    call_command("load_demo")
    password = capsys.readouterr().out.split("ada is ")[1].split()[0]
    assert User.objects.get(username="linh").check_password(password)
    call_command("load_demo")
    assert "password" not in capsys.readouterr().out


def test_taken_name_is_said(db: None) -> None:
    """A knowledge base of somebody else's is never filled with the demo."""
    KnowledgeBase.objects.create(name="Regulations", slug="rules")
    with pytest.raises(DemoError, match="already has Regulations"):
        load_demo(password=PASSWORD, progress=lambda line: None)
    assert not User.objects.exists()


@pytest.mark.parametrize("content", ["", "short\n", None])
def test_command_says_what_is_wrong_with_the_file(
    content: str | None, tmp_path: Path
) -> None:
    """An empty, short or missing password file is a sentence, and nothing is loaded."""
    file = tmp_path / "password"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CommandError, match="password"):
        call_command("load_demo", password_file=file)
