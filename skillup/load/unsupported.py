"""Parts of the case language that load, but that this version cannot run.

`validate` names them as warnings; a run makes such a case an ERROR of kind `unsupported` before the
first turn, so that nothing is judged as if it had been looked at. A feature's lines leave this file
when it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator

from skillup.schema.case import Case
from skillup.schema.suite import Suite

Loc = tuple[str | int, ...]


def unsupported_in_suite(suite: Suite) -> Iterator[tuple[Loc, str]]:
    """Where the suite asks for something that is not run yet, and what it is."""
    if suite.environment.type != "none":
        kind = suite.environment.type
        yield (
            ("environment", "type"),
            f"environment `{kind}` is not run yet: trials run on this machine, with `none`",
        )
    for index, skill in enumerate(suite.skills or ()):
        if skill.source != "local_path":
            yield ("skills", index, "source"), f"skills from a `{skill.source}` are not fetched yet"
    if suite.mcp.servers:
        yield ("mcp", "servers"), "MCP servers are not set up yet"


def ignored_in_suite(suite: Suite) -> Iterator[tuple[Loc, str]]:
    """What the suite says and a run can do without, because the command line outranks it."""
    if suite.engine is not None and suite.engine.custom is not None:
        yield ("engine", "custom"), "custom engines are not run yet; choose one with --engine"


def too_many_turns(case: Case) -> str | None:
    """Why a conversation of these turns is not begun; None: it may be."""
    turns = len(case.input.turns or ())
    if case.turn_limit is None or turns <= case.turn_limit:
        return None
    return f"the case has {turns} turns, and its conversation may have {case.turn_limit} at most"


def unsupported_in_case(case: Case) -> Iterator[tuple[Loc, str]]:
    """Where the case asks for something that is not run yet, and what it is."""
    if case.mcp.servers:
        yield ("mcp", "servers"), "MCP servers are not set up yet"
    for index, judge in enumerate(case.all_judges()):
        loc: Loc = ("judges", index) if case.judges is not None else ("judge",)
        for number, skill in enumerate(judge.skills):
            if skill.source != "local_path":
                what = f"skills from a `{skill.source}` are not fetched yet"
                yield (*loc, "skills", number, "source"), what
