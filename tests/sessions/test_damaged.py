"""Session files of both CLIs with something wrong in them: read or refused, and never believed."""

from __future__ import annotations

import io
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.codex.engine import Codex, read_part
from skillup.engines.created_sessions import UnwritableError, WritingCliEngine
from skillup.engines.session_files import loss_of, missing_message, rows_of
from skillup.errors import UsageError
from skillup.judges import grade_record
from skillup.load.suites import load_paths
from skillup.schema.case import Case
from skillup.sessions.case import case_of_session, suite_text
from skillup.sessions.index import (
    detect_format,
    foot_lines,
    head_lines,
    print_entries,
    read_head,
    session_json,
)
from skillup.sessions.record import read_session, record_of_session
from tests.support.damaged import damaged_lines
from tests.support.session_files import (
    claude_row,
    codex_meta,
    codex_row,
    done,
    event,
    item,
    message,
    text,
    write_rows,
)

ID = "5d6a3c4e-0000-4000-8000-00000000000a"
TOKENS = {"input_tokens": 100, "output_tokens": 10}


def _use(call: str, name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call, "name": name, "input": arguments}]


def _result(call: str, content: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": content, "is_error": False}]


CLAUDE: list[dict[str, Any]] = [
    {"type": "summary", "summary": "counting", "leafUuid": "9"},
    claude_row("user", "How many files are in /project?", "1", None, gitBranch="main"),
    claude_row("assistant", [{"type": "thinking", "thinking": "I look."}], "2", "1"),
    claude_row("assistant", _use("c1", "Bash", command="ls /project"), "3", "2"),
    claude_row("user", _result("c1", text("a.txt b.txt")), "4", "3", toolUseResult={"stdout": "a"}),
    claude_row("assistant", text("There are 2 files."), "5", "4", requestId="r"),
    claude_row("user", "gone back from", "6", "5"),
    claude_row("user", text("Make notes of it."), "7", "5"),
    claude_row("assistant", _use("c2", "Write", file_path="/project/n.md", content="2"), "8", "7"),
    claude_row("user", _result("c2", "written"), "9", "8"),
    claude_row("user", "inner", "10", None, isSidechain=True, agentId="a1"),
    claude_row("assistant", text("All noted in n.md."), "11", "9"),
    {"type": "system", "subtype": "compact_boundary", "uuid": "12", "logicalParentUuid": "11"},
    claude_row("user", "In short: 2 files.", "13", "12", isCompactSummary=True),
    claude_row("user", "Thanks, and bye.", "14", "13"),
    claude_row("assistant", text("Bye, then."), "15", "14"),
]
for _row in CLAUDE:
    if _row.get("type") == "assistant":
        _row["message"]["usage"] = TOKENS | {"cache_read_input_tokens": 5}
CODEX = [
    codex_meta(ID),
    codex_row("turn_context", model="gpt-x", cwd="/project"),
    message("developer", "<permissions> in /project"),
    message("user", "How many files are in /project?"),
    event("user_message", message="How many files are in /project?"),
    item("reasoning", summary=[{"type": "summary_text", "text": "I look."}]),
    item("function_call", name="exec_command", call_id="c1", arguments='{"cmd": "ls /project"}'),
    item("function_call_output", call_id="c1", output="exit 0\nOutput:\na.txt b.txt"),
    done("CommandExecution", id="c1", command=["ls"], aggregated_output="a.txt", exit_code=0),
    message("assistant", "There are 2 files."),
    event("agent_message", message="There are 2 files."),
    event("token_count", info={"total_token_usage": TOKENS}),
    done("UserMessage", id="u2", content=[{"type": "text", "text": "Make notes of it."}]),
    item("custom_tool_call", name="apply_patch", call_id="c2", input="*** Add File: n.md\n+2"),
    item("custom_tool_call_output", call_id="c2", output=[{"type": "text", "text": "written"}]),
    event("patch_apply_end", call_id="c2", success=True, changes={"/project/n.md": {"add": {}}}),
    done("AgentMessage", id="a2", content=[{"type": "Text", "text": "All noted in n.md."}]),
    codex_row("compacted", message="In short: 2 files.", replacement_history=[]),
    codex_row("token_usage_record", usage=TOKENS),
    event("user_message", message="Thanks, and bye."),
    event("agent_message", message="Bye, then."),
    event("turn_aborted", reason="interrupted"),
]
CASE = Case.model_validate(
    {"id": "held", "input": {"turns": ["a", "b", "c"]}, "assertions": [{"contains": "files"}]}
)
ENGINES: dict[str, WritingCliEngine] = {"claude_code": ClaudeCode(), "codex": Codex()}
FILES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "claude_code": (CLAUDE, f"home/projects/-project/{ID}.jsonl"),
    "codex": (CODEX, f"home/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{ID}.jsonl"),
}


