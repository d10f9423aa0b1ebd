"""The checks that a model reads: each is a prompt, a form of answer, and votes on facets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, count
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from skillup.checks.context import is_said, one_line
from skillup.checks.evaluate import reaches
from skillup.judges.evaluate import JudgeRequest, UsageTracker, gather
from skillup.judges.material import Exchange, material
from skillup.judges.question import PROMPTS, AnswerForm, AskModel, Number, Reason
from skillup.judges.reading import QUOTE, REASON, Answers, JudgePrompt, Reading, indented
from skillup.judges.voting import Vote, by_weight, criteria_met, result_of
from skillup.load.model import model_for
from skillup.schema.checks import Aspect, Check, Criterion
from skillup.schema.grade import CheckResult

# Rubrics and expected outputs: criteria that the model finds met or not.

Verdict = Literal["pass", "fail", "unknown"]
_VERDICTS: dict[Verdict, bool | None] = {"pass": True, "fail": False, "unknown": None}


class CriterionVerdict(AnswerForm):
    """The verdict on one criterion."""

    id: str = Field(description="The criterion's id, such as c1.")
    reason: Reason = Field(description=REASON)
    quote: str = Field("", description=QUOTE)
    verdict: Verdict = Field(description="Whether the criterion is met.")


class RubricAnswer(AnswerForm):
    """One verdict for each criterion."""

    verdicts: list[CriterionVerdict] = Field(description="One for each criterion, in order.")


@lru_cache
def scale_form(steps: int) -> type[AnswerForm]:
    """The form of one step for each criterion or aspect, out of so many."""
    taken: Any = Annotated[Literal[tuple(range(1, steps + 1))], Number] | None
    one = create_model(
        "CriterionStep",
        __base__=AnswerForm,
        id=(str, Field(description="The criterion's id, such as c1.")),
        reason=(Reason, Field(description=REASON)),
        quote=(str, Field("", description=QUOTE)),
        step=(taken, Field(description="The number of the step; null: unknown.")),
    )
    return create_model("ScaleAnswer", __base__=AnswerForm, steps=(list[one], ...))


async def read_criteria(checks: Sequence[Check], reading: Reading) -> list[CheckResult]:
    """A result for each of `checks`; criteria with as many steps (0: yes or no) are one question.

    A `prompt` comes alone.
    """
    criteria = [_criteria_of(check, reading) for check in checks]
    forms: dict[int, list[Criterion]] = {}
    for criterion in chain.from_iterable(criteria):
        forms.setdefault(len(criterion.scale), []).append(criterion)
    asked = await gather(partial(_ask, checks, reading, forms), forms)
    answers = dict(zip(forms, asked, strict=True))
    names = {steps: map("c{}".format, count(1)) for steps in forms}
    results = []
    for check, own in zip(checks, criteria, strict=True):
        used = [answers[steps] for steps in dict.fromkeys(len(one.scale) for one in own)]
        blank = reading.blank(check, *used)
        is_flat = len(own) == 1 and own[0].id is None  # A child would only say everything twice
        parts = []
        for criterion in own:
            scores = [step.score for step in criterion.scale]
            least = scores[-1] if scores and criterion.min_score is None else criterion.min_score
            vote = _vote_on(next(names[len(scores)]), scores, least or 0.0)
            title, outcome = criterion.id or one_line(criterion.outcome.strip()), criterion.outcome
            about = {"weight": criterion.weight, "required": criterion.required}
            part = blank if is_flat else reading.part("criterion", title, expected=outcome, **about)
            parts.append(answers[len(scores)].result(part, vote, threshold=least))
        share = by_weight(check.rubric.threshold if check.rubric is not None else 1.0)
        if is_flat:
            results += parts
        else:
            results.append(result_of(blank, parts, share, criteria_met))
    return results


def _criteria_of(check: Check, reading: Reading) -> list[Criterion]:
    if check.rubric is not None:
        return check.rubric.criteria
    answer, reference = f"The answer of {reading.last.label}", check.expected_output or ""
    line = PROMPTS["same meaning"].format(answer=answer, reference=indented(reference))
    return [Criterion(outcome=line)]


async def _ask(
    checks: Sequence[Check], reading: Reading, forms: Mapping[int, list[Criterion]], steps: int
) -> Answers[Any]:
    """The answers about the criteria with so many steps."""
    lines: dict[str, str] = {}
    for criterion in forms[steps]:
        line = "\n   ".join(criterion.outcome.strip().splitlines())
        line += "".join(f"\n   {n}: {one.means}" for n, one in enumerate(criterion.scale, start=1))
        lines[f"c{len(lines) + 1}"] = line
    prompt = JudgePrompt(
        target=reading.target(),
        task=PROMPTS["scale task"] if steps else PROMPTS["rubric task"],
        answer=PROMPTS["scale answer"] if steps else PROMPTS["rubric answer"],
        ids=tuple(lines),
        criteria="\n".join(f"{name}: {line}" for name, line in lines.items()),
        own=checks[0].rubric.prompt if checks[0].rubric is not None else None,
    )
    form: type[Any] = scale_form(steps) if steps else RubricAnswer
    return await reading.ask(checks, prompt, form, criteria=tuple(lines.values()))


def _vote_on(name: str, scores: Sequence[float], least: float) -> Callable[[Any], Vote]:
    """The vote of an answer on `name`: by the `scores` of its steps, or else by its verdict."""

    def vote(answer: RubricAnswer) -> Vote:
        ((_, rows),) = answer
        found: Any = next(row for row in rows if row.id.strip().casefold() == name)
        if not scores:
            return Vote(_VERDICTS[found.verdict], found.reason, (found.quote,))
        if found.step is None:
            return Vote(None, found.reason, (found.quote,))
        score = scores[found.step - 1]  # the case's: the model knows the steps alone
        return Vote(reaches(score, least), found.reason, (found.quote,), score)

    return vote


# Answer quality: several aspects, each graded on a scale of five anchored steps.

_GRADES = (0, 0.25, 0.5, 0.75, 1)

_REFERENCE = """

