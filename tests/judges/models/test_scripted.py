"""The written-down judge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from skillup.judges.llm import RubricAnswer
from skillup.judges.question import AskModel, ModelAnswer, ModelQuestion
from skillup.schema.judge_model import JudgeModel
from tests.support.asking import Verdict, asking, cache

YES = "answer: {passed: true, reason: It asks.}"
NO = "answer: {passed: false, reason: It does not.}"


def asked(
    prompt: str = "Does it ask first?",
    system: str = "You judge.",
    form: type[BaseModel] = Verdict,
    sample: int = 0,
) -> ModelQuestion:
    return ModelQuestion(
        JudgeModel(model="scripted:judges/strict.yaml"), system, prompt, form, sample
    )


def script(root: Path, text: str) -> None:
    (root / "judges").mkdir(exist_ok=True)
    (root / "judges" / "strict.yaml").write_text(text)


def ask(root: Path, *questions: ModelQuestion, run: Path | None = None) -> list[ModelAnswer]:
    async def work(asker: AskModel) -> list[ModelAnswer]:
        return [await asker(question) for question in questions]

    return asking(work, environment={}, suite_root=root, cached=cache(run))


def test_the_first_rule_that_applies_answers(tmp_path: Path) -> None:
    script(tmp_path, f"rules:\n  - when: {{prompt: ASK FIRST}}\n    {YES}\n  - {NO}\n")
    first, other = ask(tmp_path, asked(), asked("Is it polite?"))
    assert first.value == Verdict(passed=True, reason="It asks.")
    assert other.value == Verdict(passed=False, reason="It does not.")
    assert (first.usage, first.cost_usd) == (None, None)
    assert first.model == "scripted:judges/strict.yaml"


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        ("ask first", True),
        ("[ask, first]", True),
        ("[ask, second]", False),
        (r"{prompt: 'ask\s+first'}", True),
        ("{system: judge}", True),
        ("{system: user}", False),
        ("{repetition: 1}", True),
        ("{repetition: 2}", False),
    ],
)
def test_conditions(tmp_path: Path, when: str, applies: bool) -> None:
    script(tmp_path, f"rules:\n  - when: {when}\n    {YES}\n  - {NO}\n")
    (answer,) = ask(tmp_path, asked())
    assert isinstance(answer.value, Verdict)
    assert answer.value.passed is applies


def test_an_edited_script_is_read_again_and_a_run_keeps_its_answer(tmp_path: Path) -> None:
    script(tmp_path, f"rules:\n  - {YES}\n")
    run = tmp_path / "run"
    ask(tmp_path, asked(), run=run)
    script(tmp_path, f"rules:\n  - {NO}\n# edited\n")
    (in_the_run,) = ask(tmp_path, asked(), run=run)
    (in_another,) = ask(tmp_path, asked(), run=tmp_path / "other")
    assert in_the_run.value == Verdict(passed=True, reason="It asks.")
    assert in_another.value == Verdict(passed=False, reason="It does not.")


CRITERIA = """
criteria:
  - {when: asks, found: ['shall I', '\\?']}
  - {when: names the folder, found: data}
  - {when: nothing is deleted, not_found: [deleted, removed]}
"""
TEXTS = ("It asks", "It names the folder", "Nothing is deleted")


def criteria(judged: str, *texts: str) -> ModelQuestion:
    ids = tuple(f"c{number}" for number in range(1, len(texts) + 1))
    return replace(asked(form=RubricAnswer), ids=ids, criteria=texts, judged=judged)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("2 logs in data. Shall I?", ["pass", "pass", "pass"]),
        ("I deleted 2 logs in data.", ["fail", "pass", "fail"]),
        ("", ["fail", "fail", "pass"]),
    ],
)
def test_each_criterion_is_decided_by_what_the_judged_answer_says(
    tmp_path: Path, answer: str, expected: list[str]
) -> None:
    script(tmp_path, CRITERIA)
    (found,) = ask(tmp_path, criteria(answer, *TEXTS))
    assert [verdict.verdict for verdict in found.value.verdicts] == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "criteria: [{when: weather, found: sun}]",
            "none of the `criteria` of scripted:judges/strict.yaml is about c1: It asks",
        ),
        ("criteria: [{when: weather}]", "needs one of `found`"),
        ("rules: []\n", "strict.yaml:1:1: rules: it is empty"),
        ("rules:\n  - when: x\n", "strict.yaml:2:5: rules[0]: a rule needs one of"),
        ("rules:\n  - when: '('\n    answer: {}\n", "is not a valid regex"),
        ("{}", "needs one of `rules`"),
    ],
)
def test_a_judge_that_cannot_say_says_why(tmp_path: Path, text: str, said: str) -> None:
    script(tmp_path, text)
    (found,) = ask(tmp_path, criteria("Shall I?", *TEXTS))
    assert found.value is None
    assert said in (found.error or "")
