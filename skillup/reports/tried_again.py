"""Trials that were held more than once: nobody should take such a pass for a clean one."""

from __future__ import annotations

from collections.abc import Iterable

from skillup.reports.text import listed

_NAMED = 6


def attempt_words(attempt: int) -> str:
    """``attempt 2``; nothing of a trial that was held once."""
    return f"attempt {attempt}" if attempt > 1 else ""


def tried_again(trials: Iterable[tuple[str, int]]) -> str | None:
    """``1 trial was held more than once: asks (attempt 2)``; None: there is none.

    `trials` are what each is called, and which attempt its verdict is of.
    """
    again = [f"{name} ({attempt_words(attempt)})" for name, attempt in trials if attempt > 1]
    if not again:
        return None
    were = "1 trial was" if len(again) == 1 else f"{len(again)} trials were"
    return f"{were} held more than once: {listed(again[:_NAMED], len(again))}"
