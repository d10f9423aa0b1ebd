"""The travel and the lead suite, unchanged, with both real CLIs and judged over real clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from skillup.judges.llm import RubricAnswer, WindowAnswer
from skillup.judges.models import answer_to
from skillup.judges.question import ModelQuestion
from skillup.schema.judge_model import JudgeModel
from tests.e2e.conftest import KEYS, Lab, Serve
from tests.support.example_suites import CASES, copy_suite, failed
from tests.support.model_server import (
    ModelRequest,
    ModelServer,
    Reply,
    Rule,
    Script,
    Shell,
    SkillCall,
    Structured,
    Text,
    WriteFile,
    by_rules,
)
from tests.support.project import Project

pytestmark = pytest.mark.e2e

Hold = Callable[..., tuple[Any, ModelServer, ModelServer]]
JUDGES = {"claude": "anthropic:claude-haiku-4-5", "codex": "openai-responses:gpt-4.1"}
"""Who judges which agent."""

DAYS = (
    "Day 1: the flat riverside of Belém, no stairs; a vegan canteen. 150 euros",
    "Day 2: the Oceanarium, step-free; falafel. 150 euros",
    "Day 2: Cascais by train, a level promenade at the beach; a vegetarian café. 150 euros",
    "Day 3: the Gulbenkian and its flat garden, by taxi. 150 euros",
)
FIRST = f"{DAYS[0]}\n{DAYS[1]}\n{DAYS[3]}\nTotal: 450 of 600 euros"
SECOND = f"{DAYS[0]}\n{DAYS[2]}\n{DAYS[3]}\nTotal: 450 of 600 euros"
TRAVEL = by_rules(
    Rule(
        "^Please plan",
        [
            SkillCall("trip-planner"),
            Text("What is your budget, and what do you need, about walking or food?"),
        ],
    ),
    Rule("^We have 600 euros", [Text(FIRST)]),
    Rule("^Lovely", [Text(SECOND)]),
    Rule(
        "the plan is final", [WriteFile("itinerary.md", f"{SECOND}\n"), Text("See itinerary.md.")]
    ),
)

NEXT = {
    "40 people": ("team_size", "Question 2: What do you want to do with it?"),
    "We want to plan the shifts with it": ("use_case", "Question 3: What may it cost a year?"),
    "8000 euros": ("budget", "Question 4: When do you want to start?"),
    "In spring": ("start", "Question 5: Who decides about it?"),
    "Our head of logistics": (
        "decision",
        "Summary: 120 drivers, route planning, 8000, May, head of logistics. verdict: fit",
    ),
    "I do": ("decision", "Summary: 4, a stock list, 900, next week, you. verdict: no fit"),
}
"""What a lead says last, the field that it belongs to, and what is right to answer."""


def lead(request: ModelRequest) -> Reply:
    """Follows the skill: writes the answer down, then asks on, or sums up."""
    field, answer = NEXT[request.latest]
    if request.tool_round == 0:
        return SkillCall("lead-qualifier")
    if request.tool_round == 1:
        verdict = f"echo '{answer.rpartition('. ')[2]}' >> lead.md" if "verdict" in answer else ":"
        into = f"sed 's/^{field}:.*/{field}: {request.latest}/' lead.md > new.md"
        return Shell(f"{into} && mv new.md lead.md && {verdict}")
    return Text(answer)


def judge(suite: str, script: str) -> Script:
    """A model that judges as the suite's written-down judge does, by what it was sent."""
    file = CASES / suite / "judges" / script

    def answers(request: ModelRequest) -> Reply:
        form = WindowAnswer if "answers to be judged relevant" in request.latest else RubricAnswer
        model = JudgeModel(model="scripted:lab")
        prompt = "".join(request.user_texts)
        labelled = re.split(r"^-----\[ \w+ (.*) \]-----$", prompt, flags=re.MULTILINE)
        texts = zip(labelled[1::2], labelled[2::2], strict=True)
        said = [(a, t.split("\n=====[ ")[0].strip("\n")) for a, t in texts if " answer" in a]
        latest = said[-1][1]
        whole = "\n\n".join(text for label, text in said if label.startswith("turn "))
        asked = prompt.rpartition("# Codes\n")[2]
        judged = whole if "Judge the conversation as a whole" in asked else latest
        criteria = re.findall(r"^(c\d+): (.*(?:\n   .*)*)", asked, re.MULTILINE)
        ids, lines = tuple(c[0] for c in criteria), tuple(c[1] for c in criteria)
        question = ModelQuestion(
            model, request.system, prompt, form, 0, ids, lines, latest=latest, judged=judged
        )
        return Structured(answer_to(question, file).model_dump())

    return answers


@pytest.fixture
def hold(lab: Lab, model_server: Serve) -> Hold:
    """`hold(engine, agent, judge)`: the result, and the servers of agent and judge."""

    def run(engine: str, agent: Script, judging: Script) -> tuple[Any, ModelServer, ModelServer]:
        reading = model_server(judging)
        project, serving = lab(agent, {})
        addresses = {"ANTHROPIC_BASE_URL": reading.url, "OPENAI_BASE_URL": f"{reading.url}/v1"}
        result = project.run_json(
            "cases", "-e", engine, "--judge-model", JUDGES[engine], env={**KEYS, **addresses}
        )
        return result, serving, reading

    return run


@pytest.mark.parametrize("engine", ["claude"])
def test_the_travel_suite_passes(project: Project, hold: Hold, engine: str) -> None:
    copy_suite(project, "travel-planning")

    result, _, judging = hold(engine, TRAVEL, judge("travel-planning", "travel.yaml"))

    (case,) = result["cases"]
    assert (case["status"], case["score"], failed(case)) == ("PASS", 1.0, set()), case["reason"]
    assert case["judging"]["usage"]["requests"] == len(judging.requests) == 5
    assert case["judging"]["models"] == [JUDGES[engine].partition(":")[2]]
    again = project.run("judge", str(project.latest_run()), "--json")
    assert again.data["cases"][0]["grade"]["score"] == 1.0
    assert len(judging.requests) == 5, "a run that is judged again asks nobody"


@pytest.mark.parametrize("engine", ["codex"])
def test_the_lead_suite_passes(project: Project, hold: Hold, engine: str) -> None:
    copy_suite(project, "lead-qualification")

    result, agent, judging = hold(engine, lead, judge("lead-qualification", "leads.yaml"))

    assert {c["case_id"]: failed(c) for c in result["cases"] if c["score"] < 1} == {}
    assert result["summary"]["pass"] == len(judging.requests) == len(NEXT)
    assert {r.latest for r in agent.requests} == set(NEXT)
    assert {len(r.user_texts) for r in agent.requests} == {2, 3, 5, 6}, "the past is there"
