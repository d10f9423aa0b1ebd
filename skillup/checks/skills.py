"""Whether the agent used a skill, by evidence that no text of the agent's can make up.

Some agents have a tool for it (Claude Code's `Skill`); others just read the skill's SKILL.md
(Codex, by a shell command). What a command says it does proves nothing: what counts is that the
engine's tool loaded the skill or read its file, or that the file's own lines stand in a result.
"""

from __future__ import annotations

from collections.abc import Iterator

from skillup.checks.context import CheckSubject, Finding, not_assertable, plain
from skillup.checks.files import text_of
from skillup.checks.text import folded
from skillup.checks.tools import Argument, show_call, show_calls
from skillup.schema.record import ToolCall, ToolResult

_FILE = "/SKILL.md"
_LINES_IN_A_ROW = 3
_FEWEST_LETTERS = 4
_FEWEST_LETTERS_OF_ALL = 16
_LEFT_OUT = (" characters left out …", "truncated")


def skill_used(spec: str, subject: CheckSubject, *, wanted: bool = True) -> Finding:
    """The skill was loaded, or its SKILL.md was read; or, if not `wanted`, neither."""
    skill = _Skill(spec, subject)
    doubtful: ToolCall | None = None
    for turn in subject.turns:
        results = {result.call_id: result for result in turn.tool_results}
        for call in turn.tool_calls:
            result = results.get(call.id)
            if skill.is_used_by(call, result):
                spans = subject.whole_call(call)
                return Finding(wanted, "used", show_call(call, 200), spans=spans)
            if doubtful is None and skill.may_be_used_by(call, result):
                doubtful = call
    for turn in subject.turns:
        for place, item in enumerate(turn.transcript):  # also results whose call is not known
            if item.tool_result is not None and skill.is_shown_by(item.tool_result):
                where = (subject.span(turn, "result", item=place),)
                return Finding(wanted, "used", item.tool_result.content[:200], spans=where)
    if doubtful is not None:
        why = "what it printed is not known, or not what the skill's file holds"
        return not_assertable(f"{show_call(doubtful)} may have read the skill: {why}")
    return Finding(not wanted, "not used", show_calls(subject.calls))


class _Skill:
    """A skill as a check names it, and what shows its use."""

    def __init__(self, spec: str, subject: CheckSubject) -> None:
        self._case_sensitive = subject.case_sensitive
        name = self._folded(spec.strip())
        # `plugin:name` is in the directory `name`; a name of its own may have a colon, too.
        self._names = tuple(dict.fromkeys((name, name.rpartition(":")[2])))
        own: dict[str, None] = {}
        others: set[str] = set()
        for path, state in (subject.record.initial_files or {}).items():
            directory, _, file = path.rpartition("/")
            if file == "SKILL.md":
                front, body = _parts(plain(text_of(state, subject) or ""))
                keys = (line.partition(":") for line in front)
                titles = [v.strip().strip("'\"") for k, _, v in keys if k.strip() == "name"]
                titles.append(directory.rpartition("/")[2])
                lines = dict.fromkeys(_characteristic_lines(front, body))
                is_it = any(self._folded(title) in self._names for title in titles)
                (own if is_it else others).update(lines)
        # As far as no other skill has them and the agent cannot know them unread.
        self._lines = [line for line in own if line not in others]

    def _folded(self, text: str) -> str:
        return folded(text, case_sensitive=self._case_sensitive)

    def is_used_by(self, call: ToolCall, result: ToolResult | None) -> bool:
        """Whether the call loaded the skill, or gave what its file holds."""
        if result is None:
            return False
        if result.status != "error" and self._is_named_by(call):
            return True
        return self.is_shown_by(result)

    def is_shown_by(self, result: ToolResult) -> bool:
        """Whether some lines that follow each other in its file are in the result.

        One alone may have been found by a search; all of a shorter file have to be there.
        """
        content = plain(result.content)
        row = 0
        for line in self._lines:
            row = row + 1 if line in content else 0
            if row >= min(_LINES_IN_A_ROW, len(self._lines)):
                return True
        return False

    def may_be_used_by(self, call: ToolCall, result: ToolResult | None) -> bool:
        """Whether nobody can say: it is about the skill, and what it gave is not all known."""
        if call.kind in ("skill", "read"):
            return result is None and self._is_named_by(call)
        texts = self._arguments(call)
        if result is None or any(mark in result.content for mark in _LEFT_OUT):
            words = (self._folded(_FILE[1:]), *self._names)
            return any(word in text for text in texts for word in words)
        if self._lines or result.status == "error" or not result.content.strip():
            return False
        return any(f"/{name}/" in f"/{text}" for text in texts for name in self._names)

    def _is_named_by(self, call: ToolCall) -> bool:
        """Whether the engine's tool for skills, or for reading files, was called with it."""
        if call.kind == "skill":
            called = list(_names(call, self._case_sensitive))
            return any(self._names[0] in (name, name.rpartition(":")[2]) for name in called)
        ends = tuple(f"/{name}{self._folded(_FILE)}" for name in self._names)
        return call.kind == "read" and any(f"/{t}".endswith(ends) for t in self._arguments(call))

    def _arguments(self, call: ToolCall) -> list[str]:
        texts = (Argument(name, value).text for name, value in call.arguments.items())
        return [self._folded(text.replace("\\", "/")) for text in texts]


def _names(call: ToolCall, case_sensitive: bool) -> Iterator[str]:
    for key in ("skill", "name", "command"):
        value = call.arguments.get(key)
        if isinstance(value, str) and value.strip():
            # A name may have blanks in it. `command` is what a user would type: "/name and more".
            name = value.strip() if key != "command" else value.split()[0]
            yield folded(name.removeprefix("/"), case_sensitive=case_sensitive)


def _characteristic_lines(front: list[str], body: list[str]) -> list[str]:
    """What the agent knows only by reading: its front matter is given to it in any case."""
    lines = [line.strip() for line in body if _letters(line) >= _FEWEST_LETTERS]
    enough = sum(map(_letters, lines)) >= _FEWEST_LETTERS_OF_ALL
    return lines if enough else [*(line.strip() for line in front if line.strip()), *lines]


def _letters(line: str) -> int:
    return sum(map(str.isalnum, line))


def _parts(text: str) -> tuple[list[str], list[str]]:
    lines = text.splitlines()
    if lines and lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() == "---":
                return lines[1:number], lines[number + 1 :]
    return [], lines