def shown(path: Path) -> bool:
    """Listed, printed, judged, made a case and judged by it; False: no case can be made of it."""
    head = read_head(path, path.stat().st_size)
    format_ = detect_format(path)
    if format_ is None or head is None:
        return False
    reader = format_()
    print_entries(reader.read(path), Console(file=io.StringIO()), full=True)
    pieces = [*head_lines("engine", path, head)]
    pieces += foot_lines(reader.summary)
    reader = format_()
    pieces.append(session_json("engine", path, reader.read(path), reader.summary))
    assert "".join(map(str, pieces)).encode(errors="replace")
    session = read_session(path)
    given = record_of_session(session, CASE, "")
    assert grade_record(given, lambda _: None).status in ("PASS", "FAIL", "ERROR")
    try:
        case = case_of_session(session)
    except UsageError:
        return False
    folder = path.parent / "made"
    folder.mkdir(exist_ok=True)
    (folder / "made.yaml").write_bytes(case.text.encode(errors="replace"))
    (folder / "eval.yaml").write_text(suite_text(session.engine), "utf-8")
    loaded = load_paths([folder])
    assert [one for one in loaded.problems if one.severity == "error"] == [], case.text
    [[written]] = [suite.cases for suite in loaded.suites]
    record = record_of_session(session, written.case, "")
    assert grade_record(record, lambda _: None).status in ("PASS", "FAIL", "ERROR")
    return True


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("format_", FILES)
def test_a_damaged_session_is_read_or_refused_and_is_not_the_one_that_was(
    format_: str, seed: int, tmp_path: Path
) -> None:
    """S13: 80 files here, 2,000 by hand: no traceback, none verified."""
    luck = random.Random(f"{format_} {seed}")
    rows, name = FILES[format_]
    path = write_rows(tmp_path / name, rows)
    whole = path.read_bytes()
    engine = ENGINES[format_]
    before = engine.fingerprint(path, ID)
    assert before is not None
    found = detect_format(path)
    assert found is not None
    assert found.engine == format_
    reader = found()  # so what is damaged is what is read
    assert len({entry.role for entry in reader.read(path)}) >= 4
    assert reader.summary.unknown_lines == 0
    assert before.messages == (4 if format_ == "claude_code" else 3)
    made = 0
    assert shown(path)
    for _ in range(10):
        lines = whole.splitlines(keepends=True)
        for _ in range(luck.choice([1, 1, 1, 2, 3])):
            lines = damaged_lines(lines, luck) if lines else lines
        path.write_bytes(b"".join(lines))
        made += shown(path)
        with suppress(UnwritableError):
            engine.check_forkable(ID, next(rows_of(path), {}))
        now = engine.fingerprint(path, ID)
        kept = path.read_bytes().startswith(whole)
        assert (loss_of(path, before) is None) == kept
        missing_message(now, before)
        for offset in (0, len(whole) // 2, len(whole)):
            read_part(path, offset)
    assert made
