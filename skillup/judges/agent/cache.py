"""Answers of agents that judge are kept in the run: judging again starts no agent.

An answer is that to the same question of the same trial: criteria, what the judge is shown, its
configuration, and the conversation and files it is about. Thresholds and weights are not part of
it, since the judge is not told of them. Skills of the judge count by their paths alone: they are
not kept with the record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.errors import SkillupError
from skillup.judges.agent.answer import (
    AgentCriterionVerdict,
    AskedCriteria,
    MalformedAnswerError,
    read_answer,
)
from skillup.judges.agent.question import Materials, question
from skillup.judges.agent.runner import profile_of
from skillup.judges.artifacts import JudgedPart, as_json
from skillup.judges.models.cache import CachedQuestion as Question
from skillup.judges.models.cache import StoredAnswer, key_of
from skillup.judges.scratch import JudgePlace
from skillup.judges.usage import UsageTracker
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import FileState, Usage
from skillup.store.journal import to_json
from skillup.trial.usage import total_cost, total_usage

_GIVEN = {"model", "base_url", "context", "skills", "scripted"}
"""What of its configuration a judge, or the engine that plays it, is given as it is written."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """What an agent said once, and what there was to note."""

    verdicts: Mapping[str, AgentCriterionVerdict]
    notes: tuple[str, ...] = ()
    ledger: UsageTracker = field(default_factory=UsageTracker)
    """What it took, when it was asked."""


class AgentAnswers:
    """The answers of one judge about one subject, each under the number of its repetition.

    Whatever is read or kept may touch the disk.
    """

    def __init__(
        self,
        judge: JudgeConfig,
        asked: Sequence[AskedCriteria],
        subject: JudgedPart,
        place: JudgePlace,
    ) -> None:
        self._place = place
        self._asked = asked
        self._question = _question(judge, asked, subject, place)
        self._by = _engine_of(judge, place)

    def read(self, sample: int) -> tuple[AgentAnswer, StoredAnswer] | None:
        """The answer, without its account; None: nobody was asked, or an agent of another kind."""
        if self._place.answers is None:
            return None
        stored = self._place.answers.read(self._of(sample))
        said = stored.answer if stored is not None else None
        if stored is None or not isinstance(said, dict):
            return None
        by, notes = said.get("by"), said.get("notes")
        if (self._by is not None and by != self._by) or not isinstance(notes, list):
            return None
        try:
            verdicts = read_answer(json.dumps({"criteria": said.get("criteria")}), self._asked)
        except MalformedAnswerError:
            return None
        return AgentAnswer(verdicts, tuple(map(str, notes))), stored

    def take_over(self, sample: int, stored: StoredAnswer) -> bool:
        """Whether an earlier process asked it for a grade: then this one counts what it took."""
        # The question names the trial, so that it can be asked for no other's grade.
        answers = self._place.answers
        if answers is None or stored.asked_for is None:
            return False
        return answers.take_over(self._of(sample))

    def keep(self, sample: int, answer: AgentAnswer, of_grade: bool = False) -> AgentAnswer:
        """Keeps it; returned as it will be read: masked. `of_grade` as in the ledger it counts in.

        Raises RunDirectoryError where the run cannot keep it.
        """
        said = _clean(
            {
                "criteria": [
                    {
                        "id": name,
                        "pass": verdict.passed,
                        "reason": verdict.reason,
                        "evidence": list(verdict.evidence),
                    }
                    for name, verdict in answer.verdicts.items()
                ],
                "notes": list(answer.notes),
                "by": self._by,
            },
            self._place.mask,
        )
        ledger = answer.ledger
        usage = total_usage(ledger.usages)
        stored = StoredAnswer(
            asked=self._of(sample).own,
            answer=said,
            model=ledger.models[-1] if ledger.models else None,
            usage=Usage(**usage) if usage is not None else None,
            cost_usd=total_cost(ledger.costs),
            asked_for=key_of({"trial": self._question["trial"]}) if of_grade else None,
        )
        if self._place.answers is not None:
            self._place.answers.write(self._of(sample), stored)
        try:
            verdicts = read_answer(json.dumps({"criteria": said["criteria"]}), self._asked)
        except MalformedAnswerError:  # an id that looks like a secret
            verdicts = dict(answer.verdicts)
        return AgentAnswer(verdicts, tuple(said["notes"]), ledger)

    def _of(self, sample: int) -> Question:
        return Question({**self._question, "sample": sample}, shared=None)


def _question(
    judge: JudgeConfig, asked: Sequence[AskedCriteria], subject: JudgedPart, place: JudgePlace
) -> dict[str, Any]:
    """All that an answer depends on; what is long, as a hash."""
    record = subject.record
    given: dict[str, Any] = _clean(
        {
            "agent_judge": judge.engine or record.engine.profile,
            "judge": judge.model_dump(mode="json", include=_GIVEN, exclude_none=True),
            "question": question(asked, Materials()),
            "trial": [
                record.run_id,
                record.suite,
                record.case_id,
                record.engine.profile,
                record.variant,
                record.trial,
                subject.number,
            ],
            "transcript": json.loads(as_json(subject.turns, record.history)),
            "final_message": subject.last.response,
            "files": _states(subject.files),
            "files_before": _states(record.initial_files or {}),
        },
        place.mask,
    )
    for name in ("transcript", "final_message", "files", "files_before"):
        given[name] = key_of({name: given[name]})
    attachments = judge.context.attachments if judge.context is not None else []
    given["attachments"] = {
        item.path: _attached(item.path, subject, place.suite_root) for item in attachments
    }
    return given


def _states(files: Mapping[str, FileState]) -> dict[str, Any]:
    return {path: files[path].model_dump(mode="json") for path in sorted(files)}


def _attached(path: str, subject: JudgedPart, suite_root: Path) -> str | None:
    kept = subject.record.references.get(path)
    if kept is not None:
        return kept.sha256
    with suppress(OSError):
        if (suite_root / path).is_file():
            return hashlib.sha256((suite_root / path).read_bytes()).hexdigest()
    return None


def _engine_of(judge: JudgeConfig, place: JudgePlace) -> dict[str, Any] | None:
    """Who answers; None: where the run is judged again there is no such profile."""
    try:
        profile = profile_of(judge, place)
    except SkillupError:
        return None
    by = {"engine": profile.engine, "model": profile.model, "base_url": profile.base_url}
    cleaned: dict[str, Any] = _clean(by, place.mask)
    return cleaned


def _clean(data: Any, mask: Callable[[str], str]) -> Any:
    """`data` as it will be read back from a file: masked, and valid text."""
    return json.loads(to_json({"": data}, mask, indent=None))[""]
