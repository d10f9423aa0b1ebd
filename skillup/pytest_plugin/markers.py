"""Tags of cases as markers of pytest, so that `-m` selects by them."""

from __future__ import annotations

import re

import pytest

_ODD = re.compile(r"[^\w.-]")
_TAKEN = frozenset(
    {
        # pytest does something of its own for these.
        *("filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"),
        # `-m` reads these as words of its own.
        *("and", "or", "not"),
        "skillup",
    }
)


def marker_of_tag(tag: str) -> str:
    """``needs review`` → ``needs_review``; ``skip`` → ``tag_skip``: what could not be a marker."""
    name = _ODD.sub("_", tag)
    return f"tag_{name}" if name in _TAKEN or not name or name[0] in "_.-" else name


class Markers:
    """Registers each marker once, so that `--strict-markers` knows it, and puts it on items."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._known = {str(line).partition(":")[0] for line in config.getini("markers")}
        self._register("skillup", "a case that skillup holds")

    def put(self, item: pytest.Item, tags: list[str]) -> None:
        """Mark a case's item."""
        item.add_marker("skillup")
        for tag in dict.fromkeys(tags):
            name = marker_of_tag(tag)
            self._register(name, "a tag of skillup cases")
            item.add_marker(name)

    def _register(self, name: str, about: str) -> None:
        if name not in self._known:
            self._known.add(name)
            self._config.addinivalue_line("markers", f"{name}: {about}")
