"""`skillup init`: what it writes is right, runs, and is all it touches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.app.suites import request_for
from tests.support.project import Project

SKILL = """
    ---
    name: log-keeper
    description: Keeps logs. Use whenever the user wants to remove or rotate logs.
    ---
    List them first.
    """
FILES = {
    "SKILL.md",
    "evals/cases/leaves-it-alone.yaml",
    "evals/cases/two-turns.yaml",
    "evals/cases/uses-the-skill.yaml",
    "evals/eval.yaml",
}


def files_in(directory: Path) -> set[str]:
    files = (p.relative_to(directory) for p in directory.rglob("*") if p.is_file())
    return {file.as_posix() for file in files if ".skillup" not in file.parts}


@pytest.fixture
def skill(project: Project) -> Project:
    return project.write({"sk/SKILL.md": SKILL})


def test_what_it_writes_validates_and_passes_as_it_is(skill: Project) -> None:
    outcome = skill.run("init", "sk")

    assert outcome.exit_code == 0, outcome.stderr
    assert files_in(skill.root) == {f"sk/{name}" for name in FILES}
    for name in FILES - {"SKILL.md"}:  # for editors; not committed
        file = skill.root / "sk" / name
        schema = file.parent / file.read_text("utf-8").splitlines()[0].rpartition("=")[2]
        assert json.loads(schema.read_bytes())["title"].startswith("skillup ")
        assert (schema.parents[1] / ".gitignore").read_text() == "*\n"
    validated = skill.run("validate", "sk")
    assert (validated.exit_code, validated.stderr) == (0, "1 suite, 3 cases: ok\n"), validated
    ran = skill.run("run", "sk", "--baseline", "--json")
    bad = {(c["case_id"], c["variant"]) for c in ran.data["cases"] if c["status"] != "PASS"}
    assert (ran.exit_code, bad) == (0, {("uses-the-skill", "without_skill")}), ran.stderr
    assert "next: cd sk && skillup run .\n" in outcome.stderr


def test_the_request_is_something_that_a_user_would_say() -> None:
    for description, request in {
        "Writes entries. Use when the user asks for release notes.": "I want release notes.",
        "Use if a user needs a rota: for teams": "I want a rota.",
        "Cleans logs. Use whenever the user wants to rotate logs.": "I want to rotate logs.",
    }.items():
        assert request_for(description, "x") == f"{request} Can you help me with that?"
    assert request_for("Writes entries.", "log-keeper") == "Can you help me with log keeper?"


def test_engine_and_request_can_be_given(skill: Project) -> None:
    outcome = skill.run("init", "sk", "--engine", "codex", "--request", "Rotate app.log")

    assert outcome.exit_code == 0, outcome.stderr
    assert 'engine: {name: "codex"}' in (skill.root / "sk/evals/eval.yaml").read_text()
    assert "Rotate app.log" in (skill.root / "sk/evals/cases/uses-the-skill.yaml").read_text()
    assert skill.run("run", "sk", "--engine", "scripted").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "nowhere is no directory"),
        ((".",), ". has no SKILL.md"),
        (("sk", "--engine", "claude_cod"), "there is no engine `claude_cod`"),
    ],
)
def test_wrong_use_says_what_would_be_right(
    skill: Project, arguments: tuple[str, ...], said: str
) -> None:
    outcome = skill.run("init", *arguments)

    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert "hint:" in outcome.stderr
    assert files_in(skill.root) == {"sk/SKILL.md"}


def test_what_is_there_is_not_replaced_unless_that_is_asked_for(skill: Project) -> None:
    skill.write({"sk/evals/mine.yaml": "input: {prompt: x}\n", "sk/evals/eval.yaml": "name: old\n"})

    refused = skill.run("init", "sk")

    assert (refused.exit_code, "sk/evals is there already" in refused.stderr) == (2, True)
    assert (skill.root / "sk/evals/eval.yaml").read_text() == "name: old\n"
    assert skill.run("init", "sk", "--force").exit_code == 0
    assert 'name: "log-keeper"' in (skill.root / "sk/evals/eval.yaml").read_text()
    assert (skill.root / "sk/evals/mine.yaml").is_file()


def test_it_never_writes_through_a_link_that_leads_out(skill: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (skill.root / "sk/evals").symlink_to(elsewhere)

    outcome = skill.run("init", "sk", "--force")

    assert outcome.exit_code == 2
    assert "leads out of sk" in outcome.stderr
    assert list(elsewhere.iterdir()) == []
    assert files_in(skill.root) == {"sk/SKILL.md"}


@pytest.mark.parametrize("name", ["log: keeper", 'it\'s # "%"', "a<<x>>b {{y}}", "📚 books"])
def test_a_skill_of_any_name_passes_its_suite(project: Project, name: str) -> None:
    project.write({"s/SKILL.md": f"---\nname: {json.dumps(name, ensure_ascii=False)}\n---\nBody\n"})
    project.run("init", "s")

    ran = project.run("run", "s", "--json")

    assert ran.data["summary"]["pass"] == 3, ran.stderr


def test_a_written_down_judge_beside_the_skill_is_not_shown_to_the_agent(skill: Project) -> None:
    skill.write({"sk/judge.yaml": "criteria: [{found: here}]", "sk/more.md": "more"})
    judged = "name: s\nskills: [{path: .}]\njudge: {model: 'scripted:judge.yaml'}"
    looks = "scripted: [{steps: [{run: 'ls .agents/skills/*'}], say: '{{output}}'}]"
    check = "{contains: {all: [more.md], none: [judge]}}"
    case = f"input: {{prompt: x}}\nassertions: [{check}]\n{looks}"
    skill.write({"sk/evals/eval.yaml": judged, "sk/evals/case.yaml": case})
    ran = skill.run("run", "sk", "--json")
    assert [c["status"] for c in ran.data["cases"]] == ["PASS"], ran.data["cases"][0]["reason"]
