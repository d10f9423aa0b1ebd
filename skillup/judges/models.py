"""Asking models: masked, each question once, answers kept; `scripted:FILE` answers by rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from pydantic import BaseModel, Field, ValidationError

from skillup.dataclass import frozen, mutable
from skillup.engines.base import Availability
from skillup.engines.registry import engine_of
from skillup.errors import InvalidFilesError, SkillupError
from skillup.judges.question import (
    AskModel,
    CannotAskError,
    MalformedAnswerError,
    ModelAnswer,
    ModelQuestion,
    endpoint_of,
    environment_address,
    family_of,
    parse_model,
)
from skillup.load.model import judge_settings, read_by_model
from skillup.load.yaml_reader import read_model
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import Secrets
from skillup.schema.base import Model, compiled_pattern
from skillup.schema.case import Case
from skillup.schema.judge import JudgeCriterion, JudgeScript
from skillup.schema.judge_model import JudgeModel
from skillup.schema.profile import Profile
from skillup.schema.record import Usage
from skillup.schema.suite import Suite
from skillup.store.files import make_directory, to_json, write_atomic

if TYPE_CHECKING:
    import regex

    from skillup.judges.remote import RemoteModels

T = TypeVar("T")

# Answers as files, of models and agents alike: what is asked again costs nothing.

_VERSION = "skillup.judge_answer/1"
_TOOK = ("model", "usage", "cost_usd", "sampling")  # What an answer says of how it was made


class StoredAnswer(Model):
    """A file of the cache. The question is there for people who debug a judge."""

    schema_version: str = Field(_VERSION, description="The version of this format.")
    asked: dict[str, Any] = Field(description="The question: all that the file's name depends on.")
    answer: Any = Field(description="What was answered.")
    model: str | None = Field(None, description="As the provider names it.")
    usage: Usage | None = Field(None, description="Tokens it took.")
    cost_usd: float | None = Field(None, description="What it cost; None: not known.")
    sampling: dict[str, float] = Field({}, description="Temperature and seed, as far as taken.")


def key_of(asked: dict[str, Any]) -> str:
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class AnswerPlace(Protocol):
    """Where answers are kept as JSON, by their key; what cannot be read is not there."""

    def read(self, key: str) -> bytes | None: ...
    def write(self, key: str, answer: BaseModel) -> None: ...


@frozen
class AnswerFolder:
    """One JSON file for each answer, ``<key>.json``; none where it cannot be written."""

    path: Path
    mask: Callable[[str], str]
    older: AnswerPlace | None = None  # Only read: where answers are that are not here

    def read(self, key: str) -> bytes | None:
        try:
            return (self.path / f"{key}.json").read_bytes()
        except OSError:
            return self.older.read(key) if self.older is not None else None

    def write(self, key: str, answer: BaseModel) -> None:
        with suppress(SkillupError):
            make_directory(self.path)
            write_atomic(self.path / f"{key}.json", to_json(answer, self.mask, indent=1))


def kept_answer(place: AnswerPlace, key: str) -> StoredAnswer | None:
    """The answer; None if there is none, or a damaged one, or one of another question."""
    try:
        found = StoredAnswer.model_validate_json(place.read(key) or b"")
    except ValidationError:
        return None
    # One that was copied, or edited by hand, must not answer what nobody asked.
    right = found.schema_version == _VERSION and key_of(found.asked) == key
    return found if right else None


class NoAnswerError(Exception):
    """There is none to keep; `answer` says why."""

    def __init__(self, answer: ModelAnswer) -> None:
        super().__init__(answer.error)
        self.answer = answer


Preview = Callable[[str, dict[str, Any], StoredAnswer | None], object]
"""Is told of a question: its key, all that it depends on, and its stored answer."""


@mutable
class AnswerCache:
    """The run's own answers and, where there is one, the cache that runs share."""

    run: AnswerPlace | None = None
    shared: AnswerPlace | None = None
    anew: bool = field(default=False, kw_only=True)  # Nothing from before this process is read
    preview: Preview | None = field(default=None, kw_only=True)  # Given: nobody is asked
    _of_this_process: dict[str, StoredAnswer] = field(default_factory=dict)
    _under_way: WeakValueDictionary[str, anyio.Lock] = field(default_factory=WeakValueDictionary)

    async def answer(
        self,
        asked: dict[str, Any],
        read: Callable[[StoredAnswer], T | None],
        ask: Callable[[], Awaitable[StoredAnswer]],
        *,
        share: bool = False,
    ) -> tuple[T, StoredAnswer, bool]:
        """What `read` makes of the kept answer to `asked`, or of a new one; whether it was kept.

        `read` is None for one that is not of the form asked for. The same question is asked once
        at a time: who comes second finds the answer. Raises what `ask` raises; NoAnswerError in a
        preview of a question that has no answer yet.
        """
        key = key_of(asked)
        async with self._under_way.setdefault(key, anyio.Lock()):
            stored = await anyio.to_thread.run_sync(self._read, key, share)
            value = read(stored) if stored is not None else None
            if self.preview is not None:
                self.preview(key, asked, stored if value is not None else None)
            if stored is not None and value is not None:
                return value, stored, True
            if self.preview is not None:
                raise NoAnswerError(ModelAnswer(None, "nobody was asked"))
            stored = await ask()
            # Without the question: thousands of them are too much to hold.
            self._of_this_process[key] = stored.model_copy(update={"asked": {}})
            for place in (self.run, self.shared if share and not self.anew else None):
                if place is not None:
                    await anyio.to_thread.run_sync(place.write, key_of(stored.asked), stored)
            value = read(stored)
            if value is None:
                raise ValueError("the answer is of another form without its secrets")
            return value, stored, False

    def _read(self, key: str, share: bool) -> StoredAnswer | None:
        known = self._of_this_process.get(key)
        if known is not None or self.anew:
            return known
        if self.run is not None and (known := kept_answer(self.run, key)) is not None:
            return known
        if share and self.shared is not None:
            known = kept_answer(self.shared, key)
            if known is not None and self.run is not None:
                self.run.write(key, known)  # so that the run can be judged where it is alone
        return known


