"""Checks of what the agent answered, texts, regexes, globs and JSON; and captures out of it."""

from __future__ import annotations

import fnmatch
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from skillup.checks.context import (
    CannotEvaluateError,
    CheckSubject,
    Finding,
    Span,
    around,
    beginning,
    first_difference,
    listed,
    plain,
    quoted,
)
from skillup.checks.nearest import Missing
from skillup.dataclass import frozen
from skillup.load.yaml_reader import no_constant
from skillup.schema.base import compiled_path, compiled_pattern, kept_group
from skillup.schema.case import Capture
from skillup.schema.checks import JsonMatch, TextSet
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import TurnRecord, Usage

if TYPE_CHECKING:
    import regex

_PER_SEARCH, _PER_CHECK = 1.0, 2.0  # Seconds that patterns of case files may take
_MOST_SPANS = 50  # Of a piece that an answer is full of, so many places are named


def folded(text: str, *, case_sensitive: bool) -> str:
    """`text`, plain, and without case unless it matters."""
    return plain(text) if case_sensitive else plain(plain(text).casefold())


def find_all(text: str, piece: str, *, case_sensitive: bool) -> Iterator[Span]:
    """Each place where `piece` stands in the plain form of `text`; they do not overlap."""
    text, wanted = plain(text), plain(piece)
    folded = text if case_sensitive else text.casefold()
    wanted = wanted if case_sensitive else wanted.casefold()
    places: Sequence[int] = range(len(text) + 1)  # of each folded character, its place in `text`
    if len(folded) != len(text):  # folding can lengthen (ß → ss)
        places = [i for i, one in enumerate(text) for _ in one.casefold()]
    start = folded.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        yield (places[start], places[end - 1] + 1) if wanted else (0, 0)
        start = folded.find(wanted, end) if wanted else -1


def find_text(text: str, piece: str, *, case_sensitive: bool) -> Span | None:
    return next(find_all(text, piece, case_sensitive=case_sensitive), None)


