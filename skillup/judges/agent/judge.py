"""The judge that is an agent: asked as often as configured, each time in a sandbox of its own.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from skillup.engines.base import Availability, Engine, SchemaAnswers, TrialContext
from skillup.engines.registry import get_engine
from skillup.errors import FullDiskError, RunDirectoryError, SkillupError
from skillup.judges.agent.question import (
    Materials,
    MissingAttachmentError,
    attachment,
    how_to_answer,
    numbered,
    question,
    write_materials,
)
from skillup.judges.agent.runner import (
    AgentAnswer,
    AgentRunner,
    NoAnswerError,
    answer_schema,
    profile_of,
)
from skillup.judges.answers import Quotations, in_order_of_weight
from skillup.judges.artifacts import (
    JudgedPart,
    JudgePlace,
    LostFilesError,
    ReadFile,
    WorkspaceCopy,
    as_json,
    copy_of,
    diff_lines,
    file_list,
    listed,
    set_writable,
    texts_of,
)
from skillup.judges.material import Part
from skillup.judges.models.cache import StoredAnswer, as_stored, key_of
from skillup.judges.models.question import MalformedAnswerError, read_answer
from skillup.judges.usage import UsageTracker
from skillup.judges.voting import Facet, Vote, by_weight, criteria_met, result_of
from skillup.process import new_marker
from skillup.schema.check_specs import Criterion
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig, JudgeContext, SkillRef
from skillup.schema.record import FileState, Usage, total_cost, total_usage
from skillup.workspace.failures import PreparationError, refuse_full_disk
from skillup.workspace.skills import SkillToInstall, install_skill, skill_name, skill_problem
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
_PARTS = ("workspace", "judge")


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
    if judge.engine is None:
        return None
    found: list[Availability] = []
    work = partial(anyio.run, engine.check, profile, place.environment)
    # An event loop may be running in this thread.
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0].problem.message if found[0].problem is not None else None


def _to_install(ref: SkillRef, suite_root: Path) -> SkillToInstall:
    """The skill as it is installed. Raises PreparationError if it cannot be."""
    if ref.source != "local_path":
        raise PreparationError(f"judge skills from a `{ref.source}` are not fetched yet")
    source = (suite_root / ref.path).resolve()
    name = ref.name or skill_name(source)
    return SkillToInstall(name, source, ref.include, ref.exclude, ref.target)


async def judge_by_agent(
    judge: JudgeConfig,
    judged: JudgedPart,
    read_file: ReadFile,
    usage: UsageTracker,
    place: JudgePlace,
    blank: CheckResult,
) -> CheckResult:
    """`blank` with what the agent says, or an `error` if it could not judge.

    Raises RunDirectoryError where the run cannot keep its answer, and FullDiskError.
    """
    agent = _AgentJudge(judge, judged, read_file, usage, place, numbered(judge.criteria))
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
    notes = [place.mask(note) for note in dict.fromkeys([*judged.notes, *agent.notes])]
    if error:
        return blank.model_copy(update={"error": place.mask(error), "notes": notes})
    votes = {name: [answer.vote_on(name) for answer in answers] for name in agent.asked}
    quotations = Quotations(agent.quotable())
    return await anyio.to_thread.run_sync(result_of_agent, judge, blank, votes, notes, quotations)


def result_of_agent(
    judge: JudgeConfig,
    blank: CheckResult,
    votes: Mapping[str, Sequence[Vote]],
    notes: Sequence[str],
    quotations: Quotations | None,
) -> CheckResult:
    """`blank` with what the `votes` on each criterion come to; None: quotations are not checked."""
    facets = [
        Facet(
            name=criterion.outcome if criterion.id is None else f"{name}: {criterion.outcome}",
            kind="criterion",
            votes=votes[name],
            quotations=quotations,
            weight=criterion.weight,
            required=criterion.required,
            expected=criterion.outcome,
        )
        for name, criterion in numbered(judge.criteria).items()
    ]
    threshold = 1.0 if judge.pass_threshold is None else judge.pass_threshold
    return result_of(blank, facets, by_weight(threshold), criteria_met, notes=notes)


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
        return self.root / "work"

    def close(self) -> list[str]:
        """What was not shown, and what the judge did to its copy; it can be removed then."""
        notes = [*self.copy.notes(), *self.materials.notes]
        now = _state(self.directory)
        changed = sorted(p for p in {*self.state, *now} if self.state.get(p) != now.get(p))
        if changed:
            notes.append(f"the judge changed its copy of what it judged: {listed(changed)}")
        for name in _PARTS:
            if (self.directory / name).is_dir():
                set_writable(self.directory / name, writable=True)
        return notes


def _state(directory: Path) -> dict[str, str]:
    """Everything that the judge may not change, by path: kind, mode, and content or target."""
    found: dict[str, str] = {}
    for name in _PARTS:
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


@dataclass(slots=True)
class _AgentJudge:
    """One agent judge of one turn or conversation."""

    judge: JudgeConfig
    judged: JudgedPart
    read_file: ReadFile
    usage: UsageTracker
    place: JudgePlace
    asked: dict[str, Criterion]
    notes: list[str] = field(default_factory=list)

    async def answer(self, sample: int) -> AgentAnswer:
        """The answer, from the run where it is kept; `sample` counts repetitions from 0.

        Raises as :meth:`_set_up` and :meth:`AgentRunner.ask` do, and SkillupError for its profile.
        """
        cache, usage = self.place.answers, self.usage
        asked = await anyio.to_thread.run_sync(self._identity, sample)
        trial = key_of({"trial": asked["trial"]}) if usage.of_grade else None
        try:
            profile = profile_of(self.judge, self.place)
            names = ("engine", "model", "base_url")
            by = self._clean({name: getattr(profile, name) for name in names})
        except SkillupError:
            by = None  # where the run is judged again there is no such profile
        stored = await anyio.to_thread.run_sync(cache.read, asked) if cache else None
        known = self._read(stored, by) if stored is not None else None
        if cache is not None and stored is not None and known is not None:
            own = usage.resumed and cache.take_over(asked, stored, trial)
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
        given = {**answer.model_dump(by_alias=True), "notes": self.notes[before:], "by": by}
        kept = StoredAnswer(
            asked=asked,
            answer=self._clean(given),
            model=took.models[-1] if took.models else None,
            usage=Usage(**total) if total is not None else None,
            cost_usd=total_cost(took.costs),
            asked_for=trial,
        )
        if cache is not None:
            await anyio.to_thread.run_sync(cache.write, kept)
        return self._read(kept, by) or answer  # as it will be read: masked

    def _read(self, stored: StoredAnswer, by: Any) -> AgentAnswer | None:
        """None: it is damaged, or an agent of another kind gave it."""
        given = stored.answer
        if not isinstance(given, dict) or not isinstance(given.get("notes"), list):
            return None
        if by is not None and given.get("by") != by:
            return None
        try:
            return read_answer({"criteria": given.get("criteria")}, AgentAnswer, list(self.asked))
        except MalformedAnswerError:
            return None

    async def _ask(self, sample: int, took: UsageTracker) -> AgentAnswer:
        judge, place = self.judge, self.place
        profile = profile_of(judge, place)
        engine = get_engine(profile.engine)
        if profile.engine == "scripted" and judge.scripted is None:
            raise NoAnswerError(_NO_SCRIPT)
        sandbox = await anyio.to_thread.run_sync(self._set_up, engine)
        ids = list(self.asked)
        if isinstance(engine, SchemaAnswers):
            own, schema = bool(judge.skills), answer_schema(ids)
            profile = engine.answering(profile, schema, sandbox.root, own_skills=own)
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
        prompt, form = question(self.asked, sandbox.materials), how_to_answer(ids)
        seconds = judge.timeout_seconds or DEFAULT_SECONDS
        try:
            return await AgentRunner(engine, trial, prompt, form, ids, seconds).ask(place, took)
        finally:
            with anyio.CancelScope(shield=True):
                self.notes += await anyio.to_thread.run_sync(sandbox.close)

    def _set_up(self, engine: Engine) -> _Sandbox:
        """Raises LostFilesError, MissingAttachmentError, PreparationError (a skill), OSError."""
        judge, place, judged = self.judge, self.place, self.judged
        place.scratch.mkdir(parents=True, exist_ok=True)
        root = Path(tempfile.mkdtemp(prefix="agent-", dir=place.scratch)).resolve()
        directory = root / "work"
        directory.mkdir()
        (root / "home").mkdir(mode=0o700)
        copy = copy_of(judged.files, self.read_file, directory / "workspace")
        context = judge.context or JudgeContext()
        materials = write_materials(
            directory / "judge", judged, context, self.read_file, place.suite_root, place.mask
        )
        skills: dict[str, Path] = {}
        for ref in judge.skills:
            skill = _to_install(ref, place.suite_root)
            installed = install_skill(skill, directory, engine.skill_directories())
            skills[skill.name] = directory / installed.directories[0]
        for name in _PARTS:
            set_writable(directory / name, writable=False)
        return _Sandbox(root, copy, materials, skills, _state(directory))

    def quotable(self) -> Iterator[Part]:
        """What was judged: transcript, changes and files; what the agent did comes first."""
        judged, read_file, mask = self.judged, self.read_file, self.place.mask
        talk = in_order_of_weight(texts_of(judged))

        def parts() -> Iterator[Part]:
            yield from (part for part in talk if part.kind not in ("user", "setting"))
            yield Part("files", "files", file_list(judged.before, judged.files))
            changes = "\n".join(diff_lines(judged.before, judged.files, read_file))
            yield Part("files", "changes of the workspace", changes)
            for path, state in judged.files.items():
                content = read_file(state) if state.size <= _TEXT_BYTES else None
                if content is not None and b"\0" not in content:
                    yield Part("files", path, content.decode(errors="replace"))
            yield from (part for part in talk if part.kind in ("user", "setting"))

        return (replace(part, text=mask(part.text)) for part in parts())

    def _identity(self, sample: int) -> dict[str, Any]:
        """All that an answer depends on; what is long, as a hash."""
        judge, judged, record = self.judge, self.judged, self.judged.record
        place = (record.run_id, record.suite, record.case_id, record.engine.profile)
        given: dict[str, Any] = self._clean(
            {
                "agent_judge": judge.engine or record.engine.profile,
                "judge": judge.model_dump(mode="json", include=_GIVEN, exclude_none=True),
                "question": question(self.asked, Materials()),
                "trial": [*place, record.variant, record.trial, judged.number],
                "transcript": as_json(judged.turns, record.history),
                "final_message": judged.last.response,
                "files": _states(judged.files),
                "files_before": _states(judged.before),
                "sample": sample,
            }
        )
        for name in ("transcript", "final_message", "files", "files_before"):
            given[name] = key_of({name: given[name]})
        attached: dict[str, str | None] = {}
        for item in judge.context.attachments if judge.context is not None else []:
            kept = record.references.get(item.path)
            attached[item.path] = kept.sha256 if kept is not None else None
            root = self.place.suite_root
            if kept is None and (own := attachment(item.path, judged, root, self.read_file)):
                attached[item.path] = hashlib.sha256(own).hexdigest()
        return given | {"attachments": attached}

    def _clean(self, data: Any) -> Any:
        return as_stored(data, self.place.mask)


def _states(files: Mapping[str, FileState]) -> dict[str, Any]:
    return {path: files[path].model_dump(mode="json") for path in sorted(files)}
