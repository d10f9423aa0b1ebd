"""Parts of the case language that load, but that this version cannot run.

`validate` names them as warnings; a run makes such a case an ERROR of kind `unsupported` before the
first turn, so that nothing is judged as if it had been looked at. A feature's lines leave this file
when it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator

from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckKeys
from skillup.schema.suite import Suite

Loc = tuple[str | int, ...]
_MODEL_CHECKS = ("rubric", "similar", "expected_output", "relevance", "answer_quality", "script")


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
    if suite.gates.model_fields_set:
        yield ("gates",), "`gates` have no effect yet: runs are not compared"
    if set(suite.report.formats) - {"json"}:
        yield ("report", "formats"), "only result.json is written yet"
    if suite.user_simulator is not None and suite.user_simulator.model_fields_set:
        yield ("user_simulator",), "`user_simulator` has no effect yet"


def unsupported_in_case(case: Case) -> Iterator[tuple[Loc, str]]:
    """Where the case asks for something that is not run yet, and what it is."""
    if case.input.conversation is not None:
        yield ("input", "conversation"), "a simulated user is not run yet"
    if case.user_simulator is not None:
        yield ("user_simulator",), "a simulated user is not run yet"
    for index, judge in enumerate(case.all_judges()):
        if judge.type in ("script", "agent_judge"):
            loc: Loc = ("judges", index) if case.judges is not None else ("judge",)
            yield (*loc, "type"), f"`{judge.type}` judges are not run yet"
    for index, turn in enumerate(case.input.turns or ()):
        here: Loc = ("input", "turns", index)
        if turn.respond is not None:
            yield (*here, "respond"), "a simulated user is not run yet"
        if turn.post_condition is not None:
            yield from _in_set(turn.post_condition, (*here, "post_condition"))
        if turn.expected_output is not None:
            yield (*here, "expected_output"), "comparing with `expected_output` is not run yet"
        yield from _in_checks(turn.assertions, (*here, "assertions"))
    yield from _in_checks(case.assertions, ("assertions",))
    if case.expect is not None:
        yield from _in_set(case.expect, ("expect",))
    for index, judge in enumerate(case.all_judges()):
        prefix: Loc = ("judges", index) if case.judges is not None else ("judge",)
        yield from _in_checks(judge.success, (*prefix, "success"))
        yield from _in_checks(judge.failure, (*prefix, "failure"))
    if case.expected_output is not None:
        yield ("expected_output",), "comparing with `expected_output` is not run yet"


def ignored_in_case(case: Case) -> Iterator[tuple[Loc, str]]:
    """What the case says and nothing looks at yet."""
    if case.window_size is not None:
        yield ("window_size",), "`window_size` has no effect yet: no model judge is run"


def _in_set(checks: CheckKeys, loc: Loc) -> Iterator[tuple[Loc, str]]:
    for key, spec in checks.given():
        if key in _MODEL_CHECKS:
            yield (*loc, key), f"`{key}` checks are not run yet: they need a judge that reads"
        elif key in ("any_of", "all_of", "none_of"):
            yield from _in_checks(spec, (*loc, key))


def _in_checks(checks: list[Check], loc: Loc) -> Iterator[tuple[Loc, str]]:
    for index, check in enumerate(checks):
        here = (*loc, index)
        if check.key in _MODEL_CHECKS:
            yield here, f"`{check.key}` checks are not run yet: they need a judge that reads"
        for key in ("any_of", "all_of", "none_of", "assertions"):
            children = getattr(check, key)
            if children:
                yield from _in_checks(children, (*here, key))
