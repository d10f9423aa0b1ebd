"""Judges that are models or agents: in `skillup run`, then in `judge`, which asks nobody twice."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import KEYS
from tests.support.exported import exported
from tests.support.model_server import HttpError, ModelRequest, ModelServer, Reply, Structured
from tests.support.project import Project
from tests.support.stored import change

CASE = """
    input:
      turns:
        - content: Delete the logs
          assertions: [It asks before it deletes]
    scripted: [{say: "Shall I delete 3 logs?"}]
    """


def verdict(said: str) -> dict[str, Any]:
    return {"verdicts": [{"id": "c1", "verdict": said, "reason": f"It is a {said}.", "quote": ""}]}


PASS = verdict("pass")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"cases/a.yaml": CASE})


def suite(project: Project, **judge: object) -> None:
    project.write({"cases/eval.yaml": json.dumps({"name": "logs", "judge": judge})})


def run(project: Project, *options: str, env: dict[str, str] | None = None) -> Any:
    (case,) = project.run_json("cases", *options, env={**KEYS, **(env or {})})["cases"]
    return case


def right(request: ModelRequest) -> Reply:
    return Structured(PASS)


@pytest.mark.slow
def test_what_another_run_has_asked_is_not_asked_again(project: Project) -> None:
    with ModelServer(right) as server:
        suite(project, model="anthropic:judge-1", base_url=server.url)
        case = run(project)
        assert (case["status"], case["error"]) == ("PASS", None)
        assert (case["judging"]["calls"], case["judging"]["cached_calls"]) == (1, 0)
        assert case["judging"]["models"] == ["judge-1"]
        assert case["judging"]["usage"]["requests"] == 1
        assert case["usage"]["input_tokens"] == 100, "the agent's own"
        (answer,) = (exported(project.latest_run()) / "judge-answers").iterdir()
        assert json.loads(answer.read_text())["answer"] == PASS
        again = run(project)
        assert again["judging"]["calls"] == again["judging"]["cached_calls"] > 0
        assert again["judging"]["usage"] is None
        assert len(server.requests) == 1
        anew = run(project, "--no-judge-cache")
    assert anew["judging"]["cached_calls"] == anew["judging"]["calls"] - 1
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (None, "`rubric` is read by a model, and none is named"),
        ("anthropic:judge-1", "needs a key: set the variable ANTHROPIC_API_KEY"),
        ("scripted:judges/none.yaml", "there is no judge script"),
        ("judge-1", "`judge-1` names no model"),
    ],
)
def test_what_is_missing_is_found_before_the_first_turn(
    project: Project, judge: str | None, said: str
) -> None:
    suite(project, **({"model": judge} if judge else {}))
    (case,) = project.run_json("cases")["cases"]
    assert (case["status"], case["error"]["kind"]) == ("ERROR", "judge")
    assert said in case["error"]["message"]
    assert case["turns"] == []
    if not (judge or "").startswith(("anthropic", "scripted")):  # those may yet come to be there
        assert said in project.run("validate", "cases").stderr


FOLLOWED = """
    input:
      turns:
        - content: Delete the logs
          assertions:
            - rubric: It asks before it deletes
              prompt: Are you sure?
              assertions: [contains: helped]
        - Thanks
    scripted: [{when: sure, say: That helped.}, {say: Deleted.}]
    """


def test_a_judge_that_fails_while_it_decides_what_is_said_next_is_an_error(
    project: Project,
) -> None:
    project.write({"cases/a.yaml": FOLLOWED})
    suite(project, model="scripted:judges/logs.yaml")
    project.write({"cases/judges/logs.yaml": "rules: [{error: out of order}]\n"})

    case = run(project)

    assert (case["status"], case["error"]["kind"]) == ("ERROR", "judge")
    first = case["turns"][0]
    assert (first["status"], first["error"]["kind"]) == ("error", "judge")
    assert "out of order" in first["error"]["message"]
    assert first["follow_ups"] == []


# `skillup judge`: stored answers first, nobody is asked twice.


def recorded(project: Project, *arguments: str) -> None:
    outcome = project.run("run", "cases", "--out", "run", *arguments, env=KEYS)
    assert outcome.exit_code == 0, outcome.stderr


def test_an_edited_criterion_is_asked_and_flips(project: Project) -> None:
    rules = [
        {"when": "asks before it deletes", "answer": PASS},
        {"when": "names the folder", "answer": verdict("fail")},
    ]
    suite(project, model="scripted:judges/logs.yaml")
    project.write({"cases/judges/logs.yaml": json.dumps({"rules": rules})})
    recorded(project)
    project.write({"cases/a.yaml": CASE.replace("asks before it deletes", "names the folder")})
    shown = project.run("show", "run", "a", "--full").stdout
    assert f"found    {PASS['verdicts'][0]['reason']}" in shown  # J4: reasons of passes, too
    assert re.search(r"^ +answer   [0-9a-f]{16,}$", shown, re.M)
    shown = project.run("show", "run", "a").stdout
    assert "answer  " not in shown
    assert re.search(r"^ +note     .*quot", shown, re.M), shown
    outcome = project.run("judge", "run", "--cases", "cases")
    assert outcome.exit_code == 1, outcome.stderr
    assert "PASS → FAIL" in outcome.stderr
    assert "names the folder" in outcome.stderr
    assert "judges that read: calls 1, of them stored 0, tokens " in outcome.stderr
    data = project.run("judge", "run", "--cases", "cases", "--json").data
    assert data["judging"]["calls"] == 1


def test_another_model_is_asked_and_outranks_the_recorded_and_the_edited_case(
    project: Project,
) -> None:
    for name, answer in (("mild", PASS), ("strict", verdict("fail"))):
        rule = {"when": "asks before it deletes", "answer": answer}
        project.write({f"cases/judges/{name}.yaml": json.dumps({"rules": [rule]})})
    suite(project, model="scripted:judges/mild.yaml")
    recorded(project)
    strict = ("--judge-model", "scripted:judges/strict.yaml")
    for options in ([], ["--cases", "cases"]):
        strictly = project.run("judge", "run", *options, *strict, "--json")
        assert strictly.exit_code == 1, strictly.stderr
        assert strictly.data["judge_model"] == "scripted:judges/strict.yaml"
        (case,) = strictly.data["cases"]
        assert case["changes"]["status"] == {"before": "PASS", "after": "FAIL"}
    with ModelServer(right) as server:
        asked = ("judge", "run", "--judge-model", "anthropic:judge-1", "--json")
        env = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
        (case,) = project.run(*asked, env=env).data["cases"]
        assert case["grade"]["judging"]["models"] == ["judge-1"]
        # Its answer is kept in the run.
        assert project.run(*asked, env=env).exit_code == 0
        assert len(server.requests) == 1
    assert project.run("judge", "run", "--json").data["judge_model"] is None


def test_edited_cases_are_read_by_the_model_that_the_run_was_given(project: Project) -> None:
    """U9: it was forgotten, and every rubric was an ERROR; a warning said that none is named."""
    suite(project)
    project.write({"cases/judges/mild.yaml": "criteria: [{found: shall i}]\n"})
    mild = ("--judge-model", "scripted:judges/mild.yaml")
    ran = project.run("run", "cases", "--out", "run", *mild)
    assert (ran.exit_code, "none is named" in ran.stderr) == (0, False), ran.stderr
    again = project.run("judge", "run", "--cases", "cases")
    assert (again.exit_code, "nothing changed" in again.stderr) == (0, True), again.stderr
    assert "the judges are scripted:judges/mild.yaml, as in the run" in again.stderr
    assert "none is named" not in again.stderr


# Several suites in one run: each has its own written-down judge, and its own simulated user.

STATUS = {"x/a": "PASS", "y/b": "FAIL"}


@pytest.fixture
def two_suites(tmp_path: Path) -> Project:
    """Two suites, which differ in what stands in `judges/` alone."""
    made = Project(tmp_path)
    turns = [{"content": "x", "assertions": ["it asks"]}, {"respond": "Say a word."}]
    for place, status in STATUS.items():
        said = status.lower()
        rules = [{"when": "it asks", "answer": verdict(said)}, {"answer": {"message": said}}]
        suite = {"name": place[0], "judge": {"model": "scripted:judges/j.yaml"}}
        case = {"input": {"turns": turns}, "scripted": [{"say": "ok"}]}
        made.write(
            {
                f"{place}/eval.yaml": json.dumps(suite),
                f"{place}/judges/j.yaml": json.dumps({"rules": rules}),
                f"{place}/case-{place[-1]}.yaml": json.dumps(case),
            }
        )
    return made


def test_neither_gets_the_others_answers_also_when_judged_elsewhere(two_suites: Project) -> None:
    ran = two_suites.run("run", "x/a", "y/b", "--out", "ran", "--json")
    cases = {case["case_id"]: case for case in ran.data["cases"]}
    for place, status in STATUS.items():
        case = cases[f"case-{place[-1]}"]
        assert case["status"] == status, ran.stderr
        assert case["turns"][1]["content"] == status.lower()
    (two_suites.root / "ran").rename(two_suites.root / "moved")
    for place in ("x", "y"):
        shutil.rmtree(two_suites.root / place)
    again = two_suites.run("judge", "moved", "--json")
    found = {c["grade"]["case_id"]: c["grade"]["status"] for c in again.data["cases"]}
    assert found == {"case-a": "PASS", "case-b": "FAIL"}, again.stderr


def test_what_failed_in_the_conversation_is_not_asked_again_for_the_grade(
    two_suites: Project,
) -> None:
    gate = {"content": "x", "post_condition": {"rubric": "it asks"}}
    turns = [gate, "Go on."]
    case = {"input": {"turns": turns}, "scripted": [{"say": "ok"}]}
    two_suites.write({"x/a/case-a.yaml": json.dumps(case)})
    with ModelServer(
        lambda request: Structured(verdict("pass")) if request.attempt else HttpError(400, "broken")
    ) as server:
        env = {**KEYS, "ANTHROPIC_BASE_URL": server.url}
        (ran,) = two_suites.run_json("x/a", "--judge-model", "anthropic:m", env=env)["cases"]
    assert ran["status"] == "ERROR"
    assert "broken" in ran["error"]["message"]
    assert len(server.requests) == 1


# Where an agent has judged: its answer is in the run, and nobody is started.

MET = {"criteria": [{"id": "ok", "pass": True, "reason": "fine", "evidence": ["nowhere"]}]}
UNMET = {"criteria": [{"id": "ok", "pass": False, "reason": "bad", "evidence": []}]}


def judged_by(*replies: Any, **more: Any) -> dict[str, Any]:
    scripted = [{"say": json.dumps(reply)} for reply in replies]
    criteria = [{"id": "ok", "outcome": "it is ok"}]
    judge = {"type": "agent_judge", "engine": "judger", "criteria": criteria, "scripted": scripted}
    return {**judge, **more}


@pytest.fixture
def counting(tmp_path: Path) -> Project:
    """A suite whose judge is a program that counts how often it is started."""
    counting = Project(tmp_path)
    agent = counting.root / "agent"
    calls = f"echo called >> {counting.root}/calls"
    start = f'exec {sys.executable} -m skillup.engines.scripted_agent "$@"'
    agent.write_text(f"#!/bin/sh\n{calls}\n{start}\n")
    agent.chmod(0o755)
    engine = json.dumps({"engine": "scripted", "command": str(agent)})
    return counting.write({"engines/judger.yaml": engine})


def calls(counting: Project) -> int:
    file = counting.root / "calls"
    return file.read_text().count("called") if file.exists() else 0


def write(counting: Project, judge: dict[str, Any]) -> None:
    steps = [{"write": {"path": "a.txt", "content": "x"}}]
    case = {"input": {"prompt": "x"}, "judge": judge, "scripted": [{"steps": steps, "say": "ok"}]}
    counting.write({"cases/eval.yaml": "name: s\n", "cases/a.yaml": json.dumps(case)})


def judged(counting: Project, *arguments: str) -> dict[str, Any]:
    (case,) = counting.run("judge", "run", "--json", *arguments).data["cases"]
    grade: dict[str, Any] = case["grade"]
    return grade


@pytest.mark.parametrize(("reply", "repeat"), [(UNMET, 1), (MET, 3)])
def test_the_kept_answer_gives_the_same_result_without_agent_suite_and_engine_file(
    counting: Project, reply: dict[str, Any], repeat: int
) -> None:
    write(counting, judged_by(reply, repeat=repeat))
    counting.run("run", "cases", "--out", "run")
    assert calls(counting) == repeat
    (counting.root / "agent").unlink()
    shutil.rmtree(counting.root / "engines")
    shutil.rmtree(counting.root / "cases")

    grade = judged(counting)

    (of_the_run,) = exported(counting.root / "run").rglob("grading.json")
    assert grade["assertions"] == json.loads(of_the_run.read_text())["assertions"]
    assert grade["judging"]["cached_calls"] == grade["judging"]["calls"] == repeat
    counting.run("export", "run", "--format", "files", "--out", "files")
    (of_files,) = counting.run("judge", "files", "--json").data["cases"]
    assert of_files["grade"] == grade
    assert calls(counting) == repeat


def test_another_threshold_asks_nobody_and_another_criterion_asks(counting: Project) -> None:
    write(counting, judged_by(UNMET))
    counting.run("run", "cases", "--out", "run")

    write(counting, judged_by(UNMET, pass_threshold=0))
    assert judged(counting, "--cases", "cases")["status"] == "PASS"
    assert calls(counting) == 1

    write(counting, judged_by(UNMET, criteria=[{"id": "ok", "outcome": "it is good"}]))
    assert judged(counting, "--cases", "cases")["status"] == "FAIL"
    assert calls(counting) == 2


@pytest.mark.parametrize(("arguments", "asked"), [((), 1), (("--no-judge-cache",), 2)])
def test_a_resumed_trial_is_asked_about_again_only_without_the_cache(
    counting: Project, arguments: tuple[str, ...], asked: int
) -> None:
    write(counting, judged_by(MET))
    counting.run("run", "cases", "--out", "run", *arguments)
    change(counting.root / "run", "UPDATE attempts SET grade = NULL")

    outcome = counting.run("run", "--resume", "run")

    assert outcome.exit_code == 0, outcome.stderr
    assert calls(counting) == asked


LABELS = 'job,turn,check,label,reason,answer\nx/p/with_skill/1,1,"rubric ""Greets""",pass,,Hi.\n'
WITH_EXAMPLES = """
    name: lab
    engine: scripted
    judge: {model: ["scripted:judges/a.yaml", "scripted:judges/b.yaml"], examples: labels.csv}
"""
GREETS = """
    id: greets
    input: {turns: [{content: Hello, assertions: [Greets]}]}
    scripted: [{say: Hello there.}]
"""


