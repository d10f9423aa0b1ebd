from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import parse_yaml, read_yaml

FILE = Path("case.yaml")


def problems_in(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(InvalidFilesError) as caught:
        parse_yaml(text, FILE)
    return caught.value.problems


def problem_in(path: Path) -> Problem:
    with pytest.raises(InvalidFilesError) as caught:
        read_yaml(path)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "line", "column", "phrase"),
    [
        # tabs
        ("a:\n\tb: 1\n", 2, 1, "a tab where only blanks may indent; indent with blanks"),
        ("\ta: 1\n", 1, 1, "a tab"),
        ("a: |\n\ttext\n", 2, 1, "a tab"),
        ("a: one\n\ttwo\n", 2, 1, "a tab"),
        ("a:\n  -\tb: 1\n", 2, 4, "a tab"),
        # quotes and escapes
        ('a: 1\nb: "open\nc: 2\n', 2, 4, "this quote is never closed"),
        ("a: 'it's'\n", 1, 8, "if a quote ended early, quote the whole text"),
        ('a: "\\d+"\n', 1, 5, "an escape that YAML does not know"),
        ('a: "\\xZZ"\n', 1, 7, "an escape that YAML does not know"),
        ('a: "\\ud800"\n', 1, 7, "an escape that YAML does not know"),
        ('a: "\\UFFFFFFFF"\n', 1, 7, "an escape that YAML does not know"),
        ('a: "x\n---\n', 1, 4, "this quote is never closed"),
        # texts that need quotes
        ("a: [*.log]\n", 1, 5, "`*` begins an alias (`*name`), not a text; put the text in quotes"),
        ("a: &\n", 1, 4, "`&` begins an anchor"),
        ("a: *log\n", 1, 4, "the alias `*log` has no `&log` above it; put it in quotes"),
        ("a: @home\n", 1, 4, "a text cannot begin with `@`; put the text in quotes"),
        ("a: `x`\n", 1, 4, "a text cannot begin with ```"),
        ("a: %x\n", 1, 4, "a text cannot begin with `%`"),
        ("a: >= 5\n", 1, 4, "`|` and `>` begin a text on the lines below"),
        ("a: | text\n", 1, 4, "`|` and `>` begin a text on the lines below"),
        ("a: b: c\n", 1, 5, "`:` cannot stand here"),
        ("a: - b\n", 1, 4, "a list cannot begin here"),
        # structure
        ("a: 1\n b: 2\n", 2, 3, "`:` cannot stand here; check the indentation"),
        ("a: 1\nb\nc: 2\n", 2, 1, "a key without `:`"),
        ("a:\n  - b\n c: 1\n", 3, 2, "this does not continue what begins at line 1"),
        ("- a\nb: 1\n", 2, 1, "this does not continue what begins at line 1"),
        ("a: [1, 2\n", 2, 1, "missing here; what is open begins at line 1"),
        ("a:\n  b: {c: 1\n", 3, 1, "missing here; what is open begins at line 2"),
        ("a: {b: 1,, c: 2}\n", 1, 10, "a value is missing before this"),
        ("a: ]\n", 1, 4, "a value is missing before this"),
        ("%YAML 2.0\n---\na: 1\n", 1, 1, "this is not YAML (found incompatible YAML document"),
        # tags
        ("a: !!python/object/apply:os.system [ls]\n", 1, 4, "the tag `!!python/object/apply:os."),
        ("a: !foo bar\n", 1, 4, "the tag `!foo` is not allowed"),
        ("!foo\na: 1\n", 1, 1, "the tag `!foo` is not allowed"),
        ("a: !!binary aGk=\n", 1, 4, "the tag `!!binary` is not allowed"),
        ("a: !!int abc\n", 1, 4, "the tag `!!int` is not allowed"),
        ("a: !!str [b]\n", 1, 4, "the tag `!!str` is not allowed"),
        # keys
        ("[a, b]: 1\n", 1, 1, "a list or a mapping cannot be a key"),
        ("a:\n  ? {b: 1}\n  : 2\n", 2, 5, "a list or a mapping cannot be a key"),
        ("a: &x [1]\n*x : 2\n", 2, 1, "a list or a mapping cannot be a key"),
        ("{{x}}\n", 1, 2, "a list or a mapping cannot be a key"),
        ("<<: 1\n", 1, 5, "`<<` takes a mapping, or a list of mappings"),
        # documents
        ("", 1, 1, "the file is empty"),
        ("\n# only a comment\n", 1, 1, "the file is empty"),
        ("---\n", 1, 1, "the file is empty"),
        ("# list\n- a\n", 2, 1, "the file holds a list, not a mapping"),
        ("just words\n", 1, 1, "the file holds a single value, not a mapping"),
        ("a: 1\n---\nb: 2\n", 2, 1, "a second document begins here"),
        # characters
        ("a: 1\nb: \x00\n", 2, 4, "the character U+0000 may not be in a YAML file; remove it; is"),
        ("a: \x07\n", 1, 4, "the character U+0007 may not be in a YAML file; remove it"),
        ("a: 1\nb: \ud800\n", 2, 4, "the character U+D800 may not be in a YAML file"),
        # numbers that Python would not read
        ("a: " + "1" * 5000, 1, 4, "a number of 5000 characters; the limit is 1000"),
    ],
)
def test_a_trap_is_one_located_message(text: str, line: int, column: int, phrase: str) -> None:
    (problem,) = problems_in(text)
    assert phrase in str(problem)
    assert (problem.line, problem.column) == (line, column)


