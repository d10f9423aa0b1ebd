"""Scripts as judges: what they see, and what their end and what they print mean."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillup.judges.script import verdict_of
from skillup.process.run import CompletedOutput
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import FileState, TurnRecord
from tests.support.children import is_alive
from tests.support.judging import SECRET, Bench
from tests.support.project import Project
from tests.support.records import Recorded, file_states, make_record, make_turn
from tests.support.stored import change


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def held(*turns: TurnRecord | str, **more: Any) -> Recorded:
    """A record whose workspace was looked at, and is empty unless `files` says otherwise."""
    return make_record(*turns, **{"files": {}, **more})


def _sh(bench: Bench, body: str, name: str = "judge.sh") -> dict[str, object]:
    bench.write(name, f"#!/bin/sh\n{body}\n")
    return {"type": "script", "script_path": name}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("no-such-command-at-all", "exit code 127: a command of the script was not run"),
        ("exit 126", "exit code 126: a command of the script was not run"),
        ("kill -9 $$", "ended by a signal"),
        ("sh -c 'kill -15 $$'; exit $?", "exit code 143: a command"),
    ],
)
def test_what_is_no_verdict_is_an_error(bench: Bench, body: str, said: str) -> None:
    result = bench.judge(_sh(bench, body), held("Done."))

    assert not result.passed
    assert said in (result.error or "")


def test_a_script_that_does_not_end_is_ended_with_its_children_and_is_an_error(
    bench: Bench, tmp_path: Path
) -> None:
    judge = _sh(bench, f"sleep 60 & echo $! >{tmp_path}/pid; wait") | {"timeout_seconds": 0.5}

    result = bench.judge(judge, held("Done."))

    assert "did not end within 0.5 s" in (result.error or "")
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_it_runs_in_a_copy_of_the_workspace_with_modes_and_links(bench: Bench) -> None:
    files = file_states({"data/a.txt": "hello", "run.sh": "#!/bin/sh\necho ran"})
    files["run.sh"] = replace(files["run.sh"], executable=True)
    files["link"] = FileState(sha256=None, size=10, link="data/a.txt")
    files["out"] = FileState(sha256=None, size=10, link="/etc/hostname")
    recorded = held(make_turn("Done.", files=files))
    script = 'test "$(cat link)" = hello && test ! -e out && ./run.sh && echo x >data/a.txt'

    result = bench.judge(_sh(bench, f'{script} && test "$PWD" = "$EVAL_WORKSPACE"'), recorded)

    assert (result.passed, result.found) == (True, "ran")
    assert any("links out of the workspace: out" in note for note in result.notes)
    again = bench.judge(_sh(bench, "cat data/a.txt"), recorded)
    assert again.found == "hello"


def test_files_that_were_not_kept_are_named_and_missing_ones_are_an_error(bench: Bench) -> None:
    big = FileState(sha256="0" * 64, size=1 << 30, kept=False)
    lost = FileState(sha256="1" * 64, size=3)
    judge = _sh(bench, 'test ! -e big.bin && echo "$EVAL_FILES_NOT_KEPT"')

    result = bench.judge(judge, held("Done.", files={"big.bin": big}))
    broken = bench.judge(judge, held("Done.", files={"lost.txt": lost}))

    assert (result.passed, result.found) == (True, "big.bin")
    assert any("too large to be kept: big.bin" in note for note in result.notes)
    assert "lost.txt is missing" in (broken.error or "")


def test_its_environment_is_clean_and_tells_of_the_record(bench: Bench) -> None:
    bench.environment = {"MY_OWN": "mine", "LC_ALL": "C"}
    bench.write(
        "env.py",
        "import json, os, sys\n"
        "e = os.environ\n"
        "t = json.load(open(e['EVAL_TRANSCRIPT_PATH']))\n"
        "r = json.load(open(e['EVAL_RECORD_PATH']))\n"
        "print(json.dumps([sorted(n for n in e if n.startswith('EVAL_')), 'MY_OWN' in e,\n"
        "  [(x['role'], x['turn']) for x in t], r['case_id'], e['EVAL_EXIT_CODE'],\n"
        "  open(e['EVAL_FINAL_MESSAGE_PATH']).read() == e['EVAL_FINAL_MESSAGE'],\n"
        "  sys.stdin.read()]))\n",
        executable=False,
    )
    judge = {"type": "script", "script_path": "env.py"}

    result = bench.judge(judge, held("Hello.", "Bye."))

    names, mine, roles, case, code, same, stdin = json.loads(result.found)
    assert [name.removeprefix("EVAL_") for name in names] == [
        "CASE_ID", "EXIT_CODE", "FILES_NOT_KEPT", "FINAL_MESSAGE", "FINAL_MESSAGE_PATH",
        "RECORD_PATH", "SUITE_ROOT", "TRANSCRIPT_MARKDOWN_PATH", "TRANSCRIPT_PATH", "TURNS",
        "WORKSPACE",
    ]  # fmt: skip
    assert not mine
    assert roles == [["user", 1], ["assistant", 1], ["user", 2], ["assistant", 2]]
    assert (case, code, same, stdin) == ("case", "0", True, "")


def test_secrets_are_masked_in_what_it_says(bench: Bench) -> None:
    result = bench.judge(
        _sh(bench, f"echo the key is {SECRET}; echo {SECRET} >&2; exit 1"), held("Done.")
    )

    assert result.found == "the key is ***KEY***"
    assert SECRET not in result.model_dump_json()


def test_the_copy_kept_with_the_record_is_run_where_the_suite_has_another_or_none(
    bench: Bench,
) -> None:
    kept = "#!/bin/sh\necho kept"
    recorded = held("Done.", references={"judge.sh": kept})
    judge = {"type": "script", "script_path": "judge.sh"}

    assert bench.judge(judge, recorded).found == "kept"

    bench.write("judge.sh", "#!/bin/sh\necho other")
    result = bench.judge(judge, recorded)
    assert result.found == "kept"
    assert any("has changed since" in note for note in result.notes)


def test_an_unchanged_script_finds_the_files_beside_it(bench: Bench) -> None:
    text = '#!/bin/sh\n. "$(dirname "$0")/lib.sh"\nhelp'
    bench.write("scripts/lib.sh", "help() { echo helped; }")
    bench.write("scripts/judge.sh", text, executable=False)
    recorded = held("Done.", references={"scripts/judge.sh": text})

    result = bench.judge({"type": "script", "script_path": "scripts/judge.sh"}, recorded)

    assert (result.passed, result.found) == (True, "helped")


@pytest.mark.parametrize(
    ("name", "text", "executable"),
    [
        ("a.py", "print('hi')", False),
        ("a.sh", "echo hi", False),
        ("a", f"#!{sys.executable}\nprint('hi')", False),
        ("b", "#!/usr/bin/env sh\necho hi", True),
    ],
)
def test_a_script_is_started_by_its_first_line_or_its_ending(
    bench: Bench, name: str, text: str, executable: bool
) -> None:
    bench.write(name, text, executable=executable)

    assert bench.judge({"type": "script", "script_path": name}, held("x")).found == "hi"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none.sh", "there is no script"),
        ("data.txt", "not clear how to start"),
        ("../check.sh", "put it into the suite"),
        ("a/../../check.sh", "put it into the suite"),
        ("/bin/true", "put it into the suite"),
    ],
)
def test_what_cannot_be_started_is_known_before_the_first_turn(
    bench: Bench, path: str, said: str
) -> None:
    bench.write("data.txt", "just text")
    bench.write("good.sh", "exit 0")
    (bench.base / "check.sh").write_text("#!/bin/sh\n")

    judge = bench.problem_before(judge={"type": "script", "script_path": path})
    check = bench.problem_before(assertions=[{"any_of": [{"script": path}]}])

    assert judge is not None
    assert judge == check
    assert judge.kind == "judge"
    assert said in judge.message
    assert bench.problem_before(assertions=[{"script": "good.sh"}]) is None


def test_a_changed_script_never_judges_in_place_of_a_kept_copy_that_is_gone(
    project: Project,
) -> None:
    """S8: who removed the copy had trials judged by a script of their own."""
    case = "input: {prompt: x}\nassertions: [{script: no.sh}]\nscripted: [{say: y}]\n"
    judged = "input: {prompt: x}\njudge: {type: script, script_path: no.sh}\nscripted: [{say: y}]\n"
    project.write({"eval.yaml": "name: s\n", "a.yaml": case, "b.yaml": judged, "no.sh": "exit 1\n"})
    assert project.run("run", ".", "--out", "out").exit_code == 1
    (project.root / "no.sh").write_text("exit 0\n")
    assert project.run("judge", "out", "--json").data["summary"]["fail"] == 2, "by the kept copy"
    change(project.root / "out", "DELETE FROM blobs")
    statuses = []
    for content in ("exit 1\n", "exit 0\n"):
        (project.root / "no.sh").write_text(content)
        statuses += [
            c["grade"]["status"] for c in project.run("judge", "out", "--json").data["cases"]
        ]
    assert statuses == ["FAIL", "FAIL", "ERROR", "ERROR"]
    by_the_new_one = project.run("judge", "out", "--cases", ".", "--json")
    assert [c["grade"]["status"] for c in by_the_new_one.data["cases"]] == ["PASS", "PASS"]


# What a script prints, as a verdict.

JUDGE = JudgeConfig(type="script", script_path="x")
BLANK = CheckResult(name="script", kind="script", passed=False, score=0.0)


def verdict(stdout: str, exit_code: int = 0, *, threshold: float = 1.0) -> CheckResult:
    output = CompletedOutput(exit_code, stdout, "", timed_out=False, start_error=None)
    judge = JUDGE.model_copy(update={"pass_threshold": threshold})
    return verdict_of(output, BLANK, judge)


@pytest.mark.parametrize(
    ("told", "exit_code", "threshold", "passed", "score"),
    [
        ({"pass": True}, 0, 1.0, True, 1.0),
        ({"passed": False}, 0, 1.0, False, 0.0),
        ({"score": 0.8}, 0, 1.0, False, 0.8),
        ({"score": 0.8}, 0, 0.7, True, 0.8),
        ({"score": 0.4, "pass": True}, 0, 1.0, True, 0.4),
        ({"score": 0.4, "pass": False}, 1, 1.0, False, 0.4),
        ({"pass": True}, 1, 1.0, False, 0.0),
        ({"assertions": [{"pass": True}, {"pass": False}]}, 0, 1.0, False, 0.5),
        ({"details": [{"pass": True}, {"score": 1.0}]}, 0, 1.0, True, 1.0),
        ({"pass": None, "score": 1}, 0, 1.0, True, 1.0),
    ],
)
def test_a_json_verdict_counts_and_the_exit_code_can_only_say_no(
    told: dict[str, Any], exit_code: int, threshold: float, passed: bool, score: float
) -> None:
    result = verdict(json.dumps(told), exit_code, threshold=threshold)

    assert (result.passed, result.score, result.error) == (passed, score, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 1.5}',
        '{"score": true}',
        '{"pass": "yes"}',
        '{"assertions": ["a"]}',
        '{"score": null}',
        json.dumps({"score": 10**400}),
        "{'score': 0.1}",
        '{"score": 0.1, "reason": "cut o',
        'log\n{"score": 0.1, "reason": "cut o',
        'result: {"score": 0.1}',
        '{"score": 0.1}\n{"level": "info"}',
        '{"pass": true}\n{"pass": false}',
        'the answer was {"pass": true}\n{"pass": true}',
        '{"pass": false, "pass": true}',
        '{"assertions": [{"pass": false, "passed": true}]}',
        '{"score": NaN}',
        '{"score": ' + "1" * 5000 + "}",
        '{"a":' * 100_000 + "}",
        "[" * 100_000,
        '[{"score": 0.1}]',
    ],
)
def test_what_looks_like_a_verdict_and_cannot_be_read_is_an_error_and_is_shown(text: str) -> None:
    result = verdict(text)

    assert not result.passed
    assert (result.error or "").startswith("the script printed")
    assert text[:5] in (result.error or "")


@pytest.mark.parametrize("before", ["", "checking…\n", "[1/2] {note}\n"])
@pytest.mark.parametrize("indent", [None, 2])
def test_the_verdict_may_stand_at_the_end_of_other_output(before: str, indent: int | None) -> None:
    result = verdict(before + json.dumps({"pass": False, "reason": "no"}, indent=indent) + "\n")

    assert (result.passed, result.found) == (False, "no")


@pytest.mark.parametrize(
    "text", ["fine", "[ok] 3 of 3", "[1/3] a\n[2/3] b", "f(x) = {x}", "a {b: 1}"]
)
def test_other_output_is_evidence_as_it_is(text: str) -> None:
    result = verdict(text)

    assert (result.passed, result.found, result.children) == (True, text, [])


def test_assertions_become_children_with_names_and_reasons() -> None:
    told = {
        "pass": False,
        "reason": "one is missing",
        "assertions": [
            {"text": "has a title", "passed": True, "evidence": "# Title"},
            {"name": "has an end", "pass": False, "score": 0.25, "reason": ["stops", 3]},
            {"pass": True},
        ],
    }
    result = verdict(json.dumps(told))

    assert result.found == "one is missing"
    assert [(c.name, c.passed, c.score, c.found) for c in result.children] == [
        ("has a title", True, 1.0, "# Title"),
        ("has an end", False, 0.25, '["stops", 3]'),
        ("assertion 3", True, 1.0, ""),
    ]


def test_what_could_steer_a_terminal_is_not_passed_on_and_long_output_is_shortened() -> None:
    result = verdict("\x1b[2Jgone " + "x" * 10_000)

    assert "\x1b" not in result.found
    assert len(result.found) < 3000
    assert "left out" in result.found
