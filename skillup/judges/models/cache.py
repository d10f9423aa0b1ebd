"""Answers of judges as files, of models and agents alike: what is asked again costs nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from pydantic import Field, ValidationError

from skillup.errors import SkillupError
from skillup.schema.base import Model
from skillup.schema.record import Usage
from skillup.store.files import make_directory, to_json, write_atomic

_VERSION = "skillup.judge_answer/1"
T = TypeVar("T")


class StoredAnswer(Model):
    """A file of the cache. The question is there for people who debug a judge."""

    schema_version: str = Field(_VERSION, description="The version of this format.")
    asked: dict[str, Any] = Field(description="The question: all that the file's name depends on.")
    answer: Any = Field(description="What was answered.")
    model: str | None = Field(None, description="As the provider names it.")
    usage: Usage | None = Field(None, description="Tokens it took.")
    cost_usd: float | None = Field(None, description="What it cost; None: not known.")


def key_of(asked: dict[str, Any]) -> str:
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def as_stored(data: Any, mask: Callable[[str], str]) -> Any:
    """`data` as it will be read back from a file: masked, and valid text."""
    return json.loads(to_json({"": data}, mask, indent=None))[""]


class AnswerFolder:
    """One JSON file for each answer, ``<key>.json``. What cannot be read is not there."""

    def __init__(self, path: Path, mask: Callable[[str], str], *, needed: bool) -> None:
        """`needed`: an answer that cannot be kept is an error (RunDirectoryError)."""
        self.path = path
        self._mask = mask
        self._needed = needed

    def read(self, key: str) -> StoredAnswer | None:
        """The answer; None if there is none, or its file is damaged, or of another question."""
        try:
            found = StoredAnswer.model_validate_json((self.path / f"{key}.json").read_bytes())
        except (OSError, ValidationError):
            return None
        # A file that was copied, or edited by hand, must not answer what nobody asked.
        right = found.schema_version == _VERSION and key_of(found.asked) == key
        return found if right else None

    def write(self, answer: StoredAnswer) -> None:
        """Keeps it, in place of an older one; secrets masked."""
        try:
            make_directory(self.path)
            file = self.path / f"{key_of(answer.asked)}.json"
            write_atomic(file, to_json(answer, self._mask, indent=1))
        except SkillupError:
            if self._needed:
                raise


class AnswerCache:
    """The run's own answers and, where there is one, the cache that runs share."""

    def __init__(
        self,
        run: AnswerFolder | None = None,
        shared: AnswerFolder | None = None,
        *,
        anew: bool = False,
    ) -> None:
        """`anew`: nothing from before this process is read, and nothing is shared."""
        self._run = run
        self._shared = None if anew else shared
        self._anew = anew
        self._of_this_process: dict[str, StoredAnswer] = {}
        self._under_way: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def answer(
        self,
        asked: dict[str, Any],
        read: Callable[[StoredAnswer], T | None],
        ask: Callable[[], Awaitable[StoredAnswer]],
        *,
        share: bool = False,
    ) -> tuple[T, StoredAnswer, bool]:
        """What `read` makes of the kept answer to `asked`, or of a new one; whether it was kept.

        `read` is None for one that is not of the form asked for. The same question is asked once
        at a time: who comes second finds the answer. Raises what `ask` raises.
        """
        key = key_of(asked)
        async with self._under_way.setdefault(key, anyio.Lock()):
            stored = await anyio.to_thread.run_sync(self._read, key, share)
            value = read(stored) if stored is not None else None
            if stored is not None and value is not None:
                return value, stored, True
            stored = await ask()
            # Without the question: thousands of them are too much to hold.
            self._of_this_process[key] = stored.model_copy(update={"asked": {}})
            for folder in (self._run, self._shared if share else None):
                if folder is not None:
                    await anyio.to_thread.run_sync(folder.write, stored)
            value = read(stored)
            if value is None:
                raise ValueError("the answer is of another form without its secrets")
            return value, stored, False

    def _read(self, key: str, share: bool) -> StoredAnswer | None:
        known = self._of_this_process.get(key)
        if known is not None or self._anew:
            return known
        if self._run is not None and (known := self._run.read(key)) is not None:
            return known
        if share and self._shared is not None:
            known = self._shared.read(key)
            if known is not None and self._run is not None:
                self._run.write(known)  # so that the run can be judged where it is alone
        return known
