"""Puts the page together: its skeleton, styles, scripts and data, in one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from skillup.store.journal import Mask, no_mask, to_json

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
