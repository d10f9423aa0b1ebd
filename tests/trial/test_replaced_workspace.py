"""An agent that replaces its own workspace does not lead the next turn anywhere else."""

from __future__ import annotations

from pathlib import Path

from tests.support.project import Project

CASE = """
    input: {{turns: [one, two]}}
    assertions: [{{contains: done}}]
    scripted:
      - turn: 1
        steps: [{{run: 'here="$PWD"; cd .. && rm -rf "$here" && ln -s {elsewhere} "$here"'}}]
        say: done
      - turn: 2
        steps: [{{run: touch was-here}}]
        say: done
    """


def test_a_workspace_that_became_a_link_is_an_error_and_no_turn_runs_behind_it(
    project: Project, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious.txt").write_text("x", encoding="utf-8")
    project.write({"eval.yaml": "name: d\n", "c.yaml": CASE.format(elsewhere=elsewhere)})
    outcome = project.run("run", ".", "--json")
    assert sorted(path.name for path in elsewhere.iterdir()) == ["precious.txt"]
    assert outcome.exit_code == 3
    assert outcome.data["cases"][0]["status"] == "ERROR"
    assert "Traceback" not in outcome.stderr
