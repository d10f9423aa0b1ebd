"""Where in the conversation the evidence of a check stands: in an answer, or in a tool's item.

It is found again from the excerpt that the result has, in the texts as the page shows them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from skillup.checks.context import CannotEvaluateError, Span, around, one_line, plain
from skillup.checks.text import Searcher, TextSearch
from skillup.schema.grade import CheckResult

# Places in a text, from how checks see it to how the page's JavaScript counts.


def utf16(text: str, place: int) -> int:
    """The character offset `place` in UTF-16 code units."""
    head = text[:place]
    return len(head) if head.isascii() else len(head.encode("utf-16-le", "surrogatepass")) // 2


class NormalizedText:
    """A text as checks see it, and the way back from places in it to the text itself."""

    def __init__(self, text: str, *, normal: bool = True) -> None:
        """Not `normal`: as judges' quotations are looked for, in the text as it is."""
        self.text = text
        self.plain = plain(text) if normal else text.replace("\r", "")
        self.shown = one_line(self.plain)
        """As excerpts show it; `plain` has no character that this leaves out, so places agree."""
        self._starts: list[int] | None = None
        if self.plain != text:
            whole = _starts(text, len(self.plain)) if normal else None
            self._starts = whole or [i for i, c in enumerate(f"{text}$") if c != "\r"]

    def back(self, span: Span) -> Span:
        """A span of `plain` as a span of `text`."""
        if self._starts is None:
            return span
        start, end = span
        # What begins and ends within characters that were joined is all of them.
        while start < end < len(self._starts) - 1 and self._starts[end] <= self._starts[start]:
            end += 1
        return self._starts[start], self._starts[end]


def _starts(text: str, length: int) -> list[int]:
    """For each place in plain(`text`), and its end, where in `text` it comes from.

    Normal form C joins a character with the marks after it: what begins with a character that joins
    nothing before it is looked at as one piece.
    """
    found: list[int] = []
    place = 0
    while place < len(text):
        end = place + 1
        if text[place] == "\r" and text[end : end + 1] == "\n":
            end += 1
        while end < len(text) and _joins(text[end]):
            end += 1
        joined = len(plain(text[place:end]))
        same = joined == end - place
        found.extend(range(place, end) if same else [place] * joined)
        place = end
    if len(found) != length:  # a join that the above does not know: as near as can be
        found = [min(i, len(text)) for i in range(length)]
    found.append(len(text))
    return found


def _joins(character: str) -> bool:
    """Whether normal form C may join it with what is before it (marks, and Korean vowels)."""
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"


# Further evidence of a check: every piece that it found, and what a turn did to a file.

OF_PIECES = {
    *("contains", "must_contain", "must_contain_all", "must_contain_any"),
    *("output_contains", "turn_response_contains"),
}
OF_PATTERNS = {"matches", "output_matches"}
OF_FILES = {"files_exist", "files_not_exist", "file_contains", "golden_file"}
_MOST = 50
_CUT = "…"
_PIECE = re.compile(r'"((?:[^"]|"(?!(?:, |; |$|,? and \d)))*)"')
_PATTERN = re.compile(r"/(.*?)/(?=, |; |$)", re.DOTALL)
_NAME = re.compile(r'[^\s,;"]+')


