"""Files with one mistake each: the text, where it is told, and what is said of it."""

from __future__ import annotations

PROMPT = "input: {prompt: hi}\n"
ONE_CHECK = "assertions: [{contains: x}]\n"
CHECKED = PROMPT + ONE_CHECK
RULES = "{success: [{contains: x}]}"


def turn(rest: str) -> str:
    """A case of one turn; `rest` begins at line 4, column 7."""
    return f"input:\n  turns:\n    - content: hi\n      {rest}\nassertions: [{{contains: x}}]\n"


def check(text: str) -> str:
    """A case with one check, which begins at line 2, column 14."""
    return f"{PROMPT}assertions: [{text}]\n"


CASES = [
    # keys
    (CHECKED + "max_turn: 3\n", "3:1", "did you mean `max_turns`?"),
    ("id: x\nassertions: [{contains: x}]\n", "1:1", "`input` is missing"),
    (CHECKED + "timeout: 30\n", "3:1", "did you mean `timeout_seconds`?"),
    (CHECKED + "fixtures: data\n", "3:1", "use `context.fixture`"),
    (CHECKED + "1: x\n", "3:1", "is not a text"),
    (CHECKED + "context: {git: {zzz: 1}}\n", "3:17", "known here: `init`, `checkout`"),
    (CHECKED + "qqqq: 1\n", "3:1", "`skillup schema` lists the keys"),
    (CHECKED + "history: []\n", "3:1", "it belongs to `input`: check the indentation"),
    (PROMPT + "assertions:\n  contains: x\n", "2:1", "begin each item with `- `"),
    (CHECKED + "context:\n", "3:1", "nothing is written here; write a mapping, or remove"),
    ("input: {conversation: {max_turns: 2, persona: {objective: x, knowledge: 1.5}}}\n" + ONE_CHECK,
     "1:73", "this is read as a decimal number"),
    # values
    (CHECKED + "timeout_seconds: 5 minutes\n", "3:18", "`5 minutes` is not a number"),
    (CHECKED + "timeout_seconds: .inf\n", "3:18", "`inf` is not right here"),
    (CHECKED + "trials: 1.5\n", "3:9", "or a decimal point"),
    (CHECKED + "pass_threshold: '0.5'\n", "3:17", "without quotes"),
    (CHECKED + "on_turn_failure: halt\n", "3:18", "`continue`, `stop`"),
    (CHECKED + "vars: {1a: x}\n", "3:8", "has not the right form"),
    (CHECKED + "vars: {a: 1.10}\n", "3:11", "put it in quotes"),
    (CHECKED + "context: {git: {init: yes}}\n", "3:23", "write `true`"),
    (CHECKED + "retry_policy: {retry_on: [rate-limit]}\n", "3:27", "did you mean `rate_limit`?"),
    (CHECKED + "depends_on: c\n", "3:13", "the case depends on itself"),
    # what is said
    ("input: {}\nassertions: [{contains: x}]\n", "1:1", "needs one of `prompt`, `turns`"),
    ("input: {prompt: ' '}\nassertions: [{contains: x}]\n", "1:1", "the prompt is empty"),
    ("input: {history: [{role: user, content: a}], transcript: [{role: user, content: b}]}\n"
     + ONE_CHECK, "1:1", "`history` beside `transcript`"),
    ("input: {turns: []}\nassertions: [{contains: x}]\n", "1:9", "at least 1 item"),
    ("input: {prompt: x, answers: [{question: '(', answer: y}]}\n" + ONE_CHECK,
     "1:41", "is not a valid regex"),
    ("input: {prompt: x, answers: [{question: y}]}\n" + ONE_CHECK, "1:30", "`answer` is missing"),
    ("input: {turns: [{user: hi}]}\n" + ONE_CHECK, "1:18", "did you mean `content`?"),
    ("input: {turns: [{content: ''}]}\nassertions: [{contains: x}]\n", "1:17", "message is empty"),
    ("input: {turns: [{role: user}]}\n" + ONE_CHECK, "1:17", "needs one of `content`"),
    (turn("post_condition: {}"), "4:7", "there is no condition"),
    (turn("post_condition: {contains: x, on_fail: skip}"), "4:46", "`skip_remaining`"),
    (turn("capture: [{variable: a}]"), "4:17", "needs one of `pattern`, `jsonpath`"),
    (turn("capture: [{variable: a, pattern: '(x)', jsonpath: $.a}]"), "4:17", "keep exactly one"),
    (turn("capture: [{variable: a, pattern: x}]"), "4:40", "has no group"),
    (turn("capture: [{variable: a, jsonpath: '$.['}]"), "4:41", "is not a valid JSONPath"),
    # templates
    (CHECKED + "context: {files: {a.txt: 'x\n\n  <<who>>'}}\n", "3:26", "<<who>> is not defined"),
    (turn("capture: [{variable: v, pattern: '(x)'}]").replace("hi", '"<<v>>"'), "3:16", "<<v>>"),
    # checks
    (check("{}"), "2:14", "no check asks for anything"),
    (check("{contians: x}"), "2:15", "did you mean `contains`?"),
    (check("{llm_judge: is nice}"), "2:15", "did you mean `rubric`?"),
    (check("{regex: is nice}"), "2:15", "did you mean `matches`?"),
    (check("{is nice: really}"), "2:15", "put a rubric that holds `: ` in quotes"),
    (check("{tool_called: {tool: Bash}}"), "2:29", "did you mean `name`?"),
    (check("{contains: {value: x}}"), "2:26", "a bare text will do"),
    (check("{trun_response_contains: x}"), "2:15", "did you mean `turn_response_contains`?"),
    (check("{tool_sequence: 3}"), "2:30", "write `key: value` lines below it (`calls`, "),
    (check("{contains: x, equals: y}"), "2:14", "make each its own list item"),
    (check("{contains: {any: []}}"), "2:15", "the check needs one of `any`"),
    (check("{matches: '[a'}"), "2:24", "is not a valid regex"),
    (check("{json: {path: '$.a['}}"), "2:28", "is not a valid JSONPath"),
    (check("{json: {path: $.a, equals: 1, exists: true}}"), "2:15", "more than one condition"),
    (check("{file_contains: {path: a}}"), "2:15", "needs one of `content`, `matches`"),
    (check("{tool_called: {}}"), "2:15", "no tool is named"),
    (check("{tool_called: {name: Bash, min: 3, max: 1}}"), "2:15", "min 3 is above max 1"),
    (check("{tool_called: {name: Bash, min: 0}}"), "2:15", "min 0 holds of any number"),
    (check("{all_of: [{relevance: {prompt: '{{input}} {{answer}}'}}]}"),
     "2:45", "{{answer}} is not a variable of a judge's prompt"),
    (turn("post_condition: {relevance: {prompt: '{{answer}}'}}"),
     "4:44", "known here: {{input}}, {{output}}, {{criteria}}, {{expected_output}}"),
    # F20: scripts of the suite, wherever one may stand
    (check("{script: ../check.sh}"), "2:23", "../check.sh lies outside of the suite"),
    (turn("post_condition: {script: ../gate.sh}"), "4:32", "lies outside of the suite"),
    (turn("assertions: [{prompt: b, assertions: [{script: ../c.sh}]}]"),
     "4:54", "lies outside of the suite"),
    (CHECKED + "judges: [{type: script, script_path: /bin/true}]\n", "3:38", "lies outside of"),
    (check("{contains: x, turn: 0}"), "2:34", "from 1, or `last`"),
    (check("{prompt: sure?}"), "2:14", "a follow-up without checks"),
    (check("{prompt: sure?, assertions: [{contains: y}]}"), "2:23", "outside of a turn"),
    (check("{contains: x, assertions: [{contains: y}]}"), "2:14", "add the follow-up's `prompt`"),
    # judges; F6: a key stood in the record
    ("judge_model: scripted:no.yaml\n" + PROMPT + check("{rubric: x}")[len(PROMPT):],
     "1:14", "judge_model: there is no judge script"),
    (CHECKED + "judge: {model: scripted:no.yaml}\nexpect: {relevance: {}}\n",
     "3:16", "judge.model: there is no judge script"),
    (f"judge_model: {{model: 'openai:x', api_key_env: sk-{'a1' * 12}}}\n" + CHECKED,
     "1:47", "not the name of a variable"),
    (CHECKED + f"judge: {{type: agent_judge, criteria: [x], api_key_env: gh{'a1' * 12}}}\n",
     "3:56", "not the name of a variable"),
    (CHECKED + "judge: {type: rule}\n", "3:15", "did you mean `rule_based`?"),
    (CHECKED + "judge: {type: script}\n", "3:1", "add `script_path`"),
    (CHECKED + "judge: {criteria: [x]}\n", "3:1", "set `type: agent_judge`"),
    (CHECKED + f"judge: {RULES}\njudges: [{RULES}]\n", "1:1", "keep one of them"),
    # what excludes what
    (CHECKED + "aggregation: min\n", "1:1", "`aggregation` without turns"),
    (turn("expected_output: a") + "expected_output: b\n", "1:1", "`expected_output` beside"),
    # the script of the scripted engine
    (CHECKED + "scripted: {say: hi}\n", "3:12", "begin each reply with `- `"),
    (CHECKED + "scripted: [{say: a, when: '('}]\n", "3:27", "not a regular expression"),
    (CHECKED + "scripted: [{steps: [{run: a, read: b}]}]\n", "3:21", "keep exactly one"),
    # a comma in a text without quotes
    (
        "input: {history: [{role: user, content: Oh, no.}], prompt: hi}\nexpect: {equals: x}\n",
        "1:45",
        "unknown key `no.`; within braces a comma begins a new key: put the text in quotes",
    ),
]  # fmt: skip
PROFILES = [
    ("model: x\n", "1:1", "`engine` is missing"),
    ("engine: claud_code\n", "1:9", "did you mean `claude_code`?"),
    ("engine: codex\npermission: none\n", "2:13", "`read_only`"),
    ("engine: scripted\nsession: live\n", "2:10", "use `resume`"),
    ("engine: codex\nargs: --verbose\n", "2:7", "is not a list"),
    ("engine: codex\nenv: [A=1]\n", "2:1", "is not a mapping"),
    ("engine: codex\nenv: {A: '${B C}'}\n", "2:10", "begins no reference"),
    # V19
    ("engine: codex\nenv: {CODEX_HOME: /h}\n", "2:19", "each trial has its own CODEX_HOME"),
    ("engine: claude_code\nisolation: clean\nenv: {HOME: /h}\n", "3:13", "`isolation: shared`"),
    ("engine: codex\nprices: {input: -1, output: 1}\n", "2:17", "must be at least 0"),
    ("engine: codex\ncommand: ['']\n", "2:11", "the text is empty"),
]
SUITES = [
    ("nmae: a\n", "1:1", "did you mean `name`?"),
    ("schema_version: v2\n", "1:17", "allowed: `v1alpha1`"),
    ("parallelism: 4\n", "1:1", "it belongs to `cases`"),
    ("cases: {defaults: {context: {setup: [x]}}}\n", "1:20", "known here: `timeout_seconds`"),
    ("cases: {files: 3}\n", "1:16", "matches no file"),
    ("cases: {retry_policy: {retry_on: [time-out]}}\n", "1:35", "did you mean `timeout`?"),
    ("cases: {defaults: {trials: 10001}}\n", "1:28", "must be at most 10000"),
    ("cases: {defaults: {expect: {must_contian: [x]}}}\n", "1:29", "did you mean `must_contain`?"),
    ("skills: [{source: git, path: .}]\n", "1:19", "`local_path`"),
    ("skills:\n    - {}\n", "2:7", "`path` is missing; add it (its directory, relative to"),
    ("gates: {confidence: 0.9999999999999999}\n", "1:21", "it must be at most 0.999999999"),
    ("engine: {model: x}\n", "1:1", "`name` is missing"),
    ("environment: {env: {HOME: /h}}\n", "1:15", "the agent out of its trial's own home"),  # V19
    ("environment: {network_policy: deny_all}\n", "1:1", "which cannot keep it"),  # F20
    ("judge: {model: scripted:no.yaml}\ncases: {defaults: {expect: {relevance: {}}}}\n",
     "1:16", "judge.model: there is no judge script"),
    ("judge: {model: m}\njudges: [{success: [x]}]\n", "1:1", "both `judge` and `judges`"),
]  # fmt: skip
