"""Suites with one mistake each: the text, where it is told, and what is said of it."""

from __future__ import annotations

SUITES = [
    ("name: a\nname: b\n", "2:1", "name"),
    ("nmae: a\n", "1:1", "did you mean `name`?"),
    ("schema_version: v2\n", "1:17", "allowed: `v1alpha1`"),
    ("parallelism: 4\n", "1:1", "it belongs to `cases`"),
    ("cases: {files: 3}\n", "1:16", "no such file"),
    ("cases: {files: [a.yaml, c.yaml]}\n", "1:17", "no such file: a.yaml"),
    ("cases: {files: ['x/*.yaml', c.yaml]}\n", "1:17", "matches no file"),
    ("cases: {retry_policy: {retry_on: [time-out]}}\n", "1:35", "did you mean `timeout`?"),
    ("cases: {defaults: {trials: 10001}}\n", "1:28", "must be at most 10000"),
    ("cases: {defaults: {expect: {must_contian: [x]}}}\n", "1:29", "did you mean `must_contain`?"),
    ("skills: [{pth: a}]\n", "1:11", "did you mean `path`?"),
    ("skills: [{source: git, path: .}]\n", "1:19", "`local_path`"),
    ("skills:\n    - {}\n", "2:7", "`path` is missing; add it (its directory, relative to"),
    ("gates: {confidence: 0.9999999999999999}\n", "1:21", "it must be at most 0.999999999"),
    ("engine: {model: x}\n", "1:1", "`name` is missing"),
    ("environment: {env: {HOME: /h}}\n", "1:15", "the agent out of its trial's own home"),  # V19
    ("environment: {network_policy: deny_all}\n", "1:1", "which cannot keep it"),  # F20
    ("judge: {model: m}\njudges: [{success: [x]}]\n", "1:1", "both `judge` and `judges`"),
    (f"judge: {{api_key_env: sk-{'a1' * 12}}}\n", "1:22", "not the name of a variable"),
    ("name: \"a\tb\n", "2:1", "close the quote"),
    ("name: a\n  b: c\n", "2:4", "mapping values are not allowed"),
    ("cases: &a {files: [c.yaml]}\nmcp: *b\n", "2:6", "alias"),
]  # fmt: skip
