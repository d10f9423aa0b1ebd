"""`judge --write`, `--since`, `--promote`, `show --judgement`: judgements beside a run's grades."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.store import RunDirectory
from tests.support.project import Project

SUITE = """
    name: logs
    judge: {model: "scripted:judges/own.yaml"}
"""
CASE = """
    id: NAME
    input:
      turns:
        - content: Delete the logs
          assertions: [It asks before it deletes]
    scripted: [{turn: 1, say: "SAID"}]
"""
OWN = """
    criteria: [{when: asks before, found: shall i}]
"""
STRICT = """
    criteria: [{when: asks before, found: "shall i.*data/"}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, indexed=True)
    project.write({"cases/eval.yaml": SUITE, "cases/judges/own.yaml": OWN, "strict.yaml": STRICT})
    said = {"asks": "Shall I?", "names": "Shall I delete data/?"}
    for name, text in said.items():
        project.write({f"cases/{name}.yaml": CASE.replace("NAME", name).replace("SAID", text)})
    assert project.run("run", "cases", "--out", "run").exit_code == 0
    return project


def statuses(data: Any) -> dict[str, str]:
    graded = (one.get("grade", one) for one in data)
    return {grade["case_id"]: grade["status"] for grade in graded}


STRICTLY = ("--judge-model", "scripted:strict.yaml")
BEFORE = {"asks": "PASS", "names": "PASS"}
AFTER = {"asks": "FAIL", "names": "PASS"}


def test_a_judgement_is_kept_shown_compared_with_and_promoted(project: Project) -> None:
    run = project.root / "run"
    kept = project.run("judge", "run", *STRICTLY, "--write", "strict")
    assert (kept.exit_code, "1 with another verdict" in kept.stderr) == (1, True), kept.stderr

    shown = project.run("show", "run", "*", "--judgement", "strict", "--json").data["trials"]
    assert statuses(shown) == AFTER
    assert statuses(project.run("show", "run", "*", "--json").data["trials"]) == BEFORE
    same = project.run("judge", "run", *STRICTLY, "--since", "strict")
    assert "nothing changed" in same.stderr
    back = project.run("judge", "run", "--since", "strict", "--json").data
    assert (back["changes"]["statuses"], back["since"]) == (1, "strict")

    promoted = project.run("judge", "run", "--promote", "strict")
    assert (promoted.exit_code, "strict is the grades of 2 trials" in promoted.stderr) == (0, True)
    result = json.loads((run / "result.json").read_text())
    assert (result["finished"], statuses(result["cases"])) == (True, AFTER)
    assert (result["summary"]["pass"], result["analysis"]["cases"][0]["rate"]["passed"]) == (1, 0)
    assert "1/2" in project.run("runs", "list").stdout
    again = project.run("judge", "run", *STRICTLY)
    assert (
        "the run's grades are those of its judgement strict (scripted:strict.yaml)" in again.stderr
    )
    assert "nothing changed" in again.stderr

    # The first grades stay, whatever is promoted later.
    assert project.run("judge", "run", *STRICTLY, "--write", "other").exit_code == 1
    assert project.run("judge", "run", "--promote", "other").exit_code == 0
    first = project.run("show", "run", "*", "--judgement", "original", "--json").data["trials"]
    assert statuses(first) == BEFORE
    assert project.run("judge", "run", "--promote", "original").exit_code == 0
    assert statuses(json.loads((run / "result.json").read_text())["cases"]) == BEFORE
    assert "run's grades are those" not in project.run("judge", "run").stderr
    with RunDirectory.open(run) as stored:
        assert stored.judgements() == ["original", "other", "strict"]


REFUSED = (
    (("judge", "run", "--write", "original"), "no name for a judgement"),
    (("judge", "run", "--write", "a b"), "no name for a judgement"),
    (("judge", "run", "--write", ".."), "no name for a judgement"),
    (("judge", "run", "--write", "recorded"), "no name for a judgement"),
    (("judge", "run", "--write", "part"), "it is there already"),
    (("judge", "run", "--promote", "part"), "it has no grade of asks"),
    (("judge", "run", "--promote", "broken"), "its judge failed on"),
    (("judge", "run", "--promote", "none"), "there are: broken, part"),
    (("judge", "run", "--since", "none"), "there are: broken, part"),
    (("show", "run", "--judgement", "none"), "there are: broken, part"),
    (("judge", "run", "--write", "x", "--against", "a:b"), "--prefer: give one"),
    (("judge", "run", "--show-prompt", "--estimate"), "--prefer: give one"),
    (("judge", "s3://bucket/run", "--promote", "part"), "is a URL"),
    (("judge", "s3://bucket/run", "--write", "x"), "is for a run that is here"),
)


def test_what_does_not_fit_the_run_is_refused(project: Project) -> None:
    project.write({"broken.yaml": json.dumps({"rules": [{"when": "asks", "error": "late"}]})})
    assert project.run("judge", "run", "-k", "names", "--write", "part").exit_code == 0
    broken = ("--judge-model", "scripted:broken.yaml", "--write", "broken")
    assert project.run("judge", "run", *broken).exit_code == 3
    before = (project.root / "run/result.json").read_bytes()
    for options, told in REFUSED:
        outcome = project.run(*options)
        assert (outcome.exit_code, told in outcome.stderr) == (2, True), outcome.stderr
    assert (project.root / "run/result.json").read_bytes() == before


def test_a_run_that_is_not_finished_or_is_being_written_is_left_alone(project: Project) -> None:
    assert project.run("judge", "run", "--write", "one").exit_code == 0
    with RunDirectory.open(project.root / "run", writable=True):
        for options in (("--write", "two"), ("--promote", "one")):
            assert project.run("judge", "run", *options).exit_code == 2
    path = project.root / "run/result.json"
    result = json.loads(path.read_text())
    path.write_text(
        json.dumps({**result, "finished": False, "not_run": ["x/scripted/with_skill/1"]})
    )
    outcome = project.run("judge", "run", "--promote", "one")
    assert (outcome.exit_code, "not finished" in outcome.stderr) == (2, True)
