"""The desk where inquiries arrive: each goes to whoever can answer it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from skillup.errors import SkillupError
from skillup.judges.evaluate import Judgement
from skillup.judges.llm.dispatch import READ_BY_MODEL
from skillup.judges.models.client import Models
from skillup.judges.scratch import JudgePlace, judge_scratch
from skillup.judges.usage import UsageTracker
from skillup.load.model import all_checks
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckKeys
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeModel
from skillup.schema.profile import Profile
from skillup.schema.record import Record, TurnError
from skillup.workspace.failures import refuse_full_disk

# Which models a case needs, known before anything is asked.


def first_read(case: Case) -> CheckKeys | None:
    """The first check of `case` that the judge's model reads; None: there is none."""
    return next((check for check in checks_of(case) if _is_read(check)), None)


def embedding_models(case: Case) -> list[str]:
    """The models that `similar` takes its vectors from, each once."""
    found = (check.similar.embedding_model for check in checks_of(case) if check.similar)
    return list(dict.fromkeys(model for model in found if model is not None))


def checks_of(case: Case) -> Iterator[CheckKeys]:
    """Every check of `case`, wherever it stands; checks within checks and expected outputs too."""
    yield from (check for _, check, _ in all_checks(case))
    yield from case.checks()[len(case.assertions) :]
    for turn in case.input.all_turns():
        yield from turn.checks()[len(turn.assertions) :]


def _is_read(check: CheckKeys) -> bool:
    if check.similar is not None and check.similar.embedding_model is not None:
        return False
    return any(key in READ_BY_MODEL for key, _ in check.given())


NO_MODEL = (
    "`{key}` is read by a model, and none is named: write `judge: {{model: …}}` in eval.yaml, "
    "or give --judge-model"
)


@dataclass(frozen=True, slots=True)
class CaseLocation:
    """What a case does not say of itself."""

    suite_root: Path
    """What its paths are relative to."""
    profile: str
    """The name of the profile that holds it."""


@dataclass(frozen=True, slots=True)
class RouterOptions:
    """Whom a desk may ask, and how."""

    environment: Mapping[str, str]
    """The user's own environment."""
    mask: Callable[[str], str]
    """Hides secrets."""
    profiles: Callable[[str, Path], Profile]
    """A profile by its name, for a suite's root. Raises UsageError if there is none."""
    case_location: Callable[[Case], CaseLocation | None] = lambda _: None
    """Of a case that is about to be held; None: of this one they are not known."""
    suite_root: Callable[[Record], Path] = lambda record: Path(record.suite_root)
    """Of the suite that a record's case belongs to; it need not be there any more."""
    secrets: Secrets = NO_SECRETS
    """What nothing of the run may show, nor the raw streams of its agents."""


