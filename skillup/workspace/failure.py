"""How preparing a workspace fails: inside by an exception, outside as a TurnError."""

from __future__ import annotations

from skillup.schema.record import ErrorKind, TurnError

_EVIDENCE_CHARACTERS = 4000


class PreparationError(Exception):
    """Carries the TurnError that :func:`skillup.workspace.prepare_workspace` returns."""

    def __init__(self, message: str, *, evidence: str = "", kind: ErrorKind = "setup") -> None:
        super().__init__(message)
        self.error = TurnError(kind=kind, message=message, evidence=_end_of(evidence.strip()))


def _end_of(text: str) -> str:
    """The last part of a long output: that is where commands say what went wrong."""
    if len(text) <= _EVIDENCE_CHARACTERS:
        return text
    return f"[…]\n{text[-_EVIDENCE_CHARACTERS:]}"
