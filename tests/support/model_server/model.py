"""What a scripted model is asked and can answer, whichever API is spoken, and scripts of rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

# Parts of a message are portable: each is rendered for the API that asked, with the tool that its
# CLI has for it.


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the engine's own name, with that tool's own arguments."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Shell:
    """A shell command: `Bash` for claude, `exec_command` for codex."""

    command: str


@dataclass(frozen=True)
class WriteFile:
    """A new file: `Write` for claude, `apply_patch` (or the shell, without that) for codex.

    A relative path is relative to the working directory that the CLI told the model. Claude
    refuses to overwrite a file that it has not read in this conversation.
    """

    path: str
    content: str


@dataclass(frozen=True)
class ReadFile:
    """Reading a file: `Read` for claude, `cat` for codex."""

    path: str


@dataclass(frozen=True)
class SkillCall:
    """Use of a skill: `Skill` for claude, reading `.agents/skills/NAME/SKILL.md` for codex."""

    name: str


@dataclass(frozen=True)
class McpCall:
    """A call of an MCP server's tool, named as each CLI names it to the model."""

    server: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Structured:
    """An answer of the form that was requested: a call of the one tool offered, or JSON as text."""

    data: Mapping[str, Any]


@dataclass(frozen=True)
class Refusal:
    """The model's own refusal, as each API tells of it."""

    text: str = "I will not answer that."


Part = Text | ToolCall | Shell | WriteFile | ReadFile | SkillCall | McpCall | Structured | Refusal


@dataclass(frozen=True)
class Usage:
    """Token counts of one answer, as they stand on the wire.

    The two APIs mean different things by `input`: Anthropic leaves the cached tokens out of it,
    OpenAI counts them in. Only OpenAI has `reasoning`.
    """

    input: int = 100
    cached: int = 7
    output: int = 10
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Answer:
    """One whole model message.

    `parts` may be one part. `stop="max_tokens"` says that the model ran out of tokens.
    """

    parts: Part | tuple[Part, ...]
    usage: Usage = field(default_factory=Usage)
    stop: Literal["end", "max_tokens"] = "end"

    @property
    def all_parts(self) -> tuple[Part, ...]:
        return self.parts if isinstance(self.parts, tuple) else (self.parts,)


@dataclass(frozen=True)
class HttpError:
    """An error status with the API's own error body; `headers` may hold `retry-after`."""

    status: int
    message: str = "scripted error"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """Silence for `seconds` (or until the server closes), then a dropped connection."""

    seconds: float = 3600.0


@dataclass(frozen=True)
class Drop:
    """The connection is closed without a byte of response."""


@dataclass(frozen=True)
class CutStream:
    """A stream that breaks off in the middle of `text`; whole if no stream was requested."""

    text: str = "This answer will break off."


@dataclass(frozen=True)
class Garbage:
    """Status 200 and a body that is not what the API promises; `packed`: by gzip."""

    body: str = "<html>this is not a model's answer</html>"
    packed: bool = False


Fault = HttpError | Hang | Drop | CutStream | Garbage
Reply = Answer | Part | tuple[Part, ...] | Fault


# Our call ids carry the tool round, so that parallel calls count as one round in any order that a
# CLI may store and send them in.
_ROUND = re.compile(r"_r(\d+)_")


class Entry(NamedTuple):
    """One step of the conversation.

    `role`: `user` is what a person wrote; `harness` is what the CLI put in by itself (reminders,
    environment, skill listings and bodies, developer messages); `call` has the text
    `NAME JSON-ARGUMENTS`; `result` is a tool's output. `call_id` is set for the last two.
    """

    role: Literal["user", "assistant", "call", "result", "harness"]
    text: str
    call_id: str = ""


