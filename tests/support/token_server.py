"""A token endpoint on loopback whose refresh tokens serve once, and logins of it."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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
    oauth = {"accessToken": jwt(expires), "refreshToken": refresh_token}
    return {
        "claudeAiOauth": {**oauth, "expiresAt": int(expires * 1000), "scopes": ["user:inference"]}
    }


class TokenServer:
    """Renews `first`, and what it gave for it, each once."""

    def __init__(self, first: str) -> None:
        self.used: list[str] = []
        self._valid = first
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, answer = server._renew(str(body["refresh_token"]))
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/oauth/token"

    def __enter__(self) -> TokenServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _renew(self, token: str) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.used.append(token)
            if token != self._valid:
                return 400, {"error": {"code": "refresh_token_reused"}}
            self._valid = f"renewed-{len(self.used)}"
            access = jwt(time.time() + 86400, len(self.used))
            return 200, {"id_token": access, "access_token": access, "refresh_token": self._valid}
