"""Which model reads for a case: the one asked for, else the case's own, else the fallback."""

from __future__ import annotations

from skillup.load.merge import judge_settings
from skillup.schema.case import Case
from skillup.schema.judge import JudgeModel
from skillup.schema.suite import Suite

FALLBACK_VARIABLE = "SKILLUP_JUDGE_MODEL"
"""Names the model for cases that name none."""


def with_judge_model(
    case: Case, asked: str | None, fallback: str | None = None, suite: Suite | None = None
) -> Case:
    """`case` as it is judged; what its record then says is enough to judge it again.

    `asked` outranks the case's own model. The address and the key of that are not the other's; how
    it is asked is, or what the judges of the case and of its `suite` say where they name none.
    """
    own = case.judge_model
    name = asked or (fallback if own is None else None)
    if not name:
        return case
    if own is not None:
        settings = {"timeout_seconds": own.timeout_seconds, "repeat": own.repeat}
    else:
        settings = judge_settings(case, suite)
    model = JudgeModel.model_validate({"model": name, **settings})
    return case.model_copy(update={"judge_model": model})
