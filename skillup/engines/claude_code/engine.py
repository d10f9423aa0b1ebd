"""Claude Code: `claude -p` for each turn, the session resumed by an id that we choose."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from skillup.adapters import ADAPTERS
from skillup.engines.base import EngineTurn, TrialContext, TurnRequest
from skillup.engines.claude_code.events import (
    BY_TEXT,
    ClaudeEvents,
    ClaudeTranscript,
    LiveClaudeEvents,
)
from skillup.engines.cli_runner import CliSpec
from skillup.engines.created_sessions import (
    OwnTools,
    Row,
    UnwritableError,
    WritingCliEngine,
    api_name,
    iso_time,
    own_call,
)
from skillup.engines.environment import EngineHome, Login, trial_environment
from skillup.engines.events import as_amount, as_dict, loaded_skills, words
from skillup.engines.session_files import VersionRange
from skillup.schema.profile import Permission, Profile
from skillup.schema.record import HistoryItem, ToolCall

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_URL_VARIABLE, _URL = "ANTHROPIC_BASE_URL", "https://api.anthropic.com"
_HEADERS, _HEADER = "ANTHROPIC_CUSTOM_HEADERS", re.compile(r"(?m)(?:(?<=: )|(?<=:))\S.*$")

_PERMISSION_MODES: dict[Permission, str] = {
    "full": "bypassPermissions",
    "edits": "acceptEdits",
    # Reading and harmless shell commands run; whatever would need to be asked for is refused.
    "read_only": "default",
}
_INSTRUCTIONS = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/**")
_GLOB_CHARACTERS = re.compile(r"([\\*?\[\]{}()!+@|])")


def _login_expiry(login: dict[str, Any]) -> float | None:
    oauth = as_dict(login.get("claudeAiOauth"))
    expires = as_amount(oauth.get("expiresAt"))
    return expires / 1000 if expires is not None and oauth.get("refreshToken") else None


HOME = EngineHome(
    ADAPTERS["claude_code"].home_variable or "",
    ".claude",
    ADAPTERS["claude_code"].login_file,
    _login_expiry,
    marks=words("""
        CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SESSION_ID CLAUDE_CODE_CHILD_SESSION
        CLAUDE_CODE_SSE_PORT CLAUDE_CODE_EXECPATH
    """),
)

WRITABLE = VersionRange("2.1.100", "2.1.330")


class ClaudeCode(WritingCliEngine):
    """Resumes, seeds and forks; holds answers to a schema; reads the users' own sessions."""

    name = "claude_code"
    sessions = ClaudeTranscript
    session_folders = ("tasks",)
    spec = CliSpec(
        name="claude",
        install="install it with `npm install -g @anthropic-ai/claude-code`, "
        "or set `command` in the profile",
        login="log in with `claude`, or set ANTHROPIC_API_KEY or the profile's `api_key_env`",
        skill_directories=(".claude/skills",),
        home=HOME,
        keys=KEY_VARIABLES,
        stderr=BY_TEXT,
        writable=WRITABLE,
        install_writable=f"npm install -g @anthropic-ai/claude-code@{WRITABLE.last}",
    )

    def arguments(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None, login: Login
    ) -> list[str]:
        """The same on every turn but for the session's option."""
        profile = trial.profile
        given = ["-p", "--output-format", "stream-json", "--verbose"]
        if trial.live is not None or _must_be_literal(turn):
            given += ["--input-format", "stream-json"]
        if trial.live is not None and turn.answers:  # else the agent has no tool that asks
            given += ["--permission-prompt-tool", "stdio"]
        if profile.model:
            given += ["--model", profile.model]
        given += ["--permission-mode", _PERMISSION_MODES[profile.permission]]
        limit = turn.max_steps or profile.max_turns
        if limit:
            given += ["--max-turns", str(limit)]
        if turn.system:
            given += ["--append-system-prompt", turn.system]
        if profile.isolation == "clean":
            given += _isolation(trial.workspace)
        option = "--resume" if session_id else "--session-id"
        return [*given, *profile.args, option, session_id or trial.session_id]

    def parser(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None
    ) -> ClaudeEvents:
        """As plain text, claude answers `/word` itself and attaches the file that `@path` names.

        It looks for both in the last text block of a message only, and drops an empty one before it
        asks the model: a message of two blocks, the second empty, arrives exactly as written.
        """
        if trial.live is not None:
            return LiveClaudeEvents(turn, trial, trial.live.parser_before).asking(_as_json(turn))
        message = _as_json(turn) if _must_be_literal(turn) else turn.prompt
        return ClaudeEvents(trial.progress).asking(message)

    def session_file(self, engine_home: Path, session_id: str) -> Path | None:
        """Its folder is not computed: the workspace may have been elsewhere."""
        projects, name = f"{engine_home}/projects", f"{session_id}.jsonl"
        with suppress(OSError):
            for folder in sorted(os.listdir(projects)):  # noqa: PTH208 - done for every turn
                if os.path.isfile(file := f"{projects}/{folder}/{name}"):  # noqa: PTH113
                    return Path(file)
        return None

    def is_user_message(self, row: dict[str, Any]) -> bool:
        """Not a tool's result or the CLI's own text."""
        flags = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")
        if row.get("type") != "user" or any(row.get(flag) for flag in flags):
            return False
        content = as_dict(row.get("message")).get("content")
        if isinstance(content, list):
            texts = [as_dict(block).get("text") for block in content]
            content = next((text for text in texts if isinstance(text, str) and text), None)
        return isinstance(content, str) and not content.startswith("[Request interrupted")

    def model_address(self, trial: TrialContext) -> tuple[str, Collection[str | None]] | None:
        """Not of clouds, whose requests are signed; an OAuth token passes as it is."""
        given, profile = trial.extra_env, trial.profile
        if any(name.startswith("CLAUDE_CODE_USE_") for name in given):
            return None
        by_name = given.get(_URL_VARIABLE), trial.environment.get(_URL_VARIABLE)
        url = by_name[0] or profile.base_url or by_name[1] or _URL
        return url, {*KEY_VARIABLES, profile.api_key_env} - {KEY_VARIABLES[2]}

    def environment(self, trial: TrialContext, login: Login) -> dict[str, str]:
        profile, gateway = trial.profile, trial.gateway
        credentials: dict[str, str] = {}
        if login.variable is not None and login.value is not None:
            own = login.variable in KEY_VARIABLES
            credentials[login.variable if own else KEY_VARIABLES[0]] = login.value
        env = trial_environment(trial, HOME, credentials)
        # Where the model is belongs to the key: both pass on together.
        variables = {**trial.environment, **trial.extra_env}
        given = {
            _URL_VARIABLE: profile.base_url or variables.get(_URL_VARIABLE),
            _HEADERS: variables.get(_HEADERS),
        }
        settings = {
            # One request a turn: no titles, no telemetry, no updates in the middle of a run.
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_RETRIES": str(profile.retries),
        }
        if trial.live is not None:
            # The session's file is whole when a turn ends, not a moment later.
            settings["CLAUDE_CODE_EAGER_FLUSH"] = "1"
        if profile.isolation == "clean":
            settings["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = "1"
            # Its tools' output would otherwise stay in the system's temporary directory.
            settings["CLAUDE_CODE_TMPDIR"] = env["TMPDIR"]
        if profile.permission == "full" and os.geteuid() == 0:
            # Without it claude refuses, as root, to do without permission prompts.
            settings["IS_SANDBOX"] = "1"
        env |= {**{k: v for k, v in given.items() if v}, **settings, **trial.extra_env}
        if gateway is not None:
            env[_URL_VARIABLE] = gateway.url
            if _HEADERS in env:  # They may hold a key of what stands before the model
                env[_HEADERS] = _HEADER.sub(lambda of: gateway.placeholder(of[0]), env[_HEADERS])
            if gateway.upstream == _URL:  # else it would do without some of its features
                env["_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"] = "1"
        return env

    def finish(
        self, result: EngineTurn, turn: TurnRequest, trial: TrialContext, file: Path | None
    ) -> EngineTurn:
        """A skill that the prompt itself calls (`/name …`) loads without any event."""
        called = turn.prompt.removeprefix("/").split(maxsplit=1)[:1]
        if result.error is not None or not turn.slash_command:
            return result
        return replace(result, items=[*loaded_skills(called, trial.skills), *result.items])

    def is_slash_command(self, prompt: str) -> bool:
        """Whatever begins with a slash and a name; what it does not know is then an error."""
        return prompt.startswith("/") and bool(prompt[1:2].strip())

    def answering(
        self, profile: Profile, schema: dict[str, Any], directory: Path, *, own_skills: bool
    ) -> Profile:
        """Where it opens a file it reads CLAUDE.md and finds skills: those of the agent judged."""
        args = [*profile.args, "--json-schema", json.dumps(schema)]
        args += [] if own_skills else ["--disable-slash-commands"]
        args += ["--tools", "Read,Glob,Grep,Skill" if own_skills else "Read,Glob,Grep"]
        env = {**profile.env, "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"}
        return profile.model_copy(update={"args": args, "env": env})

    def new_file(self, trial: TrialContext, engine_home: Path) -> Path:
        return project_folder(engine_home, trial.workspace) / f"{trial.session_id}.jsonl"

    def history_rows(
        self, history: Sequence[HistoryItem], trial: TrialContext
    ) -> tuple[list[Row], Sequence[str]]:
        """Conversations begin with the user, and end with an answer.

        To one that ends with a tool's result claude would add words of its own, the user's too.
        """
        base = UUID(trial.session_id)
        messages = [
            message
            for number, item in enumerate(history, start=1)
            for message in _messages(item, f"msg_{uuid5(base, f'answer {number}').hex}")
        ]
        notices: list[str] = []
        if not messages:
            raise UnwritableError("setup", "it holds no message to begin with")
        if not self.is_user_message({"type": messages[0]["role"], "message": messages[0]}):
            messages.insert(0, {"role": "user", "content": OPENING})
            notices.append(f"before the history, which does not begin with the user: {OPENING}")
        if messages[-1]["role"] == "user":
            messages.append(_answer({"type": "text", "text": CLOSING}, f"msg_{base.hex}"))
            notices.append(f"behind the history, which does not end with an answer: {CLOSING}")
        # A second apart, the last one now.
        now, parent = datetime.now(UTC), None
        rows: list[Row] = []
        for number, message in enumerate(messages):
            time = now - timedelta(seconds=len(messages) - 1 - number)
            row = {
                "parentUuid": parent,
                "uuid": str(uuid5(base, f"line {number}")),
                "timestamp": iso_time(time),
                "cwd": str(trial.workspace),
                "sessionId": trial.session_id,
                "version": trial.version or "",
                "type": message["role"],
                "message": message,
            }
            rows.append(row)
            parent = row["uuid"]
        return rows, notices


def _must_be_literal(turn: TurnRequest) -> bool:
    return not turn.slash_command and (turn.prompt.startswith("/") or "@" in turn.prompt)


def _as_json(turn: TurnRequest) -> str:
    blocks = [{"type": "text", "text": turn.prompt}]
    if not turn.slash_command:
        blocks.append({"type": "text", "text": ""})
    message = {"type": "user", "message": {"role": "user", "content": blocks}}
    return json.dumps(message) + "\n"


def _isolation(workspace: Path) -> list[str]:
    """Project settings and skills stay, the user's own go.

    Instructions of directories above the workspace would come in, too, and MCP servers of their
    `.mcp.json`; the workspace's own are named, so that they still work.
    """
    servers = f"{workspace}/.mcp.json"
    own_servers = ["--mcp-config", servers] if os.path.isfile(servers) else []  # noqa: PTH113
    project_only = ["--setting-sources", "project", "--strict-mcp-config"]
    return [*own_servers, *project_only, "--settings", _excluding(str(workspace))]


@lru_cache(256)
def _excluding(workspace: str) -> str:
    above = _GLOB_CHARACTERS.sub(r"\\\1", workspace).split("/")[:-1]
    places = ["/".join(above[:count]) for count in range(len(above), 0, -1)]
    excluded = [f"{place}/{name}" for place in places for name in _INSTRUCTIONS]
    return json.dumps({"claudeMdExcludes": excluded})


def project_folder(engine_home: Path, workspace: Path) -> Path:
    """Where Claude Code looks for sessions held in `workspace`, a real path; it need not exist.

    What is no ASCII letter or digit becomes a dash, an emoji two (two units of UTF-16). Raises
    UnwritableError for a long path: Claude Code would cut it.
    """
    path = str(workspace)
    slug = re.sub("[^a-zA-Z0-9]", lambda found: "-" * (1 + (found[0] > "\uffff")), path)
    if len(slug) > 200:
        what = "the workspace's path is longer than 200 characters"
        raise UnwritableError("setup", f"{what}: {path}")
    return engine_home / "projects" / slug


# A session file that holds a conversation which never ran.

# No model wrote it. Without any name claude hangs; the name is not sent.
MODEL = "seeded-history"
OPENING = "(The conversation begins with the assistant.)"
CLOSING = "(The history ends here, before an answer.)"


def _messages(item: HistoryItem, answer_id: str) -> Iterator[dict[str, Any]]:
    """One for each block; none for a message that is empty."""
    if item.tool_result is not None:
        result = item.tool_result
        block: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": result.content,
        }
        if result.status == "error":  # the API takes no failure without words
            block |= {"content": result.content or "(no output)", "is_error": True}
        yield {"role": "user", "content": [block]}
    elif item.role == "user" and item.content.strip():
        yield {"role": "user", "content": item.content}
    elif item.role == "assistant":
        if item.content.strip():
            yield _answer({"type": "text", "text": item.content}, answer_id)
        for call in item.tool_calls:
            name, given = claude_call(call)
            use = {"type": "tool_use", "id": call.id, "name": name, "input": given}
            yield _answer(use, answer_id)


