"""What a single field cannot know: names, turn numbers and switches that must fit together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.load.expand import branch_problems, has_checks, paths_of
from skillup.load.model import LoadedCase, all_checks, walk_checks
from skillup.load.model_fields import near_miss
from skillup.load.unsupported import (
    ignored_in_suite,
    too_many_turns,
    unsupported_in_case,
    unsupported_in_suite,
)
from skillup.load.yaml_reader import Document, field_name, parse_yaml
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.check_specs import (
    ToolCountInTurn,
    ToolMatchInTurn,
    TurnContains,
    TurnNotContains,
)
from skillup.schema.checks import Check, CheckKeys, CheckSet
from skillup.schema.conversation import Persona
from skillup.schema.judge import PROMPT_VARIABLES, unknown_variables
from skillup.schema.suite import Suite, lead_of, needs_simulator, playing_model

# Checks that name a turn: is there such a turn on each path through the case?

Loc = tuple[str | int, ...]
_IN_TURN = (ToolCountInTurn, ToolMatchInTurn, TurnContains, TurnNotContains)


def turn_problems(paths: Sequence[LoadedCase]) -> Iterator[Problem]:
    """The numbers that are too high, each once: a case's own checks are asked on all its paths."""
    found: dict[tuple[int, int, str, int], list[tuple[LoadedCase, int]]] = {}
    for path in paths:
        turns = _turns(path.case)
        for loc, number in _numbers(path.case):
            if turns and number > turns:
                place = path.document.locate(loc)
                field = field_name(path.document.as_written(loc))
                found.setdefault((*place, field, number), []).append((path, turns))
    for (line, column, field, number), too_short in found.items():
        path, _ = too_short[0]
        message, fix = _words(number, too_short)
        yield Problem(path.document.path, line, column, field, message, fix)


def _words(number: int, paths: Sequence[tuple[LoadedCase, int]]) -> tuple[str, str]:
    (path, turns), *others = paths
    if others:
        listed = ", ".join(f"`{one.case.id}` has {count}" for one, count in paths)
        return f"there is no turn {number} on these paths: {listed}", "turns count along each path"
    is_branch = path.branch_of not in (None, path.case.id)
    whose = f"`{path.case.id}`, a branch" if is_branch else "a case"
    return f"turn {number} of {whose} with {turns}", f"turns count from 1 to {turns}"


def _turns(case: Case) -> int:
    """How many there are; 0: nobody can say."""
    lead = lead_of(case)
    if lead is not None:
        return lead.max_turns  # the simulated user decides how many of them there are
    return len(case.input.turns or ()) or (1 if case.input.prompt is not None else 0)


def _numbers(case: Case) -> Iterator[tuple[Loc, int]]:
    """Each number of a turn that a check names, and where."""
    for loc, keys, _ in all_checks(case):
        if isinstance(keys, Check) and isinstance(keys.turn, int):
            yield (*loc, "turn"), keys.turn
        for key, spec in keys.given():
            if isinstance(spec, _IN_TURN) and isinstance(spec.turn, int):
                yield (*loc, key, "turn"), spec.turn


# Checks that a model reads: prompts of the user's own, and whether there is a model at all.

Asked = tuple[Loc, str, Any]
"""A check: its place, its key, its arguments."""
_READ_BY_MODEL = ("rubric", "similar", "expected_output", "relevance", "answer_quality")


def reader_problems(
    case: Case, checks: Iterable[tuple[Loc, CheckKeys, int]], document: Document
) -> Iterator[Problem]:
    """What is wrong with those of `checks`, all of the case's, that a model reads."""
    asked = [*_read_by_model(checks), *_expected_outputs(case)]
    for loc, key, spec in asked:
        prompt = getattr(spec, "prompt", None)
        if prompt is not None:
            yield from _unknown(prompt, (*loc, key, "prompt"), document)
    if case.judge_model is None:
        yield from _without_model(asked, document)


def _read_by_model(checks: Iterable[tuple[Loc, CheckKeys, int]]) -> Iterator[Asked]:
    for loc, keys, _ in checks:
        for key, spec in keys.given():
            if key in _READ_BY_MODEL:
                yield loc, key, spec


