"""Conversations with a simulated user, played offline by a written-down model."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skillup.schema.case import Case
from skillup.schema.suite import Suite
from skillup.trial.request import TrialRequest
from skillup.trial.setup import case_problem
from tests.support.asking import KEYS, MODELS
from tests.support.model_server import ModelRequest, ModelServer, Reply, Structured
from tests.support.project import Project

SUITE = "name: x\nuser_simulator: {model: 'scripted:lab/user.yaml'}\n"
LED = """
    input:
      conversation:
        max_turns: 4
        persona: {objective: renew the card, knowledge: {name: Dana}, behavior: [brief]}
    assertions: [{contains: renewed}, {none_of: [{contains: the-criterion-nobody-may-tell}]}]
    scripted:
      - {when: renew, say: Which name?}
      - {when: Dana, say: "The card of {{user}} is renewed."}
      - {say: Pardon?}
    """
USER = """
    rules:
      - {when: {system: the-criterion-nobody-may-tell}, error: it sees the criteria}
      - {when: the-criterion-nobody-may-tell, error: it sees the criteria}
      - {when: 'is renewed', answer: {stop: completed, reason: It is renewed.}}
      - {when: 'message 1\\.', answer: {message: Please renew my card.}}
      - {when: 'Which name', answer: {message: Dana}}
    """


def run_case(project: Project, case: str, user: str = USER, suite: str = SUITE) -> Any:
    """The result of the one case."""
    project.write({"eval.yaml": suite, "cases/a.yaml": case, "lab/user.yaml": user})
    (result,) = project.run_json(".")["cases"]
    return result


def said(result: Any) -> list[tuple[str, str, str]]:
    return [(turn["source"], turn["content"], turn["status"]) for turn in result["turns"]]


def test_the_user_leads_until_it_has_what_it_wants_and_never_sees_the_criteria(
    project: Project,
) -> None:
    result = run_case(project, LED)
    assert (result["status"], result["error"]) == ("PASS", None)
    assert said(result) == [
        ("simulator", "Please renew my card.", "completed"),
        ("simulator", "Dana", "completed"),
    ]
    simulator = result["simulator"]
    assert (simulator["messages"], simulator["stop"]) == (2, "completed")
    assert simulator["reason"] == "It is renewed."
    assert result["judging"] is None, "playing a user is no judging"
    record = project.record("a/scripted/with_skill/1")
    assert record["simulated_end"]["stop"] == "completed"
    assert record["turns"][1]["session_verified"] is True
    assert record["turns"][1]["files_changed"] == {}


LIMITED = LED.replace("max_turns: 4", "max_turns: 2").replace("Dana, say", "nobody, say")
REFUSED = USER.replace("stop: completed, reason: It is renewed.", "stop: impossible, reason: No.")


@pytest.mark.parametrize(
    ("case", "user", "status", "stop", "reason"),
    [
        (LIMITED, USER, "FAIL", "limit", "; the simulated user did not end the conversation: "),
        (LED, REFUSED, "PASS", "impossible", "; the simulated user gave up: No."),
    ],
)
def test_checks_decide_however_it_ended_and_the_reason_says_so(
    project: Project, case: str, user: str, status: str, stop: str, reason: str
) -> None:
    result = run_case(project, case, user)
    assert [turn["status"] for turn in result["turns"]] == ["completed"] * 2
    assert (result["status"], result["simulator"]["stop"]) == (status, stop)
    assert reason in result["reason"]


@pytest.mark.parametrize(("most", "turns"), [(4, 3), (2, 2)])
def test_last_words_with_a_stop_are_answered_within_the_most_turns(
    project: Project, most: int, turns: int
) -> None:
    user = USER.replace("reason: It is renewed.", "reason: It is renewed., message: Thanks Dana!")
    result = run_case(project, LED.replace("max_turns: 4", f"max_turns: {most}"), user)
    assert (result["status"], len(result["turns"])) == ("PASS", turns)
    stop = "completed" if turns == 3 else "limit"
    simulator = result["simulator"]
    assert (simulator["stop"], simulator["messages"]) == (stop, turns)
    assert [turn["content"] for turn in result["turns"]][2:] == ["Thanks Dana!"] * (turns - 2)


PERSONAS = """
    personas:
      - {name: hurried, behavior: [writes in capitals]}
      - {name: calm}
      - {name: child, role: a <<who>>, knowledge: {name: Kim}}
    """


@pytest.mark.parametrize("place", ["case", "suite"])
def test_personas_take_turns_over_the_trials_the_same_for_the_same_seed(
    project: Project, place: str
) -> None:
    """Each trial's record says who played; what a persona leaves open is that of `persona`."""
    suite = SUITE
    case = "vars: {who: child}\n" + LED.replace("\n    ", "\n")
    if place == "suite":
        suite = "name: x\nuser_simulator:\n  model: scripted:lab/user.yaml" + PERSONAS.rstrip()
        suite = suite.replace("\n    ", "\n  ") + "\n"
    else:
        inner = PERSONAS.rstrip()
        case = case.replace("  conversation:", "  conversation:" + inner)
    user = USER.replace("rules:", "rules:\n      - {when: {system: 'name: Kim'}, error: a child}")
    suite += "benchmark: {enabled: true}\n"
    project.write({"eval.yaml": suite, "cases/a.yaml": case, "lab/user.yaml": user})

    def played(*options: str) -> list[str]:
        names: dict[str, list[str]] = {"with_skill": [], "without_skill": []}
        for result in project.run_json(".", "--trials", "6", *options)["cases"]:
            record = project.record(f"a/scripted/{result['variant']}/{result['trial']}")
            persona = record["case"]["input"]["conversation"]["persona"]
            assert persona["objective"] == "renew the card"
            if persona["name"] != "child":
                behavior = "writes in capitals" if persona["name"] == "hurried" else "brief"
                assert (persona["knowledge"], persona["behavior"]) == (["name: Dana"], [behavior])
                assert result["status"] == "PASS"
            else:
                assert (persona["knowledge"], persona["role"]) == (["name: Kim"], "a <<who>>")
                assert "a child" in result["error"]["message"]
            assert result["simulator"]["persona"] == persona["name"]
            names[result["variant"]].append(persona["name"])
        assert names["with_skill"] == names["without_skill"], "what is compared is the skill"
        return names["with_skill"]

    first = played()
    assert sorted(first[:3]) == sorted(first[3:]) == ["calm", "child", "hurried"]
    assert played() == first
    assert any(played("--seed", str(seed)) != first for seed in (1, 2, 3, 4))


