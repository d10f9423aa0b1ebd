"""Pictures that an agent made or changed, for the page: their bytes, where they are small enough.

Only formats of pixels. SVG is a document, which may hold scripts: it is shown as text, as a diff.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from skillup.reports.page.limits import Limits
from skillup.reports.page.picture_sizes import kind_of
from skillup.schema.record import FileState, TurnRecord

Read = Callable[[FileState], bytes | None]
"""The content of a file as it was after a turn; None if it was not kept."""

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MOST_PIXELS = 25_000_000
"""A few bytes may stand for a picture that no browser can hold."""
_MOST_PIXELS_IN_ALL = 250_000_000
"""Of all frames of an animation, each as large as the whole."""
_MOST_LISTED = 50


def add_images(
    turns: Iterable[Mapping[str, Any]], held: Iterable[TurnRecord], read: Read, limits: Limits
) -> None:
    """Put into the `changes` of the page's `turns`, which were `held`, their pictures.

    ``images: [{path, size, type, width, height, data}]``; without `data` (base64) where it does not
    fit into what `limits` grants to a conversation, or is none that can be shown.
    """
    room = limits.images
    for turn, record in zip(turns, held, strict=True):
        for step, one in zip((turn, *turn["follow_ups"]), record.executed(), strict=True):
            if step["changes"] is None:
                continue
            images: list[dict[str, Any]] = []
            for path in _wanted(step["changes"]):
                state = (one.files or {}).get(path)
                if state is not None and state.link is None and len(images) < _MOST_LISTED:
                    images.append(_image(path, state, read, min(room, limits.image)))
                    room -= state.size if "data" in images[-1] else 0
            step["changes"]["images"] = images


def shown_bytes(detail: Mapping[str, Any]) -> int:
    """Of all pictures that are in a conversation, as the page has it."""
    steps = (s for turn in detail.get("turns", ()) for s in (turn, *turn["follow_ups"]))
    changes = (step["changes"] for step in steps if step["changes"] is not None)
    return sum(one["size"] for c in changes for one in c["images"] if "data" in one)


def _wanted(changes: Mapping[str, Any]) -> list[str]:
    paths = [*changes["added"], *changes["modified"]]
    return [path for path in paths if path.lower().endswith(_ENDINGS)]


def _image(path: str, state: FileState, read: Read, room: int) -> dict[str, Any]:
    told = {"path": path, "size": state.size}
    if state.size > room:
        return told
    try:
        data = read(state)
    except OSError:
        return told
    found = kind_of(data or b"")
    if found is None or data is None:
        return told
    kind, width, height, passes = found
    pixels = width * height
    if not 0 < pixels <= _MOST_PIXELS or pixels * passes > _MOST_PIXELS_IN_ALL:
        return told
    encoded = base64.b64encode(data).decode("ascii")
    return {**told, "type": kind, "width": width, "height": height, "data": encoded}
