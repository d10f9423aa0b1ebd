"""The judge that is an agent: asked as often as wanted, each time in a room of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from skillup.engines.base import Availability, Engine
from skillup.engines.registry import get_engine
from skillup.errors import FullDiskError, RunDirectoryError, SkillupError
from skillup.judges.agents.asking import NoAnswerError, Sitter, ask
from skillup.judges.agents.criteria import answer_schema, numbered
from skillup.judges.agents.kept import Answer, KeptAnswers
from skillup.judges.agents.materials import MissingAttachmentError
from skillup.judges.agents.opinion import Verdicts, opinion
from skillup.judges.agents.profile import answering, profile_of
from skillup.judges.agents.quotations import Quotations
from skillup.judges.agents.room import Room, names, set_up, to_install
from skillup.judges.exhibits.subject import Exhibited
from skillup.judges.exhibits.workspace_copy import LostFilesError, make_removable
from skillup.judges.ledger import Ledger
from skillup.judges.place import JudgePlace
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from skillup.schema.record import FileState
from skillup.workspace import skill_problem
from skillup.workspace.failure import PreparationError
from skillup.workspace.full_disk import refuse_full_disk

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
    subject: Exhibited,
    read_file: ReadFile,
    ledger: Ledger,
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
    subject: Exhibited,
    read_file: ReadFile,
    ledger: Ledger,
    place: JudgePlace,
    notes: list[str],
) -> list[Verdicts]:
    asked = numbered(judge.criteria)
    kept = await anyio.to_thread.run_sync(KeptAnswers, judge, asked, subject, place)
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
    subject: Exhibited,
    read_file: ReadFile,
    ledger: Ledger,
    place: JudgePlace,
    notes: list[str],
    sample: int,
) -> Answer:
    """The agent's answer, in a room of its own; where it has none, what was to note is in `notes`.

    Raises as :func:`set_up` and :func:`ask` do, and SkillupError for its profile.
    """
    asked = numbered(judge.criteria)
    profile = profile_of(judge, place)
    engine = get_engine(profile.engine)
    if profile.engine == "scripted" and judge.scripted is None:
        raise NoAnswerError(_NO_SCRIPT)
    took = Ledger()
    room = await anyio.to_thread.run_sync(set_up, judge, subject, read_file, place, engine)
    found: list[str] = []
    verdicts: Verdicts | None = None
    try:
        sitter = Sitter(
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
    return Answer(verdicts, tuple(found), took)


def _notes_of(room: Room) -> list[str]:
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
