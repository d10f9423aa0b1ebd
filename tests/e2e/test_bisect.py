"""`skillup bisect` with the real claude: which version of the CLI broke a case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_bisect import fake_npm, history
from tests.e2e.conftest import KEYS, Lab, find_cli
from tests.support.model_server import ModelRequest, Reply, Text

pytestmark = pytest.mark.e2e

FEW = ("--error", "0.4")  # So that a few trials are enough
VERSIONS = ["2.1.190", "2.1.193", "2.1.195", "2.1.197"]
NPM = """\
#!/bin/sh
if [ "$1" = view ]; then echo '{versions}'; exit; fi
[ "$3" = --prefix ] || exit 1
mkdir -p "$4/node_modules/.bin"
echo "${{2##*@}}" >> {log}
bad=
case $2 in *@2.1.195|*@2.1.197) bad='--append-system-prompt BROKEN';; esac
printf '#!/bin/sh\\nexec {claude} "$@" %s\\n' "$bad" > "$4/node_modules/.bin/claude"
chmod +x "$4/node_modules/.bin/claude"
"""


def follows_the_skill(request: ModelRequest) -> Reply:
    """Greets as the installed skill's description says, unless the CLI's prompt is broken."""
    polite = "Greets politely" in request.raw_text and "BROKEN" not in request.raw_text
    return Text("good morning" if polite else "what?")


def test_the_version_of_the_cli_that_broke_a_case(lab: Lab, tmp_path: Path) -> None:
    """A script stands in for npm; of the one claude it makes versions with another prompt."""
    project, _ = lab(follows_the_skill, {})
    history(project, ["so"], descriptions=["Greets politely"])
    log = tmp_path / "installed"
    text = NPM.format(versions=json.dumps(VERSIONS), log=log, claude=find_cli("claude"))
    env = KEYS | fake_npm(project, text)
    ends = ("--good", VERSIONS[0], "--bad", VERSIONS[3])

    outcome = project.run("bisect", "greets", "--cli", "claude", *ends, *FEW, env=env)

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.startswith("2.1.195 broke greets (")
    assert "@anthropic-ai/claude-code 2.1.195 after 2.1.193" in outcome.stdout
    installed = log.read_text().split()
    assert len(installed) == len(set(installed))
