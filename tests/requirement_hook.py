"""Pytest plugin: which requirements the passing tests show.

A test carries the ids that it truly shows, at most three, as
`@pytest.mark.req("S1-VER-06")`: lines of the requirements (`S1-VER-06`), rows of the
reliability list (`REL-A1`), decisions (`D12`, `R7`). At the end of a whole run those
of `requirement_ids.txt` are printed that no passing test carried.
"""

import re
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

IDS_FILE = Path(__file__).with_name("requirement_ids.txt")
OTHER_ID = re.compile(r"REL-[A-Z]{1,2}\d{1,2}|[DR]\d{1,2}")
MOST_IDS = 3
PROPERTY = "req"
SHOWN = pytest.StashKey[set[str]]()
COLLECTED = pytest.StashKey[dict[str, tuple[str, ...]]]()


@cache
def known_ids() -> frozenset[str]:
    """Return the ids of `requirement_ids.txt`."""
    return frozenset(IDS_FILE.read_text(encoding="ascii").split())


def problem(ids: tuple[object, ...]) -> str:
    """Return what is wrong with the ids that one test carries, or an empty string."""
    if not ids or len(set(ids)) != len(ids) or len(ids) > MOST_IDS:
        return f"a test carries one to {MOST_IDS} different ids, not {len(ids)}"
    for each in ids:
        if not isinstance(each, str):
            return f"an id is a text, not {each!r}"
        if each not in known_ids() and not OTHER_ID.fullmatch(each):
            return f"{each!r} is neither in {IDS_FILE.name} nor REL-…, D… or R…"
    return ""


def pytest_configure(config: pytest.Config) -> None:
    """Begin with nothing shown."""
    config.stash[SHOWN] = set()
    config.pluginmanager.register(Tally(config.stash[SHOWN]))
    config.stash[COLLECTED] = {}


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Gather the ids of all tests; refuse a run with a wrong one."""
    wrong = []
    for item in items:
        ids = tuple(each for mark in item.iter_markers("req") for each in mark.args)
        if not any(item.iter_markers("req")):
            continue
        if reason := problem(ids):
            wrong.append(f"{item.nodeid}: {reason}")
        config.stash[COLLECTED][item.nodeid] = ids
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put a test's ids into its report, which also reaches another process."""
    report = yield
    ids = item.config.stash[COLLECTED].get(item.nodeid, ())
    report.user_properties.extend((PROPERTY, each) for each in ids)
    return report


class Tally:
    """Notes the ids of the tests whose call passed, whichever process ran them."""

    def __init__(self, shown: set[str]) -> None:
        """Note them in `shown`."""
        self._shown = shown

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the ids of one test."""
        if report.when == "call" and report.passed:
            self._shown.update(
                str(value) for name, value in report.user_properties if name == PROPERTY
            )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the requirements that no passing test carried, after a whole run."""
    if config.option.collectonly or config.args != config.getini("testpaths"):
        return
    missing = sorted(known_ids() - config.stash[SHOWN])
    terminalreporter.section("requirements")
    total = len(known_ids())
    terminalreporter.line(
        f"{total - len(missing)} of {total} are shown by passing tests."
    )
    if missing:
        terminalreporter.line("Not shown: " + " ".join(missing))
