"""report.html: a run, all of it, in one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from skillup.reports.html.build import packed, page_html
from skillup.reports.html.comparison import sides_of, trials_of_a
from skillup.reports.html.history import history_data
from skillup.reports.html.images import shown_bytes
from skillup.reports.html.limits import ORDINARY, TIGHTER, PageLimits
from skillup.reports.html.run_data import RunData
from skillup.store.journal import Mask, no_mask

_LARGEST = 9_900_000
"""Bytes of the whole file."""
_PICTURES = 4_000_000
"""Bytes of the pictures of all conversations, those of the first ones first: that there are many
must not make packing them, only to leave them out, take minutes."""
_EACH = 12_000
"""A run of very many trials may take so much for each of them."""
_TAG = 60
"""Bytes around each of the conversations."""
_SAMPLE = 12


def html_report(
    path: Path, *, mask: Mask = no_mask, index: str | None = None, against: Path | None = None
) -> bytes:
    """The page of the run in `path`; beside `against`, an earlier run, if that is given.

    `index` is the index of runs for the trends, as `--index`. Records are read one at a time.
    Raises RunDirectoryError if one of the two is no run.
    """
    data = RunData(path)
    earlier = RunData(against, base=_way(path, against)) if against is not None else None
    shift = len(data.jobs)
    sides = sides_of(earlier, data, shift=shift, index=index) if earlier is not None else None
    whole = data.index("report", history_data(path, index), sides)

    pictures = _PICTURES

    def pack(n: int, limits: PageLimits) -> bytes:
        nonlocal pictures
        if limits is ORDINARY:
            limits = replace(limits, images=min(limits.images, pictures))
        if earlier is None or n <= shift:
            detail = data.detail(n, limits)
        else:
            detail = earlier.detail(n - shift, limits, shift=shift)
        pictures -= shown_bytes(detail)
        return packed(detail, mask)

    wanted = data.recorded()
    if earlier is not None and sides is not None:
        wanted += trials_of_a(sides, same=False)
    title = f"skillup: {data.run_id}"
    bare = len(page_html(whole, [], title=title, mask=mask))
    room = _LARGEST - bare - _TAG * len(wanted)
    details = _fitting(wanted, pack, max(room, _EACH * len(wanted)))
    if sides is not None:
        details += _while_there_is_room(trials_of_a(sides, same=True), pack, room - _size(details))
    return page_html(whole, details, title=title, mask=mask)


def _way(path: Path, other: Path) -> str:
    """What links in the page of the run in `path` to files of the `other` run begin with."""
    way = os.path.relpath(other.absolute(), path.absolute())
    return quote(way, errors="surrogateescape") + "/"


def _size(details: Sequence[tuple[str, bytes]]) -> int:
    return sum(len(data) for _, data in details)


def _while_there_is_room(
    wanted: Sequence[int], pack: Callable[[int, PageLimits], bytes], room: int
) -> list[tuple[str, bytes]]:
    """Conversations that are good to have, but cost no other one a word."""
    found = []
    for n in wanted:
        data = pack(n, ORDINARY)
        room -= len(data) + _TAG
        if room < 0:
            break
        found.append((str(n), data))
    return found


def _fitting(
    wanted: Sequence[int], pack: Callable[[int, PageLimits], bytes], room: int
) -> list[tuple[str, bytes]]:
    """The conversations, packed; where they are too large together, the largest are shortened."""
    found = {n: pack(n, ORDINARY) for n in wanted}
    if sum(map(len, found.values())) > room:
        most = _fair_share([len(data) for data in found.values()], room)
        large = [n for n, data in found.items() if len(data) > most]
        for limits in TIGHTER[_enough(large, pack, most) :]:
            for n in large:
                found[n] = min(found[n], pack(n, limits), key=len)
            if sum(map(len, found.values())) <= room:
                break
            large = [n for n in large if len(found[n]) > most]
    return [(str(n), data) for n, data in found.items()]


def _enough(large: Sequence[int], pack: Callable[[int, PageLimits], bytes], most: int) -> int:
    """Which of the tighter limits will do, as some of the `large` conversations show."""
    some = large[:: max(1, len(large) // _SAMPLE)]
    for place, limits in enumerate(TIGHTER):
        if sum(len(pack(n, limits)) for n in some) <= most * len(some):
            return place
    return len(TIGHTER) - 1


def _fair_share(sizes: list[int], room: int) -> int:
    """The size to which the largest must come down, so that all have room."""
    left = room
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        share = left // (len(ordered) - place)
        if size > share:
            return share
        left -= size
    return ordered[-1] if ordered else 0
