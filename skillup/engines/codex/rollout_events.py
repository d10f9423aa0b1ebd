"""The `event_msg` rows of Codex's rollouts: what the CLI showed to people. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Literal

from skillup.engines.cli_runner import as_dict, as_list, as_text, content_text
from skillup.engines.codex.tools import (
    Call,
    Status,
    changed_files,
    command_call,
    file_changes,
    status_of_code,
)
from skillup.engines.session_entries import EntryLog
from skillup.schema.check_specs import ToolKind

# Most things stand in a rollout twice: as an item that the model sees, and as an event for people.

Side = Literal["item", "event"]

_MOST_IDS = 10_000


class Duplicates:
    """Knows of a thing told on one side whether the other side has told it already."""

    def __init__(self) -> None:
        # How many more items than events there were, by what they tell; pairs are taken out.
        self._messages: dict[str, int] = {}
        self._ids: dict[str, int] = {}

    def is_second_message(self, side: Side, role: str, text: str) -> bool:
        """The same words on the other side; breaks and spaces do not matter."""
        digest = blake2b("".join(text.split()).encode(errors="replace"), digest_size=16)
        return _is_second(self._messages, side, f"{role} {digest.hexdigest()}")

    def is_second_id(self, side: Side, what: str, call_id: str) -> bool:
        """The same call, or the same call's result."""
        while len(self._ids) > _MOST_IDS:
            del self._ids[next(iter(self._ids))]
        return _is_second(self._ids, side, f"{what} {call_id}")

    def begin_turn(self) -> None:
        """What was said earlier has no twin any more: the same words are said again."""
        self._messages.clear()


def words_of(content: Any) -> str:
    """What a message says in words; its twin may lack the pictures."""
    if not isinstance(content, list):
        return as_text(content)
    return "".join(as_text(as_dict(block).get("text")) for block in content)


def _is_second(balances: dict[str, int], side: Side, key: str) -> bool:
    step = 1 if side == "item" else -1
    before = balances.pop(key, 0)
    if before + step:
        balances[key] = before + step
    return before * step < 0


_SILENT = frozenset(
    [
        "agent_message_delta",
        "agent_reasoning_delta",
        "agent_reasoning_section_break",
        "background_event",
        "exec_command_output_delta",
        "guardian_assessment",
        "item_started",
        "plan_update",
        "session_configured",
        "sub_agent_activity",
        "task_complete",
        "task_started",
        "thread_goal_updated",
        "thread_settings_applied",
        "token_count",
        "turn.completed",
        "turn.started",
        "turn_complete",
        "turn_diff",
        "turn_started",
        "undo_started",
        "web_search_begin",
    ]
)
_NOTICES = {
    "error": "error",
    "stream_error": "error",
    "warning": "warning",
    "undo_completed": "undo",
    "entered_review_mode": "a review began",
    "exited_review_mode": "the review ended",
    "turn_aborted": "the turn was aborted",
}
# How the tools of sub-agents are named to the model.
_COLLAB = {
    "collab_agent_spawn_end": "spawn_agent",
    "collab_agent_interaction_end": "send_input",
    "collab_waiting_end": "wait",
    "collab_close_end": "close_agent",
    "collab_resume_end": "resume_agent",
}
Phase = Literal["begin", "end", "only"]
"""only: the call is told, its result is not."""
_BOOKKEEPING = frozenset({"type", "call_id", "callId", "turn_id", "turnId", "sender_thread_id"})


