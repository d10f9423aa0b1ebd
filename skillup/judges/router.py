"""Where requests arrive: each goes to whoever can answer it, a model, a script or an agent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from skillup.errors import SkillupError
from skillup.judges.evaluate import JudgeRequest
from skillup.judges.llm.checks import READ_BY_MODEL, read_checks
from skillup.judges.llm.reading import defect_message
from skillup.judges.models.client import Models
from skillup.judges.models.endpoint import embedding_model
from skillup.judges.programs import judge_by_program, problem_of, read_scripts
from skillup.judges.scratch import JudgePlace, judge_scratch
from skillup.judges.usage import UsageTracker
from skillup.load.model import all_checks
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.schema.case import Case
from skillup.schema.checks import CheckKeys
from skillup.schema.grade import CheckResult
from skillup.schema.profile import Profile
from skillup.schema.record import Record, TurnError
from skillup.workspace.failures import refuse_full_disk

# Which models a case needs, known before anything is asked.

NO_MODEL = (
    "`{key}` is read by a model, and none is named: write `judge: {{model: …}}` in eval.yaml, "
    "or give --judge-model"
)


def checks_of(case: Case) -> Iterator[CheckKeys]:
    """Every check of `case`, wherever it stands; checks within checks and expected outputs too."""
    yield from (check for _, check, _ in all_checks(case))
    yield from case.checks()[len(case.assertions) :]
    for turn in case.input.all_turns():
        yield from turn.checks()[len(turn.assertions) :]


def first_read(case: Case) -> CheckKeys | None:
    """The first check of `case` that the judge's model reads; None: there is none."""
    for check in checks_of(case):
        embedded = check.similar is not None and check.similar.embedding_model is not None
        if not embedded and any(key in READ_BY_MODEL for key, _ in check.given()):
            return check
    return None


@dataclass(frozen=True, slots=True)
class CaseLocation:
    """What a case does not say of itself."""

    suite_root: Path
    """What its paths are relative to."""
    profile: str
    """The name of the profile that runs it."""


@dataclass(frozen=True, slots=True)
class RouterOptions:
    """Whom a router may ask, and how."""

    environment: Mapping[str, str]
    """The user's own environment."""
    mask: Callable[[str], str]
    """Hides secrets."""
    profiles: Callable[[str, Path], Profile]
    """A profile by its name, for a suite's root. Raises UsageError if there is none."""
    case_location: Callable[[Case], CaseLocation | None] = lambda _: None
    """Of a case that is about to be run; None: of this one they are not known."""
    suite_root: Callable[[Record], Path] = lambda record: Path(record.suite_root)
    """Of the suite that a record's case belongs to; it need not be there any more."""
    secrets: Secrets = NO_SECRETS
    """What nothing of the run may show, nor the raw streams of its agents."""


class JudgeRouter:
    """:class:`skillup.judges.evaluate.Judge`: models, scripts and agents behind one face.

    async with JudgeRouter(models, options) as judge: …

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
        location = self._options.case_location(case)
        why = self._model_problem(case, location.suite_root if location is not None else Path())
        if why is not None:
            return TurnError(kind="judge", message=self._options.mask(why))
        if location is None:
            return None
        # Nothing is started, so nothing is written to the scratch directory.
        scratch = Path(tempfile.gettempdir())
        return problem_of(case, self._place(location.suite_root, location.profile, scratch))

    def _model_problem(self, case: Case, suite_root: Path) -> str | None:
        model = case.judge_model
        for check in checks_of(case):
            if check.similar is not None and check.similar.embedding_model is not None:
                wanted = embedding_model(check.similar.embedding_model, model)
                why = self.models.problem(wanted, suite_root, embeddings=True)
                if why is not None:
                    return why
        read = first_read(case)
        if read is None:
            return None
        if model is None:
            return NO_MODEL.format(key=next(key for key, _ in read.given()))
        return self.models.problem(model, suite_root)

    async def answer(self, request: JudgeRequest, usage: UsageTracker) -> Sequence[CheckResult]:
        """One result for each of the request's checks, in order; or that of a whole judge.

        Raises nothing but RunDirectoryError, where the run cannot keep the answers, and
        FullDiskError.
        """
        scripts = [check for check in request.checks if check.key == "script"]
        read = [check for check in request.checks if check.key != "script"]
        try:
            if request.judge is not None or scripts:
                with judge_scratch() as scratch:
                    record = request.context.record
                    root = self._options.suite_root(record)
                    place = self._place(root, record.engine.profile, Path(scratch).resolve())
                    if request.judge is not None:
                        return [await judge_by_program(request, usage, place)]
                    of_scripts = iter(await read_scripts(replace(request, checks=scripts), place))
            else:
                of_scripts = iter(())
            of_models = iter(await self._read(replace(request, checks=read), usage) if read else ())
            return [
                next(of_scripts if check.key == "script" else of_models) for check in request.checks
            ]
        except SkillupError:
            raise
        except Exception as defect:  # noqa: BLE001  a defect of ours must not become a verdict
            if isinstance(defect, OSError):
                refuse_full_disk(defect)
            error = self._options.mask(defect_message(defect))
            kinds = [check.key for check in request.checks]
            if request.judge is not None:
                kinds = [request.judge.type or "judge"]
            return [
                CheckResult(
                    name=kind, kind=kind, passed=False, score=0.0, role=request.role, error=error
                )
                for kind in kinds
            ]

    async def _read(self, request: JudgeRequest, usage: UsageTracker) -> list[CheckResult]:
        record = request.context.record
        place = (record.run_id, record.suite_root, record.case_id, record.engine.profile)
        trial = "\n".join([*place, record.variant, str(record.trial), str(record.attempt)])
        asker = self.models.seen_from(
            self._options.suite_root(record),
            suite=record.suite_root,
            trial=trial,
            of_grade=usage.of_grade,
            resumed=usage.resumed,
        )
        return await read_checks(request, asker, usage)

    def _place(self, suite_root: Path, own_profile: str, scratch: Path) -> JudgePlace:
        return JudgePlace(
            environment=self._options.environment,
            mask=self._options.mask,
            scratch=scratch,
            profiles=lambda name: self._options.profiles(name or own_profile, suite_root),
            suite_root=suite_root,
            rate_limiter=self.models.rate_limiter,
            answers=self.models.answers,
            secrets=self._options.secrets,
        )
