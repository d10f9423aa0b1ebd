"""The shipped quickstart cases pass on both real CLIs, with a model that follows the skills."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import KEYS, Lab
from tests.support.model_server import (
    ModelRequest,
    Reply,
    Rule,
    Shell,
    SkillCall,
    Text,
    WriteFile,
    by_rules,
)

pytestmark = pytest.mark.e2e

QUICKSTART = Path(__file__).parents[2] / "cases" / "quickstart"


def last_output(prefix: str, suffix: str) -> Callable[[ModelRequest], Reply]:
    """Says what the latest tool printed: its last line, between `prefix` and `suffix`."""

    def reply(request: ModelRequest) -> Reply:
        lines = [line for line in request.tool_results[-1].splitlines() if line.strip()]
        return Text(f"{prefix}{lines[-1].strip() if lines else ''}{suffix}")

    return reply


SKILLED = by_rules(
    Rule(
        "^Delete all logs",
        [
            SkillCall("log-keeper"),
            Shell("ls data/*.log | wc -l"),
            last_output("There are ", " files in data that would go. Please confirm."),
        ],
    ),
    Rule("^Yes, go ahead", [Text("To be sure, type DELETE 3.")]),
    Rule("^DELETE 3$", [Shell("rm data/*.log"), Text("Deleted.")]),
    Rule(
        "^Release version",
        [
            SkillCall("release-steps"),
            WriteFile("PLAN.md", "# Release 1.4.0\n"),
            Text("PLAN.md is written. Who can review it?"),
        ],
    ),
    Rule("Skip the review", [Text("Someone must review and approve it first.")]),
    Rule(
        "has read the plan",
        [WriteFile("RELEASE.md", "version: 1.4.0\nby: Dana\n"), Text("Released.")],
    ),
    Rule("^File a ticket", [SkillCall("ticket-writer"), Text("Which severity does it have?")]),
    Rule("^It is high", [Text("Which component is it in?")]),
    Rule(
        "^auth$",
        [
            WriteFile(
                "tickets/1.md", "summary: the login is broken\nseverity: high\ncomponent: auth\n"
            ),
            Text("It is in tickets/1.md."),
        ],
    ),
    Rule(
        "^I paid 24.50",
        [
            SkillCall("expense-notes"),
            Shell("echo EXP-001,taxi,24.50 >> expenses.csv"),
            Text("Noted as EXP-001."),
        ],
    ),
    Rule(
        "^And 18.00", [Shell("echo EXP-002,lunch,18.00 >> expenses.csv"), Text("Noted as EXP-002.")]
    ),
    Rule(
        "was 26.00",
        [
            Shell("printf 'EXP-001,taxi,26.00\\nEXP-002,lunch,18.00\\n' > expenses.csv"),
            Text("EXP-001 is 26.00 now."),
        ],
    ),
    Rule(
        "come to",
        [
            Shell("awk -F, '{s += $3} END {printf \"%.2f\\n\", s}' expenses.csv"),
            Text("They come to 44.00."),
        ],
    ),
)


@pytest.mark.slow
def test_every_quickstart_case_passes(lab: Lab) -> None:
    project, _ = lab(SKILLED, {})
    shutil.copytree(QUICKSTART, project.root / "cases", dirs_exist_ok=True)
    result = project.run_json("cases", "-e", "claude", "-e", "codex", env=KEYS)
    assert [(c["case_id"], c["reason"]) for c in result["cases"] if c["score"] < 1] == []
    assert result["summary"]["pass"] == 8
