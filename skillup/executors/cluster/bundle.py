"""What travels: the files of a plan to the workers, and those of a run back.

Each has the path there that it has here, below a directory that takes the place of `/`.
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
from skillup.judges.models.client import AnswerFolder, StoredAnswer
from skillup.load.discover import DATASET_ENDINGS, suite_root
from skillup.plan import Job, Plan
from skillup.redaction.secrets import Secrets
from skillup.store import RunDirectory
from skillup.store.files import disk_errors
from skillup.store.places import directory_of_job

_LEFT_OUT = re.compile(
    r"\.(git|hg|svn|skillup|venv|cache|mypy_cache|pytest_cache|ruff_cache)|__pycache__"
)
_ASIDE = re.compile(r"^((?:raw|files)\.attempt-)(\d+)")


def pack(
    plan: Plan,
    paths: Sequence[Path],
    suites: Sequence[Path],
    roots: Sequence[Path],
    profiles: Sequence[Path],
    secrets: Secrets,
) -> bytes:
    """The files that `plan` needs to be made and run elsewhere, as a compressed archive.

    `paths` were given and mean `suites`; `roots` are the workspaces it looks for `engines/` in.
    Raises SkillupError for a file that cannot be read, or that has a secret.
    """
    # A dataset lies among anything at all; a suite has its folder to itself.
    folders = [suite_root(suite) for suite in suites if suite.suffix not in DATASET_ENDINGS]
    named = [*(path for path in paths if not path.is_dir()), *suites, *profiles, *folders]
    entries: dict[str, Path] = {}
    for path, whole in [*((path, False) for path in named), *_named_elsewhere(plan, roots)]:
        with disk_errors("send to the workers", path):
            entries |= dict(_walk(os.path.normpath(path), path, whole=whole))
    for path in (*paths, *roots, *(root / ".skillup" for root in roots)):
        if path.is_dir():
            entries.setdefault(str(path), path)
    return _archive(entries, secrets)


def _named_elsewhere(plan: Plan, roots: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """What lies outside of the suites' folders; and whether it is needed whole: a fixture is."""
    for root in roots:
        yield root / "engines", False
    for job in {job.loaded.path: job for job in plan.jobs}.values():
        root, case = job.suite.root, job.loaded
        yield case.path, False
        for text in (*_texts(job.suite.document.data), *_texts(case.document.data)):
            if ".." in text.split("/") and len(text) < 250:  # else it is no path
                yield root / text, False
        if case.case.context.fixture is not None:
            yield root / case.case.context.fixture, True
        for program in (job.profile.command or ())[:1]:
            if any(Path(program).is_relative_to(root) for root in roots):
                yield Path(program), False


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping | list):
        for value in data.values() if isinstance(data, Mapping) else data:
            yield from _texts(value)


def _walk(
    name: str, path: Path, within: tuple[Path, ...] = (), *, whole: bool = False
) -> Iterator[tuple[str, Path]]:
    """Names in the archive, and places here; links that lead out of the tree are followed."""
    real = path.resolve()
    is_link = within and path.is_symlink() and not path.readlink().is_absolute()
    if is_link and real.is_relative_to(within[0]):
        yield name, path
    elif real.exists() and real not in within:
        yield name, real
        for child in sorted(real.iterdir()) if real.is_dir() else ():
            if whole or not _LEFT_OUT.fullmatch(child.name):
                yield from _walk(f"{name}/{child.name}", child, (*within, real), whole=whole)


def _archive(entries: Mapping[str, Path], secrets: Secrets) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=4) as archive:
        for name, path in sorted(entries.items()):
            archive.inodes = {}  # type: ignore[attr-defined]
            entry = archive.gettarinfo(path, arcname=name)
            with disk_errors("send to the workers", path):
                content = path.read_bytes() if entry.isreg() else b""
            if secrets.mask_bytes(content) != content:
                raise SkillupError(
                    f"{path}: holds a credential, and none is sent to workers",
                    hint="name the variable instead (${NAME}), and set it at the workers",
                )
            if entry.isdir():
                entry.mode |= 0o700
            if entry.isreg() or entry.isdir() or entry.issym():  # no socket, no pipe
                archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def unpack(data: bytes, root: Path) -> None:
    """Lay out what :func:`pack` made; `root` takes the place of `/`."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        # From the client, who may have any code run here. Python before 3.11.4 has no filters.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(root)  # noqa: S202


def read_run(run: Path, prefix: bytes) -> dict[str, bytes]:
    """The files of the run; `prefix` took the place of `/`, and is taken out of their paths."""
    files: dict[str, bytes] = {}
    for path in sorted(run.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        name, content = path.relative_to(run), path.read_bytes()
        # Raw streams and artifacts are the agent's.
        of_agent = any(part.split(".")[0] in ("raw", "files") for part in name.parts[1:-1])
        if path.suffix in (".json", ".jsonl") and not of_agent:
            content = content.replace(prefix, b"")
        files[name.as_posix()] = content
    return files


def store_run(
    files: Mapping[str, bytes], jobs: Sequence[Job], directory: RunDirectory, secrets: Secrets
) -> dict[str, bytes]:
    """Put blobs, answers, streams and artifacts of :func:`read_run` into the run; its JSON files.

    Secrets that only the client knows are masked, in names that agents gave to files, too.
    """
    answers = AnswerFolder(directory.judge_answers, secrets.mask, needed=True)
    renamed: dict[bytes, bytes] = {}
    for name, content in files.items():
        if name.startswith("blobs/"):
            renamed[Path(name).name.encode()] = directory.blobs.put(content).encode()
        elif name.startswith("judge-answers/"):
            answers.write(StoredAnswer.model_validate_json(content))
    for job in jobs:
        place, trial = f"trials/{directory_of_job(job.id)}/", directory.trial_directory(job.id)
        # Streams that earlier starts have set aside stay as they are.
        aside = len([*trial.glob("*.attempt-*")])
        for name in [name for name in files if name.startswith((f"{place}raw", f"{place}files"))]:
            below = name.removeprefix(place)
            below = _ASIDE.sub(lambda found: f"{found[1]}{int(found[2]) + aside}", below)  # noqa: B023
            target = trial / os.fsdecode(secrets.mask_bytes(os.fsencode(below)))
            with disk_errors("write", target):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(secrets.mask_bytes(files[name]))
    kept = {name: content for name, content in files.items() if name.endswith((".json", ".jsonl"))}
    for old, new in ((old, new) for old, new in renamed.items() if old != new):
        kept = {name: content.replace(old, new) for name, content in kept.items()}
    return kept
