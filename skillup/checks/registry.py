"""Every check by its key: what it looks at, and how it reads in one line. One is added here.

Checks of the workspace, as it stood after the turn, and of amounts are here themselves.
"""

from __future__ import annotations

import difflib
import operator
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from skillup.checks import text, tools
from skillup.checks.context import (
    CannotEvaluateError,
    CheckSubject,
    Finding,
    NotAssertableError,
    around,
    beginning,
    first_difference,
    is_said,
    listed,
    original_span,
    plain,
    quoted,
)
from skillup.checks.nearest import Missing
from skillup.checks.text import Searcher, find_text, shown
from skillup.checks.tools import show_match
from skillup.dataclass import frozen
from skillup.schema.base import outside_problem
from skillup.schema.checks import Check, FileContains, GoldenFile, JsonMatch, TextSet, ToolCount
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import FileState, TurnRecord
from skillup.workspace.globs import matches_any_glob, matches_glob, may_match_below

FOLLOW_UP = "follow_up"
_AMOUNTS: dict[str, tuple[Callable[[TurnRecord], float | None], str, str]] = {
    "tokens": (
        lambda turn: turn.usage.output_tokens if turn.usage is not None else None,
        "{:g} output tokens",
        "the engine did not report its output tokens",
    ),
    "cost": (lambda turn: turn.cost_usd, "${:.6g}", "the engine did not report its cost"),
    "time": (lambda turn: turn.duration_ms / 1000 or None, "{:.3f} s", "its time is not known"),
}
"""What of a turn is counted, how it is shown, and why it may not be known."""


def _limit(spec: float, subject: CheckSubject, *, of: str, least: bool = False) -> Finding:
    amount, shown, unknown = _AMOUNTS[of]
    values = [value for turn in subject.turns if (value := amount(turn)) is not None]
    if len(values) < len(subject.turns):
        raise NotAssertableError(unknown)
    # Sums of cents are not exact in binary: 0.1 + 0.2 must still be within 0.3.
    total = round(sum(values), 9)
    return Finding(total >= spec if least else total <= spec, shown.format(total))


def _exit_code(spec: int, subject: CheckSubject) -> Finding:
    process = subject.last.process
    if process is None or process.exit_code is None:
        signal = f": it was ended by signal {process.signal}" if process and process.signal else ""
        raise NotAssertableError(f"the agent's process has no exit code{signal}")
    return Finding(process.exit_code == spec, f"exit code {process.exit_code}")


# The workspace as it stood after the turn.

_WILD = frozenset("*?[{")
NO_SNAPSHOT = "the workspace was not looked at after the turn"
Files = Mapping[str, FileState]


def path_problem(pattern: str) -> str | None:
    """Why `pattern` cannot name a file of the workspace; None if it can."""
    try:
        matches_glob("", normal_path(pattern))
    except re.error as trouble:
        return f"{pattern} is not a valid glob: {trouble}"
    return outside_problem(pattern)


def normal_path(pattern: str) -> str:
    """With forward slashes, without ``./`` and double slashes."""
    parts = pattern.replace("\\", "/").split("/")
    directory = "/" if len(parts) > 1 and not parts[-1] else ""
    return "/".join(part for part in parts if part not in ("", ".")) + directory


def _snapshot(subject: CheckSubject, patterns: Sequence[str]) -> Files:
    """The files after the last turn. Raises CannotEvaluateError for a path that leads outside."""
    if subject.last.files is None:
        raise NotAssertableError(NO_SNAPSHOT)
    for pattern in patterns:
        if (problem := path_problem(pattern)) is not None:
            raise CannotEvaluateError(problem)
    return subject.last.files


def _found_by(pattern: str, files: Collection[str]) -> list[str]:
    """Files that a path or glob finds; a directory is found by way of the files in it."""
    path = normal_path(pattern)
    bare = path.rstrip("/")
    if path in files:
        return [path]
    inside = [name for name in files if name.startswith(bare + "/")]
    if inside or not _WILD.intersection(bare):
        return inside
    if not path.endswith("/"):
        return [name for name in files if matches_any_glob(name, [bare])]
    return [n for n in files if "/" in n and matches_any_glob(n.rpartition("/")[0], [bare])]


