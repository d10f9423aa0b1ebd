"""JSON that leaves no doubt: what decides over a pass is read strictly or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.checks.context import Span, around, quoted
from skillup.judges.material import Part
from skillup.load.datasets import no_constant, unique_keys
from skillup.schema.grade import EvidenceSpan

BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)```", re.S | re.I)
_OBJECT_START = re.compile(r"""\{\s*["']""")


class DoubtfulJsonError(ValueError):
    """The text is no JSON, or JSON that can be read in two ways; the message says what is wrong."""


def strict_json(text: str) -> Any:
    """The value that is all of `text`. Raises DoubtfulJsonError, also for double keys and NaN."""
    try:
        return json.loads(bare(text), object_pairs_hook=unique_keys, parse_constant=no_constant)
    except RecursionError:
        raise DoubtfulJsonError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DoubtfulJsonError(f"it is not JSON: {error}") from None
    except ValueError as error:
        raise DoubtfulJsonError(str(error)) from None


def bare(text: str) -> str:
    """Without spaces and a byte order mark around it."""
    return text.strip().lstrip(BYTE_ORDER_MARK).strip()


def only_object(message: str) -> dict[str, Any]:
    """The object that is all of a message, fenced or not.

    An object beside other text, or another object, may be a quotation of what somebody else wrote.
    Raises DoubtfulJsonError.
    """
    text = bare(message)
    if (fenced := _FENCED.fullmatch(text)) is not None:
        text = fenced[1].strip()
    if not text.startswith("{"):
        what = "other text beside its" if _OBJECT_START.search(text) else "no"
        raise DoubtfulJsonError(f"the answer holds {what} JSON object")
    try:
        value: dict[str, Any] = strict_json(text)
    except DoubtfulJsonError as doubt:
        raise DoubtfulJsonError(f"the answer is not one JSON object: {doubt}") from None
    return value


# Whether what a judge quotes is there, and where.

_LIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
    }
)
_MARKUP = "*`>"
_PLAIN = _LIKE | dict.fromkeys(map(ord, _MARKUP))
_LEFT_OUT = re.compile(r"(?:\[\s*)?(?:\.\.\.|…)(?:\s*\])?")
_AROUND_QUOTATIONS = " \t\n\"'“”‘’«»"
_OF_THE_AGENT = frozenset({"answer", "message", "call", "result", "files"})
ENOUGH = 8  # Characters of a quotation that supports a pass, if the text is not shorter


@dataclass(frozen=True, slots=True)
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
