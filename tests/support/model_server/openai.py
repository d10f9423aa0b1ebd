"""OpenAI Responses as the `codex` CLI speaks it; Chat Completions as judges and other agents do."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from tests.support.model_server.model import (
    Answer,
    Entry,
    McpCall,
    ModelRequest,
    Part,
    ReadFile,
    Refusal,
    Shell,
    SkillCall,
    Structured,
    Text,
    ToolCall,
    WriteFile,
)

_CWD = re.compile(r"<cwd>(.*?)</cwd>")
# User messages that the CLI writes of itself.
_INJECTED = (
    "<environment_context>",
    "<skill>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
)


def read(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> ModelRequest:
    """The request of `POST /v1/responses`."""
    entries = tuple(_entries(body))
    system = "\n".join(entry.text for entry in entries if entry.role == "harness")
    # A thread that is resumed elsewhere gets a second environment message: the last one counts.
    directories = _CWD.findall(system)
    offered = list(body.get("tools") or [])
    for item in body.get("input") or []:
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            offered += item.get("tools") or []
    # What the request is for: `turn`, or the CLI's own purposes such as a compaction.
    kind = json.loads(headers.get("x-codex-turn-metadata") or "{}").get("request_kind", "")
    return ModelRequest(
        api="openai",
        path=path,
        headers=headers,
        body=body,
        entries=entries,
        tools=tuple(str(tool.get("name") or tool.get("type") or "") for tool in offered),
        session_id=headers.get("thread-id") or str(body.get("prompt_cache_key") or ""),
        cwd=directories[-1] if directories else "",
        background=kind not in ("turn", ""),
    )


def _entries(body: Mapping[str, Any]) -> Iterator[Entry]:
    if body.get("instructions"):
        yield Entry("harness", str(body["instructions"]))
    given = body.get("input") or []
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind == "message":
            role = item.get("role", "")
            for text in _texts(item.get("content")):
                injected = role != "user" or text.lstrip().startswith(_INJECTED)
                of_user = Entry("harness" if injected else "user", text)
                yield Entry("assistant", text) if role == "assistant" else of_user
        elif kind in ("function_call", "custom_tool_call"):
            arguments = item.get("arguments", item.get("input", ""))
            yield Entry("call", f"{item['name']} {arguments}", item["call_id"])
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield Entry("result", "\n".join(_texts(item.get("output"))), item["call_id"])


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if "text" in part]


def whole(request: ModelRequest, answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    cut = answer.stop == "max_tokens"
    cached = {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write}
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "status": "incomplete" if cut else "completed",
        "model": request.model,
        "output": [_item(request, part) for part in answer.all_parts],
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": {
            "input_tokens": usage.input,
            "input_tokens_details": cached,
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        },
    }


def events(request: ModelRequest, answer: Answer) -> list[dict[str, Any]]:
    response = whole(request, answer)
    start = {"id": response["id"], "object": "response", "status": "in_progress", "output": []}
    result: list[dict[str, Any]] = [{"type": "response.created", "response": start}]
    for index, item in enumerate(response["output"]):
        place = {"output_index": index}
        if item["type"] == "message":
            empty = item | {"content": [], "status": "in_progress"}
            result.append({"type": "response.output_item.added", "item": empty} | place)
            delta = {"item_id": item["id"], "content_index": 0, "delta": item["content"][0]["text"]}
            result.append({"type": "response.output_text.delta"} | delta | place)
        result.append({"type": "response.output_item.done", "item": item} | place)
    return [*result, {"type": f"response.{response['status']}", "response": response}]


def error_body(status: int, text: str) -> dict[str, Any]:
    return {"error": {"message": text, "type": f"scripted_{status}", "code": None}}


def _item(request: ModelRequest, part: Part) -> dict[str, Any]:
    call_id = f"call_r{request.tool_round}_{uuid4().hex[:16]}"

    def message(content: dict[str, Any]) -> dict[str, Any]:
        own = {"type": "message", "id": f"msg_{uuid4().hex}", "role": "assistant"}
        return own | {"status": "completed", "content": [content]}

    def call(name: str, arguments: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
        own = {"type": "function_call", "id": f"fc_{uuid4().hex}", "call_id": call_id}
        own |= {"name": name, "arguments": json.dumps(dict(arguments))}
        return own | {"namespace": namespace} if namespace else own

    def shell(command: str) -> dict[str, Any]:
        return call("exec_command", {"cmd": command})

    match part:
        case Text(text):
            return message({"type": "output_text", "text": text, "annotations": []})
        case Refusal(text):
            return message({"type": "refusal", "refusal": text})
        case Structured(data) if request.tools:
            return call(request.tools[0], data)
        case Structured(data):
            return message({"type": "output_text", "text": json.dumps(data), "annotations": []})
        case ToolCall(name, arguments):
            return call(name, arguments)
        case McpCall(server, tool, arguments):
            return call(tool, arguments, f"mcp__{server}")
        case Shell(command):
            return shell(command)
        case ReadFile(path):
            return shell(f"cat {shlex.quote(path)}")
        case SkillCall(name):
            return shell(f"cat {shlex.quote(f'.agents/skills/{name}/SKILL.md')}")
        case WriteFile(path, content) if "apply_patch" in request.tools:
            added = "".join(f"+{line}\n" for line in content.splitlines())
            patch = f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"
            own = {"type": "custom_tool_call", "id": f"ctc_{uuid4().hex}", "call_id": call_id}
            return own | {"name": "apply_patch", "input": patch, "status": "completed"}
        case WriteFile(path, content):
            return shell(f"printf %s {shlex.quote(content)} > {shlex.quote(path)}")


def read_chat(path: str, headers: Mapping[str, str], body: dict[str, Any]) -> ModelRequest:
    """The request of `POST /v1/chat/completions`."""
    entries: list[Entry] = []
    for message in body.get("messages") or []:
        role, text = message["role"], "\n".join(_texts(message.get("content") or ""))
        for call in message.get("tool_calls") or []:
            function = call["function"]
            called = f"{function['name']} {function['arguments']}"
            entries.append(Entry("call", called, call["id"]))
        if role == "tool":
            entries.append(Entry("result", text, message["tool_call_id"]))
        elif text:
            entries.append(Entry(role if role in ("user", "assistant") else "harness", text))
    tools = tuple(tool["function"]["name"] for tool in body.get("tools") or [])
    return ModelRequest("openai_chat", path, headers, body, tuple(entries), tools)


def whole_chat(request: ModelRequest, answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}

    def call(name: str, arguments: Mapping[str, Any]) -> None:
        call_id = f"call_r{request.tool_round}_{uuid4().hex[:16]}"
        function = {"name": name, "arguments": json.dumps(dict(arguments))}
        made = {"id": call_id, "type": "function", "function": function}
        message.setdefault("tool_calls", []).append(made)

    for part in answer.all_parts:
        match part:
            case Refusal(text):
                message["refusal"] = text
            case Text(text):
                message["content"] = text
            case Structured(data) if not request.tools:
                message["content"] = json.dumps(data)
            case Structured(data):
                call(request.tools[0], data)
            case ToolCall(name, arguments):
                call(name, arguments)
            case Shell() | WriteFile() | ReadFile() if request.tools:
                call(*_agents_tool(request, part))
            case Shell() | WriteFile() | ReadFile():
                message["content"] = "A title."
            case _:
                raise ValueError(f"{part!r} cannot be asked for by this API")
    reason = "tool_calls" if "tool_calls" in message else "stop"
    reason = "length" if answer.stop == "max_tokens" else reason
    usage = answer.usage
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": usage.input,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens": usage.output,
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        },
    }


# What the agents that speak this API call their tools; the first that is offered is taken.
_PATHS = ("filePath", "file_path", "path")
_AGENTS_TOOLS: Mapping[type[Part], tuple[str, ...]] = {
    Shell: ("bash", "run_shell_command", "shell", "developer__shell"),
    WriteFile: ("write", "write_file", "create", "developer__write"),
    ReadFile: ("read", "read_file", "view", "developer__read"),
}


def _agents_tool(
    request: ModelRequest, part: Shell | WriteFile | ReadFile
) -> tuple[str, dict[str, Any]]:
    """The tool that the agent has for that, with all that it insists on."""
    offered = {one["function"]["name"]: one["function"] for one in request.body["tools"]}
    name = next(name for name in _AGENTS_TOOLS[type(part)] if name in offered)
    takes = offered[name]["parameters"]["properties"]
    if isinstance(part, Shell):
        more = {"description": "Scripted", "is_background": False}
        return name, {"command": part.command, **{k: v for k, v in more.items() if k in takes}}
    given = {next(path for path in _PATHS if path in takes): part.path}
    if isinstance(part, WriteFile):
        given["file_text" if "file_text" in takes else "content"] = part.content
    return name, given


def chat_events(request: ModelRequest, answer: Answer) -> list[dict[str, Any]]:
    """As a stream; the usage comes last, as `include_usage` asks for."""
    whole = whole_chat(request, answer)
    (choice,) = whole.pop("choices")
    usage, chunk = whole.pop("usage"), {**whole, "object": "chat.completion.chunk"}
    message = choice["message"]
    calls = [{**one, "index": n} for n, one in enumerate(message.get("tool_calls", ()))]
    delta = {"role": "assistant", "content": message["content"]}
    delta |= {"tool_calls": calls} if calls else {}
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    return [
        chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        chunk | {"choices": [end]},
        chunk | {"choices": [], "usage": usage},
    ]
