"""Which sandbox a trial gets: what the suite asks for, as far as it works on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import get_args

from skillup.sandbox import bubblewrap, containers
from skillup.sandbox.base import Box, BoxPlan, NoBoxError, Probe
from skillup.schema.record import SandboxInfo
from skillup.schema.suite import Environment, Limits, SandboxKind

PROBES: Mapping[str, Callable[[], Probe]] = {
    "bubblewrap": bubblewrap.probe,
    "podman": partial(containers.probe, "podman"),
    "docker": partial(containers.probe, "docker"),
}


def choose(asked: str, image: str | None) -> tuple[str, Probe]:
    """The kind that serves for the one asked for, and what was found of it. Raises NoBoxError.

    `auto` is bubblewrap, else a container of the image that the suite names, else none.
    """
    if asked not in get_args(SandboxKind):
        kinds = ", ".join(get_args(SandboxKind))
        raise NoBoxError(f"there is no sandbox `{asked}`; these are: {kinds}")
    if asked == "none":
        return "none", Probe()
    if asked in ("docker", "podman") and image is None:
        raise NoBoxError(f"`{asked}` needs an image; name it in `environment.image`")
    reasons = []
    for kind in PROBES if asked == "auto" else [asked]:
        if kind == "bubblewrap" or image is not None:
            found = PROBES[kind]()
            if found.problem is None:
                return kind, found
            reasons.append(f"{kind}: {found.problem}")
    if asked != "auto":
        raise NoBoxError(f"the sandbox does not work here: {reasons[0]}")
    return "none", Probe("no sandbox works here: " + "; ".join(reasons))


async def open_box(asked: str, environment: Environment, plan: BoxPlan) -> Box:
    """The box of a trial. Raises NoBoxError."""
    kind, found = choose(asked, plan.image)
    info = SandboxInfo(
        kind=kind,
        asked=asked,
        probe=found.version,
        image=plan.image if kind in ("docker", "podman") else None,
        network=["*"] if plan.open_network else environment.allowed_egress,
        read=environment.read,
        open=list(found.open),
        limits=plan.limits.model_dump(exclude_none=True),
    )
    if kind == "none":
        if environment.network_policy or environment.allowed_egress or info.limits:
            raise NoBoxError(f"{info.probe} (and the suite limits network or processes)")
        return Box(info)
    if kind == "bubblewrap":
        return bubblewrap.open_box(plan, info)
    return await containers.open_box(plan, info)


async def reopen_box(info: SandboxInfo, plan: BoxPlan) -> Box:
    """As that of a trial, for what judges it: without any network. Raises NoBoxError."""
    if info.kind == "none":
        return Box()
    plan = replace(plan, image=info.image, limits=Limits(**info.limits))
    return await open_box(info.kind, Environment.model_construct(), plan)