def _script_of(model: JudgeModel, suite_root: Path) -> Path | None:
    """The file of a written-down judge; None: `model` is a real one. Raises CannotAskError."""
    if family_of(model.model) != "scripted":
        return None
    return suite_root / parse_model(model.model)[1]


@mutable
class Models:
    """Every model, whoever provides it. To be closed before it is used in another event loop."""

    environment: Mapping[str, str]  # The user's own; keys and addresses are taken from it
    secrets: Secrets  # Hidden: from the models that are asked, too
    answers: AnswerCache = field(default_factory=AnswerCache)  # Where answers are kept
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)  # Shared with agents
    batch: Callable[[str], object] | None = None  # Given: by providers' batches; is told of them
    programs: AbstractAsyncContextManager[object] = field(default_factory=nullcontext)  # Limits
    available: dict[str, Availability] = field(init=False, default_factory=dict)
    """By profile, as JSON, what :meth:`availability` has found."""
    _remote: RemoteModels | None = field(init=False, default=None)

    @property
    def mask(self) -> Callable[[str], str]:
        return self.secrets.mask

    def asker(self, suite_root: Path) -> AskModel:
        """For the questions of one suite: its written-down judges are looked for there."""
        return partial(self._ask, suite_root)

    def problem(self, model: JudgeModel, suite_root: Path) -> str | None:
        """Why `model` could not be asked, found without asking it; None: nothing is known."""
        try:
            if (file := _script_of(model, suite_root)) is not None:
                script_of(file)
            else:
                endpoint_of(model, self.environment)
        except CannotAskError as problem:
            return self.mask(str(problem))
        return None

    async def availability(self, profile: Profile) -> Availability:
        """Whether an engine that judges, or plays a user, can run at all; each is asked once."""
        key = profile.model_dump_json()
        if key not in self.available:
            self.available[key] = await engine_of(profile).check(profile, self.environment)
        return self.available[key]

    async def close(self) -> None:
        remote, self._remote = self._remote, None
        if remote is not None:
            with anyio.CancelScope(shield=True):
                await remote.close()

    async def _ask(self, suite_root: Path, question: ModelQuestion) -> ModelAnswer:
        # What a model is asked is what the record will say: without secrets. So a replay, which
        # has nothing but the record, asks the same.
        system, prompt, *shared = self.clean([question.system, question.prompt, *question.shared])
        if not prompt.startswith("".join(shared)):
            shared = []  # a secret lies across them
        question = replace(question, system=system, prompt=prompt, shared=tuple(shared))
        model = question.model
        identity = {
            "model": model.model,
            "base_url": model.base_url,
            "system": system,
            "prompt": prompt,
            "answer": question.form.model_json_schema(),
            "sample": question.sample,
        }
        sampled = {"temperature": question.temperature, "seed": question.seed}
        identity |= {name: value for name, value in sampled.items() if value}
        scripted = family_of(model.model) == "scripted"
        if scripted:  # a written-down judge is another one in each suite
            identity["suite_root"] = str(suite_root)
        asked = self.clean(identity)

        def read(stored: StoredAnswer) -> BaseModel | None:
            try:
                return question.read(stored.answer)
            except MalformedAnswerError:
                return None

        async def ask() -> StoredAnswer:
            answer = await self._answer(question, suite_root)
            if answer.error is not None:
                raise NoAnswerError(replace(answer, error=self.mask(answer.error)))
            value = self.clean(answer.value.model_dump(mode="json", by_alias=True))
            return StoredAnswer(
                asked=asked, answer=value, **{name: getattr(answer, name) for name in _TOOK}
            )

        # Written-down judges are edited while suites are written, and cost nothing; an address that
        # only the environment names is not in the question.
        share = not scripted and environment_address(model, self.environment) is None
        try:
            value, kept, cached = await self.answers.answer(asked, read, ask, share=share)
        except CannotAskError as problem:
            return ModelAnswer(None, self.mask(str(problem)), model=model.model)
        except NoAnswerError as failed:
            return failed.answer
        took = {name: getattr(kept, name) for name in _TOOK}
        return ModelAnswer(value, cached=cached, key=key_of(asked), **took)

    async def _answer(self, question: ModelQuestion, suite_root: Path) -> ModelAnswer:
        model = question.model
        if (file := _script_of(model, suite_root)) is not None:
            value = await anyio.to_thread.run_sync(answer_to, question, file)
            return ModelAnswer(value, model=model.model)
        endpoint = endpoint_of(model, self.environment)
        if self._remote is None:
            from skillup.judges.remote import Batches, RemoteModels

            batches = Batches(self.batch) if self.batch is not None else None
            self._remote = RemoteModels(self.rate_limiter, batches)
        return await self._remote.ask(question, endpoint)

    def clean(self, data: Any) -> Any:
        """`data` as it will be read back from a file: masked, and valid text."""
        return json.loads(to_json({"": data}, self.mask, indent=None))[""]


