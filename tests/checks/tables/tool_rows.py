"""Checks of tool calls and skills."""

from __future__ import annotations

from skillup.schema.record import ToolCall, ToolResult, TranscriptItem
from tests.support.check_rows import Row, row
from tests.support.records import Recorded, call, file_states, make_record, make_turn

TOOLS = make_record(
    make_turn(
        calls=[
            call("Read", "read", file_path="/w/a.txt", limit=10),
            call("Bash", "shell", command="ls -la\nrm -rf data"),
            call("github::create_issue", "mcp", title="Bug", labels=["a"], repo={"id": 7, "o": 1}),
            call("exec", "shell", command=["bash", "-lc", "git status"]),
        ]
    ),
    make_turn(calls=[call("mcp__my__db__query", "mcp", sql=None)]),
)
NONE = make_record("nothing was called")
CLAUDE = make_record(
    make_turn(
        calls=[call("Skill", "skill", skill="log-tools:log-keeper", args="x")],
        results=["Launching skill: log-keeper"],
    )
)


def _shown(
    content: str, status: str = "error", command: str = "cat x/skills/tidy/SKILL.md"
) -> Recorded:
    """A shell command that names the skill's file, and what it printed."""
    return _called(call("shell", "shell", command=command), content, status)


def _called(called: ToolCall, content: str, status: str) -> Recorded:
    result = ToolResult.model_validate({"call_id": "", "status": status, "content": content})
    items = [
        TranscriptItem(type="tool_call", tool_call=called),
        TranscriptItem(type="tool_result", tool_result=result),
    ]
    files = {".agents/skills/tidy/SKILL.md": SKILL, ".claude/skills/dusty/SKILL.md": OTHER}
    return make_record(make_turn(transcript=items), initial_files=file_states(files))


def _loaded(by: ToolCall) -> Recorded:
    return make_record(make_turn(calls=[by], results=["Launching"]))


MISSING = "cat: x/skills/tidy/SKILL.md: No such file or directory\n"
BODY = "# How\n\n- Put each thing in its place.\n- Wipe the table.\n- Say what is left.\n"
SKILL = f"---\nname: tidy\ndescription: Tidies.\n---\n{BODY}"
OTHER = "---\nname: dusty\ndescription: Dusts.\n---\nDust.\nSay what is left.\n"
READER = make_record(
    make_turn(calls=[call("Read", "read", file_path="C:\\s\\Tidy\\SKILL.md")], results=["?"])
)
UNKNOWN = make_record(
    make_turn(calls=[call("shell", "shell", command="cat skills/tidy/SKILL.md")], results=["text"])
)
UNANSWERED = make_record(
    make_turn(calls=[call("shell", "shell", command="cat skills/tidy/SKILL.md")])
)


REFUSED = _called(call("Skill", "skill", skill="tidy"), "Unknown skill: tidy", "error")


def _sequence(passes: bool, calls: list[object], mode: str) -> Row:
    return row(passes, "tool_sequence", {"calls": calls, "mode": mode}, TOOLS)


def _rm(**condition: object) -> dict[str, object]:
    return {"kind": "shell", "args": {"command": condition}}


ROWS = [
    row(True, "tool_called", "mcp__github__create_issue", TOOLS),
    row(True, "tool_called", "my__db::query", TOOLS, turn=2),
    row(True, "tool_called", {"name": "github::*", "args": {"repo": {"id": 7.0}}}, TOOLS),
    row(True, "tool_called", {"kind": "mcp", "args": {"repo.id": 7, "labels.0": "a"}}, TOOLS),
    row(True, "tool_called", {"kind": "shell", "min": 2, "max": 2}, TOOLS),
    row(True, "tool_called", _rm(matches=r"(?i)^bash -lc GIT"), TOOLS),
    row(True, "tool_called", _rm(contains="RM -rf"), TOOLS),
    row(True, "tool_called", {"name": "Read", "args": {"offset": {"exists": False}}}, TOOLS),
    row(True, "tool_called", {"kind": "mcp", "args": {"sql": {"equals": None}}}, TOOLS, turn=2),
    row(True, "tool_called", {"kind": "web", "min": 0, "max": 1}, NONE),
    row(False, "tool_called", "bash", TOOLS, case_sensitive=True),
    row(False, "tool_called", {"kind": "shell", "min": 3}, TOOLS),
    row(False, "tool_called", {"name": "Read", "args": {"limit": True}}, TOOLS),
    row(False, "tool_called", {"name": "Read", "args": {"limit": "10"}}, TOOLS),
    row(False, "tool_called", _rm(contains="rm", matches="mv"), TOOLS),
    row(False, "tool_called", "Rea?", TOOLS),
    row(True, "tool_not_called", {"kind": "shell"}, NONE),
    row(True, "tool_not_called", _rm(matches=r"\bmv\b"), TOOLS),
    row(False, "tool_not_called", _rm(matches=r"\brm\b"), TOOLS),
    row(False, "tool_not_called", {"kind": "shell"}, TOOLS, turn=None),
    row(True, "tool_sequence", {"calls": ["Read", {"kind": "mcp"}]}, TOOLS),
    _sequence(True, ["Read", "Bash", "github::*", "exec"], "exact"),
    _sequence(True, [{"kind": "shell"}, "Bash", "Read"], "any_order"),
    _sequence(False, ["exec", "Read"], "in_order"),
    _sequence(False, ["Read", "Bash"], "exact"),
    _sequence(False, ["Bash", "Bash"], "any_order"),
    row(True, "skill_used", "log-keeper", CLAUDE),
    row(True, "skill_used", "log-tools:log-keeper", CLAUDE, turn=None),
    row(True, "skill_used", "tidy", READER),
    row(True, "skill_used", "go", _loaded(call("S", "skill", command="/go 1"))),
    row(
        True, "skill_used", " keeper of logs ", _loaded(call("S", "skill", skill="keeper of logs"))
    ),
    row(False, "skill_used", "keeper", _loaded(call("S", "skill", skill="keeper of logs"))),
    row(False, "skill_used", "tidy", READER, case_sensitive=True),
    row(False, "skill_used", "tidy", make_record("I used the skill tidy/SKILL.md")),
    row(False, "skill_used", "tidy", REFUSED),
    row(True, "skill_not_used", "tidy", REFUSED),
    *(
        row(passes == (key == "skill_used"), key, "tidy", shown)
        for key in ("skill_used", "skill_not_used")
        for passes, shown in (
            (False, _shown(MISSING)),
            (False, _shown("")),
            (False, _shown("", "unknown")),
            (False, _shown(f"{MISSING}README.md\n", "success")),
            (False, _shown(SKILL.partition("# How")[0], "success")),
            (False, _shown("7:- Wipe the table.\n", "success")),
            (False, _shown(OTHER, "success")),
            (True, _shown(f"{SKILL}rg: no match\n")),
            (True, _shown(SKILL.replace("\n", "\r\n"), "success", "ls")),
            (True, _shown(BODY.replace("\n", "\n     9\t"), "unknown")),
        )
    ),
    *(
        row(False, key, "tidy", nobody_knows)
        for key in ("skill_used", "skill_not_used")
        for nobody_knows in (
            *(UNKNOWN, UNANSWERED, _shown("… 9 characters left out …", "success")),
            make_record(make_turn(calls=[call("Skill", "skill", skill="tidy")])),
        )
    ),
    row(True, "skill_not_used", "tidy", NONE),
    row(False, "skill_not_used", "log-keeper", CLAUDE),
    row(False, "skill_not_used", "tidy", READER, turn=None),
]
