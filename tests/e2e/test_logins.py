"""One login by file serves all trials of the real codex (F5); of claude: tests/engines."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skillup.engines.codex.engine import Codex
from skillup.redaction.secrets import Secrets
from skillup.schema.profile import Profile
from tests.e2e.conftest import find_cli
from tests.engines.test_environment import all_at_once, write_login
from tests.support.engine_turns import error_kind
from tests.support.model_server import ModelServer, Text
from tests.support.token_server import codex_login, token_server

pytestmark = pytest.mark.e2e


@pytest.mark.slow
def test_eight_trials_renew_one_login_of_codex_once(
    model_server: Callable[..., ModelServer], tmp_path: Path
) -> None:
    """F5: its refresh tokens serve once; all but one of the trials used to end in `auth`."""
    model = model_server(lambda _: Text("hello"))
    provider = f'{{name="lab",base_url="{model.url}/v1",requires_openai_auth=true}}'
    args = ["-c", "model_provider=lab", "-c", f"model_providers.lab={provider}"]
    profile = Profile(engine="codex", command=[str(find_cli("codex"))], model="gpt-5.5", args=args)
    file = tmp_path / "user-home" / ".codex" / "auth.json"
    write_login(file, codex_login("first", time.time() + 60))

    with token_server("first") as (url, used):
        override = {"CODEX_REFRESH_TOKEN_URL_OVERRIDE": url}
        outcomes = all_at_once(Codex(), tmp_path, profile, Secrets({}), None, **override)

    assert [error_kind(outcome) for outcome in outcomes] == [None] * 8
    assert used == ["first"]
    assert json.loads(file.read_text())["tokens"]["refresh_token"] == "renewed-1"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
