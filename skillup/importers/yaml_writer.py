"""Writing YAML that our reader, and any other, reads back as what it was."""

from __future__ import annotations

import re
from typing import Any

import yaml

from skillup.load.yaml_reader import resolve_plain

_WIDTH = 100
# What a block of text cannot hold without an indentation indicator, an escape or a lost blank; nor
# blank lines at its end, after which PyYAML ends the document.
_NOT_IN_A_BLOCK = re.compile(
    r"\A[ \n]|[ \t]$|\n\n\Z|"
    r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
    re.MULTILINE,
)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: each value is written where it stands."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of a list are indented below their key."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text and not _NOT_IN_A_BLOCK.search(text):
        style = "|"
    elif not _means_itself(text) or not text.isprintable():
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _means_itself(text: str) -> bool:
    """Whether the plain text is a text to a reader of YAML 1.2, too (PyYAML knows 1.1 only)."""
    try:
        return isinstance(resolve_plain(text), str)
    except ValueError:
        return False


_Dumper.add_representer(str, _text)


def _plain(value: Any) -> Any:
    """Without subclasses of the plain types, which a dumper does not know."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return value + 0
    raise TypeError(f"{type(value).__name__} cannot be written as YAML")


def to_yaml(data: dict[str, Any], *, header: str = "") -> str:
    """`data` in block style, keys in their order, after the lines of `header` (comments)."""
    body = yaml.dump(
        _plain(data),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_WIDTH,
    )
    return f"{header}{body}"