def _expected_outputs(case: Case) -> Iterator[Asked]:
    if case.expected_output is not None:
        yield (), "expected_output", case.expected_output
    for number, turn in enumerate(case.input.turns or ()):
        if turn.expected_output is not None:
            yield ("input", "turns", number), "expected_output", turn.expected_output


def _unknown(prompt: str, loc: Loc, document: Document) -> Iterator[Problem]:
    known = ", ".join("{{" + name + "}}" for name in PROMPT_VARIABLES)
    for name in unknown_variables(prompt):
        line, column = document.locate(loc)
        found = _find(document, name, line)
        line, column = found or (line, column)
        yield Problem(
            document.path, line, column, field_name(loc),
            f"{{{{{name}}}}} is not a variable of a judge's prompt", f"known here: {known}",
        )  # fmt: skip


def _find(document: Document, name: str, from_line: int) -> tuple[int, int] | None:
    """Where ``{{name}}`` stands in the file's own text, at or below a line."""
    pattern = re.compile(r"\{\{\s*" + re.escape(name) + r"\s*\}\}")
    for number, line in enumerate(document.text.splitlines(), start=1):
        if number >= from_line and (match := pattern.search(line)):
            return number, match.start() + 1
    return None


def _without_model(asked: Iterable[Asked], document: Document) -> Iterator[Problem]:
    """One warning for the case, at the first check that needs a model."""
    for loc, key, spec in asked:
        if key == "similar" and spec.embedding_model is not None:
            continue
        line, column = document.locate((*loc, key))
        yield Problem(
            document.path, line, column, field_name((*loc, key)),
            f"`{key}` is read by a model, and none is named",
            "write `judge: {model: …}` in eval.yaml, or `judge_model` in the case; without one, "
            "and without --judge-model, a run of this case is an error",
            "warning",
        )  # fmt: skip
        return


# What can be wrong with a simulated user: nobody to play it, no limit, names without a value.


def nobody_plays(case: Case, suite: Suite) -> Iterator[tuple[Loc, str, str]]:
    """Where a user is needed that nobody plays: the place, what is wrong, what to do."""
    given = suite.user_simulator
    if not needs_simulator(case) or (given is not None and given.engine is not None):
        return
    if playing_model(given, case) is None:
        yield (
            _needed_at(case),
            "nobody plays the simulated user",
            ("set `user_simulator.model` (or `engine`) in eval.yaml; without it a run is an error"),
        )


def without_limit(case: Case) -> Iterator[tuple[Loc, str, str]]:
    """A scenario leads the conversation, and nothing says how long."""
    led = case.user_simulator is not None and case.input.prompt is not None
    if led and case.max_turns is None and case.turn_limit is None:
        yield (
            ("user_simulator",),
            "the simulated user leads, and `max_turns` is missing",
            ("set `max_turns` (or `constraints.max_turns`): the most messages of the user's"),
        )


def without_use(case: Case) -> Iterator[tuple[Loc, str, str]]:
    """A scenario for which there is nobody to play it."""
    if case.user_simulator is not None and not needs_simulator(case):
        yield (
            ("user_simulator",),
            "`user_simulator` has no effect: no turn has `respond`",
            ("write `respond` in place of a turn's `content`, or leave it out"),
        )


def texts_of(case: Case) -> Iterator[tuple[Loc, str]]:
    """The texts of the user's part in which templates are filled in, with their places."""
    if case.user_simulator is not None:
        yield ("user_simulator", "scenario"), case.user_simulator.scenario
    if case.input.conversation is not None:
        persona = case.input.conversation.persona
        for name in Persona.model_fields:
            yield from _texts(getattr(persona, name), ("input", "conversation", "persona", name))


def _texts(value: Any, loc: Loc) -> Iterator[tuple[Loc, str]]:
    if isinstance(value, str):
        yield loc, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*loc, index))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, (*loc, name))


def _needed_at(case: Case) -> Loc:
    if case.input.conversation is not None:
        return ("input", "conversation")
    for index, turn in enumerate(case.input.turns or ()):
        if turn.respond is not None:
            return ("input", "turns", index, "respond")
    return ("user_simulator",) if case.user_simulator is not None else ("input",)


