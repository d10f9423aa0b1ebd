"""What a single field of a case cannot know: names, turn numbers, files and switches that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skillup.errors import Problem
from skillup.load.expand import branch_problems, has_checks, paths_of
from skillup.load.model import LoadedCase, all_checks, judges_of
from skillup.load.trust import case_file_problems
from skillup.load.unsupported import too_many_turns, unsupported_in_case
from skillup.load.yaml_reader import Document, Loc
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.checks import Check, CheckSet
from skillup.schema.judge import PROMPT_VARIABLES, unknown_variables
from skillup.schema.suite import Suite, lead_of, needs_simulator, playing_model

MAX_FOLLOW_UP_DEPTH = 5
_READ_BY_MODEL = ("rubric", "similar", "expected_output", "relevance", "answer_quality")
Known = list[frozenset[str]]
"""The names that have a value once turn n has ended (0: before the first); last: once all have."""


def case_problems(
    case: Case,
    document: Document,
    variables: frozenset[str],
    suite: Suite | None = None,
    root: Path | None = None,
) -> list[Problem]:
    """What is wrong (or not run yet) in a case that validates, on any of its paths; each once.

    With the `suite` and its `root`, also whether somebody plays the user, and its files.
    """
    found = [*branch_problems(case, document)]
    found += renamed(document, ("input", "conversation", "chatter"), "persona")
    for path in paths_of(LoadedCase(case, document)):
        first = frozenset(path.case.vars) | variables
        known = _known_names(path.case, first)
        for loc, text, names in _texts(path.case, first, known):
            found += _unknown_names(templates.written_in(text or ""), loc, names, path.document)
        found += _in_checks(path, known)
        found += _without_model(path)
        found += _in_conversation(path, suite)
        if root is not None:
            found += case_file_problems(path, root)
    return list(dict.fromkeys(found))


def renamed(document: Document, old: Loc, new: str) -> Iterator[Problem]:
    """A warning where the file has a key by its earlier name."""
    value: Any = document.data
    for key in old:
        value = value.get(key) if isinstance(value, dict) else None
    if value is not None:
        message = f"`{old[-1]}` is called `{new}` now"
        at = document.locate(old, key=True)
        yield document.problem(old, message, f"write `{new}`", "warning", at=at)


# Templates: has every name a value where it stands?


def _known_names(case: Case, first: frozenset[str]) -> Known:
    past = {rule.variable for message in case.input.history for rule in message.capture}
    past.update(name for rule in case.input.reconstruct for name in rule.variables())
    known = [first | past]
    for turn in case.input.turns or ():
        known.append(known[-1] | {rule.variable for rule in turn.capture})
    return known


def _texts(
    case: Case, first: frozenset[str], known: Known
) -> Iterator[tuple[Loc, str | None, frozenset[str]]]:
    """Each text that is a template, its place, and the names that have a value there."""
    given, last = case.input, known[-1]
    for number, message in enumerate(given.history):
        if not message.literal:
            yield ("input", "history", number, "content"), message.content, first
    if not case.context.literal:
        for name, content in case.context.files.items():
            yield ("context", "files", name), content, known[0]
    if not given.literal:
        yield ("input", "system"), given.system, known[0]
        yield ("input", "prompt"), given.prompt, known[0]
    # A user's part is read anew for each message: a later one may use what was captured by then.
    if case.user_simulator is not None:
        yield ("user_simulator", "scenario"), case.user_simulator.scenario, last
    if given.conversation is not None:
        persona = given.conversation.persona.model_dump()
        for loc, text in _texts_in(persona, ("input", "conversation", "persona")):
            yield loc, text, last
    for number, turn in enumerate(given.turns or ()):
        if not turn.literal:
            place: Loc = ("input", "turns", number)
            yield (*place, "content"), turn.content, known[number]
            yield (*place, "respond"), turn.respond, known[number]
            yield (*place, "expected_output"), turn.expected_output, known[number + 1]
    yield ("expected_output",), case.expected_output, last
    for where, judge in judges_of(case):
        for number, criterion in enumerate(judge.criteria):
            yield (*where, "criteria", number, "outcome"), criterion.outcome, last


def _texts_in(value: Any, loc: Loc) -> Iterator[tuple[Loc, str]]:
    if isinstance(value, str):
        yield loc, value
    elif isinstance(value, list | dict):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts_in(item, (*loc, key))


def _unknown_names(
    names: Mapping[str, str], loc: Loc, known: frozenset[str], document: Document
) -> Iterator[Problem]:
    for name, written in names.items():
        if name not in known:
            quoted = re.escape(name)
            pattern = rf"(?<!\\)(?:<<\s*{quoted}\s*>>|\{{\{{\s*{quoted}\s*\}}\}})"
            yield document.problem(
                loc, f"{written} is not defined by `vars` or by an earlier `capture`",
                f"defined here: {', '.join(sorted(known)) or 'none'}; for the text itself write "
                f"\\{written}, or `literal: true` beside it", at=_find(document, pattern, loc),
            )  # fmt: skip


def _find(document: Document, pattern: str, loc: Loc) -> tuple[int, int] | None:
    """Where `pattern` is in the file's own text, at or below the line of `loc`."""
    from_line = document.locate(loc)[0]
    for number, line in enumerate(document.text.splitlines(), start=1):
        if number >= from_line and (match := re.search(pattern, line)):
            return number, match.start() + 1
    return None