def with_judge_model(
    case: Case, asked: str | None, fallback: str | None = None, suite: Suite | None = None
) -> Case:
    """`case` as it is judged; what its record then says is enough to judge it again.

    `asked` outranks the models of the case and its checks, `fallback` does not. The address and
    the key of that are not the other's; how it is asked is, or what the judges of the case and of
    its `suite` say.
    """
    own = case.judge_model
    name = asked or (fallback if own is None else None)
    if not name:
        return case
    if own is not None:
        kept = {"timeout_seconds", "repeat", "temperature", "examples"}
        settings = own.model_dump(include=kept, exclude_none=True)
    else:
        settings = judge_settings(case, suite)
    if asked and any(getattr(check, "judge", None) for _, check in read_by_model(case)):
        settings["everywhere"] = True
    model = JudgeModel.model_validate({"model": name, **settings})
    return case.model_copy(update={"judge_model": model})


# The written-down judge, `scripted:FILE`.

_SECONDS_PER_SEARCH = 1.0
_LONGEST_QUOTE = 300
_SHOWN = 160


def script_of(file: Path) -> JudgeScript:
    """The script in `file`. Raises CannotAskError: it is not there, or it is not one."""
    try:
        found = file.stat()
    except OSError:
        raise CannotAskError(f"there is no judge script {file}") from None
    return _read(file, (found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=64)
def _read(file: Path, _stamp: tuple[int, int]) -> JudgeScript:
    try:
        return read_model(file, JudgeScript)
    except InvalidFilesError as error:
        raise CannotAskError(str(error.problems[0])) from None


def answer_to(question: ModelQuestion, file: Path) -> BaseModel:
    """What the script in `file` answers. Raises CannotAskError: it has no answer."""
    script = script_of(file)
    misfits: list[str] = []
    for number, rule in enumerate(script.rules, start=1):
        when = rule.when
        texts = (
            (when.system, question.system),
            (when.prompt, question.prompt),
            (when.answer, question.latest),
        )
        found = (_find(pattern, text) for patterns, text in texts for pattern in patterns)
        if when.repetition not in (None, question.sample + 1) or not all(found):
            continue
        if rule.error is not None:
            raise CannotAskError(f"rule {number} of {file.name}: {rule.error}")
        try:
            return question.read(rule.answer or {})
        except MalformedAnswerError as malformed:
            misfits.append(f"rule {number}: {malformed}")
    if script.criteria and "verdicts" in question.form.model_fields:
        named = zip(question.ids, question.criteria, strict=True)
        verdicts = [_verdict(question, script.criteria, name, text) for name, text in named]
        return question.form.model_validate({"verdicts": verdicts})
    keys = ", ".join(f"`{name}`" for name in question.form.model_fields)
    asked = " ".join(question.prompt.split())[:_SHOWN]
    why = f"answers it ({'; '.join(misfits)})" if misfits else "applies"
    fix = f"add one whose answer has {keys}, for: {asked}"
    raise CannotAskError(f"no rule of {file.name} {why}; {fix}")


def _verdict(
    question: ModelQuestion, known: Sequence[JudgeCriterion], name: str, text: str
) -> dict[str, str]:
    """On the criterion `text`. Raises CannotAskError: none of `known` is about it."""
    rule = next((r for r in known if all(_find(p, text) for p in r.when)), None)
    if rule is None:
        model, shown = question.model.model, " ".join(text.split())
        raise CannotAskError(f"none of the `criteria` of {model} is about {name}: {shown}")
    verdict = {"id": name, "reason": "Nothing that must not be there is there.", "quote": ""}
    patterns = [*((p, True) for p in rule.found), *((p, False) for p in rule.not_found)]
    for pattern, must_match in patterns:
        match = _find(pattern, question.judged)
        if match is not None:
            verdict |= {"reason": f"This matches /{pattern}/.", "quote": _quoted(match)}
        elif must_match:
            verdict |= {"reason": f"Nothing matches /{pattern}/.", "quote": ""}
        if (match is not None) != must_match:
            return verdict | {"verdict": "fail"}
    return verdict | {"verdict": "pass"}


def _find(pattern: str, text: str) -> regex.Match[str] | None:
    """Where `pattern` finds something; case is ignored. Raises CannotAskError: it took too long."""
    try:
        return compiled_pattern(pattern, True).search(text, timeout=_SECONDS_PER_SEARCH)
    except TimeoutError:
        what = f"the pattern /{pattern}/ took too long; write it without nested repetition"
        raise CannotAskError(what) from None


def _quoted(match: regex.Match[str]) -> str:
    """The line that it begins in: what stands on several lines may be of several messages."""
    text = match.string
    begin = text.rfind("\n", 0, match.start()) + 1
    line = text[begin:].partition("\n")[0].strip()
    return line if len(line) <= _LONGEST_QUOTE else match[0].partition("\n")[0][:_LONGEST_QUOTE]
