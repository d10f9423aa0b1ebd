"""The tables of the index, version 1. Times are UTC in ISO 8601, so that they sort as text."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

INDEX_VERSION = 1

metadata = MetaData()

about = Table(
    "skillup_index",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
)
"""One row: the version of these tables."""

runs = Table(
    "skillup_runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("started_at", Text, nullable=False, index=True),
    Column("path", Text, nullable=False),
    Column("finished", Boolean, nullable=False),
    Column("gates", JSON, nullable=False),
)

until_decided = Table(
    "skillup_until_decided",
    metadata,
    Column("run_id", Text, primary_key=True),
)
"""The runs that were held so. A table of its own: indexes of before it are as good without."""

selections = Table(
    "skillup_selections",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("asked", Text, nullable=False),
    Column("narrowed", Boolean, nullable=False),
)
"""What runs were asked to choose. A table of its own for the same reason."""

trials = Table(
    "skillup_trials",
    metadata,
    Column("run_id", Text, ForeignKey("skillup_runs.run_id"), primary_key=True),
    # Its place in the run. Suite, case and number are no key: two suites may have the same name.
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("suite", Text, nullable=False),
    Column("case_id", Text, nullable=False),
    Column("engine", Text, nullable=False),
    Column("variant", Text, nullable=False),
    Column("trial", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("score", Float, nullable=False),
    Column("cost_usd", Float),
    Column("duration_ms", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Index("skillup_trials_of_case", "suite", "case_id", "engine", "variant"),
)
