"""The command line of one `codex exec` turn."""

from __future__ import annotations

import json

from skillup.engines.base import TrialContext, TurnRequest
from skillup.schema.profile import Permission

PROVIDER = "skillup"

_SANDBOX_MODES: dict[Permission, str] = {
    "full": "danger-full-access",
    "edits": "workspace-write",
    "read_only": "read-only",
}


def arguments(
    turn: TurnRequest,
    trial: TrialContext,
    thread_id: str | None,
    *,
    key_variable: str | None,
) -> list[str]:
    """What follows the command; the same on every turn but for the word `resume` and the id.

    Options stand before `resume`, which knows few of them. A profile with a `base_url` gets a
    provider of its own, with the key in `key_variable` or without any: the tokens of the login
    file are for OpenAI, not for any address that a profile may name.
    """
    profile = trial.profile
    given = ["exec", "--json", "--skip-git-repo-check", "-s", _SANDBOX_MODES[profile.permission]]
    if profile.model:
        # Without it, resuming would take the default model, not the thread's.
        given += ["-m", profile.model]
    # Else a refused connection is tried again for ever.
    settings: dict[str, str | int | bool | list[str]] = {
        "features.unbounded_connection_retries": False,
        # Other trials work in there, and codex's own home may be. $TMPDIR, the trial's own, stays.
        "sandbox_workspace_write.exclude_slash_tmp": True,
    }
    if profile.isolation == "clean":
        # No instructions and skills from directories above the workspace.
        settings["project_root_markers"] = []
    if turn.system:
        settings["developer_instructions"] = turn.system
    if profile.base_url:
        settings["model_provider"] = PROVIDER
        provider: dict[str, str | int | bool] = {
            "name": PROVIDER,
            "base_url": profile.base_url,
            "wire_api": "responses",
            # Both kinds of retries multiply; one is enough to keep count.
            "request_max_retries": 0,
            "stream_max_retries": profile.retries,
        }
        if key_variable:
            provider["env_key"] = key_variable
        settings |= {
            f"model_providers.{PROVIDER}.{name}": value for name, value in provider.items()
        }
    for name, value in settings.items():
        given += ["-c", f"{name}={_toml(value)}"]
    given += profile.args
    return [*given, "resume", thread_id, "-"] if thread_id else [*given, "-"]


def _toml(value: str | int | bool | list[str]) -> str:
    """A TOML value on one line. JSON is TOML for these, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
