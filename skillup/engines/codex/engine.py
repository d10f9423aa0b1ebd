"""Codex: `codex exec` for each turn, the thread resumed by the id that its first turn announced."""

from __future__ import annotations

import glob
import json
import re
from base64 import urlsafe_b64decode
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from skillup.adapters import ADAPTERS
from skillup.dataclass import mutable
from skillup.engines.base import EngineTurn, TrialContext, TurnRequest
from skillup.engines.cli_runner import CliSpec
from skillup.engines.codex.events import BY_STDERR, OUTPUTS, CodexEvents, CodexTranscript, output_of
from skillup.engines.codex.live import AppServerEvents
from skillup.engines.created_sessions import (
    OwnTools,
    Row,
    UnwritableError,
    WritingCliEngine,
    iso_time,
    own_call,
)
from skillup.engines.environment import EngineHome, Login, trial_environment
from skillup.engines.events import as_amount, as_dict, as_text, content_text, loaded_skills, words
from skillup.engines.session_files import VersionRange, rows_of
from skillup.schema.profile import Permission, Profile
from skillup.schema.record import HistoryItem, ToolCall, TranscriptItem, Usage

PROVIDER = "skillup"

_SANDBOX_MODES: dict[Permission, str] = {
    "full": "danger-full-access",
    "edits": "workspace-write",
    "read_only": "read-only",
}
# That the agent, and its MCP servers, may ask the user, and commands may not.
_ASKS = {
    "features.default_mode_request_user_input": True,
    "suppress_unstable_features_warning": True,
    "approval_policy.granular.mcp_elicitations": True,
    "approval_policy.granular.rules": False,
    "approval_policy.granular.sandbox_approval": False,
}
_CODEX_KEY = "CODEX_API_KEY"
_ACCESS_VARIABLE = "CODEX_ACCESS_TOKEN"
_OPENAI_KEY = "OPENAI_API_KEY"
_URL = "https://api.openai.com/v1"

_DAY = "[0-9]*/[0-9]*/[0-9]*"  # And no deeper: `sessions` may have become a link to anywhere


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
    ADAPTERS["codex"].login_file,
    _login_expiry,
    marks=words("""
        CODEX_THREAD_ID CODEX_SANDBOX CODEX_SANDBOX_NETWORK_DISABLED CODEX_MANAGED_BY_NPM
        CODEX_INTERNAL_ORIGINATOR_OVERRIDE
    """),
    passed_on=frozenset({"CODEX_CA_CERTIFICATE"}),
)