def _absent(found: str, files: Files, patterns: Sequence[str], subject: CheckSubject) -> Finding:
    """Not there, unless nobody looked there; its spans are such files that were deleted."""
    for pattern in patterns:
        path = normal_path(pattern).rstrip("/")
        for place in [".git"] if ".git" in path.split("/") else subject.last.unseen:
            inside = place.rstrip("/")
            if place == ".git" or path == inside or may_match_below(inside, path):
                raise NotAssertableError(f"{pattern}: {place} was not looked at")
    turns = [t for t in subject.record.turns if t.turn_number <= subject.last.turn_number]
    steps = [*(step for turn in turns for step in turn.executed()), subject.last]
    changes = [step.changes for step in steps if step.changes is not None]
    gone = dict.fromkeys(path for one in changes for path in one.deleted)
    deleted = dict.fromkeys(path for pattern in patterns for path in _found_by(pattern, gone))
    excerpt = f"the workspace has: {listed(files, nothing='no files')}"
    return Finding(False, found, excerpt, spans=_in_files(subject, list(deleted)))


def _in_files(subject: CheckSubject, paths: Sequence[str]) -> tuple[EvidenceSpan, ...]:
    return tuple(subject.span(subject.last, "file", path=path) for path in paths[:10])


def files_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    files = _snapshot(subject, spec)
    missing: list[str] = []
    found: dict[str, None] = {}
    for pattern in spec:
        hits = _found_by(pattern, files)
        there = [path for path in hits if not files[path].dangling]
        if hits and not there:
            spans = _in_files(subject, hits)
            return Finding(False, f"a link that leads nowhere: {listed(hits)}", spans=spans)
        if not there:
            missing.append(pattern)
        found.update(dict.fromkeys(there[:10]))
    if missing:
        return _absent(f"not there: {listed(missing)}", files, missing, subject)
    return Finding(True, "all are there", listed(found), spans=_in_files(subject, list(found)))


def files_not_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    files = _snapshot(subject, spec)
    for pattern in spec:
        if hits := _found_by(pattern, files):
            spans = _in_files(subject, hits)
            return Finding(False, f"{pattern} is there", listed(hits), spans=spans)
    return replace(_absent("none is there", files, spec, subject), passed=True)


def file_contains(spec: Sequence[FileContains], subject: CheckSubject) -> Finding:
    """In each item, some file that the path finds has the content."""
    files = _snapshot(subject, [wanted.path for wanted in spec])
    finding = Finding(False, "there is nothing to look for")
    for wanted in spec:
        finding = _one_file(wanted, files, subject)
        if not finding.passed:
            return finding
    return finding


def _one_file(wanted: FileContains, files: Files, subject: CheckSubject) -> Finding:
    path = normal_path(wanted.path)  # directories do not count
    named = [path] if path in files else [name for name in files if matches_glob(name, path)]
    if not named:
        return _absent(f"{wanted.path} is not there", files, [wanted.path], subject)
    unread, leading_out = list[str](), list[str]()
    last, missing, searcher = "", None, Searcher()
    for path in named:
        state = _followed(path, files)
        content = None if state is None else subject.text_of(state)
        if content is None:
            (leading_out if state is None else unread).append(path)
            continue
        text, exact = plain(content), subject.case_sensitive
        if wanted.matches is not None:
            span = searcher.find(wanted.matches, text)
        else:
            span = find_text(content, wanted.content or "", case_sensitive=exact)
        if span is not None:
            start, end = original_span(content, span)
            place = subject.span(subject.last, "file", path=path, start=start, end=end)
            return Finding(True, f"found in {path}", around(text, span), spans=(place,))
        last = f"{path}: {beginning(text)}"
        piece, nowhere = wanted.matches or wanted.content or "", lambda _: ()
        missing = Missing(text, [piece], nowhere, bool(wanted.matches), exact)
    if unread:
        raise CannotEvaluateError(f"the content of {listed(unread)} was not kept in the record")
    if leading_out:
        raise NotAssertableError(f"links to no file of the workspace: {listed(leading_out)}")
    where = named[0] if len(named) == 1 else f"any of {len(named)} files"
    what = quoted(wanted.content) if wanted.content is not None else f"/{wanted.matches}/"
    found, spans = f"{what} is not in {where}", _in_files(subject, named)
    return Finding(False, found, last, spans=spans, missing=missing)


