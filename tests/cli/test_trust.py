"""A suite from elsewhere reads nothing outside of its project, nor chooses where keys go (S10)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, Text
from tests.support.project import Project

CASE = """
    input: {prompt: hi}
    assertions: [{contains: x}]
    scripted: [{say: x}]
"""
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-0123456789", "AWS_SECRET_ACCESS_KEY": "aws-0123456789"}


@pytest.mark.parametrize(
    ("suite", "case", "field"),
    [
        ("", "context: {fixture: ../private}", "context.fixture"),
        ("", "expect: {golden_file: ../private/key}", "expect.golden_file"),
        ("", "context: {fixture: link}", "context.fixture"),
        ("skills: [{path: ../private}]", "", "skills[0].path"),
        ("cases: {files: ['../../../**']}", "", "cases.files[0]"),
        ("cases: {files: ['*.yaml', 'x/../../**']}", "", "cases.files[1]"),
        ("cases: {datasets: [../private/items.json]}", "", "cases.datasets[0].path"),
    ],
)
def test_a_path_out_of_the_project_is_refused_unless_the_suite_is_trusted(
    project: Project, suite: str, case: str, field: str
) -> None:
    """S10."""
    private = {"private/key": "sk-private", "private/SKILL.md": "#", "private/items.json": "[]"}
    project.write({"suite/eval.yaml": f"name: s\n{suite}\n", "suite/a.yaml": f"{CASE}    {case}\n"})
    project.write(private)
    os.symlink(project.root / "private", project.root / "suite" / "link")  # noqa: PTH211

    refused = project.run("validate", ".", cwd="suite")
    assert (refused.exit_code, "leads out of" in refused.stderr) == (2, True)
    assert field in refused.stderr
    assert "--trust" in refused.stderr
    assert "leads out of" not in project.run("validate", ".", "--trust", cwd="suite").stderr
    # Whoever stands in a directory that holds both has them in one project.
    assert "leads out of" not in project.run("validate", "suite").stderr or suite.startswith(
        "cases: {files"
    )


@pytest.mark.parametrize(
    "suite",
    [
        "judge: {model: 'anthropic:m', base_url: '<at>', api_key_env: AWS_SECRET_ACCESS_KEY}",
        "user_simulator: {model: 'anthropic:m', base_url: '<at>'}",
        "engine: {name: claude_code, model: {name: m, base_url: '<at>'}}",
        "engine: claude_code\nenvironment: {env: {ANTHROPIC_BASE_URL: '<at>'}}",
    ],
)
def test_no_key_goes_to_an_address_that_only_the_suite_names(project: Project, suite: str) -> None:
    """S10."""
    with ModelServer(lambda request: Text("yes")) as server:
        project.write(
            {
                "eval.yaml": "name: s\n" + suite.replace("<at>", server.url),
                "a.yaml": """
                    input: {turns: [{content: hi}, {respond: ask for it}]}
                    assertions: [It is right]
                    scripted: [{say: x}]
                    """,
            }
        )
        outcome = project.run("run", ".", env=KEYS)

        assert server.requests == []
    assert outcome.exit_code in (2, 3)
    assert "SKILLUP_TRUST=1" in outcome.stderr


def test_reading_what_is_no_file_neither_waits_nor_fills_the_memory(project: Project) -> None:
    """S10: a FIFO as golden file, a device as SKILL.md, a glob of a thousand parts."""
    project.write(
        {
            "eval.yaml": "name: s\nskills: [{path: skill}]\ncases: {files: [a.yaml]}\n",
            "a.yaml": CASE + "    expect: {golden_file: pipe}\n",
            "skill/x": "",
        }
    )
    os.mkfifo(project.root / "pipe")
    os.symlink("/dev/zero", project.root / "skill" / "SKILL.md")  # noqa: PTH211

    (graded,) = project.run_json(".", env={"SKILLUP_TRUST": "1"})["cases"]

    assert graded["status"] == "ERROR"
    assert "not a regular file" in graded["reason"]
    project.write({"eval.yaml": f"name: s\ncases: {{files: ['{'**/' * 1000}x']}}\n"})
    refused = project.run("validate", ".")
    assert (refused.exit_code, "matches no file" in refused.stderr) == (2, True)


def test_edited_cases_read_no_file_outside_by_a_template_or_a_pipe(project: Project) -> None:
    """S10: `judge --cases` looks at the suite's files as they are now."""
    project.write({"suite/eval.yaml": "name: s\n", "suite/a.yaml": CASE, "private/key": "x"})
    (project.root / "suite" / ".git").mkdir()
    assert project.run("run", ".", cwd="suite").exit_code == 0
    golden = "    vars: {up: ../private/key}\n    expect: {golden_file: '<<up>>'}\n"
    project.write({"suite/a.yaml": CASE + golden})
    for at in ("../private/key", "pipe"):
        if at == "pipe":
            os.mkfifo(project.root / "suite" / "pipe")
            project.write({"suite/a.yaml": CASE + "    expect: {golden_file: pipe}\n"})
        judged = project.run("judge", "last", "--cases", ".", cwd="suite")
        assert f"the reference {at} was not found" in judged.stdout + judged.stderr


def test_doctor_starts_no_program_of_a_folders_profile_unless_it_is_named(
    project: Project, tmp_path: Path
) -> None:
    """S10."""
    trace = tmp_path / "started"
    project.write(
        {"engines/odd.yaml": f"engine: claude_code\ncommand: [sh, -c, 'touch {trace}']\n"}
    )

    assert "skillup doctor odd" in project.run("doctor").stderr + project.run("doctor").stdout
    assert not trace.exists()
    project.run("doctor", "odd")
    assert trace.exists()


def test_names_in_a_listing_do_not_reach_the_terminal_as_escapes(project: Project) -> None:
    """S10."""
    project.write(
        {"eval.yaml": 'name: "s\\e]0;owned\\a"\n', "a.yaml": CASE + '    tags: ["\\e[2J"]\n'}
    )

    project.write({"engines/a.yaml": 'engine: scripted\nname: "\\e[31mred"\n'})

    assert "\x1b" not in project.run("list", ".").stdout
    assert "\x1b" not in project.run("doctor").stdout
