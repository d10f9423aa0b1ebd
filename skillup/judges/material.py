"""What a judge or a simulated user is shown, fenced so that nothing in it passes for anything else.

Every line of ours around the texts carries a code that is computed from them and occurs in none:
no text can forge the end of the material, another speaker, or instructions of ours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from skillup.schema.grade import EvidenceSpan

# Control characters become their pictures.
_SHOWN: dict[int, str] = (
    {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
    | {0x7F: "␡", 0x0D: "", 0xAD: ""}
    | dict.fromkeys(range(0x80, 0xA0), "·")
    | {0x2028: "\n", 0x2029: "\n"}
)
# What has no shape of its own (Unicode's Default_Ignorable_Code_Point, and annotations): zero-width
# characters, directions, fillers, variation selectors, tags.
_INVISIBLE = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)
_STYLES = frozenset(("\u200c", "\u200d", "\ufe0e", "\ufe0f", "\ufe0f\u200d"))
"""What emoji and joined scripts are made of: one such between two characters hides nothing."""


def harmless(text: str) -> str:
    """`text` with invisible characters named; what emoji and joined scripts are made of stays."""
    if text.isascii() and text.isprintable():
        return text
    return _INVISIBLE.sub(_named, text.replace("\r\n", "\n").translate(_SHOWN))


def _named(found: re.Match[str]) -> str:
    run, before = found[0], found.string[: found.start()][-1:]
    if run in _STYLES and before and not (before.isascii() and before not in "#*0123456789"):
        return run
    return f"[U+{ord(run):04X}]" if len(run) == 1 else f"[{len(run)} invisible characters]"


def code_for(texts: Sequence[str]) -> str:
    """Sixteen hexadecimal digits that occur in none of `texts`, always the same for the same."""
    everything = "\0".join(texts)
    digest = everything.encode("utf-8", "surrogatepass")
    everything = everything.lower()
    while True:
        digest = hashlib.sha256(digest).hexdigest().encode()
        if (code := digest[:16].decode()) not in everything:
            return code


def fenced(pieces: Sequence[tuple[str, str]], code: str, what: str = "MATERIAL") -> str:
    """Texts, each after its label, between the lines that begin and end them.

    `code` is that of all labels and texts (:func:`code_for`).
    """
    lines = [f"=====[ {code} BEGIN {what} ]====="]
    for label, text in pieces:
        lines += [f"-----[ {code} {label} ]-----", text]
    return "\n".join([*lines, f"=====[ {code} END {what} ]====="])


def cut(text: str, max_bytes: int) -> tuple[str, str | None]:
    """The text, or its beginning and end; and what was left out, if anything."""
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) <= max_bytes:
        return text, None
    half = max_bytes // 2
    start = encoded[:half].decode(errors="ignore")
    end = encoded[len(encoded) - half :].decode(errors="ignore")
    note = f"{len(encoded) - 2 * half} bytes left out"
    return f"{start}\n[… {note} …]\n{end}", note


PartKind = Literal["setting", "user", "message", "call", "result", "answer", "files"]


@dataclass(frozen=True, slots=True)
class Part:
    kind: PartKind
    label: str  # Who or what, in a few words: `user`, `tool call 1: Bash (shell)`
    text: str
    span: EvidenceSpan | None = None  # Where in the record it is; None: nowhere
    recorded: str | None = None  # The text as it is recorded there; None: the span means the whole


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
_MOST_HALVINGS = 4


@dataclass(frozen=True, slots=True)
class Material:
    parts: tuple[Part, ...]
    code: str
    notes: tuple[str, ...] = ()  # What of it was left out

    def fenced(self, labels: set[str] | None = None) -> str:
        """The parts with these labels (default: all of them), fenced."""
        shown = [(p.label, p.text) for p in self.parts if labels is None or p.label in labels]
        return fenced(shown, self.code)


def material_of(parts: Sequence[Part]) -> Material:
    """As much of `parts` as there is room for."""
    parts = [replace(p, label=harmless(p.label), text=harmless(p.text)) for p in parts]
    kept, gone, notes = list(parts), list[int](), list[str]()
    for halvings in range(_MOST_HALVINGS + 1):
        kept, gone = [], []
        for part in parts:
            longest = LONGEST[part.kind] >> halvings
            text, head, count = part.text, longest * 2 // 3, len(part.text) - longest
            if count > 0:
                gone.append(count)
                end = text[head - longest :]
                text = f"{text[:head]}\n[… {count:,} characters are left out here …]\n{end}"
            kept.append(replace(part, text=text))
        if _size(kept) <= LONGEST_IN_ALL:
            break
    if gone:
        texts = "1 long text" if len(gone) == 1 else f"{len(gone)} long texts"
        notes.append(f"the judge saw {texts} without the middle: {sum(gone):,} characters left out")
    if _size(kept) > LONGEST_IN_ALL:
        # The first quarter and the last three quarters of what fits.
        first = last = 0
        while _size(kept[: first + 1]) <= LONGEST_IN_ALL // 4:
            first += 1
        room = LONGEST_IN_ALL - _size(kept[:first])
        while _size(kept[len(kept) - last - 1 :]) <= room:
            last += 1
        dropped = len(kept) - first - last
        note = Part("message", "left out", f"[… {dropped} texts are left out here …]")
        kept = [*kept[:first], note, *kept[len(kept) - last :]]
        notes.append(f"the judge did not see {dropped} texts in the middle of the conversation")
    code = code_for([text for part in kept for text in (part.label, part.text)])
    return Material(tuple(kept), code, tuple(notes))


def _size(parts: Sequence[Part]) -> int:
    return sum(len(part.text) + len(part.label) for part in parts)
