"""The judge that is an agent: asked as often as wanted, each time in a sandbox of its own.

It works in a directory that holds ``workspace/`` and ``judge/``, both read-only: above the copy of
the workspace, so that what the agent under test left for agents to find (instructions, settings,
skills) is not found as the judge's own.

Its answers are kept in the run. An answer is that to the same question of the same trial: criteria,
what the judge is shown, its configuration, and the conversation and files it is about. Thresholds
and weights are not part of it, and skills of the judge count by their paths alone.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from skillup.engines.base import Availability, Engine, TrialContext
from skillup.engines.registry import get_engine
from skillup.errors import FullDiskError, RunDirectoryError, SkillupError
from skillup.judges.agent.answer import AgentAnswer, AskedCriteria, answer_schema, numbered
from skillup.judges.agent.question import (
    Materials,
    MissingAttachmentError,
    question,
    write_materials,
)
from skillup.judges.agent.runner import AgentRunner, NoAnswerError, answering, profile_of
from skillup.judges.answers import Quotations, in_order_of_weight
from skillup.judges.artifacts import (
    JudgedPart,
    LostFilesError,
    WorkspaceCopy,
    as_json,
    copy_of,
    diff_lines,
    file_list,
    listed,
    make_read_only,
    make_removable,
    texts_of,
)
from skillup.judges.material import Part
from skillup.judges.models.cache import CachedQuestion, StoredAnswer, as_stored, key_of
from skillup.judges.models.question import MalformedAnswerError, read_answer
from skillup.judges.scratch import JudgePlace
from skillup.judges.usage import UsageTracker
from skillup.judges.voting import Facet, by_weight, criteria_met, result_of
from skillup.process import new_marker
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig, JudgeContext, SkillRef
from skillup.schema.profile import Profile
from skillup.schema.record import FileState, Usage, total_cost, total_usage
from skillup.workspace import SkillToInstall, install_skill, skill_name, skill_problem
from skillup.workspace.failures import PreparationError, refuse_full_disk
from skillup.workspace.trees import list_tree, shown

DEFAULT_SECONDS = 300.0
_NO_CRITERIA = "it has no `criteria`: say what it is to look at"
_NO_SCRIPT = (
    "its engine is the scripted one: say in the judge's `scripted` what it answers, "
    "or name another `engine`"
)
_GIVEN = {"model", "base_url", "context", "skills", "scripted"}
"""What of its configuration a judge, or the engine that plays it, is given as it is written."""
_TEXT_BYTES = 4 << 20
ReadFile = Callable[[FileState], bytes | None]


def problem_of_agent(judge: JudgeConfig, place: JudgePlace) -> str | None:
    """Why it could not judge, as far as that is known beforehand; no model is asked anything."""
    if not judge.criteria:
        return _NO_CRITERIA
    try:
        profile = profile_of(judge, place)
        engine = get_engine(profile.engine)
        for ref in judge.skills:
            wrong = skill_problem(_to_install(ref, place.suite_root).source_dir)
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
    work = partial(anyio.run, engine.check, profile, place.environment)
    thread = threading.Thread(target=lambda: answers.append(work()))
    thread.start()
    thread.join()
    return answers[0]


async def judge_by_agent(
    judge: JudgeConfig,
    subject: JudgedPart,
    read_file: ReadFile,
    usage: UsageTracker,
    place: JudgePlace,
    blank: CheckResult,
) -> CheckResult:
    """`blank` with what the agent says, or an `error` if it could not judge.

    Raises RunDirectoryError where the run cannot keep its answer, and FullDiskError.
    """
    agent = _AgentJudge(judge, subject, read_file, usage, place)
    error = ""
    try:
        if not judge.criteria:
            raise NoAnswerError(_NO_CRITERIA)
        answers = [await agent.answer(sample) for sample in range(judge.repeat)]
    except (NoAnswerError, LostFilesError, MissingAttachmentError, PreparationError) as problem:
        error = str(problem)
    except (RunDirectoryError, FullDiskError):
        raise
    except SkillupError as problem:
        error = problem.message
    except OSError as problem:
        refuse_full_disk(problem, place.scratch)
        error = f"the judge's sandbox: {problem}"
    notes = [place.mask(note) for note in dict.fromkeys([*subject.notes, *agent.notes])]
    if error:
        return blank.model_copy(update={"error": place.mask(error), "notes": notes})
    quotations = Quotations(agent.quotable())
    facets = [
        Facet(
            name=item.criterion.outcome
            if item.criterion.id is None
            else f"{item.id}: {item.criterion.outcome}",
            kind="criterion",
            votes=[answer.vote_on(item.id) for answer in answers],
            quotations=quotations,
            weight=item.criterion.weight,
            required=item.criterion.required,
            expected=item.criterion.outcome,
        )
        for item in agent.asked
    ]
    threshold = 1.0 if judge.pass_threshold is None else judge.pass_threshold
    return await anyio.to_thread.run_sync(
        partial(result_of, blank, facets, by_weight(threshold), criteria_met, notes=notes)
    )


@dataclass(frozen=True, slots=True)
class _Sandbox:
    """A place that was made for one judge, and what was put into it."""

    root: Path
    copy: WorkspaceCopy
    materials: Materials
    skills: dict[str, Path]
    state: dict[str, str]

    @property
    def directory(self) -> Path:
        """The judge's working directory."""
        return self.root / "desk"

    def close(self) -> list[str]:
        """What was not shown, and what the judge did to its copy; it can be removed then."""
        notes = [*self.copy.notes(), *self.materials.notes]
        now = _state(self.directory)
        changed = sorted(p for p in {*self.state, *now} if self.state.get(p) != now.get(p))
        if changed:
            notes.append(f"the judge changed its copy of what it judged: {listed(changed)}")
        for name in ("workspace", "judge"):
            if (self.directory / name).is_dir():
                make_removable(self.directory / name)
        return notes


