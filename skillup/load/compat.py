"""Files of Alibaba's skill-up, said in our language: one pass before the defaults are merged.

A suite is skill-up's if its `eval.yaml` states ``schema_version: v1alpha1``, and so are its cases;
a case file may state it itself. Only keys that skill-up has get its meaning, which was looked up
in its source: `internal/config`, `internal/judge`, `internal/evaluator/multiturn.go`.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from skillup.adapters import HOME_VARIABLES
from skillup.errors import Problem
from skillup.load.model import merge_defaults
from skillup.load.yaml_reader import Document, Loc
from skillup.schema import templates
from skillup.schema.base import Model
from skillup.schema.case import Case, Turn
from skillup.schema.checks import Check, CheckSet, TurnNotContains
from skillup.schema.judge import JudgeConfig
from skillup.schema.suite import Suite

VERSION = "v1alpha1"
_SECONDS, _TURNS, _THRESHOLD = 300.0, 10, 0.7
"""What holds where a file does not say: `timeout_seconds`, `max_turns`, `pass_threshold`."""
_FOR_EVER = 31_536_000.0
_RULES = frozenset(
    {"must_contain", "must_contain_all", "must_contain_any", "must_not_contain", "exit_code"}
    | {"output_contains", "output_matches", "tool_called", "files_exist", "files_not_exist"}
    | {"turn_response_contains", "turn_response_not_contains", "tool_called_in_turn"}
    | {"tool_not_called_in_turn", "file_contains", "golden_file"}
)
_UNUSED: dict[Loc, set[str]] = {
    ("engine",): {"version", "entry", "kwargs"},
    ("engine", "model"): {"params"},
    ("environment",): {
        *("sandbox_template", "workspace_mount", "use_server_proxy", "entrypoint"),
        *("ready_timeout_seconds", "sandbox_timeout_seconds", "metadata", "kwargs"),
    },
    ("report",): {"artifacts"},
}
"""Keys that have no effect here: of its sandboxes, and of engines that it configures itself."""
_KEY = re.compile(r"\.([\w-]+)")
_TEMPLATE = re.compile(r"\\(\{\{\w+\}\})")

T = TypeVar("T", bound=Model)
K = TypeVar("K", bound=CheckSet | Check | None)


def read_suite(document: Document, problems: list[Problem]) -> Suite:
    """The suite in our language. Raises ValidationError; `problems` gets what is left out."""
    data = _cleaned(document.data)
    environment = data.get("environment")
    env = environment.get("env") if isinstance(environment, dict) else None
    env = env if isinstance(env, dict) else {}
    for name in sorted(HOME_VARIABLES & env.keys()):
        del env[name]
        message = f"`{name}` is left out"
        fix = "each trial has a home of its own, empty at first"
        problems.append(document.problem(("environment", "env", name), message, fix, "warning"))
    suite = Suite.model_validate(data)
    # `max_turns` counts the conversation's turns there, and texts are exact.
    own = suite.cases.defaults
    defaults = _with(
        own,
        timeout_seconds=own.timeout_seconds or _SECONDS,
        turn_limit=own.turn_limit or own.max_turns or _TURNS,
        max_turns=None,
        expect=_exact(own.expect),
        judge=own.judge and _judge(own.judge),
    )
    return _with(
        suite,
        cases=_with(suite.cases, defaults=defaults),
        judge=suite.judge and _judge(suite.judge),
        judges=suite.judges and [_judge(judge) for judge in suite.judges],
        skills=suite.skills and [_with(skill, as_is=True) for skill in suite.skills],
    )


def read_case(data: dict[str, Any], suite: Suite, *, default_id: str) -> Case:
    """The case in our language, `suite`'s defaults merged in. Raises ValidationError."""
    case = _translated(Case.model_validate(_cleaned(data)), suite)
    merged = merge_defaults(case, suite, default_id=default_id)
    if len(merged.input.turns or ()) > 1 or merged.user_simulator is not None:
        merged = _of_the_last_answer(merged)
    expected = merged.expect is not None and any(True for _ in merged.expect.given())
    if expected or merged.all_judges() or merged.checks():
        return merged
    return _with(merged, expect=CheckSet(exit_code=0))  # where nothing is asked of the agent


