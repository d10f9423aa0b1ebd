"""What keeps a model from being asked."""

from __future__ import annotations


class CannotAskError(Exception):
    """A model that cannot be asked as things are; the message says why and what to do.

    It does not leave this package: it becomes the `error` of an answer, or a case's problem.
    """
