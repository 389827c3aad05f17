"""The hook that ties requirements to the tests that show them."""

from pathlib import Path

import pytest

from tests.requirement_hook import known_ids, problem


def test_the_ids_are_those_of_the_three_documents() -> None:
    assert len(known_ids()) == 263
    assert {each.split("-")[0] for each in known_ids()} == {"S1", "S2", "S3"}


@pytest.mark.parametrize(
    "ids", [("S1-ING-01",), ("S3-VIS-01", "REL-A1", "D29"), ("R7",)]
)
def test_known_ids_are_taken(ids: tuple[str, ...]) -> None:
    assert problem(ids) == ""


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ((), "one to 3"),
        (("S1-ING-01", "S1-ING-02", "S1-ING-03", "S1-ING-04"), "not 4"),
        (("S1-ING-01", "S1-ING-01"), "different"),
        (("S1-ING-99",), "S1-ING-99"),
        (("REL-a1",), "REL-a1"),
        ((12,), "a text"),
    ],
)
def test_other_ids_are_refused(ids: tuple[object, ...], words: str) -> None:
    assert words in problem(ids)


SETTINGS = """
[pytest]
testpaths = checks
addopts = -p no:django -p no:randomly -p no:cacheprovider -p tests.requirement_hook
markers =
    req(*ids): requirements
"""


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """Another project that uses the hook."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    pytester.makeini(SETTINGS)
    pytester.mkdir("checks")
    return pytester


def test_only_passing_tests_of_a_whole_run_show_a_requirement(
    project: pytest.Pytester,
) -> None:
    project.path.joinpath("checks", "test_two.py").write_text(
        "import pytest\n"
        "@pytest.mark.req('S1-ING-01')\ndef test_passes(): pass\n"
        "@pytest.mark.req('S1-ING-02')\ndef test_fails(): assert False\n"
    )
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["1 of 263 are shown by passing tests."])
    (missing,) = (each for each in result.outlines if each.startswith("Not shown:"))
    assert "S1-ING-02" in missing
    assert "S1-ING-01" not in missing


def test_what_other_processes_ran_is_counted_too(project: pytest.Pytester) -> None:
    for number in (1, 2):
        project.path.joinpath("checks", f"test_{number}.py").write_text(
            f"import pytest\n@pytest.mark.req('S1-ING-0{number}')\ndef test(): pass\n"
        )
    result = project.runpytest_subprocess("-n", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["2 of 263 are shown by passing tests."])


def test_a_part_of_the_suite_prints_no_requirements(project: pytest.Pytester) -> None:
    part = project.path / "checks" / "test_one.py"
    part.write_text("def test_passes(): pass\n")
    result = project.runpytest_subprocess(part)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*are shown*")


def test_a_wrong_id_ends_the_run(project: pytest.Pytester) -> None:
    project.path.joinpath("checks", "test_one.py").write_text(
        "import pytest\n@pytest.mark.req('S9-ABC-01')\ndef test_it(): pass\n"
    )
    result = project.runpytest_subprocess()
    result.stderr.fnmatch_lines(["*S9-ABC-01*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