MAX_FOLLOW_UP_DEPTH = 5
_FRONT_MATTER = 10_000


def problem_at(
    document: Document, loc: Loc, message: str, fix: str = "", *, severity: str = "error"
) -> Problem:
    """A problem with the value at `loc`."""
    line, column = document.locate(loc)
    where = field_name(document.as_written(loc))
    return Problem(document.path, line, column, where, message, fix, severity)


def suite_problems(suite: Suite, document: Document, root: Path) -> Iterator[Problem]:
    """What is wrong (or not run yet) in an `eval.yaml` that validates."""
    for index, skill in enumerate(suite.skills or ()):
        loc: Loc = ("skills", index, "path")
        if skill.source != "local_path":
            continue
        if not (root / skill.path).is_dir():
            message = f"no such directory: {skill.path} (paths start from {root.name}/)"
            yield problem_at(document, loc, message, "a run of this suite would be an error",
                             severity="warning")  # fmt: skip
        elif not (root / skill.path / "SKILL.md").is_file():
            message = f"there is no SKILL.md in {skill.path} (paths start from {root.name}/)"
            then = "what is there is installed all the same" if skill.as_is else (
                "a run of this suite would be an error"
            )  # fmt: skip
            yield problem_at(document, loc, message, then, severity="warning")
    for index, distractor in enumerate(suite.distractors):
        if not (root / distractor).is_dir():
            yield problem_at(
                document, ("distractors", index), f"no such directory: {distractor}",
                "a run of this suite would be an error", severity="warning",
            )  # fmt: skip
    yield from renamed(document, ("neighbours",), "distractors")
    for loc, message in (*unsupported_in_suite(suite), *ignored_in_suite(suite)):
        yield problem_at(document, loc, message, severity="warning")


def skill_name_problems(suite: Suite, root: Path, cases: Sequence[LoadedCase]) -> Iterator[Problem]:
    """Checks of skills that the suite does not install: `skill_not_used` would pass every time."""
    given = [(ref.path, ref.name) for ref in suite.skills or () if ref.source == "local_path"]
    given += [(path, None) for path in (*suite.distractors, *(["."] * (suite.skills is None)))]
    known = sorted({one for path, name in given for one in _names_of_skill(root / path, name)})
    folded = {name.casefold() for name in known}
    found: dict[Problem, None] = {}  # what is wrong with shared turns is wrong once
    for loaded in cases if known else ():
        context = loaded.case.context
        may_bring_more = bool(
            context.fixture or context.files or context.setup or suite.environment.setup_steps
        )
        for loc, keys, _ in all_checks(loaded.case):
            for key, spec in keys.given():
                if key not in ("skill_used", "skill_not_used") or templates.has_templates(spec):
                    continue
                name = spec.strip().casefold()
                if not folded.isdisjoint((name, name.rpartition(":")[2])):
                    continue
                guess = near_miss(name, known)
                fix = f"did you mean `{guess}`?" if guess else f"it installs: {', '.join(known)}"
                message = f"the suite installs no skill called {spec}"
                severity = "error" if guess and not may_bring_more else "warning"
                where = (*loc, key)
                problem = problem_at(loaded.document, where, message, fix, severity=severity)
                found[problem] = None
    yield from found


def _names_of_skill(directory: Path, name: str | None) -> Iterator[str]:
    file = directory / "SKILL.md"
    if not file.is_file():
        return
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as text:
            lines = text.read(_FRONT_MATTER).splitlines()
    except OSError:
        return
    yield name or directory.resolve().name
    for line in lines:
        if line.startswith("name:"):
            with suppress(InvalidFilesError):
                yield str(parse_yaml(line, file).data["name"])


def renamed(document: Document, old: Loc, new: str) -> Iterator[Problem]:
    """A warning where the file has a key by its earlier name."""
    value: Any = document.data
    for key in old:
        value = value.get(key) if isinstance(value, dict) else None
    if value is not None:
        line, column = document.locate(old, key=True)
        message = f"`{old[-1]}` is called `{new}` now"
        fix = f"write `{new}`"
        yield Problem(document.path, line, column, field_name(old), message, fix, "warning")