def more_places(check: CheckResult, text: str, first: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All that the check found in an answer's `text` but for `first`, in the form of evidence.

    What it looked for is read back out of `expected`; what was shortened there is left out.
    """
    if not check.passed or check.kind not in OF_PIECES | OF_PATTERNS:
        return []
    wanted = re.split(r"(?:^|; )none of [\"/]", check.expected)[0]
    seen = NormalizedText(text)
    spans = _pieces(seen, wanted) if check.kind in OF_PIECES else _patterns(seen, wanted)
    found: list[dict[str, Any]] = []
    known = {(first["start"], first["end"])}
    for span in spans:
        start, end = seen.back(span)
        place = (utf16(text, start), utf16(text, end))
        if place not in known and len(found) < _MOST:
            known.add(place)
            found.append({**first, "start": place[0], "end": place[1]})
    return found


def _pieces(seen: NormalizedText, wanted: str) -> Iterator[Span]:
    for match in _PIECE.finditer(wanted):
        piece = match[1]
        if not piece.strip() or piece.endswith(_CUT):
            continue
        exact = list(_all(seen.shown, piece, case_sensitive=True))
        yield from exact or _all(seen.shown, piece, case_sensitive=False)


def _all(text: str, piece: str, *, case_sensitive: bool) -> Iterator[Span]:
    place = 0
    for _ in range(_MOST):
        span = TextSearch(text[place:], case_sensitive=case_sensitive).find(piece)
        if span is None or span[1] <= span[0]:
            return
        yield span[0] + place, span[1] + place
        place += span[1]


def _patterns(seen: NormalizedText, wanted: str) -> Iterator[Span]:
    for match in _PATTERN.finditer(wanted):
        try:
            hit = Searcher().search(match[1], seen.plain)
        except CannotEvaluateError:
            continue
        if hit is not None and hit.end() > hit.start():
            yield hit.span()


def of_changes(check: CheckResult, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the turns did to the file that the check is about; None: nothing that tells of it.

    ``{turn, follow_up, in: "changes", path, …}``, of the newest of `steps` (the newest first) that
    changed it. `path` is None where a check failed for a file that no turn changed: what was
    changed in its stead is worth a look.
    """
    named = {
        name: rank
        for rank, text in enumerate((check.excerpt.partition(": ")[0], check.found, check.expected))
        for name in _NAME.findall(text)
    }
    for step in steps:
        changes = step["changes"]
        if changes is None:
            continue
        paths = [*changes["added"], *changes["modified"], *changes["deleted"]]
        ranked = [(rank, path) for path in paths if (rank := _rank(path, named)) is not None]
        if ranked:
            return _place(step, max(ranked)[1])
    if check.passed or not check.assertable:
        return None
    return next((_place(step, None) for step in steps if step["changes"] is not None), None)


def _rank(path: str, named: Mapping[str, int]) -> int | None:
    ranks = [
        rank
        for name, rank in named.items()
        if path == name.rstrip(":") or ("*" in name and fnmatchcase(path, name.replace("**/", "*")))
    ]
    return max(ranks, default=None)


def _place(step: Mapping[str, Any], path: str | None) -> dict[str, Any]:
    return {
        "turn": step["turn_number"],
        "follow_up": step.get("follow_up"),
        "in": "changes",
        "item": None,
        "part": None,
        "argument": None,
        "path": path,
        "start": 0,
        "end": 0,
    }


# Finding in a text what a check's excerpt shows: the matching piece itself, where it can be told.

_AROUND = 60
_QUOTED = re.compile(r'found "(?P<piece>.*)"', re.DOTALL)
_PATTERN_EXCERPTS = re.compile(r"found /(?P<pattern>.*)/", re.DOTALL)


def piece_in(seen: NormalizedText, excerpt: str, found: str) -> Span | None:
    """Where the piece is that `excerpt` shows, as a span of the text; None: it is not in it.

    `found` is what the check says it found. Where it does not tell the piece, all that may belong
    to it is meant.
    """
    if not excerpt.strip():
        return None
    span = _named(seen, excerpt, found) or _within(seen, excerpt)
    return None if span is None else seen.back(span)


def _named(seen: NormalizedText, excerpt: str, found: str) -> Span | None:
    """The piece that `found` quotes, or that its pattern matches, if it has this very excerpt."""
    quoted = _QUOTED.fullmatch(found)
    if quoted is not None and not quoted["piece"].endswith(_CUT):
        return _of_piece(seen, excerpt, quoted["piece"])
    pattern = _PATTERN_EXCERPTS.fullmatch(found)
    if pattern is not None:
        return _of_pattern(seen, excerpt, pattern["pattern"])
    return None


def _of_piece(seen: NormalizedText, excerpt: str, piece: str) -> Span | None:
    # Of a piece with white space at its ends, the quotation has none.
    span = TextSearch(seen.shown, case_sensitive=True).find(piece)
    span = span or TextSearch(seen.shown, case_sensitive=False).find(piece)
    while span is not None and span[1] > span[0]:
        if _shows(seen, excerpt, span):
            return span
        # What was looked for first need not be what the excerpt is about.
        rest = TextSearch(seen.shown[span[0] + 1 :], case_sensitive=False).find(piece)
        span = None if rest is None else (rest[0] + span[0] + 1, rest[1] + span[0] + 1)
    return None


def _of_pattern(seen: NormalizedText, excerpt: str, pattern: str) -> Span | None:
    try:
        match = Searcher().search(pattern, seen.plain)
    except CannotEvaluateError:
        return None
    if match is None or match.end() <= match.start() or not _shows(seen, excerpt, match.span()):
        return None
    return match.span()


def _shows(seen: NormalizedText, excerpt: str, span: Span) -> bool:
    """Whether `excerpt` is what a check says of this span; spaces at its ends may be missing."""
    start, end = span
    widths = ((start, end), (max(0, start - 1), end), (start, end + 1))
    return any(around(seen.plain, width) == excerpt for width in widths)


def _within(seen: NormalizedText, excerpt: str) -> Span | None:
    core = excerpt.removeprefix(_CUT) if len(excerpt) > 1 else excerpt
    cut_left = core != excerpt
    place = seen.shown.find(core)
    cut_right = False
    if place < 0 or core.endswith(_CUT):
        whole = core.removesuffix(_CUT)
        at = seen.shown.find(whole)
        if whole != core and whole and at >= 0:
            core, place, cut_right = whole, at, True
    if place < 0 or not core.strip():
        return None
    start, end = place, place + len(core)
    if cut_left and len(core) > _AROUND:
        start += _AROUND
    if cut_right and len(core) < _LONG and end - _AROUND > start:
        end -= _AROUND
    # Spaces around a piece are never what it is about.
    text = seen.shown[start:end]
    start += len(text) - len(text.lstrip())
    return (start, start + len(text.strip())) if text.strip() else None


_LONG = 298
"""Characters of an excerpt that was cut because it is long enough, not because the piece ends."""


def argument_pieces(excerpt: str) -> tuple[str, str] | None:
    """``Bash(command: …rm -rf…)`` → the tool's name and what is in the brackets."""
    match = re.fullmatch(r"(?P<name>[^()]+)\((?P<inside>.*)\)…?", one_line(excerpt), re.DOTALL)
    return None if match is None else (match["name"], match["inside"])


Step = dict[str, Any]
"""A turn or a follow-up as the page has it, with `turn_number` and `follow_up`."""

_OF_TEXTS = {
    *("contains", "not_contains", "matches", "must_contain", "must_contain_all"),
    *("must_contain_any", "must_not_contain", "output_contains", "output_matches"),
    *("turn_response_contains", "turn_response_not_contains", "json"),
}
_OF_TOOLS = {
    *("tool_called", "tool_not_called", "tool_called_in_turn", "tool_not_called_in_turn"),
    *("skill_used", "skill_not_used"),
}
_WITHOUT = {
    *("equals", "glob", "not_glob", "min_tokens", "max_tokens", "exit_code", "max_cost_usd"),
    *("max_duration_seconds", "tool_sequence", "any_of", "all_of", "none_of", "follow_up"),
}
"""What they show is no piece of the conversation, or all of an answer."""
_NOTHING_FOUND = ("found none of", "not found", "nothing at this path", "the answer is not JSON")
_HEAD = 40
"""Characters by which an argument is known again."""
_NO_CALL = ("not called", "not used", "called, but")


def evidence_of(
    check: CheckResult, asked: Sequence[Step], steps: Sequence[Step]
) -> dict[str, Any] | None:
    """``{turn, follow_up, in, item, part, argument, start, end}``; None: nothing to show.

    Where it found more than one piece, also ``more``, a list of the same.

    `asked`: the steps whose answers the check was asked of, the most likely first; `steps`: all
    that were held, for what a judge quotes from elsewhere.
    """
    if not check.assertable:  # it looked at nothing
        return None
    if check.kind in OF_FILES:
        return of_changes(check, asked)
    if not check.excerpt.strip() or check.kind in _WITHOUT:
        return None
    if check.kind in _OF_TOOLS:
        if check.found.startswith(_NO_CALL):
            return None
        return _of_a_call(check, asked)
    if check.found.startswith(_NOTHING_FOUND):
        return None
    if check.kind in _OF_TEXTS:
        first = next(_in_answers(check, asked[:1]), None)
        more = more_places(check, asked[0]["response"], first) if first is not None else []
        return {**first, "more": more} if first is not None and more else first
    near = [step for step in steps if not any(step is one for one in asked)]
    for group in (asked, near):
        for where in (_in_answers, _in_items):
            hit = next(where(check, group), None)
            if hit is not None:
                return hit
    return None


def _place_evidence(step: Step, text: str, span: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {
        "turn": step["turn_number"],
        "follow_up": step.get("follow_up"),
        "in": "response",
        "item": None,
        "part": None,
        "argument": None,
        **more,
        "start": utf16(text, span[0]),
        "end": utf16(text, span[1]),
    }


def _in_answers(check: CheckResult, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        text = step["response"]
        span = _find(check, text)
        if span is not None:
            yield _place_evidence(step, text, span)


def _in_items(check: CheckResult, steps: Sequence[Step]) -> Iterator[dict[str, Any]]:
    for step in steps:
        for index, item in enumerate(step["items"]):
            for part, argument, text in _texts(item):
                span = _find(check, text)
                if span is not None:
                    more = {"in": "item", "item": index, "part": part, "argument": argument}
                    yield _place_evidence(step, text, span, **more)


def _find(check: CheckResult, text: str) -> tuple[int, int] | None:
    if not text:
        return None
    if check.kind in _OF_TEXTS:
        return piece_in(NormalizedText(text), check.excerpt, check.found)
    # A judge's quotation begins with who said it.
    for excerpt in (check.excerpt.partition(": ")[2], check.excerpt):
        for seen in (NormalizedText(text), NormalizedText(text, normal=False)):
            span = piece_in(seen, excerpt, check.found)
            if span is not None:
                return span
    return None


def _texts(item: dict[str, Any]) -> Iterator[tuple[str, str | None, str]]:
    """The texts of an item that can be shown with a piece marked."""
    if item["type"] != "tool":
        yield "text", None, item["text"]
        return
    if item["result"] is not None:
        yield "result", None, item["result"]["content"]
    for name, value in item["arguments"].items():
        if isinstance(value, str):
            yield "arguments", name, value


def _of_a_call(check: CheckResult, steps: Sequence[Step]) -> dict[str, Any] | None:
    """The call that the excerpt ``Bash(command: …)`` or ``Bash(command="…")`` shows."""
    told = argument_pieces(check.excerpt)
    if told is None:
        return None
    name, inside = told
    first: dict[str, Any] | None = None
    for step in steps:
        for index, item in enumerate(step["items"]):
            if item["type"] != "tool" or item["name"] != name:
                continue
            more = {"in": "item", "item": index, "part": "arguments"}
            for argument, value in item["arguments"].items():
                span = _shown_in_call(value, argument, inside)
                if span is not None:
                    return _place_evidence(step, value, span, **more, argument=argument)
            if first is None and _is_whole(item, inside):
                first = _place_evidence(step, "", (0, 0), **more)
    return first


def _shown_in_call(value: Any, argument: str, inside: str) -> tuple[int, int] | None:
    """Where in an argument's text the piece is; None: the excerpt shows none of this argument."""
    if not isinstance(value, str) or not value.strip():
        return None
    seen = NormalizedText(value)
    if f'{argument}="' in inside:  # the whole call is shown: so is the whole argument
        head = one_line(value[:_HEAD])
        return (0, len(value)) if f'{argument}="{head}' in inside else None
    # By the name that the check gives it, which need not be the engine's: `path` is `file_path`.
    _, separator, piece = inside.partition(": ")
    if not separator:
        return None
    for end in _ends(piece):
        span = piece_in(seen, piece[:end], "")
        if span is not None:
            return span
    return None


def _ends(piece: str) -> Iterator[int]:
    """Where the first of several pieces, ``path: …, content: …``, may end."""
    yield len(piece)
    at = piece.rfind(", ")
    while at > 0:
        yield at
        at = piece.rfind(", ", 0, at)


def _is_whole(item: dict[str, Any], inside: str) -> bool:
    """Whether the call is shown by arguments that are no texts, or has none at all."""
    return not inside or any(f"{name}=" in inside for name in item["arguments"])
