"""Every check by its key: the one place to add one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from skillup.checks import compound, files, golden, jsonpath, limits, skills, text, tools
from skillup.checks.context import Subject
from skillup.checks.finding import Finding
from skillup.schema.grade import CheckResult

LOOKING: dict[str, Callable[[Any, Subject], Finding]] = {
    "contains": text.contains,
    "not_contains": text.contains_none,
    "matches": text.matches,
    "glob": text.glob,
    "not_glob": text.not_glob,
    "equals": text.equals,
    "min_tokens": limits.min_tokens,
    "max_tokens": limits.max_tokens,
    "json": jsonpath.json_value,
    "tool_called": tools.tool_called,
    "tool_not_called": tools.tool_not_called,
    "tool_sequence": tools.tool_sequence,
    "skill_used": skills.skill_used,
    "skill_not_used": skills.skill_not_used,
    "files_exist": files.files_exist,
    "files_not_exist": files.files_not_exist,
    "file_contains": files.file_contains,
    "golden_file": golden.golden_file,
    "exit_code": limits.exit_code,
    "max_cost_usd": limits.max_cost_usd,
    "max_duration_seconds": limits.max_duration_seconds,
    "must_contain": text.contains_all,
    "must_contain_all": text.contains_all,
    "must_contain_any": text.contains_any,
    "must_not_contain": text.contains_none,
    "output_contains": text.contains,
    "output_matches": text.matches_with_case,
    "turn_response_contains": text.turn_contains,
    "turn_response_not_contains": text.turn_not_contains,
    "tool_called_in_turn": tools.tool_called,
    "tool_not_called_in_turn": tools.tool_not_called,
}
"""Checks that look at the record themselves: what they are asked, and of what."""

COMBINING: dict[str, Callable[[Sequence[CheckResult]], Finding]] = {
    "any_of": compound.any_of,
    "all_of": compound.all_of,
    "none_of": compound.none_of,
}
"""Checks made of checks."""

ASKING = frozenset(
    {"script", "rubric", "similar", "expected_output", "relevance", "answer_quality"}
)
"""Checks that need a judge; the context says whom to ask."""

NAMES_ITS_TURN = frozenset(
    {
        "turn_response_contains",
        "turn_response_not_contains",
        "tool_called_in_turn",
        "tool_not_called_in_turn",
    }
)
"""Checks whose arguments have a `turn` of their own."""