JUDGE = """
    rules:
      - when: 'judge the messages of the user[^=]+What you know:\\n- name: Dana\\n'
        answer:
          verdicts:
            - {id: c1, verdict: pass, reason: It asks for what they want.}
            - {id: c2, verdict: fail, reason: Nobody is called Kim., quote: Dana Kim}
    """
UNSURE = JUDGE.replace("verdict: fail", "verdict: unknown")
UNKNOWN = "rules: [{when: no such question, answer: {score: 1}}]\n"


@pytest.mark.parametrize(
    ("fidelity", "judge", "status", "said"),
    [
        (None, JUDGE, "PASS", None),
        ("off", JUDGE, "PASS", None),
        ("flag", JUDGE, "PASS", "left its part in turn 2: Nobody is called Kim."),
        ("flag", UNKNOWN, "PASS", "is not known: no rule of judge.yaml applies"),
        ("error", JUDGE, "ERROR", "left its part in turn 2: Nobody is called Kim."),
        ("error", UNKNOWN, "ERROR", "is not known: no rule of judge.yaml applies"),
        ("flag", UNSURE, "PASS", "may have left its part in turn 2: the judge cannot tell: "),
        ("error", UNSURE, "ERROR", "may have left its part in turn 2: the judge cannot tell: "),
    ],
)
def test_a_judge_flags_messages_that_leave_the_part_and_leaves_the_verdict(
    project: Project, fidelity: str | None, judge: str, status: str, said: str | None
) -> None:
    """A written-down judge is only asked where the suite says so; judging again does the same."""
    suite = "name: x\njudge: {model: 'scripted:lab/judge.yaml'}\n"
    suite += "user_simulator: {model: 'scripted:lab/user.yaml'"
    suite += f", fidelity: {fidelity}}}\n" if fidelity else "}\n"
    project.write({"lab/judge.yaml": judge})
    result = run_case(project, LED, USER.replace("message: Dana}", "message: Dana Kim}"), suite)
    assert (result["status"], len(result["assertions"])) == (status, 2), "it is no check"
    asked = said is not None
    assert len(result["warnings"]) == asked
    assert (said or "") in "".join(result["warnings"])
    found = result["simulator"]["fidelity"]
    assert (found is not None, (result["judging"] or {}).get("calls", 0)) == (asked, int(asked))
    if status == "ERROR":
        assert result["error"]["kind"] == "judge"
        assert (said or "") in result["error"]["message"]
    shown = project.run("show", "last", "a").stdout
    assert ("warning" in shown) == asked
    again = project.run("judge", "last", "--json")
    changed = json.loads(again.stdout)["cases"][0]["grade"]
    assert {k: changed[k] for k in ("status", "warnings", "simulator")} == {
        k: result[k] for k in ("status", "warnings", "simulator")
    }


