"""Which calls a tool match means, and how calls are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skillup.checks.context import Subject
from skillup.checks.evidence import beginning, listed
from skillup.checks.patterns import Searcher
from skillup.checks.tool_args import (
    argument,
    argument_excerpt,
    argument_matches,
    in_workspace,
    names_a_file,
)
from skillup.checks.tool_names import same_tool
from skillup.checks.values import shown
from skillup.schema.check_specs import ArgMatch, ToolMatch
from skillup.schema.record import ToolCall


class CallMatcher:
    """Tells, for one check, which calls match. Its patterns share one time limit."""

    __slots__ = ("_case_sensitive", "_searcher", "_workspaces")

    def __init__(self, subject: Subject) -> None:
        self._case_sensitive = subject.case_sensitive
        self._workspaces = {turn.workspace for turn in subject.turns if turn.workspace}
        self._searcher = Searcher()

    def matches(self, wanted: ToolMatch, call: ToolCall) -> bool:
        """Whether `call` is of the wanted name, kind and arguments."""
        return self.is_meant(wanted, call) and all(
            self._is_as_wanted(match, path, argument(call, path))
            for path, match in wanted.args.items()
        )

    def _is_as_wanted(self, match: ArgMatch, path: str, value: Any) -> bool:
        """Of a path, in the engine's spelling or as the shortest that names the same file."""
        exact, searcher = self._case_sensitive, self._searcher
        if argument_matches(match, value, searcher, case_sensitive=exact):
            return True
        if not names_a_file(path, value):
            return False
        if isinstance(match.equals, str):
            match = match.model_copy(
                update={"equals": in_workspace(match.equals, self._workspaces)}
            )
        value = in_workspace(value, self._workspaces)
        return argument_matches(match, value, searcher, case_sensitive=exact)

    def is_meant(self, wanted: ToolMatch, call: ToolCall) -> bool:
        """Whether `call` is of the wanted name and kind, whatever its arguments."""
        if wanted.kind is not None and wanted.kind != call.kind:
            return False
        return wanted.name is None or same_tool(wanted.name, call.name, self._case_sensitive)

    def excerpt(self, wanted: ToolMatch, call: ToolCall) -> str:
        """The call, and the pieces of its arguments that made it match."""
        pieces = [
            f"{path}: {piece}"
            for path, match in wanted.args.items()
            if (
                piece := argument_excerpt(
                    match, argument(call, path), case_sensitive=self._case_sensitive
                )
            )
        ]
        return f"{call.name}({', '.join(pieces)})" if pieces else show_call(call, 200)


def show_call(call: ToolCall, longest: int = 100) -> str:
    """``Bash(command="rm -rf data")``, shortened."""
    arguments = ", ".join(
        f'{name}="{value}"' if isinstance(value, str) else f"{name}={shown(value)}"
        for name, value in call.arguments.items()
    )
    return f"{call.name}({beginning(arguments, longest)})"


def show_calls(calls: Iterable[ToolCall]) -> str:
    """The calls in order, as many as fit."""
    return listed((show_call(call) for call in calls), nothing="no tool was called")
