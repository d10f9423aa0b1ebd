"""Who answers what only a judge can, when records are judged again."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.app.rejudge.sources import RecordSource
from skillup.errors import UsageError
from skillup.schema.record import Record

if TYPE_CHECKING:
    from skillup.judges.evaluate import Reader
    from skillup.judges.models.client import Models
    from skillup.judges.router import JudgeRouter
    from skillup.redaction.secrets import Secrets
    from skillup.schema.case import Case
    from skillup.schema.profile import Profile
    from skillup.schema.suite import Suite


def routers_for(
    source: RecordSource, hidden: Secrets, *, compared: bool = False, edited: bool = False
) -> Callable[[Record, Case], AbstractAsyncContextManager[Reader]]:
    """Makes the desk for a record and the case it is judged by, the same one where it can be.

    What a model answered when the run was judged is read from the run, before anybody is asked.
    What a judge input says for its agent judges, they are taken to have said. Where judges are
    `compared`, these are asked all the same. Written-down judges are read as they are now where
    judges are `compared` or cases `edited`: they may have been edited, too, and cost nothing.
    `hidden` and the keys of the judges are masked.
    """
    known: dict[tuple[frozenset[str], bool], JudgeRouter] = {}

    def desk(record: Record, case: Case) -> AbstractAsyncContextManager[Reader]:
        del record
        names = {judge.api_key_env for judge in case.all_judges()}
        if case.judge_model is not None:
            names.add(case.judge_model.api_key_env)
        keys = frozenset(name for name in names if name)
        model = case.judge_model.model if case.judge_model is not None else ""
        anew = (compared or edited) and model.startswith("scripted:")
        if (keys, anew) not in known:
            known[keys, anew] = _desk(source, hidden, keys, anew=anew)
        made, results = known[keys, anew], None if compared else source.mock_results
        return made if results is None else _answered_by(results, made)

    return desk


@asynccontextmanager
async def _answered_by(
    results: Sequence[Mapping[str, Any]], desk: JudgeRouter
) -> AsyncIterator[Reader]:
    from skillup.importers.judge_debug import MockedJudge

    async with desk:
        yield MockedJudge(results, desk)


def with_fallback_model(case: Case, suite: Suite | None) -> Case:
    """As `skillup run` does for a case that names no model."""
    from skillup.judges.models.client import FALLBACK_VARIABLE, with_judge_model

    return with_judge_model(case, None, os.environ.get(FALLBACK_VARIABLE) or None, suite)


def _desk(
    source: RecordSource, hidden: Secrets, keys: frozenset[str], *, anew: bool
) -> JudgeRouter:
    # Most runs are judged by rules alone: these are loaded only where they are needed.
    from skillup.judges.router import JudgeRouter, RouterOptions

    _registered()
    environment = dict(os.environ)
    secrets = hidden.also_of(environment, keys)
    models = _models(source, environment, secrets.mask, anew=anew)
    return JudgeRouter(
        models, RouterOptions(environment, secrets.mask, _profiles(source), secrets=secrets)
    )


@cache
def _registered() -> None:
    """Known as a running skillup from now on: a later one ends what a kill of this one leaves."""
    import atexit

    from skillup.executors.orphans import default_register_dir, end_what_was_left
    from skillup.process import ProcessRegister

    end_what_was_left()
    register = ProcessRegister(default_register_dir(), own_process=True)
    try:
        register.__enter__()
    except OSError:
        return  # no place for it: records can be judged all the same
    atexit.register(register.__exit__, None, None, None)


def _models(
    source: RecordSource, environment: dict[str, str], mask: Callable[[str], str], *, anew: bool
) -> Models:
    from skillup.app.judges import answer_cache
    from skillup.judges.models.cache import AnswerCache, AnswerFolder
    from skillup.judges.models.client import ModelOptions, Models
    from skillup.store import RunDirectory

    if anew:
        return Models(ModelOptions(environment, mask, AnswerCache(None, None)))
    if source.run is None:
        cache = answer_cache(None, Path.cwd(), mask, anew=False)
        return Models(ModelOptions(environment, mask, cache))
    answers = RunDirectory.open(source.run).judge_answers
    # The run may lie where nothing can be written.
    cache = AnswerCache(AnswerFolder(answers, mask, needed=False), None)
    return Models(ModelOptions(environment, mask, cache))


def _profiles(source: RecordSource) -> Callable[[str, Path], Profile]:
    """The profiles as the run had them, else those of this workspace."""
    from skillup.app.engines import root_with_engines
    from skillup.importers.judge_debug import INPUT_PROFILE
    from skillup.load.profiles import load_profile
    from skillup.schema.profile import Profile
    from skillup.store import RunDirectory

    held: Any = {}
    if source.run is not None:
        held = RunDirectory.open(source.run).run_info().get("profiles")

    def profile(name: str, root: Path) -> Profile:
        del root  # the run has its profiles by their names
        if isinstance(held, dict) and name in held:
            try:
                return Profile.model_validate(held[name])
            except ValueError:
                pass  # of another version; the workspace may have one of that name
        if source.kind == "input" and name == INPUT_PROFILE:
            raise UsageError("the judge names no engine: write `engine: PROFILE` beside its type")
        here = Path.cwd()
        return load_profile(name, root_with_engines(here, here), os.environ)

    return profile