@dataclass(frozen=True)
class ModelRequest:
    """One request for a model's answer.

    `headers` have lower-case names. `background` requests are the CLI's own (titles, summaries);
    the server answers them itself and no script sees them. `attempt` counts the earlier requests
    with the same session and conversation: 0 at first, 1 at the first retry. `session_id` is the
    one that the CLI sends along; `cwd` the working directory that it tells the model, or `""`.
    """

    api: Literal["anthropic", "openai", "openai_chat"]
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    entries: tuple[Entry, ...]
    tools: tuple[str, ...]
    session_id: str = ""
    cwd: str = ""
    background: bool = False
    attempt: int = field(default=0, compare=False)

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """The steps of the conversation without what the CLI put in: `(role, text)`."""
        return [(entry.role, entry.text) for entry in self.entries if entry.role != "harness"]

    @property
    def user_texts(self) -> list[str]:
        """What persons wrote, in order; the turn number is the length of this list."""
        return self._texts("user")

    @property
    def assistant_texts(self) -> list[str]:
        """What the model answered earlier, in order."""
        return self._texts("assistant")

    @property
    def latest(self) -> str:
        return self.user_texts[-1] if self.user_texts else ""

    @property
    def tool_results(self) -> list[str]:
        """The tool outputs since the latest user text, in the order of the calls.

        Claude sends the results of parallel calls in the order in which they ended.
        """
        entries = self._since_latest()
        calls = [entry.call_id for entry in entries if entry.role == "call"]
        results = [entry for entry in entries if entry.role == "result"]
        results.sort(key=lambda entry: calls.index(entry.call_id) if entry.call_id in calls else 99)
        return [entry.text for entry in results]

    @property
    def tool_round(self) -> int:
        """How many model answers with tool calls there were since the latest user text."""
        ids = [entry.call_id for entry in self._since_latest() if entry.role == "call"]
        return len({tag[1] if (tag := _ROUND.search(one)) else one for one in ids})

    @property
    def system(self) -> str:
        """Every text that the CLI put in, in order, joined by newlines."""
        return "\n".join(self._texts("harness"))

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def raw_text(self) -> str:
        """The whole body as readable text, for searches for what must not have leaked."""
        return json.dumps(self.body, ensure_ascii=False)

    def _texts(self, role: str) -> list[str]:
        return [entry.text for entry in self.entries if entry.role == role]

    def _since_latest(self) -> list[Entry]:
        users = [n for n, entry in enumerate(self.entries) if entry.role == "user"]
        return list(self.entries[users[-1] + 1 :] if users else self.entries)


Script = Callable[[ModelRequest], Reply]
Step = Reply | Script


@dataclass(frozen=True)
class Rule:
    """What to answer to the user texts that match.

    `pattern` is searched in the latest user text. `steps` are taken by tool round: the first is
    the answer to the user's text, the second follows the first one's tool results, and so on; a
    step may be a function of the request. After the last step the last one is given again if it
    calls no tool, else the text `Done.`.
    """

    pattern: str
    steps: Sequence[Step]

    def reply(self, request: ModelRequest) -> Reply:
        """The step for the request's tool round."""
        over = request.tool_round >= len(self.steps)
        step = self.steps[-1 if over else request.tool_round]
        reply = step(request) if callable(step) else step
        if not over or isinstance(reply, Fault):
            return reply
        answer = reply if isinstance(reply, Answer) else Answer(reply)
        calls = any(not isinstance(part, Text | Refusal) for part in answer.all_parts)
        return Text("Done.") if calls else reply


def echo(request: ModelRequest) -> Reply:
    """The answer `Turn N: TEXT`, where N is the number of user messages so far."""
    return Text(f"Turn {len(request.user_texts)}: {request.latest}")


def by_rules(*rules: Rule, otherwise: Script = echo) -> Script:
    """The script in which the first rule that matches answers; without one, `otherwise`."""

    def script(request: ModelRequest) -> Reply:
        for rule in rules:
            if re.search(rule.pattern, request.latest):
                return rule.reply(request)
        return otherwise(request)

    return script
