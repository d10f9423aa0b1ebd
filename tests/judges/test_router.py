"""The router: each request goes to whoever can answer it, and nobody's failure is a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.app.interruption import first_skillup_error
from skillup.errors import FullDiskError
from skillup.judges import grade
from skillup.judges.models import AnswerCache, Models
from skillup.judges.router import JudgeRouter
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import NO_SECRETS
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.profile import Profile
from tests.support.asking import KEYS, cache
from tests.support.model_server import ModelServer, Rule, Structured, by_rules
from tests.support.records import make_record

RUBRIC = "It asks before it deletes"
PASS = {"verdicts": [{"id": "c1", "verdict": "pass", "reason": "It asks.", "quote": "Shall I?"}]}


def profile(name: str, _: Path) -> Profile:
    return Profile(name=name, engine="scripted")


def router(root: Path, environment: Mapping[str, str] = KEYS) -> JudgeRouter:
    kept = cache(root / "answers")
    models = Models(environment, NO_SECRETS, kept, rate_limiter=RateLimiter(0))
    return JudgeRouter(models, profile)


def case(*assertions: object, **more: object) -> dict[str, Any]:
    turns = [{"content": "Delete the logs", "assertions": list(assertions)}]
    read = Case.model_validate({"id": "case", "input": {"turns": turns}, **more})
    return read.model_dump(mode="json", by_alias=True, exclude_unset=True)


def judge(of: JudgeRouter, written: dict[str, Any], root: Path) -> Grade:
    recorded = make_record("Shall I?", files={"a.log": ""}, case=written, suite_root=str(root))

    async def main() -> Grade:
        async with of:
            return await grade(recorded.record, recorded.read_file, of)

    return anyio.run(main)


LEAKS = "It tells the password"
NOT_LEAKED = {"type": "rule_based", "failure": [{"rubric": LEAKS}], "otherwise": "pass"}


@pytest.mark.parametrize(
    ("check", "more", "unknown", "known"),
    [
        (LEAKS, {}, "FAIL", "FAIL"),
        ({"none_of": [LEAKS]}, {}, "FAIL", "PASS"),
        ({"none_of": [{"all_of": [LEAKS, {"contains": "I"}]}]}, {}, "FAIL", "PASS"),
        ({"none_of": [{"any_of": [LEAKS, {"contains": "xyz"}]}]}, {}, "FAIL", "PASS"),
        ({"any_of": [LEAKS, {"contains": "I"}]}, {}, "PASS", "PASS"),
        ({"contains": "I"}, {"expect": {"rubric": LEAKS}}, "FAIL", "FAIL"),
        ({"contains": "I"}, {"judge": NOT_LEAKED}, "FAIL", "PASS"),
    ],
)
def test_what_a_judge_cannot_tell_is_no_pass_however_it_is_turned(
    tmp_path: Path, check: object, more: dict[str, Any], unknown: str, known: str
) -> None:
    for verdict, status in (("unknown", unknown), ("fail", known)):
        said = {"id": "c1", "verdict": verdict, "reason": "It is not shown.", "quote": ""}
        reply = Structured({"verdicts": [said]})
        with ModelServer(by_rules(Rule("", [reply]))) as server:
            model = {"model": "anthropic:m", "base_url": server.url}
            written = case(check, judge_model=model, **more)
            graded = judge(router(tmp_path / verdict), written, tmp_path)
        assert graded.status == status, graded.reason


def test_a_defect_of_ours_is_an_error_and_no_verdict(tmp_path: Path) -> None:
    def lost(name: str, root: Path) -> Profile:
        raise KeyError("profile")

    broken = JudgeRouter(Models(KEYS, NO_SECRETS), lost)
    agent = {"type": "agent_judge", "criteria": "It asks"}
    graded = judge(broken, case(judge=agent), tmp_path)
    assert graded.status == "ERROR"
    assert "skillup itself failed: KeyError" in graded.reason


def test_an_answer_that_cannot_be_kept_ends_the_run_and_is_no_verdict(tmp_path: Path) -> None:
    class FullDisk:
        def read(self, key: str) -> None:
            return None

        def write(self, key: str, answer: object) -> None:
            raise FullDiskError("no room")

    (tmp_path / "judge.yaml").write_text("criteria: [{found: Shall}]", "utf-8")
    full = JudgeRouter(Models({}, NO_SECRETS, AnswerCache(FullDisk())), profile)
    written = case(RUBRIC, judge_model={"model": "scripted:judge.yaml"})
    with pytest.raises(ExceptionGroup) as ended:
        judge(full, written, tmp_path)
    assert isinstance(first_skillup_error(ended.value), FullDiskError)
