"""Checks of which tools the agent called."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from skillup.checks.context import (
    CheckSubject,
    Finding,
    Span,
    around,
    beginning,
    listed,
    original_span,
    plain,
)
from skillup.checks.json_values import as_text, same_value, shown
from skillup.checks.text import Searcher, TextSearch
from skillup.schema.check_specs import ArgMatch, ToolCount, ToolMatch, ToolSequence
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import ToolCall

# Arguments of tool calls: which one is meant, and whether it is as wanted.

_ABSENT = object()
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
"""Kind → portable argument → what engines call it. As kinds make a check of calls portable, these
make one of their arguments so: ``{kind: write, args: {path: …}}`` means claude's ``file_path``, and
``file_path`` means codex's ``path``."""


def argument(call: ToolCall, path: str) -> Any:
    """The call's argument `path`: by that name, by a dotted path, or as this engine calls it.

    What is not there is a value of its own, different from null: see :func:`is_there`.
    """
    return _argument(call, path)[1]


def _argument(call: ToolCall, path: str) -> tuple[str, Any]:
    """With its path in the engine's own names."""
    if path in call.arguments:
        return path, call.arguments[path]
    here: Any = call.arguments
    steps = []
    for step in path.split("."):
        own = step
        if isinstance(here, Mapping):
            names = (step, *_other_names(call.kind, step))
            own = next((name for name in names if name in here), step)
            here = here.get(own, _ABSENT)
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return path, _ABSENT
        steps.append(own)
    return ".".join(steps), here


def _other_names(kind: str, name: str) -> tuple[str, ...]:
    for portable, own in PORTABLE_ARGUMENTS.get(kind, {}).items():
        if name == portable or name in own:
            return (portable, *own)
    return ()


def is_there(value: Any) -> bool:
    """Whether :func:`argument` found something."""
    return value is not _ABSENT


def argument_text(value: Any) -> str:
    """An argument as text. A list of words, such as an argv, is the words with spaces between."""
    if isinstance(value, list):
        return " ".join(as_text(item) for item in value)
    return as_text(value)


def names_a_file(path: str, value: Any) -> bool:
    """Whether the argument `path` of a call is a path of a file."""
    return isinstance(value, str) and path.rpartition(".")[2] in _PATHS


def in_workspace(path: str, workspaces: Iterable[str]) -> str:
    """`path` without detours, and relative if it lies in the workspace."""
    path = posixpath.normpath(path.replace("\\", "/"))
    for root in workspaces:
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return path


def argument_matches(
    wanted: ArgMatch, value: Any, searcher: Searcher, *, case_sensitive: bool
) -> bool:
    """Whether `value` is as wanted: all the conditions that are given hold."""
    if not is_there(value):
        return wanted.exists is False and wanted.model_fields_set == {"exists"}
    if wanted.exists is False:
        return False
    if "equals" in wanted.model_fields_set and not same_value(
        wanted.equals, value, case_sensitive=case_sensitive, partly=True
    ):
        return False
    if wanted.contains is not None:
        haystack = TextSearch(argument_text(value), case_sensitive=case_sensitive)
        if haystack.find(wanted.contains) is None:
            return False
    if wanted.matches is not None:
        return searcher.search(wanted.matches, plain(argument_text(value))) is not None
    return True


def _piece(wanted: ArgMatch, text: str, *, case_sensitive: bool) -> Span | None:
    """The piece of an argument's plain text that its condition is about; None: it has none."""
    if wanted.matches is not None:
        match = Searcher().search(wanted.matches, plain(text))
        return None if match is None else match.span()
    if wanted.contains is not None:
        return TextSearch(text, case_sensitive=case_sensitive).find(wanted.contains)
    return None


# Names of tools: an engine's own, and the two ways to write an MCP tool's.

_RAW = "mcp__"


@lru_cache(maxsize=4096)
def same_tool(wanted: str, name: str, case_sensitive: bool) -> bool:
    """Whether `wanted` names the tool `name`; ``*`` in it stands for anything.

    ``server::tool`` and ``mcp__server__tool`` are the same tool.
    """
    if wanted == name:
        return True
    if not case_sensitive:
        wanted, name = wanted.casefold(), name.casefold()
    names = _spellings(name)
    return any(_matches(one, names) for one in _spellings(wanted))


