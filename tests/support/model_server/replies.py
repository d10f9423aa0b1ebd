"""What a scripted model can answer: parts of a message, whole answers, and faults.

Parts are portable: each is rendered for the API that asked, with the tool that its CLI has for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Text:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the engine's own name, with that tool's own arguments.

    `namespace` is for codex only, where MCP tools are `{namespace: "mcp__server", name: tool}`.
    """

    name: str
    arguments: Mapping[str, Any]
    namespace: str = ""


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
    """An answer of the form that was asked for: a call of the one tool offered, or JSON as text."""

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
    OpenAI counts them in. `reasoning` is told by OpenAI only.
    """

    input: int = 100
    cached: int = 7
    output: int = 10
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Answer:
    """One whole model message.

    `parts` may be one part. `stop="max_tokens"` says that the model ran out of tokens. `delay_s`
    is the wait before the first byte; it ends early when the server closes.
    """

    parts: Part | tuple[Part, ...]
    usage: Usage = field(default_factory=Usage)
    stop: Literal["end", "max_tokens"] = "end"
    delay_s: float = 0.0


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
    """A stream that breaks off in the middle of `text`; whole if no stream was asked for."""

    text: str = "This answer will break off."


@dataclass(frozen=True)
class Garbage:
    """Status 200 and a body that is not what the API promises; `packed` by gzip if wanted."""

    body: str = "<html>this is not a model's answer</html>"
    packed: bool = False


Fault = HttpError | Hang | Drop | CutStream | Garbage
Reply = Answer | Part | tuple[Part, ...] | Fault


def whole_answer(reply: Answer | Part | tuple[Part, ...]) -> Answer:
    """The answer that a shorthand stands for."""
    return reply if isinstance(reply, Answer) else Answer(reply)


def parts_of(answer: Answer) -> tuple[Part, ...]:
    """The parts of an answer, also of one given as a single part."""
    return answer.parts if isinstance(answer.parts, tuple) else (answer.parts,)


def has_call(reply: Reply) -> bool:
    """Whether the reply asks for a tool, so that another request will follow."""
    if isinstance(reply, Fault):
        return False
    return any(not isinstance(part, Text | Refusal) for part in parts_of(whole_answer(reply)))
