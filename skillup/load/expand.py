"""A suite's defaults, merged into each of its cases; and a case for each of its branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillup.errors import Problem
from skillup.load.model import LoadedCase
from skillup.load.yaml_reader import Document, Loc
from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckSet
from skillup.schema.conversation import Turn
from skillup.schema.judge import JudgeConfig, JudgeModel
from skillup.schema.suite import Suite

_OF_THE_BASE = (
    *("model", "base_url", "api_key_env", "engine", "pass_threshold", "timeout_seconds"),
    *("context", "scripted"),
)
_PLAIN = ("max_turns", "turn_limit", "pass_threshold", "aggregation", "on_turn_failure", "trials")


def merge_defaults(case: Case, suite: Suite, *, default_id: str) -> Case:
    """`case` with the suite's defaults filled in; what the case says itself stays."""
    defaults, limits = suite.cases.defaults, case.constraints
    updates: dict[str, Any] = {"id": case.id or default_id}
    if case.timeout_seconds is None:
        own = limits.timeout_seconds if limits else None
        updates["timeout_seconds"] = own if own is not None else defaults.timeout_seconds
    if case.max_turns is None and limits:
        updates["max_turns"] = limits.max_turns
    for name in _PLAIN:
        if updates.get(name, getattr(case, name)) is None:
            updates[name] = getattr(defaults, name)
    if case.input.prompt is not None:
        updates["aggregation"] = None
    if case.tag is not None and case.tag not in case.tags:
        updates["tags"] = [*case.tags, case.tag]
    joined = dict.fromkeys([*defaults.collect_artifacts, *case.collect_artifacts])
    updates["collect_artifacts"] = list(joined) if defaults.collect_artifacts else None
    if defaults.expect is not None:
        updates["expect"] = _merge_expect(defaults.expect, case.expect)
    if case.retry_policy is None:
        updates["retry_policy"] = suite.cases.retry_policy
    if case.judge_model is None:
        updates["judge_model"] = _judge_model(case, suite)
    near, far = defaults.judge, suite.judge
    base = _fill(near, far) if near is not None and far is not None else near or far
    if base is not None and case.judges is not None:
        updates["judges"] = [_fill(judge, base) for judge in case.judges]
    elif base is not None and (case.judge is not None or _decides(base)):
        updates["judge"] = _fill(case.judge, base) if case.judge is not None else base
    elif not case.all_judges():
        updates["judges"] = suite.judges
    return case.model_copy(update={k: v for k, v in updates.items() if v is not None})


def _judge_model(case: Case, suite: Suite) -> JudgeModel | None:
    """The model that reads for the case's checks: what its own judges name, else the suite's."""
    for judge in _model_judges(case, suite):
        if judge.model is not None:
            return JudgeModel(
                model=judge.model,
                base_url=judge.base_url,
                api_key_env=judge.api_key_env,
                timeout_seconds=judge.timeout_seconds or None,
                repeat=judge.repeat,
            )
    return None


def judge_settings(case: Case, suite: Suite | None) -> dict[str, Any]:
    """How to ask a model that the judges of `case` and its `suite` do not name themselves."""
    for judge in _model_judges(case, suite):
        given = judge.model_fields_set & {"timeout_seconds", "repeat"}
        if given and judge.type != "script":
            return {name: getattr(judge, name) or None for name in given}
    return {}


def _model_judges(case: Case, suite: Suite | None) -> list[JudgeConfig]:
    """The judges that may say which model reads for checks: agents have models of their own."""
    of_suite = [suite.cases.defaults.judge, suite.judge] if suite is not None else []
    judges = [*case.all_judges(), *of_suite]
    return [judge for judge in judges if judge is not None and judge.type != "agent_judge"]


def _merge_expect(defaults: CheckSet, own: CheckSet | None) -> CheckSet:
    """Lists are joined, defaults first; anything else the case says outranks the default."""
    updates: dict[str, Any] = {}
    for name in own.model_fields_set if own is not None else ():
        mine, theirs = getattr(own, name), getattr(defaults, name)
        if isinstance(mine, list) and isinstance(theirs, list):
            mine = theirs + [item for item in mine if item not in theirs]
        if mine is not None:
            updates[name] = mine
    return defaults.model_copy(update=updates)


def _decides(judge: JudgeConfig) -> bool:
    """Whether it says by what it judges; if not, it only fills in what others leave open."""
    return bool(judge.criteria or judge.success or judge.failure or judge.script_path)


def _fill(judge: JudgeConfig, base: JudgeConfig) -> JudgeConfig:
    """What `judge` leaves open, from `base`; by what it judges, too, if it does not say.

    Its rules say which type it is if it does not.
    """
    if not _decides(judge) and judge.type in (None, base.type or "rule_based"):
        own = {name: getattr(judge, name) for name in judge.model_fields_set}
        return base.model_copy(update=own)
    updates: dict[str, Any] = {}
    if judge.type is None:
        updates["type"] = "script" if judge.script_path else "rule_based"
    for name in _OF_THE_BASE:
        if getattr(judge, name) is None and getattr(base, name) is not None:
            updates[name] = getattr(base, name)
    return judge.model_copy(update=updates)


