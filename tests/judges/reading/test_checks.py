"""Checks that a model reads: rubrics, several answers, qualities, likeness."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from skillup.judges.evaluate import UsageTracker
from skillup.judges.question import ModelQuestion
from skillup.schema.checks import Criterion
from skillup.schema.grade import CheckResult
from skillup.schema.record import HistoryItem
from tests.support.records import Recorded, call, make_record, make_turn
from tests.support.scripted_asker import ScriptedAsker, checks, read, verdicts

# Rubrics: criteria in one question, verdicts by id, weights, evidence, and what goes wrong.

HI = make_record("Hello.")
ONE = make_record(make_turn("I deleted 3 files, as you asked.", content="Delete the logs."))
TWO_CRITERIA = {"rubric": {"criteria": [{"id": "tone", "outcome": "Is friendly"}, "Is short"]}}


def outcome_of(result: CheckResult) -> str:
    word = "pass" if result.passed else "unknown" if result.unknown else "fail"
    return "error" if result.error else word


def test_a_bare_text_passes_with_the_judges_reason_and_quotation() -> None:
    asker = ScriptedAsker(verdicts(c1=("pass", "deleted 3 files")))
    (result,) = read(asker, checks("Says how many"), ONE, turn=1)
    assert (result.passed, result.score, result.kind) == (True, 1.0, "rubric")
    assert result.name == 'rubric "Says how many"'
    assert result.found == "c1 it is"
    assert result.excerpt == "turn 1 · answer: I deleted 3 files, as you asked."
    assert (result.children, result.notes, result.error) == ([], [], None)
    assert (result.votes, result.agreement, result.scope) == (None, None, "turn 1")
    (span,) = result.spans
    assert (span.turn, span.part, span.start, span.end) == (1, "response", 2, 17)


def test_all_criteria_of_a_turn_are_one_question() -> None:
    asker = ScriptedAsker(verdicts(c1="pass", c2="fail", c3="pass", c4="pass"))
    asked = checks("A", TWO_CRITERIA, {"expected_output": "3 files are gone"})
    usage = UsageTracker()
    results = read(asker, asked, ONE, turn=1, usage=usage)
    assert [result.passed for result in results] == [True, False, True]
    assert len(asker.questions) == 1
    assert "c1: A\nc2: Is friendly\nc3: Is short\nc4: The answer of turn 1 says" in asker.prompt
    assert "   | 3 files are gone" in asker.prompt
    assert "exactly one verdict for each of c1, c2, c3, c4," in asker.prompt
    judging = usage.judging
    assert judging is not None
    assert (judging.calls, judging.models, judging.cost_usd) == (1, ["test:judge"], 0.5)


@pytest.mark.parametrize(
    ("rows", "threshold", "said", "passed", "score"),
    [
        ([(3, False), (1, False)], 0.75, "pf", True, 0.75),
        ([(3, False), (1, False)], 0.76, "pf", False, 0.75),
        ([(3, False), (1, True)], 0.5, "pf", False, 0.0),
        ([(3, True), (1, False)], 0.5, "pf", True, 0.75),
        ([(0, False), (0, False)], 1.0, "ff", True, 1.0),
        ([(0.1, False), (0.2, False), (0.7, False)], 0.3, "ppf", True, 0.3),
    ],
)  # fmt: skip
def test_a_rubric_passes_by_its_weighted_share_and_its_required_criteria(
    rows: list[tuple[float, bool]], threshold: float, said: str, passed: bool, score: float
) -> None:
    criteria = [
        {"id": f"n{place}", "outcome": "x", "weight": weight, "required": required}
        for place, (weight, required) in enumerate(rows)
    ]
    words = {"p": "pass", "f": "fail"}
    asker = ScriptedAsker(verdicts(**{f"c{n}": words[w] for n, w in enumerate(said, start=1)}))
    rubric = {"rubric": {"criteria": criteria, "threshold": threshold}}
    (result,) = read(asker, checks(rubric), ONE, turn=1)
    assert (result.passed, result.score) == (passed, score)


@pytest.mark.parametrize("answer", ["", "\n", "\u200b"])
def test_of_an_agent_that_did_nothing_no_model_is_asked(answer: str) -> None:
    for turn in (1, None):
        asker = ScriptedAsker(verdicts(c1="pass"))
        (result,) = read(asker, checks("Deletes nothing"), make_record(answer), turn=turn)
        assert (result.passed, result.assertable, asker.questions) == (False, False, [])
    called = make_record(make_turn(answer, calls=[call("Bash")]))
    (result,) = read(ScriptedAsker(verdicts(c1="pass")), checks("Deletes nothing"), called, turn=1)
    assert result.passed


@pytest.mark.parametrize("given", [["c1"], ["c1", "c9"], ["c1", "c2", "c2"]])
def test_not_one_verdict_on_each_criterion_is_an_error(given: list[str]) -> None:
    said = {"verdicts": [verdicts(**{name: "pass"})["verdicts"][0] for name in given]}
    results = read(ScriptedAsker(said), checks("A", "B"), ONE, turn=1)
    assert [(result.passed, result.error is None) for result in results] == [(False, False)] * 2
    assert "each `id` of c1, c2 once, and no other" in (results[0].error or "")


@pytest.mark.parametrize("said", ["overloaded;\ntry later", {"verdicts": [{"id": "c1"}]}])
def test_a_judge_that_does_not_answer_is_an_error_and_no_verdict(said: object) -> None:
    asker = ScriptedAsker(said)  # type: ignore[arg-type]
    results = read(asker, checks("A", TWO_CRITERIA, {"expected_output": "x"}), ONE, turn=1)
    assert [result.passed for result in results] == [False] * 3
    assert all(result.error and "\n" not in result.error for result in results)
    assert all(result.found == "" for result in results)


# Scales: steps of the case's own, and what they count is not the model's to say.

TONE = [
    {"score": 0, "means": "rude"},
    {"score": 0.4, "means": "dry"},
    {"score": 1, "means": "kind"},
]


def steps(*taken: Any) -> dict[str, Any]:
    rows = [(f"c{n}", step) for n, step in enumerate(taken, start=1)]
    return {"steps": [{"id": i, "reason": "so", "quote": "Hello.", "step": s} for i, s in rows]}


@pytest.mark.parametrize(
    ("said", "min_score", "outcome", "score"),
    [
        ([2], 0.4, "pass", 0.4),
        ([2], None, "fail", 0.4),
        ([3], None, "pass", 1.0),
        ([1], 0.4, "fail", 0.0),
        ([None], 0.4, "unknown", 0.0),
        ([4], 0.4, "error", 0.0),
        ([0], 0.4, "error", 0.0),
        (["3"], 0.4, "error", 0.0),
        ([True], 0.4, "error", 0.0),
        ([3, 2, 1], 0.4, "pass", 0.466667),
        ([3, 3, None], 0.4, "pass", 1.0),
        ([3, 1, None], 0.4, "unknown", 0.0),
        ([1, 1, None], 0.4, "fail", 0.0),
        ([1], 0.0, "pass", 0.0),
        ([None], 0.0, "unknown", 0.0),
    ],
)
def test_a_step_counts_what_the_case_says(
    said: list[Any], min_score: float | None, outcome: str, score: float
) -> None:
    criterion = {"outcome": "The tone", "scale": TONE, "min_score": min_score}
    asker = ScriptedAsker([steps(one) for one in said])
    (result,) = read(
        asker, checks({"rubric": {"criteria": [criterion]}}), HI, turn=1, **repeat(len(said))
    )
    assert (outcome_of(result), result.score) == (outcome, score)
    assert "c1: The tone\n   1: rude\n   2: dry\n   3: kind\n" in asker.prompt
    assert "0.4" not in asker.prompt


def test_scales_and_plain_criteria_of_a_rubric_are_two_questions_and_one_result() -> None:
    def said(question: ModelQuestion) -> Any:
        plain = "verdicts" in question.form.model_fields
        return verdicts(c1="pass", c2="fail") if plain else steps(2)

    tone = {"id": "tone", "outcome": "The tone", "scale": TONE, "min_score": 0.4}
    asker = ScriptedAsker(said)
    criteria = [{"id": "a", "outcome": "A"}, tone, {"id": "b", "outcome": "B"}]
    rubric = {"rubric": {"criteria": criteria, "threshold": 0.6}}
    (result,) = read(asker, checks(rubric), HI, turn=1)
    assert len(asker.questions) == 2
    assert [(c.name, c.passed, c.score) for c in result.children] == [
        ("a", True, 1.0),
        ("tone", True, 0.4),
        ("b", False, 0.0),
    ]
    assert (result.passed, result.score) == (True, 0.466667)
    assert result.children[1].found == "so"


@pytest.mark.parametrize(
    ("scale", "min_score", "said"),
    [
        (TONE[::-1], None, "with growing scores"),
        (TONE[:1], None, "two steps or more"),
        ([TONE[0], {"score": 2, "means": "x"}], None, "less than or equal to 1"),
        (TONE, 0.5, "is no step's score"),
        ([], 0.5, "is no step's score"),
    ],
)
def test_a_scale_that_cannot_be_read_is_refused(scale: Any, min_score: Any, said: str) -> None:
    written = {"outcome": "x", "scale": scale, "min_score": min_score}
    with pytest.raises(ValidationError, match=said):
        Criterion.model_validate(written)


# `judge_model.repeat`: majorities, means, errors among the answers, and how all that is shown.

P, F, U = verdicts(c1="pass"), verdicts(c1="fail"), verdicts(c1="unknown")


def repeat(times: int) -> dict[str, Any]:
    return {"judge_model": {"model": "test:judge", "repeat": times}}


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([P, P, P], "pass"),
        ([P, F, P], "pass"),
        ([F, P, F], "fail"),
        ([P, F], "fail"),
        ([P, P, F, F], "fail"),
        ([P, P, "down"], "pass"),
        ([F, "down", F], "fail"),
        (["down", F], "fail"),
        ([P, F, "down"], "error"),
        (["down", "down", P], "error"),
        ([P, "down"], "error"),
        ([U], "unknown"),
        ([P, P, U], "pass"),
        ([P, U, U], "unknown"),
        ([P, U], "unknown"),
        ([F, U], "fail"),
        ([F, U, U], "unknown"),
        ([F, F, U], "fail"),
        ([P, F, U], "unknown"),
        ([P, F, U, U], "unknown"),
        ([P, U, "down"], "error"),
        ([U, U, "down"], "unknown"),
    ],
)
def test_the_majority_decides_a_tie_is_a_no_and_what_is_left_open_is_never_a_pass(
    said: list[Any], outcome: str
) -> None:
    for rows in (said, said[::-1]):
        asker = ScriptedAsker(rows)
        (result,) = read(asker, checks("A"), HI, turn=1, **repeat(len(said)))
        assert outcome_of(result) == outcome
        assert sorted(question.sample for question in asker.questions) == list(range(len(said)))
        assert len(said) == 1 or result.votes == [float(one is P) for one in rows if one in (P, F)]
        assert result.assertable != result.unknown
        assert result.error or result.found.startswith("the judge cannot tell: ") == result.unknown
        parts = ", ".join(result.notes)
        assert ("down" in parts) == ("down" in rows and len(rows) > 1)
        assert ("unknown" in parts) == (U in rows and len(rows) > 1)


@pytest.mark.parametrize(
    ("rows", "threshold", "said", "outcome"),
    [
        ([1, 1], 1.0, ("pass", "unknown"), "unknown"),
        ([1, 1], 1.0, ("fail", "unknown"), "fail"),
        ([1, 1], 0.5, ("pass", "unknown"), "pass"),
        ([1, 1], 0.5, ("fail", "unknown"), "unknown"),
        ([3, 1], 0.75, ("unknown", "fail"), "unknown"),
        ([1, 3], 0.75, ("unknown", "fail"), "fail"),
        ([1, 1], 0.0, ("fail", "unknown"), "pass"),
        ([1, 1], 0.0, ("unknown", "unknown"), "unknown"),
    ],
)
def test_a_rubric_is_open_where_what_nobody_knows_would_decide_it(
    rows: list[int], threshold: float, said: tuple[str, str], outcome: str
) -> None:
    criteria = [{"id": f"n{w}{n}", "outcome": "x", "weight": w} for n, w in enumerate(rows)]
    asker = ScriptedAsker(verdicts(c1=said[0], c2=said[1]))
    rubric = {"rubric": {"criteria": criteria, "threshold": threshold}}
    (result,) = read(asker, checks(rubric), ONE, turn=1)
    assert (outcome_of(result), result.assertable) == (outcome, outcome != "unknown")


def by_model(**answers: Any) -> ScriptedAsker:
    return ScriptedAsker(lambda question: answers[question.model.model])


@pytest.mark.parametrize(
    ("combine", "said", "outcome"),
    [
        (None, [P, P, F], "pass"),
        ("majority", [P, F, "down"], "error"),
        ("majority", [P, P, "down"], "pass"),
        ("unanimous", [P, P, P], "pass"),
        ("unanimous", [P, P, F], "fail"),
        ("unanimous", [P, F, "down"], "fail"),
        ("unanimous", [P, P, "down"], "error"),
        ("unanimous", [P, P, U], "unknown"),
    ],
)
def test_a_panel_of_models_decides_together_and_says_who_said_what(
    combine: str | None, said: list[Any], outcome: str
) -> None:
    asker = by_model(a=said[0], b=said[1], c=said[2])
    models = {"model": ["a", "b", "c"], "combine": combine}
    (result,) = read(asker, checks("A"), HI, turn=1, judge_model=models)
    assert outcome_of(result) == outcome
    words = [
        "pass" if one is P else "fail" if one is F else "unknown" if one is U else one
        for one in said
    ]
    told = "; ".join(f"{name}: {word}" for name, word in zip("abc", words, strict=True))
    assert result.notes[-1] == f"asked 3 times: {told}"
    assert {question.temperature for question in asker.questions} == {0.0}


@pytest.mark.parametrize(("combine", "score"), [("mean", 0.6), ("median", 0.8)])
def test_of_a_panels_scores_the_mean_or_the_median_counts(combine: str, score: float) -> None:
    scores = {"a": 0.1, "b": 0.8, "c": 0.9}
    said = {k: {"score": v, "reason": "so", "quote": "Hello."} for k, v in scores.items()}
    similar = {"similar": "x", "judge": {"model": ["a", "b", "c"], "combine": combine}}
    (result,) = read(by_model(**said), checks(similar), HI, turn=1)
    assert (result.score, result.passed) == (score, combine == "median")
    assert result.votes == list(scores.values())


def two_or_three(question: ModelQuestion) -> Any:
    said = verdicts(c1="pass", c2="fail", c3="pass")["verdicts"]
    return {"verdicts": said[: len(question.ids)]}


def test_each_check_is_read_by_its_own_model_unless_one_is_named_for_all() -> None:
    asked: list[Any] = [{"rubric": "A", "judge": "own"}, "B", {"rubric": "C", "judge": "own"}]
    for everywhere, models in ((False, ["own", "test:judge"]), (True, ["test:judge"])):
        asker = ScriptedAsker(two_or_three)
        model = {"model": "test:judge", "everywhere": everywhere}
        results = read(asker, checks(*asked), HI, turn=1, judge_model=model)
        assert sorted(question.model.model for question in asker.questions) == models
        assert [r.passed for r in results] == [True, not everywhere, everywhere]


def test_samples_are_drawn_at_a_temperature() -> None:
    for settings, temperature in (
        ({"repeat": 1}, 0.0),
        ({"repeat": 2}, 1.0),
        ({"repeat": 2, "temperature": 0.3}, 0.3),
        ({"repeat": 2, "temperature": 0}, 0.0),
    ):
        asker = ScriptedAsker(P)
        judge_model = {"model": "test:judge", **settings}
        (result,) = read(asker, checks("A"), HI, turn=1, judge_model=judge_model)
        assert {question.temperature for question in asker.questions} == {temperature}
        assert (f"sampled at temperature {temperature:g}" in result.notes) == bool(temperature)


def test_each_criterion_has_a_majority_and_tells_how_stable_it_is() -> None:
    said = [
        verdicts(c1="pass", c2="pass"),
        verdicts(c1="pass", c2="fail"),
        verdicts(c1="fail", c2="pass"),
    ]
    (result,) = read(ScriptedAsker(said), checks({"rubric": ["A", "B"]}), HI, turn=1, **repeat(3))
    assert (result.passed, result.votes) == (True, None)
    told = [child.notes[-1].partition(": ")[2] for child in result.children]
    assert told == ["pass; pass; fail", "pass; fail; pass"]
    assert [child.votes for child in result.children] == [[1, 1, 0], [1, 0, 1]]
    assert [child.agreement for child in result.children] == [0.666667, 0.666667]


def test_scores_are_a_mean_and_every_answer_counts() -> None:
    said = [{"reason": "close", "score": score} for score in (0.7, 0.9, 0.95)]
    asked = checks({"similar": {"to": "Hi", "threshold": 0.85}})
    (result,) = read(ScriptedAsker(said), asked, HI, turn=1, **repeat(3))
    assert (result.passed, result.score) == (True, 0.85)
    assert (result.votes, result.agreement) == ([0.7, 0.9, 0.95], 0.666667)
    assert result.notes[2:] == ["asked 3 times: 0.7; 0.9; 0.95"]
    (result,) = read(ScriptedAsker([*said[:2], "down"]), asked, HI, turn=1, **repeat(3))
    assert result.error == "down"


# Answer quality: aspects, steps, their mean.

FOUR = make_record(make_turn("It is 4.", content="How much is 2 and 2?"))


def grades(**by_aspect: int) -> dict[str, Any]:
    return {
        "steps": [
            {"id": aspect, "step": grade, "reason": f"{aspect}!", "quote": "It is 4"}
            for aspect, grade in by_aspect.items()
        ]
    }


def test_the_score_is_the_mean_of_the_steps_from_0_to_1() -> None:
    asker = ScriptedAsker(grades(correctness=5, completeness=4, flow=3, format=2))
    (result,) = read(
        asker, checks({"answer_quality": {"threshold": 0.6, "min_grade": 1}}), FOUR, turn=1
    )
    assert (result.passed, result.score) == (True, 0.625)
    assert [(c.name, c.score, c.passed) for c in result.children] == [
        ("correctness", 1.0, True),
        ("completeness", 0.75, True),
        ("flow", 0.5, False),
        ("format", 0.25, False),
    ]
    assert result.found == (
        "correctness 1.00, completeness 0.75, flow 0.50, format 0.25; format: format!"
    )
    assert result.children[0].excerpt == "turn 1 · answer: It is 4."
    wanted = {"threshold": 0.63, "min_grade": 1}
    (result,) = read(asker, checks({"answer_quality": wanted}), FOUR, turn=1)
    assert not result.passed


@pytest.mark.parametrize(
    ("given", "least", "passed"),
    [(1, None, False), (2, None, False), (3, None, True), (2, 2, True), (1, 2, False)],
)
def test_no_aspect_may_be_below_the_least_grade_however_good_the_others_are(
    given: int, least: int | None, passed: bool
) -> None:
    """J6: an answer that is wrong throughout passed for being complete, fluent and well formed."""
    asker = ScriptedAsker(grades(correctness=given, completeness=5, flow=5, format=5))
    wanted = {} if least is None else {"min_grade": least}
    (result,) = read(asker, checks({"answer_quality": wanted}), FOUR, turn=1)
    assert result.score >= 0.7
    assert result.passed is passed
    assert (f"; below grade {least or 3}" in result.found) is not passed


# Similarity, by a model's judgement.

TWO = make_record("Something else.", "How much do you want to raise?")
SIMILAR = {"similar": {"to": "What amount are you raising?"}}


@pytest.mark.parametrize(("score", "passed"), [(0.8, True), (0.79, False), (1, True), (0, False)])
def test_a_model_says_how_close_the_answer_is_and_sees_no_more(score: float, passed: bool) -> None:
    asker = ScriptedAsker({"reason": "same", "score": score, "quote": "how much"})
    (result,) = read(asker, checks(SIMILAR), TWO, turn=2)
    assert (result.passed, result.score) == (passed, score)
    assert result.found == f"{score:.2f}: same"
    assert result.excerpt == "turn 2 · answer: How much do you want to raise?"
    read(asker, checks(SIMILAR), TWO)  # of the whole conversation
    for prompt in (question.prompt for question in asker.questions):
        assert "   | What amount are you raising?" in prompt
        assert "turn 2 · answer" in prompt
        assert not [text for text in ("Something else.", "Go on.") if text in prompt]


# Relevance in sliding windows. The conversations are those of the metric's documentation, retold:
# a short one that stays on its subject, and ones with an answer off the subject.

OFF = "Lisbon is the capital of Portugal."


def talk(*pairs: tuple[str, str]) -> Recorded:
    return make_record(*(make_turn(answer, content=asked) for asked, answer in pairs))


SUMS = talk(
    ("How much is 2 and 2?", "2 and 2 make 4."),
    ("And 3 and 3?", OFF),
    ("And what do 5 and 5 make?", "5 and 5 make 10."),
)
WEDDING = talk(
    ("Help me plan our wedding", "With pleasure! What do you have in mind?"),
    ("A ceremony outdoors", "Lovely. Think of the season, and of rain."),
    ("And flowers?", "Shares in technology have fallen of late."),
    ("Wedding flowers, I mean", "Roses and peonies are much liked."),
)


def is_off(question: ModelQuestion) -> dict[str, Any]:
    """A judge that knows which answers are off the subject, and judges what it is told to judge."""
    target = re.search(r"answers? of (.*?)\.", question.prompt)
    assert target is not None
    texts = re.findall(r"(turn \d+) · answer \]-----\n(.*)", question.prompt)
    wrong = ("Lisbon", "Shares")
    off = [(n, text) for n, text in texts if n in target[1].split(", ") and text.startswith(wrong)]
    quote = off[0][1] if off else ""
    return {"relevant": not off, "reason": "off" if off else "fits", "quote": quote}


def relevance(**spec: Any) -> list[Any]:
    return checks({"relevance": spec})


@pytest.mark.parametrize(
    ("recorded", "spec", "windows", "score", "passed"),
    [
        (talk(("Which is France's capital?", "Paris."), ("Its people?", "2 million."),
              ("Any sights?", "The Louvre.")), {"threshold": 0.8}, 1, 1.0, True),
        (talk(*[(f"question {n}", f"answer {n}") for n in range(4)]),
         {"threshold": 0.9, "window_size": 3}, 2, 1.0, True),
        (SUMS, {"threshold": 0.8, "window_size": 2}, 2, 0.5, False),
        (SUMS, {"threshold": 0.5, "window_size": 2}, 2, 0.5, True),
        (SUMS, {"threshold": 0.6, "window_size": 1}, 3, 0.666667, True),
        (WEDDING, {}, 1, 0.0, False),
        (WEDDING, {"threshold": 0.6, "window_size": 2}, 3, 0.666667, True),
    ],
)  # fmt: skip
def test_the_score_is_the_share_of_relevant_windows(
    recorded: Recorded, spec: dict[str, Any], windows: int, score: float, passed: bool
) -> None:
    asker = ScriptedAsker(is_off)
    (result,) = read(asker, relevance(**spec), recorded)
    assert (result.score, result.passed, result.error) == (score, passed, None)
    assert len(asker.questions) == windows


def test_windows_are_children_with_turns_reason_and_quotation() -> None:
    """J2: a passing window had none, so judges who disagreed on it were not compared."""
    (result,) = read(ScriptedAsker(is_off), relevance(window_size=2), SUMS)
    assert [(c.name, c.passed, c.found, c.excerpt) for c in result.children] == [
        ("turns 1-2", False, "off", f"turn 2 · answer: {OFF}"),
        ("turns 2-3", True, "fits", ""),
    ]
    assert result.found == "1 of 2 windows are relevant; turns 1-2: off"
    assert result.excerpt == f"turn 2 · answer: {OFF}"
    assert [(span.turn, span.end) for span in result.spans] == [(2, len(OFF))]


def test_what_was_put_in_beforehand_is_context_and_is_not_judged() -> None:
    history = [
        HistoryItem(role="user", content="I like sums."),
        HistoryItem(role="assistant", content=OFF),
    ]
    recorded = make_record(*SUMS.record.turns, history=history)
    asker = ScriptedAsker(is_off)
    (result,) = read(asker, relevance(window_size=3), recorded)
    assert result.score == 0.5
    targets = [re.findall(r"Judge the agent's .*", q.prompt)[0] for q in asker.questions]
    assert targets == [
        "Judge the agent's answers of turn 1, turn 2. What stands before is context.",
        "Judge the agent's answer of turn 3. What stands before is context.",
    ]
    assert "earlier exchange 1 · answer" in asker.questions[0].prompt
