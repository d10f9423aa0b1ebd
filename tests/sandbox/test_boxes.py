"""What runs in a box, how it is asked for, and what is said where it cannot be had."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.sandbox.victims import NOBODY, in_container, python_of, run_as, serving
from tests.support.project import Project, wait_until

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap")
BOX = "{type: bubblewrap}"


@pytest.fixture(params=["bubblewrap", pytest.param("podman", marks=pytest.mark.slow)])
def box(request: pytest.FixtureRequest) -> str:
    """What a suite's `environment` says."""
    if request.param == "bubblewrap":
        return BOX
    return in_container("podman") or pytest.skip("podman is not installed")


def suite(project: Project, environment: str, case: str, more: str = "") -> Project:
    eval_yaml = f"name: s\nenvironment: {environment}\n"
    return project.write({"cases/eval.yaml": eval_yaml, "cases/a.yaml": case + more})


def running(command: str, more: str = "") -> str:
    """A case whose agent runs a shell command and passes if that ends well."""
    step = json.dumps(f"if {command}; then echo went well; fi")
    return (
        f"input: {{turns: [go]}}\nscripted: [{{steps: [{{run: {step}}}], say: '{{{{output}}}}'}}]\n"
        f"assertions: [{{contains: went well}}]\n{more}"
    )


def outcome(project: Project, **env: str) -> tuple[Any, Any]:
    """The case of the one trial, and its record."""
    done = project.run("run", "cases", "--json", env={"SKILLUP_TRUST": "1", **env})
    assert done.stdout, done.stderr
    (case,) = done.data["cases"]
    return case, project.record("a/scripted/with_skill/1")


def without_bubblewrap(project: Project) -> str:
    """A PATH with what a trial needs, and no more."""
    place = project.root.parent / "programs"
    place.mkdir()
    for name in ("sh", "python3", "git", "true", "ls", "sleep"):
        (place / name).symlink_to(shutil.which(name) or name)
    (place / "podman").write_text(STUCK)
    (place / "podman").chmod(0o755)
    return str(place)


STUCK = """#!/bin/sh
test $1 = info && echo 4.3.1 x false pids && exit
echo 'no image x' >&2
echo sorry
sleep 999
"""


REFUSED = {
    "a kind that is not there": ("{type: bubblewrap}", "apt-get install bubblewrap"),
    "a limit that auto cannot keep": ("{type: auto, network_policy: deny_all}", "no sandbox works"),
    "the answers": ("{type: auto, read: [.]}", "holds the suite, and its answers"),
    "a missing path": ("{type: auto, read: [nowhere]}", "there is no"),
    "a container that hangs": ("{type: podman, image: x}", "cannot run x: no image x"),
    "a kind that is not installed": ("{type: docker, image: x}", "there is no program `docker`"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if "hangs" in n else ()) for n in REFUSED]
)
def test_what_cannot_be_had_is_an_error_that_says_what_to_do(project: Project, name: str) -> None:
    environment, words = REFUSED[name]
    suite(project, environment, running("true"))
    case, _ = outcome(project, PATH=without_bubblewrap(project))
    assert (case["status"], case["error"]["kind"]) == ("ERROR", "setup")
    assert words in case["error"]["message"]


def test_auto_falls_back_aloud_and_a_variable_asks_where_no_suite_does(project: Project) -> None:
    suite(project, "{type: auto}", running("true"))
    path = without_bubblewrap(project)
    done = project.run("run", "cases", env={"PATH": path})
    assert done.exit_code == 0, done.stderr
    assert "warning: no sandbox works here: bubblewrap: there is no program" in done.stderr
    assert "trials run on the machine, as it is" in done.stderr
    told = project.record("a/scripted/with_skill/1")["sandbox"]
    assert (told["kind"], told["asked"]) == ("none", "auto")

    suite(project, "{type: none}", running("test ! -e $HOME/../../../home"))
    case, record = outcome(project, SKILLUP_SANDBOX="bubblewrap")
    assert case["status"] == "PASS"
    assert record["sandbox"]["kind"] == record["sandbox"]["asked"] == "bubblewrap"
    assert outcome(project)[1]["sandbox"] is None
    case, _ = outcome(project, SKILLUP_SANDBOX="cage")
    assert "there is no sandbox `cage`" in case["error"]["message"]
    project.write({"engines/scripted.yaml": "engine: scripted\nisolation: shared\n"})
    case, _ = outcome(project, SKILLUP_SANDBOX="auto")
    assert "`isolation: shared` is your own home" in case["error"]["message"]


PATCH = "--- a/x.txt\n+++ b/x.txt\n@@ -1 +1 @@\n-one\n+two\n"


