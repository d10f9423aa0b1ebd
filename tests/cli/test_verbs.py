"""validate, list, schema and doctor from the outside."""

from __future__ import annotations

import pytest

from tests.support.project import Project

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
    ("stated", "code", "severity"),
    [("", 2, "error"), ("schema_version: v1alpha1\n", 0, "warning")],
)
def test_validate_finds_an_engine_that_is_not_known_here(
    project: Project, stated: str, code: int, severity: str
) -> None:
    """F20: skill-up's suites may name engines that skillup does not have."""
    project.write(
        {"eval.yaml": f"{stated}engine: {{name: qwen_code}}\n", "a.yaml": "input: {prompt: hi}\n"}
    )
    done = project.run("validate", "--json")
    assert done.exit_code == code, done.stdout
    (found,) = [one for one in done.data["problems"] if one["field"] == "engine.name"]
    assert found["message"] == "there is no engine `qwen_code`"
    assert found["severity"] == severity


def test_validate_prints_its_problems_as_data(suite: Project) -> None:
    suite.write({"cases/s/a.yaml": "imput: x\n"})
    outcome = suite.run("validate", "--json")
    assert (outcome.exit_code, outcome.stderr) == (2, "")
    (problem,) = outcome.data["problems"]
    assert problem.pop("message")
    assert problem == {
        "file": "cases/s/a.yaml",
        "line": 1,
        "column": 1,
        "field": "imput",
        "fix": "did you mean `input`?",
        "severity": "error",
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
        (("run", "--tirals", "3"), "error: no such option: --tirals", "skillup run --help"),
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
