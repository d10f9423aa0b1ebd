from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skillup.importers.yaml_writer import to_yaml
from skillup.load.yaml_reader import parse_yaml, resolve_plain

HERE = Path("written.yaml")
TRICKY = [
    "yes", "on", "NO", "null", "~", "", "1e3", "0o17", "0x1F", "1_000", "1:30", "2026-01-02",
    "=", "<<", "- a", "a: b", "# no", "{{ x }}", "<<name>>", "*alias", "&anchor", "!tag", "@at",
    "a\nb\n", "a\n\n\nb", " leading\nline", "trailing \nline", "tab\there", "\ttab first\nline",
    "\nfirst line empty", "a\r\nb", "\x85\u2028\u2029", "\x07bell", "\ufeffmark", "😀", "'\"`",
    "%x",
    "| pipe", "> fold", "x" * 300 + " y" * 80, "...", "---", "a #b", "k: |\n  v\n",
]  # fmt: skip

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(TRICKY)
values = st.recursive(
    texts | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_our_reader_reads_back_what_was_written(data: dict[str, Any]) -> None:
    assert parse_yaml(to_yaml(data), HERE).data == data


@pytest.mark.parametrize("text", TRICKY)
def test_readers_of_yaml_1_1_read_the_same_text(text: str) -> None:
    written = to_yaml({"a": text, "b": [text]})
    assert yaml.safe_load(written) == {"a": text, "b": [text]}
    assert parse_yaml(written, HERE).data == {"a": text, "b": [text]}


def test_several_lines_are_a_block() -> None:
    assert to_yaml({"a": "one\n  two\n"}) == "a: |\n  one\n    two\n"


def test_keys_keep_their_order_and_lists_are_indented() -> None:
    assert to_yaml({"z": ["x"], "a": {}}, header="# h\n") == "# h\nz:\n  - x\na: {}\n"


def test_the_same_value_in_two_places_is_written_twice() -> None:
    shared = ["x"]
    assert "&" not in to_yaml({"a": shared, "b": shared})


def test_a_number_that_was_spelled_unusually_is_written_as_a_number() -> None:
    assert to_yaml({"a": resolve_plain("0042")}) == "a: 42\n"


def test_what_has_no_yaml_is_a_programmers_mistake() -> None:
    with pytest.raises(TypeError, match="Path"):
        to_yaml({"a": HERE})
