"""Words for people: text from agents and users made harmless, names, numbers and problems."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from skillup.errors import Problem
from skillup.redaction.secrets import ESCAPES

# Controls could move the cursor or recolour the user's terminal, as escape sequences do.
# So would marks of writing direction show what is not there, and zero-width characters hide what
# is. Joiners (U+200C, U+200D) stay: scripts and emoji need them.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """`text` without terminal controls and what nobody would see; newlines and tabs stay."""
    return _CONTROLS.sub("\ufffd", ESCAPES.sub("", text.replace("\r\n", "\n")))


def say(*lines: str) -> None:
    """To people, on stderr. Names of files and of cases may be in it, with anything in those."""
    sys.stderr.writelines(plain(line) + "\n" for line in lines)


def print_json(data: Any) -> None:
    """To programs, on stdout."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def one_line(text: str, width: int = 100) -> str:
    """`text` on one line, shortened to `width` characters."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


class Labels:
    """Names of trials, with engine, variant and number as far as there are several."""

    def __init__(self, trials: Iterable[Sequence[object]]) -> None:
        """`trials`: engine, variant and number of each, as at the end of a job's id."""
        self.several = [len(set(column)) > 1 for column in zip(*trials, strict=False)]

    def label(self, case: str, engine: str = "", variant: str = "", number: object = "") -> str:
        """``asks codex without #2``; without a number, of the case."""
        words = [one_line(engine), one_line(variant).removesuffix("_skill")]
        if number:
            trial = one_line(str(number))
            words.append(f"#{trial}" if trial.isdecimal() else trial)
        pairs = zip(words, self.several, strict=False)
        return " ".join([one_line(case), *(word for word, several in pairs if several)])


def shown_path(path: Path) -> str:
    """`path` as short as it can be from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def problem_line(problem: Problem) -> str:
    """``file:line:column: field: what is wrong; what would be right``."""
    text = str(problem).removeprefix(str(problem.file))
    return plain(shown_path(problem.file) + text)


def listed_ids(ids: Sequence[str], most: int = 10) -> str:
    """Ids with commas, and how many more there are than `most`."""
    return listed([one_line(one) for one in ids[:most]], len(ids))


def listed(shown: Sequence[str], of: int) -> str:
    more = f" and {of - len(shown)} more" if of > len(shown) else ""
    return ", ".join(shown) + more


def seconds(milliseconds: int) -> str:
    """A duration as people read it: ``0.8 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    value = milliseconds / 1000
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 120:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def tokens(count: int | None) -> str:
    """A token count: ``830``, ``12.4k``, ``1.2M``; a dash if it is not known."""
    if count is None:
        return "–"
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.1f}M"


def money(usd: float | None) -> str:
    """A cost: ``$0.0134``, ``$1.20``; a dash if it is not known."""
    if usd is None:
        return "–"
    return f"${usd:.4f}" if usd < 0.1 else f"${usd:.2f}"


def total(costs: Iterable[float | None]) -> str:
    """A sum; ``≥ $0.19`` if some of it is not known."""
    every = list(costs)
    known = [cost for cost in every if cost is not None]
    return "≥ " * (0 < len(known) < len(every)) + money(sum(known) if known else None)


def p_value(p: float) -> str:
    """`0.012`, or that it is too small to be worth its digits."""
    return "< 0.0001" if p < 0.0001 else f"{p:.3g}"


def count(number: int, word: str) -> str:
    """``1 case``, ``3 cases``."""
    return f"{number} {word}{'' if number == 1 else 's'}"
