"""Whether the agent used a skill.

Some agents have a tool for it (Claude Code's `Skill`); others just read the skill's SKILL.md
(Codex, by a shell command).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from skillup.checks.context import Subject
from skillup.checks.evidence import listed
from skillup.checks.finding import Finding
from skillup.checks.folding import folded
from skillup.checks.skill_reading import was_read
from skillup.checks.tool_args import argument_text
from skillup.checks.tool_calls import show_call, show_calls
from skillup.schema.record import ToolCall, ToolResult

_TYPED = "command"
_NAMING = ("skill", "name", _TYPED)
_FILE = "/skill.md"


def skill_used(spec: str, subject: Subject) -> Finding:
    """A call names the skill, or reads its SKILL.md."""
    call = _use(spec, subject)
    if call is not None:
        return Finding(True, "used", show_call(call, 200))
    others = listed(_skills_named(call for call, _ in _answered(subject)), nothing="")
    found = f"not used; used instead: {others}" if others else "not used"
    return Finding(False, found, show_calls(subject.calls))


def skill_not_used(spec: str, subject: Subject) -> Finding:
    """No call names the skill or reads its SKILL.md."""
    call = _use(spec, subject)
    if call is not None:
        return Finding(False, "used", show_call(call, 200))
    return Finding(True, "not used", show_calls(subject.calls))


def _use(skill: str, subject: Subject) -> ToolCall | None:
    wanted = folded(skill.strip(), case_sensitive=subject.case_sensitive)
    for call, result in _answered(subject):
        if call.kind == "skill" and any(
            name == wanted or name.rpartition(":")[2] == wanted
            for name in _names(call, subject.case_sensitive)
        ):
            return call
        if call.kind not in ("read", "shell") or not _reads(call, wanted, subject.case_sensitive):
            continue
        if call.kind == "read" or was_read(result, _directories(wanted)):
            return call
    return None


def _answered(subject: Subject) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    """The calls with what they gave, without those that did not get a skill or a file.

    Shell commands are among them in any case: one that failed may have read a file all the same.
    """
    for turn in subject.turns:
        results = {result.call_id: result for result in turn.tool_results}
        for call in turn.tool_calls:
            result = results.get(call.id)
            failed = result is not None and result.status == "error"
            if call.kind not in ("skill", "read") or not failed:
                yield call, result


def _names(call: ToolCall, case_sensitive: bool) -> Iterator[str]:
    for key in _NAMING:
        value = call.arguments.get(key)
        if isinstance(value, str) and value.strip():
            # A name may have blanks in it. `command` is what a user would type: "/name and more".
            name = value.strip() if key != _TYPED else value.split()[0]
            yield folded(name.removeprefix("/"), case_sensitive=case_sensitive)


def _skills_named(calls: Iterable[ToolCall]) -> Iterator[str]:
    named = (name for call in calls if call.kind == "skill" for name in _names(call, True))
    yield from dict.fromkeys(named)


def _reads(call: ToolCall, skill: str, case_sensitive: bool) -> bool:
    directories = _directories(skill)
    for text in map(_argument, call.arguments.values()):
        if _FILE not in text.casefold():
            continue
        path = text.replace("\\", "/")
        path = folded(path, case_sensitive=case_sensitive)
        file = "/SKILL.md" if case_sensitive else _FILE
        if any(_stands_in(path, directory + file) for directory in directories):
            return True
    return False


def _directories(skill: str) -> list[str]:
    """The directory of `plugin:name` is `name`; a skill may have a colon in its own name, too."""
    return list(dict.fromkeys((skill, skill.rpartition(":")[2])))


def _stands_in(text: str, path: str) -> bool:
    """Whether `path` is in `text`, and not as the end of a longer name."""
    at = text.find(path)
    while at >= 0:
        if at == 0 or text[at - 1] in "/ \"'=\n\t(":
            return True
        at = text.find(path, at + 1)
    return False


def _argument(value: Any) -> str:
    return argument_text(value).replace("\\", "/")
