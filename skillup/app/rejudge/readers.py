"""Who answers what only a judge can when records are judged again, and which secrets to mask."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.app.planning import collect_secrets, keys_of, models_of, root_with_engines
from skillup.app.rejudge.sources import RecordSource
from skillup.errors import RunDirectoryError, SkillupError, UsageError
from skillup.load.profiles import load_profile
from skillup.redaction.secrets import Secrets
from skillup.schema.case import Case
from skillup.schema.profile import Profile
from skillup.schema.record import Record
from skillup.store import RunDirectory

if TYPE_CHECKING:
    from skillup.app.rejudge.cases import EditedCase
    from skillup.judges.evaluate import Judge
    from skillup.judges.router import JudgeRouter


def readers_for(
    source: RecordSource, hidden: Secrets, *, compared: bool = False, edited: bool = False
) -> Callable[[Record, Case], AbstractAsyncContextManager[Judge]]:
    """Makes the router for a record and the case it is judged by, the same one where it can be.

    What a model answered when the run was judged is read from the run, before anybody is asked.
    What a judge input says for its agent judges, they are taken to have said, unless judges are
    `compared`. Written-down judges are read as they are now where judges are `compared` or cases
    `edited`. `hidden` and the keys of the judges are masked.
    """

    @cache
    def router_for(keys: frozenset[str], anew: bool) -> JudgeRouter:
        return _router(source, hidden, keys, anew=anew)

    def reader(_: Record, case: Case) -> AbstractAsyncContextManager[Judge]:
        model = case.judge_model.model if case.judge_model is not None else ""
        anew = (compared or edited) and model.startswith("scripted:")
        router = router_for(frozenset(keys_of(models_of((), [case]))), anew)
        results = None if compared else source.mock_results
        return router if results is None else answered_by(results, router)

    @asynccontextmanager
    async def answered_by(
        results: Sequence[Mapping[str, Any]], router: JudgeRouter
    ) -> AsyncIterator[Judge]:
        from skillup.importers.judge_debug import MockedJudge

        async with router:
            yield MockedJudge(results, router)

    return reader


def _router(
    source: RecordSource, hidden: Secrets, keys: frozenset[str], *, anew: bool
) -> JudgeRouter:
    # Most runs are judged by rules alone: these are loaded only where they are needed.
    from skillup.app.run_session import answer_cache
    from skillup.judges.models.client import AnswerCache, AnswerFolder, Models
    from skillup.judges.router import JudgeRouter

    _register()
    environment = dict(os.environ)
    secrets = hidden.also_of(environment, keys)
    if anew:
        answers = AnswerCache()
    elif source.run is None:
        answers = answer_cache(None, Path.cwd(), secrets.mask, anew=False)
    else:
        own = RunDirectory.open(source.run).judge_answers
        # The run may lie where nothing can be written.
        answers = AnswerCache(AnswerFolder(own, secrets.mask, needed=False))
    models = Models(environment, secrets.mask, answers)
    return JudgeRouter(models, _profiles(source), secrets=secrets)


@cache
def _register() -> None:
    """Known as a running skillup from now on: a later one ends what a kill of this one leaves."""
    import atexit

    from skillup.process.tree import process_register
    from skillup.store.scratch import end_what_was_left, user_directory

    end_what_was_left()
    register = process_register(user_directory("processes"), own_process=True)
    with suppress(OSError):  # no place for it: records can be judged all the same
        register.__enter__()
        atexit.register(register.__exit__, None, None, None)


def _profiles(source: RecordSource) -> Callable[[str, Path], Profile]:
    """The profiles as the run had them, else those of this workspace."""
    from skillup.importers.judge_debug import INPUT_PROFILE

    recorded = _run_info(source).get("profiles") or {}

    def profile(name: str, root: Path) -> Profile:
        del root  # the run has its profiles by their names
        if name in recorded:
            with suppress(ValueError):  # of another version; the workspace may have one of it
                return Profile.model_validate(recorded[name])
        if source.kind == "input" and name == INPUT_PROFILE:
            raise UsageError("the judge names no engine: write `engine: PROFILE` beside its type")
        here = Path.cwd()
        return load_profile(name, root_with_engines(here, here), os.environ)

    return profile


def secrets_of(source: RecordSource, edited: Sequence[EditedCase] | None) -> Secrets:
    """What a run of the cases of `source`, or of those that are `edited`, would mask.

    Records are masked already; an edited case is as it stands in its file.
    """
    info = _run_info(source)
    recorded = info.get("profiles") or {}
    names = {profile["api_key_env"] for profile in recorded.values() if profile.get("api_key_env")}
    suites = list({id(e.suite_settings): e.suite_settings for e in edited or ()}.values())
    users = {suite.user_simulator.engine for suite in suites if suite.user_simulator}
    profiles = []
    for name in sorted({*recorded, *filter(None, users)}) if edited is not None else ():
        with suppress(SkillupError):  # of another workspace; runs keep no values of keys
            profiles.append(load_profile(name, root_with_engines(Path(), Path()), os.environ))
    cases = [item.case for item in edited or ()]
    secrets = collect_secrets(os.environ, profiles, suites, cases, names)
    # As :func:`skillup.app.planning.names_of_run` has them when a run begins.
    base = Path((info.get("request") or {}).get("directory") or ".").absolute()
    paths = (suite.get("path") for suite in (info.get("suites") or {}).values())
    places = {str(base / path) for path in paths if path}
    return secrets.sparing({str(base), *places, *(info.get("jobs") or ())})


def _run_info(source: RecordSource) -> Mapping[str, Any]:
    """The run's run.json; nothing if there is none, or a damaged one."""
    if source.run is None:
        return {}
    try:
        return RunDirectory.open(source.run).run_info()
    except RunDirectoryError:
        return {}
