"""What Claude Code 2.1 says: the lines of `--output-format stream-json`, its sessions' rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from skillup.engines.base import Progress, TrialContext, TurnRequest
from skillup.engines.events import (
    EventParser,
    Failure,
    Transcript,
    as_amount,
    as_dict,
    as_list,
    as_text,
    content_text,
    counts,
    kind_of_status,
    kind_of_text,
    kinds_by_text,
    words,
)
from skillup.engines.questions import answered, joined, of_questions
from skillup.engines.session_files import SessionLine, SessionReader
from skillup.schema.checks import ToolKind
from skillup.schema.record import ErrorKind, Usage

_BY_SUBTYPE: dict[str, ErrorKind] = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget",
}

# `error` of the assistant line that comes before the result; others are the model's.
_BY_API_ERROR: dict[str, ErrorKind] = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "billing_error": "quota",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
}

# Parts of `result`, `errors` and stderr, where nothing else says it.
BY_TEXT = kinds_by_text(Path(__file__).with_name("messages.txt"))

# How texts about an allowance that is used up go on or begin: a subscription's limit for five hours
# or a week, an organisation's spending limit, prepaid credits. All come with the status 429 or 400,
# as passing trouble does.
_QUOTA = re.compile(
    r"^You['’]ve (?:hit|reached) your (?!fast limit)"
    r"|^You['’]re out of (?:usage credits|extra usage)"
    r"|^Your org is out of usage|^Your (?:group|seat|usage allocation)\b"
    r"|usage limit reached|credit balance is too low",
    re.IGNORECASE,
)

# What the CLI answers by itself to a slash command, as a success of no turns.
_LOCAL_ANSWER = re.compile(
    r"Unknown (?:command|skill|slash command):|.*isn't available in this environment\.\Z", re.DOTALL
)

_TOOLS: dict[ToolKind, str] = {
    "shell": "Bash BashOutput KillShell PowerShell Monitor",
    "read": "Read NotebookRead",
    "write": "Write",
    "edit": "Edit MultiEdit NotebookEdit",
    "search": "Grep Glob LS",
    "web": "WebFetch WebSearch",
    "skill": "Skill",
    "agent": "Task Agent",
}
_KINDS = {name: kind for kind, names in _TOOLS.items() for name in names.split()}

# Events that say nothing about the conversation.
_SILENT = words("""
    rate_limit_event stream_event control_response control_cancel_request keep_alive tool_progress
    tool_use_summary auth_status prompt_suggestion
""")
_SILENT_SYSTEM = words("""
    status thinking_tokens hook_started hook_progress hook_response task_started task_progress
    task_updated task_notification session_state_changed files_persisted post_turn_summary
""")

USAGE_NAMES = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "output_tokens": "output_tokens",
}
_MODEL_USAGE_NAMES = {
    "input_tokens": "inputTokens",
    "cached_input_tokens": "cacheReadInputTokens",
    "cache_write_tokens": "cacheCreationInputTokens",
    "output_tokens": "outputTokens",
}


class ClaudeEvents(EventParser):
    """Feed it the lines of one process."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        super().__init__(progress)
        self._api_error: str | None = None
        self._result: dict[str, Any] = {}

    @property
    def failure(self) -> Failure | None:
        """Whether the turn failed. `subtype` is "success" even then: `is_error` says it."""
        if not self.finished:
            return None
        result = self._result
        text = as_text(result.get("result"))
        text = text or "; ".join(as_text(error) for error in as_list(result.get("errors")))
        subtype = as_text(result.get("subtype"))
        if not result.get("is_error") and not subtype.startswith("error"):
            if _LOCAL_ANSWER.match(text) and result.get("num_turns") == 0:
                return Failure("unsupported", f"{text.rstrip('.')}; the model was not asked")
            if not isinstance(result.get("result"), str):
                return Failure("protocol", "its `result` event holds no answer")
            return None
        text = text or f"it ended the turn with {subtype or 'an error'}"
        status = result.get("api_error_status")
        kind = _BY_SUBTYPE.get(subtype) or ("quota" if _QUOTA.search(text) else None)
        if kind is None and isinstance(status, int):
            kind = kind_of_status(status)
        kind = kind or kind_of_text(text, BY_TEXT)
        if kind is None:
            known = self._api_error
            kind = "crash" if known is None else _BY_API_ERROR.get(known, "model_error")
        return Failure(kind, text)

    def take(self, event: dict[str, Any]) -> None:
        kind, agent = as_text(event.get("type")), as_text(event.get("parent_tool_use_id")) or None
        if kind in ("assistant", "user", "result"):
            self.closed = kind == "result"
        if kind == "system":
            self._system(event)
        elif kind == "assistant":
            self._api_error = as_text(event.get("error")) or self._api_error
            text = add_answer(self, event, agent)
            self.response = text if text and agent is None else self.response
        elif kind == "user":
            # Texts are the prompt again, or what the CLI adds by itself.
            for block in map(as_dict, as_list(as_dict(event.get("message")).get("content"))):
                if block.get("type") == "tool_result":
                    take_block(self, block, agent)
        elif kind == "result":
            self._result, self.finished = event, True
            self.session_id = self.session_id or as_text(event.get("session_id")) or None
            self.usage = _usage(event)
            self.cost_usd = as_amount(event.get("total_cost_usd"))
            self.response = as_text(event.get("result")) or self.response
        elif kind not in _SILENT:
            self.unknown(event)

    def _system(self, event: dict[str, Any]) -> None:
        subtype = as_text(event.get("subtype"))
        if subtype == "init":
            self.session_id = as_text(event.get("session_id")) or None
            self.model = as_text(event.get("model")) or None
            self.version = as_text(event.get("claude_code_version")) or None
            for server in map(as_dict, as_list(event.get("mcp_servers"))):
                if server.get("status") == "failed":
                    self.notice(f"MCP server {as_text(server.get('name'))} failed")
        elif text := system_notice(subtype, event):
            self.notice(text)
        elif subtype not in _SILENT_SYSTEM:
            self.unknown(event)


