"""Whether the agent used a skill, by evidence that no text of the agent's can make up.

Some agents have a tool for it (Claude Code's `Skill`); others just read the skill's SKILL.md
(Codex, by a shell command). What a command says it does proves nothing: what counts is that the
engine's tool loaded the skill or read its file, or that the file's own lines stand in a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillup.checks.context import CheckSubject, Finding, listed, not_assertable, plain
from skillup.checks.files import text_of
from skillup.checks.text import folded
from skillup.checks.tools import argument_text, show_call, show_calls
from skillup.schema.record import ToolCall, ToolResult

_TYPED = "command"
_NAMING = ("skill", "name", _TYPED)
_FILE = "/SKILL.md"
_LINES_IN_A_ROW = 3
_FEWEST_LETTERS = 4
_FEWEST_LETTERS_OF_ALL = 16
_LEFT_OUT = (" characters left out …", "truncated")


def skill_used(spec: str, subject: CheckSubject) -> Finding:
    """The skill was loaded, or its SKILL.md was read."""
    return _find(spec, subject, wanted=True)


def skill_not_used(spec: str, subject: CheckSubject) -> Finding:
    """The skill was neither loaded nor its SKILL.md read."""
    return _find(spec, subject, wanted=False)


def _find(spec: str, subject: CheckSubject, *, wanted: bool) -> Finding:
    skill = _Skill.of(spec, subject)
    doubtful: ToolCall | None = None
    named: list[str] = []
    for call, result in _calls(subject):
        if skill.is_used_by(call, result):
            where = subject.whole_call(call)
            return Finding(wanted, "used", show_call(call, 200), spans=where)
        if call.kind == "skill" and result is not None and result.status != "error":
            named.extend(_names(call, True))
        if doubtful is None and skill.may_be_used_by(call, result):
            doubtful = call
    for turn in subject.turns:
        for place, item in enumerate(turn.transcript):  # also of one whose call is not known
            result = item.tool_result
            if result is not None and skill.is_shown_by(result):
                where = (subject.span(turn, "result", item=place),)
                return Finding(wanted, "used", result.content[:200], spans=where)
    if doubtful is not None:
        why = "what it printed is not known, or not what the skill's file holds"
        return not_assertable(f"{show_call(doubtful)} may have read the skill: {why}")
    others = listed(dict.fromkeys(named), nothing="")
    found = f"not used; used instead: {others}" if others and wanted else "not used"
    return Finding(not wanted, found, show_calls(subject.calls))


@dataclass(frozen=True, slots=True)
class _Skill:
    """A skill as checks name it."""

    names: tuple[str, ...]
    """`plugin:name` is in the directory `name`; a name of its own may have a colon, too."""
    case_sensitive: bool
    lines: tuple[str, ...]
    """Of its SKILL.md, as far as no other skill has them and the agent cannot know them unread."""

    @classmethod
    def of(cls, spec: str, subject: CheckSubject) -> _Skill:
        wanted = folded(spec.strip(), case_sensitive=subject.case_sensitive)
        names = tuple(dict.fromkeys((wanted, wanted.rpartition(":")[2])))
        own: dict[str, None] = {}
        others: set[str] = set()
        for path, state in (subject.record.initial_files or {}).items():
            directory, _, file = path.rpartition("/")
            if file != "SKILL.md":
                continue
            text = plain(text_of(state, subject) or "")
            name = folded(directory.rpartition("/")[2], case_sensitive=subject.case_sensitive)
            if name in names or _titled(text, names, subject.case_sensitive):
                own.update(dict.fromkeys(_telling_lines(text)))
            else:
                others.update(_telling_lines(text))
        lines = tuple(line for line in own if line not in others)
        return cls(names, subject.case_sensitive, lines)

    def is_used_by(self, call: ToolCall, result: ToolResult | None) -> bool:
        """Whether the call loaded the skill, or was shown what its file holds."""
        if result is None:
            return False
        if result.status != "error":
            if call.kind == "skill" and self._is_named_by(call):
                return True
            if call.kind == "read" and self._has_its_file(call):
                return True
        return self.is_shown_by(result)

    def is_shown_by(self, result: ToolResult) -> bool:
        """Whether the lines of its file stand in the result."""
        return self._stands_in(plain(result.content))

    def may_be_used_by(self, call: ToolCall, result: ToolResult | None) -> bool:
        """Whether nobody can tell: it is about the skill, and what it gave is not all known."""
        if call.kind == "skill":
            return result is None and self._is_named_by(call)
        if call.kind == "read":
            return result is None and self._has_its_file(call)
        texts = list(self._arguments(call))
        if result is None or any(mark in result.content for mark in _LEFT_OUT):
            words = (folded(_FILE[1:], case_sensitive=self.case_sensitive), *self.names)
            return any(word in text for text in texts for word in words)
        if self.lines or result.status == "error" or not result.content.strip():
            return False
        return any(f"/{name}/" in f"/{text}" for text in texts for name in self.names)

    def _is_named_by(self, call: ToolCall) -> bool:
        return any(
            self.names[0] in (name, name.rpartition(":")[2])
            for name in _names(call, self.case_sensitive)
        )

    def _has_its_file(self, call: ToolCall) -> bool:
        file = folded(_FILE, case_sensitive=self.case_sensitive)
        return any(
            f"/{text}".endswith(f"/{name}{file}")
            for text in self._arguments(call)
            for name in self.names
        )

    def _arguments(self, call: ToolCall) -> Iterator[str]:
        for value in call.arguments.values():
            path = argument_text(value).replace("\\", "/")
            yield folded(path, case_sensitive=self.case_sensitive)

    def _stands_in(self, content: str) -> bool:
        """Whether some lines that follow each other in the file are in what a call gave.

        One alone may have been found by a search; all of a shorter file have to be there.
        """
        row = 0
        for line in self.lines:
            row = row + 1 if line in content else 0
            if row >= min(_LINES_IN_A_ROW, len(self.lines)):
                return True
        return False


def _calls(subject: CheckSubject) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    for turn in subject.turns:
        results = {result.call_id: result for result in turn.tool_results}
        yield from ((call, results.get(call.id)) for call in turn.tool_calls)


def _names(call: ToolCall, case_sensitive: bool) -> Iterator[str]:
    for key in _NAMING:
        value = call.arguments.get(key)
        if isinstance(value, str) and value.strip():
            # A name may have blanks in it. `command` is what a user would type: "/name and more".
            name = value.strip() if key != _TYPED else value.split()[0]
            yield folded(name.removeprefix("/"), case_sensitive=case_sensitive)


def _titled(text: str, names: Iterable[str], case_sensitive: bool) -> bool:
    front, _ = _parts(text)
    keys = (line.partition(":") for line in front)
    titles = (value.strip().strip("'\"") for key, _, value in keys if key.strip() == "name")
    return any(folded(title, case_sensitive=case_sensitive) in names for title in titles)


def _telling_lines(text: str) -> list[str]:
    """What the agent knows only by reading: its front matter is told to it in any case."""
    front, body = _parts(text)
    told = [line.strip() for line in body if _letters(line) >= _FEWEST_LETTERS]
    enough = sum(map(_letters, told)) >= _FEWEST_LETTERS_OF_ALL
    return told if enough else [*(line.strip() for line in front if line.strip()), *told]


def _letters(line: str) -> int:
    return sum(map(str.isalnum, line))


def _parts(text: str) -> tuple[list[str], list[str]]:
    lines = text.splitlines()
    if lines and lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() == "---":
                return lines[1:number], lines[number + 1 :]
    return [], lines
