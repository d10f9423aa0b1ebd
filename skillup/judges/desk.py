"""The desk where inquiries arrive: each goes to whoever can answer it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from skillup.errors import SkillupError
from skillup.judges.ledger import Ledger
from skillup.judges.models.client import Models
from skillup.judges.needed import embedding_models, first_read
from skillup.judges.place import JudgePlace
from skillup.judges.scratch import judge_scratch
from skillup.judges.sitting import Inquiry
from skillup.process.secrets import NO_SECRETS, Secrets
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeModel
from skillup.schema.profile import Profile
from skillup.schema.record import Record, TurnError
from skillup.workspace.full_disk import refuse_full_disk

NO_MODEL = (
    "`{key}` is read by a model, and none is named: write `judge: {{model: …}}` in eval.yaml, "
    "or give --judge-model"
)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What a case does not say of itself."""

    suite_root: Path
    """What its paths are relative to."""
    profile: str
    """The name of the profile that holds it."""


@dataclass(frozen=True, slots=True)
class DeskOptions:
    """Whom a desk may ask, and how."""

    environment: Mapping[str, str]
    """The user's own environment."""
    mask: Callable[[str], str]
    """Hides secrets."""
    profiles: Callable[[str, Path], Profile]
    """A profile by its name, for a suite's root. Raises UsageError if there is none."""
    whereabouts: Callable[[Case], Whereabouts | None] = lambda _: None
    """Of a case that is about to be held; None: of this one they are not known."""
    suite_root: Callable[[Record], Path] = lambda record: Path(record.suite_root)
    """Of the suite that a record's case belongs to; it need not be there any more."""
    secrets: Secrets = NO_SECRETS
    """What nothing of the run may show, nor the raw streams of its agents."""


class JudgeDesk:
    """:class:`skillup.judges.settling.Reader`: models, scripts and agents behind one face.

    async with JudgeDesk(models, options) as desk: …

    It may be entered again, in another event loop too; connections are closed at each exit.
    """

    def __init__(self, models: Models, options: DeskOptions) -> None:
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
        from skillup.judges.whole import problem_of

        known = self._options.whereabouts(case)
        why = self._model_problem(case, known.suite_root if known is not None else Path())
        if why is not None:
            return TurnError(kind="judge", message=self._options.mask(why))
        if known is None:
            return None
        # Nothing is started, so nothing is written to the scratch directory.
        place = self._place(known.suite_root, known.profile, Path(tempfile.gettempdir()))
        return problem_of(case, place)

    async def read(self, inquiry: Inquiry, ledger: Ledger) -> Sequence[CheckResult]:
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

    async def _judge(self, inquiry: Inquiry, ledger: Ledger) -> Sequence[CheckResult]:
        from skillup.judges.whole import read_judge

        with judge_scratch() as scratch:
            return await read_judge(inquiry, ledger, self._place_of(inquiry, scratch))

    async def _checks(self, inquiry: Inquiry, ledger: Ledger) -> Sequence[CheckResult]:
        scripts = [check for check in inquiry.checks if check.key == "script"]
        others = [check for check in inquiry.checks if check.key != "script"]
        of_scripts = iter(await self._run(scripts, inquiry) if scripts else [])
        of_models = iter(await self._ask(others, inquiry, ledger) if others else [])
        return [
            next(of_scripts if check.key == "script" else of_models) for check in inquiry.checks
        ]

    async def _run(self, checks: list[Check], inquiry: Inquiry) -> Sequence[CheckResult]:
        from skillup.judges.whole import read_scripts

        with judge_scratch() as scratch:
            return await read_scripts(checks, inquiry, self._place_of(inquiry, scratch))

    async def _ask(
        self, checks: list[Check], inquiry: Inquiry, ledger: Ledger
    ) -> Sequence[CheckResult]:
        from skillup.judges.reading import read_checks

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

    def _place_of(self, inquiry: Inquiry, scratch: str) -> JudgePlace:
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

    def _defect(self, inquiry: Inquiry, defect: Exception) -> list[CheckResult]:
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
