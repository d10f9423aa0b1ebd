"""Claude's session files: where they are, and whose messages count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.engines.claude_code.session import fingerprint, is_user_message, session_file

SESSION = "5d6a3c4e-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("entry", "counts"),
    [
        ({"message": {"content": "hello"}}, True),
        ({"message": {"content": [{"type": "text", "text": "hello"}]}}, True),
        ({"message": {"content": [{"type": "text", "text": ""}]}}, False),
        ({"message": {"content": [{"type": "tool_result", "content": "x"}]}}, False),
        ({"message": {"content": "caveat"}, "isMeta": True}, False),
        ({"message": {"content": "to the sub-agent"}, "isSidechain": True}, False),
        ({"message": {"content": "summary"}, "isCompactSummary": True}, False),
        ({"message": {"content": "[Request interrupted by user]"}}, False),
        ({"message": {"content": "hello"}, "type": "assistant"}, False),
        ({}, False),
        ({"message": []}, False),
    ],
)
def test_only_what_somebody_sent_is_a_user_message(entry: dict[str, Any], counts: bool) -> None:
    assert is_user_message({"type": "user", **entry}) is counts


def test_the_session_is_found_by_its_id_under_any_slug(tmp_path: Path) -> None:
    path = tmp_path / "projects" / "-some-long-slug-1a2b3c" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    lines = [{"type": "user", "message": {"content": "hello"}}, {"type": "mode"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "not JSON\n[1]\n")

    taken = fingerprint(tmp_path, SESSION)

    assert session_file(tmp_path, SESSION) == path
    assert taken is not None
    assert (taken.messages, taken.prefix_bytes) == (1, path.stat().st_size)
    assert session_file(tmp_path, "*") is None
    assert fingerprint(tmp_path, "another") is None
