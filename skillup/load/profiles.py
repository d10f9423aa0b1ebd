"""Profiles: from what `--engine` or the suite says to a validated :class:`Profile`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.adapters import ADAPTERS, ALIASES, HOME_VARIABLES, NOT_RUN
from skillup.errors import InvalidFilesError, Problem, UsageError, near_miss
from skillup.load.yaml_reader import Document, Loc, problems_from, read_model, read_yaml
from skillup.schema.profile import CUSTOM_VALUES, DESCRIBED, AgentDescription, Profile

_REFERENCE = re.compile(
    r"\$(?:(?P<escape>\$)|\{(?P<name>(?:kwargs\.)?[A-Za-z_][A-Za-z0-9_]*)"
    r"(?:(?P<operator>:-|-|:\?|\?)(?P<rest>[^}]*))?\}|(?P<bad>\{))"
)

_SET_IT = "set it, or give a default: ${VAR:-default}"
_NO_REFERENCE = "write ${VAR}, ${VAR:-default} or ${VAR?message}; for the text itself, write $${"


class MissingVariableError(LookupError):
    """A reference without a value, or what only looks like one: what is wrong, and a way out."""


def expand(text: str, environment: Mapping[str, str], kept: Collection[str] = ()) -> str:
    """`text` with every reference replaced, as a POSIX shell does. ``$$`` is a dollar sign.

    References to what is `kept`, and to values of its `kwargs`, are left as they are.

    Raises MissingVariableError for a variable that is not set and has no default, and for what
    only looks like a reference: left as it is, it would reach the agent.
    """

    def value(match: re.Match[str]) -> str:
        if match["escape"]:
            return "$"
        name, operator, rest = match["name"], match["operator"] or "", match["rest"] or ""
        # What was written is not repeated: somebody may have pasted a key there.
        if match["bad"] is not None:
            raise MissingVariableError("`${` begins no reference to a variable here", _NO_REFERENCE)
        if "${" in rest:
            raise MissingVariableError(f"a reference within the reference to {name}", _NO_REFERENCE)
        if name in kept or ("kwargs" in kept and name.startswith("kwargs.")):
            return match[0]
        found = environment.get(name)
        if found is not None and (found or ":" not in operator):
            return found
        if "-" in operator:
            return rest
        raise MissingVariableError(rest or f"the variable {name} is not set", _SET_IT)

    return _REFERENCE.sub(value, text)


def expand_all(
    value: Any,
    environment: Mapping[str, str],
    document: Document,
    problems: list[Problem],
    loc: Loc = (),
    *,
    lenient: bool = False,
) -> Any:
    """What stands at `loc`, with all references replaced; `problems` gets what has no value."""

    def expanded(value: Any, loc: Loc) -> Any:
        if isinstance(value, dict):
            return {key: expanded(item, (*loc, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [expanded(item, (*loc, number)) for number, item in enumerate(value)]
        if not isinstance(value, str) or "$" not in value:
            return value
        try:
            # `base_url: ${X:-}` means "not set", which an empty text would not.
            is_custom = loc[:1] == ("custom",) or loc[:2] == ("engine", "custom")
            kept = CUSTOM_VALUES if is_custom else ()
            return expand(value, environment, kept) or (None if len(loc) == 1 else "")
        except MissingVariableError as missing:
            message, fix = missing.args
            severity = "warning" if lenient and fix == _SET_IT else "error"
            problems.append(document.problem(loc, message, fix, severity))
            return value

    return expanded(value, loc)


def profile_files(root: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted((root / "engines").glob("*.y*ml"))}


def load_profile(name: str, root: Path, environment: Mapping[str, str]) -> Profile:
    """The profile that `name` means: a path, a file in `engines/`, else an adapter's own defaults.

    Raises UsageError if it means nothing, InvalidFilesError if its file does not validate.
    """
    full, files = ALIASES.get(name, name), profile_files(root)
    path: Path | None = Path(name)
    if Path(name).suffix not in (".yaml", ".yml"):
        path = files.get(name, files.get(full))
    if path is not None and not path.is_file():
        raise UsageError(f"--engine {name}: no such file", hint="give a profile's path or name")
    if path is not None:
        profile, problems = check_profile(path, environment)
        if profile is None or problems:
            raise InvalidFilesError(problems)
        return profile
    if full in ADAPTERS:
        return Profile(name=full, engine=full)
    known = sorted({*files, *ADAPTERS})
    suggestion = near_miss(name, known)
    hint = f"known here: {', '.join(known)}; profiles are looked for in {root / 'engines'}"
    hint = f"did you mean {suggestion}?" if suggestion and name not in NOT_RUN else hint
    why = f": {NOT_RUN[name]}" if name in NOT_RUN else ""
    raise UsageError(f"there is no engine `{name}`{why}", hint=hint)


def check_profile(
    path: Path, environment: Mapping[str, str], *, lenient: bool = False
) -> tuple[Profile | None, list[Problem]]:
    """One profile file, if it can be read at all, and everything that is wrong with it.

    With `lenient`, a variable that is not set here is only a warning: the file may be right.
    """
    try:
        document = read_yaml(path)
    except InvalidFilesError as error:
        return None, list(error.problems)
    problems: list[Problem] = []

    data = expand_all(document.data, environment, document, problems, lenient=lenient)
    described = data.get("engine")
    if isinstance(described, str) and Path(described).suffix in (".yaml", ".yml"):
        try:
            about = read_model(path.parent / described, AgentDescription)
        except InvalidFilesError as error:
            return None, [*problems, *error.problems]
        data |= {"engine": DESCRIBED, "agent": about}
    try:
        profile = Profile.model_validate({**data, "name": data.get("name") or path.stem})
    except ValidationError as error:
        problems += problems_from(error, document, Profile)
        return None, sorted(problems, key=lambda problem: (problem.line, problem.column))
    given = [one for one in (profile.agent, profile.custom) if one is not None]
    if len(given) != (profile.engine == DESCRIBED):
        what = f"`engine: {DESCRIBED}` and `agent` or `custom`, which describe it, belong together"
        problems.append(document.problem(("engine",), what, "write it and one of them, or none"))
    elif profile.engine not in (*ADAPTERS, DESCRIBED):
        guess = near_miss(profile.engine, [*ADAPTERS, *ALIASES])
        meant = f"did you mean `{ALIASES.get(guess, guess)}`? " if guess else ""
        message = f"there is no adapter `{profile.engine}`"
        fix = f"{meant}known adapters: {', '.join(ADAPTERS)}"
        problems.append(document.problem(("engine",), message, fix))
    for name in sorted(HOME_VARIABLES & profile.env.keys()) * (profile.isolation == "clean"):
        message = f"with `isolation: clean` each trial has its own {name}"
        fix = "leave it out, or set `isolation: shared`"
        problems.append(document.problem(("env", name), message, fix))
    adapter = ADAPTERS.get(profile.engine)
    if profile.session == "live" and (adapter is None or not adapter.live):
        message = f"the adapter `{profile.engine}` cannot keep a process from turn to turn"
        problems.append(document.problem(("session",), message, "use `resume`"))
    # A command given as a relative path starts at the profile's folder, not where one stands.
    name, *arguments = profile.command or [""]
    if len(Path(name).parts) > 1 and not Path(name).is_absolute():
        command = [str(path.resolve().parent / name), *arguments]
        profile = profile.model_copy(update={"command": command})
    return profile, problems