class Codex(WritingCliEngine):
    """Resumes, seeds and forks; holds answers to a schema; reads the users' own sessions."""

    name = "codex"
    sessions = CodexTranscript
    spec = CliSpec(
        name="codex",
        install="install it with `npm install -g @openai/codex`, or set `command` in the profile",
        login="log in with `codex login`, or set CODEX_API_KEY or the profile's `api_key_env`",
        skill_directories=(".agents/skills",),
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
        profile, gateway = trial.profile, trial.gateway
        given = ["app-server"]
        if trial.live is None:
            given = ["exec", "--json", "--skip-git-repo-check"]
            given += ["-s", _SANDBOX_MODES[profile.permission]]
            # Without it, resuming would take the default model, not the thread's.
            given += ["-m", profile.model] if profile.model else []
        settings: dict[str, str | int | bool | list[str]] = {
            # Else a refused connection is tried again for ever.
            "features.unbounded_connection_retries": False,
            # Where the network is cut each turn would wait for it for five seconds.
            "analytics.enabled": False,
            # Other trials work in there, and codex's own home may be. $TMPDIR stays.
            "sandbox_workspace_write.exclude_slash_tmp": True,
        }
        if profile.isolation == "clean":
            # No instructions and skills from directories above the workspace.
            settings["project_root_markers"] = []
        if trial.live is not None and turn.answers:
            settings |= _ASKS
        if turn.system:
            settings["developer_instructions"] = turn.system
        if _logs_in(trial, login):
            settings["cli_auth_credentials_store"] = "ephemeral"
        if profile.base_url:
            settings["model_provider"] = PROVIDER
            provider: dict[str, str | int | bool] = {
                "name": PROVIDER,
                "base_url": gateway.url if gateway is not None else profile.base_url,
                "wire_api": "responses",
                # Both kinds of retries multiply; one is enough to keep count.
                "request_max_retries": 0,
                "stream_max_retries": profile.retries,
            }
            if login.variable:
                provider["env_key"] = login.variable
            settings |= {f"model_providers.{PROVIDER}.{key}": v for key, v in provider.items()}
        elif gateway is not None:
            settings["openai_base_url"] = gateway.url
        for name, value in settings.items():
            # JSON is TOML for these, but for one character.
            toml = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
            given += ["-c", f"{name}={toml}"]
        given += profile.args
        if trial.live is not None:
            return given
        return [*given, "resume", session_id, "-"] if session_id else [*given, "-"]

    def parser(self, turn: TurnRequest, trial: TrialContext, session_id: str | None) -> CodexEvents:
        if trial.live is None:
            return CodexEvents(trial.workspace, trial.progress).asking(turn.prompt)
        thread: dict[str, Any] = {
            "model": trial.profile.model,
            "cwd": str(trial.workspace),
            "approvalPolicy": None if turn.answers else "never",  # None: as the settings say
            "sandbox": _SANDBOX_MODES[trial.profile.permission],
        }
        if session_id is not None:
            thread |= {"threadId": session_id, "excludeTurns": True}
        login = self.login(trial)
        key = login.value if _logs_in(trial, login) else None
        return AppServerEvents(turn, trial, thread, key, trial.live.parser_before)

    def session_files(self, engine_home: Path, session_id: str | None = None) -> Collection[Path]:
        own = f"-{glob.escape(session_id)}" if session_id is not None else ""
        return set((engine_home / "sessions").glob(f"{_DAY}/rollout-*{own}.jsonl"))

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

    def model_address(self, trial: TrialContext) -> tuple[str, Collection[str | None]] | None:
        """With a ChatGPT login it asks another server, which none but itself can ask."""
        url, variable = trial.profile.base_url, self.login(trial).variable
        if not url and variable in (None, _ACCESS_VARIABLE):
            return None
        keys = {_CODEX_KEY, _OPENAI_KEY, trial.profile.api_key_env}
        return url or _URL, keys - {_ACCESS_VARIABLE}

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
        error, part, notices = result.error, RolloutPart(), list(result.notices)
        if file is not None:
            part = read_part(file, turn.previous.prefix_bytes if turn.previous else 0)
        items = loaded_skills(part.loaded_skills, trial.skills)
        # One that has begun in the stream, and was ended with the CLI, was not refused.
        items += with_refused(result.items, part.refused if error is None else ())
        if error is None and (reason := broken_sandbox(items)) is not None:
            what = f"its sandbox does not work here: {reason}; none of the agent's commands ran"
            fix = "let codex make one (user namespaces, bubblewrap), or use `permission: full`"
            error = self.error("setup", f"{what}; {fix} in a container")
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

    def new_file(self, trial: TrialContext, engine_home: Path) -> Path:
        now = datetime.now(UTC)
        name = f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{trial.session_id}.jsonl"
        return engine_home / f"sessions/{now:%Y/%m/%d}" / name

    def history_rows(
        self, history: Sequence[HistoryItem], trial: TrialContext
    ) -> tuple[list[Row], Sequence[str]]:
        """Nothing names a model: with one, the first turn of another would begin with a compaction.

        The provider is the one that every turn will use: Codex resumes a thread with no other.
        """
        timestamp = iso_time(datetime.now(UTC))
        meta: Row = {
            "id": trial.session_id,
            "timestamp": timestamp,
            "cwd": str(trial.workspace),
            "originator": "skillup",
            "cli_version": trial.version or "",
            "source": "exec",
            "history_mode": "paginated",
        }
        if trial.profile.base_url:
            meta["model_provider"] = PROVIDER
        payloads = [("session_meta", meta), *_payloads(history, trial.session_id)]
        return [
            {"timestamp": timestamp, "ordinal": ordinal, "type": kind, "payload": payload}
            for ordinal, (kind, payload) in enumerate(payloads)
        ], ()

    def check_forkable(self, session_id: str, first: dict[str, Any]) -> None:
        meta, problem = as_dict(first.get("payload")), ""
        if first.get("type") != "session_meta" or meta.get("id") != session_id:
            problem = "its file does not begin with what Codex writes there"
        elif meta.get("history_mode") not in (None, "legacy", "paginated"):
            problem = f"its history is of the unknown form {meta['history_mode']!r}"
        elif meta.get("history_base") or meta.get("forked_from_id"):
            problem = "it is itself a fork that Codex made, whose beginning is in another file"
        if problem:
            raise UnwritableError("unsupported", problem)


def _logs_in(trial: TrialContext, login: Login) -> bool:
    """Whether a live process gets the key as a message: it does not read the variable of `exec`."""
    own = login.variable not in (None, _ACCESS_VARIABLE) and not trial.profile.base_url
    return trial.live is not None and own


# Calls that end in an event of the stream, unless codex refuses them.
_WATCHED_CALLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "apply_patch"})
_WITH_RESULTS = frozenset({"CommandExecution", "FileChange", "McpToolCall"})
_SKILL = re.compile(r"\s*<skill>\s*<name>(.*?)</name>")
_STILL_RUNNING = "Process running with session ID"
# What stands in place of a command's own output if the sandbox could not be made for it.
_NO_SANDBOX = re.compile(
    r"(bwrap|sandbox-exec|codex-linux-sandbox): |(error|failed)\b.{0,80}\b(bubblewrap|landlock)",
    re.IGNORECASE,
)


