"""The judge that is an agent: asked as often as configured, each time in a sandbox of its own.

It works in a directory that holds ``workspace/`` and ``judge/``, both read-only: above the copy of
the workspace, so that what the agent under test left for agents to find (instructions, settings,
skills) is not found as the judge's own. Its answers are kept in the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from pydantic import Field
from pydantic_core import to_jsonable_python

from skillup.dataclass import frozen
from skillup.engines.base import NoStreams, SchemaAnswers
from skillup.engines.registry import engine_of
from skillup.errors import FullDiskError, RunDirectoryError, SkillupError, UsageError
from skillup.judges import artifacts
from skillup.judges.evaluate import UsageTracker, blank_result
from skillup.judges.material import Part, fenced
from skillup.judges.models import NoAnswerError, StoredAnswer, key_of
from skillup.judges.question import (
    PROMPTS,
    AnswerForm,
    MalformedAnswerError,
    Reason,
    read_answer,
    schema_of,
)
from skillup.judges.session import NoAgentAnswerError, ThrottledSession, context_in
from skillup.judges.voting import (
    Quotations,
    Vote,
    by_weight,
    criteria_met,
    in_order_of_weight,
    result_of,
    voted,
)
from skillup.load.discover import address_problem, skill_name, skill_problem
from skillup.ratelimit import REFUSALS
from skillup.schema.checks import Criterion
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig, JudgeContext, SkillRef
from skillup.schema.profile import Profile
from skillup.workspace.disk import refuse_full_disk
from skillup.workspace.prepare import PreparationError, SkillToInstall, install_skill

DEFAULT_SECONDS = 300.0
_NO_CRITERIA = "it has no `criteria`: say what it is to look at"
_GIVEN = {"model", "base_url", "context", "skills", "scripted"}
"""What of its configuration a judge, or the engine that plays it, is given as it is written."""
_TEXT_BYTES = 4 << 20


def profile_of(judge: JudgeConfig, place: artifacts.JudgePlace) -> Profile:
    """The profile that is named, read-only, with the judge's model. Raises SkillupError."""
    profile = place.profiles(judge.engine)
    names = ("model", "base_url", "api_key_env")
    updates = {name: given for name in names if (given := getattr(judge, name)) is not None}
    if judge.base_url is not None:  # the model's name may be the whole name there
        known = place.models.environment
        why = address_problem("judge.base_url", judge.base_url, known, profile.base_url)
        if why is not None and isinstance(engine_of(profile), SchemaAnswers):
            raise UsageError(why)
    elif judge.model is not None:
        updates["model"] = re.sub("^(anthropic|openai)[:/]", "", judge.model)
    if profile.engine == "scripted" and judge.scripted is None:
        what = "its engine is the scripted one: say in the judge's `scripted` what it answers"
        raise UsageError(f"{what}, or name another `engine`")
    return profile.model_copy(update={"permission": "read_only", **updates})


async def problem_of_agent(judge: JudgeConfig, place: artifacts.JudgePlace) -> str | None:
    """Why it could not judge, as far as that is known beforehand; no model is asked anything."""
    if not judge.criteria:
        return _NO_CRITERIA
    try:
        profile = profile_of(judge, place)
        for ref in judge.skills:
            wrong = skill_problem(_to_install(ref, place.suite_root).source_dir)
            if wrong is not None:
                return f"skill {ref.path}: {wrong}"
        for item in judge.context.attachments if judge.context is not None else ():
            if not (place.suite_root / item.path).is_file():
                return f"there is no attachment {place.suite_root / item.path}"
        if judge.engine is None:  # it is the trial's, which the run itself asks whether it works
            return None
        found = (await place.models.availability(profile)).problem
    except (SkillupError, PreparationError) as problem:
        return str(problem)
    return None if found is None else found.message


def _to_install(ref: SkillRef, suite_root: Path) -> SkillToInstall:
    if ref.source != "local_path":
        raise PreparationError(f"judge skills from a `{ref.source}` are not fetched yet")
    source = (suite_root / ref.path).resolve()
    name = ref.name or skill_name(source)
    return SkillToInstall(name, source, ref.include, ref.exclude, ref.target)


