"""A model for tests of engines: what it shall do stands in the message that it answers.

A line ``model> shell: echo hi`` of a user's message is a step; each round of tools takes the next
one, and the last is the answer. It keeps no state, so retries, side requests and concurrent
sessions use no steps up. It speaks Anthropic Messages, OpenAI Responses and Chat Completions, and
Gemini, as JSON and as events.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

import anyio
from aiohttp import web
from anyio.from_thread import start_blocking_portal

from skillup.dataclass import frozen
from skillup.engines.command.values import filled
from skillup.engines.events import as_dict, as_list, content_text
from skillup.load.yaml_reader import read_yaml

INPUT, CACHED, OUTPUT = 1000, 100, 50
"""The tokens of every answer: all input, what of it was cached, and output."""
_STEP = re.compile(r"^\s*model> (\w+): ?(.*)$", re.MULTILINE)
_MOST_BYTES = 1 << 26
_MODEL = "conformance-model"


@frozen
class Asked:
    """A request, whichever API it came by."""

    path: str
    body: dict[str, Any]
    messages: tuple[tuple[str, str], ...]  # Of users and of the model
    steps: tuple[tuple[str, str], ...]  # Of the latest message that has some
    rounds: int  # Answers with tool calls since then
    tools: Mapping[str, dict[str, Any]]  # Name → JSON Schema of its arguments

    @property
    def step(self) -> tuple[str, str]:
        """What to do now; a request without tools is the CLI's own, such as for a title."""
        if not self.tools or not self.steps:
            return "say", "A title"
        return self.steps[min(self.rounds, len(self.steps) - 1)]


def read(path: str, body: dict[str, Any]) -> Asked:
    messages: list[tuple[str, str]] = []
    steps: tuple[tuple[str, str], ...] = ()
    rounds, in_calls = 0, False
    items = body.get("messages") or body.get("input") or body.get("contents") or []
    for item in items if isinstance(items, list) else [{"role": "user", "content": items}]:
        role, content = item.get("role"), item.get("content") or item.get("parts") or ""
        blocks = [as_dict(block) for block in as_list(content)]
        calls = bool(item.get("tool_calls")) or item.get("type") in _RESPONSES_CALLS
        calls |= any(b.get("type") == "tool_use" or "functionCall" in b for b in blocks)
        rounds += calls and not in_calls
        in_calls = calls
        texts = [block for block in blocks if isinstance(block.get("text"), str)]
        text = content if isinstance(content, str) else content_text(texts)
        if role == "user" and (found := _STEP.findall(text)):
            steps, rounds = tuple(found), 0
        if text and role in ("user", "assistant", "model"):
            messages.append(("user" if role == "user" else "assistant", text))
    return Asked(path, body, tuple(messages), steps, rounds, dict(_tools(body)))


_RESPONSES_CALLS = ("function_call", "custom_tool_call")


def _tools(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    more = [one for one in as_list(body.get("input")) if as_dict(one).get("tools")]
    for tool in [*as_list(body.get("tools")), *(t for one in more for t in one["tools"])]:
        declared = tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]
        for one in declared:
            one = as_dict(one.get("function")) or one
            names = ("input_schema", "parameters", "parametersJsonSchema")
            schemas = [as_dict(one[name]) for name in names if one.get(name)]
            yield str(one.get("name") or one.get("type")), next(iter(schemas), {})


def call_for(asked: Asked, kind: str, value: str) -> tuple[str, dict[str, Any]] | None:
    """The tool that the agent offers for that, with arguments; None: it offers none."""
    wanted = {"shell": _SHELL, "skill": _SKILL, "read": _READ, "write": _WRITE}[kind]
    path, _, content = value.partition(" = ")
    for name, schema in asked.tools.items():
        given = as_dict(schema.get("properties"))
        main = next((key for key in given if wanted[1].fullmatch(key)), None)
        if main is None or not wanted[0].search(name):
            continue
        if wanted[1] is _PATH:  # Some take absolute ones only
            root = min(_WORKSPACE.findall(json.dumps(asked.body)), key=len, default=".")
            path = f"{root}/{path}"
        arguments: dict[str, Any] = {main: value if wanted[1] is not _PATH else path}
        if kind == "write" and (rest := next((k for k in given if _CONTENT.fullmatch(k)), None)):
            arguments[rest] = content
        for key in as_list(schema.get("required")):
            fills = as_dict(given.get(key))
            by_type = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}
            one_of = as_list(fills.get("enum")) or [by_type.get(str(fills.get("type")), "for it")]
            arguments.setdefault(key, one_of[0])
        return name, arguments
    if kind in ("skill", "read"):
        file = f".agents/skills/{value}/SKILL.md" if kind == "skill" else value
        other = call_for(asked, "read", file) if kind == "skill" else None
        return other or call_for(asked, "shell", f"cat {file}")
    return call_for(asked, "shell", f"printf %s '{content}' > {path}") if kind == "write" else None


