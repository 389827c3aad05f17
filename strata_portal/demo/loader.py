"""Load the demo: people, knowledge bases with layers, who sees what, and the files.

People, knowledge bases and grants come once, in one transaction. Files are added one by
one, so an interrupted load goes on where it stopped. A later load changes nothing that
somebody has changed since: a source that was deleted stays deleted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q

from knowledge.actions import (
    DuplicateError,
    Upload,
    create_knowledge_base,
    upload_source,
)
from knowledge.ingest import run_ingest
from knowledge.models import (
    AuditEntry,
    IngestRun,
    KnowledgeBase,
    Layer,
    Source,
    User,
)
from knowledge.models.audit import record
from knowledge.models.ingest import OPEN_STATES
from knowledge.permissions import Access, deny, grant
from strata_portal.demo.manifest import (
    DemoFile,
    DemoHolder,
    DemoKnowledgeBase,
    DemoLayer,
    DemoPerson,
    Manifest,
    read_manifest,
)

Progress = Callable[[str], None]


class DemoError(Exception):
    """The demo cannot be loaded here; the message says why and what to do."""


# The audit entry that tells a demo set up before from one that is not there yet.
SET_UP = "set up the demo"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load found and did.

    `people` are the user names that this load made, with the password given to it.
    `added` counts the sources that it uploaded.
    """

    administrator: User
    people: tuple[str, ...]
    added: int


def load_demo(*, password: str, progress: Progress) -> Loaded:
    """Load what is missing of the demo and queue its ingest; raises DemoError.

    `password` becomes that of every demo person, the first time only. The demo's
    administrator is the installation's first one; where there is none, one is made.
    """
    manifest = read_manifest()
    administrator = first_administrator()
    people: tuple[str, ...] = ()
    if not AuditEntry.objects.filter(verb=SET_UP).exists():
        administrator, people = set_up(
            manifest, administrator, password=password, progress=progress
        )
    if administrator is None:
        raise DemoError(
            "This installation has no active administrator. Make one with "
            "`python manage.py createsuperuser`, then load the demo again."
        )
    added = sum(
        load_layer(knowledge_base, layer, actor=administrator, progress=progress)
        for knowledge_base in manifest.knowledge_bases
        for layer in knowledge_base.layers
    )
    progress(
        f"Demo: {added} files added, {len(manifest.files)} in all."
        if added
        else "Demo: all files are loaded."
    )
    return Loaded(administrator, people, added)


def first_administrator() -> User | None:
    """Return the oldest active administrator, or None."""
    return User.objects.filter(is_active=True, is_superuser=True).order_by("pk").first()


@transaction.atomic
def set_up(
    manifest: Manifest,
    administrator: User | None,
    *,
    password: str,
    progress: Progress,
) -> tuple[User, tuple[str, ...]]:
    """Make people, knowledge bases and grants.

    Returns the administrator and the user names made.
    """
    refuse_taken_names(manifest)
    made = []
    if administrator is None:
        administrator = create_person(manifest.administrator, password=password)
        made.append(administrator)
    people = [create_person(person, password=password) for person in manifest.people]
    for knowledge_base in manifest.knowledge_bases:
        build_knowledge_base(knowledge_base, actor=administrator)
    for group in manifest.groups:
        give_access(group, to=group_of(group.name), actor=administrator)
    for person, user in zip(manifest.people, people, strict=True):
        give_access(person.access, to=user, actor=administrator)
    record(administrator, SET_UP, administrator)
    progress(
        f"Demo: {len(manifest.knowledge_bases)} knowledge bases and "
        f"{len(people)} readers made."
    )
    return administrator, tuple(user.get_username() for user in [*made, *people])


def refuse_taken_names(manifest: Manifest) -> None:
    """Raise DemoError where an installation already uses a name of the demo."""
    bases = manifest.knowledge_bases
    taken = KnowledgeBase.objects.filter(
        Q(slug__in=[base.slug for base in bases])
        | Q(name__in=[base.name for base in bases])
    ).values_list("name", flat=True)
    people = User.objects.filter(
        username__in=[person.access.name for person in manifest.people]
    ).values_list("username", flat=True)
    names = [*taken, *people]
    if names:
        raise DemoError(
            "The demo is for a new installation; this one already has "
            f"{', '.join(sorted(names))}. Rename these, or go on without the demo."
        )


