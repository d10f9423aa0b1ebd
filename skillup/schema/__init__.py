"""The data that flows through skillup: frozen models, no I/O.

Models do without `from __future__ import annotations`: pydantic would compile each annotation anew.

Files that people write: :mod:`case <skillup.schema.case>`, :mod:`suite <skillup.schema.suite>`,
:mod:`profile <skillup.schema.profile>`, made of :mod:`checks <skillup.schema.checks>` and
:mod:`conversation <skillup.schema.case>`. Files that skillup writes:
:mod:`record <skillup.schema.record>` and :mod:`grade <skillup.schema.grade>`.
"""
