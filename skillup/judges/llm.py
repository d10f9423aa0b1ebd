"""The checks that a model reads: each is a prompt, a form of answer, and votes on facets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from skillup.checks.context import one_line
from skillup.checks.evaluate import reaches
from skillup.judges.evaluate import JudgeRequest, UsageTracker, gather
from skillup.judges.material import Exchange, material
from skillup.judges.question import AnswerForm, AskModel, Number, Reason
from skillup.judges.reading import QUOTE, REASON, Answers, JudgePrompt, Reading, indented
from skillup.judges.voting import Facet, Vote, by_weight, criteria_met, flat_result, result_of
from skillup.load.model import model_for
from skillup.schema.checks import Aspect, Check, Criterion
from skillup.schema.grade import CheckResult

# Rubrics and expected outputs: criteria that the model finds met or not.

_RUBRIC_TASK = """\
For each criterion below, decide whether it is met. Take each by itself, and read it as it is \
written: neither more strictly nor more generously."""

_RUBRIC_ANSWER = """\
Give exactly one verdict for each of {ids}, and none for anything else. For each:
- `id`: the criterion's id.
- {reason}
- {quote}
- `verdict`: "pass" if the material shows that the criterion is met; "fail" if it is not met, \
is met only in part, or if the material does not show it; "unknown" only if nobody could tell, \
because what decides it was left out of the material. A criterion that something be absent is met \
where it is absent."""

_SAME_MEANING = """\
{answer} says what the reference below says: the same facts, with the same meaning. Other words, \
another order and additional details are fine as long as nothing contradicts the reference; \
a fact of the reference that is missing, or changed, is not.
   Reference:
{reference}"""


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


_SCALE_TASK = """\
For each criterion below, choose the step of its scale that describes the agent's work. Take each \
by itself, and read the steps as they are written."""

_SCALE_ANSWER = """\
Give exactly one step for each of {ids}, and none for anything else. For each:
- `id`: the id, or the name.
- {reason}
- {quote}
- `step`: the number of the step, the lower one where two seem to fit; null only if nobody could \
tell, because what decides it was left out of the material."""


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
    asked = dict(
        zip(forms, await gather(partial(_ask, checks, reading, forms), forms), strict=True)
    )
    facets = {steps: iter(found) for steps, (_, found) in asked.items()}
    results = []
    for check, own in zip(checks, criteria, strict=True):
        found = [next(facets[len(criterion.scale)]) for criterion in own]
        answers = [asked[steps][0] for steps in dict.fromkeys(len(one.scale) for one in own)]
        blank = reading.blank(check, *answers)
        notes = [note for one in answers for note in one.notes]
        if len(found) == 1 and own[0].id is None:
            results.append(flat_result(blank, found[0], notes))
            continue
        outcome = by_weight(check.rubric.threshold if check.rubric is not None else 1.0)
        results.append(result_of(blank, found, outcome, criteria_met, notes=notes))
    return results


def _criteria_of(check: Check, reading: Reading) -> list[Criterion]:
    if check.rubric is not None:
        return check.rubric.criteria
    answer, reference = f"The answer of {reading.last.label}", check.expected_output or ""
    line = _SAME_MEANING.format(answer=answer, reference=indented(reference))
    return [Criterion(outcome=line)]


async def _ask(
    checks: Sequence[Check], reading: Reading, forms: Mapping[int, list[Criterion]], steps: int
) -> tuple[Answers[Any], list[Facet]]:
    """The answers about the criteria with so many steps, and a facet for each."""
    lines: dict[str, str] = {}
    for criterion in forms[steps]:
        line = "\n   ".join(criterion.outcome.strip().splitlines())
        line += "".join(f"\n   {n}: {one.means}" for n, one in enumerate(criterion.scale, start=1))
        lines[f"c{len(lines) + 1}"] = line
    prompt = JudgePrompt(
        target=reading.target(),
        task=_SCALE_TASK if steps else _RUBRIC_TASK,
        answer=_SCALE_ANSWER if steps else _RUBRIC_ANSWER,
        ids=tuple(lines),
        criteria="\n".join(f"{name}: {line}" for name, line in lines.items()),
        own=checks[0].rubric.prompt if checks[0].rubric is not None else None,
    )
    form: type[Any] = scale_form(steps) if steps else RubricAnswer
    answers = await reading.ask(checks, prompt, form, criteria=tuple(lines.values()))

    def facet(name: str, criterion: Criterion) -> Facet:
        scores = [step.score for step in criterion.scale]
        least = scores[-1] if scores and criterion.min_score is None else criterion.min_score
        title = criterion.id or one_line(criterion.outcome.strip())
        keys: dict[str, Any] = {"weight": criterion.weight, "required": criterion.required}
        vote = _vote_on(name, scores, least or 0.0)
        keys |= {"expected": criterion.outcome, "threshold": least}
        return answers.facet(title, "criterion", vote, **keys)

    return answers, [facet(*one) for one in zip(lines, forms[steps], strict=True)]


