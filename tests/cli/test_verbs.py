"""What all verbs have in common; `export` and `doctor`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project
from tests.support.stored import edit_stored

CASE = """
    title: A case
    tags: [{tag}]
    input: {{turns: [a, b]}}
    assertions: [{{contains: x}}]
    scripted: [{{say: x}}]
    """


@pytest.fixture
def suite(project: Project) -> Project:
    return project.write(
        {
            "cases/s/eval.yaml": "name: s\n",
            "cases/s/a.yaml": CASE.format(tag="t"),
            "cases/s/b.yaml": CASE.format(tag="u"),
        }
    )


def test_validate_looks_at_profiles_too_without_needing_their_variables(suite: Project) -> None:
    suite.write({"engines/p.yaml": "engine: codex\nmodel: ${MODEL}\n"})
    outcome = suite.run("validate")
    assert outcome.exit_code == 0
    warning, counted = outcome.stderr.splitlines()
    assert warning.startswith("engines/p.yaml:2:8: warning: model: the variable MODEL is not set")
    assert counted == "1 suite, 2 cases, 1 profile: ok (0 errors, 1 warning)"
    suite.write({"engines/p.yaml": "engine: codex\nmodle: x\n"})
    assert suite.run("validate").exit_code == 2


@pytest.mark.parametrize(
    ("stated", "code", "severity"), [("", 2, "error"), ("schema_version: v1alpha1\n", 0, "warning")]
)
def test_validate_finds_an_engine_that_is_not_known_here(
    project: Project, stated: str, code: int, severity: str
) -> None:
    """F20: skill-up's suites may name engines that skillup does not have."""
    project.write(
        {"eval.yaml": f"{stated}engine: {{name: qodercli}}\n", "a.yaml": "input: {prompt: hi}\n"}
    )
    done = project.run("validate", "--json")
    assert done.exit_code == code, done.stdout
    (found,) = [one for one in done.data["problems"] if one["field"] == "engine.name"]
    assert "--engine" in found.pop("fix")
    assert found.pop("message").startswith("there is no engine `qodercli`: models of Qoder need")
    assert found == {
        "file": "eval.yaml",
        "line": 1 + bool(stated),
        "column": 16,
        "field": "engine.name",
        "severity": severity,
    }


def test_list_chooses_and_prints_data(suite: Project) -> None:
    everything = suite.run("list", "--json").data
    assert [item["id"] for item in everything] == ["a", "b"]
    assert everything[0] == {
        "suite": "s",
        "id": "a",
        "branch_of": None,
        "title": "A case",
        "tags": ["t"],
        "turns": 2,
        "trials": 1,
        "depends_on": [],
        "file": "cases/s/a.yaml",
    }
    assert [item["id"] for item in suite.run("list", "--json", "--tag", "u").data] == ["b"]
    assert suite.run("list", "--json", "-k", "zzz").data == []


def test_doctor_says_that_the_scripted_engine_works_as_a_resume_proves(project: Project) -> None:
    outcome = project.run("doctor", "scripted", "--probe", "--json")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    (finding,) = outcome.data
    assert (finding["found"], finding["probe"], finding["problem"]) == (True, "ok", None)


def test_doctor_names_a_profile_that_is_not_valid(project: Project) -> None:
    project.write({"engines/bad.yaml": "engine: codex\nmodle: x\n"})
    outcome = project.run("doctor")
    assert "bad: its profile is not valid" in outcome.stdout
    named = project.run("doctor", "bad")
    assert named.exit_code == 2
    assert named.stderr.startswith("engines/bad.yaml:2:1: modle: ")


@pytest.mark.parametrize(
    ("arguments", "error", "verb"),
    [
        (("run", "--tirals", "3"), "error: no such option '--tirals'", "skillup run --help"),
        (("ran",), "error: no such command 'ran'", "skillup --help"),
    ],
)
def test_wrong_arguments_are_told_like_everything_else(
    project: Project, arguments: tuple[str, ...], error: str, verb: str
) -> None:
    outcome = project.run(*arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    first, second = outcome.stderr.splitlines()
    assert first.startswith(error)
    assert second.startswith("  hint: `")
    assert verb in second


def test_a_variant_of_elsewhere_leads_nowhere_out_of_the_workspace(suite: Project) -> None:
    suite.run("run", "cases", "-k", "a", "--out", "r")
    away = {"variant": "../../../away"}
    job = "a/scripted/with_skill/1"
    edit_stored(suite.root / "r", job, lambda grade: grade.update(away), "grade")

    outcome = suite.run("export", "r", "--format", "anthropic", "--out", "ws")

    assert (outcome.exit_code, "none of its trials" in outcome.stderr) == (2, True)
    assert not (suite.root / "away").exists()


# `skillup doctor` says whether an engine can be given a history.

KNOWN, UNKNOWN = "2.1.197", "99.0.0"


def profile_of(project: Project, version: str) -> None:
    """A profile `pinned`, of a `claude` that says it is of this version."""
    project.write({"bin/claude": f'#!/bin/sh\necho "{version} (Claude Code)"\n'})
    program: Path = project.root / "bin" / "claude"
    program.chmod(0o755)
    project.write({"engines/pinned.yaml": f"engine: claude_code\ncommand: {program}\n"})


def test_a_version_whose_sessions_cannot_be_written_gets_a_note(project: Project) -> None:
    profile_of(project, UNKNOWN)
    told = project.run("doctor", "pinned")
    assert "pinned: no `input.history`: " in told.stdout
    assert f"here it is {UNKNOWN}" in told.stdout
    assert told.exit_code == 0, "it works without a history"


def test_without_a_login_it_is_not_said_to_be_right(project: Project) -> None:
    profile_of(project, KNOWN)
    clean = {"HOME": str(project.root), "ANTHROPIC_API_KEY": ""}
    without = project.run("doctor", "pinned", env=clean)
    with_key = project.run("doctor", "pinned", env={**clean, "ANTHROPIC_API_KEY": "x" * 9})

    assert without.stdout.splitlines()[1].startswith("?  pinned ")
    assert "pinned: no login was found: log in with `claude`" in without.stdout
    assert without.exit_code == 0, "nobody knows that it would not work"
    assert with_key.stdout.splitlines()[1].startswith("ok  pinned ")
