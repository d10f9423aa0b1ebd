from __future__ import annotations

import pytest

from skillup.errors import InvalidFilesError
from tests.importers.conftest import Convert


def test_every_check_comes_over(convert: Convert) -> None:
    result = convert("""
        metadata:
          name: capitals
          description: For {{env.TEAM}}
          model: some/model
          system_prompt: Be brief about {{var('topic')}}.
          threads: 3
          mcp_server: {url: "https://mcp.example", name: maps, authorization_token: secret}
        evals:
          - prompt: What is the capital of {{var('country')}}, {{name}}?
            checks:
              - match: "*Paris*"
              - not_match: "*London*"
              - semantic: {expected: It is Paris, threshold: 0.8}
              - llm_judge: {criteria: Names the capital}
              - min_tokens: 1
              - max_tokens: 100
              - or: [{match: "*a*"}, {match: "*b*"}]
        """)
    case = result.case
    assert result.suite["name"] == "capitals"
    assert result.suite["cases"]["parallelism"] == 3
    assert result.suite["mcp"]["servers"] == [
        {"name": "maps", "mode": "real", "transport": "http", "endpoint": "https://mcp.example"}
    ]
    assert case["input"]["prompt"] == r"What is the capital of {{var('country')}}, \{{name}}?"
    assert result.suite["description"] == "For {{env.TEAM}}"
    assert sum("cannot be filled in" in note for note in result.notes) == 3
    assert case["assertions"] == [
        {"glob": "*Paris*"},
        {"not_glob": "*London*"},
        {"similar": {"to": "It is Paris", "threshold": 0.8}},
        {"rubric": "Names the capital"},
        {"min_tokens": 1},
        {"max_tokens": 100},
        {"any_of": [{"glob": "*a*"}, {"glob": "*b*"}]},
    ]
    assert result.noted("metadata.model") == ["not carried over"]
    assert result.noted("metadata.mcp_server.authorization_token") == ["not carried over"]


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        ("[{semantic: {expected: x}}]", "needs `expected` and a `threshold`"),
        ("[just text]", "not a check"),
        ("[]", "there is no `checks` here"),
    ],
)
def test_a_wrong_check_is_refused_with_its_place(convert: Convert, checks: str, said: str) -> None:
    with pytest.raises(InvalidFilesError) as refused:
        convert(f"""
            metadata: {{name: n, model: m}}
            evals:
              - {{prompt: fine, checks: [{{match: "*x*"}}]}}
              - prompt: p
                checks: {checks}
            """)
    (problem,) = refused.value.problems
    assert said in problem.message
    assert problem.line == 6


def test_what_is_no_check_of_vibechecks_is_left_out_and_listed(convert: Convert) -> None:
    checks = "[{matches: x, match: '*y*'}, {llm_judge: {}}, {max_tokens: many}]"
    result = convert(f"metadata: {{name: n}}\nevals: [{{prompt: p, checks: {checks}}}]")
    assert result.case["assertions"] == [{"glob": "*y*"}]
    assert len(result.noted("evals[0].checks[0].matches")) == 1
    assert len(result.noted("evals[0].checks[1].llm_judge")) == 1
    assert len(result.noted("evals[0].checks[2].max_tokens")) == 2


def test_a_prompt_among_the_checks_becomes_a_follow_up(convert: Convert) -> None:
    """F21: it is sent if a check beside it failed, as deep as it goes."""
    case = convert("""
        metadata: {name: sums}
        evals:
          - prompt: What is 15 * 7?
            checks:
              - match: "*105*"
              - prompt: Please recalculate {{var('what')}}.
                checks:
                  - match: "*105*"
                  - {min_tokens: 1, prompt: "10*7 + 5*7?", checks: [{match: "*105*"}]}
        """).case
    assert case["input"]["turns"] == [
        {
            "content": "What is 15 * 7?",
            "assertions": [
                {"glob": "*105*"},
                {
                    "prompt": "Please recalculate {{var('what')}}.",
                    "assertions": [
                        {"glob": "*105*"},
                        {"min_tokens": 1},
                        {"prompt": "10*7 + 5*7?", "assertions": [{"glob": "*105*"}]},
                    ],
                },
            ],
        }
    ]
    with pytest.raises(InvalidFilesError) as raised:
        convert("evals: [{prompt: a, checks: [{match: x}, {prompt: b}]}]", format_="vibecheck")
    assert "there is no `checks` here" in raised.value.problems[0].message