def _vote_on(name: str, scores: Sequence[float], least: float) -> Callable[[Any], Vote]:
    """The vote of an answer on `name`: by the `scores` of its steps, or else by its verdict."""

    def vote(answer: RubricAnswer) -> Vote:
        ((_, rows),) = answer
        found: Any = next(row for row in rows if row.id.strip().casefold() == name)
        if not scores:
            return Vote.of(_VERDICTS[found.verdict], found.reason, found.quote)
        if found.step is None:
            return Vote.of(None, found.reason, found.quote)
        score = scores[found.step - 1]  # the case's: the model knows the steps alone
        return Vote.of(reaches(score, least), found.reason, found.quote, score=score)

    return vote


# Answer quality: several aspects, each graded on a scale of five anchored steps.

_GRADES = (0, 0.25, 0.5, 0.75, 1)

_QUALITY_TASK = """\
Grade what the agent answered by each of the criteria below. Take each by itself: a fault that \
belongs to one must not lower another."""

_STEPS: dict[Aspect, str] = {
    "correctness": """\
correctness: is what it says right, and borne out by what the user and the tools said?
   5: everything it states is right.
   4: right, but for a slip that would mislead nobody.
   3: right in the main point; one error that matters.
   2: wrong in the main point, or wrong in several others.
   1: wrong throughout, or made up.""",
    "completeness": """\
completeness: does it answer all that was asked?
   5: every part of the request is dealt with.
   4: every part but a minor one.
   3: the main part, with something substantial missing.
   2: only a small part.
   1: nothing that was asked for.""",
    "flow": """\
flow: does it follow from what was said before, and read as one line of thought?
   5: it takes up the conversation exactly where it stands, and each step leads to the next.
   4: clear, with a needless repetition or an abrupt step.
   3: understandable with some effort: it jumps, repeats itself, or overlooks an earlier message.
   2: hard to follow, or at odds with what was said before.
   1: incoherent, or unrelated to the conversation.""",
    "format": """\
format: does its form suit its content, and keep to what the user asked for?
   5: it has just the form that was asked for or, if none was, one that serves the reader.
   4: a small departure that disturbs nobody.
   3: usable, but in a form that the reader must work around.
   2: against an explicit request, or hard to use.
   1: unusable in this form.""",
}
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
        task=_QUALITY_TASK + more,
        answer=_SCALE_ANSWER,
        ids=tuple(aspects),
        criteria="\n\n".join(_STEPS[aspect] for aspect in aspects),
        own=spec.prompt,
    )
    answers = await reading.ask([check], prompt, scale_form(len(_GRADES)))
    least = _GRADES[spec.min_grade - 1]

    def facet(aspect: Aspect) -> Facet:
        vote = _vote_on(aspect, _GRADES, spec.threshold)
        return answers.facet(aspect, "aspect", vote, threshold=spec.threshold)

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

    blank, facets = reading.blank(check, answers), [facet(aspect) for aspect in aspects]
    return result_of(blank, facets, outcome, found, notes=answers.notes, by_score=True)


# Does the answer mean the same as a text?

_SIMILAR_TARGET = "Judge one answer of the agent: the only text of the material."
_SIMILAR_TASK = """\
How close is the answer in meaning to this reference?

{reference}

Only meaning counts: wording, order, style, length and language do not."""