def _answer(block: Mapping[str, Any], answer_id: str) -> dict[str, Any]:
    """Those of one answer have one id, or claude would send the calls scrambled."""
    return {"id": answer_id, "role": "assistant", "model": MODEL, "content": [block]}


_PATH = {"path": "file_path", "filename": "file_path"}
_TOOLS: OwnTools = {
    "shell": ("Bash", {"cmd": "command", "script": "command"}),
    "read": ("Read", _PATH),
    "write": ("Write", {**_PATH, "text": "content", "file_text": "content"}),
    "edit": ("Edit", {**_PATH, "old": "old_string", "new": "new_string"}),
    "search": ("Grep", {"query": "pattern", "regex": "pattern"}),
    "web": ("WebFetch", {"uri": "url", "q": "query"}),
    "skill": ("Skill", {"name": "skill", "command": "skill"}),
    "agent": ("Agent", {}),
    # Nothing says which one: names that the model's API takes, and that no tool has.
    "mcp": ("mcp__unknown__tool", {}),
    "other": ("other", {}),
}


def claude_call(call: ToolCall) -> tuple[str, dict[str, Any]]:
    """The tool's name and its input, as claude has them."""
    server, name, arguments = own_call(call, _TOOLS)
    if not call.name and name == "WebFetch" and "url" not in arguments and "query" in arguments:
        name = "WebSearch"
    return api_name(f"{server}__{name}") if server else name, arguments
