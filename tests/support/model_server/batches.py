"""The batch APIs of Anthropic (Messages) and OpenAI (Responses), as their clients speak them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Ask = Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]] | None]
"""Answers a request to a path by status and body; None: it is never answered."""


@dataclass
class BatchServer:
    """Batches end at the second look at them, or (`endless`) never; some items expire."""

    url: str  # Of the server
    endless: bool = False
    sizes: list[int] = field(default_factory=list)
    """Of the batches, in order."""
    cancelled: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    _looks: dict[str, int] = field(default_factory=dict)

    def answer(
        self, method: str, path: str, payload: bytes, ask: Ask
    ) -> tuple[int, bytes | dict[str, Any]] | None:
        """None: the path is of no batch."""
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:3] == ["v1", "messages", "batches"]:
            return 200, self._anthropic(method, parts[3:], payload, ask)
        if parts[:2] == ["v1", "files"]:
            return 200, self._file(method, parts[2:], payload)
        if parts[:2] == ["v1", "batches"]:
            return 200, self._openai(method, parts[2:], payload, ask)
        return None

    def _begin(self, size: int) -> str:
        self.sizes.append(size)
        return f"batch_{len(self.sizes)}"

    def _ended(self, name: str) -> bool:
        self._looks[name] = self._looks.get(name, 0) + 1
        return not self.endless and self._looks[name] > 1

    def _anthropic(
        self, method: str, rest: list[str], payload: bytes, ask: Ask
    ) -> bytes | dict[str, Any]:
        state = "in_progress"
        if not rest:
            requests = json.loads(payload)["requests"]
            name = self._begin(len(requests))
            self.files[name] = b"\n".join(_anthropic_lines(requests, ask))
        else:
            name = rest[0]
            if rest[1:] == ["results"]:
                return self.files[name]
            if rest[1:] == ["cancel"]:
                self.cancelled.append(name)
                state = "canceling"
            elif self._ended(name):
                state = "ended"
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        when = {"created_at": "2026-11-01T00:00:00Z", "expires_at": "2026-11-02T00:00:00Z"}
        results = f"{self.url}/v1/messages/batches/{name}/results"
        about = {"id": name, "type": "message_batch", "processing_status": state, **when}
        return {**about, "request_counts": counts, "results_url": results}

    def _file(self, method: str, rest: list[str], payload: bytes) -> bytes | dict[str, Any]:
        if rest[1:] == ["content"]:
            return self.files[rest[0]]
        if method == "DELETE":
            del self.files[rest[0]]
            return {"id": rest[0], "object": "file", "deleted": True}
        assert b'name="purpose"\r\n\r\nbatch' in payload
        lines = re.findall(rb'^\{"custom_id".*?\}\r?$', payload, re.M)
        name = f"file_{len(self.files)}"
        self.files[name] = b"\n".join(lines)
        return {"id": name, "object": "file", "bytes": len(payload), "created_at": 1,
                "filename": "batch.jsonl", "purpose": "batch", "status": "processed"}  # fmt: skip

    def _openai(self, method: str, rest: list[str], payload: bytes, ask: Ask) -> dict[str, Any]:
        state, files = "in_progress", {}
        if not rest:
            asked = json.loads(payload)
            rows = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
            assert {row["url"] for row in rows} == {asked["endpoint"]}
            assert len({row["body"]["model"] for row in rows}) == 1
            name = self._begin(len(rows))
            right, wrong = _openai_lines(rows, ask)
            self.files |= {f"{name}_input": asked["input_file_id"].encode()}
            self.files |= {f"{name}_right": b"\n".join(right), f"{name}_wrong": b"\n".join(wrong)}
        else:
            name = rest[0]
            if rest[1:] == ["cancel"]:
                self.cancelled.append(name)
                state = "cancelling"
            elif self._ended(name):
                state = "completed"
                files = {"output_file_id": f"{name}_right", "error_file_id": f"{name}_wrong"}
        given = self.files[f"{name}_input"].decode()
        return {"id": name, "object": "batch", "endpoint": "/v1/responses", "status": state,
                "completion_window": "24h", "created_at": 1, "input_file_id": given,
                **files}  # fmt: skip


def _anthropic_lines(requests: list[dict[str, Any]], ask: Ask) -> Iterator[bytes]:
    for one in reversed(requests):  # in any order
        answer = ask("/v1/messages", one["params"])
        result: dict[str, Any] = {"type": "expired"}
        if answer is not None:
            status, body = answer
            right = {"type": "succeeded", "message": body}
            result = right if status == 200 else {"type": "errored", "error": body}
        yield json.dumps({"custom_id": one["custom_id"], "result": result}).encode()


def _openai_lines(rows: list[dict[str, Any]], ask: Ask) -> tuple[list[bytes], list[bytes]]:
    right: list[bytes] = []
    wrong: list[bytes] = []
    for row in reversed(rows):
        answer = ask(row["url"], row["body"])
        line: dict[str, Any] = {"id": "1", "custom_id": row["custom_id"], "response": None}
        if answer is None:
            line["error"] = {"code": "batch_expired", "message": "The window expired."}
        else:
            line["response"] = {"status_code": answer[0], "request_id": "1", "body": answer[1]}
        place = right if answer is not None and answer[0] == 200 else wrong
        place.append(json.dumps(line).encode())
    return right, wrong
