"""Codex: `codex exec` for each turn, the thread resumed by the id that its first turn announced."""

from __future__ import annotations

import glob
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillup.adapters import ADAPTERS
from skillup.engines.base import EngineTurn, TrialContext, TurnRequest
from skillup.engines.cli_runner import CliSpec
from skillup.engines.codex import rollout
from skillup.engines.codex.events import BY_STDERR, CodexEvents
from skillup.engines.codex.transcript import CodexTranscript, is_session_row, row_tokens
from skillup.engines.created_sessions import SessionContent, UnwritableError, WritingCliEngine
from skillup.engines.environment import EngineHome, trial_environment
from skillup.engines.events import Transcript, as_amount, as_dict, as_text, words
from skillup.engines.login import Login
from skillup.engines.session_entries import SessionFormat
from skillup.engines.session_files import VersionRange, json_line, rows_of
from skillup.schema.profile import Permission, Profile
from skillup.schema.record import HistoryItem

PROVIDER = "skillup"

_SANDBOX_MODES: dict[Permission, str] = {
    "full": "danger-full-access",
    "edits": "workspace-write",
    "read_only": "read-only",
}
_CODEX_KEY = "CODEX_API_KEY"
_ACCESS_VARIABLE = "CODEX_ACCESS_TOKEN"
_OPENAI_KEY = "OPENAI_API_KEY"
_NO_SANDBOX = (
    "none of the agent's commands ran; let codex make one (user namespaces, bubblewrap), or use "
    "`permission: full` in a container"
)
_ROLLOUT = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+)\.jsonl")


def _login_expiry(login: dict[str, Any]) -> float | None:
    """By the access token itself, a JWT."""
    tokens = as_dict(login.get("tokens"))
    claims = as_text(tokens.get("access_token")).split(".")[1:2]
    if not claims or not tokens.get("refresh_token"):
        return None
    try:
        padded = claims[0] + "=" * (-len(claims[0]) % 4)
        return as_amount(as_dict(json.loads(urlsafe_b64decode(padded))).get("exp"))
    except ValueError:
        return None


HOME = EngineHome(
    ADAPTERS["codex"].home_variable or "",
    ".codex",
    "auth.json",
    _login_expiry,
    marks=words("""
        CODEX_THREAD_ID CODEX_SANDBOX CODEX_SANDBOX_NETWORK_DISABLED CODEX_MANAGED_BY_NPM
        CODEX_INTERNAL_ORIGINATOR_OVERRIDE
    """),
    passed_on=frozenset({"CODEX_CA_CERTIFICATE"}),
)


SESSIONS = SessionFormat(
    "codex",
    "Codex",
    directory=lambda environment: HOME.of(environment) / "sessions",
    session_id=lambda file, _: found[1] if (found := _ROLLOUT.fullmatch(file.name)) else None,
    matches=is_session_row,
    reader=CodexTranscript,
    tokens=row_tokens,
    running_total=True,
)


