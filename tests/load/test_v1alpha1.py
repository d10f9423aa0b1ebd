"""skill-up's files keep skill-up's verdicts: one suite for each row, all held in one run.

The wanted outcomes were looked up in its source (`internal/judge`, `internal/evaluator`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project

Part = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A suite of one case, and what skill-up says of it."""

    name: str
    wanted: str
    case: Part
    says: tuple[str, ...] = ("Done.",)
    suite: Part = field(default_factory=dict)
    script: str = ""
    ours: str | None = None
    """What the same suite gets without `schema_version`, where that is not the same."""


def rules(**judge: Any) -> Part:
    return {"judge": {"type": "rule_based", **judge}}


def by_script(**judge: Any) -> Part:
    path = "evals/judge.sh"
    return {"judge": {"type": "script", "script_path": path, "timeout_seconds": 20, **judge}}


def by_agent(met: int, **judge: Any) -> Part:
    """An agent judge with three criteria, of which so many are met."""
    told = [
        {"id": f"criterion-{n}", "pass": n <= met, "reason": "so", "evidence": ["Done."]}
        for n in (1, 2, 3, 4)
    ]
    criteria = ["a", "b", "c", "d"]
    said = [{"say": json.dumps({"criteria": told})}]
    model = {"type": "agent_judge", "model": "anthropic/m", "criteria": criteria}
    return {"judge": {**model, "scripted": said, **judge}}


def turns(*contents: Any) -> Part:
    parts = [one if isinstance(one, dict) else {"content": one} for one in contents]
    return {"input": {"turns": [{"role": "user", **part} for part in parts]}}


def contains(text: str) -> Part:
    return {"output_contains": {"any": [text]}}


ASKED = turns("Q1", "Q2")
PLAYED: Part = {"user_simulator": {"model": "scripted:evals/user.yaml"}}
LED: Part = {"user_simulator": {"scenario": "You want tea."}}
OUTPUT = contains("Error")
GATED = {
    "content": "x",
    "post_condition": {"must_contain_any": ["Yes"], "on_fail": "skip_remaining"},
}
SENTENCE = {"expect": {"must_contain": ["Done"]}}
STEPS: Part = {"scripted": [{"steps": [{"run": "true"}, {"run": "true"}], "say": "Done."}]}