@mutable
class RolloutPart:
    """What one turn wrote into the session's file."""

    model: str | None = None
    version: str | None = None
    usage: Usage | None = None  # Of this turn alone
    loaded_skills: list[str] = field(default_factory=list)  # By a `$name` in the prompt
    refused: list[tuple[int, TranscriptItem]] = field(default_factory=list)
    """Calls that the event stream does not show, and what codex answered the model; each after so
    many tools that ended."""


def read_part(path: Path, offset: int) -> RolloutPart:
    """What stands behind the byte `offset` of a session's file."""
    part = RolloutPart()
    calls: dict[str, tuple[int, list[dict[str, Any]]]] = {}
    ended = 0
    used, tokens = Counter[str](), CodexTranscript().tokens
    for row in rows_of(path, offset):  # What earlier turns used
        tokens(row)
    for row in rows_of(path, start=offset):
        kind, payload = row.get("type"), as_dict(row.get("payload"))
        inner, call_id = payload.get("type"), as_text(payload.get("call_id"))
        if kind == "session_meta":
            part.version = as_text(payload.get("cli_version")) or None
        elif kind == "turn_context":
            part.model = as_text(payload.get("model")) or None
        elif inner in ("function_call", "custom_tool_call"):
            if payload.get("name") in _WATCHED_CALLS:
                calls[call_id] = ended, [row]
        elif inner in OUTPUTS and call_id in calls:
            # A command that goes on in the background has begun in the stream, and did not end.
            is_running = _STILL_RUNNING in output_of(payload)[1]
            calls[call_id][1].extend([] if is_running else [row])
        elif inner == "message" and payload.get("role") == "user":
            # Codex adds the body of a skill that the prompt names as a message of its own.
            if skill := _SKILL.match(content_text(payload.get("content"))):
                part.loaded_skills.append(skill[1].strip())
        elif inner == "item_completed":
            item = as_dict(payload.get("item"))
            calls.pop(as_text(item.get("id")), None)
            ended += item.get("type") in _WITH_RESULTS
        elif own := tokens(row):
            used.update(own[1])
    for after, rows in calls.values():
        reader = CodexTranscript()
        for row in rows if len(rows) > 1 else ():
            reader.feed(row)
        for entry in reader.entries:
            refused = entry.item
            if refused.tool_result is not None:
                failed = refused.tool_result.model_copy(update={"status": "error"})
                refused = refused.model_copy(update={"tool_result": failed})
            part.refused.append((after, refused))
    part.usage = Usage(**used) if used else None
    return part