def test_every_duplicate_key_is_named_with_both_places() -> None:
    text = "a: 1\nb:\n  c: 1\n  d: [{e: 1, e: 2}]\n  c: {x: 1, x: 2}\na: 2\n"
    assert [str(p) for p in problems_in(text)] == [
        f"case.yaml:{line}:{column}: the key `{key}` was given already, at line {first}; "
        "keep one of the two"
        for line, column, key, first in [
            (4, 14, "e", "4, column 8"),
            (5, 3, "c", "3, column 3"),
            (5, 13, "x", "5, column 7"),
            (6, 1, "a", "1, column 1"),
        ]
    ]


def test_oddities_before_an_error_of_syntax_are_told_with_it() -> None:
    first, second = problems_in("a: !foo 1\na: 2\nb: [\n")[::2]
    assert "!foo" in first.message
    assert second.line == 4


def test_endless_oddities_are_told_up_to_a_hundred() -> None:
    assert len(problems_in("a: !foo 1\n" + "".join(f"b{n}: !x 1\n" for n in range(500)))) == 100


# --- bombs: bounded in time and memory


def test_aliases_that_multiply_are_refused() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 30)]
    (problem,) = problems_in("l0: &l0 [x]\n" + "\n".join(levels))
    assert "the aliases repeat more than 1000000 characters" in problem.message
    assert problem.line in (6, 7)


@pytest.mark.parametrize(
    "text", ["a: &a [*a]\n", "a: &a {b: {c: *a}}\n", "a: &a\n  <<: *a\n  b: 1\n"]
)
def test_a_value_that_contains_itself_is_refused(text: str) -> None:
    assert "stands inside its own value" in problems_in(text)[0].message


@pytest.mark.parametrize("unit", ["[", "{a: ", "- ", "[{a: "])
def test_deep_nesting_is_refused_and_not_a_recursion_error(unit: str) -> None:
    (problem,) = problems_in("a:\n  " + unit * 20_000)
    assert "more than 100 levels of nesting" in problem.message


def test_deep_nesting_in_keys_is_refused() -> None:
    problems = problems_in("a:\n  " + "? " * 20_000)
    assert problems[0].message == "a list or a mapping cannot be a key"
    assert len(problems) <= 100


# --- encodings


def test_bytes_that_are_not_utf_8_are_located() -> None:
    (problem,) = problems_in("a: 1\r\nbé: ü ".encode() + b"\xff\n")
    assert (problem.line, problem.column) == (2, 7)
    assert "byte 0xff at offset 14 is not UTF-8; save it as UTF-8" in str(problem)


def test_a_wide_encoding_is_named() -> None:
    (problem,) = problems_in("a: 1\n".encode("utf-16"))
    assert "not UTF-8; save it as UTF-8" in str(problem)


# --- files that are none


def test_a_missing_file_is_a_problem_of_that_file(tmp_path: Path) -> None:
    problem = problem_in(tmp_path / "none.yaml")
    assert str(problem) == f"{tmp_path}/none.yaml:1:1: there is no such file"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert problem_in(tmp_path).message == "this is a directory, not a file"


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    assert problem_in(pipe).message == "this is a pipe, not a file"


def test_a_device_is_refused() -> None:
    assert problem_in(Path("/dev/zero")).message == "this is a device, not a file"


def test_a_larger_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    with path.open("wb") as stream:
        stream.truncate(10**12)
    assert "the limit is 16 MB" in str(problem_in(path))


def test_a_file_whose_size_is_not_known_beforehand_is_read_or_refused_by_what_it_holds() -> None:
    path = Path("/proc/self/environ")
    if not path.exists():
        return  # no file of unknown size here
    problem = problem_in(path)
    assert problem.file == path
