"""Which workers can hold trials: each is asked, before it gets any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from skillup import __version__
from skillup.executors.cluster.on_worker import look
from skillup.executors.cluster.parcel import Parcel

_SECONDS = 150.0


@dataclass(frozen=True, slots=True)
class Looked:
    """What a worker said."""

    problem: str | None
    """Why it gets no trials; None: it gets some."""
    about: Mapping[str, Any]
    passing: bool = False
    """The problem may be gone the next time."""

    def doubts(self) -> dict[str, str]:
        """By profile, why it may be of no use there: no login was found."""
        profiles = self.about.get("profiles", {})
        return {
            name: _of(name, about["doubt"])
            for name, about in profiles.items()
            if about.get("doubt")
        }


def _of(profile: str, problem: str) -> str:
    return problem if problem.startswith(f"{profile}: ") else f"{profile}: {problem}"


async def look_at(client: Any, address: str, asked: Mapping[str, Any], parcel: Parcel) -> Looked:
    """Send the suites to the worker at `address`, and have it say what it lacks for them."""
    answer: Any = None
    with anyio.move_on_after(_SECONDS):
        # Of a worker that leaves meanwhile it says nothing, or that it could not be reached.
        answers = await client.run(
            look, dict(asked), parcel.digest, parcel.data, workers=[address], on_error="return"
        )
        answer = answers.get(address)
    if answer is None:
        return Looked(f"no answer within {_SECONDS:g} s", {})
    if isinstance(answer, BaseException):
        return Looked(_failure(answer), {}, passing=isinstance(answer, OSError))
    if answer.get("killed"):
        return Looked(f"what looked there was killed (signal {answer['killed']})", {}, passing=True)
    return Looked(_problem(answer, asked["jobs"]), answer)


def _failure(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "skillup":
        return f"its Python has no skillup {__version__}"
    if isinstance(error, OSError) and not error.errno:
        return "the connection to it broke"  # Dask's own words name no cause
    said = " ".join(str(error).split())
    return f"it could not be asked: {type(error).__name__}: {said[:300]}"


def _problem(answer: Mapping[str, Any], jobs: list[str]) -> str | None:
    if answer["version"] != __version__:
        return f"it has skillup {answer['version']}, and this is {__version__}"
    if answer.get("error"):
        return str(answer["error"])
    for name, profile in answer["profiles"].items():
        if profile["problem"]:
            return _of(name, profile["problem"])
    if answer["jobs"] != jobs:
        return "the suites make another plan there than here"
    return None
