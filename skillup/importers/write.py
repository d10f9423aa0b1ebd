"""Suites onto disk: an eval.yaml, a file for each case, and copies of the files they need."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.importers import references
from skillup.importers.draft import (
    CaseDraft,
    CreatedSession,
    SuiteDraft,
    slug,
    unlike,
)
from skillup.importers.promptfoo.values import made_literal
from skillup.importers.yaml_writer import to_yaml
from skillup.load.discover import SUITE_FILE, workspace_root
from skillup.load.json_schema import json_schema
from skillup.schema.case import Case
from skillup.schema.suite import Suite

CASES = "cases"
FIXTURES = "fixtures"
SCHEMAS = "schema"


@dataclass(slots=True)
class Output:
    """Everything that is to be written for one suite."""

    directory: Path
    texts: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[Path, str]] = field(default_factory=list)
    cases: list[tuple[CaseDraft, str]] = field(default_factory=list)

    def paths(self) -> list[Path]:
        """All files, in the order in which they are written."""
        return [self.directory / name for name in (*self.texts, *(to for _, to in self.copies))]


def lay_out(draft: SuiteDraft, directory: Path) -> Output:
    """`draft` as files of `directory`. Raises InvalidFilesError, with places in the source, for
    what could not be said in our language.
    """
    output = Output(directory)
    # As `suite_root` has it for a file; the eval.yaml that is there may be a link to elsewhere.
    resolved = directory.resolve()
    root = resolved.parent if resolved.name == "evals" else resolved
    schemas = _schemas(directory, output)
    names: set[str] = set()
    fixtures: dict[tuple[CreatedSession, ...], str] = {}
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for case in draft.cases:
        name = f"{CASES}/{unlike(slug(case.id), names)}.yaml"
        data = case.as_dict(fixture=_fixture(case, fixtures, directory, root, output))
        made_literal(data)
        try:
            Case.model_validate(data)
        except ValidationError as error:
            problems.extend(_as_problems(error, case))
            continue
        header = _header(schemas["case"], (directory / name).parent)
        texts[name] = to_yaml(data, header=header)
        output.cases.append((case, name))
    if problems:
        raise InvalidFilesError(problems)
    files = [_from(root, directory / name) for name in texts]
    skills = [_from(root, skill) for skill in draft.skills]
    data = draft.as_dict(files, skills)
    Suite.model_validate(data)
    output.texts = {
        SUITE_FILE: to_yaml(data, header=_header(schemas["suite"], directory)),
        **texts,
        **output.texts,
    }
    return output


def _as_problems(error: ValidationError, case: CaseDraft) -> list[Problem]:
    found = []
    for detail in error.errors():
        where = ".".join(str(part) for part in detail["loc"])
        message = detail["msg"].removeprefix("Value error, ").replace(" || ", "; ")
        found.append(case.node.problem(f"cannot become a case: {where}: {message}"))
    return found


def _from(start: Path, path: Path) -> str:
    return Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()


def _header(schema: Path, directory: Path) -> str:
    return f"# yaml-language-server: $schema={_from(directory, schema)}\n"


def _schemas(directory: Path, output: Output) -> dict[str, Path]:
    """Where the schemas lie: those of the workspace, else copies beside the suite."""
    shared = workspace_root(directory) / "docs" / SCHEMAS
    found = {name: shared / f"{name}.schema.json" for name in ("suite", "case")}
    if all(path.is_file() for path in found.values()):
        return found
    for name in found:
        file = f"{SCHEMAS}/{name}.schema.json"
        output.texts[file] = json.dumps(json_schema(name), indent=2, ensure_ascii=False) + "\n"
        found[name] = directory / file
    return found


def _fixture(
    case: CaseDraft,
    known: dict[tuple[CreatedSession, ...], str],
    directory: Path,
    root: Path,
    output: Output,
) -> str:
    """The directory with what `case` has placed; cases that place the same share one."""
    placed = tuple(case.placed)
    if not placed:
        return ""
    if placed not in known:
        taken = {name.rpartition("/")[2].casefold() for name in known.values()}
        name = f"{FIXTURES}/{unlike(slug(case.id), taken)}"
        known[placed] = name
        copies: dict[str, Path] = {}
        for source, target in placed:
            if source.is_dir():
                for path, inner in references.files_below(source):
                    copies[f"{target}/{inner}".lstrip("/")] = path
            else:
                copies[target] = source
        output.copies.extend((path, f"{name}/{inner}") for inner, path in copies.items())
    return _from(root, directory / known[placed])


def write(outputs: Sequence[Output], *, force: bool, check: Callable[[], object]) -> None:
    """Write them all, or nothing: if one cannot be written, or `check` refuses what was written,
    everything is again as it was. Raises UsageError, and what `check` raises.

    What is there already is a UsageError before the first file; with `force`, it is replaced. Files
    of an earlier import that are not written again stay, but no suite names them any more.
    """
    there = [path for output in outputs for path in output.paths() if os.path.lexists(path)]
    if there and not force:
        shown = ", ".join(str(path) for path in there[:3])
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        raise UsageError(
            f"already there: {shown}{more}", hint="choose another --out, or replace with --force"
        )
    done = _Written()
    try:
        for output in outputs:
            for name, text in output.texts.items():
                done.put(output.directory / name, text.encode("utf-8"))
            for source, name in output.copies:
                done.put(output.directory / name, source)
        check()
    except BaseException as error:
        done.undo()
        if not isinstance(error, OSError):
            raise
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}", hint="choose another --out"
        ) from error
    done.settle()


class _Written:
    """What was written so far; what it replaced lies beside it until all of it is settled."""

    def __init__(self) -> None:
        self._files: list[tuple[Path, Path | None]] = []
        self._directories: list[Path] = []

    def put(self, path: Path, content: bytes | Path) -> None:
        """The file, whole or not at all: bytes, or a copy. A link is replaced, not followed."""
        missing = [above for above in path.parents if not above.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        self._directories.extend(reversed(missing))
        half, old = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("tmp", "old"))
        try:
            if isinstance(content, Path):
                shutil.copyfile(content, half)
                shutil.copymode(content, half)
            else:
                half.write_bytes(content)
            if os.path.lexists(path):
                path.replace(old)
                self._files.append((path, old))
            else:
                self._files.append((path, None))
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)

    def undo(self) -> None:
        """As if nothing had been written."""
        with suppress(OSError):
            for path, old in reversed(self._files):
                path.unlink(missing_ok=True)
                if old is not None:
                    old.replace(path)
            for directory in reversed(self._directories):
                directory.rmdir()

    def settle(self) -> None:
        """It stays; what it replaced goes."""
        for _, old in self._files:
            if old is not None:
                old.unlink(missing_ok=True)
