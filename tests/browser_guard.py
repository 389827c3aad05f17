"""Pytest plugin: a run that must include the browser tests fails without them.

`.ci/run` sets STRATA_REQUIRE_BROWSER=true, so that a machine whose Chromium does not
start cannot pass by skipping.
"""

import os

import pytest

FOLDER = "tests/browser/"
PASSED = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with none."""
    config.stash[PASSED] = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Count the browser tests that pass."""
    report = yield
    if report.when == "call" and report.passed and item.nodeid.startswith(FOLDER):
        item.config.stash[PASSED] += 1
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail the run if they were required and none passed."""
    required = os.environ.get("STRATA_REQUIRE_BROWSER") == "true"
    if required and exitstatus == pytest.ExitCode.OK and lacking(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say that they did not run where that matters."""
    if os.environ.get("STRATA_REQUIRE_BROWSER") == "true" and lacking(config):
        terminalreporter.line("No browser test ran, and this run requires them.")


def lacking(config: pytest.Config) -> bool:
    """Tell whether no browser test passed."""
    return not config.stash[PASSED]