class LiveClaudeEvents(ClaudeEvents):
    """Feed it the lines of one turn of a process that holds several, `before` of the turn before.

    The process's own requests get the answer that nobody beside the CLI would give: what the
    permission mode does not allow by itself is refused; the case answers questions.
    """

    def __init__(self, turn: TurnRequest, trial: TrialContext, before: Any) -> None:
        super().__init__(trial.progress)
        self._permission, self._answers = trial.profile.permission, turn.answers
        self._tasks = set[str]()  # In the background
        self._before = before.total if before is not None else (Usage(), 0.0)
        self.total: tuple[Usage, float] = self._before
        """What the process used so far, and its cost."""

    @property
    def is_settled(self) -> bool:
        return super().is_settled and not self._tasks

    def take(self, event: dict[str, Any]) -> None:
        task = as_text(event.get("task_id"))
        if event.get("type") == "control_request":
            self.outgoing += self._answer(event)
        elif event.get("subtype") == "task_started":
            self._tasks.add(task)
        elif event.get("subtype") == "task_notification":
            self._tasks.discard(task)
        if event.get("type") != "control_request":
            super().take(event)
        if event.get("type") == "result":
            self._take_off_earlier_turns(by_model=bool(event.get("modelUsage")))

    def _take_off_earlier_turns(self, *, by_model: bool) -> None:
        """Counts by model, and costs, are of the process so far."""
        usage, cost = self._before
        if by_model and self.usage is not None:
            self.total = self.usage, self.total[1]
            earlier = usage.model_dump()
            own = {n: count - (earlier[n] or 0) for n, count in self.usage if count is not None}
            self.usage = Usage(**own)
        if self.cost_usd is not None:
            self.total = self.total[0], self.cost_usd
            self.cost_usd = round(self.cost_usd - cost, 10)

    def _answer(self, event: dict[str, Any]) -> bytes:
        request = as_dict(event.get("request"))
        tool, given = request.get("tool_name"), as_dict(request.get("input"))
        answer: dict[str, Any] = {"subtype": "success", "request_id": event.get("request_id")}
        may = self._permission == "full"
        if tool == "AskUserQuestion":
            asked = of_questions(given.get("questions"), "question")
            content = answered(self, asked, self._answers) or {}
            given = {**given, "answers": {k: joined(v, _as_one) for k, v in content.items()}}
            may = bool(content)
        if request.get("subtype") != "can_use_tool":
            answer |= {"subtype": "error", "error": "not supported"}
        elif may:
            answer["response"] = {"behavior": "allow", "updatedInput": given}
        else:
            why = "There is nobody to ask; say it in your answer."
            answer["response"] = {"behavior": "deny", "message": why}
        return json.dumps({"type": "control_response", "response": answer}).encode() + b"\n"


def _as_one(text: str) -> str:
    """One of several answers, as the CLI tells them apart."""
    return json.dumps(text, ensure_ascii=False) if ", " in text or '"' in text else text


