"""What loading yields: suites and cases with their places, defaults merged in, and their paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillup.dataclass import frozen
from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import Document, Loc
from skillup.schema.case import Case, SimulationSettings, Turn, of_case
from skillup.schema.checks import READ_BY_MODEL, Check, CheckKeys, CheckSet
from skillup.schema.judge import JudgeConfig
from skillup.schema.judge_model import AskedModels, JudgeModel
from skillup.schema.suite import Suite

if TYPE_CHECKING:
    from skillup.load.datasets import Items


@frozen
class LoadedCase:
    like: Case
    """The case, the suite's defaults merged in. Of an item that is made into a case when it is
    needed, another one's: id, `vars`, texts and messages of `input` differ, and nothing else."""
    document: Document
    items: Items | None = None  # The dataset that it is from
    index: int = 0  # In there
    item_id: str | None = None  # None: `like` is the case itself
    branch_of: str | None = None
    """The id of the case that this is one path of; None: the case has no branches."""
    places: tuple[Loc, ...] = ()
    """Where each turn of such a path is written: paths share what stands at the same place."""

    @property
    def case(self) -> Case:
        if self.items is None or self.item_id is None:
            return self.like
        return self.items.case_of(self)

    @property
    def id(self) -> str:
        return self.like.id if self.item_id is None else self.item_id

    @property
    def item(self) -> str | None:
        """Of a dataset's item: its id and its message, for `--item`."""
        return None if self.items is None else self.items.text_of(self.index)

    @property
    def located(self) -> Document:
        """The document, at the item's own line."""
        line = self.items.lines[self.index] if self.items is not None else self.document.line
        return self.document if line == self.document.line else replace(self.document, line=line)

    @property
    def family(self) -> str:
        """The id of the case as it is written: its own, or that of the case with the branches."""
        return self.branch_of or self.id

    @property
    def path(self) -> Path:
        return self.document.path


@frozen
class LoadedSuite:
    """A suite and those of its cases that validate; relative paths start from its `root`."""

    name: str
    suite: Suite
    document: Document
    root: Path
    cases: tuple[LoadedCase, ...]

    @property
    def path(self) -> Path:
        return self.document.path


@frozen
class Loaded:
    suites: tuple[LoadedSuite, ...]
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity == "warning")

    def or_raise(self) -> Loaded:
        """Itself. Raises InvalidFilesError with every error if there are any."""
        if self.errors:
            raise InvalidFilesError(self.errors)
        return self


TURNS: Loc = ("input", "turns")

_PlacedCheck = tuple[Loc, Check | CheckSet, int]


@of_case
def all_checks(case: Case) -> Iterator[_PlacedCheck]:
    """Every check of the case, with its place and how deep in follow-ups it stands."""
    yield from _walk(case.expect, ("expect",))
    yield from _walk(case.assertions, ("assertions",))
    for place, judge in judges_of(case):
        yield from _walk(judge.success, (*place, "success"))
        yield from _walk(judge.failure, (*place, "failure"))
    for number, turn in enumerate(case.input.turns or ()):
        yield from _walk(turn.post_condition, (*TURNS, number, "post_condition"))
        yield from _walk(turn.assertions, (*TURNS, number, "assertions"))


@of_case
def read_by_model(case: Case) -> Iterator[tuple[Loc, CheckKeys]]:
    """Every check that a model reads, and its place with its key; expected outputs are such."""
    for loc, check, _ in all_checks(case):
        yield from (((*loc, key), check) for key, _ in check.given() if key in READ_BY_MODEL)
    owners: list[tuple[Loc, Case | Turn]] = [((), case)]
    owners += [((*TURNS, n), turn) for n, turn in enumerate(case.input.turns or ())]
    for loc, owner in owners:
        for check in owner.checks()[len(owner.assertions) :]:
            yield (*loc, check.key), check


def model_for(case: Case, check: CheckKeys) -> JudgeModel | None:
    """Who reads for `check`: its own model or panel, else the case's."""
    own: JudgeModel | None = getattr(check, "judge", None)
    model = case.judge_model
    return model if own is None or (model is not None and model.everywhere) else own


