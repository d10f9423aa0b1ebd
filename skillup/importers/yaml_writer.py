"""Writing YAML that our reader, and any other, reads back as what it was."""

from __future__ import annotations

from typing import Any

import yaml

from skillup.load.yaml_reader import resolve_plain


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
    # Not in a block: what would need an indentation indicator, an escape or a blank that gets lost,
    # and blank lines at its end, after which PyYAML ends the document.
    lines = text.split("\n")
    shown = all(line.isprintable() and line == line.rstrip() for line in lines)
    if len(lines) > 1 and shown and text[0] not in " \n" and not text.endswith("\n\n"):
        style = "|"
    elif not text.isprintable() or len(text) > 1000 or not isinstance(resolve_plain(text), str):
        style = '"'  # a plain text would not mean itself to a reader of YAML 1.2
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(data: dict[str, Any]) -> str:
    """`data` in block style, keys in their order."""
    text: str = yaml.dump(
        data,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    return text
