from __future__ import annotations

from pathlib import Path

from tests.importers.conftest import Convert

CHAT = """
[
  {"role": "system", "content": {{ persona | dump }}},
  {% for completion in _conversation %}
    {"role": "user", "content": "{{ completion.input }}"},
    {"role": "assistant", "content": "{{ completion.output }}"},
  {% endfor %}
  {"role": "user", "content": "{{ question }}"}
]
"""


def test_tests_of_one_conversation_become_turns_of_one_case(
    convert: Convert, tmp_path: Path
) -> None:
    evals = tmp_path / "project" / "evals"
    evals.mkdir(parents=True)
    (evals / "prompt.json").write_text(CHAT)
    result = convert(
        """
        description: Founders
        prompts: [file://prompt.json]
        providers: ["openai:gpt"]
        defaultTest:
          vars: {persona: Be terse.}
          assert: [{type: llm-rubric, value: Polite}]
        tests:
          - description: asks
            vars: {question: Who founded Acme?}
            metadata: {conversationId: founders}
            assert: [{type: icontains-any, value: 'ada, "b, c"'}]
          - vars: {question: Where is Yosemite?}
            metadata: {conversationId: parks}
          - description: follows up
            vars: {question: "Where does she live, <<city>>?"}
            metadata: {conversationId: founders}
        """,
        "promptfooconfig.yaml",
    )
    assert result.imported.format == "promptfoo"
    founders, parks = result.cases
    assert founders == {
        "id": "founders",
        "title": "asks",
        "input": {
            "system": "Be terse.",
            "turns": [
                {
                    "content": "Who founded Acme?",
                    "assertions": [{"rubric": "Polite"}, {"contains": {"any": ["ada", "b, c"]}}],
                },
                {
                    "content": r"Where does she live, \<<city>>?",
                    "assertions": [{"rubric": "Polite"}],
                },
            ],
        },
    }
    assert parks["input"] == {"system": "Be terse.", "prompt": "Where is Yosemite?"}
    assert result.noted("providers") == ["not carried over"]


def test_a_list_of_texts_is_a_test_for_each_and_other_lists_are_not(convert: Convert) -> None:
    result = convert("""
        prompts: ["{{ topic }} in {{ lang }}: {{ rows[0].a }}"]
        providers: [openai:x]
        tests:
          - description: topics
            vars: {topic: [bees, ants], lang: [fr, de], rows: [{a: 1}]}
        """)
    assert [case["input"]["prompt"] for case in result.cases] == [
        "bees in fr: 1",
        "bees in de: 1",
        "ants in fr: 1",
        "ants in de: 1",
    ]
    assert [case["id"] for case in result.cases] == ["topics", "topics-2", "topics-3", "topics-4"]


def test_variables_and_prompts_come_from_files(convert: Convert, tmp_path: Path) -> None:
    evals = tmp_path / "project" / "evals"
    evals.mkdir(parents=True)
    (evals / "p.txt").write_text("One {{ x }}\n---\nTwo {{ x }}")
    (evals / "chat.yaml").write_text("- {role: user, content: 'Three {{ x.length }}'}")
    (evals / "x.txt").write_text("from a file")
    (evals / "tests.yaml").write_text("- vars: {x: 'file://x.txt'}\n")
    result = convert("""
        prompts: [{id: file://p.txt, label: p}, prompt.py, chat.yaml]
        providers: [openai:x]
        tests: file://tests.yaml
        """)
    assert [case["input"]["prompt"] for case in result.cases] == [
        "One from a file",
        "Two from a file",
        "Three 11",
    ]
    assert result.noted("prompts[1]") == ["this is made by a program"]


def test_a_conversation_that_took_place_is_judged_or_gone_on_with(convert: Convert) -> None:
    """F21: `_conversation` as a test writes it, and the grading prompt of all rubrics."""
    judged, case = convert("""
        prompts: ["{{message}}"]
        providers: ["openai:gpt"]
        defaultTest:
          vars: {tone: kind}
          options: {rubricPrompt: "Grade {{output}} by {{ rubric }}. Be {{tone}}."}
        tests:
          - vars: &said
              message: And hotels?
              _conversation: [{input: "Where to, <<x>>?", output: Rome.}]
            assert: [{type: conversation-relevance, threshold: 0.9, config: {windowSize: 3}}]
          - vars: *said
            assert: [{type: llm-rubric, value: Names a hotel}]
        """).cases
    asked, answered = {"role": "user"}, {"role": "assistant", "content": "Rome."}
    transcript = [{**asked, "content": "Where to, <<x>>?"}, answered]
    history = [{**asked, "content": r"Where to, \<<x>>?"}, answered]
    assert judged["input"] == {"transcript": transcript}
    assert judged["assertions"] == [{"relevance": {"threshold": 0.9, "window_size": 3}}]
    assert case["input"] == {"history": history, "prompt": "And hotels?"}
    prompt = "Grade {{output}} by {{criteria}}. Be kind."
    criteria = [{"outcome": "Names a hotel"}]
    rubric = {"criteria": criteria, "prompt": prompt}
    assert case["assertions"] == [{"rubric": rubric, "literal": True}]
