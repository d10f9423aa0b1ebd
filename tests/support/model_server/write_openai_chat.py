"""Renders answers as OpenAI Chat Completions, whole: no test asks for a stream of them."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from tests.support.model_server.replies import Answer, Refusal, Structured, Text, parts_of
from tests.support.model_server.replies import ToolCall as Call
from tests.support.model_server.requests import ModelRequest


def completion(request: ModelRequest, answer: Answer) -> dict[str, Any]:
    """The whole completion."""
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    for part in parts_of(answer):
        match part:
            case Refusal(text):
                message["refusal"] = text
            case Text(text):
                message["content"] = text
            case Structured(data) if not request.tools:
                message["content"] = json.dumps(data)
            case Structured(data):
                _call(message, request, request.tools[0], json.dumps(data))
            case Call(name, arguments):
                _call(message, request, name, json.dumps(dict(arguments)))
            case _:
                raise ValueError(f"{part!r} is for agents, which do not use this API")
    usage = answer.usage
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": request.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "length" if answer.stop == "max_tokens" else reason,
            }
        ],
        "usage": {
            "prompt_tokens": usage.input,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens": usage.output,
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        },
    }


def _call(message: dict[str, Any], request: ModelRequest, name: str, arguments: str) -> None:
    call_id = f"call_r{request.tool_round}_{uuid4().hex[:16]}"
    function = {"name": name, "arguments": arguments}
    message.setdefault("tool_calls", []).append(
        {"id": call_id, "type": "function", "function": function}
    )
