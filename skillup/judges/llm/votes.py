"""Several answers to one question: what they come to, and how far they agree.

A verdict is the majority of all that were asked for; a tie is a no. An answer that failed to come
is an error, unless the others have decided already, whatever it would have said. A score is the
mean; there every answer counts, so any that failed is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from skillup.checks.scoring import reaches
from skillup.schema.grade import CheckResult


@dataclass(frozen=True, slots=True)
class Vote:
    """What one answer says of one thing."""

    score: float
    passed: bool
    reason: str = ""
    quote: str = ""
    error: str | None = None
    """There is no answer, and this is why; the rest means nothing then."""


@dataclass(frozen=True, slots=True)
class VoteCount:
    """What the votes come to."""

    score: float
    passed: bool
    reason: str
    quote: str
    error: str | None
    stability: Stability


@dataclass(frozen=True, slots=True)
class Stability:
    """The votes as results show them; nothing where only one was asked for."""

    votes: list[float] | None = None
    agreement: float | None = None
    notes: tuple[str, ...] = ()

    def on(self, result: CheckResult) -> CheckResult:
        """`result` with the votes on it."""
        if self.votes is None and not self.notes:
            return result
        notes = [*result.notes, *self.notes]
        update = {"votes": self.votes, "agreement": self.agreement, "notes": notes}
        return result.model_copy(update=update)


def no_vote(error: str) -> Vote:
    """For an answer that failed to come."""
    return Vote(0.0, passed=False, error=error)


def by_majority(votes: Sequence[Vote]) -> VoteCount:
    """The verdict that the votes come to; `score` is 1 or 0."""
    given = [vote for vote in votes if vote.error is None]
    yes = sum(vote.passed for vote in given)
    no = len(given) - yes
    passed = yes * 2 > len(votes)
    error = None if passed or no * 2 >= len(votes) else _first_error(votes)
    return _tally(votes, float(passed), passed, error, stability_of(votes, passed))


def by_mean(votes: Sequence[Vote], threshold: float) -> VoteCount:
    """The mean of the scores; it passes if that is at least `threshold`."""
    error = _first_error(votes)
    score = sum(vote.score for vote in votes) / len(votes)
    passed = reaches(score, threshold) and error is None
    return _tally(votes, score, passed, error, stability_of(votes, passed, scores=True))


def stability_of(votes: Sequence[Vote], passed: bool, *, scores: bool = False) -> Stability:
    """How far `votes` agree with the result; `scores`: they are told by score, not by verdict."""
    if len(votes) < 2:
        return Stability()
    given = [vote for vote in votes if vote.error is None]
    if not given:
        return Stability(notes=(f"asked {len(votes)} times, without an answer",))
    if scores:
        told = [f"{vote.score:.3g}" for vote in given]
    else:
        counts = {"pass": sum(vote.passed for vote in given)}
        counts["fail"] = len(given) - counts["pass"]
        told = [f"{count} {word}" for word, count in counts.items() if count]
    silent = len(votes) - len(given)
    told += [f"{silent} without an answer"] if silent else []
    agreement = sum(vote.passed == passed for vote in given) / len(given)
    note = f"asked {len(votes)} times: {', '.join(told)}"
    return Stability([vote.score for vote in given], round(agreement, 6), (note,))


def _tally(
    votes: Sequence[Vote], score: float, passed: bool, error: str | None, stability: Stability
) -> VoteCount:
    given = [vote for vote in votes if vote.error is None]
    speaker = next((vote for vote in given if vote.passed == passed), given[0] if given else None)
    reason, quote = (speaker.reason, speaker.quote) if speaker is not None else ("", "")
    return VoteCount(round(score, 6), passed, reason, quote, error, stability)


def _first_error(votes: Sequence[Vote]) -> str | None:
    return next((vote.error for vote in votes if vote.error is not None), None)


# Fields of models' answers that are taken at their word: no text is a number, no blank a reason.


class AnswerForm(BaseModel):
    """The form of a model's answer: these keys and no others."""

    model_config = ConfigDict(extra="forbid")


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004  pydantic reports no other
    return value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


Number = BeforeValidator(_number)
"""Neither a text nor a boolean; some models write 4.0 for 4, or 1 for 1.0, which is fine."""
Reason = Annotated[str, AfterValidator(_not_blank)]
"""Why: a text that says something."""
