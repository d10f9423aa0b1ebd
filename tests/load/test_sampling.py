"""Which items of a dataset are taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.load.datasets import Sampling, sampled
from skillup.load.model import LoadedSuite
from skillup.load.suites import load_paths
from tests.support.trees import make_tree


@pytest.fixture
def suites(tmp_path: Path) -> tuple[LoadedSuite, ...]:
    items = [{"id": f"item-{n}", "input": f"Message {n % 3}"} for n in range(30)]
    make_tree(
        tmp_path,
        {
            "eval.yaml": "name: d\ncases: {files: [own.yaml], datasets: [items.jsonl]}\n",
            "own.yaml": "input: {prompt: x}\nassertions: [{contains: x}]\n",
            "items.jsonl": "\n".join(map(json.dumps, items)),
        },
    )
    return load_paths([tmp_path]).suites


def ids(suites: list[LoadedSuite]) -> list[str]:
    return [case.case.id for suite in suites for case in suite.cases]


def test_an_item_is_chosen_by_its_id_or_its_message(suites: tuple[LoadedSuite, ...]) -> None:
    assert ids(sampled(suites, Sampling(item="ITEM-17"))) == ["item-17"]
    assert len(ids(sampled(suites, Sampling(item="message 2")))) == 10


def test_a_sample_is_the_same_for_the_same_seed(suites: tuple[LoadedSuite, ...]) -> None:
    first = ids(sampled(suites, Sampling(size=5, seed=1)))

    assert first == ids(sampled(suites, Sampling(size=5, seed=1)))
    assert first != ids(sampled(suites, Sampling(size=5, seed=2)))
    assert len(first) == 6, "the suite's own case stays"
    assert first[1:] == sorted(first[1:], key=lambda name: int(name.split("-")[1]))


def test_an_item_that_is_not_there_is_told_with_those_that_are(
    suites: tuple[LoadedSuite, ...],
) -> None:
    with pytest.raises(UsageError, match="no item has `nobody`") as refused:
        sampled(suites, Sampling(item="nobody"))
    assert "item-0, item-1" in (refused.value.hint or "")


def test_items_of_a_suite_without_a_dataset_are_refused(tmp_path: Path) -> None:
    make_tree(
        tmp_path,
        {"eval.yaml": "name: d\n", "c.yaml": "input: {prompt: x}\nassertions: [{contains: x}]\n"},
    )
    with pytest.raises(UsageError, match="no suite given here has one"):
        sampled(load_paths([tmp_path]).suites, Sampling(size=1))
