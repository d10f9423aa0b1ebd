"""A scripted model server on loopback: for driving the real `claude` and `codex`, and for judges.

It speaks Anthropic Messages, OpenAI Responses and Chat Completions. What it answers is
a function of the request alone, never of how many requests came before, so retries, background
requests, resumed processes and concurrent sessions cannot use up each other's answers.
"""

from __future__ import annotations

from tests.support.model_server.model import (
    Answer,
    CutStream,
    Drop,
    Entry,
    Garbage,
    Hang,
    HttpError,
    McpCall,
    ModelRequest,
    Part,
    ReadFile,
    Refusal,
    Reply,
    Rule,
    Script,
    Shell,
    SkillCall,
    Step,
    Structured,
    Text,
    ToolCall,
    Usage,
    WriteFile,
    by_rules,
)
from tests.support.model_server.server import ModelServer

__all__ = [
    "Answer",
    "CutStream",
    "Drop",
    "Entry",
    "Garbage",
    "Hang",
    "HttpError",
    "McpCall",
    "ModelRequest",
    "ModelServer",
    "Part",
    "ReadFile",
    "Refusal",
    "Reply",
    "Rule",
    "Script",
    "Shell",
    "SkillCall",
    "Step",
    "Structured",
    "Text",
    "ToolCall",
    "Usage",
    "WriteFile",
    "by_rules",
]
