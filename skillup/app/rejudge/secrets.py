"""What judging again must not show: the secrets that a run of the same cases would mask.

Records are masked already, an edited case as it stands in its file is not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.app.rejudge.cases import EditedCase, EditedCases
from skillup.errors import RunDirectoryError, SkillupError, UsageError
from skillup.redaction.secrets import Secrets
from skillup.reports.text import shown_id
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.store import RunDirectory
from skillup.store.journal import no_mask, to_json

if TYPE_CHECKING:
    from skillup.app.rejudge.sources import RecordSource
    from skillup.schema.profile import Profile


@dataclass(frozen=True, slots=True)
class Hidden:
    """Where secrets are, beside the variables whose names say so; plain data for processes."""

    names: Sequence[str] = ()
    """Variables that hold keys of agents."""
    names_of_judges: Sequence[str] = ()
    """Variables that hold keys of judges and of simulated users."""
    environments: Sequence[Mapping[str, str]] = ()
    """Variables that profiles and suites set."""
    tokens: Sequence[Mapping[str, str]] = ()
    """Of the agents' login files."""
    names_of_run: Sequence[str] = ()
    """Ordinary words that are part of these are in the run's records as they are."""

    def secrets(self, environment: Mapping[str, str]) -> Secrets:
        """All of them, named as a run names them."""
        secrets = Secrets.from_environment(environment, self.names)
        for variables in self.environments:
            secrets = secrets.also_of(variables, self.names)
        for tokens in self.tokens:
            secrets = secrets.also(tokens)
        if self.names_of_judges:
            secrets = secrets.also_of(environment, self.names_of_judges)
        return secrets.sparing(self.names_of_run)


def hidden_of(source: RecordSource, edited: EditedCases | None) -> Hidden:
    """What a run of the cases of `source`, or of those that are `edited`, would hide."""
    run_info = _run_info(source)
    held, of_run = _held_profiles(run_info), _names_of_run(run_info)
    names = sorted(_texts(profile.get("api_key_env") for profile in held.values()))
    if edited is None:
        return Hidden(names, names_of_run=of_run)
    by_path = {e.loaded_suite.path: e.loaded_suite for e in edited.cases if e.loaded_suite}
    suites = [loaded.suite for loaded in by_path.values()]
    users = [suite.user_simulator for suite in suites if suite.user_simulator is not None]
    profiles = list(_profiles_now({*held, *_texts(user.engine for user in users)}))
    names = sorted({*names, *_texts(profile.api_key_env for profile in profiles)})
    of_judges = {name for item in edited.cases for name in _keys_of_judges(item.case)}
    of_judges |= _texts(user.api_key_env for user in users)
    return Hidden(
        names,
        sorted(of_judges),
        [dict(p.env) for p in profiles] + [dict(s.environment.env) for s in suites],
        _tokens(profiles),
        of_run,
    )


def masked_cases(edited: EditedCases, secrets: Secrets) -> EditedCases:
    """As a run would have recorded them, so that what is unchanged reads the same.

    Raises UsageError for a case that is none without its secrets.
    """
    return EditedCases(tuple(_masked(item, secrets) for item in edited.cases))


def has_secrets(text: bytes | None, secrets: Secrets) -> bool:
    """Whether there is a secret in JSON `text`; one that could not be written is suspected."""
    return bool(secrets) and (text is None or secrets.mask_bytes(text) != text)


def without_secrets(grade: Grade, secrets: Secrets) -> Grade:
    """The grade as a run would have stored it."""
    return Grade.model_validate_json(to_json(grade, secrets.mask, indent=None))


def _masked(item: EditedCase, secrets: Secrets) -> EditedCase:
    data = item.case.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if not has_secrets(to_json(data, no_mask, indent=None), secrets):
        return item
    try:
        case = Case.model_validate_json(to_json(data, secrets.mask, indent=None))
    except ValueError:
        raise UsageError(
            f"{secrets.mask(shown_id(item.case.id))}: a key stands where it cannot be masked",
            hint="take the value of the key out of the case",
        ) from None
    return replace(item, case=case)


def _run_info(source: RecordSource) -> Mapping[str, Any]:
    if source.run is None:
        return {}
    try:
        return RunDirectory.open(source.run).run_info()
    except RunDirectoryError:
        return {}


def _names_of_run(run_info: Mapping[str, Any]) -> list[str]:
    """As :func:`skillup.app.planning.names_of_run` has them when a run begins."""
    request, suites, jobs = (run_info.get(key) for key in ("request", "suites", "jobs"))
    base = Path(str(request.get("directory") or ".") if isinstance(request, dict) else ".")
    of_suites = suites.values() if isinstance(suites, dict) else ()
    paths = _texts(suite.get("path") for suite in of_suites if isinstance(suite, dict))
    names = {str(base.absolute()), *(str(base.absolute() / path) for path in paths)}
    return sorted(names | _texts(jobs if isinstance(jobs, list) else ()))


def _held_profiles(run_info: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    held = run_info.get("profiles")
    found = held.items() if isinstance(held, dict) else ()
    return {name: profile for name, profile in found if isinstance(profile, dict)}


def _profiles_now(names: Iterable[str]) -> Iterator[Profile]:
    """As they are here: runs keep no values of keys."""
    from skillup.app.engines import root_with_engines
    from skillup.load.profiles import load_profile

    here = Path.cwd()
    for name in sorted(names):
        try:
            yield load_profile(name, root_with_engines(here, here), os.environ)
        except SkillupError:
            continue  # of another workspace


def _tokens(profiles: Sequence[Profile]) -> list[Mapping[str, str]]:
    from skillup.engines.registry import tokens_of

    return [tokens_of(profile.engine, os.environ) for profile in profiles]


def _keys_of_judges(case: Case) -> set[str]:
    own = {case.judge_model.api_key_env} if case.judge_model is not None else set()
    return _texts({*own, *(judge.api_key_env for judge in case.all_judges())})


def _texts(values: Any) -> set[str]:
    return {value for value in values if value and isinstance(value, str)}