class Codex(WritingCliEngine):
    """Resumes, seeds and forks; holds answers to a schema; reads the users' own sessions."""

    name = "codex"
    sessions = SESSIONS
    spec = CliSpec(
        name="codex",
        install="install it with `npm install -g @openai/codex`, or set `command` in the profile",
        login="log in with `codex login`, or set CODEX_API_KEY or the profile's `api_key_env`",
        skill_directory=".agents/skills",
        home=HOME,
        session_word="thread",
        takes_ids=False,
        stderr=BY_STDERR,
        writable=VersionRange("0.145.0", "0.169.0"),
        install_writable="`npm install -g @openai/codex@VERSION`",
    )

    def arguments(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None, login: Login
    ) -> list[str]:
        """The same on every turn but for the word `resume` and the id.

        Options stand before `resume`, which knows few of them. A profile with a `base_url` gets a
        provider of its own, with the key or without any: the tokens of the login file are for
        OpenAI, not for any address that a profile may name.
        """
        profile = trial.profile
        given = ["exec", "--json", "--skip-git-repo-check"]
        given += ["-s", _SANDBOX_MODES[profile.permission]]
        if profile.model:
            # Without it, resuming would take the default model, not the thread's.
            given += ["-m", profile.model]
        settings: dict[str, str | int | bool | list[str]] = {
            # Else a refused connection is tried again for ever.
            "features.unbounded_connection_retries": False,
            # Other trials work in there, and codex's own home may be. $TMPDIR stays.
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
            if login.variable:
                provider["env_key"] = login.variable
            settings |= {f"model_providers.{PROVIDER}.{key}": v for key, v in provider.items()}
        for name, value in settings.items():
            # JSON is TOML for these, but for one character.
            toml = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
            given += ["-c", f"{name}={toml}"]
        given += profile.args
        return [*given, "resume", session_id, "-"] if session_id else [*given, "-"]

    def parser(self, trial: TrialContext) -> CodexEvents:
        return CodexEvents(trial.workspace, trial.progress)

    def session_file(self, engine_home: Path, session_id: str) -> Path | None:
        pattern = f"rollout-*-{glob.escape(session_id)}.jsonl"
        return min((engine_home / "sessions").rglob(pattern), default=None)

    def session_files(self, engine_home: Path) -> Collection[Path]:
        return set((engine_home / "sessions").rglob("rollout-*.jsonl"))

    def is_user_message(self, row: dict[str, Any]) -> bool:
        """Of threads of both formats."""
        payload = as_dict(row.get("payload"))
        kind, item = payload.get("type"), as_dict(payload.get("item"))
        sent = kind == "item_completed" and item.get("type") == "UserMessage"
        return row.get("type") == "event_msg" and (sent or kind == "user_message")

    def key_variables(self, profile: Profile, environment: Mapping[str, str]) -> Sequence[str]:
        if profile.base_url:
            return (_CODEX_KEY, _OPENAI_KEY)
        own = (_CODEX_KEY, _ACCESS_VARIABLE)
        # Codex itself does not read OPENAI_API_KEY: it serves where there is no other login.
        return own if HOME.login_of(environment) else (*own, _OPENAI_KEY)

    def uses_login_file(self, profile: Profile) -> bool:
        """Another server than OpenAI gets no tokens of the login file, and may need no key."""
        return not profile.base_url

    def environment(self, trial: TrialContext, login: Login) -> dict[str, str]:
        """A provider of our own takes any variable."""
        as_it_is = login.variable == _ACCESS_VARIABLE or trial.profile.base_url
        variable = login.variable if as_it_is or not login.variable else _CODEX_KEY
        credentials = {variable: login.value} if variable and login.value else {}
        return trial_environment(trial, HOME, credentials)

    def finish(
        self, result: EngineTurn, turn: TurnRequest, trial: TrialContext, file: Path | None
    ) -> EngineTurn:
        """Tokens, model and calls that only the thread's file has."""
        error, part, notices = result.error, rollout.RolloutPart(), list(result.notices)
        if file is not None:
            part = rollout.read_part(file, turn.previous.prefix_bytes if turn.previous else 0)
        seen = Transcript()
        for name in part.loaded_skills:
            if name in trial.skills:
                seen.loaded_skill(name)
        items = [*seen.items, *rollout.with_refused(result.items, part.refused)]
        if error is None and (reason := rollout.broken_sandbox(items)) is not None:
            what = f"its sandbox does not work here: {reason}; {_NO_SANDBOX}"
            error = self.error("setup", what)
        if turn.max_steps or trial.profile.max_turns:
            notices.append("codex has no limit on an agent's steps: `max_turns` was not applied")
        return replace(
            result,
            items=items,
            usage=part.usage,
            model=part.model,
            version=part.version,
            notices=notices,
            error=error,
        )

    def answering(
        self, profile: Profile, schema: dict[str, Any], directory: Path, *, own_skills: bool
    ) -> Profile:
        """The model's provider holds the answer to the schema."""
        file = directory / "answer-schema.json"
        file.write_text(json.dumps(schema), "utf-8")
        return profile.model_copy(update={"args": [*profile.args, "--output-schema", str(file)]})

    def history_lines(
        self, history: Sequence[HistoryItem], trial: TrialContext, engine_home: Path
    ) -> SessionContent:
        now = datetime.now(UTC)
        rows = rollout.rollout_rows(
            history,
            thread_id=trial.session_id,
            timestamp=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            cwd=str(trial.workspace),
            version=trial.version or "",
            provider=PROVIDER if trial.profile.base_url else None,
        )
        name = f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{trial.session_id}.jsonl"
        return engine_home / f"sessions/{now:%Y/%m/%d}" / name, map(json_line, rows), ()

    def fork_file(self, source: Path, session_id: str, trial: TrialContext) -> Path:
        first = next(rows_of(source), {})
        meta, problem = as_dict(first.get("payload")), ""
        if first.get("type") != "session_meta" or meta.get("id") != session_id:
            problem = "its file does not begin with what Codex writes there"
        elif meta.get("history_mode") not in (None, "legacy", "paginated"):
            problem = f"its history is of the unknown form {meta['history_mode']!r}"
        elif meta.get("history_base") or meta.get("forked_from_id"):
            problem = "it is itself a fork that Codex made, whose beginning is in another file"
        if problem:
            raise UnwritableError("unsupported", problem)
        name = source.name.replace(session_id, trial.session_id)
        day = name.removeprefix("rollout-")[:10].replace("-", "/")
        return self.engine_home(trial) / "sessions" / day / name
