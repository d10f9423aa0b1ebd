from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import InvalidFilesError, UsageError
from tests.importers.conftest import Convert


def test_a_conversation_keeps_its_turns_and_its_rules(convert: Convert) -> None:
    result = convert("""
        name: tutor
        tests:
          - id: doubling
            mode: conversation
            aggregation: min
            on_turn_failure: stop
            window_size: 3
            input: [{role: system, content: Be brief.}]
            expected_output: "60"
            turns:
              - input: What is 15% of 200?
                expected_output: "30"
                assertions: [Says 30, Shows steps, {type: contains, value: "30", required: true}]
              - input: Double it.
                assertions: ["Says 60"]
            assertions: ["Stays on topic"]
        """)
    case = result.case
    assert result.imported.format == "agentv"
    assert result.suite["cases"]["defaults"]["pass_threshold"] == 0.8
    assert case["input"]["system"] == "Be brief."
    first, second = case["input"]["turns"]
    assert first == {
        "content": "What is 15% of 200?",
        "expected_output": "30",
        "assertions": [
            {"rubric": {"criteria": ["Says 30", "Shows steps"], "threshold": 0.8}},
            {"required": True, "contains": "30", "case_sensitive": True},
        ],
    }
    assert second == {"content": "Double it.", "assertions": [{"rubric": "Says 60"}]}
    assert case["assertions"] == [{"rubric": "Stays on topic"}]
    assert (case["aggregation"], case["on_turn_failure"], case["window_size"]) == ("min", "stop", 3)
    assert result.noted("tests[0].expected_output") == ["an expected output beside `turns`"]


def test_messages_of_suite_and_test_become_system_history_and_prompt(convert: Convert) -> None:
    result = convert("""
        name: defaults
        input: [{role: system, content: Shared.}]
        assert: [{type: contains, value: all}]
        tests:
          - id: debugging
            input:
              - {role: user, content: It fails.}
              - {role: assistant, content: How?}
              - {role: user, content: At the end.}
              - {role: user, content: Off by one.}
            expected_output: [{role: assistant, content: Yes.}]
            assert: [{type: icontains, value: own}]
          - {id: b, input: hi, execution: {skip_defaults: true}, criteria: Finds the bug}
        """)
    first, second = result.cases
    assert first["input"] == {
        "system": "Shared.",
        "history": [
            {"role": "user", "content": "It fails."},
            {"role": "assistant", "content": "How?"},
        ],
        "prompt": "At the end.\n\nOff by one.",
    }
    assert first["expected_output"] == "Yes."
    assert result.noted("tests[0].expected_output") == [
        "a reference that the other tool only shows to its judges"
    ]
    assert first["assertions"] == [{"contains": "own"}, {"contains": "all", "case_sensitive": True}]
    assert second["input"] == {"prompt": "hi"}
    assert second["description"] == "Finds the bug"
    assert second["assertions"] == [{"rubric": "Finds the bug"}]


def test_prompts_are_crossed_with_tests_and_filled_in(convert: Convert) -> None:
    result = convert("""
        name: capitals
        prompts:
          - {id: long, prompt: "Tell me: {{ question }}"}
          - {id: short, prompt: "{{ vars.question }}!"}
        default_test: {vars: {country: France}}
        tests:
          - id: capital
            vars:
              question: "capital of {{ country }}?"
              expected_output: "{{ answer }}"
              answer: Paris
            assert: ["Answers {{ question }}"]
        """)
    assert [(case["id"], case["input"]["prompt"]) for case in result.cases] == [
        ("capital-long", "Tell me: capital of France?"),
        ("capital-short", "capital of France?!"),
    ]
    assert result.cases[0]["expected_output"] == "Paris"
    assert result.cases[0]["assertions"] == [{"rubric": "Answers capital of France?"}]


def test_tests_come_from_files_and_globs(convert: Convert, tmp_path: Path) -> None:
    evals = tmp_path / "project" / "evals"
    evals.mkdir(parents=True)
    (evals / "more.jsonl").write_text('{"id": "l1", "input": "b", "assert": ["x"]}\n')
    (evals / "one.cases.yaml").write_text("- {id: g1, input: c, assert: [x]}\n")
    result = convert("""
        name: mixed
        tests:
          - file://more.jsonl
          - ./*.cases.yaml
          - ./missing.yaml
          - {id: here, input: d, assert: [x]}
        scenarios: [{config: [], tests: []}]
        """)
    assert [case["id"] for case in result.cases] == ["l1", "g1", "here"]
    assert result.noted("tests[2]") == ["there is no `./missing.yaml`"]
    assert result.noted("scenarios") == ["not carried over"]


