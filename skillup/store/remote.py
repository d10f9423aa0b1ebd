"""Runs at URLs, as ``s3://bucket/nights/monday``: read from a copy here, written here and uploaded.

fsspec transports (the extra `remote`): https://filesystem-spec.readthedocs.io. A URL is a folder
with ``run.sqlite``, ``result.json`` and the reports.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

from skillup.errors import RunDirectoryError, SkillupError, StoreTroubleError, UsageError
from skillup.redaction.secrets import NO_SECRETS
from skillup.store.database import Database, copy_database
from skillup.store.files import disk_errors
from skillup.store.places import LOCK_FILE, RESULT_FILE, RUN_FILE, is_being_written
from skillup.store.scratch import user_directory

INTERVAL = "SKILLUP_UPLOAD_SECONDS"
_SECONDS = 30.0
_REST = 9
"""Between two uploads there is at least so many times what the last one took."""
_KEPT_SECONDS = 24 * 3600
"""Copies of what has changed since; somebody may still read one."""
_WORK = "work"
_INSTALL = "pip install 'skillup-eval[remote]'"
_EXAMPLE = "for example s3://bucket/nights/monday"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_PASSWORD = re.compile(r"://[^/@]*@")
_HINTS = {
    "NoCredentialsError": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "FileNotFoundError": "is the bucket's name right? It has to be there: none is made",
    "PermissionError": "are the credentials right? They need to list, read, write and delete there",
}
_UNREACHABLE = "is the store's address right (AWS_ENDPOINT_URL), and can it be reached from here?"

_Stamps = Mapping[str, str]
"""By the names of files: a text that differs once one has changed."""


def is_url(name: str) -> bool:
    """Whether it is a URL, or meant to be one (``s3:/bucket``), and no path."""
    return _URL.match(name) is not None


class RemoteFolder:
    """What is at a URL. Whatever the store refuses is a StoreTroubleError."""

    def __init__(self, url: str) -> None:
        """Raises UsageError if nothing that is installed can open such a URL."""
        self.given = url.rstrip("/")
        self.url = _PASSWORD.sub("://***@", self.given)
        if "://" not in self.given:
            raise UsageError(f"{url}: the URL of a run is incomplete", hint=_EXAMPLE)
        try:
            import fsspec  # type: ignore[import-untyped, unused-ignore]

            self._files, self._path = fsspec.url_to_fs(self.given)
        except ImportError as error:
            what = f"{self.url}: what reads and writes such URLs is not installed ({error})"
            ours = error.name == "fsspec" or self.given.startswith("s3")
            hint = _INSTALL if ours else "install it beside skillup; the extra `remote` is for s3:"
            raise UsageError(what, hint=hint) from error
        except ValueError as error:
            what = f"{self.url}: no such kind of URL"
            raise UsageError(what, hint=_EXAMPLE) from error
        except Exception as error:  # what it was made for may need an address, or a login
            raise self._trouble("open", error) from error
        self._is_local = "file" in self._files.protocol
        self.name = self.given.rpartition("/")[2]
        self.place = user_directory("runs") / _digest(self.given)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # stores raise whatever they like
            raise self._trouble(doing, error) from error

    def _trouble(self, doing: str, error: Exception) -> StoreTroubleError:
        kinds = (kind.__name__ for kind in type(error).__mro__)
        hint = next((_HINTS[kind] for kind in kinds if kind in _HINTS), _UNREACHABLE)
        reason = str(error) or type(error).__name__
        for login in _PASSWORD.findall(self.given):  # which may stand there without the rest
            reason = reason.replace(login[3:], "***@")
        reason = NO_SECRETS.also_of(os.environ).mask(reason)
        return StoreTroubleError(f"cannot {doing} {self.url}: {reason}", hint=hint)

    def files(self) -> _Stamps:
        """Of the files there; none if there is no such folder."""
        with self._errors("read"):
            self._files.invalidate_cache()
            try:
                found = self._files.ls(self._path, detail=True)
            except FileNotFoundError:
                return {}
        keys = ("ETag", "etag", "md5", "size", "LastModified", "mtime", "created")
        return {
            one["name"].rpartition("/")[2]: repr([one.get(key) for key in keys])
            for one in found
            if one["type"] == "file" and one["name"].strip("/") != self._path.strip("/")
        }

    def get(self, folder: Path) -> _Stamps:
        """Downloads the run into `folder`, which appears whole; what was there."""
        with disk_errors("write", self.place):
            self.place.mkdir(parents=True, exist_ok=True)
            for _ in range(5):
                found = self.files()
                if RUN_FILE not in found:
                    hint = f"a run's URL is the folder with its {RUN_FILE}"
                    raise RunDirectoryError(f"there is no run at {self.url}", hint=hint)
                with tempfile.TemporaryDirectory(dir=self.place) as new:
                    (copy := Path(new, "copy")).mkdir()
                    for name in found:
                        with self._errors("read"):
                            self._files.get_file(f"{self._path}/{name}", str(copy / name))
                    if self.files() == found:
                        folder.parent.mkdir(exist_ok=True)
                        if not folder.is_dir():  # another process may have been faster
                            copy.rename(folder)
                        return found
        what = f"{self.url} changes too often to be read"
        raise StoreTroubleError(what, hint="try again when its run has ended")

    def put(self, file: Path, name: str) -> None:
        """Uploads `file`; others see the old one or the new one."""
        target = f"{self._path}/{name}"
        with self._errors("write"):
            if not self._is_local:
                self._files.put_file(str(file), target)
                return
            self._files.makedirs(self._path, exist_ok=True)
            self._files.put_file(str(file), f"{target}.new")
            self._files.mv(f"{target}.new", target)

    def remove(self, name: str) -> None:
        with self._errors("write"):
            self._files.rm_file(f"{self._path}/{name}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def download(url: str) -> Path:
    """A copy of that run, to read. Raises RunDirectoryError, UsageError, StoreTroubleError."""
    folder = RemoteFolder(url)
    copy: Path = folder.place / _digest(repr(sorted(folder.files().items()))) / folder.name
    if not copy.is_dir():
        folder.get(copy)
    with suppress(OSError):
        os.utime(copy.parent)
        for old in folder.place.iterdir():
            if old.name != _WORK and old.stat().st_mtime < time.time() - _KEPT_SECONDS:
                shutil.rmtree(old)
    return copy


class RemoteRun(AbstractContextManager["RemoteRun"]):
    """A run that is written in this user's cache and uploaded, at checkpoints and at its end.

    Use it in a ``with`` around whatever writes the run at :attr:`path`.
    """

    def __init__(self, url: str, *, resume: bool = False) -> None:
        """A new run, or the one at `url` to `resume`: what is here and was not uploaded counts.

        Raises RunDirectoryError, UsageError, StoreTroubleError.
        """
        self._folder = RemoteFolder(url)
        self.url = self._folder.url
        self.path = self._folder.place / _WORK / self._folder.name
        self._sent: object = None
        self._uploaded = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._warn: Callable[[str], None] = lambda _: None
        found = self._folder.files()
        self._kept = (self.path / RUN_FILE).is_file()
        go_on = f"`skillup run --resume {self.url}` goes on with it"
        if resume:
            self._kept = self._kept and (RUN_FILE not in found or self._is_ahead())
            if not self._kept:
                shutil.rmtree(self.path, ignore_errors=True)
                found = self._folder.get(self.path)
        elif self._kept:
            hint = f"{go_on} and uploads it; or remove {self.path.parent}"
            raise RunDirectoryError(f"a run for {self.url} was not uploaded", hint=hint)
        elif found:
            what = f"{self.url} holds a run already" if RUN_FILE in found else ""
            hint = f"{go_on}; or choose another --out"
            raise RunDirectoryError(what or f"{self.url} is not empty", hint=hint)
        self._theirs: str | None = found.get(RUN_FILE, "")

    def _is_ahead(self) -> bool:
        """Whether the run here holds all that was uploaded; False, and removed, if it is older."""
        theirs = download(self._folder.given)
        if _holds(self.path, theirs):
            return True
        if is_being_written(self.path) or not _holds(theirs, self.path):
            hint = f"what was not uploaded is in {self.path}: keep it elsewhere, or remove it"
            raise RunDirectoryError(f"{self.url} was written elsewhere meanwhile", hint=hint)
        shutil.rmtree(self.path)
        return False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        broken = self._thread is not None and kind is not None and not self._uploaded
        if broken and (trouble := self.end()) is not None:
            self._warn(f"{trouble.message}; {trouble.hint}")
        unused = not (self._thread or self._kept or is_being_written(self.path))
        if unused or self._uploaded:
            shutil.rmtree(self.path.parent, ignore_errors=True)

    def begin(self, warn: Callable[[str], None]) -> None:
        """Uploads what there is, so that it fails now if it does; from then on in a thread.

        What goes wrong there is told to `warn`. Raises StoreTroubleError, RunDirectoryError.
        """
        self.upload()
        self._warn = warn
        self._thread = threading.Thread(
            target=self._checkpoints, name="skillup-upload", daemon=True
        )
        self._thread.start()

    def _checkpoints(self) -> None:
        least = _SECONDS
        with suppress(ValueError):
            least = max(0.05, float(os.environ.get(INTERVAL) or _SECONDS))
        wait, before = least, ""
        while not self._ended.wait(wait):
            started = time.monotonic()
            trouble = ""
            try:
                self.upload()
            except SkillupError as error:
                trouble = error.message
                if trouble != before:
                    self._warn(f"{trouble}; it is tried again")
            before, wait = trouble, max(least, _REST * (time.monotonic() - started))

    def end(self) -> SkillupError | None:
        """Uploads the rest once the run is closed here; why that failed, and the run is kept."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.upload(ended=True)
        except SkillupError as error:
            kept = f"the run is in {self.path}; `skillup run --resume {self.url}` uploads it"
            hint = "; ".join(filter(None, [error.hint, kept]))
            return StoreTroubleError(error.message, hint=hint)
        self._uploaded = True
        return None

    def upload(self, *, ended: bool = False) -> None:
        """Uploads the run's file if it has changed; once it has `ended`, what is beside it, too.

        Raises StoreTroubleError and RunDirectoryError.
        """
        file = self.path / RUN_FILE
        state = _stamp(file), _stamp(file.with_name(f"{RUN_FILE}-wal"))
        if state == self._sent and not ended:
            return
        there = self._folder.files()
        if self._theirs is not None and there.get(RUN_FILE, "") != self._theirs:
            what = f"{self.url} was written by another program meanwhile"
            raise StoreTroubleError(what, hint="only one can write a run: see which is to count")
        if RESULT_FILE in there and not (self.path / RESULT_FILE).exists():  # of before it went on
            self._folder.remove(RESULT_FILE)
        if state != self._sent:
            copy = self.path.with_name(".upload.sqlite")
            try:
                copy_database(file, copy)
                self._theirs = None  # whatever comes of it is ours
                self._folder.put(copy, RUN_FILE)
            finally:
                copy.unlink(missing_ok=True)
            self._theirs, self._sent = self._folder.files().get(RUN_FILE, ""), state
        for path in sorted(self.path.iterdir()) if ended else ():
            if path.is_file() and not path.name.startswith((".", RUN_FILE, LOCK_FILE)):
                self._folder.put(path, path.name)


def _stamp(file: Path) -> object:
    """Differs when the file has changed; None where there is none."""
    with suppress(OSError):
        about = file.stat()
        return about.st_mtime_ns, about.st_size
    return None


def _holds(run: Path, other: Path) -> bool:
    """Whether `run` is `other`, or has gone on from it: their journals tell."""
    with closing(Database(other / RUN_FILE)) as file:
        [last] = file.rows("SELECT id, json FROM events ORDER BY id DESC LIMIT 1") or [(0, "")]
    with closing(Database(run / RUN_FILE)) as file:
        return bool(file.rows("SELECT 1 FROM events WHERE id = ? AND json = ?", *last))