async def judge_by_agent(
    judge: JudgeConfig,
    part: artifacts.JudgedPart,
    usage: UsageTracker,
    place: artifacts.JudgePlace,
    blank: CheckResult,
) -> CheckResult:
    """`blank` with what the agent says, or an `error`. Raises RunDirectoryError, FullDiskError."""
    agent = _AgentJudge(judge, part, usage, place, numbered(judge.criteria))
    answers, keys = list[AgentAnswer](), list[str]()
    notes, error = list(part.notes), ""
    try:
        if not judge.criteria:
            raise artifacts.CannotJudgeError(_NO_CRITERIA)
        for sample in range(judge.repeat):
            answer, shortened, key = await agent.answer(sample)
            answers.append(answer)
            keys.append(key)
            notes += shortened
    except (RunDirectoryError, FullDiskError):
        raise
    except (NoAgentAnswerError, NoAnswerError) as problem:
        error = f"the judge gave no answer: {problem}"
    except (artifacts.CannotJudgeError, PreparationError, SkillupError) as problem:
        error = str(problem)
    except OSError as problem:
        refuse_full_disk(problem, place.scratch)
        error = f"the judge's sandbox: {problem}"
    notes = [place.models.mask(note) for note in dict.fromkeys(notes)]
    blank = blank.model_copy(update={"answers": keys, "notes": notes})
    if error:
        return blank.model_copy(update={"error": place.models.mask(error)})
    votes = {name: [answer.vote_on(name) for answer in answers] for name in agent.asked}
    masked = (replace(part, text=place.models.mask(part.text)) for part in agent.quotable())
    shown = Quotations(masked)
    return await anyio.to_thread.run_sync(result_of_agent, judge, blank, votes, shown)


def result_of_agent(
    judge: JudgeConfig,
    blank: CheckResult,
    votes: Mapping[str, Sequence[Vote]],
    quotations: Quotations | None,
) -> CheckResult:
    """`blank` with what the `votes` on each criterion come to; None: quotations are not checked."""
    children = []
    for name, asked in numbered(judge.criteria).items():
        about = asked.outcome if asked.id is None else f"{name}: {asked.outcome}"
        own = {"weight": asked.weight, "required": asked.required, "expected": asked.outcome}
        criterion = blank_result("criterion", blank.role, name=about, scope=blank.scope, **own)
        children.append(voted(criterion, votes[name], quotations))
    threshold = 1.0 if judge.pass_threshold is None else judge.pass_threshold
    return result_of(blank, children, by_weight(threshold), criteria_met)


@frozen
class _AgentJudge:
    judge: JudgeConfig
    judged: artifacts.JudgedPart
    usage: UsageTracker
    place: artifacts.JudgePlace
    asked: dict[str, Criterion]

    async def answer(self, sample: int) -> tuple[AgentAnswer, list[str], str]:
        """The answer, kept or new, what was shown shortened, and its key; `sample` is from 0."""
        asked = await anyio.to_thread.run_sync(self._identity, sample)
        by, clean = None, self.place.models.clean
        with suppress(SkillupError):  # where the run is judged again there is no such profile
            profile = profile_of(self.judge, self.place)
            by = clean([profile.engine, profile.model, profile.base_url])

        def read(stored: StoredAnswer) -> tuple[AgentAnswer, list[str]] | None:
            try:
                if by is not None and stored.answer["by"] != by:
                    return None  # another agent's
                given = {"criteria": stored.answer["criteria"]}
                return read_answer(given, AgentAnswer, list(self.asked)), stored.answer["notes"]
            except (MalformedAnswerError, LookupError, TypeError):
                return None  # it is damaged

        async def ask() -> StoredAnswer:
            session, materials = await anyio.to_thread.run_sync(self._session, sample)
            ids = list(self.asked)

            def prompt(first: bool, problem: str) -> str:
                if first:
                    return question(self.asked, materials)
                return f"That cannot be read: {problem}. Judge as before. {how_to_answer(ids)}"

            try:
                answer = await session.ask(prompt, partial(read_answer, form=AgentAnswer, ids=ids))
            finally:
                for turn in session.turns:
                    refused = turn.error is not None and turn.error.kind in REFUSALS
                    model = turn.model or session.took()[2]
                    self.usage.add(model, turn.usage, turn.cost_usd, refused=refused)
            usage, cost, model = session.took()
            said = {**answer.model_dump(by_alias=True), "notes": materials.notes, "by": by}
            return StoredAnswer(
                asked=asked, answer=clean(said), model=model, usage=usage, cost_usd=cost
            )

        answer, kept, cached = await self.place.models.answers.answer(asked, read, ask)
        if cached:
            self.usage.add(kept.model, kept.usage, kept.cost_usd, cached=True)
        return *answer, key_of(asked)

    def _session(self, sample: int) -> tuple[ThrottledSession, artifacts.Materials]:
        """Where an agent is asked, a place of its own, and what is put before it there."""
        judge, place, judged, models = self.judge, self.place, self.judged, self.place.models
        profile = profile_of(judge, place)
        engine = engine_of(profile)
        root = place.new_directory("agent-")
        if isinstance(engine, SchemaAnswers):
            schema, own = answer_schema(list(self.asked)), bool(judge.skills)
            profile = engine.answering(profile, schema, root, own_skills=own)
        own_keys = {"script": judge.scripted, "seed": sample, "secrets": models.secrets}
        trial = context_in(root, profile, models.environment, streams=NoStreams(), **own_keys)
        directory = trial.workspace
        lacks = artifacts.copy_of(judged.files, judged.read_file, directory / "workspace")
        context = judge.context or JudgeContext()
        materials = artifacts.write_materials(directory / "judge", judged, context, models.mask)
        materials.notes += artifacts.notes_on(lacks)
        skills: dict[str, Path] = {}
        for ref in judge.skills:
            skill = _to_install(ref, place.suite_root)
            installed = install_skill(skill, directory, engine.skill_directories())
            skills[skill.name] = directory / installed.directories[0]
        for name in ("workspace", "judge"):
            artifacts.make_read_only(directory / name)
        trial, seconds = replace(trial, skills=skills), judge.timeout_seconds or DEFAULT_SECONDS
        return ThrottledSession(engine, trial, models.rate_limiter, seconds, "turn"), materials

    def quotable(self) -> Iterator[Part]:
        """What was judged: transcript, changes and files; what the agent did comes first."""
        judged = self.judged
        talk = in_order_of_weight(artifacts.texts_of(judged))
        yield from (part for part in talk if part.kind not in ("user", "setting"))
        yield Part("files", "files", artifacts.file_list(judged.before, judged.files))
        changes = "\n".join(artifacts.diff_lines(judged.before, judged.files, judged.read_file))
        yield Part("files", "changes of the workspace", changes)
        for path, state in judged.files.items():
            content = judged.read_file(state) if state.size <= _TEXT_BYTES else None
            if content is not None and b"\0" not in content:
                yield Part("files", path, content.decode(errors="replace"))
        yield from (part for part in talk if part.kind in ("user", "setting"))

    def _identity(self, sample: int) -> dict[str, Any]:
        """All that an answer depends on; what is long, as a hash.

        Thresholds and weights are not part of it; skills of the judge count by their paths alone.
        """
        judge, judged, record = self.judge, self.judged, self.judged.record
        place = (record.run_id, record.suite, record.case_id, record.engine.profile)
        given = judge.context.attachments if judge.context is not None else []
        kept = {item.path: record.references.get(item.path) for item in given}
        states = [sorted(to_jsonable_python(f).items()) for f in (judged.files, judged.before)]
        shown = [artifacts.as_json(judged.turns, record.history), *states]
        asked = {
            "agent_judge": judge.engine or record.engine.profile,
            "judge": judge.model_dump(mode="json", include=_GIVEN, exclude_none=True),
            "question": question(self.asked, artifacts.Materials()),
            "trial": [*place, record.variant, record.trial, judged.number],
            "shown": key_of({"shown": shown}),
            "attachments": {path: one and one.sha256 for path, one in kept.items()},
            "sample": sample,
        }
        return dict(self.place.models.clean(asked))


