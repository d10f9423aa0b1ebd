"""What travels: the files of a plan to the workers, and the directory of a run back.

The files of a plan are one archive, in which each has the path that it has here. Below a directory
of the worker's that takes the place of `/`, everything leads to everything else as it does here,
and whoever takes that directory's name out of a text has the path from here again.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.errors import SkillupError
from skillup.judges.models.cache import AnswerFolder, StoredAnswer
from skillup.load.discover import DATASET_ENDINGS, suite_root
from skillup.plan import Job, Plan
from skillup.redaction.secrets import Secrets
from skillup.store import RunDirectory
from skillup.store.files import disk_errors
from skillup.store.places import directory_of_job

LARGEST_BYTES = 256 << 20
"""Of all files together, before they are compressed: they are in memory, here and there."""

_LEFT_OUT = re.compile(
    r"\.(git|hg|svn|skillup|venv|cache|mypy_cache|pytest_cache|ruff_cache)|__pycache__"
)
_PATH_KEY = re.compile(
    "apply_diff|attachments|case|config_ref|datasets|distractors|files|fixture|golden_file|"
    "neighbours|path|script|script_path|skills"
)
"""Keys, anywhere in a suite or a case, whose value may be a path that starts from the suite."""
_ASIDE = re.compile(r"^((?:raw|files)\.attempt-)(\d+)")


def pack(
    plan: Plan,
    paths: Sequence[Path],
    suites: Sequence[Path],
    roots: Sequence[Path],
    profiles: Sequence[Path],
    secrets: Secrets,
    largest_bytes: int = LARGEST_BYTES,
) -> bytes:
    """The files that `plan` needs to be made and run elsewhere, as a compressed archive.

    All are named without links, as the loader names them. `paths` were given and mean `suites`;
    `roots` are the workspaces it looks for `engines/` in, `profiles` are files that were named.
    Raises SkillupError for an absolute path in a suite, too many bytes, a file that cannot be read,
    or one that holds one of `secrets`.
    """
    # A dataset lies among anything at all; a suite has its folder to itself.
    folders = [suite_root(suite) for suite in suites if suite.suffix not in DATASET_ENDINGS]
    named = [*(path for path in paths if not path.is_dir()), *suites, *profiles, *folders]
    wanted = [*((path, False) for path in named), *_needed(plan, roots)]
    entries: dict[str, Path] = {}
    try:
        for path, whole in wanted:
            entries |= dict(_walk(os.path.normpath(path), path, whole=whole))
        for path in (*paths, *roots, *(root / ".skillup" for root in roots)):
            if path.is_dir():
                entries.setdefault(str(path), path)
        return _archive(entries, secrets, largest_bytes)
    except OSError as error:
        raise SkillupError(
            f"{error.filename}: cannot be sent to the workers: {error.strerror or error}",
            hint="make it readable, or take it out of the suite",
        ) from error


def _needed(plan: Plan, roots: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """What lies outside of the suites' folders; and whether it is needed whole: a fixture is."""
    for root in roots:
        yield root / "engines", False
    for job in {job.loaded.path: job for job in plan.jobs}.values():
        root, case = job.suite.root, job.loaded
        yield case.path, False
        for document in (job.suite.document, case.document):
            for named in _paths_out_of_suite(document.data):
                if named.startswith("/") and Path(named).exists():
                    raise SkillupError(
                        f"{document.path}: {named} is an absolute path, and what is there is "
                        "not sent to the workers",
                        hint="write it relative to the suite",
                    )
                yield root / named, False
        if case.case.context.fixture is not None:
            yield root / case.case.context.fixture, True
        for program in (job.profile.command or ())[:1]:
            if any(Path(program).is_relative_to(root) for root in roots):
                yield Path(program), False


