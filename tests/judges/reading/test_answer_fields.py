"""Numbers are numbers, booleans booleans, and reasons say something."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from skillup.judges.llm.quality import AspectGrade
from skillup.judges.llm.relevance import WindowAnswer
from skillup.judges.llm.rubric import CriterionVerdict
from skillup.judges.llm.similar import SimilarityAnswer

RIGHT: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (SimilarityAnswer, {"reason": "r", "score": 0.5}),
    (SimilarityAnswer, {"reason": "r", "score": 1}),
    (AspectGrade, {"reason": "r", "aspect": "flow", "grade": 4}),
    (AspectGrade, {"reason": "r", "aspect": "flow", "grade": 4.0}),
    (WindowAnswer, {"reason": "r", "relevant": False}),
    (CriterionVerdict, {"reason": "r", "id": "c1", "verdict": "pass"}),
]
WRONG: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (SimilarityAnswer, {"score": "0.5"}),
    (SimilarityAnswer, {"score": True}),
    (SimilarityAnswer, {"score": float("nan")}),
    (SimilarityAnswer, {"score": None}),
    (AspectGrade, {"grade": "4"}),
    (AspectGrade, {"grade": True}),
    (AspectGrade, {"grade": 4.5}),
    (WindowAnswer, {"relevant": "yes"}),
    (WindowAnswer, {"relevant": 1}),
    *[(form, {"reason": reason}) for form, _ in RIGHT[1:] for reason in ("", " \n")],
]


@pytest.mark.parametrize(("form", "data"), RIGHT)
def test_what_has_the_form_is_taken(form: type[BaseModel], data: dict[str, Any]) -> None:
    assert form.model_validate(data) == form.model_validate_json(json.dumps(data))


@pytest.mark.parametrize(("form", "change"), WRONG)
def test_what_only_resembles_it_is_refused(form: type[BaseModel], change: dict[str, Any]) -> None:
    data = next(data for known, data in RIGHT if known is form) | change
    with pytest.raises(ValidationError):
        form.model_validate(data)
    with pytest.raises(ValidationError):
        form.model_validate_json(json.dumps(data))
