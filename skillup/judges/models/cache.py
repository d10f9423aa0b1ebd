"""Answers of judges as files, of models and agents alike: what is asked again costs nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from skillup.errors import SkillupError
from skillup.schema.base import Model
from skillup.schema.record import Usage
from skillup.store.files import make_directory, write_atomic
from skillup.store.journal import to_json

_VERSION = "skillup.judge_answer/1"


class StoredAnswer(Model):
    """A file of the cache. The question is there for people who debug a judge."""

    schema_version: str = Field(_VERSION, description="The version of this format.")
    asked: dict[str, Any] = Field(description="The question: all that the file's name depends on.")
    answer: Any = Field(description="What was answered; of embeddings, the vectors.")
    model: str | None = Field(None, description="As the provider names it.")
    usage: Usage | None = Field(None, description="Tokens it took.")
    cost_usd: float | None = Field(None, description="What it cost; None: not known.")
    asked_for: str | None = Field(
        None, description="The trial, hashed, whose grade counts what it took; None: no grade does."
    )


def key_of(asked: dict[str, Any]) -> str:
    """The name under which the answer to this question is kept."""
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def as_stored(data: Any, mask: Callable[[str], str]) -> Any:
    """`data` as it will be read back from a file: masked, and valid text."""
    return json.loads(to_json({"": data}, mask, indent=None))[""]


@dataclass(frozen=True, slots=True)
class CachedQuestion:
    """A question under the names by which its answer is kept."""

    own: dict[str, Any]
    """For the run, as its record says it: judging again may know nothing of the environment."""
    shared: dict[str, Any] | None = None
    """For the other runs of the workspace: all that counts, addresses that only the environment
    names included. None: the answer is not for them."""

    @property
    def key(self) -> str:
        """Tells questions of one process apart: it has but one environment."""
        return key_of(self.own)


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
        self, run: AnswerFolder | None, shared: AnswerFolder | None, *, anew: bool = False
    ) -> None:
        """`anew`: nothing from before this process is read, and nothing is shared."""
        self._run = run
        self._shared = None if anew else shared
        self._anew = anew
        self._of_this_process: dict[str, StoredAnswer] = {}

    def read(self, asked: CachedQuestion) -> StoredAnswer | None:
        """From this process, else from the run, else from the shared cache."""
        known = self._of_this_process.get(asked.key)
        if known is not None or self._anew:
            return known
        for folder, words in self._places(asked):
            found = folder.read(key_of(words))
            if found is not None:
                if folder is not self._run and self._run is not None:
                    # So that the run can be judged where it is alone.
                    self._run.write(found.model_copy(update={"asked": asked.own}))
                return found
        return None

    def take_over(self, asked: CachedQuestion, stored: StoredAnswer, trial: str | None) -> bool:
        """Whether an earlier process asked it for the grade of `trial`, which it did not come to.

        From now on it is this one's: so what it took is counted once.
        """
        if trial is None or stored.asked_for != trial or asked.key in self._of_this_process:
            return False
        self._of_this_process[asked.key] = stored.model_copy(update={"asked": {}})
        return True

    def write(self, asked: CachedQuestion, answer: StoredAnswer) -> None:
        """Keeps it wherever answers are kept."""
        # Without the question: thousands of them are too much to hold.
        self._of_this_process[asked.key] = answer.model_copy(update={"asked": {}})
        for folder, words in self._places(asked):
            folder.write(answer.model_copy(update={"asked": words}))

    def _places(self, asked: CachedQuestion) -> Iterator[tuple[AnswerFolder, dict[str, Any]]]:
        """Each folder, and what the question is there."""
        if self._run is not None:
            yield self._run, asked.own
        if self._shared is not None and asked.shared is not None:
            yield self._shared, asked.shared