def _spellings(name: str) -> tuple[str, ...]:
    if "::" in name:
        return name, _RAW + name.replace("::", "__", 1)
    if name.startswith(_RAW):
        return name, name.removeprefix(_RAW).replace("__", "::", 1)
    return (name,)


def _matches(wanted: str, names: tuple[str, ...]) -> bool:
    if "*" not in wanted:
        return wanted in names
    # Only the star is a wildcard here; fnmatch has two more.
    pattern = wanted.replace("[", "[[]").replace("?", "[?]")
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


# Which calls a tool match means, and how calls are shown.


class CallMatcher:
    """Tells, for one check, which calls match. Its patterns share one time limit."""

    __slots__ = ("_case_sensitive", "_searcher", "_subject", "_workspaces")

    def __init__(self, subject: CheckSubject) -> None:
        self._subject = subject
        self._case_sensitive = subject.case_sensitive
        self._workspaces = {turn.workspace for turn in subject.turns if turn.workspace}
        self._searcher = Searcher()

    def matches(self, wanted: ToolMatch, call: ToolCall) -> bool:
        """Whether `call` is of the wanted name, kind and arguments."""
        return self.is_meant(wanted, call) and all(
            self._is_as_wanted(match, path, argument(call, path))
            for path, match in wanted.args.items()
        )

    def _is_as_wanted(self, match: ArgMatch, path: str, value: Any) -> bool:
        """Of a path, in the engine's spelling or as the shortest that names the same file."""
        exact, searcher = self._case_sensitive, self._searcher
        if argument_matches(match, value, searcher, case_sensitive=exact):
            return True
        if not names_a_file(path, value):
            return False
        if isinstance(match.equals, str):
            match = match.model_copy(
                update={"equals": in_workspace(match.equals, self._workspaces)}
            )
        value = in_workspace(value, self._workspaces)
        return argument_matches(match, value, searcher, case_sensitive=exact)

    def is_meant(self, wanted: ToolMatch, call: ToolCall) -> bool:
        """Whether `call` is of the wanted name and kind, whatever its arguments."""
        if wanted.kind is not None and wanted.kind != call.kind:
            return False
        return wanted.name is None or same_tool(wanted.name, call.name, self._case_sensitive)

    def evidence(self, wanted: ToolMatch, call: ToolCall) -> tuple[str, tuple[EvidenceSpan, ...]]:
        """The call with the pieces of its arguments that made it match, and where these are."""
        whole = self._subject.whole_call(call)[0]
        pieces, spans = [], []
        for path, match in wanted.args.items():
            own, value = _argument(call, path)
            if not is_there(value):
                continue
            text = argument_text(value)
            span = _piece(match, text, case_sensitive=self._case_sensitive)
            where: dict[str, object] = {"argument": own}
            if span is not None:
                pieces.append(f"{path}: {around(plain(text), span)}")
                if isinstance(value, str):
                    where["start"], where["end"] = original_span(text, span)
            spans.append(whole.model_copy(update=where))
        excerpt = f"{call.name}({', '.join(pieces)})" if pieces else show_call(call, 200)
        return excerpt, tuple(spans) or (whole,)


def show_call(call: ToolCall, longest: int = 100) -> str:
    """``Bash(command="rm -rf data")``, shortened."""
    arguments = ", ".join(
        f'{name}="{value}"' if isinstance(value, str) else f"{name}={shown(value)}"
        for name, value in call.arguments.items()
    )
    return f"{call.name}({beginning(arguments, longest)})"


def show_calls(calls: Iterable[ToolCall]) -> str:
    """The calls in order, as many as fit."""
    return listed((show_call(call) for call in calls), nothing="no tool was called")


# Comparing a list of wanted things with a list of actual ones.

Wanted = TypeVar("Wanted")
Actual = TypeVar("Actual")