def case_problems(case: Case, document: Document, variables: frozenset[str]) -> Iterator[Problem]:
    """What is wrong (or not run yet) in a case that validates, and in each of its branches."""
    for loc, message, fix in branch_problems(case):
        yield problem_at(document, loc, message, fix)
    yield from renamed(document, ("input", "conversation", "chatter"), "persona")
    found: dict[Problem, None] = {}  # what is wrong with shared turns is wrong once
    paths = paths_of(LoadedCase(case, document))
    for path in paths:
        found.update(dict.fromkeys(_problems_of_path(path, variables)))
    yield from found
    yield from turn_problems(paths)


def _problems_of_path(path: LoadedCase, variables: frozenset[str]) -> Iterator[Problem]:
    case, document = path.case, path.document
    yield from _template_problems(case, document, variables)
    yield from _check_problems(case, document)
    yield from reader_problems(case, all_checks(case), document)
    for index, turn in enumerate(case.input.turns or ()):
        loc: Loc = ("input", "turns", index, "content")
        if turn.slash_command and not re.match(r"/\S", turn.content or ""):
            yield problem_at(document, loc, "`slash_command: true`, but it is no / and a name",
                             "write the command, such as /compact")  # fmt: skip
    for loc, message, fix in without_limit(case):
        yield problem_at(document, loc, message, fix)
    for loc, message, fix in without_use(case):
        yield problem_at(document, loc, message, fix, severity="warning")
    if not has_checks(case) and not case.all_judges():
        where = "in this case" if path.branch_of is None else f"on the path `{case.id}`"
        yield problem_at(document, (), f"nothing is checked {where}",
                         "add `assertions`; as it is, it fails for want of evidence",
                         severity="warning")  # fmt: skip
    excess = too_many_turns(case)
    if excess is not None:
        fix = "raise `turn_limit` (in skill-up's suites `max_turns`); a run would be an error"
        yield problem_at(document, ("input", "turns"), excess, fix, severity="warning")
    for loc, message in unsupported_in_case(case):
        yield problem_at(document, loc, message, severity="warning")


def _template_problems(
    case: Case, document: Document, variables: frozenset[str]
) -> Iterator[Problem]:
    first = frozenset(case.vars) | variables
    for number, message in enumerate(case.input.history):
        if not message.literal:
            loc: Loc = ("input", "history", number, "content")
            yield from _unresolved(message.content, loc, first, document)
    past = {rule.variable for message in case.input.history for rule in message.capture}
    past.update(name for rule in case.input.reconstruct for name in rule.variables())
    # known[n]: once turn n has ended; the last one: once all have.
    known = [first | past]
    for turn in case.input.turns or ():
        known.append(known[-1] | {rule.variable for rule in turn.capture})
    if not case.context.literal:
        for path, content in case.context.files.items():
            yield from _unresolved(content, ("context", "files", path), known[0], document)
    if not case.input.literal:
        for key in ("system", "prompt"):
            yield from _unresolved(
                getattr(case.input, key) or "", ("input", key), known[0], document
            )
    for loc, text in texts_of(case):
        # A part is read anew for each message: a later one may use what was captured by then.
        yield from _unresolved(text, loc, known[-1], document)
    for number, turn in enumerate(case.input.turns or ()):
        loc = ("input", "turns", number)
        if not turn.literal:
            for key in ("content", "respond"):
                yield from _unresolved(
                    getattr(turn, key) or "", (*loc, key), known[number], document
                )
            yield from _unresolved(
                turn.expected_output or "", (*loc, "expected_output"), known[number + 1], document
            )
        for place, check, _ in walk_checks(turn.assertions, (*loc, "assertions")):
            if check.prompt is not None and not check.literal:
                yield from _unresolved(
                    check.prompt, (*place, "prompt"), known[number + 1], document
                )
    yield from _unresolved(case.expected_output or "", ("expected_output",), known[-1], document)
    yield from _names_in_checks(case, document, known)
    for number, judge in enumerate(case.all_judges()):
        where: Loc = ("judges", number) if case.judges is not None else ("judge",)
        for line, criterion in enumerate(judge.criteria):
            loc = (*where, "criteria", line, "outcome")
            yield from _unresolved(criterion.outcome, loc, known[-1], document)


