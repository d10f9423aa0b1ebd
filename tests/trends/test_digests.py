"""Which cases were edited between two runs."""

from __future__ import annotations

from dataclasses import replace

from skillup.history.comparison import digests_of, edited_cases
from tests.support.outcomes import a_run

SUITES = {"demo": {"cases": {"x": "x", "y~2": "y"}}}


def test_digests_are_by_suite_and_case_whatever_jobs_call_it() -> None:
    info = {"suites": SUITES, "case_digests": {"x": "1", "y~2": "2"}}
    assert digests_of(info, ()) == {("demo", "x"): "1", ("demo", "y"): "2"}


def test_what_was_held_in_two_forms_or_by_an_older_version_has_none() -> None:
    assert digests_of({"suites": SUITES, "case_digests": {"x": None}}, ()) == {}
    assert digests_of({"suites": SUITES}, ()) == {}


def test_only_what_both_runs_tell_differently_was_edited() -> None:
    x, y, z = ("demo", "x"), ("demo", "y"), ("demo", "z")
    a = replace(a_run("a", {"x": "p", "y": "p", "z": "p"}), digests={x: "1", y: "1", z: "1"})
    b = replace(a_run("b", {"x": "p", "y": "p"}), digests={x: "2", y: "1", z: "2"})
    assert edited_cases(a, b) == [x]
    assert edited_cases(a, replace(b, digests={})) == []