def test_items_of_a_dataset_have_the_suites_users_and_warnings_name_the_trials(
    project: Project,
) -> None:
    case = """
        input: {conversation: {max_turns: 2, persona: {objective: "get <<query>>"}}}
        assertions: [{contains: is yours}]
        scripted: [{say: "{{user}} is yours"}]
        """
    judge = """
        rules:
          - {when: '(?s)want:.get ink', answer: {verdicts: [{id: c1, verdict: pass, reason: Ok}]}}
          - answer: {verdicts: [{id: c1, verdict: fail, reason: Not theirs.}]}
        """
    suite = """
        name: x
        user_simulator: {model: 'scripted:lab/user.yaml', fidelity: flag, personas: [{name: a}]}
        judge: {model: 'scripted:lab/judge.yaml'}
        cases: {files: [], datasets: [{path: items.jsonl, case: like.yaml}]}
        """
    user = """
        rules:
          - {when: is yours, answer: {stop: completed, reason: Got it.}}
          - {when: 'message 1', answer: {message: That one}}
        """
    items = [{"id": name, "input": {"query": name}} for name in ("pen", "ink", "cup")]
    project.write({"eval.yaml": suite, "like.yaml": case, "lab/user.yaml": user})
    project.write({"items.jsonl": "\n".join(map(json.dumps, items)), "lab/judge.yaml": judge})
    result = project.run_json(".")
    assert {c["simulator"]["persona"] for c in result["cases"]} == {"a"}
    warned = {c["case_id"] for c in result["cases"] if c["warnings"]}
    assert warned == {"pen", "cup"}
    shown = project.run("run", ".")
    assert " and 1 more: the simulated user left its part in turn 1: Not theirs." in (
        shown.stdout + shown.stderr
    )


@pytest.mark.parametrize(
    ("checks", "suite", "option", "status"),
    [
        ("", SUITE + "judge: {model: 'scripted:lab/judge.yaml'}\n", (), "PASS"),
        ("", SUITE, ("--judge-model", "scripted:lab/judge.yaml"), "PASS"),
        ("", SUITE, (), "FAIL"),
        ("assertions: [{contains: of Dana}]", SUITE, ("--judge-model", "scripted:no.yaml"), "PASS"),
    ],
)
def test_a_led_conversation_without_checks_is_judged_by_its_objective(
    project: Project, checks: str, suite: str, option: tuple[str, ...], status: str
) -> None:
    """With a model to judge; where the author wrote checks, nobody else is asked."""
    judge = "criteria: [{when: 'objective was reached.*: renew the card', found: is renewed}]\n"
    case = LED.replace("\n    ", "\n")
    case = "\n".join(line for line in case.split("\n") if "assertions" not in line)
    project.write({"eval.yaml": suite, "cases/a.yaml": case + checks + "\n", "lab/user.yaml": USER})
    project.write({"lab/judge.yaml": judge})
    (result,) = project.run_json(".", *option)["cases"]
    assert (result["status"], result["error"]) == (status, None)
    names = [check["name"] for check in result["assertions"]]
    assert ("objective was reached" in names) == (status == "PASS" and not checks)
    advised = "nothing is checked" in project.run("validate").stderr
    assert advised == (not checks and "judge" not in suite)


def test_a_user_that_fails_in_the_middle_is_an_error_and_not_the_agents_fault(
    project: Project,
) -> None:
    user = USER.replace("answer: {message: Dana}", "error: the model is gone")
    result = run_case(project, LED, user)
    assert (result["status"], result["error"]["kind"]) == ("ERROR", "judge")
    assert result["error"]["message"].startswith("turn 2: the simulated user: ")
    assert [turn["status"] for turn in result["turns"]] == ["completed", "error"]
    assert result["turns"][1]["source"] == "simulator"
    assert result["simulator"] == {**result["simulator"], "messages": 1, "stop": None}