ROWS = [
    # Letter case: strings.Contains in expect.go, rule_based.go and multiturn.go.
    Row("expect-is-exact", "FAIL", {"expect": {"must_contain": ["DONE"]}}, ours="PASS"),
    Row("forbidden-is-exact", "PASS", {"expect": {"must_not_contain": ["DONE"]}}, ours="FAIL"),
    Row("rule-is-exact", "FAIL", rules(success=[contains("done")]), ours="PASS"),
    Row("failure-is-exact", "PASS", rules(failure=[contains("DONE")]), ours="FAIL"),
    Row("turn-is-exact", "FAIL", {**turns("a"), **rules(success=[
        {"turn_response_contains": {"turn": 1, "contains_any": ["DONE"]}}])}, ours="PASS"),
    Row("gate-is-exact", "FAIL", {**turns({"content": "a", "post_condition": {
        "must_contain_any": ["DONE"]}}, "b"), **SENTENCE}, ("Done.", "Done."), ours="PASS"),
    Row("file-is-exact", "FAIL", {"expect": {"file_contains": [{"path": "a", "content": "HI"}]},
        "scripted": [{"steps": [{"write": {"path": "a", "content": "hi"}}], "say": "Done."}]},
        ours="PASS"),
    Row("argument-is-exact", "FAIL", {**rules(success=[{"tool_called": {
        "kind": "shell", "args": {"command": {"equals": "TRUE"}}}}]), **STEPS}, ours="PASS"),
    Row("argument-is-exact-in-a-turn", "PASS", {**turns("a"), **rules(success=[contains("Done"), {
        "tool_not_called_in_turn": {"turn": 1, "kind": "shell", "args": {"command": "TRUE"}}}]),
        **STEPS}, ours="FAIL"),
    # Rules: evaluateAssertion, and NewResult(nil): no assertions is a pass.
    Row("failure-only", "PASS", rules(failure=[OUTPUT]), ours="FAIL"),
    Row("failure-only-matched", "FAIL", rules(failure=[OUTPUT]), ("An Error.",)),
    Row("keys-without-effect", "PASS", SENTENCE, suite={
        "environment": {"type": "none", "image": "x", "kwargs": {"a": "b"}},
        "engine": {"name": "scripted", "model": {"provider": "p", "name": "auto"}, "entry": "e"},
        "report": {"formats": ["json"], "artifacts": ["a"]}}),
    Row("no-rules-after-expect", "PASS", {**SENTENCE, **rules()}),
    Row("no-rules", "PASS", rules(), ours="FAIL"),
    Row("nothing-asked", "PASS", {}, ours="FAIL"),
    Row("expect-before-the-suites-judge", "FAIL", SENTENCE, suite=rules(success=[OUTPUT])),
    Row("expect-fails-before-a-judge", "FAIL", {"expect": {"must_contain": ["X"]}}, suite=rules()),
    # Agent judges: DefaultPassThreshold is 0.7, the case's own outranks the suite's.
    Row("three-of-four", "PASS", by_agent(3), ours="FAIL"),
    Row("two-of-four", "FAIL", by_agent(2)),
    Row("threshold-of-the-suite", "PASS", by_agent(2), suite={"judge": {"pass_threshold": 0.5}}),
    Row("threshold-of-the-case", "FAIL", by_agent(3, pass_threshold=0.8)),
    Row("criteria-are-text", "PASS", by_agent(4, criteria=["<<a>>", "{{b}}", "c", "d"])),
    Row("judge-without-limit", "PASS", by_agent(4, timeout_seconds=0)),
    Row("judge-overruns-the-case", "ERROR", {**by_agent(4, scripted=[{
        "steps": [{"delay": 60}], "say": "no"}]), "constraints": {"timeout_seconds": 8}}),
    # Scripts: the exit code alone, script.go.
    Row("script-0", "PASS", by_script(), script="echo fine"),
    Row("script-0-says-fail", "PASS", by_script(), script="echo '{\"score\": 0.1}'", ours="FAIL"),
    Row("script-0-half-json", "PASS", by_script(), script="echo '{\"pas'", ours="ERROR"),
    Row("script-1-in-braces", "FAIL", by_script(), script="echo '{a: 1}'; exit 1", ours="ERROR"),
    Row("script-1-assert", "FAIL", by_script(), script="exec python3 -c 'assert 1 == 2'"),
    Row("script-127", "FAIL", by_script(), script="no-such-command-at-all", ours="ERROR"),
    Row("script-too-slow", "FAIL", by_script(timeout_seconds=1), script="sleep 60", ours="ERROR"),
    Row("script-usual-limit", "PASS", by_script(timeout_seconds=0), script="true"),
    # Captures: the JSONPath's root is the answer.
    Row("capture-json", "PASS", {**turns(
        {"content": "a", "capture": [{"variable": "id", "jsonpath": "$.order['id']"}]}, "{{id}}"),
        "expect": {"must_contain": ["got 7"]}, "scripted": [
            {"turn": 1, "say": '{"order": {"id": 7}}'}, {"when": "7", "say": "got 7"}]},
        ours="ERROR"),
    Row("capture-no-json", "ERROR", {**turns(
        {"content": "a", "capture": [{"variable": "id", "jsonpath": "$.id"}]}, "{{id}}"),
        **SENTENCE}, ("Done.", "Done.")),
    # FinalMessage is the last answer; a gate that skips the rest leaves the verdict to the judge.
    Row("said-before", "PASS", {**ASKED, "expect": {"must_not_contain": ["secret"]}},
        ("A secret.", "Done."), ours="FAIL"),
    Row("forbidden-by-default-too", "FAIL", {**ASKED, "expect": {"must_not_contain": ["secret"]}},
        ("Well.", "Done."), {"cases": {"defaults": {"expect": {"must_not_contain": ["Done"]}}}}),
    Row("failure-said-before", "PASS", {**ASKED, **rules(failure=[contains("secret")])},
        ("A secret.", "Done."), ours="FAIL"),
    Row("gate-leaves-it-to-the-judge", "FAIL", {**turns(GATED, "b"), **rules(success=[
        {"turn_response_contains": {"turn": 2, "contains_any": ["Done"]}}])}, ours="SKIP"),
    Row("gate-and-the-judge-says-yes", "PASS", {**turns("a", GATED, "b"),
        **rules(success=[contains("Well")])}, ("Well.", "Done.", "no"), ours="SKIP"),
    Row("gate-and-no-judge", "PASS", turns(GATED, "b"), ours="SKIP"),
    Row("gate-of-the-last-turn", "FAIL", turns("a", GATED), ("Well.", "Done."), ours="SKIP"),
    # Templates: substituteTemplate knows {{name}} of a capture, in what is said and nowhere else.
    Row("braces-are-text", "PASS", {"input": {"prompt": "Fill <<a>> and {{b}}."},
        "context": {"files": {"x": "{{c}}"}}, "expect": {"must_contain": ["<<a>> {{b}}"]}},
        ("<<a>> {{b}}",)),
    Row("braces-in-turns", "PASS", {**turns(
        {"content": "a", "capture": [{"variable": "n", "pattern": "no. (.)"}]},
        "{{n}} <<n>> {{ n }}"), "expect": {"must_contain": ["7 <<n>> {{ n }}"]}, "scripted": [
            {"turn": 1, "say": "no. 7"}, {"turn": 2, "say": "{{user}}"}]}),
    # Limits: 0 is not set (defaults.go), max_turns counts the conversation's turns.
    Row("no-limits", "PASS", {**turns({"content": "a", "timeout_seconds": 0}), **SENTENCE,
        "constraints": {"timeout_seconds": 0, "max_turns": 0}},
        suite={"cases": {"defaults": {"timeout_seconds": -1, "max_turns": 0}}}),
    Row("steps-are-no-turns", "PASS", {**SENTENCE, **STEPS, "constraints": {"max_turns": 1}},
        ours="ERROR"),
    Row("steps-by-default", "PASS", {**SENTENCE, **STEPS},
        suite={"cases": {"defaults": {"max_turns": 1}}}, ours="ERROR"),
    Row("too-many-turns", "ERROR", {**ASKED, **SENTENCE, "constraints": {"max_turns": 1}},
        ("Done.", "Done."), ours="PASS"),
    Row("ten-turns-by-default", "ERROR", {**turns(*"abcdefghijk"), **SENTENCE}, ("Done.",) * 11,
        ours="PASS"),
    Row("user-ends-in-time", "PASS", {**LED, "input": {"prompt": "Hi"}, **SENTENCE,
        "constraints": {"max_turns": 2}}, ("Tea?", "Done."), suite=PLAYED),
    Row("user-goes-on", "ERROR", {**LED, "input": {"prompt": "Hi"}, **SENTENCE,
        "constraints": {"max_turns": 2}}, ("Tea?", "Done. Tea?"), suite=PLAYED, ours="PASS"),
    # Judges of the suite, several of which must all pass.
    Row("judges-of-the-suite", "FAIL", {}, suite={"judges": [
        {"id": "one", "type": "rule_based", "success": [contains("Done")]},
        {"id": "two", "type": "rule_based", "failure": [contains("Done")]}]}),
]  # fmt: skip
USER = {
    "rules": [
        {"when": {"answer": "Tea"}, "answer": {"message": "Yes."}},
        {"answer": {"stop": "completed", "reason": "It is done."}},
    ]
}


