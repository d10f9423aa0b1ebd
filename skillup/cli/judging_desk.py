"""Who answers what only a judge can, when records are judged again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.cli.judging_sources import Source
from skillup.schema.record import Record

if TYPE_CHECKING:
    from skillup.judges.desk import JudgeDesk
    from skillup.judges.models.client import Models
    from skillup.schema.case import Case
    from skillup.schema.profile import Profile


def desks_for(source: Source) -> Callable[[Record, Case], JudgeDesk]:
    """Makes the desk for a record and the case it is judged by, the same one where it can be.

    What a model answered when the run was judged is read from the run, before anybody is asked.
    """
    known: dict[frozenset[str], JudgeDesk] = {}

    def desk(record: Record, case: Case) -> JudgeDesk:
        del record
        names = {judge.api_key_env for judge in case.all_judges()}
        if case.judge_model is not None:
            names.add(case.judge_model.api_key_env)
        keys = frozenset(name for name in names if name)
        if keys not in known:
            known[keys] = _desk(source, keys)
        return known[keys]

    return desk


def with_fallback_model(case: Case) -> Case:
    """As `skillup run` does for a case that names no model."""
    from skillup.judges.models.choice import FALLBACK_VARIABLE, with_judge_model

    return with_judge_model(case, None, os.environ.get(FALLBACK_VARIABLE) or None)


def _desk(source: Source, keys: frozenset[str]) -> JudgeDesk:
    # Most runs are judged by rules alone: these are loaded only where they are needed.
    from skillup.judges.desk import DeskOptions, JudgeDesk
    from skillup.process.secrets import Secrets

    environment = dict(os.environ)
    secrets = Secrets.from_environment(environment, keys)
    models = _models(source, environment, secrets.mask)
    return JudgeDesk(models, DeskOptions(environment, secrets.mask, _profiles(source)))


def _models(source: Source, environment: dict[str, str], mask: Callable[[str], str]) -> Models:
    from skillup.cli.judges import answer_cache
    from skillup.judges.models.client import ModelOptions, Models
    from skillup.judges.models.stored import AnswerCache, AnswerFolder
    from skillup.store import RunDirectory

    if source.run is None:
        cache = answer_cache(None, Path.cwd(), mask, anew=False)
        return Models(ModelOptions(environment, mask, cache))
    answers = RunDirectory.open(source.run).judge_answers
    # The run may lie where nothing can be written.
    cache = AnswerCache(AnswerFolder(answers, mask, needed=False), None)
    return Models(ModelOptions(environment, mask, cache))


def _profiles(source: Source) -> Callable[[str], Profile]:
    """The profiles as the run had them, else those of this workspace."""
    from skillup.cli.engines import root_with_engines
    from skillup.load.profiles import load_profile
    from skillup.schema.profile import Profile
    from skillup.store import RunDirectory

    held: Any = {}
    if source.run is not None:
        held = RunDirectory.open(source.run).run_info().get("profiles")

    def profile(name: str) -> Profile:
        if isinstance(held, dict) and name in held:
            try:
                return Profile.model_validate(held[name])
            except ValueError:
                pass  # of another version; the workspace may have one of that name
        here = Path.cwd()
        return load_profile(name, root_with_engines(here, here), os.environ)

    return profile