_SIMILAR_ANSWER = """\
- {reason}
- {quote}
- `score`: a number from 0 to 1. These are the marks of the scale; numbers in between are allowed.
   1.0: the same meaning: each says all that the other says.
   0.8: the same meaning, but for a minor detail that one has and the other lacks.
   0.5: the main point in part: something substantial is missing or added.
   0.2: the same subject, but it says something else.
   0.0: unrelated, or it contradicts the reference."""


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
    task = _SIMILAR_TASK.format(reference=indented(spec.to))
    prompt = JudgePrompt(_SIMILAR_TARGET, task, _SIMILAR_ANSWER)
    shown = material(alone)
    answers = await reading.ask([check], prompt, SimilarityAnswer, shown=shown, judged=alone)

    def vote(answer: SimilarityAnswer) -> Vote:
        passed = reaches(answer.score, spec.threshold)
        return Vote.of(passed, answer.reason, answer.quote, score=answer.score)

    facet = answers.facet("", "similar", vote, threshold=spec.threshold)
    result = flat_result(reading.blank(check, answers), facet, answers.notes)
    if result.error is not None:
        return result
    return result.model_copy(update={"found": f"{result.score:.2f}: {result.found}"})


# Are the answers relevant? Windows of turns, as in the published conversation relevance metric.

_RELEVANCE_TASK = """\
Are the answers to be judged relevant to the conversation? Take each in the light of the message \
it answers and of everything before it.

An answer is irrelevant only if it has nothing to do with what the user said: it speaks of \
another subject, or answers a question that nobody asked. Whether it is right, complete, helpful \
or polite does not matter here. To ask back, to refuse, or to say that one does not know is \
relevant. A vague answer to a vague message, such as a greeting, is relevant too."""

_RELEVANCE_ANSWER = """\
- {reason} If an answer is irrelevant, name its turn.
- {quote}
- `relevant`: true if every answer to be judged is relevant, false if one of them is not; null \
only if nobody could tell, because what decides it was left out of the material."""


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

    async def ask(window: tuple[Sequence[Exchange], int]) -> tuple[Facet, Answers[WindowAnswer]]:
        exchanges, count = window
        talk = ("user", "message", "answer")  # the metric looks at messages alone
        kept = [replace(e, parts=tuple(p for p in e.parts if p.kind in talk)) for e in exchanges]
        shown, judged = material(kept), exchanges[-count:]
        labels = ", ".join(exchange.label for exchange in judged)
        target = f"Judge the agent's {'answer' if count == 1 else 'answers'} of {labels}."
        target += " What stands before is context." if len(exchanges) > count else ""
        prompt = JudgePrompt(target, _RELEVANCE_TASK, _RELEVANCE_ANSWER, own=spec.prompt)
        answers = await reading.ask([check], prompt, WindowAnswer, shown=shown, judged=judged)
        turns = [exchange.turn for exchange in exchanges if exchange.turn > 0]
        label = f"turn {turns[0]}" if turns[0] == turns[-1] else f"turns {turns[0]}-{turns[-1]}"

        def vote(answer: WindowAnswer) -> Vote:
            return Vote.of(answer.relevant, answer.reason, answer.quote)

        # That an answer is not off the subject is nothing to quote.
        facet = answers.facet(label, "window", vote, needs_quotation=False)
        return facet, answers

    read = await gather(ask, windows)

    def outcome(children: Sequence[CheckResult]) -> tuple[float, bool]:
        score = round(fmean(child.score for child in children), 6)
        return score, reaches(score, spec.threshold)

    def found(result: CheckResult) -> str:
        off = [child for child in result.children if not child.passed]  # or unknown
        count, are = len(windows) - len(off), "window is" if len(windows) == 1 else "windows are"
        words = [f"{child.name}: {child.found}" for child in off]
        return "; ".join([f"{count} of {len(windows)} {are} relevant", *words])

    result = result_of(
        reading.blank(check, *(answers for _, answers in read)),
        [facet for facet, _ in read],
        outcome,
        found,
        notes=[note for _, answers in read for note in answers.notes],
        by_score=len(windows) > 1,
    )
    off = next((child for child in result.children if not child.passed), None)
    shown = {"excerpt": off.excerpt, "spans": off.spans} if off else {"excerpt": "", "spans": []}
    return result.model_copy(update=shown)


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
