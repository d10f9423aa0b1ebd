"""Finding and installing the real CLIs, with a pretended npm."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import check_output

import pytest

from tests.support.clis import CliUnusableError, find_cli

WORKING = "#!/bin/sh\necho 1.0\n"
BROKEN = "#!/bin/sh\necho no native binary; exit 1\n"


@pytest.fixture(autouse=True)
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what the test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("SKILLUP_TEST_CLAUDE", raising=False)
    monkeypatch.delenv("SKILLUP_TEST_CODEX", raising=False)
    return folder


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def pretend_npm(folder: Path, claude: str = WORKING) -> Path:
    """An npm that puts two small programs in place, and logs each call; returns the log."""
    log = folder / "npm.log"
    source = f"""#!{sys.executable}
import pathlib, sys, time
prefix = pathlib.Path(sys.argv[sys.argv.index("--prefix") + 1])
with open({str(log)!r}, "a") as file: file.write("called\\n")
time.sleep(0.2)
for name, text in [("claude", {claude!r}), ("codex", {WORKING!r})]:
    path = prefix / "node_modules" / ".bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
package = prefix / "node_modules" / "@anthropic-ai" / "claude-code"
package.mkdir(parents=True, exist_ok=True)
(package / "install.cjs").write_text("")
"""
    program(folder / "npm", source)
    return log


def test_there_is_no_cli_where_there_is_neither_the_cli_nor_npm(tmp_path: Path) -> None:
    assert find_cli("claude", tmp_path / "cache") is None
    assert not (tmp_path / "cache").exists()


def test_the_variable_outranks_path(
    bare_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = program(bare_path / "codex", WORKING)
    assert find_cli("codex") == on_path

    other = program(tmp_path / "other" / "codex", WORKING)
    monkeypatch.setenv("SKILLUP_TEST_CODEX", str(other))
    assert find_cli("codex") == other


def test_a_variable_that_names_no_program_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLUP_TEST_CLAUDE", "/nowhere/claude")
    with pytest.raises(CliUnusableError, match="SKILLUP_TEST_CLAUDE is '/nowhere/claude'"):
        find_cli("claude")


def test_a_cli_that_does_not_run_is_a_failure_with_its_words(bare_path: Path) -> None:
    program(bare_path / "claude", BROKEN)
    with pytest.raises(CliUnusableError, match="no native binary"):
        find_cli("claude")


def test_an_npm_that_fails_is_a_failure_with_its_words(bare_path: Path, tmp_path: Path) -> None:
    program(bare_path / "npm", "#!/bin/sh\necho registry unreachable >&2; exit 1\n")
    with pytest.raises(CliUnusableError, match="registry unreachable"):
        find_cli("claude", tmp_path / "cache")


def test_npm_installs_once_however_many_processes_ask(bare_path: Path, tmp_path: Path) -> None:
    log = pretend_npm(bare_path)
    cache = tmp_path / "cache"
    ask = (
        "import pathlib, sys; from tests.support.clis import find_cli; "
        "print(find_cli(sys.argv[2], pathlib.Path(sys.argv[1])))"
    )

    def asked(name: str) -> str:
        root = Path(__file__).parents[2]
        return check_output([sys.executable, "-c", ask, str(cache), name], cwd=root, text=True)

    with ThreadPoolExecutor() as pool:
        found = list(pool.map(asked, ["claude", "codex", "claude"]))

    expected = [cache / "node_modules" / ".bin" / name for name in ("claude", "codex", "claude")]
    assert [Path(line.strip()) for line in found] == expected
    assert log.read_text() == "called\n"


def test_claudes_install_step_is_run_where_npm_was_not_allowed_to(
    bare_path: Path, tmp_path: Path
) -> None:
    pretend_npm(bare_path, claude=BROKEN)
    cache = tmp_path / "cache"
    command = cache / "node_modules" / ".bin" / "claude"
    program(bare_path / "node", f"#!/bin/sh\nprintf '#!/bin/sh\\necho 1.0\\n' > '{command}'\n")

    assert find_cli("claude", cache) == command
