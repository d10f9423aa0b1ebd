"""What a judge is shown, delimited so that nothing in it can pass for anything but material.

Agents, tools and files write what they like: instructions to the judge, forged ends of the
material, forged speakers, finished verdicts. So every line of ours carries a code that occurs
nowhere in the texts. The code is made from the texts themselves: nobody who writes one of them can
know it, and the same record gives the same bytes, which is what answers are kept under.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from skillup.judges.reading.exchanges import Exchange, Part, PartKind
from skillup.judges.reading.plain_text import harmless, shortened

LONGEST: dict[PartKind, int] = {
    "answer": 24_000,
    "user": 12_000,
    "files": 6_000,
    "setting": 6_000,
    "message": 4_000,
    "result": 3_000,
    "call": 2_000,
}
"""Characters of each text; in long conversations a half, a quarter, … of it."""
LONGEST_IN_ALL = 160_000
_SHORTEST = 16


@dataclass(frozen=True, slots=True)
class Material:
    """Texts as they are shown, in order, and how to tell them apart."""

    parts: tuple[Part, ...]
    code: str
    notes: tuple[str, ...] = ()
    """What of it was left out."""

    def fenced(self, parts: Sequence[Part] | None = None) -> str:
        """The `parts` (default: all of them) between the lines that begin and end material."""
        lines = [f"=====[ {self.code} BEGIN MATERIAL ]====="]
        for part in self.parts if parts is None else parts:
            lines += [f"-----[ {self.code} {part.label} ]-----", part.text]
        return "\n".join([*lines, f"=====[ {self.code} END MATERIAL ]====="])


def material_of(exchanges: Sequence[Exchange], setting: Sequence[Part] = ()) -> Material:
    """The `exchanges`, after the parts of their `setting`, as material."""
    labelled = [(part.label, part) for part in setting]
    labelled += [(f"{e.label} · {part.label}", part) for e in exchanges for part in e.parts]
    parts = [
        replace(part, label=harmless(label), text=harmless(part.text)) for label, part in labelled
    ]
    fitting, notes = _fit(parts)
    return Material(tuple(fitting), _code(fitting), tuple(notes))


def _fit(parts: list[Part]) -> tuple[list[Part], list[str]]:
    """As much of every part as there is room for, and what went."""
    divisor = 1
    while True:
        cut = [(part, *shortened(part.text, LONGEST[part.kind] // divisor)) for part in parts]
        kept = [replace(part, text=text) for part, text, _ in cut]
        if _size(kept) <= LONGEST_IN_ALL or divisor >= _SHORTEST:
            break
        divisor *= 2
    gone = [count for _, _, count in cut if count]
    notes = []
    if gone:
        texts = "1 long text" if len(gone) == 1 else f"{len(gone)} long texts"
        notes.append(f"the judge saw {texts} without the middle: {sum(gone):,} characters left out")
    if _size(kept) > LONGEST_IN_ALL:
        kept, dropped = _without_middle(kept)
        notes.append(f"the judge did not see {dropped} texts in the middle of the conversation")
    return kept, notes


def _without_middle(parts: Sequence[Part]) -> tuple[list[Part], int]:
    """The first quarter and the last three quarters of what fits."""
    head: list[Part] = []
    tail: list[Part] = []
    for part in parts:
        if _size([*head, part]) > LONGEST_IN_ALL // 4:
            break
        head.append(part)
    room = LONGEST_IN_ALL - _size(head)
    for part in reversed(parts[len(head) :]):
        room -= _size([part])
        if room < 0:
            break
        tail.insert(0, part)
    dropped = len(parts) - len(head) - len(tail)
    note = Part("message", "left out", f"[… {dropped} texts are left out here …]")
    return [*head, note, *tail], dropped


def _size(parts: Sequence[Part]) -> int:
    return sum(len(part.text) + len(part.label) for part in parts)


def _code(parts: Sequence[Part]) -> str:
    """Sixteen hexadecimal digits that occur in no part."""
    everything = "\0".join(text for part in parts for text in (part.label, part.text))
    digest = everything.encode("utf-8", "surrogatepass")
    everything = everything.lower()
    while True:
        digest = hashlib.sha256(digest).hexdigest().encode()
        code = digest[:16].decode()
        if code not in everything:
            return code
