"""Suites with one mistake each: the text, where it is told, and what is said of it."""

from __future__ import annotations

SUITES = [
    ("name: a\nname: b\n", "2:1", "name"),
    ("nmae: a\n", "1:1", "did you mean `name`?"),
    ("name: [a]\n", "1:1", "is not a text"),
    ("name: ''\n", "1:7", "the text is empty"),
    ("schema_version: v2\n", "1:17", "allowed: `v1alpha1`"),
    ("parallelism: 4\n", "1:1", "it belongs to `cases`"),
    ("cases: {parallelism: 0}\n", "1:22", "must be above 0"),
    ("cases: {files: 3}\n", "1:16", "no such file"),
    ("cases: {files: [a.yaml, c.yaml]}\n", "1:17", "no such file: a.yaml"),
    ("cases: {files: ['x/*.yaml', c.yaml]}\n", "1:17", "matches no file"),
    ("cases: {retry_policy: {max_retries: -1}}\n", "1:37", "must be at least 0"),
    ("cases: {retry_policy: {retry_on: [time-out]}}\n", "1:35", "did you mean `timeout`?"),
    ("cases: {defaults: {trials: many}}\n", "1:28", "`many` is not a whole number"),
    ("cases: {defaults: {trials: 10001}}\n", "1:28", "must be at most 10000"),
    ("cases: {defaults: {expect: {must_contian: [x]}}}\n", "1:29", "did you mean `must_contain`?"),
    ("cases: {defaults: {expect: {matches: '('}}}\n", "1:38", "is not a valid regex"),
    ("skills: [{pth: a}]\n", "1:11", "did you mean `path`?"),
    ("skills: [{source: git, path: .}]\n", "1:19", "`local_path`"),
    ("engine: {model: x}\n", "1:1", "`name` is missing"),
    ("environment: {type: nowhere}\n", "1:21", "`docker`"),
    ("environment: {env: {A: 1.5}}\n", "1:24", "put it in quotes"),
    ("environment: {env: {HOME: /h}}\n", "1:15", "the agent out of its trial's own home"),  # V19
    ("environment: {network_policy: deny_all}\n", "1:1", "which cannot keep it"),  # F20
    ("judge: {model: m}\njudges: [{success: [x]}]\n", "1:1", "both `judge` and `judges`"),
    ("on_no_resume: skip\n", "1:15", "`single_shot`"),
    ("benchmark: {enabled: maybe}\n", "1:22", "write `true` or `false`"),
    ("gates: {min_pass_rate: 90}\n", "1:24", "must be at most 1"),
    ("report: {formats: [pdf]}\n", "1:20", "`junit`"),
    ("report: [json]\n", "1:1", "is not a mapping"),
    ("judge: {pass_threshold: 2}\n", "1:25", "must be at most 1"),
    (f"judge: {{api_key_env: sk-{'a1' * 12}}}\n", "1:22", "not the name of a variable"),
    ("name: \"a\tb\n", "2:1", "close the quote"),
    ("name: a\n  b: c\n", "2:4", "mapping values are not allowed"),
    ("cases: &a {files: [c.yaml]}\nmcp: *b\n", "2:6", "alias"),
]  # fmt: skip
