"""Pytest plugin: a run that must include the browser tests fails without them.

`.ci/run` sets STRATA_REQUIRE_BROWSER=true, so that a machine whose Chromium does not
start cannot pass by skipping.
"""

import os

import pytest

FOLDER = "tests/browser/"
PASSED = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin with none."""
    config.stash[PASSED] = set()
    config.pluginmanager.register(Count(config.stash[PASSED]))


class Count:
    """Counts the browser tests that pass, whichever process ran them."""

    def __init__(self, passed: set[str]) -> None:
        """Count them in `passed`."""
        self._passed = passed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one test."""
        if report.when == "call" and report.passed and report.nodeid.startswith(FOLDER):
            self._passed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail the run if they were required and none passed."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        # One of several processes: their common parent has seen all tests.
        return
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