def judge_models(case: Case) -> list[JudgeModel]:
    """Every single model that reads for the case's checks, each once."""
    named = [model_for(case, check) for _, check in read_by_model(case)]
    if not named:
        return []
    every = [member for one in named if one is not None for member in one.members()]
    return list({one.model_dump_json(): one for one in every}.values())


def judges_of(case: Case) -> Iterator[tuple[Loc, JudgeConfig]]:
    """The case's judges, each with its place."""
    for number, judge in enumerate(case.all_judges()):
        yield ("judges", number) if case.judges is not None else ("judge",), judge


_NESTED = ("assertions", "any_of", "all_of", "none_of")


def _walk(
    found: list[Check] | Check | CheckSet | None, loc: Loc, depth: int = 0
) -> Iterator[_PlacedCheck]:
    if isinstance(found, list):
        for index, check in enumerate(found):
            yield from _walk(check, (*loc, index), depth)
    elif found is not None:
        yield loc, found, depth
        fields = found.model_fields_set
        for key in () if fields.isdisjoint(_NESTED) else _NESTED:
            if key in fields:
                inner = getattr(found, key)
                yield from _walk(inner, (*loc, key), depth + (key == "assertions"))


_PLAIN = ("max_turns", "turn_limit", "pass_threshold", "aggregation", "on_turn_failure", "trials")
_OF_THE_BASE = (
    *("model", "base_url", "api_key_env", "engine", "pass_threshold", "timeout_seconds"),
    *("context", "scripted"),
)


def merge_defaults(case: Case, suite: Suite, *, default_id: str) -> Case:
    """`case` with the suite's defaults filled in; what the case says itself stays."""
    defaults, limits = suite.cases.defaults, case.constraints
    updates: dict[str, Any] = {"id": case.id or default_id}
    for name in ("timeout_seconds", *_PLAIN):
        if getattr(case, name) is None:
            own = getattr(limits, name, None)
            updates[name] = getattr(defaults, name) if own is None else own
    if case.input.prompt is not None:
        updates["aggregation"] = None
    if case.tag is not None and case.tag not in case.tags:
        updates["tags"] = [*case.tags, case.tag]
    if defaults.collect_artifacts:
        joined = dict.fromkeys([*defaults.collect_artifacts, *case.collect_artifacts])
        updates["collect_artifacts"] = list(joined)
    if defaults.expect is not None:
        # Lists are joined, defaults first; anything else the case says outranks the default.
        merged: dict[str, Any] = {}
        for name in case.expect.model_fields_set if case.expect is not None else ():
            mine, theirs = getattr(case.expect, name), getattr(defaults.expect, name)
            if isinstance(mine, list) and isinstance(theirs, list):
                mine = theirs + [item for item in mine if item not in theirs]
            merged |= {name: mine} if mine is not None else {}
        updates["expect"] = defaults.expect.model_copy(update=merged)
    led, user = case.input.conversation, suite.user_simulator
    if led is not None and user is not None:
        open_ = [n for n in SimulationSettings.model_fields if n not in led.model_fields_set]
        led = led.model_copy(update={name: getattr(user, name) for name in open_})
        updates["input"] = case.input.model_copy(update={"conversation": led})
    if case.retry_policy is None:
        updates["retry_policy"] = suite.cases.retry_policy
    if case.judge_model is None:
        named = next((j for j in _model_judges(case, suite) if j.model is not None), None)
        taken = {"model", "timeout_seconds", *AskedModels.model_fields}
        own = named.model_dump(include=taken, exclude_unset=True) if named is not None else {}
        own["timeout_seconds"] = own.get("timeout_seconds") or None
        updates["judge_model"] = named and JudgeModel(**own)
    near, far = defaults.judge, suite.judge
    base = _fill(near, far) if near is not None and far is not None else near or far
    if base is not None and case.judges is not None:
        updates["judges"] = [_fill(judge, base) for judge in case.judges]
    elif base is not None and (case.judge is not None or _decides(base)):
        updates["judge"] = _fill(case.judge, base) if case.judge is not None else base
    elif not case.all_judges():
        updates["judges"] = suite.judges
    return case.model_copy(update={k: v for k, v in updates.items() if v is not None})


