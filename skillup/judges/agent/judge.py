"""The judge that is an agent: asked as often as wanted, each time in a room of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from skillup.checks.context import one_line
from skillup.checks.scoring import weighted_mean
from skillup.engines.base import Availability, Engine
from skillup.engines.failures import shortened
from skillup.engines.registry import get_engine
from skillup.errors import FullDiskError, RunDirectoryError, SkillupError
from skillup.judges.agent.answer import (
    AgentCriterionVerdict,
    AskedCriteria,
    Quotations,
    answer_schema,
    numbered,
)
from skillup.judges.agent.cache import AgentAnswer, AgentAnswers
from skillup.judges.agent.question import MissingAttachmentError
from skillup.judges.agent.runner import AgentRunner, NoAnswerError, answering, ask, profile_of
from skillup.judges.agent.sandbox import JudgeSandbox, names, set_up, to_install
from skillup.judges.artifacts import JudgedPart, LostFilesError, make_removable
from skillup.judges.scratch import JudgePlace
from skillup.judges.usage import UsageTracker
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from skillup.schema.record import FileState
from skillup.workspace import skill_problem
from skillup.workspace.failures import PreparationError, refuse_full_disk

# From what the agent answered, once or several times, to one result with a child per criterion.

Verdicts = Mapping[str, AgentCriterionVerdict]
Weakness = Callable[[str, bool], str | None]
_REASON_CHARACTERS = 1000
_QUOTE_CHARACTERS = 300


def opinion(
    asked: Sequence[AskedCriteria],
    answers: Sequence[Verdicts],
    threshold: float,
    weakness: Weakness,
    mask: Callable[[str], str],
) -> dict[str, Any]:
    """The fields of the judge's result; the majority of `answers` decides, a tie is no pass.

    `weakness` tells why a quotation supports nothing, or not a pass.
    """
    children = [_child(item, answers, weakness, mask) for item in asked]
    score = round(weighted_mean(children), 6)
    passed = _passes(children, score, threshold)
    unmet = [child for child in children if not child.passed]
    found = f"{len(children) - len(unmet)} of {len(children)} criteria met, score {score:.2f}"
    if not passed:
        why = next((c for c in unmet if c.required), unmet[0] if unmet else None)
        found += f" < {threshold:.2f}" if score < threshold else ""
        found += f"; {why.name}: {why.found}" if why is not None else ""
    fields: dict[str, Any] = {
        "passed": passed,
        "score": score,
        "found": found,
        "children": children,
    }
    if len(answers) > 1:
        fields |= _agreement(asked, answers, threshold, passed)
    return fields


def _child(
    item: AskedCriteria,
    answers: Sequence[Verdicts],
    weakness: Weakness,
    mask: Callable[[str], str],
) -> CheckResult:
    given = [answer[item.id] for answer in answers]
    votes = [float(verdict.passed) for verdict in given]
    passed = sum(votes) * 2 > len(votes)
    shown = next((verdict for verdict in given if verdict.passed == passed), given[0])
    criterion = item.criterion
    child = CheckResult(
        name=criterion.outcome if criterion.id is None else f"{item.id}: {criterion.outcome}",
        kind="criterion",
        passed=passed,
        score=float(passed),
        weight=criterion.weight,
        required=criterion.required,
        role="judge",
        expected=criterion.outcome,
        found=shortened(one_line(mask(shown.reason)), _REASON_CHARACTERS),
        excerpt=" / ".join(_quote(quote, mask) for quote in shown.evidence),
        notes=[
            f"a quotation does not support this: {why}: {_quote(quote, mask)}"
            for quote in shown.evidence
            if (why := weakness(quote, passed)) is not None
        ],
    )
    if passed and not shown.evidence:
        child = child.model_copy(update={"notes": ["the judge quotes nothing for this pass"]})
    if len(votes) == 1:
        return child
    agreed = sum(vote == float(passed) for vote in votes) / len(votes)
    notes = list(child.notes)
    if agreed < 1:
        notes.append(f"the judge disagreed with itself: {sum(votes):g} of {len(votes)} said yes")
    return child.model_copy(update={"votes": votes, "agreement": agreed, "notes": notes})


def _agreement(
    asked: Sequence[AskedCriteria], answers: Sequence[Verdicts], threshold: float, passed: bool
) -> dict[str, Any]:
    """The score each time, and the share of the times that come to the same verdict."""
    votes: list[float] = []
    same = 0
    for answer in answers:
        alone = [_child(item, [answer], lambda *_: None, str) for item in asked]
        votes.append(round(weighted_mean(alone), 6))
        same += _passes(alone, votes[-1], threshold) == passed
    notes = [] if same == len(answers) else [f"{same} of {len(answers)} answers say the same"]
    return {"votes": votes, "agreement": same / len(answers), "notes": notes}


def _passes(children: Sequence[CheckResult], score: float, threshold: float) -> bool:
    return score >= threshold and all(c.passed for c in children if c.required)


def _quote(text: str, mask: Callable[[str], str]) -> str:
    return shortened(one_line(mask(text)), _QUOTE_CHARACTERS)


DEFAULT_SECONDS = 300.0
_NO_CRITERIA = "it has no `criteria`: say what it is to look at"
_NO_SCRIPT = (
    "its engine is the scripted one: say in the judge's `scripted` what it answers, "
    "or name another `engine`"
)
ReadFile = Callable[[FileState], bytes | None]


def problem_of_agent(judge: JudgeConfig, place: JudgePlace) -> str | None:
    """Why it could not judge, as far as that is known beforehand; no model is asked anything."""
    if not judge.criteria:
        return _NO_CRITERIA
    try:
        profile = profile_of(judge, place)
        engine = get_engine(profile.engine)
        for ref in judge.skills:
            wrong = skill_problem(to_install(ref, place.suite_root).source_dir)
            if wrong is not None:
                return f"skill {ref.path}: {wrong}"
    except SkillupError as problem:
        return problem.message
    except PreparationError as problem:
        return str(problem)
    for item in judge.context.attachments if judge.context is not None else ():
        if not (place.suite_root / item.path).is_file():
            return f"there is no attachment {place.suite_root / item.path}"
    if profile.engine == "scripted" and judge.scripted is None:
        return _NO_SCRIPT
    # Without an engine of its own it is the trial's, which the run itself asks whether it works.
    found = None if judge.engine is None else _checked(engine, profile, place)
    return found.problem.message if found is not None and found.problem is not None else None


def _checked(engine: Engine, profile: Profile, place: JudgePlace) -> Availability:
    """`engine.check`, from code that an event loop may be running around."""
    answers: list[Availability] = []

    def look() -> None:
        answers.append(anyio.run(engine.check, profile, place.environment))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return answers[0]


async def judge_by_agent(
    judge: JudgeConfig,
    subject: JudgedPart,
    read_file: ReadFile,
    ledger: UsageTracker,
    place: JudgePlace,
) -> dict[str, Any]:
    """The fields of its result: `error` if it could not judge, else verdict, score and children.

    Raises RunDirectoryError where the run cannot keep its answer, and FullDiskError.
    """
    if not judge.criteria:
        return {"error": _NO_CRITERIA}
    notes = [*subject.notes]
    try:
        answers = await _answers(judge, subject, read_file, ledger, place, notes)
    except (NoAnswerError, LostFilesError, MissingAttachmentError, PreparationError) as problem:
        return {"error": place.mask(str(problem)), "notes": _once(notes, place)}
    except (RunDirectoryError, FullDiskError):
        raise
    except SkillupError as problem:
        return {"error": place.mask(problem.message), "notes": _once(notes, place)}
    except OSError as problem:
        refuse_full_disk(problem, place.scratch)
        return {"error": place.mask(f"the judge's room: {problem}"), "notes": _once(notes, place)}
    threshold = 1.0 if judge.pass_threshold is None else judge.pass_threshold
    weakness = Quotations(subject, read_file, place.mask).weakness
    said = await anyio.to_thread.run_sync(
        partial(opinion, numbered(judge.criteria), answers, threshold, weakness, place.mask)
    )
    return {**said, "notes": [*said.get("notes", ()), *_once(notes, place)]}


async def _answers(
    judge: JudgeConfig,
    subject: JudgedPart,
    read_file: ReadFile,
    ledger: UsageTracker,
    place: JudgePlace,
    notes: list[str],
) -> list[Verdicts]:
    asked = numbered(judge.criteria)
    kept = await anyio.to_thread.run_sync(AgentAnswers, judge, asked, subject, place)
    answers: list[Verdicts] = []
    for sample in range(judge.repeat):
        known = await anyio.to_thread.run_sync(kept.read, sample)
        if known is not None:
            answer, stored = known
            own = ledger.goes_on and await anyio.to_thread.run_sync(kept.take_over, sample, stored)
            ledger.add(stored.model, stored.usage, stored.cost_usd, cached=not own)
        else:
            said = await _asked(judge, subject, read_file, ledger, place, notes, sample)
            answer = await anyio.to_thread.run_sync(kept.keep, sample, said, ledger.of_grade)
        answers.append(answer.verdicts)
        notes.extend(answer.notes)
    return answers


async def _asked(
    judge: JudgeConfig,
    subject: JudgedPart,
    read_file: ReadFile,
    ledger: UsageTracker,
    place: JudgePlace,
    notes: list[str],
    sample: int,
) -> AgentAnswer:
    """The agent's answer, in a room of its own; where it has none, what was to note is in `notes`.

    Raises as :func:`set_up` and :func:`ask` do, and SkillupError for its profile.
    """
    asked = numbered(judge.criteria)
    profile = profile_of(judge, place)
    engine = get_engine(profile.engine)
    if profile.engine == "scripted" and judge.scripted is None:
        raise NoAnswerError(_NO_SCRIPT)
    took = UsageTracker()
    room = await anyio.to_thread.run_sync(set_up, judge, subject, read_file, place, engine)
    found: list[str] = []
    verdicts: Verdicts | None = None
    try:
        sitter = AgentRunner(
            engine,
            answering(profile, answer_schema(asked), room.root, own_skills=bool(judge.skills)),
            judge.scripted,
            judge.timeout_seconds or DEFAULT_SECONDS,
            place.pacing,
            place.secrets,
        )
        verdicts = await ask(sitter, room, asked, place.environment, took, sample)
    finally:
        ledger.take(took)
        with anyio.CancelScope(shield=True):
            found.extend(await anyio.to_thread.run_sync(_notes_of, room))
        if verdicts is None:
            notes.extend(found)
    return AgentAnswer(verdicts, tuple(found), took)


def _notes_of(room: JudgeSandbox) -> list[str]:
    """What was not shown, and what the judge did to its copy; it can be removed from now on."""
    notes = [*room.copy.notes(), *room.materials.notes]
    changed = room.changed()
    if changed:
        notes.append(f"the judge changed its copy of what it judged: {names(changed)}")
    for name in ("workspace", "judge"):
        if (room.desk / name).is_dir():
            make_removable(room.desk / name)
    return notes


def _once(notes: list[str], place: JudgePlace) -> list[str]:
    return [place.mask(note) for note in dict.fromkeys(notes)]
