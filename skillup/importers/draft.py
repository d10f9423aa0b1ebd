"""What a converter makes: a suite and its cases, not yet on disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.importers.promptfoo.values import SourceValue

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 60

CreatedSession = tuple[Path, str]
"""A file or directory to copy, and its path in the workspace (``""``: the workspace itself)."""


def slug(text: str, otherwise: str = "case") -> str:
    """`text` as a name for files and ids: lower case, digits and hyphens."""
    made = _NOT_IN_A_NAME.sub("-", text.casefold()).strip("-")
    if len(made) > _LONGEST_SLUG:
        made = made[:_LONGEST_SLUG].rpartition("-")[0] or made[:_LONGEST_SLUG]
    return made or otherwise


def unlike(name: str, taken: set[str]) -> str:
    """`name`, or with a number behind it so that it is not in `taken`, where it is added.

    Upper and lower case do not tell names apart: not every file system does.
    """
    made, number = name, 1
    while made.casefold() in taken:
        number += 1
        made = f"{name}-{number}"
    taken.add(made.casefold())
    return made


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """`values` without the keys that say nothing."""
    return {key: value for key, value in values.items() if value not in (None, [], {}, "")}


@dataclass(slots=True)
class TurnDraft:
    """One user message and its checks."""

    content: str
    assertions: list[dict[str, Any]] = field(default_factory=list)
    expected_output: str = ""
    capture: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As it is written."""
        return without_empty(
            {
                "content": self.content,
                "capture": self.capture,
                "expected_output": self.expected_output,
                "assertions": self.assertions,
            }
        )


@dataclass(slots=True)
class CaseDraft:
    """One case. `node` is where it came from; it has one turn or several."""

    node: SourceValue
    id: str
    turns: list[TurnDraft]
    conversation: bool = False
    """Written as `turns` even if there is only one."""
    title: str = ""
    description: str = ""
    tags: list[str] = field(default_factory=list)
    vars: dict[str, str] = field(default_factory=dict)
    depends_on: list[str] = field(default_factory=list)
    placed: list[CreatedSession] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    system: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    transcript: list[dict[str, Any]] = field(default_factory=list)
    """A conversation that is judged, not held; then the turn's message is not sent."""
    assertions: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    """`aggregation`, `on_turn_failure`, `window_size`, `pass_threshold`, `trials`, …"""

    def as_dict(self, *, fixture: str = "") -> dict[str, Any]:
        """As it is written; `fixture` is the directory that holds what is `placed`."""
        turns = self.turns
        several = self.conversation or len(turns) > 1 or any(turn.capture for turn in turns)
        spoken: dict[str, Any] = {"system": self.system, "history": self.history}
        assertions, expected = self.assertions, ""
        if self.transcript:
            spoken = {"transcript": self.transcript}
            assertions = [*turns[0].assertions, *assertions]
        elif several:
            spoken["turns"] = [turn.as_dict() for turn in turns]
        else:
            spoken["prompt"] = turns[0].content
            expected = turns[0].expected_output
            assertions = [*turns[0].assertions, *assertions]
        return without_empty(
            {
                "id": self.id,
                "title": self.title,
                "description": self.description,
                "tags": self.tags,
                "vars": self.vars,
                "depends_on": self.depends_on,
                "context": without_empty({"fixture": fixture, "setup": self.setup}),
                "input": without_empty(spoken),
                "expected_output": expected,
                "assertions": assertions,
                **self.settings,
            }
        )


@dataclass(slots=True)
class SuiteDraft:
    """One suite and its cases, in order."""

    name: str
    description: str = ""
    skills: list[Path] = field(default_factory=list)
    cases: list[CaseDraft] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    parallelism: int | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    mcp_servers: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self, files: Iterable[str], skills: Iterable[str]) -> dict[str, Any]:
        """As it is written, with the cases' files and the skills' paths from the suite's root."""
        cases = {"files": list(files), "defaults": self.defaults, "parallelism": self.parallelism}
        return without_empty(
            {
                "name": self.name,
                "description": self.description,
                "skills": [{"path": path} for path in skills],
                "cases": without_empty(cases),
                "environment": self.environment,
                "mcp": without_empty({"servers": self.mcp_servers}),
            }
        )

    def settle_ids(self) -> None:
        """Make the cases' ids unique; an id that had to change is reported."""
        taken: set[str] = set()
        for case in self.cases:
            wanted = case.id
            case.id = unlike(wanted, taken)
            if case.id != wanted:
                case.node.changed(f"a second case with the id `{wanted}`", f"now `{case.id}`")
