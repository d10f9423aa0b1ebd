"""The rules of docs/verdicts.md by number: examples of each, and how the code could break it.

An example is a question with one right answer. A mutant changes one place of the grading code; some
example of the rule that it breaks must then be wrong. `python -m tests.judges.integrity.rules`
tries all of them, each in a process of its own, and prints what survived.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

YES, NO = {"contains": "yes"}, {"contains": "absent"}
NOT_REQUIRED = {"failure": [YES], "required": False}
ASKED = "Is polite"  # of a reader, whom nobody asks here: an error
AGAIN = {"prompt": "Again.", "assertions": [{"contains": "fine"}]}
SAID_NO = {"contains": "no"}
SKIP_REST = {"contains": "yes", "on_fail": "skip_remaining"}


def graded(case: dict[str, Any], *said: Any, **record: Any) -> Any:
    """The grade of a conversation; what was said is an answer, or the fields of a turn."""
    from skillup.judges import grade_record
    from skillup.schema.case import Case
    from tests.support.records import make_record, make_turn

    turns = [make_turn(**one) if isinstance(one, dict) else one for one in said]
    recorded = make_record(*turns, **record)
    made = Case.model_validate({"id": "case", **case})
    return grade_record(recorded.record, recorded.read_file, case=made)


def turns(*checks: list[Any], **case: Any) -> dict[str, Any]:
    made = [{"content": f"message {n}", "assertions": c} for n, c in enumerate(checks)]
    return {"input": {"turns": made}, **case}


def whole(*checks: Any, of: int = 2, **case: Any) -> dict[str, Any]:
    return {"input": {"turns": ["message"] * of}, "assertions": list(checks), **case}


def gate(condition: dict[str, Any], *checks: Any, then: int = 0, **case: Any) -> dict[str, Any]:
    first = {"content": "first", "post_condition": condition, "assertions": list(checks)}
    return {"input": {"turns": [first, *["then"] * then]}, **case}


def is_(status: str, case: dict[str, Any], *said: Any, **record: Any) -> Callable[[], bool]:
    return lambda: graded(case, *said, **record).status == status


def scores(score: float, case: dict[str, Any], *said: Any, **record: Any) -> Callable[[], bool]:
    return lambda: graded(case, *said, **record).score == score


def found(*passed: bool) -> Callable[..., Callable[[], bool]]:
    """Whether the checks of the conversation pass so."""
    return lambda case, *said: (
        lambda: [c.passed for c in graded(case, *said).assertions] == [*passed]
    )


def followed(said: str, *again: tuple[int, str]) -> dict[str, Any]:
    """A turn with answers to the follow-ups of its checks, by their places."""
    from tests.support.records import make_turn

    held = [make_turn(text, source="follow_up", asked_by=[place]) for place, text in again]
    return {"response": said, "follow_ups": held}


def merged(case: dict[str, Any], **suite: Any) -> list[str]:
    """What the judges look for, of a case in a suite."""
    from skillup.load.model import merge_defaults
    from skillup.schema.case import Case
    from skillup.schema.suite import Suite

    made = Case.model_validate({"input": {"prompt": "hi"}, **case})
    judges = merge_defaults(made, Suite.model_validate(suite), default_id="x").all_judges()
    return [check.key_and_spec()[1].all[0] for judge in judges for check in judge.success]


def judge(text: str) -> dict[str, Any]:
    return {"success": [{"contains": text}]}


def evaluated() -> list[bool]:
    """Of a conversation whose `expect` fails, what was evaluated."""
    checks = [ASKED, NO, {"any_of": [ASKED, NO]}]
    return [c.evaluated for c in graded(whole(*checks, of=1, expect=NO), "yes").assertions]


DONE = {"status": "failed", "post_condition_passed": False, "reason": "why"}
STOPPED = {"response": "", "status": "skipped", "reason": "not sent"}
BROKEN_OFF = {**STOPPED, "response": "I was ab"}
ERROR = {"response": "", "status": "error"}
REQUIRED = {**NO, "required": True}
TELLS = {"not_contains": "hunter2"}

CALL = {"id": "1", "name": "W", "kind": "write", "arguments": {"path": "b.txt", "tags": ["new", 1]}}
WROTE = {"response": "yes", "transcript": [{"type": "tool_call", "tool_call": CALL}]}
WRONG_PATH = {"tool_not_called": {"kind": "write", "args": {"path": "B.TXT", "tags": ["NEW", 1]}}}

EXAMPLES: dict[int, list[Callable[[], bool]]] = {
    1: [
        is_("FAIL", gate(NO), "yes"),
        is_("SKIP", gate({**NO, "on_fail": "skip_remaining"}), "yes"),
        is_("PASS", gate(YES), "yes"),
    ],
    2: [
        is_("FAIL", whole(YES, expect=NO, judge=judge("yes"), pass_threshold=0), "yes", "yes"),
        lambda: evaluated() == [True, False, True, False],
        is_("FAIL", whole(ASKED, expect=NO), "yes", "yes"),
        is_("ERROR", whole(ASKED, expect=YES), "yes", "yes"),
        lambda: len(graded(whole(of=1, expect=NO, judge=judge("yes")), "yes").assertions) == 1,
    ],
    3: [
        lambda: merged({"assertions": [YES]}, judge=judge("a")) == ["a"],
        lambda: merged({"expect": YES, "judge": {"id": "x"}}, judge=judge("a")) == ["a"],
        lambda: merged({"judge": judge("own")}, judge=judge("a")) == ["own"],
        lambda: merged({}, judge=judge("a"), cases={"defaults": {"judge": judge("b")}}) == ["b"],
        is_("FAIL", whole(YES, of=1, expect=YES, judge=judge("absent")), "yes"),
    ],
    4: [
        is_("ERROR", turns([YES], [YES]), "yes", ERROR),
        is_("ERROR", turns([YES], [YES]), "yes", {**ERROR, "error": None}),
        is_("ERROR", turns([REQUIRED], [{"rubric": ASKED, "weight": 0}]), "yes", "yes"),
        is_("ERROR", turns([YES], assertions=[ASKED]), "yes"),
        is_("ERROR", turns([YES, {"golden_file": "not there"}]), "yes"),
        lambda: graded(
            turns([NO, {"prompt": "x", "assertions": [ASKED]}]), followed("yes", (1, "x"))
        ).status
        == "ERROR",
    ],
    5: [is_("SKIP", turns([YES]), skipped="depends on a")],
    6: [
        is_("FAIL", gate(SKIP_REST, REQUIRED, then=1), "no", STOPPED),
        is_("FAIL", turns([YES, REQUIRED], pass_threshold=0), "yes"),
        is_("FAIL", gate(YES, YES), {**DONE, "response": "yes"}),
    ],
    7: [
        is_("SKIP", gate(SKIP_REST, NO, then=1), "no", STOPPED),
        is_("SKIP", {**gate(SKIP_REST, then=1), "assertions": [REQUIRED]}, "no", STOPPED),
        # a gate of an edited case, which was not there when the turns were held
        is_("PASS", gate({**YES, "on_fail": "judge"}, then=1, assertions=[SAID_NO]), "no", "bye"),
        is_("FAIL", gate({**YES, "on_fail": "judge"}, then=1, assertions=[SAID_NO]), "yes", "bye"),
    ],
    8: [
        is_("FAIL", turns([])),
        is_("FAIL", turns([]), "yes"),
        is_("FAIL", whole(expect={"must_contain": [], "files_not_exist": []}), "yes", "yes"),
        is_("FAIL", turns([NO], pass_threshold=0), "yes"),
        is_("FAIL", turns([{**NO, "weight": 0}]), "yes"),
        is_("FAIL", turns([{**YES, "weight": 0, "required": True}]), "yes"),
    ],
    9: [
        is_("FAIL", turns([YES], [], pass_threshold=0.5), "yes"),
        is_("FAIL", turns([YES], [], pass_threshold=0.5), "yes", STOPPED),
        is_("FAIL", turns([YES], [REQUIRED], pass_threshold=0.1), "yes"),
    ],
    10: [
        is_("FAIL", turns([YES, NO]), "yes"),
        is_("FAIL", turns([YES, NO], pass_threshold=0.6), "yes"),
        is_("PASS", turns([YES, NO], pass_threshold=0.5), "yes"),
        is_("PASS", turns([YES], [NO], aggregation="max"), "yes", "yes"),
    ],
    11: [is_("PASS", turns([YES]), "yes"), is_("PASS", whole(YES, TELLS), "yes", "yes")],
    12: [
        is_("FAIL", turns([YES, {**REQUIRED, "weight": 0}]), "yes"),
        is_("FAIL", turns([YES], [REQUIRED], aggregation="max"), "yes", "yes"),
        is_("FAIL", whole(YES, {**REQUIRED, "weight": 0.1}, of=1, pass_threshold=0.5), "yes"),
        # V1, V4: within `all_of`, too
        is_("FAIL", whole({"all_of": [REQUIRED, YES]}, YES, YES, pass_threshold=0.5), "yes", "yes"),
        lambda: graded(
            turns([{"all_of": [{"all_of": [REQUIRED]}]}, AGAIN]), followed("no", (1, "fine"))
        ).status
        == "FAIL",
    ],
    13: [
        is_("FAIL", whole(YES, of=1, expect={**YES, **TELLS}, pass_threshold=0), "yes hunter2"),
        is_("FAIL", whole(YES, of=1, judge=judge("absent"), pass_threshold=0), "yes"),
        is_(
            "PASS",
            whole(YES, of=1, judge={**judge("absent"), "required": False}, pass_threshold=0.5),
            "yes",
        ),
        lambda: len(
            graded(gate(YES, NO, AGAIN), followed("yes", (1, "fine"))).turns[0].deciding_checks()
        )
        == 2,
        is_("FAIL", gate({**YES, "must_contain": "absent"}, YES, pass_threshold=0), "yes"),
    ],
    14: [
        is_("PASS", turns([YES, {**NO, "weight": 0}]), "yes"),
        is_("FAIL", turns([{**YES, "weight": 0}]), "yes"),
        lambda: graded(
            turns([NO, {"prompt": "x", "assertions": [YES, {**NO, "weight": 0}]}]),
            followed("no", (1, "yes")),
        ).status
        == "PASS",
    ],
    15: [
        scores(0.75, turns([{**YES, "weight": 3}, NO]), "yes"),
        scores(0.0, turns([YES, REQUIRED]), "yes"),
        scores(0.5, turns([YES], []), "yes", STOPPED),
        scores(0.5, turns([], [NO]), "yes", "yes"),
        scores(0.5, {"input": {"prompt": "x"}, "assertions": [YES, NO]}, "yes"),
    ],
    16: [
        scores(0.5, turns([YES], [NO]), "yes", "yes"),
        scores(0.0, turns([YES], [NO], aggregation="min"), "yes", "yes"),
        scores(1.0, turns([YES], [NO], aggregation="max"), "yes", "yes"),
        scores(0.666667, turns([YES], [YES], assertions=[NO]), "yes", "yes"),
    ],
    17: [
        is_("FAIL", turns(*[[]] * 9, [YES, NO], pass_threshold=0.8), *["yes"] * 10),
        is_("FAIL", turns([], [YES, NO], aggregation="max"), "yes", "yes"),
        is_("FAIL", turns([YES], assertions=[NO, {**YES, "weight": 0}], pass_threshold=0.6), "yes"),
        is_(
            "FAIL",
            turns([YES, NO], assertions=[{**YES, "weight": 0}], pass_threshold=0.6),
            "yes",
        ),
    ],
    18: [
        is_("FAIL", turns([YES], [TELLS], pass_threshold=0.5), "yes", BROKEN_OFF),
        lambda: [c.passed for c in graded(turns([YES], [TELLS]), "yes", BROKEN_OFF).turns[1].checks]
        == [False],
        found(False, False)(whole(TELLS, {"tool_not_called": "Write"}), "yes", BROKEN_OFF),
        found(False)(whole({"none_of": [NO]}), "yes", BROKEN_OFF),
        found(False)(whole({**TELLS, "turn": 2}), "yes", BROKEN_OFF),
    ],
    19: [
        lambda: [
            c.passed
            for f in graded(
                turns([NO, {"prompt": "x", "assertions": [{"equals": "b"}, TELLS]}]),
                followed("hunter2", (1, "b")),
            ).turns[0].follow_ups
            for c in f.checks
        ]
        == [True, True],
        is_("PASS", turns([TELLS], [YES]), "yes", "yes hunter2"),
    ],
    20: [
        found(False, True)(whole(YES, {"contains": "bye"}), "yes", "bye"),
        found(False, False)(whole(TELLS, {"must_not_contain": "hunter2"}), "hunter2", "bye"),
        found(False)(whole({"not_glob": "hunter*"}), "hunter2", "bye"),
        found(False)(whole({"contains": {"all": ["bye"], "none": ["hunter2"]}}), "hunter2", "bye"),
        found(False)(whole({"json": {"path": "$.k", "exists": False}}), '{"k": 1}', "{}"),
        found(False)(whole({"json": {"path": "$.k", "exists": False}}), '{"k": 1}', "bye"),
        found(True)(whole({"json": {"path": "$.k", "exists": False}}), "Which one?", "{}"),
        found(False)(whole({"json": {"path": "$.k", "exists": False}}), "Which one?", "bye"),
        lambda: not graded(whole(TELLS), followed("a", (0, "hunter2")), "bye").assertions[0].passed,
        lambda: not graded(
            whole({**TELLS, "turn": 1}), followed("a", (0, "hunter2"), (0, "b")), "bye"
        ).assertions[0].passed,
    ],
    21: [
        found(False)(whole({"none_of": [{"contains": "hunter2"}]}), "hunter2", "bye"),
        found(True)(whole({"none_of": [{"not_contains": "bye"}]}), "hunter2", "bye"),
        found(False)(whole({"none_of": [TELLS]}), "hunter2", "bye"),
        is_("FAIL", whole(judge={**judge("bye"), "failure": [YES]}), "yes", "bye"),
        is_("PASS", whole(judge={**judge("bye"), "failure": [{"equals": "b"}]}), "a", "bye"),
    ],
    22: [
        found(False, False)(whole(TELLS, {"none_of": [TELLS]}), "", ""),
        found(False, False)(whole({"skill_not_used": "x"}, {"tool_not_called": "x"}), "", ""),
        found(False)(whole({"tool_called": {"name": "x", "max": 0}}), "", ""),
        lambda: not graded(
            whole({"tool_not_called": "x"}, of=1), {"response": "a", "unread_lines": 1}
        ).assertions[0].passed,
        *(
            found(False, passes)(whole(TELLS, {"tool_not_called": "x"}), *said)
            for silent, passes in (("", False), ({**WROTE, "response": ""}, True))
            for said in ((silent, "bye"), ("bye", silent))
        ),
        found(True, True)(
            whole(TELLS, {"tool_not_called": "x"}), {"response": "", "slash_command": True}, "bye"
        ),
        found(False)(whole({"json": {"path": "$.k", "exists": False}}), "", "{}"),
    ],
    23: [
        is_("PASS", turns([{"contains": "YES"}]), "Yes"),
        is_("PASS", turns([{"contains": "Yes", "case_sensitive": True}]), "Yes"),
        is_("FAIL", turns([{"contains": "YES", "case_sensitive": True}]), "yes"),
        is_("FAIL", turns([{"matches": "YES"}]), "yes"),
        is_("PASS", turns([{"matches": "(?i)YES"}]), "yes"),
        is_("PASS", turns([{"json": {"path": "$.a", "equals": ["YES"]}}]), '{"a": ["yes"]}'),
        is_("FAIL", turns([{**WRONG_PATH, "case_sensitive": False}]), WROTE),
        is_("PASS", turns([{**WRONG_PATH, "case_sensitive": True}]), WROTE),
        is_("FAIL", turns([{"golden_file": "g"}]), "YES", references={"g": "yes"}),
        is_("PASS", turns([{"golden_file": "g"}]), "yes", references={"g": "yes"}),
    ],
    24: [
        is_("FAIL", whole(judge={"success": [YES, NO]}, of=1, pass_threshold=0), "yes"),
        is_("FAIL", whole(judge={"success": [YES], "failure": [YES]}, of=1), "yes"),
        is_(
            "FAIL",
            whole(judge={"success": [{**YES, "turn": 1}], "failure": [{**YES, "turn": 2}]}),
            "yes",
            "yes",
            execution_mode="single_shot",
        ),
        lambda: not graded(
            whole(judge={"success": [YES], "failure": [{"max_cost_usd": 1.0}]}, of=1), "yes"
        ).assertions[0].passed,
    ],
    25: [
        is_("FAIL", whole(judge={"failure": [NO]}, of=1), "yes"),
        is_("FAIL", whole(NO, of=1, judge={"failure": [NO]}, pass_threshold=0.5), "yes"),
        is_("PASS", whole(YES, of=1, judge={"failure": [NO]}), "yes"),
        is_("PASS", whole(of=1, judge={"failure": [NO], "otherwise": "pass"}), "yes"),
        *(
            is_(status, whole(YES, of=1, judge=NOT_REQUIRED, pass_threshold=least), "yes")
            for status, least in (("PASS", 0.5), ("FAIL", 0.6), ("FAIL", None))
        ),
    ],
    26: [
        lambda: graded(turns([NO, AGAIN]), followed("no", (1, "fine"))).status == "PASS",
        lambda: graded(
            turns([NO, {"prompt": "x", "assertions": [{**YES, "weight": 0}]}], assertions=[YES]),
            followed("yes", (1, "yes")),
        ).status
        == "FAIL",
        lambda: graded(
            turns([NO, {"prompt": "x", "assertions": [YES, NO]}], pass_threshold=0.5),
            followed("no", (1, "yes")),
        ).status
        == "FAIL",
    ],
    27: [
        lambda: graded(turns([NO, YES, AGAIN]), followed("no", (2, "fine"))).score == 1.0,
        lambda: len(
            graded(turns([NO, {**YES, "required": True}, AGAIN]), followed("yes", (2, "fine")))
            .turns[0]
            .deciding_checks()
        )
        == 2,
    ],
    28: [
        lambda: graded(turns([REQUIRED, AGAIN]), followed("no", (1, "fine"))).status == "FAIL",
        lambda: graded(turns([{**REQUIRED, **AGAIN}]), followed("no", (0, "fine"))).status
        == "FAIL",
        lambda: graded(
            turns([{**NO, "prompt": "x", "assertions": [REQUIRED]}, {**NO, **AGAIN}]),
            followed("no", (0, "no"), (1, "fine")),
        ).status
        == "FAIL",
        lambda: graded(gate(NO, NO, AGAIN), followed("no", (1, "fine"))).status == "FAIL",
        lambda: graded(
            turns([NO, AGAIN], assertions=[NO]), followed("no", (1, "fine"))
        ).status
        == "FAIL",
    ],
}  # fmt: skip
"""By the rule's number."""

