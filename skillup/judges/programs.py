"""Judges that are programs: scripts, and agents.

Nothing is raised for what goes wrong: a judge that could not judge is a result with an `error`,
which makes the case an ERROR of kind `judge`.
"""

from __future__ import annotations

from skillup.checks import describe
from skillup.checks.context import beginning
from skillup.checks.describe import expected, key_and_spec
from skillup.judges.agent.judge import DEFAULT_SECONDS as AGENT_SECONDS
from skillup.judges.agent.judge import judge_by_agent, problem_of_agent
from skillup.judges.artifacts import NothingToJudge, judged_part
from skillup.judges.evaluate import JudgeRequest
from skillup.judges.scratch import JudgePlace
from skillup.judges.script import DEFAULT_SECONDS as SCRIPT_SECONDS
from skillup.judges.script import ScriptProblemError, command_of, judge_by_script
from skillup.judges.usage import UsageTracker
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from skillup.schema.patterns import outside_suite
from skillup.schema.record import TurnError
from skillup.schema.templates import UnresolvedNameError, fill
from skillup.trial.artifacts import script_paths


def problem_of(case: Case, place: JudgePlace) -> TurnError | None:
    """What is known before the first turn: a script that is not there, an agent that is not."""
    for path in script_paths(case):
        outside = outside_suite(path)
        if outside is not None:
            return _judge_error(place, f"{outside}: put it into the suite")
        try:
            command_of(place.suite_root / path)
        except ScriptProblemError as problem:
            return _judge_error(place, str(problem))
    for judge in case.all_judges():
        if judge.type == "agent_judge" and (why := problem_of_agent(judge, place)) is not None:
            return _judge_error(place, f"{judge.id or 'agent_judge'}: {why}")
    return None


def _judge_error(place: JudgePlace, message: str) -> TurnError:
    return TurnError(kind="judge", message=place.mask(message))


async def judge_by_program(
    request: JudgeRequest, usage: UsageTracker, place: JudgePlace
) -> CheckResult:
    """What a `script` or `agent_judge` (`request.judge`) says of the conversation."""
    judge, context = request.judge, request.context
    assert judge is not None
    agent = judge.type == "agent_judge"
    subject = judged_part(context)
    blank = CheckResult(
        name=judge.id or ("agent_judge" if agent else f"script: {judge.script_path}"),
        kind=judge.type or "script",
        passed=False,
        score=0.0,
        role="judge",
        scope=subject.label,
        expected=judge.script_path or "",
    )
    if isinstance(subject, NothingToJudge):
        return _nothing(blank, subject)
    seconds = judge.timeout_seconds
    case, limit = request.case, request.case.timeout_seconds
    if case.timeout_covers_judges and limit is not None:
        left = limit - context.record.duration_ms / 1000
        if left <= 0:
            error = f"the case's {limit:g} s were used up before it; raise them"
            return blank.model_copy(update={"error": error})
        seconds = min(seconds or (AGENT_SECONDS if agent else SCRIPT_SECONDS), left)
    if not agent:
        assert judge.script_path is not None
        return await judge_by_script(
            judge.script_path,
            subject,
            context.read_file,
            place,
            blank,
            timeout_seconds=seconds,
            pass_threshold=1.0 if judge.pass_threshold is None else judge.pass_threshold,
            exit_code_decides=judge.exit_code_decides,
        )
    try:
        variables = context.record.variables_after(None)
        criteria = fill("criteria", judge.criteria, variables)
    except UnresolvedNameError as missing:
        return blank.model_copy(update={"error": str(missing), "error_kind": "template"})
    judge = judge.model_copy(update={"timeout_seconds": seconds, "criteria": criteria})
    outcomes = beginning("; ".join(criterion.outcome for criterion in judge.criteria))
    blank = blank.model_copy(update={"expected": outcomes})
    return await judge_by_agent(judge, subject, context.read_file, usage, place, blank)


async def read_scripts(request: JudgeRequest, place: JudgePlace) -> list[CheckResult]:
    """A result for each of the request's `script` checks, in order."""
    subject = judged_part(request.context)
    results = []
    for check in request.checks:
        key, spec = key_and_spec(check)
        blank = CheckResult(
            name=check.name or describe(check),
            kind=key,
            passed=False,
            score=0.0,
            weight=check.weight,
            required=check.required,
            role=request.role,
            scope=subject.label,
            expected=expected(key, spec),
        )
        if isinstance(subject, NothingToJudge):
            results.append(_nothing(blank, subject))
            continue
        read_file, seconds = request.context.read_file, spec.timeout_seconds
        results.append(
            await judge_by_script(
                spec.path, subject, read_file, place, blank, timeout_seconds=seconds
            )
        )
    return results


def _nothing(blank: CheckResult, subject: NothingToJudge) -> CheckResult:
    if subject.broken:
        return blank.model_copy(update={"error": subject.why})
    return blank.model_copy(update={"found": subject.why, "assertable": False})
