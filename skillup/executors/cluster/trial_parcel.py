"""What a worker's trials have written, as one archive, and back into a run directory."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from skillup.judges.models.stored import StoredAnswer, key_of

_TRIALS, _BLOBS, _ANSWERS = "trials", "blobs", "judge-answers"


def pack_trials(run: Path, prefix: str) -> bytes:
    """The trials, blobs and answers of the run directory `run`, compressed.

    `prefix` is the directory that took the place of `/`: records, grades and the questions of
    judges then name files as the client knows them.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=4) as archive:
        for part in (_TRIALS, _BLOBS, _ANSWERS):
            for path in _files_below(run / part):
                name, content = path.relative_to(run).as_posix(), path.read_bytes()
                if part == _ANSWERS:
                    name, content = _answer(name, _at_home(content, prefix))
                elif part == _TRIALS and path.suffix == ".json" and _is_of_skillup(path, run):
                    content = _at_home(content, prefix)
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                entry.mode = path.stat().st_mode & 0o777
                entry.mtime = int(path.stat().st_mtime)
                archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def unpack_trials(data: bytes, directory: Path) -> None:
    """Lay out what :func:`pack_trials` made.

    Raises tarfile.TarError for anything but files below it: a worker is trusted with less than the
    client is.
    """
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


def _files_below(directory: Path) -> Iterator[Path]:
    for parent, _, files in os.walk(directory):
        for name in sorted(files):
            path = Path(parent) / name
            if path.is_file() and not path.is_symlink():
                yield path


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
