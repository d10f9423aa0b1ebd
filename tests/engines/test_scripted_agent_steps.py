"""The scripted agent's tools: each is really used, and seen in the events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_agent import RawAgent, RawRun, answer, error


def one_call(run: RawRun) -> tuple[dict[str, Any], dict[str, Any]]:
    call, result = run.one("tool_call"), run.one("tool_result")
    assert call["id"] == result["id"]
    return call, result


def test_a_command_runs_in_the_workspace_and_its_output_can_be_told(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path, [{"steps": [{"run": "ls *.txt; echo oops >&2"}], "say": "{{output}}"}]
    )
    (agent.workspace / "a.txt").touch()
    run = agent.first("go")
    assert answer(run) == "a.txt\noops"
    call, result = one_call(run)
    assert (call["name"], call["input"]) == ("shell", {"command": "ls *.txt; echo oops >&2"})
    assert (result["status"], result["output"]) == ("success", "a.txt\noops")


def test_a_command_that_fails_is_an_error_result_and_the_agent_goes_on(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"steps": [{"run": "echo no; exit 3"}], "say": "done"}])
    run = agent.first("go")
    assert answer(run) == "done"
    _, result = one_call(run)
    assert (result["status"], result["output"]) == ("error", "exit code 3\nno")


def test_a_child_that_a_command_leaves_in_the_background_does_not_hold_the_turn_up(
    tmp_path: Path,
) -> None:
    agent = RawAgent(
        tmp_path,
        [{"steps": [{"run": "sleep 600 & echo $!"}, {"run": "kill {{output}}"}], "say": "x"}],
    )
    run = agent.first("go")
    assert answer(run) == "x"
    assert [result["status"] for result in run.of_type("tool_result")] == ["success", "success"]


def test_files_are_written_and_read(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [
            {
                "steps": [
                    {"write": {"path": "new/{{user}}.txt", "content": "for {{user}} ü\n"}},
                    {"read": "new/{{user}}.txt"},
                ],
                "say": "{{output}}",
            }
        ],
    )
    run = agent.first("ann")
    assert answer(run) == "for ann ü"
    assert (agent.workspace / "new" / "ann.txt").read_text("utf-8") == "for ann ü\n"
    write, read = run.of_type("tool_call")
    assert (write["name"], write["input"]["path"]) == ("write_file", "new/ann.txt")
    assert (read["name"], read["input"]) == ("read_file", {"path": "new/ann.txt"})


def test_reading_a_missing_file_is_an_error_result(tmp_path: Path) -> None:
    run = RawAgent(tmp_path, [{"steps": [{"read": "gone.txt"}], "say": "x"}]).first("go")
    _, result = one_call(run)
    assert (result["status"], result["output"]) == ("error", "gone.txt: No such file or directory")


@pytest.mark.parametrize("where", [".agents/skills", ".claude/skills"])
def test_a_skill_of_the_workspace_is_loaded(tmp_path: Path, where: str) -> None:
    agent = RawAgent(tmp_path, [{"steps": [{"skill": "keeper"}], "say": "{{skills}}: {{output}}"}])
    agent.install_skill("keeper", "# Keep logs\n", where)
    run = agent.first("go")
    assert answer(run) == "keeper: # Keep logs"
    call, result = one_call(run)
    assert (call["name"], call["input"]) == ("skill", {"skill": "keeper"})
    assert result["status"] == "success"
    assert run.one("session_started")["skills"] == ["keeper"]


def test_a_skill_that_is_not_installed_is_an_error_result(tmp_path: Path) -> None:
    run = RawAgent(tmp_path, [{"steps": [{"skill": "keeper"}], "say": "x"}]).first("go")
    _, result = one_call(run)
    assert result["status"] == "error"
    assert "no skill keeper is installed" in result["output"]


def test_skills_are_looked_for_elsewhere_on_request(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "{{skills}}"}])
    agent.install_skill("keeper", "# Keep logs\n", "mine")
    assert answer(agent.first("go", "--skills-dir", "mine")) == "keeper"


def test_steps_that_are_no_tools(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [
            {
                "steps": [
                    {"say": "Looking at {{user}}."},
                    {"delay": 0.01},
                    {"remember": {"who": "{{user}}"}},
                ],
                "say": "It is {{remember.who}}.",
            }
        ],
    )
    run = agent.first("ann")
    assert [event["text"] for event in run.of_type("message")] == ["Looking at ann.", "It is ann."]
    assert run.of_type("tool_call") == []
    assert run.one("usage")["requests"] == 1


def test_tokens_are_those_of_the_script_and_requests_are_counted(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [
            {
                "steps": [{"run": "true"}, {"run": "true"}],
                "usage": {"input_tokens": 7, "cached_input_tokens": 5, "output_tokens": 3},
            }
        ],
    )
    usage = agent.first("go").one("usage")
    del usage["type"]
    assert usage == {
        "input_tokens": 7,
        "cached_input_tokens": 5,
        "output_tokens": 3,
        "requests": 3,
    }


def test_a_step_over_the_limit_ends_the_turn(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"steps": [{"run": "touch a"}, {"run": "touch b"}], "say": "done"}])
    run = agent.first("go", "--max-turns", "1")
    assert error(run) == {"kind": "max_turns", "message": "the limit of 1 steps was reached"}
    assert [path.name for path in agent.workspace.iterdir()] == ["a"]
    assert answer(agent.run("go", "--session-id", "t", "--max-turns", "3")) == "done"


PERMITTED = {
    "full": {"shell": "success", "write_file": "success", "read_file": "success"},
    "edits": {"shell": "error", "write_file": "success", "read_file": "success"},
    "read_only": {"shell": "error", "write_file": "error", "read_file": "success"},
}


@pytest.mark.parametrize("permission", PERMITTED)
def test_tools_that_are_not_permitted_are_refused(tmp_path: Path, permission: str) -> None:
    write = {"path": "written.txt", "content": "x"}
    agent = RawAgent(
        tmp_path, [{"steps": [{"run": "touch run.txt"}, {"write": write}, {"read": "there.txt"}]}]
    )
    (agent.workspace / "there.txt").touch()
    run = agent.first("go", "--permission", permission)
    names = {call["id"]: call["name"] for call in run.of_type("tool_call")}
    results = {names[result["id"]]: result for result in run.of_type("tool_result")}
    assert {name: result["status"] for name, result in results.items()} == PERMITTED[permission]
    for name, result in results.items():
        refused = result["status"] == "error"
        assert (f"{name} is not permitted" in result["output"]) == refused
    assert (agent.workspace / "run.txt").exists() == (permission == "full")
    assert (agent.workspace / "written.txt").exists() == (permission != "read_only")


@pytest.mark.parametrize("path", ["../outside.txt", "/{{user}}/outside.txt", "link/outside.txt"])
def test_edits_stay_in_the_workspace(tmp_path: Path, path: str) -> None:
    agent = RawAgent(tmp_path, [{"steps": [{"write": {"path": path, "content": "x"}}]}])
    (agent.workspace / "link").symlink_to(tmp_path)
    _, result = one_call(agent.first(str(tmp_path).strip("/"), "--permission", "edits"))
    assert "is outside the workspace" in result["output"]
    assert not (tmp_path / "outside.txt").exists()


def test_nothing_is_left_in_the_home_but_the_session(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"steps": [{"run": "echo x"}, {"run": "false"}]}])
    agent.first("go")
    assert sorted(path.name for path in agent.home.iterdir()) == ["script.json", "sessions"]
