"""docs/verdicts.md and the grading code say the same: a mutant that breaks a rule is noticed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.judges.integrity.rules import EXAMPLES, MUTANTS, wrong

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "verdicts.md"


@pytest.mark.parametrize("rule", EXAMPLES)
def test_the_examples_of_a_rule_hold(rule: int) -> None:
    assert wrong(rule) == []


def test_every_rule_of_the_page_has_examples_and_mutants() -> None:
    text = PAGE.read_text("utf-8")
    written = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert written == list(range(1, len(written) + 1))
    assert set(EXAMPLES) == set(written)
    assert {rule for rule, *_ in MUTANTS} == set(written)
    assert len(text.splitlines()) <= 120


def test_no_mutant_of_the_grading_code_survives() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.judges.integrity.rules"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == []
