"""What follows from the rules of docs/verdicts.md, whatever the case and the record."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillup.checks.evaluate import evaluate
from skillup.errors import RunDirectoryError
from skillup.judges import grade_record
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.grade import Grade
from skillup.schema.record import Record, TurnRecord, TurnStatus
from skillup.store.stored_run import parsed_record
from tests.judges.integrity.reference import ERROR, MUTATIONS, REMOVED, SKIPPED, WORD, reference
from tests.judges.integrity.test_integrity import graded as graded_reference
from tests.support.damaged import damaged
from tests.support.records import Recorded, call, make_record, make_turn

POSITIVE: list[dict[str, Any]] = [
    {"contains": "yes"},
    {"contains": {"any": ["yes", "fine"]}},
    {"equals": "yes"},
    {"matches": "^yes"},
    {"json": {"path": "$.k", "equals": 1}},
    {"tool_called": {"kind": "shell"}},
    {"tool_sequence": {"calls": ["Bash", "Write"]}},
    {"files_exist": "a.txt"},
    {"file_contains": {"path": "a.txt", "content": "a"}},
    {"turn_response_contains": {"turn": 1, "contains_any": "yes"}},
]
NEGATIVE: list[dict[str, Any]] = [
    {"not_contains": "hunter2"},
    {"must_not_contain": ["fine"]},
    {"tool_not_called": "Write"},
    {"files_not_exist": "b.txt"},
    {"none_of": [{"contains": "hunter2"}, {"tool_called": "Write"}]},
    {"contains": {"any": ["yes"], "none": ["hunter2"]}},
]
FAILS = {"contains": "nobody ever says this"}

besides = st.fixed_dictionaries(
    {"weight": st.sampled_from([0.0, 0.5, 1.0, 3.0]), "required": st.booleans()}
)


def checks(leaves: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    one = st.recursive(
        st.sampled_from(leaves),
        lambda below: st.builds(
            lambda key, children: {key: children},
            st.sampled_from(["any_of", "all_of"]),
            st.lists(below, min_size=1, max_size=2),
        ),
        max_leaves=3,
    )
    return st.builds(lambda check, beside: {**check, **beside}, one, besides)


responses = st.sampled_from(["yes", "no", "yes, hunter2", "fine", "", '{"k": 1}'])


@st.composite
def answers(draw: st.DrawFn, follow_ups: int = 0) -> TurnRecord:
    names = draw(st.lists(st.sampled_from(["Bash", "Write"]), max_size=2))
    calls = [call(name, "shell" if name == "Bash" else "write") for name in names]
    files = draw(st.sampled_from([{"a.txt": "a"}, {"a.txt": "x", "b.txt": ""}, {}]))
    ended: list[TurnStatus] = ["failed", "skipped", "error"]
    usual: list[TurnStatus] = ["completed"]
    status = draw(st.sampled_from([*usual * 7, *ended]))
    again = [
        draw(answers()).model_copy(update={"source": "follow_up", "asked_by": [place]})
        for place in range(follow_ups)
    ]
    said = draw(responses)
    return make_turn(said, status=status, calls=calls, files=files, follow_ups=again)


@st.composite
def trials(
    draw: st.DrawFn, leaves: list[dict[str, Any]], *, follow_ups: bool = True
) -> tuple[dict[str, Any], Recorded]:
    """A case, and a record of it."""
    some = st.lists(checks(leaves), max_size=2)
    gates = st.none() | st.sampled_from([{"contains": "yes"}, {"files_exist": "a.txt"}])
    turns, held = [], []
    for number in range(draw(st.integers(1, 3))):
        turn: dict[str, Any] = {"content": f"message {number}", "assertions": draw(some)}
        nested = draw(st.lists(checks(leaves), min_size=1, max_size=2)) if follow_ups else []
        asks = bool(nested) and draw(st.booleans())
        if asks:
            turn["assertions"].insert(0, {"prompt": "Again.", "assertions": nested})
        gate = draw(gates)
        if gate is not None:
            on_fail = draw(st.sampled_from(["fail", "skip_remaining"]))
            turn["post_condition"] = {**gate, "on_fail": on_fail}
        turns.append(turn)
        held.append(draw(answers(1 if asks else 0)))
    case: dict[str, Any] = {"id": "case", "input": {"turns": turns}, "assertions": draw(some)}
    for key, values in {
        "expect": gates,
        "aggregation": st.sampled_from([None, "mean", "min", "max"]),
        "pass_threshold": st.sampled_from([None, 0.0, 0.3, 0.5, 0.8, 1.0]),
    }.items():
        value = draw(values)
        if value is not None:
            case[key] = value
    if draw(st.booleans()):
        failing = [] if leaves is POSITIVE else draw(some)
        required = draw(st.booleans())
        case["judge"] = {"success": draw(some), "failure": failing, "required": required}
    return case, make_record(*held)


def graded(case: dict[str, Any], recorded: Recorded, record: Record | None = None) -> Grade:
    made = Case.model_validate(case)
    return grade_record(record or recorded.record, recorded.read_file, case=made)


@given(trials([*POSITIVE, *NEGATIVE]))
@settings(max_examples=50)
def test_a_pass_rests_on_a_passed_check_of_a_weight(trial: Any) -> None:
    """V1: no PASS without a passed check that weighs something, nor with a required one failed."""
    grade = graded(*trial)
    if grade.status != "PASS":
        return
    deciding = [*grade.assertions, *(c for turn in grade.turns for c in turn.deciding_checks())]
    assert any(check.passed and check.weight for check in deciding)
    assert all(check.passed for check in deciding if check.required)
    assert all(turn.status == "completed" for turn in grade.turns)
    assert [turn.turn_number for turn in grade.turns] == [
        number for number, _ in enumerate(trial[0]["input"]["turns"], start=1)
    ]


@given(trials([*POSITIVE, *NEGATIVE], follow_ups=False), besides, st.integers(0, 4), st.data())
@settings(max_examples=50)
def test_a_check_more_that_fails_makes_no_pass(
    trial: Any, beside: dict[str, Any], place: int, data: st.DataObject
) -> None:
    """V1: whatever it weighs, wherever it stands."""
    case, recorded = trial
    before = graded(case, recorded)
    more = copy.deepcopy(case)
    if place == 0:
        more["assertions"].append({**FAILS, **beside})
    elif place == 1:
        turn = data.draw(st.sampled_from(more["input"]["turns"]))
        turn["assertions"].append({**FAILS, **beside})
    elif place == 2:
        more["expect"] = {**more.get("expect", {}), "must_contain": FAILS["contains"]}
    elif place == 3:
        more.setdefault("judge", {}).setdefault("success", []).append({**FAILS, **beside})
    else:
        matched = {"none_of": [FAILS]}
        more.setdefault("judge", {}).setdefault("failure", []).append(matched)
    after = graded(more, recorded)
    assert after.status != "PASS" or before.status == "PASS"


def poorer(record: Record) -> Iterator[Record]:
    """`record` with one thing less."""

    def turns(*turns: TurnRecord) -> Record:
        return record.model_copy(update={"turns": list(turns)})

    for number, turn in enumerate(record.turns):
        before, after = record.turns[:number], record.turns[number + 1 :]
        yield turns(*before, *after)
        updates: list[dict[str, Any]] = [{"response": ""}, {"files": None}]
        updates += [{"status": status} for status in ("failed", "skipped", "error")]
        files = turn.files or {}
        updates += [{"files": {k: v for k, v in files.items() if k != name}} for name in files]
        items = turn.transcript
        updates += [{"transcript": [one for one in items if one is not item]} for item in items]
        for update in updates:
            yield turns(*before, turn.model_copy(update=update), *after)


@given(trials(POSITIVE))
@settings(max_examples=30)
def test_evidence_less_makes_no_pass_of_what_is_asked_for(trial: Any) -> None:
    """V1: a turn, an answer, a call, a file less; of checks that ask for something."""
    case, recorded = trial
    if graded(case, recorded).status == "PASS":
        return
    for record in poorer(recorded.record):
        assert graded(case, recorded, record).status != "PASS"


@given(trials([*POSITIVE, *NEGATIVE]), st.data())
@settings(max_examples=40)
def test_nothing_passes_with_a_turn_that_is_missing_or_was_not_completed(
    trial: Any, data: st.DataObject
) -> None:
    """V3: what forbids something does not hold of what never took place either."""
    case, recorded = trial
    number = data.draw(st.integers(0, len(recorded.record.turns) - 1))
    status = data.draw(st.sampled_from([None, "failed", "skipped", "error"]))
    turns = list(recorded.record.turns)
    if status is None:
        del turns[number]
    else:
        turns[number] = turns[number].model_copy(update={"status": status})
    grade = graded(case, recorded, recorded.record.model_copy(update={"turns": turns}))
    assert grade.status != "PASS"
    own = f"turn {number + 1}"
    places = [*grade.assertions, *(c for turn in grade.turns for c in turn.checks)]
    gated = status == "failed"  # its gate was asked while it stood as completed
    assert not any(
        c.passed for c in places
        if c.scope == own and not (gated and c.role == "post_condition") and c.role != "failure"
    )  # fmt: skip


@given(st.lists(answers(), min_size=1, max_size=3))
def test_what_is_forbidden_in_a_conversation_is_forbidden_in_each_turn(held: list[Any]) -> None:
    """S6: it passes only if it would pass at each of the turns it looks at."""
    recorded = make_record(*held)
    for spec in (*NEGATIVE[:3], NEGATIVE[4]):
        check = Check.model_validate(spec)
        alone = [evaluate(check, recorded.context(n)).passed for n, _ in enumerate(held, start=1)]
        assert evaluate(check, recorded.context()).passed == all(alone)


FAILING = (WORD, ERROR, SKIPPED, REMOVED)


@pytest.mark.parametrize("seed", range(10))
def test_a_damaged_record_is_refused_or_graded_and_makes_no_pass(seed: int) -> None:
    """1,000 records (100 for each seed): no traceback, and nothing passes that did not before."""
    luck = random.Random(seed)
    refused = 0
    for _ in range(100):
        name = luck.choice([None, *FAILING])
        whole = reference().record if name is None else MUTATIONS[name](reference().record)
        written = json.loads(whole.model_dump_json())
        for _ in range(luck.choice([1, 1, 1, 2, 3])):
            written = damaged(written, luck)
        text = json.dumps(written)
        text = text[: luck.randrange(len(text))] if luck.random() < 0.05 else text
        try:
            record = parsed_record(text.encode(), "a record")
        except RunDirectoryError:
            refused += 1
            continue
        status = graded_reference(record).status
        assert status in ("ERROR", "FAIL", "SKIP") or (status == "PASS" and name is None)
    assert 10 < refused < 85
