"""Messages in pieces: what came out of which variable."""

from __future__ import annotations

from skillup.reports.html.evidence import content_parts, prompt_of
from skillup.schema.checks import Check
from tests.support.records import make_record, make_turn


def _parts(template: str | None, content: str, **values: str) -> list[tuple[str, str | None]]:
    return [(p["text"], p["variable"]) for p in content_parts(template, content, values)]


def test_a_message_is_taken_apart_where_values_were_filled_in() -> None:
    assert _parts("a <<x>>{{y}} b", "a 1{{y}} b", x="1") == [
        ("a ", None),
        ("1", "x"),
        ("{{y}} b", None),
    ]
    assert _parts("<<x>><<x>>", "11", x="1") == [("1", "x"), ("1", "x")]
    assert _parts("\\<<x>> <<x>>", "<<x>> 1", x="1") == [("<<x>> ", None), ("1", "x")]


def test_what_the_template_does_not_give_stays_whole() -> None:
    assert _parts(None, "a") == [("a", None)]
    assert _parts("<<x>>", "***KEY***", x="secret") == [("***KEY***", None)]
    assert _parts("<<x>>", "<<x>>") == [("<<x>>", None)]
    assert _parts("", "") == [("", None)]


def test_a_value_that_is_taken_anew_counts_from_the_turn_after() -> None:
    record = make_record(
        make_turn(captures={"x": "1"}),
        make_turn(captures={"x": "2"}),
        make_turn(),
        initial_variables={"x": "0", "z": "8"},
    ).record
    assert [record.variables_after(n)["x"] for n in (0, 1, 2)] == ["0", "1", "2"]
    assert record.variables_after(None) == {"x": "2", "z": "8"}


def test_the_prompt_of_a_follow_up_is_found_by_its_place() -> None:
    inner = Check(prompt="inner", assertions=[Check(contains="x")])
    checks = [Check(contains="x"), Check(prompt="outer", assertions=[inner])]
    assert prompt_of(checks, [1]) == "outer"
    assert prompt_of(checks, [1, 0]) == "inner"
    assert prompt_of(checks, [5]) is None
    assert prompt_of(checks, []) is None
