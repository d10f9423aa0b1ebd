"""Puts the page together: its skeleton, styles, scripts and data, in one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from skillup.reports.html.comparison import history_data, sides_of
from skillup.reports.html.detail import ORDINARY, TIGHTER, PageLimits
from skillup.reports.html.run_data import RunData
from skillup.reports.html.run_files import shown_bytes
from skillup.store.files import Mask, no_mask, to_json

_MARKERS = ("title", "style", "script", "data")
# Made of viewer/src by viewer/build.mjs.
_BUNDLE = ("viewer.css", "viewer.js")


def page_html(
    index: Mapping[str, Any],
    details: Iterable[tuple[str, bytes]],
    *,
    title: str,
    mask: Mask = no_mask,
) -> bytes:
    """The page with its data in it.

    `details`: the name of each trial (`n`) and what :func:`packed` made of its conversation.
    """
    parts = [_script_tag("application/json", "sk-index", _json_for_html(index, mask))]
    parts.extend(
        _script_tag("text/plain", f"sk-trial-{name}", data.decode("ascii"))
        for name, data in details
    )
    skeleton, script = _assets()
    before, after = skeleton.split("<!-- data -->")
    filled = [before.replace("<!-- title -->", html.escape(mask(title))), *parts]
    page = "\n".join(filled) + after.replace("<!-- script -->", script)
    return page.encode("utf-8", "replace")


def packed(detail: Mapping[str, Any], mask: Mask = no_mask) -> bytes:
    """One conversation as it stands in the page: base64 of gzip of JSON."""
    # No time in it: the same conversation gives the same bytes.
    return base64.b64encode(gzip.compress(to_json(detail, mask, indent=None), 9, mtime=0))


def _script_tag(kind: str, name: str, text: str) -> str:
    return f'<script type="{kind}" id="{html.escape(name)}">{text}</script>'


def _json_for_html(value: Mapping[str, Any], mask: Mask) -> str:
    r"""JSON without a ``<``: nothing in it can end the script it stands in, or begin a comment."""
    text = to_json(value, mask, indent=None).decode().rstrip()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@lru_cache(maxsize=1)
def _assets() -> tuple[str, str]:
    """The skeleton with all but title, data and script filled in; and the script."""
    folder = files(__package__) / "viewer"
    skeleton = (folder / "page.html").read_text("utf-8")
    for marker in _MARKERS:
        if skeleton.count(f"<!-- {marker} -->") != 1:
            raise RuntimeError(f"page.html must have the marker <!-- {marker} --> once")
    style, script = ((folder / "dist" / name).read_text("utf-8") for name in _BUNDLE)
    script = script.replace("</script", "<\\/script").strip("\n")
    skeleton = skeleton.replace("<!-- style -->", style.replace("</style", "<\\/style"))
    digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
    name = f"'sha256-{base64.b64encode(digest).decode()}'"
    # Only this very script may run, whatever else gets into the page.
    return skeleton.replace("script-src 'unsafe-inline'", f"script-src {name}"), script


# report.html: a run, all of it, in one file.

_LARGEST = 9_900_000  # Bytes of the whole file
_PICTURES = 4_000_000
"""Bytes of the pictures of all conversations, those of the first ones first: that there are many
must not make packing them, only to leave them out, take minutes."""
_EACH = 12_000  # A run of very many trials may take so much for each of them
_TAG = 60  # Bytes around each of the conversations
Pack = Callable[[int, PageLimits], bytes]


def html_report(
    path: Path, *, mask: Mask = no_mask, index: str | None = None, against: Path | None = None
) -> bytes:
    """The page of the run in `path`; beside `against`, an earlier run, if that is given.

    `index` is the index of runs for the trends, as `--index`. Records are read one at a time.
    Raises RunDirectoryError if one of the two is no run.
    """
    data = RunData(path)
    shift, shown = len(data.jobs), data.recorded()
    earlier = sides = None
    if against is not None:
        way = quote(os.path.relpath(against.absolute(), path.absolute()), errors="surrogateescape")
        earlier = RunData(against, base=f"{way}/")
        sides = sides_of(earlier, data, shift=shift, index=index)
        of_a = (row["a"] for row in sides["rows"])
        shown += [side["n"] for side in of_a if side is not None and side["n"] is not None]
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

    title = f"skillup: {data.run_id}"
    bare = len(page_html(whole, [], title=title, mask=mask))
    room = _LARGEST - bare - _TAG * len(shown)
    details = _fitting(shown, pack, max(room, _EACH * len(shown)))
    named = [(str(n), one) for n, one in details.items()]
    return page_html(whole, named, title=title, mask=mask)


def _fitting(shown: Sequence[int], pack: Pack, room: int) -> dict[int, bytes]:
    """The conversations, packed; where they are too large together, the largest are shortened."""
    found = {n: pack(n, ORDINARY) for n in shown}
    for limits in TIGHTER:
        if sum(map(len, found.values())) <= room:
            break
        most = room // len(found)
        large = [n for n, data in found.items() if len(data) > most]
        # A few of them tell whether these limits will do: to pack all takes seconds each time.
        some = large[:: max(1, len(large) // 8)]
        if limits == TIGHTER[-1] or sum(len(pack(n, limits)) for n in some) <= most * len(some):
            for n in large:
                found[n] = min(found[n], pack(n, limits), key=len)
    return found
