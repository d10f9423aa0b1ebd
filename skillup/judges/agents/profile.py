"""The profile of the agent that judges: the one that is named, read-only, with the judge's model.

CLIs differ in how they are held to the form of an answer, and in what they read besides the
question; those that have nothing of the kind are only told of the form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.errors import UsageError
from skillup.judges.place import JudgePlace
from skillup.load.trust import address_problem
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile

Schema = dict[str, Any]
_PROVIDERS = ("anthropic", "openai")


def profile_of(judge: JudgeConfig, place: JudgePlace) -> Profile:
    """Raises UsageError if there is no such profile, InvalidFilesError if its file is wrong."""
    profile = place.profiles(judge.engine)
    updates: dict[str, Any] = {"permission": "read_only"}
    if judge.model is not None:
        updates["model"] = _model(judge)
    if judge.base_url is not None:
        why = address_problem("judge.base_url", judge.base_url, place.environment, profile.base_url)
        if why is not None and profile.engine in _WAYS:
            raise UsageError(why)
        updates["base_url"] = judge.base_url
    if judge.api_key_env is not None:
        updates["api_key_env"] = judge.api_key_env
    return profile.model_copy(update=updates)


def answering(
    profile: Profile, schema: Schema, directory: Path, *, own_skills: bool = False
) -> Profile:
    """The profile whose agent is held to `schema`; files that this needs go to `directory`.

    `own_skills`: the judge has skills of its own, and so may not be kept from using any.
    """
    add = _WAYS.get(profile.engine)
    if add is None:
        return profile
    way = add(schema, directory)
    args, env = [*profile.args, *way.args], {**profile.env, **way.env}
    if not own_skills:
        args.extend(way.without_skills)
    return profile.model_copy(update={"args": args, "env": env})


def _model(judge: JudgeConfig) -> str | None:
    """As the CLI takes it: without the provider that skill-up and model judges put before it.

    With an address of its own the name is left as it is: there it may be the whole name.
    """
    name = judge.model
    if name is None or judge.base_url is not None:
        return name
    for provider in _PROVIDERS:
        for separator in (":", "/"):
            name = name.removeprefix(f"{provider}{separator}")
    return name


@dataclass(frozen=True, slots=True)
class _Way:
    """What a CLI is given so that it judges."""

    args: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    without_skills: Sequence[str] = ()
    """Keeps it from finding the skills of the agent that is judged, where it needs none."""


def _of_claude(schema: Schema, _directory: Path) -> _Way:
    """The answer comes as the final message; claude itself asks again if it has not the form.

    It reads the CLAUDE.md of every directory that it opens a file in, and those are the work of the
    agent that is judged; and so, at times, it finds skills there.
    """
    return _Way(
        ["--json-schema", json.dumps(schema)],
        {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"},
        ["--disable-slash-commands"],
    )


def _of_codex(schema: Schema, directory: Path) -> _Way:
    """The answer is the final message, held to the schema by the model's provider."""
    file = directory / "answer-schema.json"
    file.write_text(json.dumps(schema), "utf-8")
    return _Way(["--output-schema", str(file)])


_WAYS: dict[str, Callable[[Schema, Path], _Way]] = {
    "claude_code": _of_claude,
    "codex": _of_codex,
}
