"""Whole trials: what goes wrong in one ends it and no other; which files are kept beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.exported import exported
from tests.support.project import Project

GOOD = """
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted: [{say: ok}]
    """
BAD = """
    input: {turns: [{content: one, assertions: [{contains: ok}]}, {content: two}]}
    scripted:
      - steps: [{run: 'COMMAND'}]
        say: ok
    """


@pytest.mark.parametrize(
    "command",
    [
        'cd / && rm -r "$OLDPWD"',
        'cd / && rm -r "$OLDPWD" && touch "$OLDPWD"',
        'cd / && rm -r "$OLDPWD" && ln -s ELSEWHERE "$OLDPWD"',
    ],
)
def test_a_workspace_that_the_agent_destroys_is_an_error_of_that_case(
    project: Project, tmp_path: Path, command: str
) -> None:
    """Also where it became a link: nothing is done behind it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious.txt").touch()
    bad = BAD.replace("COMMAND", command.replace("ELSEWHERE", str(elsewhere)))
    project.write({"eval.yaml": "name: x\n", "cases/bad.yaml": bad, "cases/good.yaml": GOOD})

    outcome = project.run("run", ".", "--json")

    assert outcome.exit_code == 3, outcome.stderr
    cases = {case["case_id"]: case for case in outcome.data["cases"]}
    assert cases["good"]["status"] == "PASS"
    assert cases["bad"]["status"] == "ERROR"
    assert cases["bad"]["error"]["kind"] == "setup"
    assert [turn["status"] for turn in cases["bad"]["turns"]] == ["error", "skipped"]
    assert [path.name for path in elsewhere.iterdir()] == ["precious.txt"]
    assert "Traceback" not in outcome.stderr


def test_a_turn_that_outlasts_the_conversation_is_told_of_the_limit_as_it_was_given(
    project: Project,
) -> None:
    case = """
        timeout_seconds: 2
        input: {turns: [one, two]}
        assertions: [{contains: ok}]
        scripted:
          - {turn: 1, say: ok}
          - {turn: 2, say: never, misbehave: {hang: true}}
        """
    own = "input: {turns: [{content: x, timeout_seconds: 1.5}]}\nassertions: [{contains: ok}]\n"
    own += "scripted: [{say: never, misbehave: {hang: true}}]\n"
    project.write({"eval.yaml": "name: x\n", "cases/all.yaml": case, "cases/own.yaml": own})

    cases = project.run("run", ".", "--json").data["cases"]

    assert [case["error"]["kind"] for case in cases] == ["timeout", "timeout"]
    assert "no answer within the conversation's 2 s; it was ended" in cases[0]["error"]["message"]
    assert "no answer within 1.5 s; it was ended" in cases[1]["error"]["message"]


# `collect_artifacts`.

KEPT = """
    context: {files: {"kept.md": here, "sub/deep.json": "{}", "other.txt": no}}
    collect_artifacts: ["*.md", "**/*.json"]
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted:
      - steps: [{write: {path: made.md, content: new}}, {run: "ln -s /etc link.md"}]
        say: ok
    """


def test_files_that_the_globs_match_are_copied_with_their_paths_though_the_trial_failed(
    project: Project,
) -> None:
    suite = "name: x\ncases: {defaults: {collect_artifacts: ['*.txt']}}\n"
    project.write({"eval.yaml": suite, "cases/a.yaml": KEPT.replace("contains: ok", "contains: x")})
    assert project.run("run", ".").exit_code == 1
    files = exported(project.latest_run()) / "trials" / "a" / "scripted/with_skill/1/files"
    found = {p.relative_to(files).as_posix(): p.read_text() for p in files.rglob("*.*")}
    copied = {"kept.md": "here", "made.md": "new", "sub/deep.json": "{}"}
    assert found == {**copied, "other.txt": "no"}


def test_secrets_are_masked_in_contents_and_names(project: Project) -> None:
    case = """
        collect_artifacts: ["**"]
        input: {prompt: go}
        assertions: [{contains: ok}]
        scripted:
          - steps: [{run: 'mkdir "d-$LAB_KEY" && echo "<$LAB_KEY>" > "d-$LAB_KEY/f-$LAB_KEY"'}]
            say: ok
        """
    suite = "name: x\nenvironment: {env: {LAB_KEY: literal-secret-1}}\n"
    project.write({"eval.yaml": suite, "cases/a.yaml": case})
    assert project.run("run", ".").exit_code == 0
    run = exported(project.latest_run())
    files = run / "trials" / "a" / "scripted" / "with_skill" / "1" / "files"
    assert (files / "d-***LAB_KEY***" / "f-***LAB_KEY***").read_text() == "<***LAB_KEY***>\n"
    assert not [path for path in run.rglob("*") if "literal-secret-1" in path.name]
    written = [path for path in run.rglob("*") if path.is_file()]
    assert not [path for path in written if b"literal-secret-1" in path.read_bytes()]
