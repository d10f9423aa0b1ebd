"""A suite's gates: what a run of it has to meet. By itself, as comparing runs needs no cases."""

from __future__ import annotations

from pydantic import Field

from skillup.schema.base import Confidence, Fraction, Model, NonNegative, NonNegativeInt


class Gates(Model):
    """When a run as a whole is not acceptable."""

    max_new_failures: NonNegativeInt | None = Field(None, description="Newly failing cases.")
    min_pass_rate: Fraction | None = Field(
        None, description="The least mean of its cases' pass rates."
    )
    max_cost_increase: NonNegative | None = Field(
        None, allow_inf_nan=False, description="0.2 means 20 % more."
    )
    max_not_run: NonNegativeInt | None = Field(None, description="Cases without a verdict.")
    confidence: Confidence | None = Field(None, description="How sure a difference must be.")