def test_git_setup_steps_and_all_turns_of_forks_share_their_folders(project: Project) -> None:
    steps = "{type: bubblewrap, setup_steps: [{run: 'cat /proc/1/cmdline > seen'}], read: [own]}"
    case = """
        context:
          files: {x.txt: "one\\n"}
          git: {init: true, apply_diff: x.patch}
          setup: [touch /tmp/kept]
        input:
          turns:
            - content: first
              branches: [{name: b, turns: [again]}, {name: c, turns: [again]}]
        scripted:
          replies:
            - {turn: 1, steps: [{run: "grep bwrap seen && ls /tmp/kept > kept.txt"}], say: y}
            - turn: 2
              steps: [{run: "grep two x.txt && grep /tmp/kept kept.txt && git status && cat OWN"}]
              say: "{{output}}"
        assertions: [{contains: "OWN-TEXT"}]
        """
    own = project.root / "cases/own"
    project.write({"cases/own": "mine indeed", "cases/x.patch": PATCH})
    suite(project, steps, case.replace("OWN-TEXT", "mine indeed").replace("OWN", str(own)))
    result = project.run_json("cases")
    assert [(c["status"], c["error"]) for c in result["cases"]] == [("PASS", None)] * 2
    told = project.record(f"{result['cases'][0]['case_id']}/scripted/with_skill/1")["sandbox"]
    assert (told["kind"], told["read"], told["network"]) == ("bubblewrap", ["own"], [])


def test_a_script_that_judges_runs_the_agents_code_in_a_box_too(project: Project) -> None:
    script = """
        test -f "$EVAL_RECORD_PATH" && test -f "$EVAL_SUITE_ROOT/eval.yaml" || exit 3
        touch "$EVAL_SUITE_ROOT/mark" && exit 4
        ls SECRET && exit 5
        sh made.sh
        """
    secret = project.home / "secret"
    secret.write_text("x")
    project.write({"cases/judge.sh": script.replace("SECRET", str(secret))})
    case = running("echo 'echo made' > made.sh", "judge: {type: script, script_path: judge.sh}\n")
    for environment, status in ((BOX, "PASS"), ("{type: none}", "FAIL")):
        suite(project, environment, case)
        found, _ = outcome(project)
        assert found["status"] == status, found
        (project.root / "cases/mark").unlink(missing_ok=True)
    suite(project, BOX, case)
    run = (outcome(project), project.latest_run())[1]
    again = project.run("judge", str(run), env={"PATH": without_bubblewrap(project)})
    said = again.stdout + again.stderr
    assert "the sandbox does not work here: bubblewrap: there is no program" in said


def test_a_suite_of_a_strangers_does_nothing_outside(project: Project) -> None:
    """By variables that other programs read, nor by links that skillup itself would follow."""
    mine = project.home / "mine"
    mine.write_text("mine\n")
    env = f"LD_PRELOAD: ./no.so, NVM_DIR: {project.home}, PYENV_ROOT: /, PATH: '/usr/bin:/bin'"
    links = f"rm -rf .git/info && mkdir .git/info && ln -s {mine} .git/info/exclude"
    steps = f"{BOX[:-1]}, env: {{{env}}}, setup_steps: [{{run: '{links}'}}]}}"
    own = f"ln -sf {mine} ~/../script.json; ls {mine} && exit 1; env | grep -q no.so"
    case = running(f"({own})", "context: {git: {init: true}}\n").replace("[go]", "[go, again]")
    skill = "---\nname: s\ndescription: d\n---\n"
    suite(project, steps + "\nskills: [{path: s}]", case).write({"cases/s/SKILL.md": skill})
    found, record = outcome(project)
    assert found["status"] == "PASS", (found["error"], record["turns"])
    assert mine.read_text() == "mine\n"
    asked = {"SKILLUP_SANDBOX": "auto"}
    for opens in ("allowed_egress: [x.test]", "network_policy: allow_all"):
        suite(project, f"{BOX[:-1]}, {opens}}}", running("true"))
        refused = project.run("run", "cases", env=asked)
        assert (refused.exit_code, "--trust" in refused.stderr) == (2, True), refused.stderr
        assert outcome(project, **asked)[0]["status"] == "PASS"
    # What a profile names would be started to ask its version.
    project.write({"engines/theirs.yaml": f"engine: scripted\ncommand: [rm, {mine}]\n"})
    suite(project, BOX, running("true"))
    refused = project.run("run", "cases", "-e", "theirs", env=asked)
    assert (refused.exit_code, "--trust" in refused.stderr, mine.exists()) == (2, True, True)