class Searcher:
    """The searches of one check, two seconds in all; only `(?i)` makes them ignore case."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _PER_CHECK

    def search(self, pattern: str, text: str) -> regex.Match[str] | None:
        """The first match. Raises CannotEvaluateError: no regex, or it took too long."""
        started = time.monotonic()
        try:
            compiled = compiled_pattern(pattern, False)
            return compiled.search(text, timeout=min(_PER_SEARCH, self._left))
        except ValueError as trouble:
            raise CannotEvaluateError(str(trouble)) from None
        except TimeoutError:
            message = f"the pattern /{pattern}/ took too long; write it without nested repetition"
            raise CannotEvaluateError(message) from None
        finally:
            self._left = max(0.001, self._left - (time.monotonic() - started))

    def find(self, pattern: str, text: str) -> Span | None:
        match = self.search(pattern, text)
        return None if match is None else match.span()


def _look(
    wanted: TextSet,
    subject: CheckSubject,
    find_all: Callable[[str], Iterable[Span]],
    show: Callable[[str], str],
    *,
    patterns: bool = False,
) -> Finding:
    """Look for texts (or patterns) in the plain answer; all conditions hold at once."""
    text = plain(subject.answer)

    def find(piece: str) -> list[Span]:
        return list(islice(find_all(piece), _MOST_SPANS))

    def finding(passed: bool, found: str, *hits: Span, lacks: Sequence[str] = ()) -> Finding:
        excerpt = around(text, hits[0]) if hits else beginning(text)
        if not lacks:
            return Finding(passed, found, excerpt, spans=subject.in_answer(*hits))
        missing = Missing(text, lacks, subject.in_answer, patterns, subject.case_sensitive)
        return Finding(passed, found, excerpt, missing=missing)

    for unwanted in wanted.none or ():
        if spans := find(unwanted):
            return finding(False, f"found {show(unwanted)}", *spans)
    found_of = {piece: find(piece) for piece in wanted.all or ()}
    hits = [span for spans in found_of.values() for span in spans]
    if not all(found_of.values()):
        missing = [piece for piece, spans in found_of.items() if not spans]
        return finding(False, f"not found: {listed(map(show, missing))}", *hits[:1], lacks=missing)
    if wanted.any:
        more = next((spans for piece in wanted.any if (spans := find(piece))), None)
        if more is None:
            none = "found none of" if len(wanted.any) > 1 else "not found:"
            found = f"{none} {listed(map(show, wanted.any))}"
            return finding(False, found, lacks=wanted.any)
        hits += more
    if not hits:
        return finding(True, f"found none of {listed(map(show, wanted.none or ()))}")
    return finding(True, f"found {quoted(text[slice(*hits[0])])}", *hits)


def contains(spec: TextSet, subject: CheckSubject) -> Finding:
    find = partial(find_all, subject.answer, case_sensitive=subject.case_sensitive)
    return _look(spec, subject, find, quoted)


def matches(spec: TextSet, subject: CheckSubject) -> Finding:
    """The answer matches regexes, which tell upper and lower case apart."""
    searcher, text = Searcher(), plain(subject.answer)

    def find(pattern: str) -> list[Span]:
        span = searcher.find(pattern, text)
        return [] if span is None else [span]

    return _look(spec, subject, find, "/{}/".format, patterns=True)


def equals(spec: str, subject: CheckSubject) -> Finding:
    """The answer is this text; white space at the ends does not matter."""
    exact, start = subject.case_sensitive, beginning(subject.answer)
    wanted, actual = (folded(one, case_sensitive=exact).strip() for one in (spec, subject.answer))
    if wanted == actual:
        return Finding(True, "the answer is the same text", start)
    at = first_difference(wanted, actual)
    here = quoted(actual[at : at + 20]) if actual[at:] else "it ends there"
    found, text = f"differs from character {at + 1} on: {here}", plain(subject.answer)
    missing = Missing(text, [spec.strip()], subject.in_answer, False, exact)
    return Finding(False, found, start, missing=missing)


def glob(spec: Sequence[str], subject: CheckSubject, *, wanted: bool = True) -> Finding:
    """The whole answer matches every glob, or none; ``*`` stands for newlines too."""
    plainly = partial(folded, case_sensitive=subject.case_sensitive)
    answer, start = plainly(subject.answer).strip(), beginning(subject.answer)
    wrong = [p for p in spec if fnmatch.fnmatchcase(answer, plainly(p).strip()) is not wanted]
    if not wrong:
        return Finding(True, f"the answer matches{'' if wanted else ' none of them'}", start)
    how, which = ("does not match", wrong) if wanted else ("matches", wrong[:1])
    return Finding(False, f"the answer {how} {listed(map(quoted, which))}", start)


def violation(schema: Any, value: Any) -> str | None:
    """What of `value` breaks the schema most, or None; CannotEvaluateError if nobody can say."""
    from jsonschema.exceptions import ValidationError, best_match
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    # The keyword with patterns, which jsonschema would hand to `re`: that has no time limit. Those
    # of `patternProperties` are refused when the case is read.
    def pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[Any]:
        if isinstance(value, str) and Searcher().search(pattern, value) is None:
            yield ValidationError(f"{value!r} does not match {pattern!r}")

    base = validator_for(schema, default=Draft202012Validator)
    own: Any = extend(base, {"pattern": pattern})  # type: ignore[no-untyped-call]
    try:
        check = own(schema, registry=EMPTY_REGISTRY, format_checker=base.FORMAT_CHECKER)
        worst = best_match(check.iter_errors(value))
    except CannotEvaluateError:
        raise
    except Exception as trouble:  # noqa: BLE001 - references, recursion: a schema has many ways
        what = f"{type(trouble).__name__}: {trouble}"
        raise CannotEvaluateError(f"the JSON Schema cannot be applied: {what}") from None
    return None if worst is None else f"{worst.json_path}: {beginning(worst.message, 300)}"


# The JSON in an answer: agents wrap it in words and fences.

_FENCE = re.compile(r"^[ \t]*```[ \t]*(?P<language>\w*)(?P<more>.*)$", re.MULTILINE)


def answer_json(answer: str, *, whole: bool = False) -> tuple[bool, Any]:
    """Whether there is JSON in the answer, and its value.

    The whole answer; else the last fenced block that is JSON, one marked ``json`` first; else what
    stands between the first and the last brace or bracket. `whole`: nothing else, and no NaN.
    """
    for candidate in [answer] if whole else _candidates(answer):
        try:
            return True, json.loads(candidate, parse_constant=no_constant if whole else None)
        except (ValueError, RecursionError):
            continue
    return False, None


def _candidates(answer: str) -> Iterator[str]:
    text = answer.replace("\r\n", "\n").strip().removeprefix("\ufeff")
    yield text
    blocks = list(_blocks(text))
    yield from (body for language, body in reversed(blocks) if language in ("json", "jsonc"))
    yield from (body for language, body in reversed(blocks) if language not in ("json", "jsonc"))
    spans = [(text.find(opening), text.rfind(closing)) for opening, closing in ("{}", "[]")]
    yield from (text[start : end + 1] for start, end in sorted(spans) if 0 <= start < end)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The language and body of each fenced block: one without an end is none."""
    opening = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif not (fence["language"] or fence["more"].strip(" \t")):
            yield opening["language"].lower(), text[opening.end() + 1 : fence.start()]
            opening = None


def same_value(wanted: Any, actual: Any, *, case_sensitive: bool, partly: bool = False) -> bool:
    """Equal as JSON means it: 1 is 1.0, true is not 1; `partly`: mappings may have more keys."""
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return wanted is actual
    if isinstance(wanted, str) and isinstance(actual, str):
        one, other = (folded(text, case_sensitive=case_sensitive) for text in (wanted, actual))
        return one == other
    same = partial(same_value, case_sensitive=case_sensitive, partly=partly)
    if isinstance(wanted, dict) and isinstance(actual, dict):
        if not (wanted.keys() <= actual.keys() if partly else wanted.keys() == actual.keys()):
            return False
        return all(same(v, actual[k]) for k, v in wanted.items())
    if isinstance(wanted, list) and isinstance(actual, list):
        return len(wanted) == len(actual) and all(
            same(w, a) for w, a in zip(wanted, actual, strict=True)
        )
    return bool(wanted == actual)