VERDICT = GRADING = "skillup.judges.grade"
SCORING = LEVELS = SCOPE = "skillup.checks.evaluate"
REGISTRY, EVALUATE = "skillup.checks.registry", "skillup.checks.evaluate"
GRADE, MERGE = "skillup.schema.grade", "skillup.load.model"
FOLDING = "skillup.checks.text"

MUTANTS: list[tuple[int, str, str, str]] = [
    (1, VERDICT, 'condition.on_fail == "fail"', "False"),
    (1, VERDICT, 'condition.on_fail == "fail"', "True"),
    (2, GRADING, "if not all(result.passed for result in results):", "if False:"),
    (2, GRADING, 'context = replace(context, withheld="not asked: `expect` failed")', "pass"),
    (2, EVALUATE, "assertable=False, evaluated=False", "assertable=False"),
    (2, EVALUATE, "evaluated=absent.evaluated,", ""),
    (3, MERGE, "or _decides(base)):", "or (_decides(base) and not case.assertions)):"),
    (3, MERGE, "if not _decides(judge) and", "if False and"),
    (3, MERGE, "_fill(case.judge, base) if case.judge is not None else base", "base"),
    (3, MERGE, "_fill(near, far)", "far"),
    (3, GRADING, "results.extend(result.model_copy", "list(result.model_copy"),
    (4, VERDICT, "if error is not None:", "if error is None:"),
    (4, GRADING, 'if turn.status == "error":', "if False:"),
    (4, GRADING, "checks.extend(check for", "list(check for"),
    (4, GRADING, "[*checks, *conversation]", "checks"),
    (4, GRADING, "[*checks, *conversation]", "conversation"),
    (5, VERDICT, "if record.skipped is not None:", "if False:"),
    (6, VERDICT, "(check.assertable or closed is None)", "closed is None"),
    (6, VERDICT, "if check.required and not gate", "if False and not gate"),
    (7, VERDICT, "(check.assertable or closed is None)", "True"),
    (7, VERDICT, "if closed is not None:", "if False:"),
    (8, VERDICT, "if not speaks_for_it(check for _, check in deciding):", "if False:"),
    (8, SCORING, "any(result.passed and result.weight for", "any(result.passed for"),
    (9, VERDICT, "    if turn is not None:", "    if False:"),
    (9, VERDICT, "turn = next(iter(judged.missing), None)", "pass"),
    (9, VERDICT, 'if turn.status != "completed"), None)', "if False), None)"),
    (10, VERDICT, "_falls_short(judged, deciding, bool(failed))", "None"),
    (10, VERDICT, "if threshold is None and not failed:", "if threshold is None:"),
    (10, VERDICT, "1.0 if threshold is None else threshold", "1.0"),
    (10, VERDICT, "return None if reaches(score, least)", "return None if failed and 0"),
    (11, VERDICT, 'return "PASS"', 'return "FAIL"'),
    (12, SCORING, "(r.weight or r.required)", "r.weight"),
    (13, GRADING, 'role="expect", required=True', 'role="expect"'),
    (13, GRADING, '"required": judge.required', '"required": True'),
    (13, GRADING, '"required": judge.required', '"required": False'),
    (13, GRADING, 'role="post_condition", required=True', 'role="post_condition"'),
    (14, SCORING, " and (r.weight or r.required)", ""),
    (15, SCORING, "        return 0.0\n    total", "        pass\n    total"),
    (15, SCORING, "if total else 1.0", "if total else 0.0"),
    (15, SCORING, "sum([r.weight * r.score", "sum([r.score"),
    (15, GRADING, 'if turn.status == "completed" else 0.0', "if True else 0.0"),
    (16, SCORING, '"min": min', '"min": max'),
    (16, SCORING, '"max": max', '"max": min'),
    (16, VERDICT, "if judged.conversation:", "if False:"),
    (17, VERDICT, "if any(check.weight for check in turn.deciding_checks())", "if True"),
    (17, VERDICT, "if any(check.weight for check in judged.conversation):", "if True:"),
    (17, VERDICT, "if any(check.weight for check in judged.conversation):", "if False:"),
    (18, SCOPE, "_problem([own]) or as_one", "as_one"),
    (18, SCOPE, '_problem(every) if every else', 'None if every else'),
    (18, SCOPE, "turn, problem or _problem(steps)", "turn, None"),
    (19, LEVELS, "(nested, replace(context, turn=answer))", "(nested, context)"),
    (19, LEVELS, "(checks, replace(context, turn=turn))", "(checks, context)"),
    (20, REGISTRY, "if forbids != negated else", "if True else"),
    (20, REGISTRY, "if forbids != negated else", "if False else"),
    (20, REGISTRY, "return not (spec.all or spec.any)", "return False"),
    (20, REGISTRY, "text.glob, wanted=False), forbids", "text.glob, wanted=False), empty_answer"),
    (20, REGISTRY, 'getattr(spec, "exists", None) is False', "False"),
    (20, REGISTRY, "(forbidden, True)]", "(forbidden, False)]"),
    (20, SCOPE, "tuple(record.executed())", "tuple(turns)"),
    (20, SCOPE, "steps = tuple(turn.executed())", "steps = (turn.last_answer(),)"),
    (21, EVALUATE, "negated=not mode.negated", "negated=False"),
    (21, GRADING, 'role="failure", negated=True', 'role="failure"'),
    (21, REGISTRY, "if forbids != negated else", "if forbids or negated else"),
    (22, REGISTRY, "if _forbids(kind, spec) != negated and found.passed != negated:", "if False:"),
    (22, REGISTRY, "if lines and (", "if 0 and ("),
    (22, REGISTRY, "if unanswered is not None:", "if False:"),
    (22, REGISTRY, "if not turn.slash_command] or subject.turns", "] or subject.turns"),
    (22, REGISTRY, "] or subject.turns\n", "][-1:] or subject.turns\n"),
    (22, REGISTRY, "is_said(turn.response) or bool(turn.tool_calls)", "is_said(turn.response)"),
    (23, FOLDING, "folded = text if case_sensitive else", "folded = text if True else"),
    (23, FOLDING, "folded = text if case_sensitive else", "folded = text if False else"),
    (23, FOLDING, "plain(text) if case_sensitive else", "plain(text) if True else"),
    (23, FOLDING, "plain(text) if case_sensitive else", "plain(text) if False else"),
    (23, "skillup.checks.registry", "in plain(text).strip()", "in plain(text).casefold().strip()"),
    (24, GRADING, "absent = result.assertable and", "absent ="),
    (24, GRADING, "result.error is None and not result.passed", "True"),
    (24, GRADING, "for check in judge.success]", "for check in judge.success[:1]]"),
    (25, GRADING, '"weight": 0.0 if absent else result.weight,', ""),
    (25, GRADING, "0.0 if absent else result.weight", "0.0"),
    (25, GRADING, 'judge.otherwise == "pass"', "False"),
    (26, LEVELS, "return speaks_for_it(results) and", "return"),
    (26, LEVELS, " and not unmet(results)", ""),
    (26, LEVELS, "if passes(f.checks)), None)", "if False), None)"),
    (27, GRADE, "[*(check for check in own if check.required), *healed]", "[*healed]"),
    (27, GRADE, "[*(check for check in own if check.required), *healed]", "[*own, *healed]"),
    (28, LEVELS, " or any(r.required and not r.passed for r in every):", ":"),
    (28, LEVELS, "*(r for one in follow_ups for r in one.checks)", ""),
]  # fmt: skip
"""The rule that it breaks, the module, what stands there, and what stands there instead."""


