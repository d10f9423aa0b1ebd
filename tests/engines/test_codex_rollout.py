"""Rollouts: fingerprints, a turn's own tokens, and calls that the event stream does not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.engines.codex.engine import Codex
from skillup.engines.codex.rollout import (
    broken_sandbox,
    read_part,
    session_file,
    total_before,
    usage_of,
    with_missing_calls,
)
from skillup.engines.events import Transcript
from skillup.engines.session_files import loss_of, missing_message
from skillup.schema.record import Usage

CODEX = Codex()
THREAD = "01a1fdc3-5a8b-7963-93be-65f4ca65f5d9"


def entry(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}


def user(text: str) -> dict[str, Any]:
    item = {"type": "UserMessage", "content": [{"type": "text", "text": text}]}
    return entry("event_msg", type="item_completed", item=item)


def request(total: int, **usage: int) -> list[dict[str, Any]]:
    info = {"total_token_usage": {"input_tokens": total, "output_tokens": total // 10}}
    return [
        entry("token_usage_record", usage=usage),
        entry("event_msg", type="token_count", info=info),
    ]


def call(call_id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"cmd": command})
    return entry(
        "response_item",
        type="function_call",
        name="exec_command",
        arguments=arguments,
        call_id=call_id,
    )


def output(call_id: str, text: str) -> dict[str, Any]:
    return entry("response_item", type="function_call_output", call_id=call_id, output=text)


def ended(call_id: str) -> dict[str, Any]:
    item = {"type": "CommandExecution", "id": call_id}
    return entry("event_msg", type="item_completed", item=item)


def write(home: Path, *entries: dict[str, Any], append: bool = False) -> Path:
    path = home / "sessions" / "2026" / "01" / "01" / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if append else "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in entries)
    return path


def tokens(path: Path, start: int, end: int | None = None) -> Usage | None:
    part = read_part(path, start, end)
    return usage_of(total_before(path, start), part.total, part.usages)


def test_a_session_that_went_on_still_holds_its_beginning(tmp_path: Path) -> None:
    meta = entry("session_meta", id=THREAD, cli_version="0.169.0")
    path = write(tmp_path, meta, user("one"))
    first = CODEX.fingerprint(session_file(tmp_path, THREAD), THREAD)
    write(tmp_path, user("two"), append=True)
    second = CODEX.fingerprint(session_file(tmp_path, THREAD), THREAD)

    assert first is not None
    assert second is not None
    assert (first.messages, second.messages) == (1, 2)
    assert loss_of(path, first) is None
    assert missing_message(second, first) is None
    assert missing_message(first, first) is not None
    assert session_file(tmp_path, THREAD) == path


def test_a_session_that_was_rewritten_or_cut_does_not(tmp_path: Path) -> None:
    path = write(tmp_path, user("one"), user("two"))
    before = CODEX.fingerprint(session_file(tmp_path, THREAD), THREAD)
    assert before is not None

    write(tmp_path, user("eno"), user("two"), user("three"))
    assert loss_of(path, before) is not None
    write(tmp_path, user("one"))
    assert loss_of(path, before) is not None
    path.unlink()
    assert loss_of(path, before) is not None
    assert CODEX.fingerprint(session_file(tmp_path, THREAD), THREAD) is None


def test_what_a_session_lost_is_told_in_bytes_and_digests(tmp_path: Path) -> None:
    path = write(tmp_path, user("one"), user("two"))
    size = path.stat().st_size
    before = CODEX.fingerprint(session_file(tmp_path, THREAD), THREAD)
    assert before is not None
    assert loss_of(path, before) is None

    write(tmp_path, user("eno"), user("two"), user("three"))
    changed = loss_of(path, before) or ""
    assert f"{path}: it held {size} bytes after the turn before, and these are others" in changed
    assert f"sha256 {before.prefix_sha256[:16]}… then" in changed
    write(tmp_path, user("one"))
    assert f"and holds {path.stat().st_size} now" in (loss_of(path, before) or "")
    path.unlink()
    assert "its file is gone" in (loss_of(path, before) or "")
    assert missing_message(None, before) == (
        "it held user messages before the turn: 2; after it: 0"
    )


def test_the_tokens_of_the_third_turn_are_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, *request(100, input_tokens=100, output_tokens=10))
    write(tmp_path, *request(200, input_tokens=100, output_tokens=10), append=True)
    offset = path.stat().st_size
    write(tmp_path, *request(230, input_tokens=30, output_tokens=3), append=True)
    write(
        tmp_path,
        *request(270, input_tokens=40, output_tokens=4, cached_input_tokens=5),
        append=True,
    )

    usage = tokens(path, offset)

    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.requests) == (70, 7, 2)
    assert usage.cached_input_tokens == 5
    assert usage.reasoning_tokens is None


def test_without_records_of_requests_the_total_before_is_subtracted(tmp_path: Path) -> None:
    path = write(tmp_path, request(200)[1])
    offset = path.stat().st_size
    write(tmp_path, request(230)[1], request(270)[1], append=True)

    own = tokens(path, offset)
    first = tokens(path, 0, offset)

    assert own is not None
    assert (own.input_tokens, own.output_tokens, own.requests) == (70, 7, None)
    assert first is not None
    assert first.input_tokens == 200


def test_without_any_counts_the_usage_is_unknown(tmp_path: Path) -> None:
    path = write(tmp_path, user("one"), request(100)[1])
    offset = path.stat().st_size
    write(tmp_path, user("two"), append=True)

    assert tokens(path, offset) is None


def test_refused_calls_stand_where_they_were_made(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Delete File: b.txt\n*** End Patch\n"
    path = write(
        tmp_path,
        *[call("c0", "touch zero"), output("c0", "Exit\nOutput:\nRead-only")],
        *[call("c1", "echo one"), ended("c1"), output("c1", "one")],
        *[call("c2", "touch two"), output("c2", "Read-only")],
        entry(
            "response_item",
            type="custom_tool_call",
            name="apply_patch",
            call_id="c3",
            input=patch,
        ),
        entry("response_item", type="custom_tool_call_output", call_id="c3", output="refused"),
        *[call("c4", "sleep 99"), output("c4", "Process running with session ID 7")],
    )
    seen = Transcript()
    seen.message("First.")
    seen.call("item_0", "command_execution", "shell", {"command": "echo one"})
    seen.result("item_0", "success", "one")
    ends = [len(seen.items)]
    seen.message("Last.")

    items = with_missing_calls(seen.items, ends, [], read_part(path, 0), [])

    assert [
        (item.tool_call.kind, *item.tool_call.arguments.values()) if item.tool_call else item.text
        for item in items
        if item.tool_result is None
    ] == [
        "First.",
        ("shell", "touch zero"),
        ("shell", "echo one"),
        ("shell", "touch two"),
        ("write", "a.txt", "add"),
        ("edit", "b.txt", "delete"),
        "Last.",
    ]
    contents = [item.tool_result.content for item in items if item.tool_result]
    assert contents == ["Read-only", "one", "Read-only", "refused", "refused"]


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (["bwrap: setting up uid map: Permission denied\n"] * 2, "bwrap: setting up uid map: "),
        (["failed to exec system bubblewrap /usr/bin/bwrap: ENOENT"], "failed to exec system"),
        (["bwrap: Creating new namespace failed (ENOSPC)", "Read-only file system"], None),
        (["touch: bwrap: Read-only file system"], None),
        ([], None),
    ],
)
def test_commands_that_no_sandbox_could_be_made_for_are_the_machines_failure(
    tmp_path: Path, outputs: list[str], said: str | None
) -> None:
    """S2: only if none of the turn's commands ran; codex shows no event for any of them."""
    calls = [(call(f"c{n}", "touch x"), output(f"c{n}", text)) for n, text in enumerate(outputs)]
    path = write(tmp_path, *[line for pair in calls for line in pair])

    found = broken_sandbox(with_missing_calls([], [], [], read_part(path, 0), []))

    assert (found is None) if said is None else (found is not None and found.startswith(said))


def test_a_command_that_ran_shows_that_there_is_a_sandbox() -> None:
    """S2: whatever it printed."""
    seen = Transcript()
    seen.call("item_0", "command_execution", "shell", {"command": "echo bwrap: x"})
    seen.result("item_0", "success", "bwrap: x")

    assert broken_sandbox(seen.items) is None


def test_a_skill_that_the_prompt_loaded_is_a_call(tmp_path: Path) -> None:
    content = [{"type": "input_text", "text": "<skill>\n<name>greeter</name>\nBow.\n</skill>"}]
    path = write(tmp_path, entry("response_item", type="message", role="user", content=content))

    items = with_missing_calls([], [], [], read_part(path, 0), ["greeter"])
    unknown = with_missing_calls([], [], [], read_part(path, 0), ["other"])

    assert [item.tool_call.arguments for item in items if item.tool_call] == [{"skill": "greeter"}]
    assert unknown == []
