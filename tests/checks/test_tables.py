"""Every check by table: rows that pass and rows that fail for each key."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from skillup.schema.checks import CHECK_FIELDS, Check
from tests.checks.tables import answer_rows, compound_rows, file_rows, tool_rows
from tests.support.check_rows import Row

ROWS = [*answer_rows.ROWS, *tool_rows.ROWS, *file_rows.ROWS, *compound_rows.ROWS]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_check_says_what_the_table_says_with_its_evidence(row: Row) -> None:
    result = row.result()

    assert result.passed is row.passes, result
    assert not (result.passed and (result.error or not result.assertable))
    assert 0 <= result.score <= 1
    assert result.name
    assert len(result.excerpt) <= 700
    assert "\n" not in result.excerpt
    if row.ask is None:
        assert result.kind == row.check.key
        assert result.expected
        assert result.scope
        assert result.found or result.error
    # As the record keeps it, it says the same.
    kept = json.loads(row.check.model_dump_json(by_alias=True, exclude_unset=True))
    assert replace(row, check=Check.model_validate(kept)).result() == result


def test_the_tables_cover_every_check_each_way() -> None:
    seen = Counter((row.check.key, row.passes) for row in ROWS)

    thin = [
        (key, passes) for key in CHECK_FIELDS for passes in (True, False) if not seen[key, passes]
    ]
    assert thin == []
