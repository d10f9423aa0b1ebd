"""The reference names every key, and no key that does not exist."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from skillup.adapters import ADAPTERS
from skillup.engines.claude_code import engine as claude_arguments
from skillup.engines.codex import engine as codex_arguments
from skillup.schema.profile import Permission
from skillup.schema.record import ErrorKind
from tests.docs.blocks import PAGES, Table, tables_of
from tests.docs.reference import MODELS, keys_of, written

TABLES = [table for page in PAGES for table in tables_of(page)]


def _tables(action: str) -> dict[str, list[Table]]:
    """By what the marker says they are about."""
    found: dict[str, list[Table]] = {}
    for table in TABLES:
        if table.marker.action == action:
            found.setdefault(table.marker.value, []).append(table)
    return found


@pytest.mark.parametrize(("about", "tables"), _tables("keys").items(), ids=_tables("keys"))
def test_a_table_names_exactly_the_keys_of_its_models(about: str, tables: list[Table]) -> None:
    told = {name.rpartition(".")[2] for table in tables for name in table.names()}
    expected = {key for name in about.split() for key in keys_of(MODELS[name])}
    assert told == expected, [table.place for table in tables]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_say_what_the_models_say(page: Path) -> None:
    """Stale? ``python -m tests.docs.reference`` writes them anew."""
    assert page.read_text("utf-8") == written(page)


def test_every_model_that_people_write_has_a_table_and_every_error_kind_a_row() -> None:
    told = {name for about in _tables("keys") for name in about.split()}
    assert set(MODELS) - told == set()
    (table,) = _tables("kinds")["ErrorKind"]
    assert table.names() == list(typing.get_args(ErrorKind))


def test_permissions_are_as_the_adapters_pass_them_on() -> None:
    (table,) = (table for table in TABLES if table.marker.action == "permissions")
    # A CLI with an adapter of its own has a column in each table of the page.
    own = [name for name, adapter in ADAPTERS.items() if not adapter.described]
    columns = 2 + len(set(own) - {"scripted", "acp"})
    assert {len(row) for row in table.rows} == {columns}
    assert {name.strip("`"): (claude, codex) for name, _, claude, codex in table.rows} == {
        name: (
            f"`--permission-mode {claude_arguments._PERMISSION_MODES[name]}`",
            f"`-s {codex_arguments._SANDBOX_MODES[name]}`",
        )
        for name in typing.get_args(Permission)
    }