# Checks: the turns and names that they may look at.


def _in_checks(path: LoadedCase, known: Known) -> Iterator[Problem]:
    asked_of: dict[Loc, int] = {}
    for loc, check, depth in all_checks(path.case):
        own_turn = int(loc[2]) + 1 if loc[:2] == ("input", "turns") else None
        # A compound check or a follow-up is asked when what is around it is; a gate is asked
        # before its turn's captures.
        default = len(known) - 1 if own_turn is None else own_turn - (loc[-1] == "post_condition")
        number = asked_of.get(loc[:-2], default)
        if isinstance(check, Check) and check.turn is not None:
            number = len(known) - 1 if check.turn == "last" else check.turn
        asked_of[loc] = number
        yield from _turns_named(path, loc, check, own_turn)
        yield from _names_in_check(path, loc, check, number, known)
        if isinstance(check, Check) and check.prompt is not None:
            place = (*loc, "prompt")
            if own_turn is None:
                fix = "put it among the `assertions` of a turn"
                yield path.document.problem(place, "a follow-up outside of a turn", fix)
            elif not check.literal:
                names = templates.written_in(check.prompt)
                yield from _unknown_names(names, place, known[own_turn], path.document)
        if depth > MAX_FOLLOW_UP_DEPTH:
            message = f"follow-ups nested {depth} deep"
            yield path.document.problem(loc, message, f"the limit is {MAX_FOLLOW_UP_DEPTH}")


def _names_in_check(
    path: LoadedCase, loc: Loc, check: Check | CheckSet, number: int, known: Known
) -> Iterator[Problem]:
    """A check knows what was defined when the turn had ended that it is asked of."""
    for key, spec in check.given():
        if key in ("any_of", "all_of", "none_of"):
            continue
        place = (*loc, key)
        if not check.literal:
            turn = getattr(spec, "turn", None) or number
            last = len(known) - 1
            # Files of the suite are kept before the first turn.
            turn = 0 if key in ("golden_file", "script") else last if turn == "last" else turn
            names = templates.written_in_check(key, spec)
            yield from _unknown_names(names, place, known[min(turn, last)], path.document)
        for name in unknown_variables(getattr(spec, "prompt", None) or ""):
            listed = ", ".join("{{" + known_name + "}}" for known_name in PROMPT_VARIABLES)
            pattern = r"\{\{\s*" + re.escape(name) + r"\s*\}\}"
            yield path.document.problem(
                (*place, "prompt"), f"{{{{{name}}}}} is not a variable of a judge's prompt",
                f"known here: {listed}", at=_find(path.document, pattern, (*place, "prompt")),
            )  # fmt: skip


