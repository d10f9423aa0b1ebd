"""Checks of which tools the agent called, and whether it used a skill."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from skillup.checks.context import (
    CheckSubject,
    Finding,
    NotAssertableError,
    Span,
    around,
    beginning,
    listed,
    original_span,
    plain,
)
from skillup.checks.text import Searcher, as_text, find_text, folded, same_value, shown
from skillup.schema.checks import ArgMatch, ToolCount, ToolMatch, ToolSequence
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import ToolCall, ToolResult

_FILE = ("file_path", "notebook_path", "filename")
_PATHS = frozenset({"path", *_FILE})

PORTABLE_ARGUMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "shell": {"command": ("cmd", "script")},
    "read": {"path": _FILE},
    "write": {"path": _FILE, "content": ("text", "file_text")},
    "edit": {"path": _FILE},
    "search": {"pattern": ("query", "regex")},
    "web": {"url": ("uri",), "query": ("q",)},
    "skill": {"skill": ("name", "command")},
}
"""Kind → portable argument → what engines call it: ``{kind: write, args: {path: …}}`` means
claude's ``file_path``, and ``file_path`` means codex's ``path``."""


class Argument(NamedTuple):
    name: str  # In the engine's own words; dotted if nested
    value: Any

    @property
    def text(self) -> str:
        """As text. A list of words, such as an argv, is the words with spaces between."""
        words = self.value if isinstance(self.value, list) else [self.value]
        return " ".join(map(as_text, words))


def argument(call: ToolCall, path: str) -> Argument | None:
    """The call's argument `path`: by that name, by a dotted path, or as this engine calls it."""
    if path in call.arguments:
        return Argument(path, call.arguments[path])
    here: Any = call.arguments
    steps = []
    for step in path.split("."):
        own: str | None = step
        if isinstance(here, Mapping):
            groups = PORTABLE_ARGUMENTS.get(call.kind, {}).items()
            others = ((name, *names) for name, names in groups if step == name or step in names)
            own = next((n for n in (step, *next(others, ())) if n in here), None)
            here = None if own is None else here[own]
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            own = None
        if own is None:
            return None
        steps.append(own)
    return Argument(".".join(steps), here)


@lru_cache(maxsize=4096)
def same_tool(wanted: str, name: str, case_sensitive: bool) -> bool:
    """Whether `wanted`, in which ``*`` is anything, names the tool: ``s::t`` is ``mcp__s__t``."""
    if wanted == name:
        return True
    if not case_sensitive:
        wanted, name = wanted.casefold(), name.casefold()
    # Only the star is a wildcard here; fnmatch has two more.
    patterns = [one.replace("[", "[[]").replace("?", "[?]") for one in _spellings(wanted)]
    return any(fnmatch.fnmatchcase(one, p) for one in _spellings(name) for p in patterns)


def _spellings(name: str) -> tuple[str, ...]:
    if "::" in name:
        return name, "mcp__" + name.replace("::", "__", 1)
    if name.startswith("mcp__"):
        return name, name.removeprefix("mcp__").replace("__", "::", 1)
    return (name,)


class CallMatcher:
    """Finds, for one check, the calls that match. Its patterns share one time limit."""

    def __init__(self, subject: CheckSubject) -> None:
        self._subject, self._case_sensitive = subject, subject.case_sensitive
        self._workspaces = {turn.workspace for turn in subject.turns if turn.workspace}
        self._searcher = Searcher()

    def matches(self, wanted: ToolMatch, call: ToolCall) -> bool:
        return self.is_named(wanted, call) and all(
            self._fits(match, argument(call, path)) for path, match in wanted.args.items()
        )

    def is_named(self, wanted: ToolMatch, call: ToolCall) -> bool:
        if wanted.kind is not None and wanted.kind != call.kind:
            return False
        return wanted.name is None or same_tool(wanted.name, call.name, self._case_sensitive)

    def _fits(self, match: ArgMatch, found: Argument | None) -> bool:
        """A path may be in the engine's spelling, or the shortest that names the same file."""
        if found is None or match.exists is False:
            return found is None and match.model_fields_set == {"exists"} and not match.exists
        if self._holds(match, found):
            return True
        if not isinstance(found.value, str) or found.name.rpartition(".")[2] not in _PATHS:
            return False
        if isinstance(match.equals, str):
            match = match.model_copy(update={"equals": self._relative(match.equals)})
        return self._holds(match, found._replace(value=self._relative(found.value)))

    def _relative(self, path: str) -> str:
        """`path` without detours, and relative if it lies in the workspace."""
        path = posixpath.normpath(path.replace("\\", "/"))
        root = next((root for root in self._workspaces if path.startswith(f"{root}/")), None)
        return path if root is None else path[len(root) + 1 :]

    def _holds(self, match: ArgMatch, found: Argument) -> bool:
        same = partial(same_value, case_sensitive=self._case_sensitive, partly=True)
        if "equals" in match.model_fields_set and not same(match.equals, found.value):
            return False
        if match.contains is not None and self._find(match.contains, found.text) is None:
            return False
        pattern = match.matches
        return pattern is None or self._searcher.find(pattern, plain(found.text)) is not None

    def _find(self, piece: str, text: str) -> Span | None:
        return find_text(text, piece, case_sensitive=self._case_sensitive)

    def finding(self, passed: bool, wanted: ToolMatch, hits: Sequence[ToolCall]) -> Finding:
        """`hits` match: the first, with the pieces of its arguments that made it match."""
        call = hits[0]
        whole = self._subject.whole_call(call)[0]
        pieces: list[str] = []
        spans: list[EvidenceSpan] = []
        for path, match in wanted.args.items():
            found = argument(call, path)
            if found is None:
                continue
            span = None
            if match.matches is not None:
                span = self._searcher.find(match.matches, plain(found.text))
            elif match.contains is not None:
                span = self._find(match.contains, found.text)
            where: dict[str, object] = {"argument": found.name}
            if span is not None:
                pieces.append(f"{path}: {around(plain(found.text), span)}")
                if isinstance(found.value, str):
                    where["start"], where["end"] = original_span(found.text, span)
            spans.append(whole.model_copy(update=where))
        excerpt = f"{call.name}({', '.join(pieces)})" if pieces else show_call(call, 200)
        times = "called once" if len(hits) == 1 else f"called {len(hits)} times"
        return Finding(passed, times, excerpt, spans=tuple(spans) or (whole,))


