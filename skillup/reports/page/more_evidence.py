"""Further evidence of a check: every piece that it found, and what a turn did to a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from skillup.checks.evidence import Span
from skillup.checks.finding import CannotEvaluateError
from skillup.checks.folding import Haystack
from skillup.checks.patterns import Searcher
from skillup.reports.page.offsets import Seen, utf16
from skillup.schema.grade import CheckResult

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
    seen = Seen(text)
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


def _pieces(seen: Seen, wanted: str) -> Iterator[Span]:
    for match in _PIECE.finditer(wanted):
        piece = match[1]
        if not piece.strip() or piece.endswith(_CUT):
            continue
        exact = list(_all(seen.shown, piece, case_sensitive=True))
        yield from exact or _all(seen.shown, piece, case_sensitive=False)


def _all(text: str, piece: str, *, case_sensitive: bool) -> Iterator[Span]:
    place = 0
    for _ in range(_MOST):
        span = Haystack(text[place:], case_sensitive=case_sensitive).find(piece)
        if span is None or span[1] <= span[0]:
            return
        yield span[0] + place, span[1] + place
        place += span[1]


def _patterns(seen: Seen, wanted: str) -> Iterator[Span]:
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