def test_a_run_is_judged_again_by_the_examples_that_it_was_judged_by(project: Project) -> None:
    script = "criteria: [{found: hello}]\n"
    project.write({"lab/eval.yaml": WITH_EXAMPLES, "lab/greets.yaml": GREETS})
    project.write({"lab/judges/a.yaml": script, "lab/judges/b.yaml": script})
    project.write({"lab/labels.csv": LABELS})
    (case,) = project.run_json("lab")["cases"]
    (check,) = case["turns"][0]["checks"]
    said = "asked 2 times: scripted:judges/a.yaml: pass; scripted:judges/b.yaml: pass"
    assert (case["status"], check["notes"][-1]) == ("PASS", said)
    stored = (exported(project.latest_run()) / "judge-answers").glob("*.json")
    assert sorted(check["answers"]) == sorted(file.stem for file in stored)
    project.write({"lab/labels.csv": LABELS + LABELS.partition("\n")[2].replace("Hi", "Hoi")})
    again = project.run("judge", "last", "--json").data["cases"][0]["grade"]
    assert again["turns"][0]["checks"][0]["answers"] == check["answers"]
    assert again["judging"]["cached_calls"] == again["judging"]["calls"] == 2
    row = LABELS.partition("\n")[2]
    more = {row.replace("Hi", "Hoi"): False, row.replace('""",', '"" often",'): True}
    for other, is_same in more.items():
        project.write({"lab/labels.csv": LABELS + other})
        edited = project.run("judge", "last", "--cases", "lab", "--json").data["cases"][0]["grade"]
        assert (edited["turns"][0]["checks"][0]["answers"] == check["answers"]) is is_same
    (project.root / "lab/labels.csv").unlink()
    assert project.run_json("lab")["cases"][0]["status"] == "ERROR"
