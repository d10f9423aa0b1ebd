"""Judges that are programs: scripts, and agents.

Nothing is raised for what goes wrong: a judge that could not judge is a result with an `error`,
which makes the case an ERROR of kind `judge`.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillup.checks import describe
from skillup.checks.context import beginning
from skillup.checks.describe import expected, key_and_spec
from skillup.judges.agent import judge_by_agent, problem_of_agent
from skillup.judges.agent.judge import DEFAULT_SECONDS as AGENT_SECONDS
from skillup.judges.artifacts import JudgedPart, NothingToJudge, judged_part
from skillup.judges.evaluate import Judgement
from skillup.judges.scratch import JudgePlace
from skillup.judges.script import judge_by_script
from skillup.judges.script.output import ScriptVerdict
from skillup.judges.script.run import DEFAULT_SECONDS as SCRIPT_SECONDS
from skillup.judges.script.run import ScriptProblemError, command_of
from skillup.judges.usage import UsageTracker
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.schema.patterns import outside_suite
from skillup.schema.record import Record, TurnError
from skillup.schema.templates import UnresolvedNameError, fill
from skillup.trial.artifacts import script_paths


def problem_of(case: Case, place: JudgePlace) -> TurnError | None:
    """What is known before the first turn: a script that is not there, an agent that is not."""
    for path in script_paths(case):
        outside = outside_suite(path)
        if outside is not None:
            message = place.mask(f"{outside}: put it into the suite")
            return TurnError(kind="judge", message=message)
        try:
            command_of(place.suite_root / path)
        except ScriptProblemError as problem:
            return TurnError(kind="judge", message=place.mask(str(problem)))
    for judge in case.all_judges():
        if judge.type == "agent_judge":
            why = problem_of_agent(judge, place)
            if why is not None:
                name = judge.id or "agent_judge"
                return TurnError(kind="judge", message=place.mask(f"{name}: {why}"))
    return None


async def judge_by_program(
    inquiry: Judgement, ledger: UsageTracker, place: JudgePlace
) -> list[CheckResult]:
    """What a `script` or `agent_judge` (`inquiry.judge`) says of the conversation; one result."""
    judge = inquiry.judge
    assert judge is not None
    judge, used_up = _within_the_case(judge, inquiry)
    subject = judged_part(inquiry.context)
    if judge.type == "agent_judge":
        name = judge.id or "agent_judge"
        wanted = _outcomes(judge)
    else:
        name, wanted = judge.id or f"script: {judge.script_path}", judge.script_path or ""
    blank = CheckResult(
        name=name,
        kind=judge.type or "script",
        passed=False,
        score=0.0,
        role="judge",
        scope=subject.label,
        expected=wanted,
    )
    if isinstance(subject, NothingToJudge):
        return [_nothing(blank, subject)]
    if used_up:
        return [blank.model_copy(update={"error": used_up})]
    if judge.type == "agent_judge":
        try:
            judge = _filled_in(judge, inquiry.context.record)
        except UnresolvedNameError as missing:
            return [blank.model_copy(update={"error": str(missing), "error_kind": "template"})]
        read_file = inquiry.context.read_file
        said = await judge_by_agent(judge, subject, read_file, ledger, place)
        children = [
            child.model_copy(update={"scope": subject.label}) for child in said.get("children", ())
        ]
        update = {"expected": _outcomes(judge), **said, "children": children}
        return [blank.model_copy(update=update)]
    return [_filled(blank, await _by_script(judge, subject, inquiry, place))]


def _outcomes(judge: JudgeConfig) -> str:
    return beginning("; ".join(criterion.outcome for criterion in judge.criteria))


def _filled_in(judge: JudgeConfig, record: Record) -> JudgeConfig:
    """The judge with its criteria filled in. Raises UnresolvedNameError."""
    variables = record.variables_after(None)
    return judge.model_copy(update={"criteria": fill("criteria", judge.criteria, variables)})


def _within_the_case(judge: JudgeConfig, inquiry: Judgement) -> tuple[JudgeConfig, str]:
    """`judge` with no more time than its case has left; and why it has none, if so."""
    record = inquiry.context.record
    case = inquiry.case
    if case is None or not case.timeout_covers_judges or case.timeout_seconds is None:
        return judge, ""
    left = case.timeout_seconds - record.duration_ms / 1000
    if left <= 0:
        return judge, f"the case's {case.timeout_seconds:g} s were used up before it; raise them"
    usual = AGENT_SECONDS if judge.type == "agent_judge" else SCRIPT_SECONDS
    seconds = min(judge.timeout_seconds or usual, left)
    return judge.model_copy(update={"timeout_seconds": seconds}), ""


async def read_scripts(
    checks: Sequence[Check], inquiry: Judgement, place: JudgePlace
) -> list[CheckResult]:
    """A result for each of the `script` checks, in order."""
    subject = judged_part(inquiry.context)
    results = []
    for check in checks:
        key, spec = key_and_spec(check)
        blank = CheckResult(
            name=check.name or describe(check),
            kind=key,
            passed=False,
            score=0.0,
            weight=check.weight,
            required=check.required,
            role=inquiry.role,
            scope=subject.label,
            expected=expected(key, spec),
        )
        if isinstance(subject, NothingToJudge):
            results.append(_nothing(blank, subject))
            continue
        verdict = await judge_by_script(
            spec.path,
            subject,
            inquiry.context.read_file,
            place,
            timeout_seconds=spec.timeout_seconds,
        )
        results.append(_filled(blank, verdict))
    return results


async def _by_script(
    judge: JudgeConfig, subject: JudgedPart, inquiry: Judgement, place: JudgePlace
) -> ScriptVerdict:
    assert judge.script_path is not None
    return await judge_by_script(
        judge.script_path,
        subject,
        inquiry.context.read_file,
        place,
        timeout_seconds=judge.timeout_seconds,
        pass_threshold=1.0 if judge.pass_threshold is None else judge.pass_threshold,
        exit_code_decides=judge.exit_code_decides,
    )


def _nothing(blank: CheckResult, subject: NothingToJudge) -> CheckResult:
    if subject.broken:
        return blank.model_copy(update={"error": subject.why})
    return blank.model_copy(update={"found": subject.why, "assertable": False})


def _filled(blank: CheckResult, verdict: ScriptVerdict) -> CheckResult:
    return blank.model_copy(
        update={
            "passed": verdict.passed,
            "score": verdict.score,
            "found": verdict.found,
            "error": verdict.error,
            "children": [
                child.model_copy(update={"role": blank.role, "scope": blank.scope})
                for child in verdict.children
            ],
            "notes": list(verdict.notes),
        }
    )