def test_what_the_user_writes_is_no_template_and_its_part_is_one(project: Project) -> None:
    user = USER.replace("message: Dana", "message: 'Dana <<name>> {{name}}'")
    user = user.replace("rules:", "rules:\n      - {when: {system: '<<'}, error: not filled in}")
    case = LED.replace("[brief]", "['says <<name>>']").replace("\n    ", "\n")
    result = run_case(project, "vars: {name: Kim}\n" + case, user)
    assert result["turns"][1]["content"] == "Dana <<name>> {{name}}"


@pytest.mark.parametrize("api", ["anthropic", "openai-chat"])
def test_models_play_with_chance_and_a_model_looks_at_what_they_said(
    project: Project, api: str
) -> None:
    """Fidelity by default, apart from other questions; chance is asked for, and in the record."""
    case = LED.replace("brief]", "brief, secretive]").replace("\n    ", "\n")
    case = "\n".join(line for line in case.split("\n") if "assertions" not in line)

    def answer(request: ModelRequest) -> Reply:
        asked = json.dumps(request.body)
        if "You play a user" in asked:
            moves = {
                "is renewed": {"stop": "completed", "reason": "It is."},
                "Which name": {"message": "Dana"},
                "you begin": {"message": "Please renew my card."},
            }
            return Structured(next(move for said, move in moves.items() if said in asked))
        ids = [f"c{n}" for n in (1, 2) if f"c{n}: " in asked]
        verdict = {"verdict": "pass", "reason": "So it is.", "quote": ""}
        left = {"verdict": "fail", "reason": "It told the name.", "quote": "Dana"}
        verdicts = [{"id": one, **(left if one == "c2" else verdict)} for one in ids]
        return Structured({"verdicts": verdicts})

    with ModelServer(answer) as server:
        model = {"model": MODELS[api], "base_url": f"{server.url}{'/v1' * (api != 'anthropic')}"}
        project.write(
            {"eval.yaml": json.dumps({"name": "x", "judge": model}), "cases/a.yaml": case}
        )

        def run(*options: str) -> tuple[list[dict[str, Any]], Any]:
            server.requests.clear()
            result = project.run_json(".", *options, env=KEYS)["cases"][0]
            return [request.body for request in server.requests], result

        bodies, result = run()
        again, _ = run()
        other, _ = run("--seed", "7")
    assert (result["status"], result["error"]) == ("PASS", None)
    assert result["warnings"] == ["the simulated user left its part in turn 2: It told the name."]
    assert result["judging"]["calls"] == 2
    (goal,) = result["assertions"]
    assert goal["name"] == "objective was reached"
    played = [body for body in bodies if "You play a user" in json.dumps(body)]
    judged = [body for body in bodies if body not in played]
    assert [(len(played), len(judged))] == [(3, 2)]
    assert sorted("secretive" in json.dumps(body) for body in judged) == [False, True]
    seeds = {"anthropic": (None, None), "openai-chat": (0, 7000)}[api]
    assert [{(b["temperature"], b.get("seed")) for b in some} for some in (played, judged)] == [
        {(1.0, seeds[0])},
        {(0.0, None)},
    ]
    assert again == [], "the same seed says the same"
    assert {body.get("seed") for body in other if body["temperature"]} == {seeds[1]}
    (turn, _) = project.record("a/scripted/with_skill/1")["turns"]
    sampling = {"temperature": 1.0, **({"seed": 7000} if seeds[1] else {})}
    assert turn["simulator"]["sampling"] == sampling
    (recorded,) = project.record("a/scripted/with_skill/1")["case"]["assertions"]
    assert recorded["name"] == goal["name"], "replay asks what was asked"


RESPOND = """
    vars: {what: city}
    input:
      turns:
        - Hello
        - respond: Tell them the <<what>>.
          post_condition: {must_contain_any: [noted]}
          capture: [{variable: city, pattern: 'noted (\\w+)'}]
          assertions:
            - contains: twice
              prompt: Say it twice.
              assertions: [{contains: twice}]
        - Bye from <<city>>
    assertions: [{contains: Bye from Oslo}]
    scripted:
      - {when: Oslo$, turn: 2, say: noted Oslo}
      - {when: Say it, say: "twice: noted Oslo"}
      - {say: "{{user}}"}
    """
RESPONDER = "rules: [{when: Tell them the city, answer: {message: It is Oslo}}]\n"


