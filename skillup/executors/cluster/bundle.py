"""The files of a plan as one archive: each has the path in it that it has here.

Below a directory of the worker's that takes the place of `/`, everything leads to everything else
as it does here, and whoever takes that directory's name out of a text has the path from here again.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.errors import SkillupError
from skillup.load.discover import DATASET_ENDINGS, suite_root
from skillup.plan import Plan
from skillup.redaction.secrets import Secrets

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
_MASK = re.compile(rb"\*\*\*([\w.']+)\*\*\*")


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
    entries: dict[str, Path] = {}
    try:
        for path, whole in _needed(plan, paths, suites, roots, profiles):
            for name, source in _walk(os.path.normpath(path), path, (), whole=whole):
                entries.setdefault(name, source)
        for path in (*paths, *roots, *(root / ".skillup" for root in roots)):
            if path.is_dir():
                entries.setdefault(str(path), path)
        return _archive(entries, secrets, largest_bytes)
    except OSError as error:
        raise SkillupError(
            f"{error.filename}: cannot be sent to the workers: {error.strerror or error}",
            hint="make it readable, or take it out of the suite",
        ) from error


def unpack(data: bytes, root: Path) -> None:
    """Lay out what :func:`pack` made; `root` takes the place of `/`."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        # From the client, who may have any code run here: nothing is to be defended against it.
        # As an attribute, for Python before 3.11.4 has no argument for it, and no filters.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(root)  # noqa: S202


def _needed(
    plan: Plan,
    paths: Sequence[Path],
    suites: Sequence[Path],
    roots: Sequence[Path],
    profiles: Sequence[Path],
) -> Iterator[tuple[Path, bool]]:
    """Files and directories, and whether all of a directory is needed: fixtures are copied."""
    for path in (*(path for path in paths if not path.is_dir()), *suites, *profiles):
        yield path, False
    for suite in suites:
        # A dataset lies among anything at all; a suite has its folder to itself.
        if suite.suffix not in DATASET_ENDINGS:
            yield suite_root(suite), False
    for root in roots:
        yield root / "engines", False
    seen: set[Path] = set()
    for job in plan.jobs:
        case = job.loaded
        yield case.path, False
        if case.case.context.fixture is not None:
            yield job.suite.root / case.case.context.fixture, True
        for document in (job.suite.document, case.document):
            if document.path not in seen:
                seen.add(document.path)
                for named in _paths_out_of_suite(document.data):
                    if named.startswith("/") and Path(named).exists():
                        raise SkillupError(
                            f"{document.path}: {named} is an absolute path, and what is there is "
                            "not sent to the workers",
                            hint="write it relative to the suite",
                        )
                    yield job.suite.root / named, False
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
    name: str, path: Path, within: tuple[Path, ...], *, whole: bool
) -> Iterator[tuple[str, Path]]:
    """The name in the archive, and the place here, of `path` and all that is in it.

    Links that lead out of the tree are followed, and others stay links; `within` are the real
    directories that it is in.
    """
    if path.is_symlink() and within and _stays_inside(path, within):
        yield name, path
        return
    real = path.resolve()
    if not real.exists() or real in within:
        return
    yield name, real
    if real.is_dir():
        for child in sorted(real.iterdir()):
            if whole or not _LEFT_OUT.fullmatch(child.name):
                yield from _walk(f"{name}/{child.name}", child, (*within, real), whole=whole)


def _stays_inside(link: Path, within: tuple[Path, ...]) -> bool:
    return not link.readlink().is_absolute() and link.resolve().is_relative_to(within[0])


def _archive(entries: Mapping[str, Path], secrets: Secrets, largest_bytes: int) -> bytes:
    out, total, weights = io.BytesIO(), 0, Counter[str]()
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
                _require_no_secret(path, content, secrets)
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", len(content)
            archive.addfile(entry, io.BytesIO(content))
            total += len(content)
            weights.update({str(parent): len(content) for parent in Path(name).parents})
            if total > largest_bytes:
                # The deepest directory that holds most of it.
                heavy = (parent for parent, size in weights.items() if size * 2 > total)
                raise SkillupError(
                    f"the files of the suites are larger than {largest_bytes >> 20} MiB, which is "
                    f"too much to send to every worker; most of it is below {max(heavy, key=len)}",
                    hint="move what the suites do not need out of their folders",
                )
    return out.getvalue()


def _require_no_secret(path: Path, content: bytes, secrets: Secrets) -> None:
    masked = secrets.mask_bytes(content)
    if masked != content:
        names = set(_MASK.findall(masked)) - set(_MASK.findall(content))
        shown = ", ".join(sorted(name.decode() for name in names)) or "a credential"
        raise SkillupError(
            f"{path}: holds the value of {shown}, and credentials are not sent to workers",
            hint="name the variable instead (${NAME}), and set it at the workers",
        )
