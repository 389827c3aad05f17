"""What `manifest.toml` says: the demo's knowledge bases, files, groups and people."""

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CORPUS = FOLDER / "corpus"
MANIFEST = FOLDER / "manifest.toml"


@dataclass(frozen=True, slots=True)
class DemoFile:
    """A file of the corpus.

    `path` is its path as citations show it. `date` is given where the file has no
    front matter to say it.
    """

    location: Path
    path: str
    title: str
    language: str
    date: date | None


@dataclass(frozen=True, slots=True)
class DemoLayer:
    """A layer; `options` are fields of its row, `purpose` is that of its sources."""

    name: str
    purpose: str
    options: dict[str, Any]
    files: tuple[DemoFile, ...]


@dataclass(frozen=True, slots=True)
class DemoKnowledgeBase:
    """A knowledge base with its layers; the first layer is the one it is born with."""

    slug: str
    name: str
    description: str
    layers: tuple[DemoLayer, ...]


@dataclass(frozen=True, slots=True)
class DemoHolder:
    """What a group or person is granted and denied, as slugs of knowledge bases.

    `reads` is to list and to search, `lists` is to list alone.
    """

    name: str
    reads: tuple[str, ...]
    lists: tuple[str, ...]
    denied: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """A person; `access.name` is the user name."""

    access: DemoHolder
    first_name: str
    last_name: str
    staff: bool
    superuser: bool
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole demo. `people` are its readers, without the administrator."""

    administrator: DemoPerson
    knowledge_bases: tuple[DemoKnowledgeBase, ...]
    groups: tuple[DemoHolder, ...]
    people: tuple[DemoPerson, ...]

    @property
    def files(self) -> list[DemoFile]:
        """Every file, in the order of the manifest."""
        return [
            file
            for knowledge_base in self.knowledge_bases
            for layer in knowledge_base.layers
            for file in layer.files
        ]


def read_manifest() -> Manifest:
    """Return the manifest; raises KeyError where an entry lacks a key."""
    found = tomllib.loads(MANIFEST.read_text(encoding="utf-8"))
    return Manifest(
        administrator=_person(found["administrator"]),
        knowledge_bases=tuple(
            DemoKnowledgeBase(
                slug=entry["slug"],
                name=entry["name"],
                description=entry["description"],
                layers=tuple(_layer(layer) for layer in entry["layers"]),
            )
            for entry in found["knowledge_bases"]
        ),
        groups=tuple(_holder(entry["name"], entry) for entry in found["groups"]),
        people=tuple(_person(entry) for entry in found["people"]),
    )


def _layer(entry: dict[str, Any]) -> DemoLayer:
    options = dict(entry)
    folder = CORPUS / options.pop("folder")
    return DemoLayer(
        name=options.pop("name"),
        purpose=options.pop("purpose", "documentation"),
        files=tuple(
            DemoFile(
                location=folder / file["file"],
                path=file["file"],
                title=file["title"],
                language=file["language"],
                date=file.get("date"),
            )
            for file in options.pop("files")
        ),
        options=options,
    )


def _person(entry: dict[str, Any]) -> DemoPerson:
    return DemoPerson(
        access=_holder(entry["username"], entry),
        first_name=entry["first_name"],
        last_name=entry["last_name"],
        staff=entry.get("staff", False),
        superuser=entry.get("superuser", False),
        groups=tuple(entry["groups"]),
    )


def _holder(name: str, entry: dict[str, Any]) -> DemoHolder:
    return DemoHolder(
        name=name,
        reads=tuple(entry.get("reads", ())),
        lists=tuple(entry.get("lists", ())),
        denied=tuple(entry.get("denied", ())),
    )