def add_answer(transcript: Transcript, row: dict[str, Any], agent: str | None) -> str:
    """Adds the blocks of an `assistant` row; returns its last text."""
    message, answer = as_dict(row.get("message")), ""
    content = message.get("content")
    if message.get("model") == "<synthetic>":  # the CLI speaks, not the model
        transcript.notice(content_text(content), agent)
        return ""
    for block in blocks_of(content):
        answer = take_block(transcript, block, agent) or answer
    return answer


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """A message's content as blocks; a text is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_dict(block) for block in as_list(content)]


def take_block(transcript: Transcript, block: dict[str, Any], agent: str | None) -> str:
    """Adds a block of a message; returns its text, if it is one."""
    kind = as_text(block.get("type"))
    if kind == "text":
        text = as_text(block.get("text"))
        transcript.message(text, agent)
        return text
    if kind in ("thinking", "redacted_thinking"):
        transcript.reasoning(as_text(block.get("thinking")), agent)
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        name, given = as_text(block.get("name")), block.get("input")
        arguments = given if isinstance(given, dict) else {"input": given}
        tool: ToolKind = _KINDS.get(name, "other")
        if name.startswith("mcp__"):
            server, _, rest = name.removeprefix("mcp__").partition("__")
            name, tool = f"{server}::{rest}", "mcp"
        transcript.call(as_text(block.get("id")), name, tool, arguments, agent)
    elif kind.endswith("tool_result"):
        content = content_text(block.get("content", block.get("output")))
        failed = block.get("is_error") is True
        call_id = as_text(block.get("tool_use_id"))
        transcript.result(call_id, "error" if failed else "success", content, agent)
    else:
        transcript.unknown(block)
    return ""


def system_notice(subtype: str, row: dict[str, Any]) -> str:
    """The notice of a `system` row; "" for none, or if it is not known."""
    if subtype in ("compact_boundary", "microcompact_boundary"):
        return "the conversation was compacted"
    if subtype == "api_retry":
        status = as_text(row.get("error_status") or row.get("error"))
        attempt = f"{as_text(row.get('attempt'))} of {as_text(row.get('max_retries'))}"
        return f"asked the model again ({attempt}): {status}"
    return ""


def _usage(result: dict[str, Any]) -> Usage | None:
    """This process's tokens.

    `modelUsage` first: `usage` is 0 after the CLI had to fall back from a broken stream.
    """
    total = Counter[str]()
    for model in as_dict(result.get("modelUsage")).values():
        total.update(_tokens(model, _MODEL_USAGE_NAMES))
    total = total or Counter(_tokens(result.get("usage"), USAGE_NAMES))
    return Usage(**total) if total else None


def _tokens(given: Any, names: Mapping[str, str]) -> dict[str, int]:
    """Claude counts cached input apart; we count it in."""
    found = counts(as_dict(given), names)
    inputs = [count for name, count in found.items() if name != "output_tokens"]
    return found | ({"input_tokens": sum(inputs)} if inputs else {})


# User messages that the CLI writes: what a local command printed, reminders, reports of tasks.
_OF_THE_CLI = re.compile(
    r"\s*(?:<(?:local-command-(?:stdout|stderr|caveat)|bash-(?:stdout|stderr)|system-reminder"
    r"|task-notification)\b|Caveat: The messages below were generated by the user while running"
    r"|\[Request interrupted)"
)
_CLI_FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


class ClaudeTranscript(SessionReader):
    """The rows of one file."""

    engine = "claude_code"
    label = "Claude Code"
    folder = "projects"

    @staticmethod
    def id_in(file: Path, directory: Path) -> str | None:
        """Those of sub-agents belong to their session."""
        own = file.parent.parent == directory and not file.name.startswith("agent-")
        return file.stem if own and file.suffix == ".jsonl" else None

    @staticmethod
    def matches(row: dict[str, Any]) -> bool:
        return "session_id" not in row and (
            any(key in row for key in ("sessionId", "parentUuid", "leafUuid"))
            or (row.get("type") in ("user", "assistant") and "message" in row)
        )

    def feed(self, row: dict[str, Any]) -> None:
        summary = self.summary
        self.time(row.get("timestamp"))
        # The last: a session that was resumed into a copy begins with lines of the older one.
        summary.session_id = as_text(row.get("sessionId")) or summary.session_id
        summary.cwd = summary.cwd or as_text(row.get("cwd")) or None
        summary.version = as_text(row.get("version")) or summary.version
        kind = as_text(row.get("type"))
        if kind in ("user", "assistant"):
            content = as_dict(row.get("message")).get("content")
            side = "sidechain" if row.get("isSidechain") is True else None
            agent = as_text(row.get("agentId")) or side
            if not content or not isinstance(content, str | list):
                self.unknown(row)
            elif kind == "user":
                self._user(row, agent, blocks_of(content))
            else:
                model = as_text(as_dict(row.get("message")).get("model"))
                if agent is None and model and model != "<synthetic>":
                    summary.model = model
                add_answer(self, row, agent)
        elif kind == "system":
            self._system(row)
        elif kind == "attachment":
            # Context that the CLI adds; but also what the user typed while the agent worked.
            attachment = as_dict(row.get("attachment"))
            text = content_text(attachment.get("prompt"))
            if attachment.get("type") != "queued_command" or attachment.get("isMeta") or not text:
                return
            is_report = attachment.get("commandMode") == "task-notification"
            (self.notice if is_report else self.user)(text)
        elif kind in _TITLES:  # others are the state of the screen, of files, of hooks
            summary.title = as_text(row.get(_TITLES[kind])) or summary.title

    def _user(self, row: dict[str, Any], agent: str | None, blocks: list[dict[str, Any]]) -> None:
        texts: list[Any] = []
        for block in blocks:
            text = as_text(block.get("text"))
            if as_text(block.get("type")).endswith("tool_result"):
                take_block(self, block, agent)
            elif _OF_THE_CLI.match(text):
                self.notice(text, agent)
            elif text or block.get("type") != "text":
                texts.append(block)
        if texts:
            by_cli = any(row.get(flag) for flag in _CLI_FLAGS)
            (self.notice if by_cli else self.user)(content_text(texts), agent)

    def _system(self, row: dict[str, Any]) -> None:
        subtype, content = as_text(row.get("subtype")), as_text(row.get("content"))
        if text := system_notice(subtype, row):
            self.notice(text)
        elif subtype in ("api_error", "error"):
            error = as_dict(row.get("error"))
            inner = as_dict(as_dict(error.get("error")).get("error")) or error
            self.notice(f"API error: {as_text(inner.get('message')) or content}")
        elif subtype in ("informational", "local_command", "permission_retry"):
            self.notice(content or subtype)

    def tokens(self, row: dict[str, Any]) -> tuple[str, dict[str, int]] | None:
        """Of one request, on every row of its message."""
        message = as_dict(row.get("message"))
        if row.get("type") != "assistant" or message.get("model") == "<synthetic>":
            return None
        known = _tokens(message.get("usage"), USAGE_NAMES)
        return (as_text(message.get("id")), known) if known else None

    def left_lines(self, lines: Iterable[SessionLine]) -> Collection[int]:
        """Rows form a tree by `parentUuid`.

        The last prompt or answer and all before it in the tree are the conversation; so is what
        hangs on that and is neither (results of tools, states), and the other lines of an answer,
        each of which has one block.
        """
        numbers: dict[str, int] = {}
        tree: dict[int, tuple[int, bool, Any]] = {}
        """By line: the parent's (0: none), whether it is said, the answer that it is a line of."""
        previous, leaf, linked = 0, 0, False
        for line in lines:
            row = as_dict(line.row)
            uuid, message = row.get("uuid"), as_dict(row.get("message"))
            if not isinstance(uuid, str) or row.get("isSidechain") or row.get("agentId"):
                continue
            parent = row.get("parentUuid")
            if parent is None:
                parent = row.get("logicalParentUuid")
            known = numbers.get(parent) if isinstance(parent, str) else None
            compacted = row.get("subtype") == "compact_boundary" or row.get("isCompactSummary")
            begins = "parentUuid" in row and parent is None and not compacted
            linked = linked or known is not None
            # A line that names no parent, or one that is not there, follows the line before it.
            at = 0 if begins else previous if known is None else known
            is_answer = row.get("type") == "assistant"
            kinds = [as_dict(block).get("type") for block in as_list(message.get("content"))]
            is_spoken = is_answer or (row.get("type") == "user" and "tool_result" not in kinds)
            tree[line.number] = at, is_spoken, message.get("id") if is_answer else None
            previous = numbers[uuid] = line.number
            leaf = line.number if is_spoken else leaf
        if not linked or not leaf:
            return ()
        kept, answers = {0}, set()
        while leaf:
            kept.add(leaf)
            leaf, _, answer = tree[leaf]
            answers.add(answer)
        answers.discard(None)
        for number, (parent_line, is_spoken, answer) in tree.items():
            if parent_line in kept and (not is_spoken or answer in answers):
                kept.add(number)
        return tree.keys() - kept