def show_call(call: ToolCall, longest: int = 100) -> str:
    """``Bash(command="rm -rf data")``, shortened."""
    values = ((n, f'"{v}"' if isinstance(v, str) else shown(v)) for n, v in call.arguments.items())
    arguments = ", ".join(f"{name}={value}" for name, value in values)
    return f"{call.name}({beginning(arguments, longest)})"


def show_calls(calls: Iterable[ToolCall]) -> str:
    return listed((show_call(call) for call in calls), nothing="no tool was called")


def tool_called(spec: ToolMatch, subject: CheckSubject) -> Finding:
    """A tool was called, as often as a ToolCount wants it; by a bare match, never."""
    matcher, calls = CallMatcher(subject), subject.calls
    hits = [call for call in calls if matcher.matches(spec, call)]
    least, most = (spec.min, spec.max) if isinstance(spec, ToolCount) else (None, 0)
    least = least if least is not None else int(most != 0)
    passed = least <= len(hits) and (most is None or len(hits) <= most)
    if hits:
        return matcher.finding(passed, spec, hits)
    similar = [call for call in calls if matcher.is_named(spec, call)]
    if similar and spec.args and least:
        return Finding(passed, "called, but with other arguments", show_calls(similar))
    return Finding(passed, "not called", show_calls(calls))


def tool_sequence(spec: ToolSequence, subject: CheckSubject) -> Finding:
    """Tools were called in an order (or, with `any_order`, each by a call of its own)."""
    fits, calls, wanted = CallMatcher(subject).matches, subject.calls, spec.calls
    made = show_calls(calls)
    if spec.mode == "any_order":
        left = listed((show_match(wanted[i]) for i in _unpaired(wanted, calls, fits)), nothing="")
        return Finding(not left, f"no call for {left}" if left else "every call was made", made)
    if spec.mode == "exact":
        pairs = enumerate(zip(wanted, calls, strict=False))
        end = min(len(wanted), len(calls))
        same = next((i for i, (one, call) in pairs if not fits(one, call)), end)
        if same == len(wanted) == len(calls):
            return Finding(True, "exactly these calls were made", made)
        sought = show_match(wanted[same]) if same < len(wanted) else "no further call"
        instead = show_call(calls[same]) if same < len(calls) else "none was made"
        return Finding(False, f"call {same + 1} is not {sought}: {instead}", made)
    # In order, with others between. To take the earliest fit each time is enough: a later one never
    # leaves more to choose from.
    rest = iter(calls)
    at = next((i for i, one in enumerate(wanted) if not any(fits(one, c) for c in rest)), None)
    if at is None:
        return Finding(True, "called in this order", made)
    after = f" after {show_match(wanted[at - 1])}" if at else ""
    return Finding(False, f"{show_match(wanted[at])} was not called{after}", made)