def first_unlike(
    wanted: Sequence[Wanted], actual: Sequence[Actual], fits: Callable[[Wanted, Actual], bool]
) -> int | None:
    """The first place where the lists differ; None if they have the same length and all fit."""
    for index, (one, other) in enumerate(zip(wanted, actual, strict=False)):
        if not fits(one, other):
            return index
    shorter, longer = sorted((len(wanted), len(actual)))
    return None if shorter == longer else shorter


def first_out_of_order(
    wanted: Sequence[Wanted], actual: Sequence[Actual], fits: Callable[[Wanted, Actual], bool]
) -> int | None:
    """The first wanted thing that does not come after those before it; others may be between.

    Taking the earliest fit each time is enough: a later one never leaves more to choose from.
    """
    rest = iter(actual)
    for index, one in enumerate(wanted):
        if not any(fits(one, other) for other in rest):
            return index
    return None


def unpaired(
    wanted: Sequence[Wanted], actual: Sequence[Actual], fits: Callable[[Wanted, Actual], bool]
) -> list[int]:
    """Indexes of wanted things left over when as many as possible have an actual one of their own.

    A maximum matching (augmenting paths): first come, first served would let a wanted thing that
    many fit take the only one that fits another.
    """
    fitting = [[i for i, other in enumerate(actual) if fits(one, other)] for one in wanted]
    taken_by: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for candidate in fitting[index]:
            if candidate in tried:
                continue
            tried.add(candidate)
            if candidate not in taken_by or place(taken_by[candidate], tried):
                taken_by[candidate] = index
                return True
        return False

    return [index for index in range(len(wanted)) if not place(index, set())]


def tool_called(spec: ToolCount, subject: CheckSubject) -> Finding:
    """A tool was called, as often as wanted: at least once, unless the check says otherwise."""
    matcher = CallMatcher(subject)
    calls = subject.calls
    hits = [call for call in calls if matcher.matches(spec, call)]
    least = spec.min if spec.min is not None else int(spec.max != 0)
    passed = least <= len(hits) and (spec.max is None or len(hits) <= spec.max)
    if hits:
        excerpt, spans = matcher.evidence(spec, hits[0])
        return Finding(passed, _times(len(hits)), excerpt, spans=spans)
    similar = [call for call in calls if matcher.is_meant(spec, call)]
    if similar and spec.args:
        return Finding(passed, "called, but with other arguments", show_calls(similar))
    return Finding(passed, "not called", show_calls(calls))


def tool_not_called(spec: ToolMatch, subject: CheckSubject) -> Finding:
    """No such call was made."""
    matcher = CallMatcher(subject)
    calls = subject.calls
    hits = [call for call in calls if matcher.matches(spec, call)]
    if hits:
        excerpt, spans = matcher.evidence(spec, hits[0])
        return Finding(False, _times(len(hits)), excerpt, spans=spans)
    return Finding(True, "not called", show_calls(calls))


def _times(count: int) -> str:
    return "called once" if count == 1 else f"called {count} times"


def tool_sequence(spec: ToolSequence, subject: CheckSubject) -> Finding:
    """Tools were called in an order (or, with `any_order`, each by a call of its own)."""
    matcher = CallMatcher(subject)
    calls = subject.calls
    made = show_calls(calls)
    if spec.mode == "any_order":
        left = unpaired(spec.calls, calls, matcher.matches)
        if left:
            wanted = listed(show_match(spec.calls[index]) for index in left)
            return Finding(False, f"no call for {wanted}", made)
        return Finding(True, "every call was made", made)
    if spec.mode == "exact":
        at = first_unlike(spec.calls, calls, matcher.matches)
        if at is None:
            return Finding(True, "exactly these calls were made", made)
        if at >= len(spec.calls):
            return Finding(False, f"call {at + 1} is one too many: {show_call(calls[at])}", made)
        instead = show_call(calls[at]) if at < len(calls) else "no further call"
        return Finding(False, f"call {at + 1} is not {show_match(spec.calls[at])}: {instead}", made)
    at = first_out_of_order(spec.calls, calls, matcher.matches)
    if at is None:
        return Finding(True, "called in this order", made)
    after = f" after {show_match(spec.calls[at - 1])}" if at else ""
    return Finding(False, f"{show_match(spec.calls[at])} was not called{after}", made)


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
    return " ".join(named)
