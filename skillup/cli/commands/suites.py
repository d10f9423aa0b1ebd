"""The verbs about suites, and about engines and their sessions: validate, init, doctor, …"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

from skillup.cli import options as o
from skillup.cli.options import argument, flag, option
from skillup.errors import ExitCode, UsageError
from skillup.load.discover import workspace_root
from skillup.reports.text import count, print_json, problem_line, say, shown_path


def validate(
    paths: list[Path] | None = o.PATHS,
    var: o.Texts = o.VAR,
    trust: bool = o.TRUST,  # noqa: ARG001 - its callback does it
    as_json: bool = o.JSON,
) -> int:
    """Check suites, cases and the workspace's profiles without running anything."""
    from skillup.app.planning import default_paths, parse_vars
    from skillup.app.suites import validate_paths

    counts, problems = validate_paths(default_paths(paths), parse_vars(var))
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        numbers = {f"{kind}s": number for kind, number in counts.items()}
        rows = [{**asdict(problem), "file": shown_path(problem.file)} for problem in problems]
        print_json({**numbers, "problems": rows})
        return ExitCode.USAGE if errors else ExitCode.PASSED
    say(*map(problem_line, problems))
    # Of what is not valid there are no numbers, and 0 would be wrong.
    checked = ", ".join(count(n, kind) for kind, n in counts.items() if n)
    verdict = "not valid" if errors else "ok"
    if problems:
        warnings = count(len(problems) - errors, "warning")
        verdict += f" ({count(errors, 'error')}, {warnings})"
    say(f"{checked}: {verdict}" if checked else verdict)
    return ExitCode.USAGE if errors else ExitCode.PASSED


def list_cases(
    paths: list[Path] | None = o.PATHS,
    case: o.Texts = o.CASE,
    tag: o.Texts = o.TAG,
    item: str | None = o.ITEM,
    sample_size: int | None = o.SAMPLE_SIZE,
    seed: int = option(0, "Which items --sample-size takes."),
    trust: bool = o.TRUST,  # noqa: ARG001 - its callback does it
    as_json: bool = o.JSON,
) -> int:
    """List suites and their cases without running them."""
    from skillup.app.planning import default_paths
    from skillup.app.suites import case_as_dict, print_listing
    from skillup.load.suites import load_paths, sampled
    from skillup.plan import Selection

    loaded = load_paths(default_paths(paths)).or_raise()
    selection = Selection(case_globs=tuple(case or ()), tags=tuple(tag or ()))
    suites = sampled(loaded.suites, item, sample_size, seed)
    chosen = [(suite, [c for c in suite.cases if selection.takes_loaded(c)]) for suite in suites]
    if as_json:
        print_json([case_as_dict(suite, item) for suite, cases in chosen for item in cases])
    else:
        print_listing(chosen)
    return 0


def init(
    skill_dir: Path = argument(Path(), "[SKILL_DIR]", "Where its SKILL.md is. Default: here."),
    engine: str = option("scripted", "Who runs the cases.", "--engine", "-e"),
    request: str | None = option(None, "What a user says who needs the skill."),
    force: bool = o.FORCE,
) -> int:
    """Write evals/ for a skill: a case that needs it, one that does not, and one of two turns."""
    from skillup.app.suites import new_suite, write_suite
    from skillup.load.profiles import load_profile

    load_profile(engine, workspace_root(skill_dir), os.environ)  # raises if there is none
    files = new_suite(skill_dir, engine, request)
    write_suite(skill_dir, files, force=force)
    lines = [f"wrote {path}" for path in sorted(files)]
    # From there: runs are kept where the command is given, and there they are ignored.
    cd = "" if str(skill_dir) == "." else f"cd {shlex.quote(str(skill_dir))} && "
    lines.append(f"next: {cd}skillup run .")
    if engine == "scripted":
        lines.append("with a real agent, there: skillup run . --engine claude_code")
    lines.append(f"then say in {skill_dir / 'evals/cases'} what your skill must do")
    say(*lines)
    return 0


From = StrEnum("From", ["agentv", "vibecheck", "promptfoo", "anthropic", "langfuse"])


def import_suite(
    files: list[Path] = argument(..., "FILE…", "YAML, JSON or JSONL files of suites."),
    out: Path = option(..., "The new suite's folder; of several, one each.", parser=o.parse_local),
    from_: From | None = option(None, "Which tool's. Default: by what is in the file.", "--from"),
    force: bool = o.FORCE,
) -> int:
    """Convert suites of AgentV, vibecheck, promptfoo, Anthropic's skill evals or Langfuse.

    What could not be carried over, or only nearly, is listed line by line.
    """
    from skillup.importers.convert import import_files

    for item in import_files(files, out, format_=from_.value if from_ else None, force=force):
        say(*map(problem_line, item.notes))
        source, suite = shown_path(item.source), shown_path(item.directory)
        lost = sum(note.severity == "lost" for note in item.notes)
        cases = count(len(item.draft.cases), "case")
        what = f"{source} ({item.format}) → {suite}: {cases}; {lost} not carried over"
        say(f"{what}, {len(item.notes) - lost} changed")
    return 0