def with_refused(
    items: Sequence[TranscriptItem], refused: Sequence[tuple[int, TranscriptItem]]
) -> list[TranscriptItem]:
    """The items of the event stream, and the refused calls in their places."""
    made: list[TranscriptItem] = []
    waiting, ended = deque(refused), set[str]()
    for number, item in enumerate(items, start=1):
        while waiting and (
            number == len(items) or (item.tool_call and waiting[0][0] <= len(ended))
        ):
            made.append(waiting.popleft()[1])
        made.append(item)
        if item.tool_result:  # a patch has one for every file
            ended.add(item.tool_result.call_id.partition(".")[0])
    return made + [item for _, item in waiting]


def broken_sandbox(items: Collection[TranscriptItem]) -> str | None:
    """What the sandbox said, where it kept every command of the turn from running."""
    shells = {i.tool_call.id for i in items if i.tool_call and i.tool_call.kind == "shell"}
    results = [i.tool_result for i in items if i.tool_result and i.tool_result.call_id in shells]
    for result in results:
        if result.status != "error" or not _NO_SANDBOX.match(result.content.lstrip()):
            return None
    return results[0].content.strip().splitlines()[0] if results else None


# A conversation that never ran, as the rows of a Codex rollout. Pure.

_SHELL_TOOL = "exec_command"
_TOOLS: OwnTools = {"shell": (_SHELL_TOOL, {"command": "cmd"})}
_EXIT_CODES = {"success": 0, "error": 1}


def codex_call(call: ToolCall) -> tuple[str, str, dict[str, Any]]:
    """The namespace of an MCP tool, the tool's name, and its arguments, as Codex has them.

    `command_execution` is our records' name of Codex's shell.
    """
    if call.name in (_SHELL_TOOL, "command_execution"):
        call = call.model_copy(update={"name": "", "kind": "shell"})
    return own_call(call, _TOOLS)


def _payloads(history: Sequence[HistoryItem], thread_id: str) -> Iterator[tuple[str, Row]]:
    """The types and payloads of the rows for all messages."""
    turn = 0
    shell_calls: set[str] = set()

    def completed(kind: str, number: int, text: Row) -> tuple[str, Row]:
        item_id, turn_id = (
            str(uuid5(UUID(thread_id), what)) for what in (f"item {number}", f"turn {turn}")
        )
        return "event_msg", {
            "type": "item_completed",
            "thread_id": thread_id,
            "turn_id": turn_id,
            "item": {"type": kind, "id": item_id, "content": [text]},
            "started_at_ms": 0,
            "completed_at_ms": 0,
        }

    def message(kind: str) -> tuple[str, Row]:
        content = [{"type": kind, "text": item.content}]
        return "response_item", {"type": "message", "role": item.role, "content": content}

    for number, item in enumerate(history):
        if item.tool_result is not None:
            result = item.tool_result
            output, code = result.content, _EXIT_CODES.get(result.status)
            # Codex's shell puts an exit code above what it gave back.
            if code is not None and result.call_id in shell_calls:
                output = f"Process exited with code {code}\nOutput:\n{output}"
            row = {"type": "function_call_output", "call_id": result.call_id, "output": output}
            yield "response_item", row
        elif item.role == "user":
            turn += 1
            yield message("input_text")
            text = {"type": "text", "text": item.content, "text_elements": []}
            yield completed("UserMessage", number, text)
        elif item.content:
            yield completed("AgentMessage", number, {"type": "Text", "text": item.content})
            yield message("output_text")
        for call in item.tool_calls:
            namespace, name, given = codex_call(call)
            row = {"type": "function_call", "name": name, "call_id": call.id}
            row["arguments"] = json.dumps(given, ensure_ascii=False, default=str)
            if name == _SHELL_TOOL:
                shell_calls.add(call.id)
            yield "response_item", row | ({"namespace": namespace} if namespace else {})