def create_person(person: DemoPerson, *, password: str) -> User:
    """Make one person with their groups."""
    user = User.objects.create_user(
        username=person.access.name,
        password=password,
        first_name=person.first_name,
        last_name=person.last_name,
        is_staff=person.staff,
        is_superuser=person.superuser,
    )
    user.groups.set(group_of(name) for name in person.groups)
    record(None, "created", user)
    return user


def group_of(name: str) -> Group:
    """Return the group of that name, made if there is none."""
    group, _created = Group.objects.get_or_create(name=name)
    return group


def build_knowledge_base(wanted: DemoKnowledgeBase, *, actor: User) -> None:
    """Make one knowledge base with its layers."""
    knowledge_base = create_knowledge_base(
        name=wanted.name,
        slug=wanted.slug,
        description=wanted.description,
        actor=actor,
    )
    for layer in wanted.layers:
        row, created = Layer.objects.update_or_create(
            knowledge_base=knowledge_base, name=layer.name, defaults=layer.options
        )
        if created:
            record(actor, "created", row)


def give_access(holder: DemoHolder, *, to: User | Group, actor: User) -> None:
    """Write the grants and denies of one group or person."""
    for knowledge_base in named(holder.reads):
        grant(knowledge_base, [Access.LIST, Access.SEARCH], to=to, actor=actor)
    for knowledge_base in named(holder.lists):
        grant(knowledge_base, [Access.LIST], to=to, actor=actor)
    for knowledge_base in named(holder.denied):
        deny(knowledge_base, to=to, actor=actor)


def named(slugs: Iterable[str]) -> list[KnowledgeBase]:
    """Return knowledge bases by slug."""
    return [KnowledgeBase.objects.get(slug=slug) for slug in slugs]


def load_layer(
    knowledge_base: DemoKnowledgeBase,
    layer: DemoLayer,
    *,
    actor: User,
    progress: Progress,
) -> int:
    """Upload the files that a layer lacks; return how many."""
    row = Layer.objects.filter(
        knowledge_base__slug=knowledge_base.slug, name=layer.name
    ).first()
    if row is None:
        return 0
    known = paths_seen(row)
    missing = [file for file in layer.files if file.path not in known]
    for number, file in enumerate(missing, start=1):
        try:
            upload(file, row, purpose=layer.purpose, actor=actor)
        except DuplicateError as error:
            progress(f"Demo: {error}")
        else:
            progress(f"Demo: {row}, {number} of {len(missing)}: {file.title}")
    return len(missing)


def paths_seen(layer: Layer) -> set[str]:
    """Return the paths that a layer holds, and those deleted from its knowledge base."""
    present = Source.objects.filter(layer=layer).values_list("path", flat=True)
    deleted = AuditEntry.objects.filter(
        verb="deleted",
        target_type="source",
        knowledge_base_id=layer.knowledge_base_id,
    ).values_list("detail__path", flat=True)
    return {*present, *deleted}


def upload(file: DemoFile, layer: Layer, *, purpose: str, actor: User) -> None:
    """Take one file in as a source, as an upload in the admin would."""
    modified_at = datetime.combine(file.date, time(), tzinfo=UTC) if file.date else None
    with file.location.open("rb") as opened:
        upload_source(
            Upload(file=opened, name=file.path, modified_at=modified_at),
            layer=layer,
            title=file.title,
            purpose=purpose,
            actor=actor,
        )


def ingest_demo(*, progress: Progress) -> bool:
    """Carry the demo's open runs in this process, as the worker would.

    Returns whether all are done; what waits for the model server stays queued.
    """
    slugs = [base.slug for base in read_manifest().knowledge_bases]
    runs = IngestRun.objects.filter(
        source__knowledge_base__slug__in=slugs, state__in=OPEN_STATES
    )
    ids = list(runs.order_by("pk").values_list("pk", flat=True))
    for number, run_id in enumerate(ids, start=1):
        run_ingest(run_id)
        source = Source.objects.get(runs=run_id)
        progress(
            f"Demo: {number} of {len(ids)}: {source.title}: "
            f"{source.get_state_display()}, passages: {source.passage_count}"
            f"{f' ({source.state_reason})' if source.state_reason else ''}"
        )
    return not runs.exists()
