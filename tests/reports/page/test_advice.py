"""The advice on the page is that of the documentation."""

from __future__ import annotations

import re
import typing

from skillup.reports.result import ADVICE, error_data
from skillup.schema.record import ErrorKind, TurnError
from tests.docs.blocks import PAGES, tables_of

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def test_every_kind_has_the_advice_of_its_page() -> None:
    page = next(page for page in PAGES if page.name == "errors.md")
    table = next(t for t in tables_of(page) if t.marker.action == "kinds")
    told = {kind.strip("`"): _LINK.sub(r"\1", what) for kind, _, what in table.rows}
    assert told == ADVICE
    assert set(ADVICE) == set(typing.get_args(ErrorKind))


def test_errors_of_records_and_of_grades_look_alike() -> None:
    error = TurnError(kind="network", message="m", evidence="e")
    expected = {
        "kind": "network",
        "message": "m",
        "evidence": "e",
        "advice": "check `base_url` and the network",
    }
    assert error_data(error) == error_data(error.model_dump()) == expected
    assert error_data(None) is None
    unknown = error_data({"kind": "of a later version", "message": "m"})
    assert unknown is not None
    assert unknown["advice"] == ""