def write(project: Project, row: Row, *, theirs: bool) -> None:
    root = f"{'theirs' if theirs else 'ours'}/{row.name}/evals"
    said = [{"turn": n, "say": text} for n, text in enumerate(row.says, start=1)]
    cases = {"files": ["evals/cases/case.yaml"], **row.suite.get("cases", {})}
    suite: dict[str, Any] = {"engine": {"name": "scripted"}, "environment": {"type": "none"}}
    suite |= {"name": row.name, **row.suite, "cases": cases}
    if theirs:
        suite |= {"schema_version": "v1alpha1", "skills": [{"source": "local_path", "path": "."}]}
    case = {"id": row.name, "input": {"prompt": "Do it."}, "scripted": said, **row.case}
    files = {f"{root}/eval.yaml": suite, f"{root}/cases/case.yaml": case, f"{root}/user.yaml": USER}
    project.write({name: json.dumps(value) for name, value in files.items()})
    script = project.root / root / "judge.sh"
    script.write_text(f"#!/bin/sh\n{row.script}\n", encoding="utf-8")
    script.chmod(0o755)


def held(rows: list[Row], where: Path, *, theirs: bool) -> dict[str, dict[str, Any]]:
    where.mkdir()
    project = Project(where)
    for row in rows:
        write(project, row, theirs=theirs)
    done = project.run("run", "theirs" if theirs else "ours", "--json", "-j", "4")
    assert done.stdout, done.stderr
    return {case["case_id"]: case for case in done.data["cases"]}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return held(ROWS, tmp_path_factory.mktemp("v1alpha1") / "run", theirs=True)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_suite_of_skill_ups_gets_skill_ups_verdict(
    verdicts: dict[str, dict[str, Any]], row: Row
) -> None:
    """V5, V13, V14: letter case, rules, thresholds, scripts, captures and limits."""
    case = verdicts[row.name]
    assert case["status"] == row.wanted, case["reason"]


@pytest.mark.slow
def test_the_same_files_mean_what_ours_mean_without_the_version(tmp_path: Path) -> None:
    """V14: nothing but what a file states about itself gives its keys another meaning."""
    rows = [row for row in ROWS if row.ours is not None and "0" not in json.dumps(row.suite)]
    found = held(rows, tmp_path / "run", theirs=False)
    assert {row.name: found[row.name]["status"] for row in rows} == {
        row.name: row.ours for row in rows
    }


def test_a_home_that_a_suite_names_is_left_out_and_that_is_said(project: Project) -> None:
    """V14: a trial's own home is empty, too; public suites ask for such a one."""
    env = {"HOME": "/tmp/clean", "CODEX_HOME": "/tmp/clean/.codex", "TZ": "UTC"}
    row = Row("homes", "PASS", SENTENCE, suite={"environment": {"type": "none", "env": env}})
    write(project, row, theirs=True)
    done = project.run("run", "theirs", "--json")
    assert [case["status"] for case in done.data["cases"]] == ["PASS"]
    told = project.run("validate", "theirs").stderr
    assert "environment.env.HOME: `HOME` is left out; each trial has a home of its own" in told
    assert ("CODEX_HOME" in told, "TZ" in told) == (True, False)
