"""The data that flows through skillup: frozen models, no I/O.

Files that people write: :mod:`case <skillup.schema.case>`, :mod:`suite <skillup.schema.suite>`,
:mod:`profile <skillup.schema.profile>`, made of :mod:`checks <skillup.schema.checks>` and
:mod:`conversation <skillup.schema.case>`. Files that skillup writes:
:mod:`record <skillup.schema.record>` and :mod:`grade <skillup.schema.grade>`.
"""
