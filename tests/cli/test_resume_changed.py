"""`--resume` after the suite's files have changed: the run stays what it was asked to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.app.interruption import case_digests
from tests.support.plans import a_plan
from tests.support.project import Outcome, Project
from tests.support.stored import content_of

PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")


@pytest.fixture
def stopped(project: Project) -> Project:
    """Of three cases, one passed, one failed and one was not run."""
    files = {"eval.yaml": "name: d\n", "a.yaml": PASS, "b.yaml": FAIL, "c.yaml": PASS}
    project.write(files)
    outcome = project.run("run", ".", "--out", "out", "-j", "1", "--max-fail", "1")
    assert outcome.exit_code == 1
    return project


def test_a_case_that_failed_cannot_be_lost_by_removing_or_changing_its_file(
    stopped: Project,
) -> None:
    result = (stopped.root / "out/result.json").read_bytes()
    (stopped.root / "b.yaml").unlink()
    outcome = stopped.run("run", "--resume", "out")
    assert outcome.exit_code == 2
    assert "there no longer: b/scripted/with_skill/1" in outcome.stderr
    stopped.write({"b.yaml": PASS})
    outcome = stopped.run("run", "--resume", "out")
    assert outcome.exit_code == 2
    assert "of which trials have finished were changed since: b (1 trial)" in outcome.stderr
    assert "skillup judge RUN --cases" in outcome.stderr
    assert (stopped.root / "out/result.json").read_bytes() == result
    stopped.write({"b.yaml": FAIL + "# the same but for this\n"})
    assert stopped.run("run", "--resume", "out").exit_code == 1


def test_a_case_that_was_not_run_yet_may_be_mended_but_not_once_it_ran(stopped: Project) -> None:
    """A secret in it makes no other case of it."""
    stopped.write({"c.yaml": PASS.replace("prompt: hi", "prompt: by sk-0123456789")})
    for _ in range(2):  # the second time c's record is looked at
        outcome = stopped.run("run", "--resume", "out", "--json", env={"LAB_KEY": "sk-0123456789"})
        assert outcome.exit_code == 1, outcome.stderr
        assert [case["status"] for case in outcome.data["cases"]] == ["PASS", "FAIL", "PASS"]
    stopped.write({"c.yaml": PASS})
    outcome = stopped.run("run", "--resume", "out")
    # It is the case that the run began with, but not the one that its trial ran by.
    assert outcome.exit_code == 2
    assert "c (1 trial)" in outcome.stderr


def test_a_case_whose_trials_all_met_an_error_may_be_mended_and_run_again(project: Project) -> None:
    broken = PASS + 'context: {setup: ["exit 1"]}\n'
    project.write({"eval.yaml": "name: d\n", "a.yaml": broken})
    assert project.run("run", ".", "--out", "out").exit_code == 3
    project.write({"a.yaml": PASS})
    assert project.run("run", "--resume", "out").exit_code == 2
    outcome = project.run("run", "--resume", "out", "--retry-errors")
    assert outcome.exit_code == 0, outcome.stderr


def test_a_variable_that_was_a_secret_is_asked_for_again_and_never_sent_masked(
    project: Project,
) -> None:
    key, sent = "sk-0123456789-abcdef", project.root / "sent"
    case = """
        vars: {key: none, who: you}
        input: {prompt: "<<who>>"}
        context: {files: {k: "<<key>>"}, setup: ['cat k >> SENT']}
        assertions: [{contains: no}]
        scripted: [{say: well}]
        """.replace("SENT", str(sent))
    project.write({"eval.yaml": "name: d\n", "a.yaml": case, "b.yaml": case})
    given = ["--var", f"key={key}", "--var", "who=me"]
    first = ["run", ".", "--out", "out", "-j", "1", "--max-fail", "1"]

    def run(*arguments: str) -> Outcome:
        return project.run(*arguments, env={"LAB_KEY": key})

    assert run(*first, *given).exit_code == 1
    refused = run("run", "--resume", "out")
    assert refused.exit_code == 2
    assert "--var key: its value was a secret" in refused.stderr
    assert "give it again: --resume RUN --var key=VALUE" in refused.stderr
    assert run("run", "--resume", "out", *given).exit_code == 2, "who was kept"
    assert run("run", "--resume", "out", "--var", f"key={key}", "--max-fail", "9").exit_code == 1
    assert sent.read_text() == key * 2
    assert key.encode() not in content_of(project.root / "out")


def test_a_suite_that_was_moved_and_variables_change_no_case(tmp_path: Path) -> None:
    case = {"input": {"prompt": "<<who>>"}, "vars": {"who": "you"}, "context": {"fixture": "f"}}
    here, there = (a_plan(tmp_path / name, {"a": case}) for name in ("here", "there"))
    assert case_digests(here.jobs) == case_digests(there.jobs)
    changed = a_plan(tmp_path / "changed", {"a": case | {"max_turns": 3}})
    assert case_digests(changed.jobs) != case_digests(here.jobs)