_PATH = re.compile(r"(?i)(absolute_?|file_?|target_?)?(path|file)")
_WORKSPACE = re.compile(r"/[^\s\"'<>\\]*/workspace\b")
_CONTENT = re.compile(r"(?i)(content|contents|file_?text|text)")
_SHELL = re.compile(r"(?i)bash|shell|command|exec|terminal"), re.compile(r"command|cmd|script")
_SKILL = re.compile(r"(?i)skill"), re.compile(r"(?i)(skill_?)?name|skill|command")
_READ = re.compile(r"(?i)^(read|view|cat)(_?file)?$"), _PATH
_WRITE = re.compile(r"(?i)write|create"), _PATH


class ConformanceModel:
    """A context manager around a server that listens on loopback; `requests` are what it got."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.url = ""  # Without a path
        self._serving = ExitStack()

    def __enter__(self) -> Self:
        portal = self._serving.enter_context(start_blocking_portal())
        self._serving.enter_context(portal.wrap_async_context_manager(self._served()))
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.close()

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._answer)
        # Agents are ended in the middle of their requests.
        own: Any = {"access_log": None, "handler_cancellation": True, "shutdown_timeout": 0.1}
        runner = web.AppRunner(app, **own)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = "http://{}:{}".format(*runner.addresses[0])
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        route, method = request.path, request.method
        if method != "POST":
            models = [{"id": _MODEL, "object": "model", "name": _MODEL}]
            found = route.endswith("/models")
            answer = {"data": models, "models": models} if found else {}
            return web.json_response(answer, status=200 if found or method == "HEAD" else 404)
        if not route.endswith(tuple(_ANSWERS)):
            return web.json_response({"input_tokens": 1}, status=200 if "count" in route else 404)
        asked = read(request.path_qs, await request.json())
        self.requests.append(asked)
        kind, value = asked.step
        if kind == "fail":
            return await _failure(request, value)
        text, call = _answer_to(asked, kind, value)
        whole, events = rendered(route, text, call, f"call_{len(self.requests)}")
        if asked.body.get("stream") or ":streamGenerateContent" in route:
            return web.Response(text=events, content_type="text/event-stream")
        return web.json_response(whole)


async def _failure(request: web.Request, how: str) -> web.Response:
    if how.isdigit():
        error = {"message": f"scripted {how}", "type": "error", "code": int(how)}
        return web.json_response({"type": "error", "error": error}, status=int(how))
    if how == "garbage":
        return web.Response(text="<html>no answer of a model</html>", content_type="text/html")
    if how == "hang":
        await anyio.sleep_forever()
    if request.transport is not None:  # drop
        request.transport.close()
    return web.Response()  # To nobody


Call = tuple[str, dict[str, Any]]


def _answer_to(asked: Asked, kind: str, value: str) -> tuple[str, Call | None]:
    if kind == "say":
        return value, None
    if kind == "recall":
        told = "\n".join(_STEP.sub("", text) for _, text in asked.messages)
        return " ".join(dict.fromkeys(re.findall(value, told))) or "nothing", None
    call = call_for(asked, kind, value)
    return ("", call) if call else (f"there is no tool for {kind}", None)


def rendered(route: str, text: str, call: Call | None, call_id: str) -> tuple[Any, str]:
    """An answer by the API at a path: as a whole, and as events."""
    about = next(one for ending, one in _ANSWERS.items() if route.endswith(ending))
    name, arguments = call or ("", {})
    values: dict[str, Any] = {"id": call_id, "text": text, "name": name, "model": _MODEL}
    values |= {"arguments": arguments, "json": json.dumps(arguments), **_TOKENS}
    parts = [about["call" if call else "text"]]
    parts += ({key: about[key]} for key in ("usage", "whole"))
    for part in parts:
        values |= filled(part, values)
    lines = []
    for event in filled(about["events"], values):
        head = f"event: {event['type']}\n" if "type" in event else ""
        lines.append(f"{head}data: {json.dumps(event)}\n\n")
    return values["whole"], "".join(lines) + about.get("last", "")


_TOKENS = {"input": INPUT, "cached": CACHED, "output": OUTPUT}
_TOKENS |= {"uncached": INPUT - CACHED, "total": INPUT + OUTPUT}
_ANSWERS = read_yaml(Path(__file__).with_name("answers.yaml")).data
