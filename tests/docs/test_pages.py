"""Links, verbs and options on the pages exist; every option is on a page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, tables_of

OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
IN_A_SENTENCE = re.compile(r"`(skillup [^`]+)`")


def _options_by_verb() -> dict[str, set[str]]:
    from skillup.cli.main import app_for

    commands = app_for([]).commands
    verbs = {}
    for name, command in commands.items():
        # A group has verbs of its own: `session list`.
        for verb, inner in getattr(command, "commands", {"": command}).items():
            options = {option for parameter in inner.params for option in parameter.opts}
            verbs[f"{name} {verb}".strip()] = options
    return verbs


OPTIONS = _options_by_verb()


def _lines() -> Iterator[tuple[str, str]]:
    """Each command with its place: indented lines, fenced ones, and code within sentences."""
    for page in PAGES:
        for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
            place = f"{page.name}:{number}"
            yield from ((place, found) for found in IN_A_SENTENCE.findall(line))
            if line.startswith("    ") and "skillup " in line:
                for part in re.split(r"&&|\||;", line):
                    command = re.search(r"(?:^|[\s/])(skillup .*)", part)
                    if command is not None:
                        # What stands after two spaces is said about the command.
                        yield place, re.split(r"\s{2,}|\s#", command[1])[0]


COMMANDS = list(_lines())


@pytest.mark.parametrize(
    ("place", "command"), COMMANDS, ids=[f"{place} {command}" for place, command in COMMANDS]
)
def test_a_command_on_a_page_names_a_verb_and_options_that_exist(place: str, command: str) -> None:
    words = shlex.split(command.replace("[", "").replace("]", ""))[1:]
    verb = _verb_of(words)
    if verb.startswith("-"):
        assert verb in ("--version", "--help", "-V", "-h"), place
        return
    assert verb in OPTIONS, place
    unknown = [
        w for w in words[1:] if w.startswith("-") and w.partition("=")[0] not in _known(verb)
    ]
    assert unknown == [], place


def _verb_of(words: list[str]) -> str:
    """`run`, or `session list`."""
    return next((v for v in (" ".join(words[:2]), words[0]) if v in OPTIONS), words[0])


def _known(verb: str) -> set[str]:
    return OPTIONS[verb] | {"-h", "--help"}


def test_the_pages_show_commands() -> None:
    assert {words.split()[1] for _, words in COMMANDS} >= {"run", "validate", "list", "doctor"}


def test_every_option_of_every_verb_is_in_a_table() -> None:
    told: dict[str, set[str]] = {}
    for table in (table for page in PAGES for table in tables_of(page)):
        if table.marker.action == "options":
            told[table.marker.value] = set(OPTION.findall(" ".join(table.names())))
        elif table.marker.action == "verbs":
            for about, options, _ in table.rows:
                told[_verb_of(about.strip("`").split())] = set(OPTION.findall(options))
    assert told == {
        verb: {option for option in options if option.startswith("-")} - {"-h", "--help"}
        for verb, options in OPTIONS.items()
    }


_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)


def _links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for found in _LINK.finditer(page.read_text("utf-8")):
            if "://" not in found["target"]:
                yield page, found["target"]


@pytest.mark.parametrize(
    ("page", "target"), list(_links()), ids=lambda value: getattr(value, "name", value)
)
def test_a_link_leads_to_a_file_and_a_heading(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists()
    if anchor:
        assert anchor in _anchors(file)


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them: lower case, spaces to dashes, other signs dropped."""
    headings = (found["text"].lower() for found in _HEADING.finditer(page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in headings}