class JudgeRouter:
    """:class:`skillup.judges.evaluate.Reader`: models, scripts and agents behind one face.

    async with JudgeDesk(models, options) as desk: …

    It may be entered again, in another event loop too; connections are closed at each exit.
    """

    def __init__(self, models: Models, options: RouterOptions) -> None:
        self.models = models
        self._options = options

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.models.close()

    def problem(self, case: Case) -> TurnError | None:
        """Why `case` could not be judged, found before its first turn; nobody is asked."""
        from skillup.judges.program_judges import problem_of

        known = self._options.case_location(case)
        why = self._model_problem(case, known.suite_root if known is not None else Path())
        if why is not None:
            return TurnError(kind="judge", message=self._options.mask(why))
        if known is None:
            return None
        # Nothing is started, so nothing is written to the scratch directory.
        place = self._place(known.suite_root, known.profile, Path(tempfile.gettempdir()))
        return problem_of(case, place)

    async def read(self, inquiry: Judgement, ledger: UsageTracker) -> Sequence[CheckResult]:
        """One result for each of the inquiry's checks, in order; of a judge, all it says.

        Raises nothing but RunDirectoryError, where the run cannot keep the answers, and
        FullDiskError.
        """
        try:
            if inquiry.judge is not None:
                return await self._judge(inquiry, ledger)
            return await self._checks(inquiry, ledger)
        except SkillupError:
            raise
        except Exception as defect:  # noqa: BLE001  a defect of ours must not become a verdict
            if isinstance(defect, OSError):
                refuse_full_disk(defect)
            return self._defect(inquiry, defect)

    async def _judge(self, inquiry: Judgement, ledger: UsageTracker) -> Sequence[CheckResult]:
        from skillup.judges.program_judges import judge_by_program

        with judge_scratch() as scratch:
            return await judge_by_program(inquiry, ledger, self._place_of(inquiry, scratch))

    async def _checks(self, inquiry: Judgement, ledger: UsageTracker) -> Sequence[CheckResult]:
        scripts = [check for check in inquiry.checks if check.key == "script"]
        others = [check for check in inquiry.checks if check.key != "script"]
        of_scripts = iter(await self._run(scripts, inquiry) if scripts else [])
        of_models = iter(await self._ask(others, inquiry, ledger) if others else [])
        return [
            next(of_scripts if check.key == "script" else of_models) for check in inquiry.checks
        ]

    async def _run(self, checks: list[Check], inquiry: Judgement) -> Sequence[CheckResult]:
        from skillup.judges.program_judges import read_scripts

        with judge_scratch() as scratch:
            return await read_scripts(checks, inquiry, self._place_of(inquiry, scratch))

    async def _ask(
        self, checks: list[Check], inquiry: Judgement, ledger: UsageTracker
    ) -> Sequence[CheckResult]:
        from skillup.judges.llm import read_checks

        record = inquiry.context.record
        root = self._options.suite_root(record)
        asker = self.models.seen_from(
            root,
            suite=record.suite_root,
            trial=_trial_of(record),
            of_grade=ledger.of_grade,
            goes_on=ledger.goes_on,
        )
        return await read_checks(replace(inquiry, checks=checks), asker, ledger)

    def _model_problem(self, case: Case, suite_root: Path) -> str | None:
        model = case.judge_model
        for name in embedding_models(case):
            like = model or JudgeModel(model=name)
            why = self.models.embedding_problem(name, like)
            if why is not None:
                return why
        read = first_read(case)
        if read is None:
            return None
        if model is None:
            return NO_MODEL.format(key=next(key for key, _ in read.given()))
        return self.models.problem(model, suite_root)

    def _place_of(self, inquiry: Judgement, scratch: str) -> JudgePlace:
        record = inquiry.context.record
        root = self._options.suite_root(record)
        return self._place(root, record.engine.profile, Path(scratch).resolve())

    def _place(self, suite_root: Path, own_profile: str, scratch: Path) -> JudgePlace:
        return JudgePlace(
            environment=self._options.environment,
            mask=self._options.mask,
            scratch=scratch,
            profiles=lambda name: self._options.profiles(name or own_profile, suite_root),
            suite_root=suite_root,
            pacing=self.models.pacing,
            answers=self.models.answers,
            secrets=self._options.secrets,
        )

    def _defect(self, inquiry: Judgement, defect: Exception) -> list[CheckResult]:
        while isinstance(defect, ExceptionGroup):  # of a task group: what is in it says more
            defect = defect.exceptions[0]
        said = " ".join(str(defect).split())
        error = f"skillup itself failed: {type(defect).__name__}: {said}; please report it"
        kinds = [check.key for check in inquiry.checks]
        if inquiry.judge is not None:
            kinds = [inquiry.judge.type or "judge"]
        return [
            CheckResult(
                name=kind,
                kind=kind,
                passed=False,
                score=0.0,
                role=inquiry.role,
                error=self._options.mask(error),
            )
            for kind in kinds
        ]


def _trial_of(record: Record) -> str:
    """Tells the trials of a desk apart, while they are held and when they are graded."""
    parts = (record.run_id, record.suite_root, record.case_id, record.engine.profile)
    return "\n".join([*parts, record.variant, str(record.trial), str(record.attempt)])
