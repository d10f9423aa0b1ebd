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
