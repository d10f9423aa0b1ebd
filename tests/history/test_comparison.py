"""A run beside its reference: what became of each case, and which gates are met."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.history.comparison import Comparison, changes
from skillup.history.gates import check_gates, gates_by_suite, given_gates
from skillup.history.reference import Reference
from skillup.history.runs import About, RunOutcomes
from skillup.schema.past_runs import Change
from tests.support.outcomes import Cases, a_key, a_run, compared_with

STEADY = "p" * 10


def nights(*cases: Cases, **more: Any) -> list[RunOutcomes]:
    return [a_run(f"{number:02}", own, **more) for number, own in enumerate(cases, start=1)]


def compared(before: list[Cases], tonight: Cases, **more: Any) -> Comparison:
    return compared_with(nights(*before), a_run("tonight", tonight, **more))


@pytest.mark.parametrize(
    ("before", "tonight", "change"),
    [
        (STEADY, "ffff", "regressed"),
        ("pppf", "ppff", "fewer_passes"),
        ("p", "f", "fewer_passes"),
        ("f", "p", "more_passes"),
        ("p", "ppp", "same"),
        ("f", "f", "same"),
        ("p", "e", "not_run"),
        ("e", "f", "not_run"),
        ("p", "n", "not_run"),
        ("p", "s", "skipped"),
        ("s", "e", "not_run"),
        ("", "p", "only_in_b"),
        ("p", "", "only_in_a"),
        ("ppe", "epp", "same"),
    ],
)
def test_a_case_has_one_change(before: str, tonight: str, change: str) -> None:
    steady: Cases = {"other": "ppp"}
    found = compared(
        [{**steady, "case": before} if before else steady] * 3,
        {**steady, "case": tonight} if tonight else steady,
    )
    assert {case.key.case_id: case.change for case in found.cases} == {
        "case": change,
        "other": "same",
    }


def test_a_night_with_an_error_and_a_run_of_a_few_cases_hide_nothing() -> None:
    """Passed for nights, then an error, then a run without it, then it fails."""
    passed: Cases = {"one": STEADY, "two": "p"}
    found = compared(
        [passed, passed, {"one": "eee", "two": "p"}, {"two": "p"}], {"one": "ffff", "two": "p"}
    )
    assert [(case.change, case.a.judged, case.a.errors) for case in found.cases] == [
        ("regressed", 20, 3),
        ("same", 4, 0),
    ]


def test_a_case_that_was_accepted_as_in_this_run_did_not_change() -> None:
    before, tonight = nights({"x": STEADY, "y": STEADY}), a_run("b", {"x": "fff", "y": "fff"})
    found = Comparison(Reference(tuple(before), "", {a_key("x"): "b"}), tonight)
    assert [case.change for case in found.cases] == ["same", "regressed"]


def test_what_changed_before_a_case_got_worse_is_told_as_long_as_it_is_red() -> None:
    marks: list[Cases] = [{"x": own, "y": "pp"} for own in (STEADY, "ffff", "fff", STEADY, STEADY)]
    models = ["sonnet-1", *["sonnet-2"] * 4]
    runs = [
        replace(run, about=About(models={"claude": model}))
        for run, model in zip(nights(*marks), models, strict=True)
    ]
    told = []
    for night in range(1, 5):
        found = compared_with(runs[:night], runs[night])
        told.append((found.base.run_id, [one.before for one in found.changed]))
    red = ("01", ["sonnet-1"])
    assert told == [red, red, ("03", []), ("04", [])]


# Gates: what they count, what they cannot tell, and who says what they are.


def failed(before: list[Cases], tonight: Cases, **given: Any) -> dict[str, str]:
    """By gate that is not met, what was found; `cost` and `quarantined` are of tonight."""
    more = {name: given.pop(name) for name in ("cost", "quarantined") if name in given}
    b = a_run("tonight", tonight, cost=more.get("cost"))
    b = replace(b, quarantined=more.get("quarantined", ()))
    found = compared_with(nights(*before, cost=0.1), b)
    results = check_gates(found, gates_by_suite(b, given))
    return {result.gate: result.finding for result in results if not result.passed}


EASY = {"max_not_run": None, "max_errors": None, "max_new_failures": None}
QUIET: Cases = {"x": STEADY, "y": STEADY}
MANY: Cases = {f"case-{number}": "p" * 5 for number in range(12)}


@pytest.mark.parametrize(
    ("before", "tonight", "given", "expected"),
    [
        ([QUIET], QUIET, {}, {}),
        ([QUIET], {"x": "ffff", "y": "pppp"}, {}, {"max_new_failures": "1 regressed"}),
        ([QUIET], {"x": "ffff", "y": "pppp"}, {"max_new_failures": 1}, {}),
        ([QUIET], {"x": "ffff", "y": "pppp"}, {"max_new_failures": None}, {}),
        ([QUIET], {"x": "pppf", "y": "pppp"}, {}, {}),
        ([QUIET], {"x": "pppe", "y": "pppp"}, {}, {"max_errors": "1 trials with an ERROR"}),
        ([QUIET], {"x": "pppe", "y": "pppp"}, {"max_errors": 1}, {}),
        (
            [QUIET],
            {"x": "pppe", "y": "pppp"},
            {"max_errors": 1, "per_case": {"max_errors": 0}},
            {"per_case.max_errors": "1 trials with an ERROR in a case"},
        ),
        ([QUIET], {"x": "pppn", "y": "nnnn"}, {}, {"max_not_run": "5 trials not run"}),
        ([QUIET], {"x": "ssss", "y": "pppp"}, {}, {"max_not_run": "4 trials not run"}),
        ([{**QUIET, "x": "s"}], {"x": "ssss", "y": "pppp"}, {}, {}),
        ([QUIET], {"x": "s", "y": "e"}, EASY, {"min_passes": "no case passed"}),
        ([QUIET], {**QUIET, a_key("z", suite="new"): "f"}, EASY, {"min_passes": "no case passed"}),
        ([], {"x": "fff", "y": "p"}, {}, {}),
        ([], {"x": "fff", "y": "f"}, {}, {"min_passes": "no case passed"}),
        ([], {"x": "ef", "y": "p"}, {}, {"max_errors": "1 trials with an ERROR"}),
        ([{"x": "f"}], {"x": "f"}, {"max_new_failures": None}, {"min_passes": "no case passed"}),
        # Each case counts the same in the pass rate, however often it ran.
        (
            [],
            {"x": "p" * 30, "y": "ff"},
            {"min_pass_rate": 0.6},
            {"min_pass_rate": "50.00% passed"},
        ),
        ([], {"x": "p" * 9 + "f"}, {"min_pass_rate": 0.9}, {}),
        # A gate that is not met never says that its limit was reached.
        ([], {"x": "p" * 2999 + "f"}, {"min_pass_rate": 1.0}, {"min_pass_rate": "99.97% passed"}),
        (
            [],
            {"x": "p" * 8999 + "f" * 1001},
            {"min_pass_rate": 0.9},
            {"min_pass_rate": "89.99% passed"},
        ),
    ],
)
def test_gates(
    before: list[Cases], tonight: Cases, given: dict[str, Any], expected: dict[str, str]
) -> None:
    assert failed(before, tonight, **given) == expected


@pytest.mark.parametrize(("cost", "fails"), [(0.12, False), (0.121, True), (None, True)])
def test_a_cost_that_is_not_known_does_not_meet_its_gate(
    cost: float | None, *, fails: bool
) -> None:
    found = failed([QUIET], QUIET, cost=cost, max_cost_increase=0.2)
    assert list(found) == ["max_cost_increase"] * fails


def test_quarantine_runs_and_reports_and_fails_no_gate() -> None:
    before: list[Cases] = [QUIET] * 3
    tonight: Cases = {"x": "ffee", "y": "pppp"}
    assert set(failed(before, tonight)) == {"max_errors", "max_new_failures"}
    assert failed(before, tonight, quarantined=("demo/x",)) == {}
    b = replace(a_run("b", {"x": "ffff", "y": "pppp"}), quarantined=("demo/x",))
    found = compared_with(nights(*before), b)
    assert [(case.change, case.quarantined) for case in found.cases] == [
        ("fewer_passes", True),
        ("same", False),
    ]
    assert found.assessment.statements == ()


def test_without_the_skill_a_case_is_listed_and_is_no_regression() -> None:
    bare = a_key("x", variant="without_skill")
    before: list[Cases] = [{"x": STEADY, bare: STEADY}]
    tonight: Cases = {"x": "pppp", bare: "ffff"}
    assert failed(before, tonight, min_pass_rate=1.0) == {}
    found = compared(before, tonight)
    assert [case.change for case in found.cases] == ["same", "fewer_passes"]
    assert len(found.counted) == 1


def test_gates_are_those_that_the_run_recorded_and_the_command_line_outranks_them() -> None:
    own = {"max_errors": 3, "per_case": {"max_errors": 2}}
    run = a_run("b", {"x": "p"}, gates=own)
    gates = gates_by_suite(run, given_gates(["per_case.max_time_increase=.5", "max_not_run=null"]))
    assert gates["demo"].model_dump(exclude_defaults=True) == {
        "max_errors": 3,
        "max_not_run": None,
        "per_case": {"max_errors": 2, "max_time_increase": 0.5},
    }


@pytest.mark.parametrize(
    "rule",
    ["max_errors", "nothing=1", "per_case=1", "min_pass_rate=2", "max_errors=0.5", "confidence=x"],
)
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(UsageError, match="--gate"):
        given_gates([rule])


@pytest.mark.parametrize("confidence", ["0.9999999999999999", "1", "1.0", "-0.1"])
def test_a_confidence_that_nothing_can_have_is_refused_with_what_can_be(confidence: str) -> None:
    with pytest.raises(UsageError, match=r"confidence=.*equal to 0(\.999999999)?$"):
        given_gates([f"confidence={confidence}"])


def test_nights_without_most_of_the_cases_are_red_until_somebody_accepts_that() -> None:
    kept: Cases = dict(list(MANY.items())[:5])
    runs = [replace(own, selection_key="same") for own in nights(MANY, kept, kept)]
    gone = [a_key(str(case)) for case in MANY.keys() - kept.keys()]

    def found(b: RunOutcomes, *, accepted: str = "") -> list[str]:
        reference = Reference(tuple(runs), "", dict.fromkeys(gone, accepted) if accepted else {})
        results = check_gates(Comparison(reference, b), gates_by_suite(b, {}))
        return [f"{one.gate}: {one.finding}" for one in results if not one.passed]

    b = replace(a_run("b", kept), selection_key="same")
    (words,) = found(b)
    assert words.startswith("min_cases: 7 of 12 cases on scripted are gone: case-10, case-11, ")
    assert found(b, accepted="01"), "then it had them"
    for accepted in ("02", "b"):
        assert not found(b, accepted=accepted)
    assert not found(replace(b, selection_key="other"))


def test_a_slower_suite_is_no_fall() -> None:
    slow = a_run("b", MANY)
    slow = replace(slow, trials=tuple(own._replace(duration_ms=9000) for own in slow.trials))
    found = compared_with(nights(*[MANY] * 12), slow)
    assert [one.kind for one in found.of_suites] == ["slower"]
    (fall,) = (r for r in check_gates(found, gates_by_suite(slow, {})) if r.gate == "max_fall")
    assert (fall.found, fall.finding) == (0.0, "no significant fall")


# What two runs used that was not the same.

BEFORE = About(
    branch="main",
    commit="0123456789abcdef",
    repository="github.com/o/r",
    host="one",
    skillup_version="1",
    models={"claude": "sonnet-1", "codex": "gpt"},
    cli_versions={"claude": "2.0.1"},
    profiles={"claude": "p1"},
    skills={"greeter": "s1", "gone": "g"},
    skill_files={"greeter": {"SKILL.md": "a", "old.md": "b", "same.md": "c"}, "gone": {"x": "y"}},
    cases={"demo/x": "1", "demo/y": "1", "demo/w": "1"},
)
AFTER = replace(
    BEFORE,
    branch="other",
    dirty=True,
    host="two",
    skillup_version="2",
    models={"claude": "sonnet-2", "new": "m"},
    cli_versions={"claude": "2.0.2"},
    profiles={"claude": "p2"},
    skills={"greeter": "s2"},
    skill_files={"greeter": {"SKILL.md": "A", "new.md": "b", "same.md": "c"}},
    cases={"demo/x": "2", "demo/w": "1", "demo/z": "1"},
)


def changed(a: About, b: About, asked: str = "same") -> list[Change]:
    runs = [replace(a_run("r", {}), about=about, selection_key="same") for about in (a, b)]
    return list(changes(runs[0], replace(runs[1], selection_key=asked)))


def test_all_that_differs_is_named_what_explains_most_first() -> None:
    found = changed(BEFORE, AFTER)
    assert [(one.kind, one.name, one.before, one.after) for one in found] == [
        ("model", "claude", "sonnet-1", "sonnet-2"),
        ("cli", "claude", "2.0.1", "2.0.2"),
        ("skill", "gone", "g", ""),
        ("skill", "greeter", "s1", "s2"),
        ("case", "demo/x", "1", "2"),
        ("case", "demo/y", "1", ""),
        ("case", "demo/z", "", "1"),
        ("profile", "claude", "p1", "p2"),
        ("skillup", "", "1", "2"),
        ("host", "", "one", "two"),
        ("commit", "", "0123456789ab", "0123456789ab with uncommitted changes"),
    ]
    assert [one.files for one in found if one.files] == [["SKILL.md", "new.md", "old.md"]]


def test_what_is_the_same_or_not_known_is_no_change() -> None:
    assert not [*changed(BEFORE, BEFORE), *changed(About(), AFTER), *changed(AFTER, About())]
    # A run that was asked for other cases has lost none.
    cases = [one.name for one in changed(BEFORE, AFTER, "other") if one.kind == "case"]
    assert cases == ["demo/x"]