def test_attached_files_go_into_the_workspace(convert: Convert, tmp_path: Path) -> None:
    fixtures = tmp_path / "project" / "fixtures"
    fixtures.mkdir(parents=True)
    (fixtures / "sales.csv").write_text("a,b\n")
    (fixtures / "rules.md").write_text("Never say <<it>>.")
    result = convert("""
        name: files
        tests:
          - id: sums
            input:
              - {role: system, content: [{type: file, value: ../fixtures/rules.md}]}
              - role: user
                content:
                  - {type: file, value: ../fixtures/sales.csv}
                  - {type: text, value: Sum up.}
                  - {type: file, value: ../fixtures/gone.csv}
            assert: [x]
        """)
    case = result.case
    assert case["input"]["system"] == r"Never say \<<it>>."
    assert case["input"]["prompt"] == (
        "[attached file: fixtures/sales.csv]\n\nSum up.\n\n[attached file: fixtures/gone.csv]"
    )
    placed = tmp_path / "out" / case["context"]["fixture"] / "fixtures" / "sales.csv"
    assert placed.read_text() == "a,b\n"
    assert any("gone.csv" in note for note in result.notes)


@pytest.mark.parametrize("reference", ["../../outside.txt", "/etc/hostname", "../.ssh/id_rsa"])
def test_files_outside_of_the_project_or_hidden_are_not_touched(
    convert: Convert, tmp_path: Path, reference: str
) -> None:
    (tmp_path / "outside.txt").write_text("private")
    (tmp_path / "project" / ".ssh").mkdir(parents=True)
    (tmp_path / "project" / ".ssh" / "id_rsa").write_text("private")
    content = f"[{{type: file, value: {reference}}}]"
    message = f"[{{role: user, content: {content}}}]"
    result = convert(f"name: thief\ntests: [{{id: a, input: {message}, assert: [x]}}]")
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not any("private" in path.read_text() for path in written)
    assert any("not read" in note for note in result.notes)


def test_run_controls_become_settings(convert: Convert) -> None:
    result = convert("""
        name: controls
        tags: [smoke]
        threshold: 0.6
        timeout_seconds: 90
        evaluate_options: {repeat: 4, max_concurrency: 2, budget_usd: 1}
        environment:
          type: host
          env: {REGION: "{{ env.REGION }}"}
          setup: {command: [npm, ci, a b]}
        tests:
          - id: first
            input: "In {{ env.REGION }}?"
            assertions: [{name: judge, type: llm_judge, prompt: Kind?}, {type: composite}]
          - id: second
            input: b
            threshold: 0.9
            run: {repeat: 2, timeout_seconds: 5}
            depends_on: [first, nobody]
            assert: [x]
        """)
    assert result.suite["cases"]["defaults"] == {
        "pass_threshold": 0.6,
        "trials": 4,
        "timeout_seconds": 90,
    }
    assert result.suite["cases"]["parallelism"] == 2
    assert result.suite["environment"] == {"env": {"REGION": "${REGION:-}"}}
    first, second = result.cases
    assert (first["input"]["prompt"], first["tags"]) == (r"In \{{ env.REGION }}?", ["smoke"])
    assert first["assertions"] == [{"name": "judge", "rubric": "Kind?"}]
    assert first["context"]["setup"] == ["npm ci 'a b'"]
    assert second["depends_on"] == ["first"]
    assert (second["pass_threshold"], second["trials"], second["timeout_seconds"]) == (0.9, 2, 5)
    assert result.noted("evaluate_options.budget_usd") == ["not carried over"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("tests:\n  - id: a\n    mode: conversation\n    assert: [x]\n", 2, "without turns"),
        ("tests:\n  - id: a\n    mode: conversation\n    turns: []\n    assert: [x]\n", 4, "turns"),
        ("tests:\n  - id: a\n    input: ''\n    assert: [x]\n", 2, "no user message"),
        ("tests:\n  - id: a\n    mode: conversation\n    turns: [{input: ' '}]\n", 4, "empty"),
        ("tests:\n  - 3\nexecution: {}\n", 2, "not a test"),
        ("tests:\n  - {id: a, mode: conversation, aggregation: median, turns: [c]}\n", 2,
         "aggregation"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_refused_with_its_place(
    convert: Convert, tmp_path: Path, text: str, line: int, said: str
) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        convert(text, "broken.eval.yaml", "agentv")
    assert refused.value.problems[0].line == line
    assert said in str(refused.value.problems[0])
    assert not (tmp_path / "out").exists()


def test_a_suite_that_names_itself_is_refused(convert: Convert) -> None:
    with pytest.raises(UsageError, match="lead back to it"):
        convert("name: n\ntests: '*.yaml'\n")
