"""What a single field cannot know: names, turn numbers, files, ids and switches that fit.

What loads and cannot be run yet (``unsupported_in``) is a warning here, and an ERROR in a run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import Problem, near_miss
from skillup.load import compat
from skillup.load.discover import ALLOW, SKILL_FILE, is_trusted, leaves, project_of, skill_name
from skillup.load.model import (
    TURNS,
    LoadedCase,
    all_checks,
    judge_models,
    judges_of,
    merge_defaults,
    paths_of,
)
from skillup.load.yaml_reader import Document, Loc, problems_from
from skillup.schema import templates
from skillup.schema.base import outside_suite
from skillup.schema.case import Case, Turn
from skillup.schema.checks import Check
from skillup.schema.judge import PROMPT_VARIABLES, SkillRef, unknown_variables
from skillup.schema.suite import SANDBOX, Suite, lead_of

_ERROR = "a run of this suite would be an error"
_MOST_FOLLOW_UPS = 5
Known = list[frozenset[str]]
"""The names that have a value once turn n has ended (0: before the first); last: once all have."""


def read_case(
    document: Document, variables: frozenset[str], suite: Suite, root: Path, *, theirs: bool = False
) -> tuple[Case | None, list[Problem]]:
    """The case with the suite's defaults, if it validates; what is wrong (or not run yet) in it.

    `variables` are names that `--var` will define; `theirs`: it is skill-up's.
    """
    name = document.path.stem.encode(errors="replace").decode()  # names of files may be no text
    try:
        if theirs:
            case = compat.read_case(document.data, suite, default_id=name)
        else:
            case = merge_defaults(Case.model_validate(document.data), suite, default_id=name)
    except ValidationError as error:
        return None, problems_from(error, document, Case)
    found = [*_branch_names(case.input.turns or [], TURNS, document)]
    for path in paths_of(LoadedCase(case, document)):
        first, given = frozenset(path.case.vars) | variables, path.case.input
        past = {rule.variable for message in given.history for rule in message.capture}
        past.update(name for rule in given.reconstruct for name in rule.variables())
        known = [first | past]
        for turn in given.turns or ():
            known.append(known[-1] | {rule.variable for rule in turn.capture})
        for loc, text, names in _texts(path.case, first, known):
            found += _unknown_names(templates.written_in(text or ""), loc, names, path.document)
        found += _in_checks(path, known)
        found += _in_conversation(path)
        found += _files_of_case(path, root)
    return case, list(dict.fromkeys(found))  # each once, on whichever paths


def _branch_names(turns: Sequence[Turn], place: Loc, document: Document) -> Iterator[Problem]:
    """Names that clash: wherever in a list of turns they branch off."""
    taken: set[str] = set()
    for number, turn in enumerate(turns):
        for index, branch in enumerate(turn.branches):
            at: Loc = (*place, number, "branches", index)
            if branch.name.casefold() in taken:
                message = f"there is another branch `{branch.name}` here"
                yield document.problem((*at, "name"), message, "choose another name for one")
            taken.add(branch.name.casefold())
            yield from _branch_names(branch.turns, (*at, "turns"), document)


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
    for number, one in enumerate(given.answers):
        for text in () if one.literal else (one.question, *one.answer):
            yield ("input", "answers", number), text, known[0]
    # A user's part is read anew for each message: a later one may use what was captured by then.
    if case.user_simulator is not None:
        yield ("user_simulator", "scenario"), case.user_simulator.scenario, last
    led = given.conversation
    for at, part in enumerate([led.persona, *led.personas] if led is not None else ()):
        place: Loc = ("persona",) if not at else ("personas", at - 1)
        for name, value in part:
            for text in value if isinstance(value, list) else [value] * isinstance(value, str):
                yield ("input", "conversation", *place, name), text, last
    for number, turn in enumerate(given.turns or ()):
        if not turn.literal:
            place = (*TURNS, number)
            yield (*place, "content"), turn.content, known[number]
            yield (*place, "respond"), turn.respond, known[number]
            yield (*place, "expected_output"), turn.expected_output, known[number + 1]
    yield ("expected_output",), case.expected_output, last
    for where, judge in judges_of(case):
        for number, criterion in enumerate(judge.criteria):
            yield (*where, "criteria", number, "outcome"), criterion.outcome, last


def _unknown_names(
    names: Mapping[str, str], loc: Loc, known: frozenset[str], document: Document
) -> Iterator[Problem]:
    for name, written in names.items():
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            message = f"{written} is not defined by `vars` or by an earlier `capture`"
            instead = f"for the text itself write \\{written}, or `literal: true`"
            yield document.problem(loc, message, f"defined here: {listed}; {instead}")


def _in_checks(path: LoadedCase, known: Known) -> Iterator[Problem]:
    case, problem = path.case, path.document.problem
    lead = lead_of(case)
    turns = lead.max_turns if lead is not None else len(case.input.all_turns())
    last = len(known) - 1
    asked_of: dict[Loc, int] = {}
    for loc, check, depth in all_checks(case):
        own_turn = int(loc[2]) + 1 if loc[:2] == TURNS else None
        # A gate is asked before its turn's captures, what is in a check when that is asked.
        default = last if own_turn is None else own_turn - (loc[-1] == "post_condition")
        own, given = getattr(check, "turn", None), list(check.given())
        number = asked_of.get(loc[:-2], default) if own is None else own
        number = asked_of[loc] = last if number == "last" else number
        # What has no such field at all is a text, a list, or a model that is slow to say so.
        of_spec = {k: s.turn for k, s in given if "turn" in getattr(s, "model_fields_set", ())}
        for place, turn in [(loc, own), *(((*loc, key), turn) for key, turn in of_spec.items())]:
            if isinstance(turn, int) and turn > turns > 0:
                message = f"turn {turn} of a case with {turns}"
                yield problem((*place, "turn"), message, f"turns count from 1 to {turns}")
            elif own_turn is not None and turn is not None and (turn == "last" or turn > own_turn):
                message = f"a check of turn {own_turn} cannot look at turn `{turn}`"
                fix = "leave `turn` out for this turn, or move the check to the case's `assertions`"
                yield problem((*place, "turn"), message, fix)
        for key, spec in given:
            if key in ("any_of", "all_of", "none_of"):
                continue
            turn = of_spec.get(key) or number
            # Files of the suite are kept before the first turn.
            turn = 0 if key in ("golden_file", "script") else last if turn == "last" else turn
            # A check knows what was defined when the turn had ended that it is asked of.
            written = {} if check.literal else templates.written_in_check(key, spec)
            yield from _unknown_names(written, (*loc, key), known[min(turn, last)], path.document)
            for name in unknown_variables(getattr(spec, "prompt", None) or ""):
                message = f"{{{{{name}}}}} is not a variable of a judge's prompt"
                listed = ", ".join("{{" + one + "}}" for one in PROMPT_VARIABLES)
                yield problem((*loc, key, "prompt"), message, f"known here: {listed}")
        if isinstance(check, Check) and check.prompt is not None:
            place = (*loc, "prompt")
            if own_turn is None:
                fix = "put it among the `assertions` of a turn"
                yield problem(place, "a follow-up outside of a turn", fix)
            elif not check.literal:
                names_in = templates.written_in(check.prompt)
                yield from _unknown_names(names_in, place, known[own_turn], path.document)
        if depth > _MOST_FOLLOW_UPS:
            what = f"follow-ups nested {depth} deep"
            yield problem(loc, what, f"the limit is {_MOST_FOLLOW_UPS}")


def _in_conversation(path: LoadedCase) -> Iterator[Problem]:
    case, problem = path.case, path.document.problem
    for index, turn in enumerate(case.input.turns or ()):
        if turn.slash_command and not re.match(r"/\S", turn.content or ""):
            what = "`slash_command: true`, but it is no / and a name"
            yield problem((*TURNS, index, "content"), what, "write the command, such as /compact")
    led = case.user_simulator is not None and case.input.prompt is not None
    if led and case.max_turns is None and case.turn_limit is None:
        message = "the simulated user leads, and `max_turns` is missing"
        fix = "set `max_turns` (or `constraints.max_turns`): the most messages of the user's"
        yield problem(("user_simulator",), message, fix)
    own = case.expect or case.all_judges() or case.checks()
    if not own and not any(turn.checks() or turn.post_condition for turn in case.input.turns or ()):
        fix = "add `assertions`; as it is, it fails for want of evidence"
        yield problem((), f"nothing is checked in `{case.id}`", fix, "warning")
    for place, message in unsupported_in(case):
        yield problem(place, message, severity="warning")


def unsupported_in(owner: Suite | Case) -> Iterator[tuple[Loc, str]]:
    """Where a file asks for something that is not run yet, and what it is."""
    installed: list[tuple[Loc, list[SkillRef]]]
    if isinstance(owner, Case):
        installed = [(loc, judge.skills) for loc, judge in judges_of(owner)]
    else:
        installed = [((), owner.skills or [])]
        if owner.environment.type == "opensandbox":
            what = "environment `opensandbox` is not run yet"
            yield ("environment", "type"), f"{what}: take `docker`, `podman` or `bubblewrap`"
    if owner.mcp.get("servers"):
        yield ("mcp", "servers"), "MCP servers are not set up yet"
    for loc, skills in installed:
        for n, skill in enumerate(skills):
            if skill.source != "local_path":
                what = f"skills from a `{skill.source}` are not fetched yet"
                yield (*loc, "skills", n, "source"), what


def _files_of_case(path: LoadedCase, root: Path) -> Iterator[Problem]:
    """Files that a case names: outside of the suite or its project, or missing."""
    case, context = path.case, path.case.context
    named: list[tuple[Loc, str | None]] = [(("context", "fixture"), context.fixture)]
    if context.git is not None:
        named.append((("context", "git", "apply_diff"), context.git.apply_diff))
    for loc, check, _ in all_checks(case):
        for key, spec in (("golden_file", check.golden_file), ("script", check.script)):
            named += [((*loc, key), spec.path)] if spec is not None else []
    named += [(("judge_model", "examples"), one.examples) for one in judge_models(case)]
    for loc, judge in judges_of(case):
        named.append(((*loc, "script_path"), judge.script_path))
        skills = [(n, s) for n, s in enumerate(judge.skills) if s.source == "local_path"]
        named += [((*loc, "skills", n, "path"), skill.path) for n, skill in skills]
        for n, attached in enumerate(judge.context.attachments if judge.context else ()):
            named.append(((*loc, "context", "attachments", n, "path"), attached.path))
    for loc, name in named:
        if name is None:
            continue
        file = root / name
        if loc[-1] not in ("script", "script_path"):
            yield from outside_problem(path.document, loc, name, root)
        elif (why := outside_suite(name)) is not None:
            yield path.document.problem(loc, why, "put it into the suite")
        elif file.is_file() and file.stat().st_size == 0:
            why = f"{name} is empty: it would pass whatever the agent does"
            yield path.document.problem(loc, why, "write the check")
        # Whether a file with a name in it is there, its own trial says.
        if not templates.written_in(name) and not file.exists():
            message = f"there is no {name} (paths start from {root.name}/)"
            yield path.document.problem(loc, message, "a run would need it", "warning")


def outside_problem(document: Document, loc: Loc, path: str, root: Path) -> Iterator[Problem]:
    """An error if `path`, which a file names at `loc`, leads out of the project untrusted."""
    if leaves(path, root) and not is_trusted(os.environ):
        yield document.problem(loc, f"{path} leads out of {project_of(root)}", ALLOW)


def suite_problems(suite: Suite, document: Document, root: Path) -> Iterator[Problem]:
    """What is wrong (or not run yet) in an `eval.yaml` that validates."""
    skills: list[tuple[Loc, SkillRef]]
    skills = [(("skills", n, "path"), skill) for n, skill in enumerate(suite.skills or ())]
    skills += [(("distractors", n), SkillRef(path=p)) for n, p in enumerate(suite.distractors)]
    for loc, skill in skills:
        if skill.source == "local_path" and not (root / skill.path / SKILL_FILE).is_file():
            what = f"there is no {SKILL_FILE} in {skill.path} (paths start from {root.name}/)"
            as_is = skill.as_is and (root / skill.path).is_dir()
            fix = "what is there is installed all the same" if as_is else _ERROR
            yield document.problem(loc, what, fix, "warning")
    for place, message in unsupported_in(suite):
        yield document.problem(place, message, severity="warning")
    hosts, opens = suite.environment.allowed_egress, suite.environment.network_policy
    if (hosts or opens == "allow_all") and os.environ.get(SANDBOX) and not is_trusted(os.environ):
        loc = ("environment", "allowed_egress" if hosts else "network_policy")
        what = f"it opens the network of a sandbox, which {SANDBOX} asks for"
        yield document.problem(loc, what, ALLOW)
    named: list[tuple[Loc, str | None]] = [(loc, skill.path) for loc, skill in skills]
    for n, path in enumerate(suite.environment.read):
        named.append((("environment", "read", n), str(Path(path).expanduser())))
    for n, dataset in enumerate(suite.cases.datasets):
        named.append((("cases", "datasets", n, "path"), dataset.path))
        named.append((("cases", "datasets", n, "case"), dataset.case))
    for loc, name in named:
        if name is not None:
            yield from outside_problem(document, loc, name, root)


def skill_name_problems(suite: Suite, root: Path, cases: Sequence[LoadedCase]) -> Iterator[Problem]:
    """Checks of skills that the suite does not install: `skill_not_used` would pass every time."""
    refs = suite.skills if suite.skills is not None else [SkillRef(path=".")]
    refs = [*refs, *(SkillRef(path=path) for path in suite.distractors)]
    there = [ref for ref in refs if ref.source == "local_path"]
    there = [ref for ref in there if (root / ref.path / SKILL_FILE).is_file()]
    names = {ref.name or (root / ref.path).resolve().name for ref in there}
    known = sorted(names | {skill_name(root / ref.path) for ref in there})
    folded = {name.casefold() for name in known}
    found: dict[Problem, None] = {}  # what is wrong with shared turns is wrong once
    forms = {id(loaded.like): loaded for loaded in reversed(cases if known else ())}
    for loaded in reversed(forms.values()):
        context = loaded.like.context
        more = context.fixture or context.files or context.setup or suite.environment.setup_steps
        for loc, check, _ in all_checks(loaded.like):
            for key in ("skill_used", "skill_not_used"):
                name = getattr(check, key) or ""
                plain = name.strip().casefold()
                installed = {plain, plain.rpartition(":")[2]} & folded
                if name and not installed and not templates.has_templates(name):
                    guess, listed = near_miss(name, known), ", ".join(known)
                    fix = f"did you mean `{guess}`?" if guess else f"it installs: {listed}"
                    message = f"the suite installs no skill called {name}"
                    severity = "error" if guess and not more else "warning"
                    found[loaded.located.problem((*loc, key), message, fix, severity)] = None
    yield from found


def id_problems(cases: Sequence[LoadedCase], all_read: bool) -> Iterator[Problem]:
    """Ids of linear cases that are taken; dependencies on nothing, on oneself or in a circle."""
    taken, families, owners = dict[str, LoadedCase](), dict[str, LoadedCase](), dict[str, str]()
    waiting = any(loaded.like.depends_on for loaded in cases)
    for loaded in cases:
        case_id, folded = loaded.id, loaded.id.casefold()
        if waiting:
            families.setdefault(loaded.family, loaded)
            owners.setdefault(case_id, loaded.family)
        other = taken.setdefault(case_id if folded == case_id else folded, loaded)
        if other is loaded or (other.document.data is loaded.document.data and not other.item_id):
            continue  # branches of the same name are reported by the case itself
        where = f"{other.path.name}:{other.located.locate(('id',))[0]}"
        message = f"`{case_id}` is the id of `{other.id}` ({where}) already"
        fix = "give one of them another id; upper and lower case are the same in file names"
        yield loaded.located.problem(("id",), message, fix)
    owners |= {family: family for family in families}
    graph: dict[str, list[str]] = {}
    for own, loaded in families.items():
        needs = loaded.like.depends_on
        graph[own] = [owners[one] for one in needs if owners.get(one, own) != own]
        for index, needed in enumerate(needs):
            if owners.get(needed) == own:
                message, fix = "the case depends on itself", "remove it"
            elif needed in owners or not all_read:
                continue
            else:
                known = sorted(owners.keys() - {own})
                guess, listed = near_miss(needed, known), ", ".join(known[:12]) or "none"
                fix = f"did you mean `{guess}`?" if guess else f"others are: {listed}"
                message = f"there is no other case `{needed}` in this suite"
            yield loaded.located.problem(("depends_on", index), message, fix)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]  # each needs the next
        message = f"these cases wait for each other: {' → '.join(circle)}"
        yield families[circle[0]].located.problem(("depends_on",), message, "take one of them out")