def _followed(path: str, files: Files) -> FileState | None:
    """The file at `path`, symbolic links followed; None if they lead to no file of the snapshot."""
    for _ in range(8):
        state = files.get(path)
        if state is None or state.link is None:
            return state
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), state.link))
    return None


def golden_file(spec: GoldenFile, subject: CheckSubject) -> Finding:
    """The answer, or a workspace file, is the reference; white space at line ends is ignored."""
    reference = subject.record.references.get(spec.path)
    if reference is None:
        raise CannotEvaluateError(f"the reference {spec.path} was not found when the case ran")
    golden, name = subject.text_of(reference), "answer"
    actual: str | None = subject.answer
    spans: tuple[EvidenceSpan, ...] = ()
    if spec.file is not None:
        files, name = _snapshot(subject, [spec.file]), normal_path(spec.file)
        state = _followed(name, files)
        if state is None:
            return _absent(f"{name} is not there", files, [name], subject)
        actual, spans = subject.text_of(state), _in_files(subject, [name])
    if golden is None or actual is None:
        path = spec.path if golden is None else name
        raise CannotEvaluateError(f"the content of {path} was not kept in the record")
    wanted, lines = (
        [line.rstrip() for line in plain(text).strip().split("\n")] for text in (golden, actual)
    )
    if wanted == lines:
        found = f"the {name} is the same as {spec.path}"
    else:  # difflib's cost grows with the square of the length
        at = first_difference(wanted, lines)
        near = (wanted[at : at + 12], lines[at : at + 12])
        diff = difflib.unified_diff(*near, spec.path, name, lineterm="", n=1)
        found = "\n".join([f"differs from line {at + 1} on", *(line[:200] for line in diff)])
    return Finding(wanted == lines, found, beginning(actual), spans=spans)


def _show_texts(spec: TextSet, show: Callable[[str], str] = quoted) -> str:
    parts = [listed(map(show, spec.all))] if spec.all else []
    if spec.any:
        parts.append(f"{'any of ' * (len(spec.any) > 1)}{listed(map(show, spec.any))}")
    if spec.none:
        parts.append(f"{'none of ' * bool(parts)}{listed(map(show, spec.none))}")
    return "; ".join(parts)


def _show_json(spec: JsonMatch) -> str:
    condition = "is absent" if spec.exists is False else "exists"
    if "equals" in spec.model_fields_set:
        condition = f"= {shown(spec.equals)}"
    elif spec.matches is not None:
        condition = f"~ /{spec.matches}/"
    elif "json_schema" in spec.model_fields_set:
        condition = "is valid by its schema"
    return f"{spec.path} {condition}{', and nothing else' if spec.whole else ''}"


def _show_files(spec: Any) -> str:
    return "; ".join(
        f"{one.path} {quoted(one.content) if one.content is not None else f'~ /{one.matches}/'}"
        for one in spec
    )


def _show_list(texts: Sequence[str]) -> str:
    return listed(map(quoted, texts))


def _show_checks(spec: Sequence[Check]) -> str:
    return "[" + "; ".join(check.name or describe(check) for check in spec) + "]"


def _texts(how: str) -> Callable[[Any], TextSet]:
    """Texts in a list, as a set of which all, any, or none are wanted."""
    return lambda spec: TextSet.model_construct(**{how: getattr(spec, "not_contains", spec)})


@frozen
class CheckKind:
    """One key. `of`, `forbids` and `empty_answer` decide verdicts: CONTRIBUTING.md says how."""

    find: Callable[[Any, CheckSubject], Finding] | None
    """From the arguments and what is looked at; None: made of checks, or a judge is asked."""
    of: Literal["answers", "calls", "record", None]
    """``answers``: of several, :func:`look` chooses which are read, one at a time. ``calls``: of
    tools and skills; a line that nobody could read may hold one. ``record``: all the rest that is
    recorded. None: where there is no `find`.
    """
    show: Callable[[Any], str] = str  # Its arguments in one line
    forbids: bool = False  # It wants that something is not there: no answer may have it
    empty_answer: bool = False  # Its arguments may want an empty answer; else none passes on one
    convert: Callable[[Any], Any] | None = None  # To the arguments of `find`, where these differ


