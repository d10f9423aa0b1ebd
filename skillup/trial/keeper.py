"""Keeps a conversation's state before every message, so that it can be put back."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import anyio.to_thread

from skillup.engines.base import SessionRef
from skillup.schema.record import SessionFingerprint
from skillup.trial.home_copies import HomeCopies, HomeCopy
from skillup.trial.message import LiveSession
from skillup.trial.request import TrialRequest
from skillup.trial.signature import workspace_signature
from skillup.workspace import Snapshot


@dataclass(frozen=True, slots=True)
class Kept:
    """A conversation between two messages."""

    home: HomeCopy | None
    workspace: str | None
    snapshot: Snapshot
    session: SessionRef | None
    fingerprint: SessionFingerprint | None
    messages: int


class Keeper:
    """Of one conversation; nothing that it does changes what the agent finds."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._shared = live.context.profile.isolation == "shared"
        # Beside the home: shared turns of a family have a scratch of their own.
        self.copies = HomeCopies(live.context.home, live.context.home.parent)
        self._latest: Kept | None = None

    async def keep(self) -> Kept:
        """The state as it is now; not looked at again if no message was sent since."""
        if self._latest is None:
            live = self._live
            home, workspace = await anyio.to_thread.run_sync(self._look)
            self._latest = Kept(
                home, workspace, live.snapshot, live.session, live.fingerprint, live.messages
            )
        return self._latest

    def sent(self) -> None:
        """A message was sent: nothing is any more as it was kept."""
        self._latest = None

    async def put_back(self, kept: Kept) -> str | None:
        """Make all as it was when `kept` was; if that cannot be, why."""
        why = await anyio.to_thread.run_sync(self._put_back, kept)
        if why is None:
            live = self._live
            live.snapshot, live.session = kept.snapshot, kept.session
            live.fingerprint, live.messages = kept.fingerprint, kept.messages
            self._latest = kept
        return why

    def _look(self) -> tuple[HomeCopy | None, str | None]:
        if self._shared:
            return None, None
        try:
            home = self.copies.take()
        except OSError:
            home = None
        return home, workspace_signature(self._live.context.workspace)

    def _put_back(self, kept: Kept) -> str | None:
        if self._shared:
            return "with `isolation: shared` the agent's home cannot be put back"
        if kept.home is None:
            return "the agent's home could not be copied before the message"
        now = workspace_signature(self._live.context.workspace)
        if now is None or now != kept.workspace:
            return "the agent had touched the workspace"
        try:
            self.copies.put_back(kept.home)
        except OSError as refused:
            return f"the agent's home could not be put back: {refused.strerror or refused}"
        return None


def what_was_asked(request: TrialRequest) -> str:
    """A digest of case and engine: a conversation is only gone on with if they are the same."""
    job = request.job
    asked = {
        "case": job.loaded.case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "profile": job.profile.model_dump(mode="json"),
        "version": request.engine_version,
        "variant": job.variant,
        "variables": dict(request.variables),
    }
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
