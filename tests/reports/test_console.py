"""What a run prints, whatever agents and authors put into texts and names."""

from __future__ import annotations

from tests.support.project import Project

CASE = r"""
    id: "case\e[31m[/red]"
    input: {prompt: go}
    assertions: [{equals: "\e]0;title\a[/b]"}]
    scripted: [{say: "\e[2J[/b]"}]
    """


def test_no_terminal_control_and_no_markup_of_others_reaches_the_terminal(
    project: Project,
) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": CASE})

    outcome = project.run("run", ".", "--out", "to [/b] \x1b[31m")

    assert outcome.exit_code == 1, outcome.stderr
    assert "\x1b" not in outcome.stderr
    assert "case[/red]" in outcome.stderr
    assert "to [/b]" in outcome.stderr


ALIKE = """
    input:
      turns:
        - content: one
          branches:
            - {name: a, turns: [two]}
            - {name: b, turns: [two]}
    assertions: [{contains: x}]
    scripted: [{say: x, misbehave: {error: auth}}]
    """


def test_a_long_reason_stands_once_in_full(project: Project) -> None:
    words = "a text that is much longer than what a line of the progress has room for"
    case = f"input: {{prompt: go}}\nassertions: [{{contains: {words}}}]\nscripted: [{{say: x}}]\n"
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": case})

    outcome = project.run("run", ".")

    assert outcome.exit_code == 1, outcome.stderr
    told = [line for line in outcome.stderr.splitlines() if 'contains "a text' in line]
    first, full = told
    assert first.startswith("FAIL   a  ")
    assert first.endswith("…")
    assert full.startswith(f'a: contains "{words}"')


def test_what_is_the_same_of_several_trials_is_told_once(project: Project) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/c.yaml": ALIKE})

    outcome = project.run("run", ".")

    assert outcome.exit_code == 3, outcome.stderr
    (told,) = [line for line in outcome.stderr.splitlines() if "script asked for this" in line]
    assert told.startswith("c/a, c/b: auth: ")


def test_a_very_long_id_is_shortened_for_people_and_whole_in_data(project: Project) -> None:
    case_id = "first-" + "x" * 5000 + "-last"
    case = f"id: {case_id}\ninput: {{prompt: hi}}\nassertions: [{{contains: no}}]\n"
    project.write({"s/eval.yaml": "name: s\n", "s/a.yaml": case + "scripted: [{say: hey}]\n"})
    held = project.run("run", "s", "--out", "run")
    listed, judged = project.run("list", "s"), project.run("judge", "run")
    for shown in (held.stderr, listed.stdout, judged.stderr):
        assert "x" * 200 not in shown
        assert "first-xxx" in shown
        assert "xxx-last" in shown
    assert project.run("list", "s", "--json").data[0]["id"] == case_id
    assert project.run("judge", "run", "--json").data["cases"][0]["job_id"].startswith(case_id)
