"""The raw streams of messages that do not count: kept, under other names."""

from __future__ import annotations

import re
from pathlib import Path

_OF_A_TURN = re.compile(r"^turn-(\d+)(?:-follow-up-\d+)?\.std(?:out|err)\.")


def set_aside(raw_dir: Path, stem: str, as_what: str) -> None:
    """Renames the streams of the message `stem`: ``turn-02.stdout.jsonl`` to
    ``turn-02.refused-1.stdout.jsonl``, with the first number that is free.
    """
    for ending in ("stdout.jsonl", "stderr.txt"):
        path = raw_dir / f"{stem}.{ending}"
        if path.exists():
            number = 1
            while (target := raw_dir / f"{stem}.{as_what}-{number}.{ending}").exists():
                number += 1
            path.rename(target)


def set_aside_from(raw_dir: Path, turn: int) -> None:
    """The same with all streams of `turn` and later ones, which a process was ended in."""
    for path in sorted(raw_dir.glob("turn-*")):
        found = _OF_A_TURN.match(path.name)
        if found and int(found[1]) >= turn:
            set_aside(raw_dir, path.name.partition(".")[0], "cut")
