"""Parts of the case language that load, but that this version cannot run.

`validate` warns of them; a run makes such a case an ERROR of kind `unsupported` before the first
turn, so that nothing is judged as if it had been looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from skillup.load.model import judges_of
from skillup.load.yaml_reader import Loc
from skillup.schema.case import Case
from skillup.schema.judge import SkillRef
from skillup.schema.suite import Suite

_MCP = ("mcp", "servers"), "MCP servers are not set up yet"


def unsupported_in_suite(suite: Suite) -> Iterator[tuple[Loc, str]]:
    """Where the suite asks for something that is not run yet, and what it is."""
    kind = suite.environment.type
    if kind != "none":
        what = f"environment `{kind}` is not run yet: trials run on this machine, with `none`"
        yield ("environment", "type"), what
    yield from _not_fetched(suite.skills or [], ())
    if suite.mcp.servers:
        yield _MCP


def unsupported_in_case(case: Case) -> Iterator[tuple[Loc, str]]:
    """Where the case asks for something that is not run yet, and what it is."""
    if case.mcp.servers:
        yield _MCP
    for loc, judge in judges_of(case):
        yield from _not_fetched(judge.skills, loc)


def too_many_turns(case: Case) -> str | None:
    """Why a conversation of these turns is not begun; None: it may be."""
    turns = len(case.input.turns or ())
    if case.turn_limit is None or turns <= case.turn_limit:
        return None
    return f"the case has {turns} turns, and its conversation may have {case.turn_limit} at most"


def _not_fetched(skills: list[SkillRef], loc: Loc) -> Iterator[tuple[Loc, str]]:
    for n, skill in enumerate(skills):
        if skill.source != "local_path":
            yield (
                (*loc, "skills", n, "source"),
                f"skills from a `{skill.source}` are not fetched yet",
            )