A good answer would say this; hold correctness and completeness against it:
{reference}"""


async def read_quality(check: Check, reading: Reading) -> CheckResult:
    """The mean over the aspects of ``(grade - 1) / 4``."""
    spec, reference = check.answer_quality, reading.expected_output
    assert spec is not None
    aspects: list[Aspect] = list(dict.fromkeys(spec.aspects))
    more = _REFERENCE.format(reference=indented(reference)) if reference else ""
    prompt = JudgePrompt(
        target=reading.target(),
        task=PROMPTS["quality task"] + more,
        answer=PROMPTS["scale answer"],
        ids=tuple(aspects),
        criteria="\n\n".join(PROMPTS[f"aspect {aspect}"] for aspect in aspects),
        own=spec.prompt,
    )
    answers = await reading.ask([check], prompt, scale_form(len(_GRADES)))
    least = _GRADES[spec.min_grade - 1]

    def result(aspect: Aspect) -> CheckResult:
        vote = _vote_on(aspect, _GRADES, spec.threshold)
        return answers.result(reading.part("aspect", aspect), vote, threshold=spec.threshold)

    def outcome(children: Sequence[CheckResult]) -> tuple[float, bool]:
        score = round(fmean(child.score for child in children), 6)
        high = all(reaches(child.score, least) for child in children)
        return score, high and reaches(score, spec.threshold)

    def found(result: CheckResult) -> str:
        low = any(not reaches(child.score, least) for child in result.children)
        worst = min(result.children, key=lambda child: child.score)
        words = ", ".join(f"{child.name} {child.score:.2f}" for child in result.children)
        words += f"; below grade {spec.min_grade}" if low else ""
        return words + (f"; {worst.name}: {worst.found}" if worst.score < 1 and worst.found else "")

    children = [result(aspect) for aspect in aspects]
    return result_of(reading.blank(check, answers), children, outcome, found)


# Does the answer mean the same as a text?

_SIMILAR_TARGET = "Judge one answer of the agent: the only text of the material."


class SimilarityAnswer(AnswerForm):
    """How close an answer is in meaning to a reference."""

    reason: Reason = Field(description="One sentence: what they share, or where they part.")
    quote: str = Field("", description=QUOTE)
    score: Annotated[float, Number, Field(ge=0, le=1)] = Field(
        description="0 (unrelated or contradictory) to 1 (the same meaning)."
    )


async def read_similar(check: Check, reading: Reading) -> CheckResult:
    """The agent's last answer, compared with the check's text."""
    spec, last = check.similar, reading.last
    assert spec is not None
    answer = next(part for part in reversed(last.parts) if part.kind == "answer")
    alone = [Exchange(last.label, 1, (replace(answer, label="answer"),))]
    task = PROMPTS["similar task"].format(reference=indented(spec.to))
    prompt = JudgePrompt(_SIMILAR_TARGET, task, PROMPTS["similar answer"])
    shown = material(alone)
    answers = await reading.ask([check], prompt, SimilarityAnswer, shown=shown, judged=alone)

    def vote(answer: SimilarityAnswer) -> Vote:
        passed = reaches(answer.score, spec.threshold)
        return Vote(passed, answer.reason, (answer.quote,), answer.score)

    blank = reading.blank(check, answers)
    result = answers.result(blank, vote, threshold=spec.threshold)
    if result.error is not None:
        return result
    return result.model_copy(update={"found": f"{result.score:.2f}: {result.found}"})


# Are the answers relevant? Windows of turns, as in the published conversation relevance metric.


class WindowAnswer(AnswerForm):
    """Whether the answers of one window are relevant."""

    reason: Reason = Field(description=REASON)
    quote: str = Field("", description=QUOTE)
    relevant: bool | None = Field(
        strict=True, description="Whether every answer to be judged is relevant; null: unknown."
    )


def _windows(exchanges: Sequence[Exchange], size: int) -> list[tuple[Sequence[Exchange], int]]:
    """Every `size` neighbouring exchanges; a conversation that is no longer is one window.

    Each with how many are judged, from its end, so that each answer of a turn is judged once: the
    first window judges all of its answers, every later one the answer that it adds. What lies
    before the first turn is context alone.
    """
    seen = next((n for n, exchange in enumerate(exchanges) if exchange.step is not None), 0)
    windows: list[tuple[Sequence[Exchange], int]] = []
    for end in range(max(seen + 1, min(size, len(exchanges))), len(exchanges) + 1):
        windows.append((exchanges[max(0, end - size) : end], end - seen))
        seen = end
    return windows


async def read_relevance(check: Check, reading: Reading) -> CheckResult:
    """The share of relevant windows; of a turn: whether its answer is relevant where it stands."""
    spec = check.relevance
    assert spec is not None
    windows = _windows(reading.exchanges, spec.window_size)
    if reading.is_turn:
        windows = [(reading.exchanges[-spec.window_size :], 1)]

    async def ask(
        window: tuple[Sequence[Exchange], int],
    ) -> tuple[CheckResult, Answers[WindowAnswer]]:
        exchanges, count = window
        talk = ("user", "message", "answer")  # the metric looks at messages alone
        kept = [replace(e, parts=tuple(p for p in e.parts if p.kind in talk)) for e in exchanges]
        shown, judged = material(kept), exchanges[-count:]
        labels = ", ".join(exchange.label for exchange in judged)
        target = f"Judge the agent's {'answer' if count == 1 else 'answers'} of {labels}."
        target += " What stands before is context." if len(exchanges) > count else ""
        task, answer = PROMPTS["relevance task"], PROMPTS["relevance answer"]
        prompt = JudgePrompt(target, task, answer, own=spec.prompt)
        answers = await reading.ask([check], prompt, WindowAnswer, shown=shown, judged=judged)
        turns = [exchange.turn for exchange in exchanges if exchange.turn > 0]
        label = f"turn {turns[0]}" if turns[0] == turns[-1] else f"turns {turns[0]}-{turns[-1]}"

        def vote(answer: WindowAnswer) -> Vote:
            return Vote(answer.relevant, answer.reason, (answer.quote,))

        # That an answer is not off the subject is nothing to quote.
        part = reading.part("window", label)
        return answers.result(part, vote, needs_quotation=False), answers

    read = await gather(ask, windows)

    def outcome(children: Sequence[CheckResult]) -> tuple[float, bool]:
        score = round(fmean(child.score for child in children), 6)
        return score, reaches(score, spec.threshold)

    def found(result: CheckResult) -> str:
        off = [child for child in result.children if not child.passed]  # or unknown
        count, are = len(windows) - len(off), "window is" if len(windows) == 1 else "windows are"
        words = [f"{child.name}: {child.found}" for child in off]
        return "; ".join([f"{count} of {len(windows)} {are} relevant", *words])

    blank = reading.blank(check, *(answers for _, answers in read))
    return result_of(blank, [part for part, _ in read], outcome, found)


# All that is asked about one subject, in as few questions as will do, at the same time.

_OWN_QUESTIONS: dict[str, Callable[[Check, Reading], Awaitable[CheckResult]]] = {
    "answer_quality": read_quality,
    "similar": read_similar,
    "relevance": read_relevance,
}
"""Checks with a question (or several) of their own; the rest are asked together."""


async def read_checks(
    request: JudgeRequest, asker: AskModel, usage: UsageTracker
) -> list[CheckResult]:
    """A result for each of the request's checks, in order; nothing is raised."""
    reading, checks = Reading(request, asker, usage), request.checks
    ran = [e for e in reading.exchanges if e.step] if not reading.is_turn else [reading.last]
    theirs = (p.text for e in ran for p in e.parts if p.kind != "user")
    if request.role != "simulator" and not any(map(is_said, theirs)):
        idle = {"assertable": False, "found": "the agent neither answered nor called a tool"}
        return [reading.blank(check).model_copy(update=idle) for check in checks]
    results: dict[int, CheckResult] = {}

    async def read(places: list[int]) -> None:
        some = [checks[place] for place in places]
        alone = _OWN_QUESTIONS.get(some[0].key)
        found = [await alone(some[0], reading)] if alone else await read_criteria(some, reading)
        results.update(zip(places, found, strict=True))

    questions: dict[object, list[int]] = {}
    for place, check in enumerate(checks):
        own = check.rubric is not None and check.rubric.prompt is not None
        models = model_for(request.case, check)
        together = models and models.model_dump_json()
        alone = check.key in _OWN_QUESTIONS or own
        questions.setdefault(place if alone else together, []).append(place)
    await gather(read, questions.values())
    return [results[place] for place in range(len(checks))]
