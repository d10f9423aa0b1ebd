"""What somebody may have meant who wrote a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

# Beyond this, a comparison costs more than a guess is worth.
_LONGEST = 80
_SIMILAR_ENOUGH = 0.7


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The name of `known` that is most like `name`; None if none is like it.

    Case, hyphens and blanks do not count: ``Max-Turns`` means ``max_turns``. A first word may stand
    for the only name that begins with it: ``timeout`` for ``timeout_seconds``.
    """
    if len(name) > _LONGEST:
        return None
    by_spelling: dict[str, str] = {}
    for candidate in known:
        by_spelling.setdefault(_plain(candidate), candidate)
    wanted = _plain(name)
    if wanted in by_spelling:
        return by_spelling[wanted]
    longer = [name for name in by_spelling if name.startswith(f"{wanted}_")]
    if len(longer) == 1:
        return by_spelling[longer[0]]
    from difflib import get_close_matches

    close = get_close_matches(wanted, by_spelling, n=1, cutoff=_SIMILAR_ENOUGH)
    return by_spelling[close[0]] if close else None


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")
