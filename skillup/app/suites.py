"""What is done with suites without running them: `validate`, `list`, `init`, `session to-case`."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillup.app.planning import FALLBACK_VARIABLE, own_profile, refuse, root_with_engines
from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.load.discover import (
    SKILL_FILE,
    SUITE_FILE,
    skill_name,
    skill_problem,
    skill_text,
    suite_root,
    workspace_root,
)
from skillup.load.model import (
    Loaded,
    LoadedCase,
    LoadedSuite,
    judge_models,
    model_for,
    read_by_model,
)
from skillup.load.profiles import check_profile, profile_files
from skillup.load.suites import load_paths
from skillup.load.yaml_reader import Loc
from skillup.redaction.secrets import NO_SECRETS
from skillup.reports.text import count, listed, one_line, say, shown_path
from skillup.schema import SCHEMAS, json_schema
from skillup.schema.suite import lead_of, needs_simulator
from skillup.schema.templates import escape, render

_FIX = "a run of the cases that need it would be an error"
_NAME_ONE = "write `judge: {model: …}` in eval.yaml; or name one with --judge-model"
_SHOWN = 5
_WISH = re.compile(
    r"\busers? (?:asks?|needs?|wants?)(?: you)?(?: for)? ([^.;:]{1,200})", re.IGNORECASE
)


def validate_paths(
    paths: Sequence[Path], variables: dict[str, str]
) -> tuple[Mapping[str, int], Sequence[Problem]]:
    """How many suites, cases and profiles `paths` and their workspaces have; their problems."""
    folders = {path: (path if path.is_dir() else path.parent).resolve() for path in paths}
    others = [path for path in paths if folders[path].name != "engines"]
    loaded = load_paths(others, variables=variables) if others else Loaded((), ())
    files: list[Path] = []
    for path in paths:
        if path in others:
            files += profile_files(workspace_root(path)).values()
        else:
            files += profile_files(folders[path].parent).values() if path.is_dir() else [path]
    profiles = dict.fromkeys(file.resolve() for file in files)
    problems = [*loaded.problems]
    for suite in loaded.suites:
        problems += [*_engine_problems(suite), *_model_problems(suite)]
    for file in profiles:
        problems += check_profile(file, os.environ, lenient=True)[1]
    cases = sum(len(suite.cases) for suite in loaded.suites)
    return {"suite": len(loaded.suites), "case": cases, "profile": len(profiles)}, problems


def _engine_problems(suite: LoadedSuite) -> Iterator[Problem]:
    """A suite whose engine is none here; those of skill-up know engines that skillup does not."""
    if suite.suite.engine is None:
        return
    severity = "error" if suite.suite.schema_version is None else "warning"
    try:
        own_profile(suite, root_with_engines(Path.cwd(), suite.path))
    except InvalidFilesError as invalid:
        own = (problem for problem in invalid.problems if problem.file == suite.path)
        yield from (replace(problem, severity=severity) for problem in own)


def _model_problems(suite: LoadedSuite) -> Iterator[Problem]:
    """Models and players that could not be asked: warnings, but errors of written-down judges."""
    given, usual = suite.suite.user_simulator, os.environ.get(FALLBACK_VARIABLE)
    cases = {id(loaded.like): loaded for loaded in suite.cases}.values()
    likes = [loaded.like for loaded in cases]
    if given is None and not any(needs_simulator(case) or read_by_model(case) for case in likes):
        return
    from skillup.app.run_session import simulators_of
    from skillup.judges.models import Models

    models = Models(os.environ, NO_SECRETS.also_of(os.environ))
    simulators = simulators_of(models, Path.cwd())
    found: dict[Problem, None] = {}
    for loaded in cases:
        case = loaded.like
        read = [loc for loc, check in read_by_model(case) if model_for(case, check) is None]
        if read and not usual:
            what = f"`{read[0][-1]}` is read by a model, and none is named"
            found[loaded.document.problem(read[0], what, _NAME_ONE, "warning")] = None
        for model in judge_models(case):
            if (why := models.problem(model, suite.root)) is None:
                continue
            loc = _place(loaded.document.data, model.model)
            document = suite.document if loc is None else loaded.document
            loc = loc or _place(document.data, model.model) or ("judge", "model")
            how = ("", "error") if model.model.startswith("scripted:") else (_FIX, "warning")
            found[document.problem(loc, why, *how)] = None
        if isinstance(who := simulators.who_plays(case, given, suite.root), str):
            found[suite.document.problem(("user_simulator",), who, _FIX, "warning")] = None
    yield from sorted(found, key=lambda one: (one.file, one.line, one.severity))


def _place(data: Any, value: str, loc: Loc = ()) -> Loc | None:
    """Where `value` is first written in nested `data`."""
    if not isinstance(data, dict | list):
        return loc if data == value else None
    keyed = data.items() if isinstance(data, dict) else enumerate(data)
    return next((at for key, one in keyed if (at := _place(one, value, (*loc, key)))), None)


# A suite with three cases that run as they are, by their `scripted:` sections also offline: the
# files in `init`, in which each `<<name>>` stands for a quoted text.


def new_suite(root: Path, engine: str, request: str | None) -> dict[Path, str]:
    """The files of a suite for the skill in `root`. Raises SkillupError if there is none."""
    from skillup.importers.write import quoted, relative

    if not (root / SKILL_FILE).exists():
        where = "has no SKILL.md" if root.is_dir() else "is no directory"
        raise UsageError(f"{root} {where}", hint="give a skill's directory")
    problem = skill_problem(root)
    if problem is not None:
        raise InvalidFilesError([problem])
    skill = skill_name(root)
    request = request or request_for(" ".join(skill_text(root, "description").split()), skill)
    stop = "" if request[-1:] in (".", "!", "?", "") else "."
    texts = {
        "skill": skill,
        "literal": escape(skill),
        "engine": engine,
        "request": escape(request),
        "first": escape(f"{request}{stop} Call this job JUNIPER-7."),
    }
    filled = {name: quoted(text) for name, text in texts.items()}
    folder, files, schemas = Path(__file__).with_name("init"), dict[Path, str](), _schemas(root)
    for name in ("eval", "cases/uses-the-skill", "cases/leaves-it-alone", "cases/two-turns"):
        path = root / f"evals/{name}.yaml"
        schema = schemas / f"{'suite' if name == 'eval' else 'case'}.schema.json"
        header = f"# yaml-language-server: $schema={relative(path.parent, schema)}\n"
        files[path] = header + render((folder / f"{name}.yaml").read_text("utf-8"), filled)
    return files


def _schemas(skill: Path) -> Path:
    """JSON Schemas for editors: the workspace's own, or this skillup's, where nothing is kept."""
    from skillup.store.places import home_directory

    root = workspace_root(skill)
    folder = root / "docs" / "schema"
    if not (folder / "case.schema.json").is_file():
        folder = home_directory(root) / "schema"
        write_schemas(folder, ("case", "suite"))
    return folder


def write_schemas(folder: Path, names: Iterable[str] = SCHEMAS) -> None:
    """``NAME.schema.json``, as editors read them. Raises UsageError if that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            text = json.dumps(json_schema(name), indent=2, ensure_ascii=False) + "\n"
            (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from None


def request_for(description: str, skill: str) -> str:
    """What a user might say who needs the skill."""
    if (found := _WISH.search(description)) is not None:
        return f"I want {found[1].strip()}. Can you help me with that?"
    # What a skill says of itself is nothing that a user says.
    return f"Can you help me with {' '.join(re.split('[-_]+', skill))}?"


def write_suite(root: Path, files: Mapping[Path, str], *, force: bool) -> None:
    """Raises UsageError if `evals/` is there already, or a link in `root` would lead elsewhere."""
    from skillup.importers.write import write_files

    evals = root / "evals"
    if not force and os.path.lexists(evals) and not (evals.is_dir() and not any(evals.iterdir())):
        hint = "--force replaces the files that init writes, and leaves the others"
        raise UsageError(f"{evals} is there already", hint=hint)
    for path in files:
        if not path.parent.resolve().is_relative_to(root.resolve()):
            hint = "make it a directory, or choose another one"
            raise UsageError(f"{path.parent} leads out of {root}", hint=hint)
    write_files(files, force=True)


# An agent's session as a case.


def write_case(session: str, out: Path | None, *, with_fixture: bool, force: bool) -> int:
    """Write the case to `out`, or to stdout. Raises UsageError if a file would be lost, too."""
    from skillup.importers.write import slug, write_files
    from skillup.sessions.case import case_of_session, copy_workspace, suite_text
    from skillup.sessions.index import find_session
    from skillup.sessions.record import read_session

    recorded = read_session(find_session(session, os.environ))
    if out is None:
        if with_fixture:
            raise UsageError("--with-fixture needs --out", hint="the fixture lies beside the case")
        case = case_of_session(recorded)
        sys.stdout.write(_printable(case.text))
        say(*(f"note: {note}" for note in case.notes))
        return 0
    problems = {
        f"--out {out}: that is a folder": out.is_dir(),
        f"{out} is there already; --force replaces it": os.path.lexists(out) and not force,
        f"--out {out}: not a YAML file": out.suffix not in (".yaml", ".yml"),
        f"--out {out}: that is a suite's name": out.stem == "eval",
    }
    refuse(problems, "name the case's file, for example cases/asks.yaml")
    folder = out.resolve().parent
    places = (place / name for place in (folder, *folder.parents) for name in ("", "evals"))
    suite = next((p / SUITE_FILE for p in places if (p / SUITE_FILE).is_file()), None)
    case_id = slug(out.stem, otherwise="session")
    fixture = folder / "fixtures" / out.stem
    root = suite_root(suite) if suite is not None else folder
    shown = Path(os.path.relpath(fixture, root)).as_posix() if with_fixture else None
    case = case_of_session(recorded, case_id=case_id, fixture=shown)
    if with_fixture:
        workspace = Path(recorded.summary.cwd or "")
        copied, left_out = copy_workspace(workspace, fixture, os.environ)
        say(f"copied {count(copied, 'file')} to {shown_path(fixture)}")
        say(*(f"left out, {w}: {listed(p[:_SHOWN], len(p))}" for w, p in left_out.items()))
    files = {out: case.text}
    if suite is None:
        files[folder / SUITE_FILE] = suite_text(recorded.engine)
    write_files({path: _printable(text) for path, text in files.items()}, force=True)
    say(*(f"wrote {shown_path(path)}" for path in files))
    say(*(f"note: {note}" for note in case.notes))
    return 0


def _printable(text: str) -> str:
    """`text` without halves of characters, which no file can hold."""
    return text.encode(errors="replace").decode()


def case_as_dict(suite: LoadedSuite, loaded: LoadedCase) -> dict[str, Any]:
    case = loaded.like
    return {
        "suite": suite.name,
        "id": loaded.id,
        "branch_of": loaded.branch_of,
        "title": case.title,
        "tags": case.tags,
        "turns": _turn_count(loaded),
        "trials": case.trials or 1,
        "depends_on": case.depends_on,
        "file": shown_path(loaded.path),
    }


def _turn_count(loaded: LoadedCase) -> int | None:
    """How many turns the case has; None if a simulated user decides."""
    if lead_of(loaded.like) is not None:
        return None
    given = loaded.like.input
    if given.transcript is not None:
        from skillup.trial.history import turns_of

        return len(turns_of(given.transcript))
    return len(given.all_turns()) or None


def print_listing(suites: Sequence[tuple[LoadedSuite, Sequence[LoadedCase]]]) -> None:
    from skillup.reports.terminal.layout import Part, make_console, print_table

    rows: list[list[Part]] = []
    for suite, cases in suites:
        for loaded in cases:
            title = one_line(loaded.like.title or "")
            if not title and loaded.item is not None:
                # An item of a dataset seldom has one: what it asks tells it from the others.
                title = one_line(loaded.item.removeprefix(f"{loaded.family} "), 80)
            tags = one_line(", ".join(loaded.like.tags))
            turns = str(_turn_count(loaded) or "?")
            name = (one_line(suite.name), "cyan")
            rows.append([name, one_line(loaded.id), turns, (tags, "dim"), title])
    heads = ["suite", "case", "turns", "tags", "title"]
    print_table(make_console(sys.stdout), rows, heads, align="nnrll", style="bold")