# Branches: a case whose turns name alternative continuations becomes one linear case per path.

_TURNS: Loc = ("input", "turns")


@dataclass(frozen=True, eq=False)
class PathDocument(Document):
    """A case's file, seen from one path: places in the linear case are found where they stand."""

    whole: Document
    turns: tuple[Loc, ...]
    """Where each turn of the path is written."""
    checks: tuple[Loc, ...]
    """Where each of its conversation assertions is written."""
    branch: Loc
    """Where the branch that it ends with is written; empty for the main line."""

    def as_written(self, loc: Sequence[str | int]) -> Loc:
        """The place in the file of what is at `loc` in the linear case."""
        place = tuple(loc)
        if not place:
            return self.branch
        if place[:2] == _TURNS and len(place) > 2:
            return (*self.turns[int(place[2])], *place[3:])
        if place[0] == "assertions" and len(place) > 1:
            return (*self.checks[int(place[1])], *place[2:])
        return place

    def locate(self, loc: Sequence[str | int], *, key: bool = False) -> tuple[int, int]:
        """Line and column of what is at `loc` in the linear case."""
        return self.whole.locate(self.as_written(loc), key=key)


@dataclass(frozen=True, slots=True)
class _Line:
    """A path in the making: its branches' names, its turns and checks with their places."""

    names: tuple[str, ...]
    turns: tuple[tuple[Loc, Turn], ...]
    checks: tuple[tuple[Loc, Check], ...]
    branch: Loc = ()


def paths_of(loaded: LoadedCase) -> list[LoadedCase]:
    """The linear cases that `loaded` stands for: itself, if none of its turns has branches.

    A branch's id is ``CASE/BRANCH`` (within a branch ``CASE/BRANCH/BRANCH``); the turns that follow
    the branching turn in the same list are a path, too, whose id goes without a name.
    """
    case = loaded.case
    turns = case.input.turns or []
    if not any(turn.branches for turn in turns):
        return [loaded]
    found = [_linear(loaded, line) for line in _lines(turns, _TURNS, _Line((), (), ()))]
    # The main line first: it is the case's own.
    return sorted(found, key=lambda path: path.case.id != case.id)


def _lines(turns: Sequence[Turn], place: Loc, line: _Line) -> Iterator[_Line]:
    """Every path through `turns`, which stand at `place` and come after `line`."""
    for number, turn in enumerate(turns):
        here = (*place, number)
        line = replace(line, turns=(*line.turns, (here, turn)))
        for index, branch in enumerate(turn.branches):
            at = (*here, "branches", index)
            own = [((*at, "assertions", n), check) for n, check in enumerate(branch.assertions)]
            checks = (*line.checks, *own)
            fork = _Line((*line.names, branch.name), line.turns, checks, at)
            yield from _lines(branch.turns, (*at, "turns"), fork)
    if not turns[-1].branches:
        yield line


def _linear(loaded: LoadedCase, line: _Line) -> LoadedCase:
    case, document = loaded.case, loaded.document
    turns = [turn.model_copy(update={"branches": []}) for _, turn in line.turns]
    own: list[tuple[Loc, Check]] = [(("assertions", n), c) for n, c in enumerate(case.assertions)]
    checks = [*own, *line.checks]
    updates: dict[str, Any] = {
        "id": "/".join([case.id, *line.names]),
        "input": case.input.model_copy(update={"turns": turns}),
        "assertions": [check for _, check in checks],
    }
    places = tuple(place for place, _ in line.turns)
    seen = PathDocument(
        document.path, document.text, document.data, document,
        places, tuple(place for place, _ in checks), line.branch, place=document.place,
    )  # fmt: skip
    linear = case.model_copy(update=updates)
    return replace(loaded, case=linear, document=seen, branch_of=case.id, places=places)


def branch_problems(case: Case, document: Document) -> Iterator[Problem]:
    """Names of branches that clash: wherever in a list of turns they branch off."""
    yield from _name_problems(case.input.turns or [], _TURNS, document)


def _name_problems(turns: Sequence[Turn], place: Loc, document: Document) -> Iterator[Problem]:
    taken: set[str] = set()
    for number, turn in enumerate(turns):
        for index, branch in enumerate(turn.branches):
            at: Loc = (*place, number, "branches", index)
            name = branch.name
            if "/" in name:
                message = f"`{name}` holds a slash: a branch's id is CASE/BRANCH"
                yield document.problem((*at, "name"), message, "use - or _ instead")
            if name.casefold() in taken:
                message = f"there is another branch `{name}` here"
                fix = "results are distinguished by it: choose another name"
                yield document.problem((*at, "name"), message, fix)
            taken.add(name.casefold())
            yield from _name_problems(branch.turns, (*at, "turns"), document)


def has_checks(case: Case) -> bool:
    """Whether anything but the judge could fail this case, which has no branches."""
    return bool(
        case.assertions
        or case.expect
        or case.expected_output
        or any(turn.checks() or turn.post_condition for turn in case.input.turns or ())
    )
