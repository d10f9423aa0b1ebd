"""Paths in texts and data that were made in one directory and are to mean another."""

from __future__ import annotations

import re
from typing import Any


def moved(value: Any, old: str, new: str) -> Any:
    """`value` (JSON data) with the directory `old` replaced by `new` in all its texts."""
    if isinstance(value, str):
        return moved_text(value, old, new)
    if isinstance(value, list):
        return [moved(item, old, new) for item in value]
    if isinstance(value, dict):
        return {moved(key, old, new): moved(item, old, new) for key, item in value.items()}
    return value


def moved_text(text: str, old: str, new: str) -> str:
    """`text` with the path `old` replaced, but not where it only begins a longer name.

    ``/w/one`` is moved in ``/w/one``, ``/w/one/a`` and ``cd /w/one.``, not in ``/w/one-2``.
    """
    if old not in text:
        return text
    # A dot may end a sentence; only before another character of a name is it part of one.
    end = r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9_])"
    return re.sub(re.escape(old) + end, lambda _: new, text)
