"""Where requests arrive: each goes to whoever can answer it, a model, a script or an agent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from skillup.checks.context import beginning
from skillup.dataclass import frozen
from skillup.errors import SkillupError
from skillup.judges.agent import DEFAULT_SECONDS as AGENT_SECONDS
from skillup.judges.agent import judge_by_agent, problem_of_agent
from skillup.judges.artifacts import CannotJudgeError, JudgedPart, JudgePlace, judged_part
from skillup.judges.evaluate import JudgeRequest, UsageTracker, blank_of, blank_result
from skillup.judges.llm import read_checks
from skillup.judges.models import Models
from skillup.judges.reading import NAME_ONE
from skillup.judges.script import DEFAULT_SECONDS as SCRIPT_SECONDS
from skillup.judges.script import command_of, judge_by_script
from skillup.load.model import judge_models, model_for, read_by_model
from skillup.schema.base import outside_suite
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from skillup.schema.templates import UnresolvedNameError, fill
from skillup.trial.artifacts import script_paths
from skillup.workspace.disk import refuse_full_disk


@frozen
class JudgeRouter:
    """:class:`skillup.judges.evaluate.Judge`; may be entered again, in another event loop too."""

    models: Models
    profiles: Callable[[str, Path], Profile]  # By name, for a suite's root. Raises UsageError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.models.close()

    async def problem(self, case: Case, root: Path, profile: str) -> TurnError | None:
        """Why `case` could not be judged, found before its first turn; nobody is asked.

        It is run by `profile`, in a suite of this `root`.
        """
        why = next(self._problems(case, root), None)
        # Nothing is started, so nothing is written to the scratch directory.
        place = self._place(root, profile, Path(tempfile.gettempdir()))
        for judge in case.all_judges():
            if why is None and judge.type == "agent_judge":
                wrong = await problem_of_agent(judge, place)
                why = wrong and f"{judge.id or 'agent_judge'}: {wrong}"
        return None if why is None else TurnError(kind="judge", message=self.models.mask(why))

    def _problems(self, case: Case, root: Path) -> Iterator[str]:
        """No model is named, or none can be asked; a script is not there."""
        for loc, check in read_by_model(case):
            if model_for(case, check) is None:
                yield f"`{loc[-1]}` is read by a model, and none is named: {NAME_ONE}"
        yield from filter(None, (self.models.problem(one, root) for one in judge_models(case)))
        for path in script_paths(case):
            if outside := outside_suite(path):
                yield f"{outside}: put it into the suite"
            try:
                command_of(root / path)
            except (CannotJudgeError, OSError) as problem:
                yield str(problem)

    async def answer(self, request: JudgeRequest, usage: UsageTracker) -> Sequence[CheckResult]:
        first = request.checks[0].key if request.checks else ""
        record = request.context.record
        root = Path(record.suite_root)
        try:
            if request.judge is None and first != "script":
                return await read_checks(request, self.models.asker(root), usage)
            # What a judge leaves there, whoever owns it, is no reason to lose the verdict.
            with tempfile.TemporaryDirectory(
                prefix="skillup-judge-", ignore_cleanup_errors=True
            ) as scratch:
                place = self._place(root, record.engine.profile, Path(scratch).resolve())
                async with self.models.programs:
                    return await judge_by_program(request, usage, place)
        except Exception as defect:  # of ours: it must not become a verdict
            while isinstance(defect, ExceptionGroup):  # of a task group: what is in it says more
                defect = defect.exceptions[0]
            if isinstance(defect, SkillupError):  # as where the run cannot keep an answer: it ends
                raise defect from None
            if isinstance(defect, OSError):
                refuse_full_disk(defect)
            words = f"{type(defect).__name__}: {' '.join(str(defect).split())}"
            error = self.models.mask(f"skillup itself failed: {words}; please report it")
            whole = request.judge
            kinds = [whole.type or "judge"] if whole else [check.key for check in request.checks]
            return [blank_result(kind, request.role, error=error) for kind in kinds]

    def _place(self, suite_root: Path, own_profile: str, scratch: Path) -> JudgePlace:
        def profiles(name: str | None) -> Profile:
            return self.profiles(name or own_profile, suite_root)

        return JudgePlace(self.models, scratch, profiles, suite_root)


async def judge_by_program(
    request: JudgeRequest, usage: UsageTracker, place: JudgePlace
) -> list[CheckResult]:
    """What `script` checks, or a judge that is a script or an agent, say of a turn or all."""
    part, results = judged_part(request.context), []
    if request.judge is not None:
        return [await _whole_judge(request.judge, request.case, part, usage, place)]
    for check in request.checks:
        assert check.script is not None
        path, seconds = check.script.path, check.script.timeout_seconds
        judge = JudgeConfig(type="script", script_path=path, timeout_seconds=seconds)
        blank = blank_of(check, request.role, part.label)
        results.append(await judge_by_script(part, place, blank, judge))
    return results


async def _whole_judge(
    judge: JudgeConfig, case: Case, part: JudgedPart, usage: UsageTracker, place: JudgePlace
) -> CheckResult:
    record = part.record
    agent, path = judge.type == "agent_judge", judge.script_path or ""
    name = judge.id or ("agent_judge" if agent else f"script: {path}")
    kind = judge.type or "script"
    blank = blank_result(kind, "judge", name=name, scope=part.label, expected=path)
    if part.nothing is not None:
        return blank.model_copy(update=part.nothing)
    seconds, limit = judge.timeout_seconds, case.timeout_seconds
    if case.timeout_covers_judges and limit is not None:
        left = limit - record.duration_ms / 1000
        if left <= 0:
            error = f"the case's {limit:g} s were used up before it; raise them"
            return blank.model_copy(update={"error": error})
        seconds = min(seconds or (AGENT_SECONDS if agent else SCRIPT_SECONDS), left)
    judge = judge.model_copy(update={"timeout_seconds": seconds})
    if not agent:
        return await judge_by_script(part, place, blank, judge)
    try:
        criteria = fill("criteria", judge.criteria, record.variables_after(None))
    except UnresolvedNameError as missing:
        return blank.model_copy(update={"error": str(missing), "error_kind": "template"})
    outcomes = beginning("; ".join(criterion.outcome for criterion in criteria))
    judge = judge.model_copy(update={"criteria": criteria})
    blank = blank.model_copy(update={"expected": outcomes})
    return await judge_by_agent(judge, part, usage, place, blank)
