"""What a worker's trials have written, as one archive, and back into a run directory."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from skillup.judges.models.cache import StoredAnswer, key_of
from skillup.store.trials import trial_directory

_TRIALS, _BLOBS, _ANSWERS = "trials", "blobs", "judge-answers"


def pack_trials(run: Path, prefix: str, jobs: Iterable[str], there: Collection[str] = ()) -> bytes:
    """The trials of `jobs` in the run directory `run`, with all blobs and answers, compressed.

    `prefix` is the directory that took the place of `/`: records, grades and the questions of
    judges then name files as the client knows them. Blobs and answers that are `there` already, by
    their names in an archive, are left out. Other trials may be going on.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=4) as archive:
        for path in _files(run, jobs):
            name = path.relative_to(run).as_posix()
            part = name.partition("/")[0]
            if name in there:
                continue
            content = path.read_bytes()
            if part == _ANSWERS:
                name, content = _answer(name, _at_home(content, prefix))
                if name in there:
                    continue
            elif part == _TRIALS and path.suffix == ".json" and _is_of_skillup(path, run):
                content = _at_home(content, prefix)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = path.stat().st_mode & 0o777
            entry.mtime = int(path.stat().st_mtime)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def unpack_trials(data: bytes, directory: Path) -> list[str]:
    """Lay out what :func:`pack_trials` made; the names of the blobs and answers in it.

    Raises tarfile.TarError for anything but files below it: a worker is trusted with less than the
    client is.
    """
    kept: list[str] = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for entry in archive:
            name = PurePosixPath(entry.name)
            content = archive.extractfile(entry) if entry.isreg() else None
            if content is None or name.is_absolute() or ".." in name.parts:
                raise tarfile.ExtractError(f"a worker's archive has no plain file at {name}")
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("wb") as file:
                shutil.copyfileobj(content, file)
            path.chmod(entry.mode & 0o777)
            os.utime(path, (entry.mtime, entry.mtime))
            if name.parts[0] in (_BLOBS, _ANSWERS):
                kept.append(entry.name)
    return kept


def _files(run: Path, jobs: Iterable[str]) -> Iterator[Path]:
    for job in jobs:
        for parent, _, files in os.walk(trial_directory(run / _TRIALS, job)):
            for name in sorted(files):
                path = Path(parent) / name
                if path.is_file() and not path.is_symlink():
                    yield path
    # What is being written has other names.
    yield from sorted((run / _BLOBS).glob("??/*"))
    yield from sorted((run / _ANSWERS).glob("*.json"))


def _is_of_skillup(path: Path, run: Path) -> bool:
    """Not what an agent left in `files/`, nor a raw stream."""
    parents = path.relative_to(run).parts[1:-1]
    return not any(part.partition(".")[0] in ("raw", "files") for part in parents)


def _at_home(content: bytes, prefix: str) -> bytes:
    return content.replace(prefix.encode(), b"")


def _answer(name: str, content: bytes) -> tuple[str, bytes]:
    """An answer's file is named after its question, and questions may name the suite."""
    try:
        answer = StoredAnswer.model_validate_json(content)
    except ValidationError:
        return name, content
    return f"{_ANSWERS}/{key_of(answer.asked)}.json", content
