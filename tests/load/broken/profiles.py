"""Profiles with one mistake each: the text, where it is told, and what is said of it."""

from __future__ import annotations

PROFILES = [
    ("", "1:1", "empty"),
    ("model: x\n", "1:1", "`engine` is missing"),
    ("engine: claud_code\n", "1:9", "did you mean `claude_code`?"),
    ("engine: codex\nmodle: x\n", "2:1", "did you mean `model`?"),
    ("engine: codex\npermission: none\n", "2:13", "`read_only`"),
    ("engine: codex\nisolation: dirty\n", "2:12", "`shared`"),
    ("engine: codex\nsession: live\n", "2:10", "use `resume`"),
    ("engine: codex\ntimeout_seconds: 5m\n", "2:18", "is not a number"),
    ("engine: codex\nargs: --verbose\n", "2:7", "is not a list"),
    ("engine: codex\nenv: [A=1]\n", "2:1", "is not a mapping"),
    ("engine: codex\nenv: {A: '${B C}'}\n", "2:10", "begins no reference"),
    # V19
    ("engine: codex\nenv: {CODEX_HOME: /h}\n", "2:19", "each trial has its own CODEX_HOME"),
    ("engine: claude_code\nisolation: clean\nenv: {HOME: /h}\n", "3:13", "`isolation: shared`"),
    ("engine: codex\nmax_turns: 0\n", "2:12", "must be above 0"),
    ("engine: codex\napi_key_env: sk-ant-0123\n", "2:14", "not the name of a variable"),
    ("engine: codex\nprices: {input: -1, output: 1}\n", "2:17", "must be at least 0"),
    ("engine: codex\ncommand: ['']\n", "2:11", "the text is empty"),
    ("engine: codex\nengine: codex\n", "2:1", "engine"),
    ("engine: [codex\n", "2:1", "the closing bracket"),
]
