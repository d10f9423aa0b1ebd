"""Answers of models as files: what is asked again later costs nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from skillup.errors import SkillupError
from skillup.schema.base import Model
from skillup.schema.record import Usage
from skillup.store.atomic import make_directory, write_atomic
from skillup.store.json_text import to_json

_VERSION = "skillup.judge_answer/1"


class StoredAnswer(Model):
    """A file of the cache. The question is there for people who debug a judge."""

    schema_version: str = Field(_VERSION, description="The version of this format.")
    asked: dict[str, Any] = Field(description="The question: all that the file's name depends on.")
    answer: Any = Field(description="What the model answered; of embeddings, the vectors.")
    model: str | None = Field(None, description="As the provider names it.")
    usage: Usage | None = Field(None, description="Tokens it took.")
    cost_usd: float | None = Field(None, description="What it cost; None: not known.")


def key_of(asked: dict[str, Any]) -> str:
    """The name under which the answer to this question is kept."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def form_of(answer: type[BaseModel]) -> dict[str, Any]:
    """The form of an answer, as far as a question depends on it."""
    return answer.model_json_schema()


class AnswerFolder:
    """One JSON file for each answer, ``<key>.json``. What cannot be read is not there."""

    def __init__(self, path: Path, mask: Callable[[str], str], *, needed: bool) -> None:
        """`needed`: an answer that cannot be kept is an error (RunDirectoryError)."""
        self.path = path
        self._mask = mask
        self._needed = needed

    def read(self, key: str) -> StoredAnswer | None:
        """The answer; None if there is none, or its file is damaged."""
        try:
            found = StoredAnswer.model_validate_json(self._file(key).read_bytes())
        except (OSError, ValidationError):
            return None
        return found if found.schema_version == _VERSION else None

    def write(self, key: str, answer: StoredAnswer) -> None:
        """Keeps it, in place of an older one; secrets masked."""
        try:
            make_directory(self.path)
            write_atomic(self._file(key), to_json(answer, self._mask, indent=1))
        except SkillupError:
            if self._needed:
                raise

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.json"


class AnswerCache:
    """The run's own answers and, where there is one, the cache that runs share."""

    def __init__(
        self,
        run: AnswerFolder | None,
        shared: AnswerFolder | None,
        *,
        anew: bool = False,
    ) -> None:
        """`anew`: nothing from before this process is read, and nothing is shared."""
        self._run = run
        self._shared = None if anew else shared
        self._anew = anew
        self._of_this_process: dict[str, StoredAnswer] = {}

    def read(self, key: str, *, share: bool = True) -> StoredAnswer | None:
        """From this process, else from the run, else from the shared cache."""
        known = self._of_this_process.get(key)
        if known is not None or self._anew:
            return known
        for folder in self._folders(share):
            found = folder.read(key)
            if found is not None:
                if folder is not self._run and self._run is not None:
                    self._run.write(key, found)  # so that the run can be judged where it is alone
                return found
        return None

    def write(self, key: str, answer: StoredAnswer, *, share: bool = True) -> None:
        """Keeps it wherever answers are kept."""
        # Without the question: thousands of them are too much to hold.
        self._of_this_process[key] = answer.model_copy(update={"asked": {}})
        for folder in self._folders(share):
            folder.write(key, answer)

    def _folders(self, share: bool) -> Sequence[AnswerFolder]:
        folders = (self._run, self._shared if share else None)
        return [folder for folder in folders if folder is not None]