class _AgentJudge:
    """One agent judge, one subject."""

    def __init__(
        self,
        judge: JudgeConfig,
        subject: JudgedPart,
        read_file: ReadFile,
        usage: UsageTracker,
        place: JudgePlace,
    ) -> None:
        self._judge = judge
        self._subject = subject
        self._read_file = read_file
        self._usage = usage
        self._place = place
        self.asked: list[AskedCriteria] = numbered(judge.criteria)
        self.notes: list[str] = []

    async def answer(self, sample: int) -> AgentAnswer:
        """The answer, from the run where it is kept; `sample` counts repetitions from 0.

        Raises as :meth:`_set_up` and :meth:`AgentRunner.ask` do, and SkillupError for its profile.
        """
        cache, usage = self._place.answers, self._usage
        question = await anyio.to_thread.run_sync(self._cached_question, sample)
        trial = key_of({"trial": question.own["trial"]}) if usage.of_grade else None
        by = self._engine()
        stored = await anyio.to_thread.run_sync(cache.read, question) if cache else None
        known = self._read(stored, by) if stored is not None else None
        if cache is not None and stored is not None and known is not None:
            own = usage.resumed and cache.take_over(question, stored, trial)
            usage.add(stored.model, stored.usage, stored.cost_usd, cached=not own)
            self.notes += stored.answer["notes"]
            return known
        took = UsageTracker()
        before = len(self.notes)
        try:
            answer = await self._ask(sample, took)
        finally:
            usage.merge(took)
        total = total_usage(took.usages)
        kept = StoredAnswer(
            asked=question.own,
            answer=self._clean(
                {**answer.model_dump(by_alias=True), "notes": self.notes[before:], "by": by}
            ),
            model=took.models[-1] if took.models else None,
            usage=Usage(**total) if total is not None else None,
            cost_usd=total_cost(took.costs),
            asked_for=trial,
        )
        if cache is not None:
            await anyio.to_thread.run_sync(cache.write, question, kept)
        return self._read(kept, by) or answer  # as it will be read: masked

    def _read(self, stored: StoredAnswer, by: dict[str, Any] | None) -> AgentAnswer | None:
        """None: it is damaged, or an agent of another kind said it."""
        said = stored.answer
        if not isinstance(said, dict) or not isinstance(said.get("notes"), list):
            return None
        if by is not None and said.get("by") != by:
            return None
        try:
            criteria = {"criteria": said.get("criteria")}
            return read_answer(criteria, AgentAnswer, [item.id for item in self.asked])
        except MalformedAnswerError:
            return None

    async def _ask(self, sample: int, took: UsageTracker) -> AgentAnswer:
        judge, place = self._judge, self._place
        profile = profile_of(judge, place)
        engine = get_engine(profile.engine)
        if profile.engine == "scripted" and judge.scripted is None:
            raise NoAnswerError(_NO_SCRIPT)
        sandbox = await anyio.to_thread.run_sync(self._set_up, engine)
        schema = answer_schema([item.id for item in self.asked])
        profile = answering(profile, schema, sandbox.root, own_skills=bool(judge.skills))
        trial = TrialContext(
            profile=profile,
            workspace=sandbox.directory,
            home=sandbox.root / "home",
            raw_dir=sandbox.root / "raw",
            environment=place.environment,
            extra_env=profile.env,
            marker=new_marker(),
            session_id="",
            skills=sandbox.skills,
            script=judge.scripted,
            seed=sample,
            secrets=place.secrets,
        )
        prompt = question(self.asked, sandbox.materials)
        seconds = judge.timeout_seconds or DEFAULT_SECONDS
        try:
            runner = AgentRunner(engine, trial, prompt, self.asked, seconds)
            return await runner.ask(place, took)
        finally:
            with anyio.CancelScope(shield=True):
                self.notes += await anyio.to_thread.run_sync(sandbox.close)

    def _set_up(self, engine: Engine) -> _Sandbox:
        """Raises LostFilesError, MissingAttachmentError, PreparationError (a skill), OSError."""
        judge, place, subject = self._judge, self._place, self._subject
        place.scratch.mkdir(parents=True, exist_ok=True)
        root = Path(tempfile.mkdtemp(prefix="agent-", dir=place.scratch)).resolve()
        directory = root / "desk"
        directory.mkdir()
        (root / "home").mkdir(mode=0o700)
        copy = copy_of(subject.files, self._read_file, directory / "workspace")
        context = judge.context or JudgeContext()
        materials = write_materials(
            directory / "judge", subject, context, self._read_file, place.suite_root, place.mask
        )
        skills: dict[str, Path] = {}
        for ref in judge.skills:
            skill = _to_install(ref, place.suite_root)
            installed = install_skill(skill, directory, engine.skill_directories())
            skills[skill.name] = directory / installed.directories[0]
        for name in ("workspace", "judge"):
            make_read_only(directory / name)
        return _Sandbox(root, copy, materials, skills, _state(directory))

    def quotable(self) -> Iterator[Part]:
        """What was judged: transcript, changes and files; what the agent did comes first."""
        subject, mask = self._subject, self._place.mask
        talk = in_order_of_weight(texts_of(subject))
        others = [part for part in talk if part.kind in ("user", "setting")]

        def of_the_agent() -> Iterator[Part]:
            yield from (part for part in talk if part not in others)
            yield Part("files", "files", file_list(subject.before, subject.files))
            changes = "\n".join(diff_lines(subject.before, subject.files, self._read_file))
            yield Part("files", "changes of the workspace", changes)
            for path, state in subject.files.items():
                content = self._read_file(state) if state.size <= _TEXT_BYTES else None
                if content is not None and b"\0" not in content:
                    yield Part("files", path, content.decode(errors="replace"))

        for part in chain(of_the_agent(), others):
            yield replace(part, text=mask(part.text))

    def _cached_question(self, sample: int) -> CachedQuestion:
        """All that an answer depends on; what is long, as a hash."""
        judge, subject, record = self._judge, self._subject, self._subject.record
        given: dict[str, Any] = self._clean(
            {
                "agent_judge": judge.engine or record.engine.profile,
                "judge": judge.model_dump(mode="json", include=_GIVEN, exclude_none=True),
                "question": question(self.asked, Materials()),
                "trial": [
                    record.run_id,
                    record.suite,
                    record.case_id,
                    record.engine.profile,
                    record.variant,
                    record.trial,
                    subject.number,
                ],
                "transcript": as_json(subject.turns, record.history),
                "final_message": subject.last.response,
                "files": _states(subject.files),
                "files_before": _states(subject.before),
                "sample": sample,
            }
        )
        for name in ("transcript", "final_message", "files", "files_before"):
            given[name] = key_of({name: given[name]})
        attachments = judge.context.attachments if judge.context is not None else []
        given["attachments"] = {item.path: self._attached(item.path) for item in attachments}
        return CachedQuestion(given)

    def _attached(self, path: str) -> str | None:
        kept = self._subject.record.references.get(path)
        if kept is not None:
            return kept.sha256
        with suppress(OSError):
            file = self._place.suite_root / path
            if file.is_file():
                return hashlib.sha256(file.read_bytes()).hexdigest()
        return None

    def _engine(self) -> dict[str, Any] | None:
        """Who answers; None: where the run is judged again there is no such profile."""
        try:
            profile = profile_of(self._judge, self._place)
        except SkillupError:
            return None
        names = ("engine", "model", "base_url")
        by: dict[str, Any] = self._clean({name: getattr(profile, name) for name in names})
        return by

    def _clean(self, data: Any) -> Any:
        return as_stored(data, self._place.mask)


def _states(files: Mapping[str, FileState]) -> dict[str, Any]:
    return {path: files[path].model_dump(mode="json") for path in sorted(files)}


def _to_install(ref: SkillRef, suite_root: Path) -> SkillToInstall:
    """The skill as it is installed. Raises PreparationError if it cannot be."""
    if ref.source != "local_path":
        raise PreparationError(f"judge skills from a `{ref.source}` are not fetched yet")
    source = (suite_root / ref.path).resolve()
    name = ref.name or skill_name(source)
    return SkillToInstall(name, source, ref.include, ref.exclude, ref.target)


def _state(directory: Path) -> dict[str, str]:
    """Everything that the judge may not change, by path: kind, mode, and content or target."""
    found: dict[str, str] = {}
    for name in ("workspace", "judge"):
        for entry in list_tree(directory / name):
            path = directory / name / entry.path
            what = f"{entry.kind} {stat.S_IMODE(entry.status.st_mode):o}"
            if entry.kind == "file":
                with path.open("rb") as file:
                    what += hashlib.file_digest(file, "sha256").hexdigest()
            elif entry.kind == "link":
                what += os.readlink(path)  # noqa: PTH115 - its exact spelling
            found[shown(f"{name}/{entry.path}")] = what
    return found