class AgentVerdict(AnswerForm):
    """The verdict on one criterion."""

    id: str
    reason: Reason
    evidence: list[str] = Field(default_factory=list)
    passed: bool | None = Field(alias="pass", strict=True)


class AgentAnswer(AnswerForm):
    """One verdict for each criterion."""

    criteria: list[AgentVerdict]

    def vote_on(self, name: str) -> Vote:
        verdict = next(v for v in self.criteria if v.id.strip().casefold() == name.casefold())
        return Vote(verdict.passed, verdict.reason.strip(), tuple(verdict.evidence))


def answer_schema(ids: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of an answer; every key is required, as strict modes of models want it."""
    schema = schema_of(AgentAnswer, ids)
    for bound in ("minItems", "maxItems"):
        del schema["properties"]["criteria"][bound]
    verdict = schema["$defs"]["AgentVerdict"]
    verdict["required"] = list(verdict["properties"])
    return schema


def numbered(criteria: Sequence[Criterion]) -> dict[str, Criterion]:
    """By the ids that answers use; one without an id, or with another's, gets ``criterion-N``."""
    asked: dict[str, Criterion] = {}
    taken = {(criterion.id or "").casefold() for criterion in criteria}
    for number, criterion in enumerate(criteria, start=1):
        name = criterion.id
        if name is None or name.casefold() in map(str.casefold, asked):
            name = f"criterion-{number}"
            while name in taken:
                name += "'"
        asked[name] = criterion
    return asked


def question(asked: Mapping[str, Criterion], materials: artifacts.Materials) -> str:
    parts = [PROMPTS["agent judge task"]]
    if materials.files:
        listed = "\n".join(f"- `{path}`: {what}" for path, what in materials.files)
        parts.append(f"Beside it there are:\n{listed}")
    criteria = "\n".join(f"- {name}: {criterion.outcome}" for name, criterion in asked.items())
    parts += [f"The criteria, each with its id:\n{criteria}", PROMPTS["agent judge rules"]]
    if materials.inline:
        parts.append(fenced(materials.inline))
    return "\n\n".join([*parts, how_to_answer(list(asked))])


def how_to_answer(ids: Sequence[str]) -> str:
    """The end of the question, and of its repetition."""
    example = {"id": ids[0], "reason": "why", "evidence": ["a quotation"], "pass": False}
    return (
        "Answer only with one JSON object of this form, and nothing else, with one element for "
        f"each of {', '.join(ids)}:\n{json.dumps({'criteria': [example]})}\n"
        f"Its JSON Schema is: {json.dumps(answer_schema(ids))}"
    )