def _names_in_checks(
    case: Case, document: Document, known: Sequence[frozenset[str]]
) -> Iterator[Problem]:
    """A check knows what was defined when the turn had ended that it is asked of."""
    turns: dict[Loc, int] = {}
    for loc, keys, _ in all_checks(case):
        number = turns.get(loc[:-2], len(known) - 1)  # as the compound check or follow-up around it
        if loc[:2] == ("input", "turns") and loc[:-2] not in turns:
            gate = loc[-1] == "post_condition"  # asked before its turn's captures
            number = int(loc[2]) + (not gate)
        if isinstance(keys, Check) and keys.turn is not None:
            number = len(known) - 1 if keys.turn == "last" else keys.turn
        turns[loc] = number
        for key, spec in () if keys.literal else keys.given():
            if key in ("any_of", "all_of", "none_of"):
                continue
            own = getattr(spec, "turn", None) or number
            own = len(known) - 1 if own == "last" else own
            # Files of the suite are kept before the first turn.
            own = 0 if key in ("golden_file", "script") else min(own, len(known) - 1)
            names = templates.written_in_check(key, spec)
            yield from _unknown_names(names, (*loc, key), known[own], document)


def _unresolved(
    text: str, loc: Loc, known: frozenset[str], document: Document
) -> Iterator[Problem]:
    yield from _unknown_names(templates.written_in(text), loc, known, document)


def _unknown_names(
    names: Mapping[str, str], loc: Loc, known: frozenset[str], document: Document
) -> Iterator[Problem]:
    for name, written in names.items():
        if name in known:
            continue
        line, column = document.locate(loc)
        found = _find_template(document, name, line)
        line, column = found or (line, column)
        listed = ", ".join(sorted(known)) or "none"
        yield Problem(
            document.path, line, column, field_name(document.as_written(loc)),
            f"{written} is not defined by `vars` or by an earlier `capture`",
            f"defined here: {listed}; for the text itself write \\{written}, or `literal: true` "
            "beside it",
        )  # fmt: skip


def _find_template(document: Document, name: str, from_line: int) -> tuple[int, int] | None:
    """Where ``<<name>>`` stands in the file's own text, at or below a line."""
    quoted = re.escape(name)
    pattern = re.compile(rf"(?<!\\)(?:<<\s*{quoted}\s*>>|\{{\{{\s*{quoted}\s*\}}\}})")
    for number, line in enumerate(document.text.splitlines(), start=1):
        if number >= from_line and (match := pattern.search(line)):
            return number, match.start() + 1
    return None


def _check_problems(case: Case, document: Document) -> Iterator[Problem]:
    for loc, keys, depth in all_checks(case):
        follows = isinstance(keys, Check) and keys.prompt is not None
        if follows and loc[:2] != ("input", "turns"):
            yield problem_at(document, (*loc, "prompt"), "a follow-up outside of a turn",
                             "put it among the `assertions` of a turn")  # fmt: skip
        if loc[:2] == ("input", "turns"):
            later = range(int(loc[2]) + 2, len(case.input.turns or ()) + 1)
            yield from _later_turns(loc, keys, later, document)
        if depth > MAX_FOLLOW_UP_DEPTH:
            yield problem_at(document, loc, f"follow-ups nested {depth} deep",
                             f"the limit is {MAX_FOLLOW_UP_DEPTH}")  # fmt: skip


def _later_turns(
    loc: Loc, keys: Check | CheckSet, later: range, document: Document
) -> Iterator[Problem]:
    """A turn's own check is asked when the turn has ended: it cannot look at a later one."""
    named = [(loc, keys.turn)] if isinstance(keys, Check) else []
    named += [((*loc, key), getattr(spec, "turn", None)) for key, spec in keys.given()]
    for place, turn in named:
        if turn == "last" or turn in later:
            message = f"a check of turn {later.start - 1} cannot look at turn `{turn}`"
            fix = "leave `turn` out for this turn, or move the check to the case's `assertions`"
            yield problem_at(document, (*place, "turn"), message, fix)
