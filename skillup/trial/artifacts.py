"""Files that are kept with a record: artifacts of the workspace, and what judging needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from skillup.errors import InvalidFilesError
from skillup.load.discover import is_trusted, leaves
from skillup.load.model import all_checks, judge_models
from skillup.load.yaml_reader import read_file
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.record import FileState
from skillup.workspace.globs import matches_any_glob
from skillup.workspace.snapshot import BlobStore, Snapshot

Keep = Callable[[str, bytes], None]


def collect_artifacts(
    globs: Sequence[str], snapshot: Snapshot, workspace: Path, blobs: BlobStore, keep: Keep
) -> list[str]:
    """Has `keep` take what the globs match, by path; a line for each file that was not collected.

    Symbolic links are not followed: what they lead to need not be the agent's work. Secrets are
    masked, in contents and in names.
    """
    missed: list[str] = []
    for path, state in snapshot.files.items() if globs else ():
        if state.link is not None or not matches_any_glob(path, globs):
            continue
        try:
            content = blobs.read_state(state)
            if content is None:
                if state.sha256 is None:
                    raise OSError("it is too large")
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
                with os.fdopen(os.open(workspace / path, flags), "rb") as file:
                    content = blobs.masked(file.read())
            keep(os.fsdecode(blobs.masked(os.fsencode(path))), content)
        except OSError as error:
            missed.append(f"{path} was not collected: {error.strerror or error}")
    return missed


# Files of the suite that judging needs are kept with the record: it can be judged without it.


def keep_references(
    case: Case, suite_root: Path, blobs: BlobStore, variables: Mapping[str, str] | None = None
) -> dict[str, FileState]:
    """Store every file that `reference_paths` names; one that cannot be read is left out.

    What is kept is what the run found first: an agent that edits the suite changes nothing for the
    trials after its own.
    """
    kept: dict[str, FileState] = {}
    for path in reference_paths(case, variables):
        file = suite_root / path
        if file not in blobs.references:
            blobs.references[file] = _kept_reference(path, suite_root, blobs)
        state = blobs.references[file]
        if state is not None:
            kept[path] = state
    return kept


def _kept_reference(path: str, suite_root: Path, blobs: BlobStore) -> FileState | None:
    """A file of the suite, stored; None: it cannot be read.

    Nothing outside of the project is, unless the user trusts the suite: a template in `path` may
    have become anything by now. Nor is a pipe or a device, which might never end.
    """
    if leaves(path, suite_root) and not is_trusted(os.environ):
        return None
    file = suite_root / path
    try:
        content, mode = read_file(file), file.stat().st_mode
    except (OSError, InvalidFilesError):
        return None
    executable = bool(mode & 0o100)
    return FileState(sha256=blobs.put(content), size=len(content), executable=executable)


def reference_paths(case: Case, variables: Mapping[str, str] | None = None) -> list[str]:
    """Each golden file, script, attachment and file of examples of the case with `variables`.

    Default: its own `vars`.
    """
    golden = dict.fromkeys(_paths_of_checks("golden_file", case, variables))
    contexts = (judge.context for judge in case.all_judges())
    attached = dict.fromkeys(item.path for one in contexts if one for item in one.attachments)
    examples = dict.fromkeys(one.examples for one in judge_models(case) if one.examples)
    return [*golden, *script_paths(case, variables), *attached, *examples]


def script_paths(case: Case, variables: Mapping[str, str] | None = None) -> list[str]:
    """Each script that judges once: those of judges, then those of checks."""
    judges = [judge.script_path for judge in case.all_judges() if judge.type == "script"]
    checks = _paths_of_checks("script", case, variables)
    return list(dict.fromkeys(path for path in (*judges, *checks) if path is not None))


def _paths_of_checks(key: str, case: Case, variables: Mapping[str, str] | None) -> list[str]:
    """The files that checks name under `key`, but those with a name that has no value yet."""
    found: list[str] = []
    given = case.vars if variables is None else variables
    for _, check, _ in all_checks(case):
        path: str | None = getattr(getattr(check, key), "path", None)
        if path is not None:
            with suppress(templates.UnresolvedNameError):
                found.append(path if check.literal else templates.render(path, given))
    return found
