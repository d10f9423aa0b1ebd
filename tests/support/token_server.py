"""A token endpoint on loopback whose refresh tokens serve once, and logins of it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.answering import answering


def jwt(expires: float, number: int = 0) -> str:
    """An access token as codex's are: it says itself when it expires."""
    account = {"chatgpt_plan_type": "pro", "chatgpt_account_id": "lab"}
    claims = {"exp": int(expires), "n": number, "https://api.openai.com/auth": account}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({}, claims)]
    return b".".join(part.rstrip(b"=") for part in [*parts, b"signature"]).decode()


def codex_login(refresh_token: str, expires: float) -> dict[str, Any]:
    token = jwt(expires)
    tokens = {"id_token": token, "access_token": token, "account_id": "lab"}
    return {"OPENAI_API_KEY": None, "tokens": {**tokens, "refresh_token": refresh_token}}


def claude_login(refresh_token: str, expires: float) -> dict[str, Any]:
    oauth = {"refreshToken": refresh_token, "expiresAt": int(expires * 1000)}
    return {"claudeAiOauth": {**oauth, "accessToken": jwt(expires), "scopes": ["user:inference"]}}


@contextmanager
def token_server(first: str) -> Iterator[tuple[str, list[str]]]:
    """Renews `first`, and what it gave for it, each once; its address, and the tokens it got."""
    used, lock, valid = list[str](), threading.Lock(), first

    def renew(_: object, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        nonlocal valid
        with lock:
            used.append(str(json.loads(body)["refresh_token"]))
            status, told = 400, dict[str, Any](error={"code": "refresh_token_reused"})
            if used[-1] == valid:
                valid, access = f"renewed-{len(used)}", jwt(time.time() + 86400, len(used))
                told = {"id_token": access, "access_token": access, "refresh_token": valid}
                status = 200
        return status, json.dumps(told).encode(), {"Content-Type": "application/json"}

    with answering(renew) as url:
        yield f"{url}/oauth/token", used
