"""The box of a trial: made of what its suite asks for, and what its agent needs to run in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import anyio

from skillup.engines.base import AddressedEngine, TrialContext
from skillup.load.profiles import MissingVariableError, expand
from skillup.sandbox.base import NO_BOX, Box, BoxPlan, NoBoxError, installation
from skillup.schema.record import TurnError
from skillup.trial.request import TrialRequest

T = TypeVar("T")


async def in_box(
    request: TrialRequest, work: Callable[[Box, Mapping[str, str]], Awaitable[T | TurnError]]
) -> T | TurnError:
    """What `work` makes in the trial's box, which is closed if that is an error.

    It is also given what suite and profile add to the agent's environment, filled in.
    """
    given = request.job.suite.suite.environment.env
    try:
        # The profile's own were filled in when it was read: once more would undo its `$$`.
        added = {name: expand(value, request.environment) for name, value in given.items()}
    except MissingVariableError as missing:
        message = f"the environment cannot be made: {'; '.join(missing.args)}"
        return TurnError(kind="setup", message=message)
    box = await _trial_box(request)
    if isinstance(box, TurnError):
        return box
    opened: T | TurnError | None = None
    try:
        opened = await work(box, {**added, **request.job.profile.env})
        return opened
    finally:
        if opened is None or isinstance(opened, TurnError):
            with anyio.CancelScope(shield=True):
                await box.close()


async def _trial_box(request: TrialRequest) -> Box | TurnError:
    """Where the trial's programs run. Its directories are made."""
    job, given = request.job, request.job.suite.suite.environment
    asked = given.asked(request.environment)
    if asked == "none":
        return NO_BOX
    from skillup.sandbox.opening import open_box

    if job.profile.isolation == "shared":
        what = "`isolation: shared` is your own home, which a sandbox hides"
        return TurnError(kind="setup", message=f"{what}; leave one of the two out")
    programs = installation(request.command, {**request.environment, **job.profile.env})
    readable = []
    for path in given.read:
        place = job.suite.root.absolute() / Path(path).expanduser()
        if not place.exists():
            return TurnError(kind="setup", message=f"`environment.read`: there is no {place}")
        if job.suite.path.resolve().is_relative_to(place.resolve()):
            what = f"`environment.read`: {place} holds the suite, and its answers"
            return TurnError(kind="setup", message=f"{what}; name what agents need of it")
        readable.append(place)
    for name in ("workspace", "home", "tmp"):
        (request.scratch / name).mkdir(mode=0o777 if name == "workspace" else 0o700, exist_ok=True)
    places = [(request.scratch / name).resolve() for name in ("workspace", "home", "tmp")]
    gateway, hosts = request.gateway, given.allowed_egress
    proxy = gateway.route("", hosts=hosts) if gateway is not None and hosts else None
    open_network = given.network_policy == "allow_all"
    url = proxy.proxy_url if proxy is not None else ""  # the user's own is out of reach
    plan = BoxPlan(
        writable=places[:2],
        temporary=places[2],
        readable=readable,
        programs=programs,
        program=None if given.command or not request.command else request.command[0],
        port=gateway.port if gateway is not None else 0,
        socket=gateway.socket if gateway is not None else Path(),
        proxy=proxy,
        variables={} if open_network else dict.fromkeys(_PROXIES, url),
        open_network=open_network,
        nested=job.profile.permission != "full",
        limits=given.limits,
        image=given.image,
    )
    try:
        return await open_box(asked, given, plan)
    except NoBoxError as problem:
        return TurnError(kind="setup", message=str(problem))


_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def unreachable(request: TrialRequest, trial: TrialContext) -> TurnError | None:
    """The model of an agent that asks it past the gateway, in a box without network."""
    info = trial.box.info
    if info is None or not trial.box.isolates or info.network or trial.gateway is not None:
        return None
    if not isinstance(request.engine, AddressedEngine):
        return None
    what = f"no way leads from the sandbox to the model of {trial.profile.name}"
    why = "with this login, or `gateway: off`, its requests do not go through skillup"
    fix = "name the model's hosts in `environment.allowed_egress`, or set a key"
    return TurnError(kind="setup", message=f"{what}: {why}; {fix}")