def shown(value: Any) -> str:
    """A value as it stands in JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def as_text(value: Any) -> str:
    """A value as the text that patterns are matched with; null is the empty text."""
    if isinstance(value, str):
        return value
    return "" if value is None else shown(value)


def find_values(path: str, root: Any) -> list[Any]:
    """All values at `path`. Raises CannotEvaluateError."""
    try:
        return [match.value for match in compiled_path(path).find(root)]
    except Exception as trouble:  # noqa: BLE001 - jsonpath-ng fails in many ways on odd data
        what = f"{type(trouble).__name__}: {trouble}"
        raise CannotEvaluateError(f"the JSONPath {path} could not be followed: {what}") from None


def json_value(spec: JsonMatch, subject: CheckSubject) -> Finding:
    """A value inside the answer, read as JSON; an answer that holds none fails."""
    is_json, root = answer_json(subject.answer, whole=spec.whole)
    values, given = find_values(spec.path, root if is_json else {}), spec.model_fields_set
    if not is_json:
        what = "the answer as a whole is not JSON" if spec.whole else "the answer is not JSON"
        return Finding(False, what, beginning(subject.answer))
    if not values:
        passed = spec.exists is False and not given & {"equals", "matches", "json_schema"}
        return Finding(passed, "nothing at this path", beginning(as_text(root)))
    if "json_schema" in given:
        problems = [violation(spec.json_schema, value) for value in values]
        if None in problems:
            valid = beginning(as_text(values[problems.index(None)]))
            return Finding(True, "valid by the JSON Schema", valid)
        what = f"not valid by the JSON Schema: {problems[0]}"
        return Finding(False, what, beginning(as_text(root)))
    if spec.matches is not None:
        searcher = Searcher()
        for value in values:
            text = plain(as_text(value))
            if (match := searcher.search(spec.matches, text)) is not None:
                found, excerpt = f"found {beginning(text, 80)}", around(text, match.span())
                return Finding(True, found, excerpt, spans=_in_answer(subject, match[0]))
    hits = []
    if "equals" in given:
        exact = subject.case_sensitive
        hits = [one for one in values if same_value(spec.equals, one, case_sensitive=exact)]
    elif spec.matches is None and spec.exists is not False:
        hits = values
    shown = listed((beginning(as_text(value), 80) or '""' for value in values), longest=200)
    text = as_text((hits or values)[0])
    return Finding(bool(hits), f"found {shown}", beginning(text), spans=_in_answer(subject, text))


def _in_answer(subject: CheckSubject, text: str) -> tuple[EvidenceSpan, ...]:
    """Where the text of a value stands in the answer first; empty where it is spelled otherwise."""
    at = plain(subject.answer).find(text)
    return () if at < 0 else subject.in_answer((at, at + len(text)))


# Taking values out of a turn, for messages of later turns.


@frozen
class Captured:
    """The values by variable, up to the first that was not found; what is said of that one."""

    values: dict[str, str] = field(default_factory=dict)
    miss: str | None = None


def capture(rules: Sequence[Capture], turn: TurnRecord) -> Captured:
    """Apply the captures in order. An empty value is a miss, unless there is a default."""
    values: dict[str, str] = {}
    for rule in rules:
        try:
            value = _value(rule, turn)
            sought = f"/{rule.pattern}/" if rule.pattern is not None else rule.jsonpath
            why = f"{sought} " + ("found nothing" if value is None else "found an empty value")
            default = rule.default
        except CannotEvaluateError as trouble:
            # A default stands for what the agent did not say, not for a rule that cannot be used.
            value, why, default = None, str(trouble), None
        kept = value if value is not None and value.strip() else default
        if kept is None:
            where = f'the answer is "{beginning(turn.response)}"'
            fix = "correct the capture, or give it a `default`"
            return Captured(values, f"capture `{rule.variable}`: {why}; {where}; {fix}")
        values[rule.variable] = kept
    return Captured(values)


def _value(rule: Capture, turn: TurnRecord) -> str | None:
    if rule.jsonpath is None:
        pattern = rule.pattern or ""
        match = Searcher().search(pattern, plain(turn.response))
        group = kept_group(pattern)  # the rule would not have been read without one
        found: str | None = None if match is None else match[group]
        return found
    # A JSONPath sees {response, response_json?, transcript: {tool_calls, tool_results}, usage}.
    is_json, value = answer_json(turn.response)
    call, result = {"id", "name", "kind", "arguments"}, {"call_id", "status", "content"}
    transcript = {
        "tool_calls": [one.model_dump(include=call) for one in turn.tool_calls],
        "tool_results": [one.model_dump(include=result) for one in turn.tool_results],
    }
    usage = {name: getattr(turn.usage, name, None) for name in Usage.model_fields}
    view = {"response": turn.response, "transcript": transcript, "usage": usage}
    values = find_values(rule.jsonpath, view | ({"response_json": value} if is_json else {}))
    return as_text(values[0]) if values else None
