"""Cases × profiles × variants × trials, in an order that dependencies allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.errors import UsageError
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.load.yaml_reader import parse_yaml
from skillup.plan import Plan, Selection, make_plan
from skillup.schema.case import Case
from skillup.schema.profile import Profile
from skillup.schema.suite import Suite

ONE = (Profile(name="p", engine="scripted"),)


def suite(name: str, **cases: dict[str, Any]) -> LoadedSuite:
    """A suite at ``NAME/eval.yaml``; `cases` are what their files hold besides `id` and `input`."""
    loaded = []
    for case_id, more in cases.items():
        data = {"id": case_id, "input": {"prompt": "x"}, **more}
        document = parse_yaml("{}", Path(name, f"{case_id}.yaml"))
        loaded.append(LoadedCase(Case.model_validate(data), document))
    document = parse_yaml("{}", Path(name, "eval.yaml"))
    return LoadedSuite(name.rpartition("/")[2], Suite(), document, Path(name), tuple(loaded))


def plan(*suites: LoadedSuite, profiles: tuple[Profile, ...] = ONE, **selection: Any) -> Plan:
    by_suite = {str(one.path): profiles for one in suites}
    return make_plan(suites, by_suite, Selection(**selection))


def ids(made: Plan) -> list[str]:
    return [job.id for job in made.jobs]


def cases(made: Plan) -> list[str]:
    return [job.id.rsplit("/", 3)[0] for job in made.jobs]


def test_a_job_for_each_case_profile_variant_and_trial() -> None:
    made = plan(
        suite("s", a={}, b={"trials": 2}),
        profiles=(ONE[0], Profile(name="q", engine="codex")),
        variants=("with_skill", "without_skill"),
    )
    assert ids(made) == [
        f"{case}/{profile}/{variant}/{trial}"
        for case, trials in (("a", [1]), ("b", [1, 2]))
        for profile in ("p", "q")
        for variant in ("with_skill", "without_skill")
        for trial in trials
    ]
    assert len(plan(suite("s", a={"trials": 5}, b={}), trials=2).jobs) == 4, "trials outrank"


def test_a_case_comes_after_what_it_depends_on_and_else_as_written() -> None:
    made = plan(
        suite("s", z={}, c={"depends_on": ["b", "a"]}, y={}, b={"depends_on": ["a"]}, a={}, x={})
    )
    assert cases(made) == ["z", "a", "b", "c", "y", "x"]


@pytest.mark.parametrize(("first", "needed"), [(1, [1, 1, 1]), (2, [1, 2, 2]), (4, [1, 2, 3])])
def test_a_dependency_is_on_the_same_profile_variant_and_trial(
    first: int, needed: list[int]
) -> None:
    """V15: of a case held less often it is the last trial; nothing waits for one never planned."""
    made = plan(
        suite("s", a={"trials": first}, b={"depends_on": ["a"], "trials": 3}),
        profiles=(ONE[0], Profile(name="q", engine="codex")),
        variants=("with_skill", "without_skill"),
    )
    found = {job.id: job.depends_on for job in made.jobs if job.depends_on}
    sides = ["p/with_skill", "p/without_skill", "q/with_skill", "q/without_skill"]
    assert found == {
        f"b/{side}/{n}": (f"a/{side}/{trial}",)
        for side in sides
        for n, trial in enumerate(needed, start=1)
    }


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ({}, ["ab", "ac", "bc"]),
        ({"case_globs": ("a*",)}, ["ab", "ac"]),
        ({"case_globs": ("ab", "b?")}, ["ab", "bc"]),
        ({"case_globs": ("A*",)}, []),
        ({"tags": ("t",)}, ["ab", "bc"]),
        ({"tags": ("t", "u")}, ["ab", "ac", "bc"]),
        ({"case_globs": ("*c",), "tags": ("t",)}, ["bc"]),
        ({"tags": ("none",)}, []),
    ],
)
def test_cases_are_chosen_by_any_of_the_globs_and_any_of_the_tags(
    selection: dict[str, Any], chosen: list[str]
) -> None:
    made = plan(suite("s", ab={"tags": ["t"]}, ac={"tags": ["u"]}, bc={"tags": ["t"]}), **selection)
    assert cases(made) == chosen


def test_a_case_that_is_chosen_alone_does_not_wait_for_what_is_not() -> None:
    made = plan(suite("s", a={}, b={"depends_on": ["a"]}), case_globs=("b",))
    assert [(job.id, job.depends_on) for job in made.jobs] == [("b/p/with_skill/1", ())]


def test_ids_that_several_suites_use_are_told_apart_by_the_suite() -> None:
    made = plan(
        suite("one", a={}, b={"depends_on": ["a"]}), suite("two", a={}, c={"depends_on": ["a"]})
    )
    assert cases(made) == ["one.a", "b", "two.a", "c"]
    needs = {job.id: job.depends_on for job in made.jobs}
    assert needs["b/p/with_skill/1"] == ("one.a/p/with_skill/1",)
    assert needs["c/p/with_skill/1"] == ("two.a/p/with_skill/1",)


@pytest.mark.parametrize(
    "suites",
    [
        [suite("x/same", a={}), suite("y/same", a={})],
        [suite("one", a={}), suite("two", **{"a": {}, "one.a": {}})],
        [suite("x/Same", a={}), suite("y/same", a={})],
    ],
)
def test_two_cases_of_one_name_are_refused(suites: list[LoadedSuite]) -> None:
    with pytest.raises(UsageError, match="two cases of the run would be called"):
        plan(*suites)


def test_to_share_turns_among_the_trials_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no case is run more than once"):
        plan(suite("s", a=turns("x", "y")), trials_from_turn=2)
    assert plan(suite("s", a={**turns("x", "y"), "trials": 2}, b=turns("x", "y")),
                trials_from_turn=2).jobs  # fmt: skip


def turns(*messages: str) -> dict[str, Any]:
    return {"input": {"turns": list(messages)}}


@pytest.mark.parametrize(("first", "families"), [(1, 0), (2, 2), (3, 2)])
def test_trials_of_a_case_are_a_family_if_they_share_turns(first: int, families: int) -> None:
    made = plan(
        suite("s", a=turns("x", "y", "z")),
        trials=2,
        trials_from_turn=first,
        variants=("with_skill", "without_skill"),
    )
    assert len({job.family for job in made.jobs} - {""}) == families
    shared = [job.steps[: first - 1] for job in made.jobs if job.family]
    assert all(steps == shared[0] for steps in shared)
    if families:
        assert len({job.steps[first - 1] for job in made.jobs}) == 2


@pytest.mark.parametrize(
    "given",
    [
        turns("x", "y"),
        {"input": {"prompt": "x"}},
        {"input": {"conversation": {"max_turns": 9, "persona": {"objective": "x"}}}},
    ],
)
def test_trials_cannot_begin_at_a_turn_that_a_case_has_not(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--trials-from-turn 3: b has no such turn"):
        plan(suite("s", a=turns("x", "y", "z"), b=given), trials=2, trials_from_turn=3)
    plan(suite("s", b=given), trials=2, trials_from_turn=1)


def test_a_conversation_that_is_only_judged_has_no_turn_to_begin_at() -> None:
    given = {"input": {"transcript": [{"role": "user", "content": "x"}]}}
    made = plan(suite("s", a=given), trials=2, trials_from_turn=2)
    assert [job.family for job in made.jobs] == ["", ""]


def test_too_many_trials_are_refused_by_what_is_selected() -> None:
    often = suite("s", a={"trials": 10_000}, b={})
    both = {"variants": ("with_skill", "without_skill")}
    engines = tuple(Profile(name=f"p{number}", engine="scripted") for number in range(11))
    with pytest.raises(UsageError, match="a run of more than 200,000 trials"):
        plan(often, profiles=engines, **both)
    assert len(plan(often, profiles=engines, case_globs=("b",), **both).jobs) == 22