_contains = partial(CheckKind, text.contains, "answers", _show_texts)
_show_patterns = partial(_show_texts, show="/{}/".format)
_matches = CheckKind(text.matches, "answers", _show_patterns, empty_answer=True)
_called = partial(CheckKind, tools.tool_called, "calls", show_match)
_glob = partial(CheckKind, of="answers", show=_show_list, empty_answer=True)
_elsewhere = partial(CheckKind, None, None)
KINDS: dict[str, CheckKind] = {
    "contains": _contains(),
    "not_contains": _contains(forbids=True, convert=_texts("none")),
    "matches": _matches,
    "glob": _glob(text.glob),
    "not_glob": _glob(partial(text.glob, wanted=False), forbids=True),
    "equals": CheckKind(text.equals, "answers", quoted, empty_answer=True),
    "min_tokens": CheckKind(partial(_limit, of="tokens", least=True), "record"),
    "max_tokens": CheckKind(partial(_limit, of="tokens"), "record"),
    "json": CheckKind(text.json_value, "answers", _show_json),
    "tool_called": _called(),
    "tool_not_called": _called(forbids=True),
    "tool_sequence": CheckKind(
        tools.tool_sequence, "calls", lambda s: f"{s.mode}: {listed(map(show_match, s.calls))}"
    ),
    "skill_used": CheckKind(tools.skill_used, "calls"),
    "skill_not_used": CheckKind(partial(tools.skill_used, wanted=False), "calls", forbids=True),
    "files_exist": CheckKind(files_exist, "record", listed),
    "files_not_exist": CheckKind(files_not_exist, "record", listed, forbids=True),
    "file_contains": CheckKind(file_contains, "record", _show_files),
    "golden_file": CheckKind(
        golden_file, "answers", lambda s: f"{s.file or 'the answer'} = {s.path}", empty_answer=True
    ),
    "exit_code": CheckKind(_exit_code, "record"),
    "max_cost_usd": CheckKind(partial(_limit, of="cost"), "record", "${:g}".format),
    "max_duration_seconds": CheckKind(partial(_limit, of="time"), "record", "{:g} s".format),
    **dict.fromkeys(("any_of", "all_of"), _elsewhere(_show_checks)),
    "none_of": _elsewhere(_show_checks, forbids=True),
    "script": _elsewhere(operator.attrgetter("path")),
    "rubric": _elsewhere(lambda s: _show_list([line.outcome for line in s.criteria])),
    "similar": _elsewhere(lambda s: f"{quoted(s.to)} ≥ {s.threshold:g}"),
    "expected_output": _elsewhere(quoted),
    "relevance": _elsewhere(lambda s: f"≥ {s.threshold:g} in windows of {s.window_size}"),
    "answer_quality": _elsewhere(lambda s: f"{', '.join(s.aspects)} ≥ {s.threshold:g}"),
    FOLLOW_UP: _elsewhere(lambda _: "a follow-up"),
    # skill-up's spellings
    **dict.fromkeys(("must_contain", "must_contain_all"), _contains(convert=_texts("all"))),
    "must_contain_any": _contains(convert=_texts("any")),
    **dict.fromkeys(
        ("must_not_contain", "turn_response_not_contains"),
        _contains(forbids=True, convert=_texts("none")),
    ),
    "output_contains": _contains(),
    "output_matches": _matches,
    "turn_response_contains": _contains(
        convert=lambda s: TextSet.model_construct(all=s.contains_all, any=s.contains_any)
    ),
    "tool_called_in_turn": _called(),
    "tool_not_called_in_turn": _called(forbids=True),
}
COMPOSITE = frozenset({"any_of", "all_of", "none_of"})  # Checks made of checks
JUDGED = {key for key, kind in KINDS.items() if kind.find is None} - COMPOSITE - {FOLLOW_UP}
"""Checks that need a judge."""


def converted(key: str, spec: Any) -> Any:
    """The arguments as the check's own function takes them."""
    convert = KINDS[key].convert
    return spec if convert is None else convert(spec)


def describe(check: Check) -> str:
    r"""``tool_not_called shell args.command ~ /\brm\b/``: the key and what it looks for."""
    key, spec = check.key_and_spec()
    turn = check.turn if check.turn is not None else getattr(spec, "turn", None)
    return title(key, converted(key, spec), check, turn)


