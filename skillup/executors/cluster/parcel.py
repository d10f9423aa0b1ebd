"""The files of a plan as one archive: they have the paths in it that they have here.

Below a directory of the worker's that takes the place of `/`, everything leads to everything else
as it does here, `../` and links included, and whoever takes that directory's name out of a text has
the path from here again.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import SkillupError
from skillup.redaction.secrets import Secrets

LARGEST_BYTES = 256 << 20
"""Of all files together, before they are compressed: they are held in memory, here and there."""

_LEFT_OUT = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".skillup",
        ".venv",
        "__pycache__",
        ".cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    }
)
_MASK = re.compile(rb"\*\*\*([\w.']+)\*\*\*")


@dataclass(frozen=True, slots=True)
class Parcel:
    """A compressed archive, and what its content is known by."""

    data: bytes
    digest: str
    files: int
    size: int
    """Bytes of all files, before they were compressed."""


@dataclass(frozen=True, slots=True)
class WantedFiles:
    """What is to be packed; directories with all that is in them."""

    trees: tuple[Path, ...]
    """Version control, caches and what skillup wrote is left out."""
    whole: tuple[Path, ...] = ()
    """Nothing of these is left out: fixtures, of which trials get a copy."""
    directories: tuple[Path, ...] = ()
    """Only the directories, for being there."""


def pack(wanted: WantedFiles, secrets: Secrets, largest_bytes: int = LARGEST_BYTES) -> Parcel:
    """The archive.

    Raises SkillupError if it is too large, if a file cannot be read, or if one of `secrets` is in
    it.
    """
    packer = _Packer(secrets, largest_bytes)
    try:
        for path in wanted.trees:
            packer.add(path, everything=False)
        for path in wanted.whole:
            packer.add(path, everything=True)
        for path in wanted.directories:
            packer.add_directory(path)
        content = packer.archive()
    except OSError as error:
        raise SkillupError(
            f"{error.filename}: cannot be sent to the workers: {error.strerror or error}",
            hint="make it readable, or take it out of the suite",
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    data = gzip.compress(content, compresslevel=4, mtime=0)
    return Parcel(data, digest, len(packer.files), packer.size)


def unpack(data: bytes, root: Path) -> None:
    """Lay out what :func:`pack` made; `root` takes the place of `/`."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        # From the client, who may have any code run here: nothing is to be defended against it.
        # As an attribute, for Python before 3.11.4 has no argument for it, and no filters.
        archive.extraction_filter = lambda member, _: member
        archive.extractall(root)  # noqa: S202


class _Packer:
    def __init__(self, secrets: Secrets, largest_bytes: int) -> None:
        self._secrets = secrets
        self._largest = largest_bytes
        self._entries: dict[Path, tarfile.TarInfo] = {}
        self.files: dict[Path, Path] = {}
        self.size = 0

    def add(self, path: Path, *, everything: bool) -> None:
        """A file, a link with what it leads to, or a directory with all that is in it."""
        path = self._real(path)
        if not path.is_dir():
            if path.is_file():
                self._add_file(path)
            return
        self.add_directory(path)
        for parent, names, files in os.walk(path, onerror=_complain):
            here = Path(parent)
            if not everything:
                names[:] = [name for name in names if name not in _LEFT_OUT]
            links = [name for name in names if (here / name).is_symlink()]
            for name in names:
                if name not in links:
                    self._note(here / name, tarfile.DIRTYPE)
            for name in [*files, *links]:
                child = here / name
                if child.is_symlink():
                    self._add_link(child)
                elif child.is_file():
                    self._add_file(child)

    def add_directory(self, path: Path) -> None:
        """The directory, but nothing that is in it."""
        self._note(self._real(path), tarfile.DIRTYPE, mode=0o755)

    def archive(self) -> bytes:
        """All of it, in a fixed order."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(self._entries):
                entry = self._entries[path]
                if path in self.files:
                    content = path.read_bytes()
                    self._require_no_secret(path, content)
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))
                else:
                    archive.addfile(entry)
        return out.getvalue()

    def _real(self, path: Path) -> Path:
        """Where `path` really is; links on the way there are packed, so that it leads there."""
        # Not resolve(): that would swallow the links. `..` behind a link leads elsewhere, too.
        real = Path("/")
        rest = list(path.absolute().parts[1:])
        followed = 0
        while rest:
            part = rest.pop(0)
            if part == "..":
                real = real.parent
                continue
            real = real / part
            if real.is_symlink() and followed < 40:
                followed += 1
                target = real.readlink()
                self._note_link(real)
                rest = (
                    [*target.parts[1:], *rest] if target.is_absolute() else [*target.parts, *rest]
                )
                real = Path("/") if target.is_absolute() else real.parent
        return real

    def _add_link(self, link: Path) -> None:
        """The link; and the file that it leads to, for it may lie where nothing else is packed."""
        target = link.parent / link.readlink()
        if target.is_file() and not link.readlink().is_absolute():
            self._add_file(self._real(target))
        self._note_link(link)

    def _note_link(self, link: Path) -> None:
        entry = self._note(link, tarfile.SYMTYPE)
        target = link.readlink()
        entry.linkname = str(target)
        if target.is_absolute():
            # It must lead to what is packed, not to what the worker has there.
            entry.linkname = os.path.relpath(target, link.parent)

    def _add_file(self, path: Path) -> None:
        if path in self.files:
            return
        self._note(path, tarfile.REGTYPE)
        self.files[path] = path
        self.size += path.stat().st_size
        if self.size > self._largest:
            raise SkillupError(
                f"the files of the suites are larger than {self._largest >> 20} MiB, which is too "
                f"much to send to every worker; most of it is below {self._heaviest()}",
                hint="move what the suites do not need out of their folders",
            )

    def _require_no_secret(self, path: Path, content: bytes) -> None:
        masked = self._secrets.mask_bytes(content)
        if masked == content:
            return
        names = set(_MASK.findall(masked)) - set(_MASK.findall(content))
        shown = ", ".join(sorted(name.decode() for name in names)) or "a credential"
        raise SkillupError(
            f"{path}: holds the value of {shown}, and credentials are not sent to workers",
            hint="name the variable instead (${NAME}), and set it at the workers",
        )

    def _note(self, path: Path, kind: bytes, mode: int | None = None) -> tarfile.TarInfo:
        known = self._entries.get(path)
        if known is not None:
            return known
        entry = tarfile.TarInfo(str(path).lstrip("/"))
        entry.type = kind
        status = path.lstat()
        entry.mode = mode or (status.st_mode & 0o777 | (0o700 if kind == tarfile.DIRTYPE else 0))
        entry.mtime = int(status.st_mtime)
        self._entries[path] = entry
        return entry

    def _heaviest(self) -> str:
        weights: Counter[Path] = Counter()
        for path in self.files:
            size = path.stat().st_size
            for parent in path.parents:
                weights[parent] += size
        # The deepest directory that holds most of it tells the most.
        heavy: Iterable[Path] = (p for p, size in weights.items() if size * 2 > self.size)
        return str(max(heavy, key=lambda p: len(p.parts)))


def _complain(error: OSError) -> None:
    raise error
