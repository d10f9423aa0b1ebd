"""Chance that can be repeated: the same seed, attempt and turn always draw the same."""

from __future__ import annotations

import os


def drawn(probability: float, turn: int, what: str) -> bool:
    """Whether the lot of `what` (a rule, a fault) falls on yes; true in `probability` of the seeds.

    The attempt counts too, so that a trial that is tried again may fare better.
    """
    if probability >= 1:
        return True
    import hashlib

    seed = os.environ.get("SKILLUP_SCRIPTED_SEED", "0")
    digest = hashlib.sha256(f"{seed}/{attempt()}/{turn}/{what}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < probability


def attempt() -> int:
    """Which attempt of its trial this is, from 1."""
    value = os.environ.get("SKILLUP_SCRIPTED_ATTEMPT", "1")
    return int(value) if value.isdecimal() else 1