def title(key: str, spec: Any, check: Check | None = None, turn: int | str | None = None) -> str:
    """The line for a check that has no name."""
    if key == FOLLOW_UP:
        return f"follow-up {quoted((check.prompt if check else None) or '')}"
    return f"{key} {beginning(KINDS[key].show(spec))}" + (f" (turn {turn})" if turn else "")


def expected(key: str, spec: Any) -> str:
    """What is to be there for the check to pass: ``no "deleted"`` of a ``not_contains``."""
    return beginning("no " * KINDS[key].forbids + KINDS[key].show(spec))


def look(kind: CheckKind, spec: Any, subject: CheckSubject, *, negated: bool) -> Finding:
    """What must be there, in the last answer; what must not, in all; `negated`: turned round."""
    find = kind.find
    assert find is not None
    if kind.of != "answers":
        found = find(spec, subject)
        if _forbids(kind, spec) != negated and found.passed != negated:
            # That something was left alone says nothing of an agent that did not even answer.
            idle = _without(subject, lambda turn: is_said(turn.response) or bool(turn.tool_calls))
            if idle is not None:
                raise NotAssertableError(f"the agent neither answered nor called a tool{idle}")
        if kind.of == "calls":
            _refuse_unread(kind, spec, subject, found)
        return found
    findings = []
    # What the check looks for, and what it forbids (True), each as a check of its own.
    parts = [(spec, _forbids(kind, spec))]
    if isinstance(spec, TextSet) and spec.none and (spec.all or spec.any):
        forbidden = spec.model_copy(update={"any": None, "all": None})
        wanted = spec.model_copy(update={"none": None})
        parts = [(wanted, False), (forbidden, True)]
    for part, forbids in parts:
        answers = subject.turns if forbids != negated else subject.turns[-1:]
        if isinstance(spec, JsonMatch):  # one in words has no value that could be forbidden
            is_json = partial(text.answer_json, whole=spec.whole)
            answers = tuple(turn for turn in answers if is_json(turn.response)[0]) or answers[-1:]
        each = [(turn, find(part, subject.of(turn))) for turn in answers]
        # One answer that says it decides: for what is looked for, or against what is forbidden.
        turn, found = next((one for one in each if one[1].passed != forbids), each[-1])
        of_a_file = isinstance(spec, GoldenFile) and spec.file is not None
        if forbids != negated and found.passed == forbids and not of_a_file:
            unanswered = _without(subject, lambda turn: is_said(turn.response))
            if unanswered is not None:
                found = Finding(False, f"the agent gave no answer{unanswered}", assertable=False)
        elif found.passed and not (forbids or kind.empty_answer or is_said(turn.response)):
            found = Finding(False, "the agent gave no answer", assertable=False)
        elif turn is not subject.last:
            found = replace(found, found=f"turn {turn.turn_number}: {found.found}")
        findings.append(found)
    return next((found for found in findings if not found.passed), findings[0])


def _without(subject: CheckSubject, has_some: Callable[[TurnRecord], bool]) -> str | None:
    """The first turn that has none, as words to add; None: each has. Commands need not answer."""
    turns = [turn for turn in subject.turns if not turn.slash_command] or subject.turns
    turn = next((turn for turn in turns if not has_some(turn)), None)
    if turn is None:
        return None
    return f" in turn {turn.turn_number}" if len(subject.turns) > 1 else ""


def _refuse_unread(kind: CheckKind, spec: Any, subject: CheckSubject, found: Finding) -> None:
    """NotAssertableError if one more call, in a line that nobody could read, changed the result."""
    most = getattr(spec, "max", None) is not None or getattr(spec, "mode", None) == "exact"
    lines = sum(turn.unread_lines for turn in subject.turns)
    if lines and (found.passed if _forbids(kind, spec) else most or not found.passed):
        what = f"lines of the engine's output that could not be read: {lines}"
        raise NotAssertableError(f"{what}; a call may be in them")


def _forbids(kind: CheckKind, spec: Any) -> bool:
    if isinstance(spec, ToolCount):  # `max: 0`, or `min: 0` with a `max`, holds without a call
        return spec.max == 0 or spec.min == 0
    if isinstance(spec, TextSet):
        return not (spec.all or spec.any)
    return kind.forbids or getattr(spec, "exists", None) is False
