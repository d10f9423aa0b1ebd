"""From answers of judges to results: votes, and whether what they quote is there.

A verdict is the majority of all answers that were asked for; a tie is a no. An answer that failed
to come is an error, unless the others have decided already, whatever it would have said. What only
answers "unknown" leave open is not evaluable: no pass, and no proof of the opposite. A score is the
mean; there every answer counts, so any that failed is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import Any

from skillup.checks.context import Span, around, beginning, quoted
from skillup.checks.evaluate import reaches, weighted_mean
from skillup.checks.nearest import LOOKALIKES
from skillup.dataclass import frozen
from skillup.judges.material import Part
from skillup.schema.grade import CheckResult, EvidenceSpan
from skillup.schema.judge_model import Combine

_LONGEST_REASON = 500
_UNKNOWN = "the judge cannot tell: "


@frozen
class Vote:
    passed: bool | None = None  # None: the judge cannot tell, or there is no answer
    reason: str = ""
    quotes: tuple[str, ...] = ()
    own_score: float | None = None  # None: 1 of a pass, else 0
    error: str | None = None  # There is no answer, and this is why
    by: str = ""  # Of a panel: its model

    @property
    def score(self) -> float:
        return float(bool(self.passed)) if self.own_score is None else self.own_score


def _decided(votes: Sequence[Vote], combine: Combine | None) -> tuple[bool | None, str | None]:
    """The verdict, None: nobody knows it; or the error that leaves it open."""
    yes, no = (sum(vote.passed is it for vote in votes) for it in (True, False))
    missing = [vote.error for vote in votes if vote.error is not None]
    passes = len(votes) if combine == "unanimous" else len(votes) // 2 + 1  # as many are needed
    fails = len(votes) - passes + 1
    if yes >= passes or no >= fails:
        return yes >= passes, None
    if missing and (yes + len(missing) >= passes or no + len(missing) >= fails):
        return None, missing[0]
    return None, None


Outcome = Callable[[Sequence[CheckResult]], tuple[float, bool]]
"""Score and verdict of a check by the results of its criteria, aspects or windows."""


def by_weight(threshold: float) -> Outcome:
    """The share of criteria met decides; where they have scales, their scores are the score."""

    def outcome(children: Sequence[CheckResult]) -> tuple[float, bool]:
        met = [child.model_copy(update={"score": float(child.passed)}) for child in children]
        required = all(child.passed for child in children if child.required)
        return weighted_mean(children), required and reaches(weighted_mean(met), threshold)

    return outcome


def criteria_met(result: CheckResult) -> str:
    children = result.children
    if len(children) == 1:
        return children[0].found
    unmet = [f"{child.name}: {child.found}" for child in children if not child.passed]
    return "; ".join([f"{len(children) - len(unmet)} of {len(children)} criteria met", *unmet])


def result_of(
    blank: CheckResult,
    children: Sequence[CheckResult],
    outcome: Outcome,
    found: Callable[[CheckResult], str],
) -> CheckResult:
    """`blank` with what its `children` come to; `found` puts a result into words."""
    score, passed = outcome(children)
    unknown = _is_open(children, outcome)
    passed = passed and not unknown
    update: dict[str, Any] = {
        "children": list(children),
        "unknown": unknown,
        "assertable": not unknown,
    }
    error = next((child.error for child in children if child.error is not None), None)
    if error is not None:
        return blank.model_copy(update={**update, "error": error})
    deciders = [c for c in children if c.passed == passed and c.unknown == unknown]
    update |= {
        "passed": passed,
        "score": round(score, 6),
        "excerpt": next((child.excerpt for child in deciders if child.excerpt), ""),
        "spans": [span for child in deciders for span in child.spans],
    }
    result = blank.model_copy(update=update)
    return result.model_copy(update={"found": found(result)})


def _is_open(children: Sequence[CheckResult], outcome: Outcome) -> bool:
    """Whether it did not pass, and would with what nobody knows; or nobody knows anything."""
    best = [
        c.model_copy(update={"passed": True, "score": 1.0}) if c.unknown else c for c in children
    ]
    nothing = all(child.unknown for child in children)
    return nothing or (not outcome(children)[1] and outcome(best)[1])


def voted(
    blank: CheckResult,
    votes: Sequence[Vote],
    quotations: Quotations | None,
    *,
    threshold: float | None = None,
    combine: Combine | None = None,
    needs_quotation: bool = True,
) -> CheckResult:
    """`blank`, of one criterion, aspect or window, with what the `votes` on it come to.

    `threshold`: of the mean; None: the majority decides. Without `quotations` what is quoted is
    shown as it is. If it `needs_quotation`, a pass without one that supports it has a note.
    """
    given = [vote for vote in votes if vote.error is None]
    verdict: bool | None
    if threshold is None:
        verdict, error = _decided(votes, combine)
        score = float(bool(verdict))
    else:
        error = next((vote.error for vote in votes if vote.error is not None), None)
        combined = median if combine == "median" else fmean
        # Open where it depends on what those would have said who cannot tell.
        known = [vote.score for vote in votes if vote.passed is not None]
        others = len(votes) - len(known)
        low, high = (combined([*known, *[end] * others]) for end in (0.0, 1.0))
        verdict = reaches(low, threshold) and error is None
        is_open = reaches(high, threshold) != verdict or not known
        verdict = None if is_open and not error else verdict
        score = round(combined(known), 6) if verdict is not None and known else 0.0
    update: dict[str, Any] = {"passed": False, "score": 0.0, "error": error}
    quoted: list[Quoted] = []
    if error is None:
        speaker = next((vote for vote in given if vote.passed is verdict), given[0])
        passed, unknown = verdict is True, verdict is None
        supports = passed and needs_quotation
        quotes = [quote for quote in speaker.quotes if quote.strip()]
        if quotations is None:
            quoted = [Quoted(beginning(quote)) for quote in quotes]
        else:
            quoted = [quotations.look_up(quote, passed=supports) for quote in quotes]
            if supports and not quoted:
                quoted = [Quoted("", "the judge quotes nothing for this pass")]
        update = {
            "passed": passed,
            "score": score,
            "unknown": unknown,
            "assertable": not unknown,
            "found": beginning(_UNKNOWN * unknown + speaker.reason, _LONGEST_REASON),
            "excerpt": " / ".join(one.excerpt for one in quoted if one.excerpt),
            "spans": [span for one in quoted for span in one.spans],
        }
    notes = [*blank.notes, *(one.note for one in quoted if one.note is not None)]
    if len(votes) > 1 and given:
        words = "; ".join(_word(vote, by_score=threshold is not None) for vote in votes)
        notes.append(f"asked {len(votes)} times: {words}")
        agreement = sum(vote.passed is verdict for vote in given) / len(given)
        update["votes"] = [vote.score for vote in votes if vote.passed is not None]
        update["agreement"] = round(agreement, 6)
    return blank.model_copy(update={**update, "notes": list(dict.fromkeys(notes))})


def _word(vote: Vote, *, by_score: bool) -> str:
    word = f"{vote.score:.3g}" if by_score else "pass" if vote.passed else "fail"
    word = "unknown" if vote.passed is None else word
    return (f"{vote.by}: " if vote.by else "") + (vote.error or word)


# Whether what a judge quotes is there, and where.

_LIKE = LOOKALIKES["quote"] | LOOKALIKES["dash"]
_MARKUP = "*`>"
_PLAIN = _LIKE | dict.fromkeys(map(ord, _MARKUP))
_LEFT_OUT = re.compile(r"(?:\[\s*)?(?:\.\.\.|…)(?:\s*\])?")
_AROUND_QUOTATIONS = " \t\n\"'“”‘’«»"
_OF_THE_AGENT = frozenset({"answer", "message", "call", "result", "files"})
ENOUGH = 8  # Characters of a quotation that supports a pass, if the text is not shorter


@frozen
class Quoted:
    excerpt: str  # With its speaker and surroundings; empty: it is nowhere
    note: str | None = None  # What a reader should know of it
    spans: tuple[EvidenceSpan, ...] = ()  # Where it stands in the record


class Quotations:
    """Looks for quotations in the texts that were judged, which are read as they are needed."""

    def __init__(self, parts: Iterable[Part]) -> None:
        """`parts`: where a quotation stands in several, the first of them counts."""
        self._unread = iter(parts)
        self._read: list[tuple[Part, str]] = []

    def look_up(self, quotation: str, *, passed: bool) -> Quoted:
        """The quotation, with a note if it is nowhere or, of a pass, not the agent's own."""
        pieces = [_plain(piece.strip(_AROUND_QUOTATIONS)) for piece in _LEFT_OUT.split(quotation)]
        pieces = [piece for piece in pieces if piece]
        for part, plain in self._texts() if pieces else ():
            place = _find(pieces, part.text, plain)
            if place is None:
                continue
            start, end = place
            why = None
            if passed and part.kind not in _OF_THE_AGENT:
                why = "the agent did not say it"
            elif passed and end - start < min(ENOUGH, len(part.text.strip())):
                why = f"{quoted(part.text[start:end])} is too short"
            note = why and f"the judge's quotation does not support this pass: {why}"
            spans = [part.span] if part.span is not None else []
            if part.span is not None and part.recorded == part.text:  # else it was cut
                spans = [part.span.model_copy(update={"start": start, "end": end})]
            return Quoted(f"{part.label}: {around(part.text, place)}", note, tuple(spans))
        note = f"the judge's quotation is not in what was judged: {quoted(quotation, 120)}"
        return Quoted("", note)

    def _texts(self) -> Iterator[tuple[Part, str]]:
        yield from self._read
        for part in self._unread:
            self._read.append((part, _plain(part.text)))
            yield self._read[-1]


def in_order_of_weight(parts: Iterable[Part]) -> list[Part]:
    """An answer outranks everything else; what others said comes last."""
    return sorted(parts, key=lambda p: (p.kind not in _OF_THE_AGENT, p.kind != "answer"))


def _plain(text: str) -> str:
    return " ".join(text.translate(_PLAIN).casefold().split())


def _find(pieces: Sequence[str], text: str, plain: str) -> Span | None:
    """Where the `pieces` stand in `text`, one after the other; `plain` is its plain form."""
    first = end = -1
    for piece in pieces:
        start = plain.find(piece, max(end, 0))
        if start < 0:
            return None
        first, end = (start if first < 0 else first), start + len(piece)
    places: list[int] = []  # for each character of the plain text, where it comes from
    space = True
    for place, character in enumerate(text.translate(_LIKE)):
        if text[place] in _MARKUP:
            continue
        if not character.isspace():
            places.extend([place] * len(character.casefold()))
        elif not space:
            places.append(place)
        space = character.isspace()
    return places[first], places[end - 1] + 1