def test_a_respond_turn_is_gated_followed_up_and_captured_as_any_other(project: Project) -> None:
    result = run_case(project, RESPOND, RESPONDER)
    assert (result["status"], result["error"]) == ("PASS", None)
    turn = result["turns"][1]
    assert (turn["source"], turn["content"]) == ("simulator", "It is Oslo")
    assert turn["captures"] == {"city": "Oslo"}
    assert turn["passed_on"] == "first follow-up"
    assert [turn["source"] for turn in result["turns"]] == ["case", "simulator", "case"]
    assert result["simulator"]["stop"] is None


SCENARIO = """
    user_simulator: {scenario: You are Dana and want to renew your card.}
    input: {prompt: Please renew my card.}
    constraints: {max_turns: 3}
    assertions: [{contains: renewed}]
    scripted:
      - {when: renew, say: Which name?}
      - {when: Dana, say: The card is renewed.}
    """


def test_skill_ups_scenario_goes_on_from_the_prompt(project: Project) -> None:
    result = run_case(project, SCENARIO)
    assert (result["status"], result["error"]) == ("PASS", None)
    assert said(result) == [
        ("case", "Please renew my card.", "completed"),
        ("simulator", "Dana", "completed"),
    ]
    assert result["simulator"]["stop"] == "completed"


@pytest.mark.parametrize(
    ("suite", "what"),
    [
        ("name: x\n", "nobody plays"),
        ("name: x\nuser_simulator: {model: 'anthropic:m'}\n", "ANTHROPIC_API_KEY"),
        ("name: x\nuser_simulator: {model: m}\n", "names no model"),
        ("name: x\nuser_simulator: {model: 'scripted:none.yaml'}\n", "none.yaml"),
        ("name: x\nuser_simulator: {engine: nowhere}\n", "nowhere"),
        ("name: x\nuser_simulator: {engine: gone}\n", "no program"),
        ("name: x\nuser_simulator: {engine: scripted}\n", "user_simulator.scripted"),
    ],
)
def test_that_nobody_can_play_is_known_to_validate_and_before_the_first_turn(
    project: Project, suite: str, what: str
) -> None:
    project.write({"engines/gone.yaml": "engine: claude_code\ncommand: /nowhere/claude\n"})
    result = run_case(project, LED, suite=suite)
    assert (result["status"], result["error"]["kind"]) == ("ERROR", "judge")
    assert what in result["error"]["message"]
    assert result["turns"] == []
    outcome = project.run("validate")
    assert outcome.exit_code == 0
    told = outcome.stderr + outcome.stdout
    assert (what in told) == ("gone" not in suite), "a program may yet come to be there"


def test_the_conversations_time_is_the_users_too(project: Project) -> None:
    suite = """
        name: x
        user_simulator:
          engine: scripted
          scripted: [{say: never, misbehave: {hang: true}}]
        """
    result = run_case(project, "timeout_seconds: 1\n" + LED.replace("\n    ", "\n"), suite=suite)
    assert (result["status"], result["error"]["kind"]) == ("ERROR", "timeout")
    assert "simulated user" in result["error"]["message"]


@pytest.mark.parametrize("on_no_resume", ["error", "single_shot"])
def test_an_engine_that_cannot_resume_is_an_error_and_no_single_shot(on_no_resume: str) -> None:
    case = Case.model_validate({"id": "a", "input": {"turns": ["Hello", {"respond": "Answer."}]}})
    suite = SimpleNamespace(suite=Suite.model_validate({"on_no_resume": on_no_resume}))
    job = SimpleNamespace(loaded=SimpleNamespace(case=case), suite=suite)
    request = SimpleNamespace(job=job, engine=SimpleNamespace(name="blunt"), simulator=object())
    found = case_problem(cast(TrialRequest, request))
    assert found is not None
    assert found.kind == "no_resume"
    assert "blunt cannot resume" in found.message


def test_an_unanswered_message_of_the_history_is_the_first(project: Project) -> None:
    lines = [
        "input:",
        "  history:",
        "    - {role: user, content: Hi}",
        "    - {role: assistant, content: Hello}",
        "    - {role: user, content: Please renew my card.}",
    ]
    case = LED.replace("\n    ", "\n").replace("input:", "\n".join(lines))
    user = USER.replace("'message 1\\.'", "'message 9\\.'")
    result = run_case(project, case, user)
    assert (result["status"], result["error"]) == ("PASS", None)
    assert said(result) == [
        ("case", "Please renew my card.", "completed"),
        ("simulator", "Dana", "completed"),
    ]
