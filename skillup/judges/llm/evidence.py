"""Whether what a judge quotes is there, and where.

A quotation counts as found if it differs in white space, kinds of quotation marks and dashes, upper
and lower case, or Markdown's `*` and `` ` `` at most; `...` in it stands for what was left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillup.checks.context import Span, around, quoted
from skillup.judges.llm.subject import Part

_LIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
    }
)
_LEFT_OUT = re.compile(r"(?:\[\s*)?(?:\.\.\.|…)(?:\s*\])?")
_AROUND_QUOTATIONS = " \t\n\"'“”‘’«»"


_AGENTS = frozenset({"answer", "message", "call", "result", "files"})
ENOUGH = 8
"""Characters of a quotation that is to support a pass, where the whole text is not shorter."""


def evidence_in(quotation: str, parts: Sequence[Part], *, passed: bool) -> tuple[str, list[str]]:
    """The quotation with its speaker and surroundings, and a note if it does not support a pass.

    Only what the agent said or did supports one. Where a quotation stands several times, an answer
    outranks everything else, and what others said comes last.
    """
    if not quotation.strip():
        return "", ["the judge quotes nothing for this pass"] if passed else []
    ranks = sorted(parts, key=lambda part: (part.kind not in _AGENTS, part.kind != "answer"))
    for part in ranks:
        span = _find(quotation, part.text)
        if span is None:
            continue
        excerpt = f"{part.label}: {around(part.text, span)}"
        why = _weakness(part, part.text[slice(*span)]) if passed else None
        return excerpt, [f"the judge's quotation does not support this pass: {why}"] if why else []
    return "", [f"the judge's quotation is not in what was judged: {quoted(quotation, 120)}"]


def _weakness(part: Part, found: str) -> str | None:
    if part.kind not in _AGENTS:
        return "the agent did not say it"
    if len(found.strip()) < min(ENOUGH, len(part.text.strip())):
        return f"{quoted(found)} is too short"
    return None


def _find(quotation: str, text: str) -> Span | None:
    folded, places = _folded(text)
    for wanted in (quotation, quotation.strip(_AROUND_QUOTATIONS)):
        whole = _folded(wanted)[0].strip()
        start = folded.find(whole) if whole else -1
        if start >= 0:
            return places[start], places[start + len(whole) - 1] + 1
    pieces = [_folded(piece)[0].strip() for piece in _LEFT_OUT.split(quotation)]
    pieces = [piece for piece in pieces if piece.strip(_AROUND_QUOTATIONS)]
    if len(pieces) < 2:
        return None
    first = place = -1
    for piece in pieces:
        place = folded.find(piece.strip(_AROUND_QUOTATIONS), place + 1)
        if place < 0:
            return None
        first = place if first < 0 else first
    return places[first], places[place] + 1


def _folded(text: str) -> tuple[str, list[int]]:
    """`text` without what does not count, and for each character where it comes from."""
    found: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text.translate(_LIKE)):
        if text[place] in "*`":
            continue
        if character.isspace():
            if found and found[-1] == " ":
                continue
            character = " "
        for folded in character.casefold():
            found.append(folded)
            places.append(place)
    return "".join(found), places