Which = StrEnum(
    "Which", ["case", "suite", "profile", "judge", "record", "result", "comparison", "history"]
)


def schema(
    which: Which | None = argument(None, "[WHICH]", "Default: all of them."),
    out: Path | None = option(None, "Write files to this folder.", parser=o.parse_local),
) -> int:
    """Print the JSON Schema of what skillup reads, and of what it writes and prints."""
    from skillup.app.suites import write_schemas
    from skillup.schema import SCHEMAS, json_schema

    names = [which.value] if which else list(SCHEMAS)
    if out is not None:
        write_schemas(out, names)
        return 0
    print_json(json_schema(which.value) if which else {name: json_schema(name) for name in names})
    return 0


def doctor(
    engine: o.Texts = argument(None, "[ENGINE]...", "Profiles or adapters. Default: all."),
    probe: bool = flag("--probe", "Run a conversation of two turns: asks the model, costs."),
    conformance: bool = flag("--conformance", "Try what an engine must do, with a scripted model."),
    as_json: bool = o.JSON,
) -> int:
    """Show which CLIs are installed, which versions, how they would log in.

    Exit code: 0 if at least what was named works, 3 otherwise.
    """
    if conformance:
        return _conformance(engine or (), as_json)
    from skillup.app.doctor import examine, print_findings

    findings = examine(engine, probe=probe)
    if as_json:
        print_json([finding.as_dict() for finding in findings])
    else:
        print_findings(findings)
    works = [finding.works for finding in findings]
    return ExitCode.PASSED if (all if engine else any)(works) else ExitCode.ERROR


def _conformance(names: Sequence[str], as_json: bool) -> int:
    from skillup.app.conformance.behaviours import conformance, print_conformance

    if not names:
        raise UsageError("--conformance needs a profile", hint="skillup doctor --conformance NAME")
    found = conformance(names, say)
    if as_json:
        print_json({name: [asdict(row) for row in rows] for name, rows in found.items()})
    else:
        print_conformance(found)
    held = all(row.verdict != "no" for rows in found.values() for row in rows)
    return ExitCode.PASSED if held else ExitCode.ERROR


SESSION = argument(..., "SESSION", "An id, the beginning of one, or a file.")


def list_sessions(
    engine: str | None = option(None, "Only those of this engine.", "--engine", "-e"),
    project: Path | None = option(None, "Only sessions of this folder or below."),
    limit: int = option(20, "The newest N.", min=1),
    as_json: bool = o.JSON,
) -> int:
    """List the sessions that the agents' CLIs have kept, newest first."""
    from skillup.sessions import index

    homes = index.session_homes(os.environ)
    chosen = {name: place for name, place in homes.items() if engine in (None, name)}
    if not chosen:
        raise UsageError(f"--engine {engine}: unknown", hint=f"one of {', '.join(homes)}")
    files = index.session_files(chosen)
    found = index.newest_heads(files, project, limit)
    if as_json:
        print_json([index.session_as_dict(file, head) for file, head in found])
    elif found:
        index.print_sessions(found, more=len(found) == limit < len(files))
    else:
        places = ", ".join(map(str, chosen.values()))
        of_project = f" of {project}" if project else ""
        say(f"no sessions{of_project} in {places}")
    return 0


def show_session(session: str = SESSION, full: bool = o.FULL, as_json: bool = o.JSON) -> int:
    """Print a session as a transcript."""
    from skillup.reports.terminal.layout import make_console
    from skillup.sessions import index

    path = index.find_session(session, os.environ)
    reader = index.session_format(path)()
    engine = reader.engine
    if as_json:
        sys.stdout.write(index.session_json(engine, path, reader.read(path), reader.summary))
        return 0
    head = index.read_head(path, path.stat().st_size) or reader.summary
    sys.stdout.writelines(f"{line}\n" for line in index.head_lines(engine, path, head))
    index.print_entries(reader.read(path), make_console(sys.stdout), full=full)
    sys.stdout.writelines(f"{line}\n" for line in index.foot_lines(reader.summary))
    return 0


def session_to_case(
    session: str = SESSION,
    out: Path | None = option(None, "The case's file. Default: stdout.", parser=o.parse_local),
    with_fixture: bool = flag("--with-fixture", "Copy the session's workspace beside the case."),
    force: bool = o.FORCE,
) -> int:
    """Make a case of a session: its messages as turns, and checks that it suggests."""
    from skillup.app.suites import write_case

    return write_case(session, out, with_fixture=with_fixture, force=force)
