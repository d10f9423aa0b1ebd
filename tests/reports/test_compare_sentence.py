"""The one sentence that two runs come to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from skillup.history.comparison import compare_runs
from skillup.history.runs import CaseKey
from skillup.reports.comparison import comparison_json, edited_in_a_sentence, in_a_sentence
from tests.support.outcomes import Cases, a_key, a_run

Cost = float | None
FAR = "as far as 1 case can tell"


def sentence(a: Cases, b: Cases, cost: tuple[Cost, Cost] = (None, None)) -> str:
    """What the two come to."""
    earlier, later = a_run("a", a, cost=cost[0]), a_run("b", b, cost=cost[1])
    return in_a_sentence(compare_runs(earlier, later, 0.95))


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("pppp", "ffff", "1 case got worse surely (x); "),
        ("p", "f", "1 case got worse as observed, not surely (x); "),
        ("pp", "ff", "1 case got worse as observed, not surely (x); "),
        (
            "pppp",
            "ppff",
            f"No case surely got worse, {FAR}; 1 passed less often (may be chance); ",
        ),
        ("pp", "pp", "No case got worse, as far as 1 case can tell; "),
        ("ff", "ff", "No case got worse, as far as 1 case can tell; "),
        ("ffff", "pppp", "No case got worse, as far as 1 case can tell; 1 got better (surely); "),
        ("ppp", "eee", "Cannot tell what got worse: no case has a verdict in both runs; "),
    ],
)
def test_it_says_no_more_than_is_sure(a: str, b: str, said: str) -> None:
    assert sentence({"x": a}, {"x": b}).startswith(said + "what the agent cost in B is not known; ")


def test_many_small_losses_are_told_together() -> None:
    before: dict[str | CaseKey, str] = {f"c{n}": "ppp" for n in range(9)}
    text = sentence(before, dict.fromkeys(before, "ppf"))
    assert "9 passed less often (each may be chance); all together passed less often by" in text


def test_a_lower_score_under_the_same_verdict_is_something() -> None:
    a, b = a_run("a", {"x": "p"}), a_run("b", {"x": "p"})
    b = replace(b, trials=tuple(replace(trial, score=0.7) for trial in b.trials))
    text = in_a_sentence(compare_runs(a, b, 0.95))
    assert text.startswith("No case passes less often, as far as 1 case can tell; 1 scored lower")


def test_sure_and_observed_are_told_apart_with_the_engine_where_there_are_several() -> None:
    other = a_key("x", engine="other")
    text = sentence({"x": "pppp", other: "p"}, {"x": "ffff", other: "f"})
    assert text.startswith(
        "1 case got worse surely (x on scripted); 1 as observed, not surely (x on other); "
    )


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ((1.0, 1.25), "; the agent cost $2.50 in B, +25% a trial; "),
        ((None, 1.25), "; the agent cost $2.50 in B; "),
        ((1.0, None), "; what the agent cost in B is not known; "),
    ],
)
def test_the_cost_is_told_or_that_it_is_not(cost: tuple[Cost, Cost], said: str) -> None:
    assert said in sentence({"x": "pp"}, {"x": "pp"}, cost)


def test_what_was_not_run_is_told_of_the_baseline_too() -> None:
    bare = a_key("x", variant="without_skill")
    assert sentence({"x": "p", bare: "f"}, {"x": "p", bare: "f"}).endswith("; all of B was run.")
    text = sentence({"x": "p", bare: "f"}, {"x": "p", bare: "en"})
    assert text.endswith("; 2 trials were not run.")
    text = sentence({"x": "p", "y": "p", "z": "e", "w": "p"}, {"x": "p", "y": "s", "z": "p"})
    assert text.endswith(
        "; 1 case of B has no verdict in A; 1 case of A is not in B; 1 trial was skipped."
    )


def test_what_fails_and_has_nothing_to_be_compared_with_is_told() -> None:
    text = sentence({"x": "p", "y": "e"}, {"x": "p", "y": "f", "new": "f", "other": "p"})
    assert "; 1 case of B has no verdict in A (1 failed); 2 cases of B are not in A (1 fai" in text


def test_a_baseline_that_fails_is_nothing_that_got_worse() -> None:
    bare = a_key("x", variant="without_skill")
    text = sentence({"x": "p", bare: "p"}, {"x": "p", bare: "f"})
    assert text.startswith("No case got worse, as far as 1 case can tell; ")


def test_cases_that_were_edited_are_told() -> None:
    x, y = ("demo", "x"), ("demo", "y")
    a = replace(a_run("a", {"x": "p", "y": "p", "z": "p"}), digests={x: "1", y: "1"})
    b = replace(a_run("b", {"x": "f", "y": "p", "z": "p"}), digests={x: "2", y: "1", ("", "z"): ""})
    found = compare_runs(a, b, 0.95)
    assert edited_in_a_sentence(found) == "1 case was edited between the two runs: x"
    data = json.loads(comparison_json(found, []))
    assert data["edited_cases"] == [{"suite": "demo", "case_id": "x"}]
    assert data["summary"] == in_a_sentence(found)
    assert edited_in_a_sentence(compare_runs(a, a, 0.95)) == ""