_AGAIN = ("skillup.checks", "skillup.judges", "skillup.trial", "skillup.load", "tests.support")


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds one module with its source changed."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def get_source(self, fullname: str) -> str:
        return self.source

    def is_package(self, fullname: str) -> bool:
        return False


def wrong(rule: int) -> list[int]:
    """The places of the rule's examples that are not as they should be."""
    found = []
    for place, example in enumerate(EXAMPLES[rule]):
        try:
            right = example()
        except Exception:  # noqa: BLE001  a mutant that crashes is found, too
            right = False
        if not right:
            found.append(place)
    return found


def _survives(rule: int, name: str, old: str, new: str) -> str | None:
    """Why nobody notices the mutant; None: somebody does. In a process of its own."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text("utf-8")
    if source.count(old) != 1:
        return f"{old!r} stands {source.count(old)} times in {name}"
    # What imports the changed module is imported again; of the rest only what may.
    again = ("skillup.", "tests.support") if name == GRADE else _AGAIN
    for module in [one for one in sys.modules if one.startswith(again)]:
        del sys.modules[module]
    sys.meta_path.insert(0, _Changed(name, source.replace(old, new)))
    return None if wrong(rule) else "survived"


def _try_all(mutants: Sequence[tuple[int, str, str, str]]) -> list[str]:
    survivors = []
    for rule, name, old, new in mutants:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, (_survives(rule, name, old, new) or "").encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as said:
            why = said.read()
        _, status = os.waitpid(child, 0)
        if why or status:
            survivors.append(f"rule {rule}: {name}: {old} -> {new}: {why or 'died'}")
    return survivors


if __name__ == "__main__":
    graded(turns([YES]), "yes")  # what no mutant changes is imported once
    print(json.dumps(_try_all(MUTANTS)))