def judge_settings(case: Case, suite: Suite | None) -> dict[str, Any]:
    """How to ask a model that the judges of `case` and its `suite` do not name."""
    for judge in _model_judges(case, suite):
        given = judge.model_fields_set & {"timeout_seconds", "repeat", "temperature", "examples"}
        if given and judge.type != "script":
            settings = {name: getattr(judge, name) for name in given}
            return {**settings, "timeout_seconds": judge.timeout_seconds or None}
    return {}


def _model_judges(case: Case, suite: Suite | None) -> list[JudgeConfig]:
    """The judges that may say which model reads for checks: agents have models of their own."""
    of_suite = [suite.cases.defaults.judge, suite.judge] if suite is not None else []
    judges = [*case.all_judges(), *of_suite]
    return [judge for judge in judges if judge is not None and judge.type != "agent_judge"]


def _decides(judge: JudgeConfig) -> bool:
    """Whether it says by what it judges."""
    return bool(judge.criteria or judge.success or judge.failure or judge.script_path)


def _fill(judge: JudgeConfig, base: JudgeConfig) -> JudgeConfig:
    """What `judge` leaves open, from `base`; by what it judges, too, if it does not say."""
    if not _decides(judge) and judge.type in (None, base.type or "rule_based"):
        own = {name: getattr(judge, name) for name in judge.model_fields_set}
        return base.model_copy(update=own)
    updates = {n: getattr(base, n) for n in _OF_THE_BASE if getattr(judge, n) is None}
    if judge.type is None:
        updates["type"] = "script" if judge.script_path else "rule_based"
    return judge.model_copy(update={n: v for n, v in updates.items() if v is not None})


@frozen
class _Line:
    """A path in the making: its branches' names, its turns and checks with their places."""

    names: tuple[str, ...] = ()
    turns: tuple[tuple[Loc, Turn], ...] = ()
    checks: tuple[tuple[Loc, Check], ...] = ()
    branch: Loc = ()


def paths_of(loaded: LoadedCase) -> list[LoadedCase]:
    """The linear cases, one for each path through its branches, that `loaded` stands for.

    A branch's id is ``CASE/BRANCH`` (within a branch ``CASE/BRANCH/BRANCH``); the turns that follow
    the branching turn in the same list are a path, too, whose id goes without a name.
    """
    case = loaded.like
    if not any(turn.branches for turn in case.input.turns or ()):
        return [loaded]
    found, start = [], _Line(checks=_placed(case.assertions, ("assertions",)))
    for line in _lines(case.input.turns or (), TURNS, start):
        turns = [turn.model_copy(update={"branches": []}) for _, turn in line.turns]
        updates: dict[str, Any] = {
            "id": "/".join([case.id, *line.names]),
            "input": case.input.model_copy(update={"turns": turns}),
            "assertions": [check for _, check in line.checks],
        }
        places = tuple(place for place, _ in line.turns)
        moved = {(*TURNS, number): place for number, place in enumerate(places)}
        moved |= {("assertions", n): place for n, (place, _) in enumerate(line.checks)}
        seen = replace(loaded.document, moved={**moved, (): line.branch})
        linear = case.model_copy(update=updates)
        found.append(replace(loaded, like=linear, document=seen, branch_of=case.id, places=places))
    # The main line first: it is the case's own.
    return sorted(found, key=lambda path: path.id != case.id)


def _placed(checks: list[Check], loc: Loc) -> tuple[tuple[Loc, Check], ...]:
    return tuple(((*loc, number), check) for number, check in enumerate(checks))


def _lines(turns: Sequence[Turn], place: Loc, line: _Line) -> Iterator[_Line]:
    """Every path through `turns`, which stand at `place` and come after `line`."""
    for number, turn in enumerate(turns):
        here = (*place, number)
        line = replace(line, turns=(*line.turns, (here, turn)))
        for index, branch in enumerate(turn.branches):
            at = (*here, "branches", index)
            checks = line.checks + _placed(branch.assertions, (*at, "assertions"))
            fork = _Line((*line.names, branch.name), line.turns, checks, at)
            yield from _lines(branch.turns, (*at, "turns"), fork)
    if not turns[-1].branches:
        yield line
