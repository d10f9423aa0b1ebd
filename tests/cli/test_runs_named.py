"""A run is called the same wherever one is taken."""

from __future__ import annotations

import pytest

from tests.support.project import Project

CASE = "input: {prompt: hi}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two runs."""
    found = Project(tmp_path_factory.mktemp("named"))
    found.write({"s/eval.yaml": "name: s\n", "s/a.yaml": CASE})
    for _ in range(2):
        assert found.run("run", "s").exit_code == 0
    return found


TAKES_A_RUN = {
    "judge": ("judge", "RUN"),
    "resume": ("run", "--resume", "RUN"),
    "show": ("show", "RUN"),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", list(TAKES_A_RUN))
def test_last_ids_and_their_beginnings_are_runs_everywhere(project: Project, verb: str) -> None:
    newest = project.latest_run()
    name = newest.name
    for called in ("last", name, name[:-1], f".skillup/runs/{name}", str(newest)):
        outcome = project.run(*(called if x == "RUN" else x for x in TAKES_A_RUN[verb]))
        assert outcome.exit_code == 0, (called, outcome.stderr)


@pytest.mark.parametrize("verb", list(TAKES_A_RUN))
def test_what_is_no_run_is_told_with_those_that_are(project: Project, verb: str) -> None:
    none = project.run(*("zz" if x == "RUN" else x for x in TAKES_A_RUN[verb]))
    assert none.exit_code == 2
    assert "hint: give a run" in none.stderr
    assert project.latest_run().name in none.stderr

    year = project.latest_run().name[:2]
    several = project.run(*(year if x == "RUN" else x for x in TAKES_A_RUN[verb]))
    assert several.exit_code == 2
    assert f" runs begin with {year}\n  hint: say more of it: {year}" in several.stderr