def _turns_named(
    path: LoadedCase, loc: Loc, check: Check | CheckSet, own_turn: int | None
) -> Iterator[Problem]:
    """Numbers of turns that there are not, or that are not run yet when the check is asked."""
    case = path.case
    lead = lead_of(case)
    turns = lead.max_turns if lead is not None else len(case.input.all_turns())
    named = [(loc, getattr(check, "turn", None))]
    named += [((*loc, key), getattr(spec, "turn", None)) for key, spec in check.given()]
    for place, turn in named:
        if isinstance(turn, int) and turn > turns > 0:
            whose = "a case" if path.branch_of in (None, case.id) else f"`{case.id}`, a branch"
            message = f"turn {turn} of {whose} with {turns}"
            fix = f"turns count from 1 to {turns}"
        elif own_turn is not None and turn is not None and (turn == "last" or turn > own_turn):
            message = f"a check of turn {own_turn} cannot look at turn `{turn}`"
            fix = "leave `turn` out for this turn, or move the check to the case's `assertions`"
        else:
            continue
        yield path.document.problem((*place, "turn"), message, fix)


def _without_model(path: LoadedCase) -> Iterator[Problem]:
    """One warning for the path, at the first check that needs a model where none is named."""
    case = path.case
    places = [
        (*loc, key)
        for loc, check, _ in all_checks(case)
        for key, spec in check.given()
        if key in _READ_BY_MODEL and getattr(spec, "embedding_model", None) is None
    ]
    places += [("expected_output",)] if case.expected_output is not None else []
    for number, turn in enumerate(case.input.turns or ()):
        if turn.expected_output is not None:
            places.append(("input", "turns", number, "expected_output"))
    if places and case.judge_model is None:
        yield path.document.problem(
            places[0], f"`{places[0][-1]}` is read by a model, and none is named",
            "write `judge: {model: …}` in eval.yaml, or `judge_model` in the case; without one, "
            "and without --judge-model, a run of this case is an error", "warning",
        )  # fmt: skip


# The conversation: who speaks, how long, and whether anything is checked.


def _in_conversation(path: LoadedCase, suite: Suite | None) -> Iterator[Problem]:
    case, problem = path.case, path.document.problem
    for index, turn in enumerate(case.input.turns or ()):
        if turn.slash_command and not re.match(r"/\S", turn.content or ""):
            message = "`slash_command: true`, but it is no / and a name"
            loc = ("input", "turns", index, "content")
            yield problem(loc, message, "write the command, such as /compact")
    led = case.user_simulator is not None and case.input.prompt is not None
    if led and case.max_turns is None and case.turn_limit is None:
        message = "the simulated user leads, and `max_turns` is missing"
        fix = "set `max_turns` (or `constraints.max_turns`): the most messages of the user's"
        yield problem(("user_simulator",), message, fix)
    if case.user_simulator is not None and not needs_simulator(case):
        message = "`user_simulator` has no effect: no turn has `respond`"
        fix = "write `respond` in place of a turn's `content`, or leave it out"
        yield problem(("user_simulator",), message, fix, "warning")
    if not has_checks(case) and not case.all_judges():
        where = "in this case" if path.branch_of is None else f"on the path `{case.id}`"
        fix = "add `assertions`; as it is, it fails for want of evidence"
        yield problem((), f"nothing is checked {where}", fix, "warning")
    excess = too_many_turns(case)
    if excess is not None:
        fix = "raise `turn_limit` (in skill-up's suites `max_turns`); a run would be an error"
        yield problem(("input", "turns"), excess, fix, "warning")
    for place, message in unsupported_in_case(case):
        yield problem(place, message, severity="warning")
    if suite is not None and needs_simulator(case):
        user = suite.user_simulator
        if playing_model(user, case) is None and (user is None or user.engine is None):
            message = "nobody plays the simulated user"
            fix = "set `user_simulator.model` (or `engine`) in eval.yaml; else a run is an error"
            yield problem(_needed_at(case), message, fix, "warning")


def _needed_at(case: Case) -> Loc:
    if case.input.conversation is not None:
        return ("input", "conversation")
    for index, turn in enumerate(case.input.turns or ()):
        if turn.respond is not None:
            return ("input", "turns", index, "respond")
    return ("user_simulator",)
