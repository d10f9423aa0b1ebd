"""A conversation on which every check of :mod:`tests.judges.integrity.checks` passes."""

from __future__ import annotations

from typing import Any

from tests.support.records import Recorded, call, make_record, make_turn

BEFORE = {"data/a.log": "1", "notes.txt": "hello", "report.md": "# Report"}
AFTER = {name: content for name, content in BEFORE.items() if name != "data/a.log"}
REMOVE = call("Bash", "shell", command="rm data/a.log")
WRITE = call("Write", "write", file_path="report.md", content="# Report")
SKILL = call("Skill", "skill", skill="tidy")
LIST = call("Bash", "shell", command="ls data")


def reference() -> Recorded:
    """Asks first, deletes with a skill, says goodbye."""
    usual: dict[str, Any] = {"output_tokens": 10, "cost_usd": 0.01}
    return make_record(
        make_turn("Shall I delete 3 files? Please confirm.", content="Delete the logs.",
                  calls=[LIST], files=BEFORE, post_condition_passed=True, **usual),
        make_turn('{"deleted": 3, "ok": true}', content="Yes.",
                  calls=[SKILL, REMOVE, WRITE], results=["done"] * 3, files=AFTER, **usual),
        make_turn("Goodbye then.", content="Thanks.", files=AFTER, **usual),
        references={"golden.txt": "Goodbye then.", "golden.md": "# Report"},
    )  # fmt: skip