def _cleaned(value: Any, loc: Loc = ()) -> Any:
    """A file's data without keys that have no effect, and limits of 0, which Go cannot tell from
    those that are not there.

    A negative one is as good as none in a case; in the suite's defaults it lifts the limit of time.
    """
    if isinstance(value, list):
        return [_cleaned(item, (*loc, number)) for number, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept, has_limits = dict[str, Any](), loc[:1] in (("constraints",), ("input",), ("cases",))
    for key, inner in value.items():
        is_limit = has_limits and key in ("timeout_seconds", "max_turns")
        if is_limit and type(inner) in (int, float) and not inner >= 1:
            if loc[-1] == "defaults" and key == "timeout_seconds" and inner < 0:
                kept[key] = _FOR_EVER
        elif key not in _UNUSED.get(loc, ()) and (loc or inner is not None):
            kept[key] = _cleaned(inner, (*loc, key))
    return kept


def _translated(case: Case, suite: Suite) -> Case:
    limits = case.constraints
    changes: dict[str, Any] = {
        "schema_version": None,
        "timeout_covers_judges": True,
        "expect": _exact(case.expect),
        "judge": case.judge and _judge(case.judge, suite.judge),
        "judges": case.judges and [_judge(judge) for judge in case.judges],
    }
    if limits is not None:
        changes["constraints"] = None
        changes["turn_limit"] = case.turn_limit or limits.max_turns
        changes["timeout_seconds"] = case.timeout_seconds or limits.timeout_seconds
    given = case.input.turns
    turns = given and [_turn(turn, last=turn is given[-1]) for turn in given]
    changes["input"] = _with(case.input, turns=turns, literal=True)
    changes["context"] = _with(case.context, literal=True)
    if case.user_simulator is not None:
        text = templates.escape(case.user_simulator.scenario)
        changes["user_simulator"] = _with(case.user_simulator, scenario=text)
    return _with(case, **changes)


def _turn(turn: Turn, *, last: bool) -> Turn:
    gate = _exact(turn.post_condition)
    if gate is not None and gate.on_fail == "skip_remaining":
        gate = _with(gate, on_fail="fail" if last else "judge")
    capture = []
    for rule in turn.capture:
        path = rule.jsonpath
        if path is not None and path.startswith("$"):  # from the answer there, and with `-` in keys
            path = "$.response_json" + _KEY.sub(r"['\1']", path[1:])
        capture.append(_with(rule, jsonpath=path))
    # Only ``{{name}}`` is a template there, and only in what is said.
    texts = {"content": turn.content, "respond": turn.respond}
    said = {k: text and _TEMPLATE.sub(r"\1", templates.escape(text)) for k, text in texts.items()}
    return _with(turn, post_condition=gate, capture=capture, **said)


def _judge(judge: JudgeConfig, base: JudgeConfig | None = None) -> JudgeConfig:
    """`base`: the suite's, whose threshold holds where the judge has none."""
    changes: dict[str, Any] = {
        "success": [_exact(check) for check in judge.success],
        "failure": [_exact(check) for check in judge.failure],
    }
    if judge.criteria:
        lines = [_with(one, outcome=templates.escape(one.outcome)) for one in judge.criteria]
        changes["criteria"] = lines
    if judge.script_path is not None:
        changes["exit_code_decides"] = True
    elif not judge.criteria:
        changes["otherwise"] = "pass"
    inherited = base.pass_threshold if base is not None else None
    if judge.criteria and judge.pass_threshold is None:
        changes["pass_threshold"] = _THRESHOLD if inherited is None else inherited
    return _with(judge, **changes)


def _of_the_last_answer(case: Case) -> Case:
    """Of several answers only the last is looked at, also for what must not be said."""

    def of_the_last(rules: list[Check]) -> list[Check]:
        texts = ("output_contains", "output_matches")
        return [_with(r, turn="last") if r.turn is None and r.key in texts else r for r in rules]

    judges = [
        _with(judge, success=of_the_last(judge.success), failure=of_the_last(judge.failure))
        for judge in case.all_judges()
    ]
    changes: dict[str, Any] = {"judges": case.judges and judges, "judge": case.judge and judges[0]}
    if case.expect is not None and case.expect.must_not_contain:
        unwanted = TurnNotContains(turn="last", not_contains=case.expect.must_not_contain)
        changed = {"must_not_contain": None, "turn_response_not_contains": unwanted}
        changes["expect"] = _with(case.expect, **changed)
    return _with(case, **changes)


def _exact(check: K) -> K:
    """skill-up compares texts as they are written, and fills in nothing."""
    if check is None or not any(key in _RULES for key, _ in check.given()):
        return check
    exact = dict.fromkeys(("case_sensitive", "literal"), True)
    return _with(check, **{n: v for n, v in exact.items() if n not in check.model_fields_set})


def _with(value: T, **changes: Any) -> T:
    """`value` with those `changes` that say something new."""
    new = {name: item for name, item in changes.items() if getattr(value, name) != item}
    return value.model_copy(update=new) if new else value
