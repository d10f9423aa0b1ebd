"""Conversation relevance: do the answers stay with what the user said, window by window?

The metric is the published one, as its documentation states it (promptfoo, "Conversation
Relevance", adapted from DeepEval's "Turn Relevancy", formerly "Conversation Relevancy"):

- windows of `window_size` neighbouring turns slide over the conversation one turn at a time: five
  turns in windows of three are turns 1-3, 2-4 and 3-5;
- a conversation that has no more turns than a window is one window;
- each answer is judged in the light of its window, and is irrelevant only if it is completely off
  the subject; a vague answer to a vague message, such as a greeting, is relevant;
- the score is the number of relevant windows divided by the number of windows.

The documentation leaves open which answers a window stands for. Here each answer is judged once:
the first window stands for all of its answers, every later one for the answer that it adds.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from pydantic import Field

from skillup.checks.scoring import reaches
from skillup.judges.llm.asking import Asking, Sample
from skillup.judges.llm.prompt import (
    HOW_TO_QUOTE,
    HOW_TO_REASON,
    JudgePrompt,
    Material,
    assembled,
    material_of,
)
from skillup.judges.llm.rubric import part_result, result_of
from skillup.judges.llm.subject import Exchange, ReadSubject, Window, windows_of
from skillup.judges.llm.votes import (
    AnswerForm,
    Reason,
    Vote,
    by_majority,
    no_vote,
    stability_of,
)
from skillup.schema.check_specs import Relevance
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole

TASK = """\
Are the answers to be judged relevant to the conversation? Take each in the light of the message \
it answers and of everything before it.

An answer is irrelevant only if it has nothing to do with what the user said: it speaks of \
another subject, or answers a question that nobody asked. Whether it is right, complete, helpful \
or polite does not matter here. To ask back, to refuse, or to say that one does not know is \
relevant. A vague answer to a vague message, such as a greeting, is relevant too."""

ANSWER = """\
- {reason} If an answer is irrelevant, name its turn.
- {quote}
- `relevant`: true if every answer to be judged is relevant, false if one of them is not."""


class WindowAnswer(AnswerForm):
    """Whether the answers of one window are relevant."""

    reason: Reason = Field(description="One sentence: what in the material decides it.")
    quote: str = Field(
        "", description="The deciding passage, copied exactly from the material; may be empty."
    )
    relevant: bool = Field(
        strict=True, description="Whether every answer to be judged is relevant."
    )


async def read_relevance(
    check: Check, subject: ReadSubject, role: CheckRole, asking: Asking
) -> CheckResult:
    """The share of relevant windows; of a turn: whether its answer is relevant where it stands."""
    spec = check.relevance
    assert spec is not None
    windows = _windows(subject, spec)
    materials = [material_of([_talk(e) for e in window.exchanges]) for window in windows]
    samples: list[list[Sample[WindowAnswer]]] = [[] for _ in windows]

    async def ask(number: int) -> None:
        window, material = windows[number], materials[number]
        judged = window.exchanges[-window.judged :]
        prompt = assembled(_question(window, subject), material, judged, spec.prompt)
        samples[number] = await asking.ask(prompt, WindowAnswer)

    async with anyio.create_task_group() as group:
        for number in range(len(windows)):
            group.start_soon(ask, number)
    return _result(check, spec, subject, role, windows, materials, samples)


def _windows(subject: ReadSubject, spec: Relevance) -> list[Window]:
    if subject.is_turn:
        return [Window(subject.exchanges[-spec.window_size :], 1)]
    return windows_of(subject.exchanges, spec.window_size)


def _talk(exchange: Exchange) -> Exchange:
    """What was said, without what was done: the metric looks at messages."""
    said = tuple(part for part in exchange.parts if part.kind in ("user", "message", "answer"))
    return Exchange(exchange.label, exchange.turn, said, exchange.step)


def _question(window: Window, subject: ReadSubject) -> JudgePrompt:
    judged = [exchange.label for exchange in window.exchanges[-window.judged :]]
    one = len(judged) == 1
    target = f"Judge the agent's {'answer' if one else 'answers'} of {', '.join(judged)}."
    if len(window.exchanges) > len(judged):
        target += " What stands before is context."
    return JudgePrompt(
        target=target,
        task=TASK,
        answer=ANSWER.format(reason=HOW_TO_REASON, quote=HOW_TO_QUOTE),
        expected_output=subject.expected_output,
    )


def _vote(sample: Sample[WindowAnswer]) -> Vote:
    if sample.value is None:
        return no_vote(sample.error)
    said = sample.value
    return Vote(float(said.relevant), said.relevant, said.reason, said.quote)


def _result(
    check: Check,
    spec: Relevance,
    subject: ReadSubject,
    role: CheckRole,
    windows: Sequence[Window],
    materials: Sequence[Material],
    samples: Sequence[Sequence[Sample[WindowAnswer]]],
) -> CheckResult:
    votes = [[_vote(sample) for sample in asked] for asked in samples]
    tallies = [by_majority(asked) for asked in votes]
    error = next((tally.error for tally in tallies if tally.error is not None), None)
    told = [
        part_result(window.label, "window", tally, material, subject, role)
        for window, material, tally in zip(windows, materials, tallies, strict=True)
    ]
    off = [child for child in told if not child.passed]
    relevant = sum(tally.passed for tally in tallies)
    score = relevant / len(windows)
    passed = reaches(score, spec.threshold)
    many = "window is" if len(windows) == 1 else "windows are"
    found = "; ".join(
        [f"{relevant} of {len(windows)} {many} relevant", *(f"{c.name}: {c.found}" for c in off)]
    )
    wholes = [_whole(row, spec.threshold) for row in zip(*votes, strict=True)]
    return result_of(
        check, subject, role, passed=passed, score=score, found=found, error=error,
        excerpt=off[0].excerpt if off else "", children=told,
        notes=[note for material in materials for note in material.notes],
        stability=stability_of(wholes, passed, scores=len(windows) > 1),
    )  # fmt: skip


def _whole(row: Sequence[Vote], threshold: float) -> Vote:
    """The check as one round of answers alone would have had it."""
    error = next((vote.error for vote in row if vote.error is not None), None)
    if error is not None:
        return no_vote(error)
    score = round(sum(vote.score for vote in row) / len(row), 6)
    return Vote(score, reaches(score, threshold))