class RolloutEvents:
    """Takes the payloads of events; each thing that an item has told already is passed over."""

    def __init__(self, log: EntryLog, twins: Duplicates) -> None:
        self._log = log
        self._twins = twins
        self._begun: set[str] = set()

    def user(self, text: str, words: str, side: Side) -> None:
        """A message that nobody has told yet: what was said before cannot be its twin."""
        self._twins.begin_turn()
        self._twins.is_second_message(side, "user", words)
        self._log.user(text)

    def take(self, kind: str, event: dict[str, Any]) -> None:
        """The next event."""
        if kind == "user_message":
            self._user(event.get("message"))
        elif kind == "agent_message":
            self._assistant(event.get("message"))
        elif kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            self._reasoning([as_text(event.get("text"))])
        elif kind == "item_completed":
            self._item(as_dict(event.get("item")))
        elif kind in _NOTICES:
            self._notice(kind, event)
        elif kind == "thread_name_updated":
            self._log.summary.title = as_text(event.get("thread_name")) or None
        elif kind == "context_compacted":
            self._compacted()
        elif not self._tool(kind, event) and kind not in _SILENT:
            self._log.unknown(event)
        if kind == "task_complete" and event.get("error"):
            self._log.notice(f"error: {as_text(as_dict(event['error']).get('message'))}")

    def _user(self, content: Any) -> None:
        words = words_of(content)
        if not self._twins.is_second_message("event", "user", words):
            self.user(content_text(content), words, "event")

    def _assistant(self, content: Any) -> None:
        if not self._twins.is_second_message("event", "assistant", words_of(content)):
            self._log.assistant(content_text(content))

    def _reasoning(self, texts: list[str]) -> None:
        new = [t for t in texts if not self._twins.is_second_message("event", "reasoning", t)]
        if new:
            self._log.reasoning("\n\n".join(new))

    def _compacted(self) -> None:
        if not self._twins.is_second_message("event", "compacted", ""):
            self._log.notice("the conversation was compacted")

    def _notice(self, kind: str, event: dict[str, Any]) -> None:
        more = as_text(event.get("message") or event.get("reason") or event.get("user_facing_hint"))
        self._log.notice(f"{_NOTICES[kind]}: {more}".rstrip(": "))

    def _item(self, item: dict[str, Any]) -> None:
        """Threads of the newer kind have one event for each thing that is complete."""
        kind, item_id = as_text(item.get("type")), as_text(item.get("id"))
        if kind == "UserMessage":
            self._user(item.get("content"))
        elif kind == "AgentMessage":
            self._assistant(item.get("content"))
        elif kind == "Reasoning":
            self._reasoning([as_text(text) for text in as_list(item.get("summary_text"))])
        elif kind == "Plan":
            self._log.notice(f"plan: {as_text(item.get('text'))}")
        elif kind == "ContextCompaction":
            self._compacted()
        elif kind == "CommandExecution":
            self._calls(item_id, [command_call(item_id, item.get("command"))], item)
        elif kind == "FileChange":
            self._patch(item_id, item)
        elif kind == "McpToolCall":
            self._mcp(item_id, item, item)
        elif kind in ("WebSearch", "Extension", "ImageView", "ImageGeneration"):
            self._other(item_id, as_text(item.get("kind")) or kind, item)
        else:
            self._log.unknown(item)

    def _tool(self, kind: str, event: dict[str, Any]) -> bool:
        """Whether it is an event of a tool."""
        call_id = as_text(event.get("call_id") or event.get("callId"))
        tool, _, last = kind.rpartition("_")
        phase: Phase = "begin" if last in ("begin", "request") else "end"
        if tool == "exec_command":
            self._calls(call_id, [command_call(call_id, event.get("command"))], event, phase)
        elif tool == "patch_apply":
            self._patch(call_id, event, phase)
        elif tool == "mcp_tool_call":
            self._mcp(call_id, as_dict(event.get("invocation")), event, phase)
        elif tool == "dynamic_tool_call":
            arguments = as_dict(event.get("arguments"))
            call = Call(call_id, as_text(event.get("tool")), "other", arguments)
            self._calls(call_id, [call], event, phase)
        elif kind in ("web_search_end", "image_generation_end", "view_image_tool_call"):
            name = "view_image" if kind.startswith("view") else tool
            self._other(call_id, name, event)
        elif kind in _COLLAB:
            self._other(call_id, _COLLAB[kind], event, "agent")
        else:
            return False
        return True

    def _patch(self, call_id: str, told: dict[str, Any], phase: Phase = "end") -> None:
        changes = list(changed_files(told.get("changes"), self._log.summary.cwd))
        self._calls(call_id, file_changes(call_id, changes or [("", "update")]), told, phase)

    def _mcp(
        self, call_id: str, called: dict[str, Any], told: dict[str, Any], phase: Phase = "end"
    ) -> None:
        name = f"{as_text(called.get('server'))}::{as_text(called.get('tool'))}"
        call = Call(call_id, name, "mcp", as_dict(called.get("arguments")))
        self._calls(call_id, [call], told, phase)

    def _other(
        self, call_id: str, name: str, told: dict[str, Any], kind: ToolKind | None = None
    ) -> None:
        kinds: dict[str, ToolKind] = {"web_search": "web", "WebSearch": "web", "view_image": "read"}
        results = ("results", "result", "agent_statuses", "statuses", "status")
        arguments = {k: v for k, v in told.items() if k not in (*_BOOKKEEPING, *results, "id")}
        call = Call(call_id, name, kind or kinds.get(name, "other"), arguments)
        answered = any(told.get(name) is not None for name in results)
        self._calls(call_id, [call], told, "end" if answered else "only")

    def _calls(
        self, call_id: str, calls: list[Call], told: dict[str, Any], phase: Phase = "end"
    ) -> None:
        """A call and, at its end, its result; a patch has one of each for every file."""
        if phase == "end" and call_id in self._begun:
            self._begun.discard(call_id)
        elif not self._twins.is_second_id("event", "call", call_id):
            for call in calls:
                self._log.call(call.call_id, call.name, call.kind, call.arguments)
        if phase == "begin":
            self._begun.add(call_id)
        elif phase == "end" and not self._twins.is_second_id("event", "result", call_id):
            status, content = _outcome(told)
            for call in calls:
                self._log.result(call.call_id, status, content)


def _outcome(told: dict[str, Any]) -> tuple[Status, str]:
    """How a tool ended, in any of the ways in which events tell it."""
    result = told.get("result")
    if isinstance(result, dict) and ("Ok" in result or "Err" in result):
        if "Err" in result:
            return "error", as_text(result["Err"])
        result = result["Ok"]
    error = told.get("error")
    if error:
        return "error", as_text(as_dict(error).get("message") or error)
    answers = ("aggregated_output", "stdout", "content_items", "results", "agent_statuses")
    for name in answers:
        if told.get(name) is not None:
            content = told[name]
            text = content_text(content) if name == "content_items" else as_text(content)
            break
    else:
        of_result = as_dict(result).get("content", result)
        text = content_text(of_result) if of_result is not None else as_text(told.get("status"))
    if "exit_code" in told:
        return status_of_code(told["exit_code"]), text
    failed = as_dict(result).get("isError") is True or told.get("success") is False
    if failed or told.get("status") in ("failed", "declined"):
        return "error", text or as_text(told.get("stderr"))
    return "success", text