def _unpaired(
    wanted: Sequence[ToolMatch],
    calls: Sequence[ToolCall],
    fits: Callable[[ToolMatch, ToolCall], bool],
) -> list[int]:
    """Indexes of wanted calls left over when as many as possible have a call of their own."""
    # A maximum matching (augmenting paths): first come, first served could take another's only one.
    fitting = [[i for i, call in enumerate(calls) if fits(one, call)] for one in wanted]
    taken_by: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for candidate in fitting[index]:
            if candidate not in tried:
                tried.add(candidate)
                if candidate not in taken_by or place(taken_by[candidate], tried):
                    taken_by[candidate] = index
                    return True
        return False

    return [index for index in range(len(wanted)) if not place(index, set())]


def show_match(match: ToolMatch) -> str:
    """``shell args.command ~ /rm/``: a wanted call in one line."""
    named = [part for part in (match.name, match.kind) if part]
    for path, wanted in match.args.items():
        where = f"args.{path}"
        if "equals" in wanted.model_fields_set:
            named.append(f"{where} = {shown(wanted.equals)}")
        if wanted.contains is not None:
            named.append(f"{where} has {shown(wanted.contains)}")
        if wanted.matches is not None:
            named.append(f"{where} ~ /{wanted.matches}/")
        if wanted.exists is not None:
            named.append(f"{where} {'exists' if wanted.exists else 'is absent'}")
    counts = [
        f"{word} {n}" for word in ("min", "max") if (n := getattr(match, word, None)) is not None
    ]
    return ", ".join([" ".join(named), *counts])


# Whether the agent used a skill, by evidence that no text of the agent's can make up. Some agents
# have a tool for it (Claude Code's `Skill`); others just read its SKILL.md (Codex, in a shell).
# What a command says it does proves nothing: what counts is that the engine's tool loaded the skill
# or read its file, or that the file's own lines stand in a result.

_SKILL_FILE = "/SKILL.md"
_LINES_IN_A_ROW = 3  # One alone may have been found by a search
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
            loaded = result is not None and result.status != "error" and skill.is_named_by(call)
            if loaded or (result is not None and skill.is_shown_by(result)):
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
        raise NotAssertableError(f"{show_call(doubtful)} may have read the skill: {why}")
    return Finding(not wanted, "not used", show_calls(subject.calls))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


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
                front, body = list[str](), plain(subject.text_of(state) or "").splitlines()
                fences = [n for n, line in enumerate(body) if line.rstrip() == "---"][:2]
                if fences[:1] == [0] and len(fences) == 2:
                    front, body = body[1 : fences[1]], body[fences[1] + 1 :]
                keys = (line.partition(":") for line in front)
                titles = [v.strip().strip("'\"") for k, _, v in keys if k.strip() == "name"]
                titles.append(directory.rpartition("/")[2])
                # What the agent knows only by reading: the front matter is given to it anyway.
                lines = [one.strip() for one in body if _letters(one) >= _FEWEST_LETTERS]
                if _letters("".join(lines)) < _FEWEST_LETTERS_OF_ALL:
                    lines = [*(line.strip() for line in front if line.strip()), *lines]
                is_it = any(self._folded(title) in self._names for title in titles)
                (own if is_it else others).update(dict.fromkeys(lines))
        # As far as no other skill has them and the agent cannot know them unread.
        self._lines = [line for line in own if line not in others]

    def _folded(self, text: str) -> str:
        return folded(text, case_sensitive=self._case_sensitive)

    def is_shown_by(self, result: ToolResult) -> bool:
        """Whether some lines in a row of its file are there; of a shorter file, all."""
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
            return result is None and self.is_named_by(call)
        texts = self._arguments(call)
        if result is None or any(mark in result.content for mark in _LEFT_OUT):
            words = (self._folded(_SKILL_FILE[1:]), *self._names)
            return any(word in text for text in texts for word in words)
        if self._lines or result.status == "error" or not result.content.strip():
            return False
        return any(f"/{name}/" in f"/{text}" for text in texts for name in self._names)

    def is_named_by(self, call: ToolCall) -> bool:
        """Whether the engine's tool for skills, or for reading files, was called with it."""
        if call.kind == "skill":
            given = [(k, call.arguments.get(k)) for k in ("skill", "name", "command")]
            texts = [(k, v.strip()) for k, v in given if isinstance(v, str) and v.strip()]
            # A name may have blanks in it. `command` is what a user would type: "/name and more".
            names = (v.split()[0] if k == "command" else v for k, v in texts)
            called = [self._folded(name.removeprefix("/")) for name in names]
            return any(self._names[0] in (name, name.rpartition(":")[2]) for name in called)
        ends = tuple(f"/{name}{self._folded(_SKILL_FILE)}" for name in self._names)
        return call.kind == "read" and any(f"/{t}".endswith(ends) for t in self._arguments(call))

    def _arguments(self, call: ToolCall) -> list[str]:
        texts = (Argument(name, value).text for name, value in call.arguments.items())
        return [self._folded(text.replace("\\", "/")) for text in texts]