def test_a_fork_copies_nothing_that_links_of_its_agents_lead_to(project: Project) -> None:
    """From the suite, or any directory, into the home of the child, which reads it there."""
    project.write({"cases/secret/key": "the answer"})
    take = "cd ~/../scripted-agent/sessions && for f in *.jsonl; do ln -s SECRET ${f%.jsonl}; done"
    take = take.replace("SECRET", str(project.root / "cases/secret"))
    case = {
        "input": {"turns": ["a", {"content": "b", "branches": [
            {"name": name, "turns": ["c"]} for name in "de"
        ]}]},
        "scripted": {"replies": [
            {"turn": 1, "say": "yes"},
            {"turn": 2, "steps": [{"run": take}], "say": "yes"},
            {"turn": 3, "steps": [{"run": "cat ~/../*/*/*/*"}], "say": "{{output}}"},
        ]},
        "assertions": [{"contains": "No such file"}],
    }  # fmt: skip
    suite(project, BOX, json.dumps(case))
    result = project.run_json("cases", env={"SKILLUP_TRUST": "1"})
    assert [(c["status"], c["error"]) for c in result["cases"]] == [("PASS", None)] * 2


LIMITS = {
    "file_mb: 1": "head -c 2000000 /dev/zero > big",
    "open_files: 16": "python3 -c 'x = [open(\"/dev/null\") for _ in range(20)]'",
    "memory_mb: 200": "python3 -c 'x = bytes(300 << 20)'",
}


def test_limits_hold_or_are_refused(project: Project, box: str) -> None:
    for limit, command in LIMITS.items():
        suite(project, f"{box[:-1]}, limits: {{{limit}}}}}", running(f"! {command}"))
        assert outcome(project)[0]["status"] == "PASS", limit
        suite(project, box, running(command))
        assert outcome(project)[0]["status"] == "PASS", limit
    suite(project, f"{box[:-1]}, limits: {{processes: 64}}}}", running("true"))
    case, _ = outcome(project)
    refused = "does not hold for root" in ((case["error"] or {}).get("message") or "")
    assert refused is (box == BOX and os.geteuid() == 0)


def test_processes_are_limited_for_other_users_than_root() -> None:
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    if python_of(user) is None:
        pytest.skip(f"no Python that user {user} may run")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        project = Project(Path(place))
        fork = "python3 -c 'import os, time; [os.fork() or time.sleep(9) for _ in range(90)]'"
        suite(project, f"{BOX[:-1]}, limits: {{processes: 50}}}}", running(f"! {fork}"))
        (case,) = run_as(user, project)["cases"]
        assert case["status"] == "PASS", case


KNOCK = """
import os, socket, sys
from base64 import b64encode
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["HTTPS_PROXY"])
for target in sys.argv[1:]:
    with socket.create_connection((proxy.hostname, proxy.port), 5) as way:
        key = b64encode(f"{proxy.username}:".encode()).decode()
        way.send(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n"
                 f"Proxy-Authorization: Basic {key}\\r\\n\\r\\n".encode())
        answer = way.recv(4096).decode()
        if " 200 " in answer.splitlines()[0]:
            way.send(b"knock")
            answer = way.recv(16).decode()
        print(target, answer.splitlines()[0])
"""


def test_only_hosts_that_are_named_are_reached(project: Project, box: str) -> None:
    with serving(socket.AF_INET, ("127.0.0.1", 0)) as (_, port):
        other = f"localhost:{port - 1} evil.localhost:{port} 127.0.0.1:{port}"
        direct = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 3)'"
        step = f"python3 knock.py localhost:{port} {other}; {direct} || echo no direct way"
        steps = json.dumps([{"run": step}])
        case = f"context: {{files: {{knock.py: {json.dumps(KNOCK)}}}, literal: true}}\n"
        case += f"scripted: [{{steps: {steps}, say: '{{{{output}}}}'}}]\ninput: {{turns: [go]}}\n"
        checks = f"{{contains: 'localhost:{port} open'}}, {{contains: no direct way}}"
        case += f"assertions: [{checks}]\n"
        egress = f"allowed_egress: ['localhost:{port}', '*.example']"
        suite(project, f"{box[:-1]}, {egress}}}", case)
        found, record = outcome(project)
    assert found["status"] == "PASS", record["turns"][0]["response"]
    answer = record["turns"][0]["response"].splitlines()
    suite(project, f"{box[:-1]}, network_policy: allow_all}}", running("true"))
    found, told = outcome(project)
    assert (found["status"], told["sandbox"]["network"]) == ("PASS", ["*"])
    assert [line.split()[2] for line in answer if "HTTP" in line] == ["403"] * 3, answer
    assert record["sandbox"]["network"] == [f"localhost:{port}", "*.example"]


def test_nothing_is_left_of_a_skillup_that_is_killed(project: Project, box: str) -> None:
    sleep = f"sleep 71.{os.getpid()}"
    suite(project, box, running(f"trap '' INT TERM; setsid {sleep} & {sleep}"))

    def left() -> list[psutil.Process]:
        found = list[psutil.Process]()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                found += [process] if " ".join(process.cmdline()) == sleep else []
        return found

    with project.start("run", "cases", env={"SKILLUP_TRUST": "1"}) as process:
        wait_until(lambda: len(left()) == 2, process)
        process.kill()
        process.wait()
        wait_until(lambda: not left())