def _paths_out_of_suite(data: Any, key: str = "") -> Iterator[str]:
    """What is in the suite's folder is packed anyway."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            # Files of a workspace: their names are no paths of the suite.
            if not (key == "context" and name == "files"):
                yield from _paths_out_of_suite(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from _paths_out_of_suite(value, key)
    elif isinstance(data, str) and _PATH_KEY.fullmatch(key) and len(data) < 1000:
        yield from [data] if data[0:1] == "/" or ".." in data.split("/") else ()


def _walk(
    name: str, path: Path, within: tuple[Path, ...] = (), *, whole: bool = False
) -> Iterator[tuple[str, Path]]:
    """The name in the archive, and the place here, of `path` and all that is in it.

    Links that lead out of the tree are followed, and others stay links; `within` are the real
    directories that it is in.
    """
    real = path.resolve()
    is_link = within and path.is_symlink() and not path.readlink().is_absolute()
    if is_link and real.is_relative_to(within[0]):
        yield name, path
        return
    if not real.exists() or real in within:
        return
    yield name, real
    if real.is_dir():
        for child in sorted(real.iterdir()):
            if whole or not _LEFT_OUT.fullmatch(child.name):
                yield from _walk(f"{name}/{child.name}", child, (*within, real), whole=whole)


def _archive(entries: Mapping[str, Path], secrets: Secrets, largest_bytes: int) -> bytes:
    out, total = io.BytesIO(), 0
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=4) as archive:
        for name, path in sorted(entries.items()):
            entry = archive.gettarinfo(path, arcname=name)
            if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
                continue  # a socket, or a pipe
            if entry.isdir():
                entry.mode |= 0o700
            content = b""
            if entry.isreg() or entry.islnk():
                content = path.read_bytes()
                if secrets.mask_bytes(content) != content:
                    raise SkillupError(
                        f"{path}: holds a credential, and none is sent to workers",
                        hint="name the variable instead (${NAME}), and set it at the workers",
                    )
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", len(content)
            archive.addfile(entry, io.BytesIO(content))
            total += len(content)
            if total > largest_bytes:
                raise SkillupError(
                    f"the files of the suites are larger than {largest_bytes >> 20} MiB, which is "
                    f"too much to send to every worker (up to {path})",
                    hint="move what the suites do not need out of their folders",
                )
    return out.getvalue()


def unpack(data: bytes, root: Path) -> None:
    """Lay out what :func:`pack` made; `root` takes the place of `/`."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        # From the client, who may have any code run here: nothing is to be defended against it.
        # As an attribute, for Python before 3.11.4 has no argument for it, and no filters.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(root)  # noqa: S202


def pack_run(run: Path, prefix: bytes) -> bytes:
    """The files of the run; `prefix` took the place of `/`, and is taken out of their paths."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=4) as archive:
        for path in sorted(run.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            name, content = path.relative_to(run), path.read_bytes()
            # Raw streams and artifacts are the agent's.
            of_agent = any(part.split(".")[0] in ("raw", "files") for part in name.parts[1:-1])
            if path.suffix in (".json", ".jsonl") and not of_agent:
                content = content.replace(prefix, b"")
            entry = tarfile.TarInfo(name.as_posix())
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def unpack_run(
    data: bytes, jobs: Sequence[Job], directory: RunDirectory, secrets: Secrets
) -> dict[str, bytes]:
    """Put blobs, answers, streams and artifacts of :func:`pack_run` into the run; the other files.

    Secrets that only the client knows are masked, in file names, too. Raises tarfile.TarError for
    what is no such archive: a worker is trusted with less than the client is.
    """
    answers = AnswerFolder(directory.judge_answers, secrets.mask, needed=True)
    places = {
        f"trials/{directory_of_job(job.id)}/": directory.trial_directory(job.id) for job in jobs
    }
    # Streams that earlier starts have set aside stay as they are.
    aside = {first: len([*place.glob("*.attempt-*")]) for first, place in places.items()}
    rest: dict[str, bytes] = {}
    renamed: dict[bytes, bytes] = {}
    with (
        disk_errors("write", directory.path),
        tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive,
    ):
        for entry in archive:
            file = archive.extractfile(entry) if entry.isreg() else None
            if file is None or ".." in entry.name.split("/"):
                raise tarfile.ExtractError(f"a worker's archive has no plain file at {entry.name}")
            content = file.read()
            first = next((place for place in places if entry.name.startswith(place)), "")
            below = entry.name.removeprefix(first)
            if entry.name.startswith("blobs/"):
                old, new = Path(entry.name).name, directory.blobs.put(content)
                renamed |= {old.encode(): new.encode()} if old != new else {}
            elif entry.name.startswith("judge-answers/"):
                answers.write(StoredAnswer.model_validate_json(content))
            elif first and below.startswith(("raw", "files")):
                shift = aside[first]
                below = _ASIDE.sub(lambda found: f"{found[1]}{int(found[2]) + shift}", below)  # noqa: B023
                # Agents name files, too.
                target = places[first] / os.fsdecode(secrets.mask_bytes(os.fsencode(below)))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(secrets.mask_bytes(content))
            else:
                rest[entry.name] = content
    for file_name, data in rest.items():
        for old_sha, new_sha in renamed.items():
            rest[file_name] = data = data.replace(old_sha, new_sha)
    return rest
