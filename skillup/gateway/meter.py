"""What passes between an agent and its model: requests and usage, from the provider's own answers.

Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini; as JSON and as events.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from skillup.schema.record import Refusal, Traffic, Usage, total_usage

_METERED = re.compile(
    r"/(?:messages|responses|chat/completions)$|:(?:generateContent|streamGenerateContent)$"
)
REFUSED = frozenset({429, 503, 529})  # Statuses that ask to come again later
LONGEST = 4 << 20  # Bytes of a request, or of an event of its answer, that are looked at
Mask = Callable[[bytes], bytes]


class ModelExchange:
    """One request and its answer, as far as they have passed; nothing here raises or waits."""

    def __init__(self, path: str, prompts: Sequence[str]) -> None:
        """`prompts`: the messages of the conversation so far, the one that is asked now last."""
        self.path = path
        self.is_metered = _METERED.search(path.partition("?")[0]) is not None
        self.main = False
        self.continued: bool | None = None
        """Whether the request holds all `prompts`; None: it is a side request, or too long."""
        self.status: int | None = None  # None: the provider did not answer
        self.retry_after: float | None = None
        self._prompts = prompts
        self.sha256, self.body, self._rest = hashlib.sha256(), bytearray(), bytearray()
        self._is_stream = False
        self._usage: dict[str, Any] = {}

    def asked(self, data: bytes) -> None:
        """A part of the request."""
        self.sha256.update(data)
        if len(self.body) <= LONGEST:
            self.body += data

    def asked_all(self) -> None:
        """The request is whole; a long one takes some time."""
        body, self.body = self.body, bytearray()
        self.main = len(body) > LONGEST  # no title or probe is as long
        if not self.is_metered or self.main:
            return
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            content = json.loads(body)
            items = content.get("messages") or content.get("input") or content.get("contents") or ()
            has_tools = bool(content.get("tools")) or b'"additional_tools"' in body
            texts = list(_user_texts(items))
            self.main = has_tools and _hold(texts, self._prompts[-1:])
            self.continued = _hold(texts, self._prompts) if self.main else None

    def answers(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The answer begins."""
        found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
        self.status = status
        self._is_stream = "event-stream" in found.get("content-type", "")
        if status in REFUSED:
            self.retry_after = _retry_after(found)

    def answered(self, data: bytes) -> None:
        """A part of the answer."""
        if not self.is_metered or self.status != 200 or len(self._rest) > LONGEST:
            return
        self._rest += data
        if self._is_stream and (end := self._rest.rfind(b"\n") + 1):
            if b"sage" in self._rest:  # usage, usageMetadata
                for line in self._rest[:end].split(b"\n"):
                    if line.startswith(b"data:") and b"sage" in line:
                        self._take(line[5:])
            del self._rest[:end]

    def answered_all(self) -> None:
        """The answer is whole."""
        if not self._is_stream:
            self._take(self._rest)
        self._rest = bytearray()

    def _take(self, data: bytes | bytearray) -> None:
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            found = json.loads(data)
            for event in found if isinstance(found, list) else [found]:
                of = event.get("response") or event.get("message") or event
                for counts in (of.get("usage"), event.get("usage"), of.get("usageMetadata")):
                    self._usage |= {k: v for k, v in (counts or {}).items() if v is not None}

    def usage(self) -> Usage | None:
        """In the one meaning for all; None: the provider has not said."""
        with suppress(TypeError, ValueError, AttributeError):
            return _usage_of(self._usage) if self._usage else None
        return None


def _usage_of(raw: Mapping[str, Any]) -> Usage:
    """Anthropic counts cached input apart, Gemini thoughts; in a record they are counted in."""
    given = raw.get("input_tokens_details") or raw.get("prompt_tokens_details") or {}
    made = raw.get("output_tokens_details") or raw.get("completion_tokens_details") or {}
    read, written = raw.get("cache_read_input_tokens"), raw.get("cache_creation_input_tokens")
    totals = "input_tokens", "prompt_tokens", "promptTokenCount"
    outputs = "output_tokens", "completion_tokens", "candidatesTokenCount"
    total, output = (next((raw[n] for n in names if n in raw), None) for names in (totals, outputs))
    thoughts = raw.get("thoughtsTokenCount")
    total = None if total is None else total + (read or 0) + (written or 0)
    output = (output or 0) + thoughts if thoughts else output
    cached = raw.get("cachedContentTokenCount", given.get("cached_tokens", read))
    return Usage(
        input_tokens=total,
        cached_input_tokens=cached,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=made.get("reasoning_tokens", thoughts),
        requests=1,
    )


def _user_texts(items: Any) -> Iterable[str]:
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        if item.get("role") == "user":
            content = item.get("content") or item.get("parts") or ()
            parts = [content] if isinstance(content, str) else [one.get("text") for one in content]
            yield _flat("\n".join(part for part in parts if part))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _hold(texts: Collection[str], prompts: Iterable[str]) -> bool:
    """Whether each of `prompts` is in one of `texts`, in this order."""
    left = iter(texts)
    return all(any(_flat(prompt) in text for text in left) for prompt in prompts)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; None: the provider does not say, or names a date."""
    with suppress(ValueError):
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        return float(headers.get("retry-after", ""))
    return None


def _traffic_of(exchanges: Sequence[ModelExchange]) -> Traffic:
    """What passed in a turn."""
    metered = [one for one in exchanges if one.is_metered]
    main, side = ([one for one in metered if one.main is kind] for kind in (True, False))
    own, others = (total_usage(one.usage() for one in part) for part in (main, side))
    known = [one.continued for one in main if one.continued is not None]
    refused = [one for one in metered if one.status in REFUSED]
    return Traffic(
        requests=len(main),
        side_requests=len(side),
        usage=Usage(**own) if own else None,
        side_usage=Usage(**others) if others else None,
        refused=[Refusal(status=o.status, retry_after_seconds=o.retry_after) for o in refused],
        sha256=[one.sha256.hexdigest()[:16] for one in main],
        continued=all(known) if known else None,
    )


class Route:
    """The way of one trial to its model. What is between `begin` and `end` is one turn's."""

    def __init__(self, port: int, upstream: str, streams: Any, mask: Mask) -> None:
        """Bodies are kept in raw `streams`, masked, if there are any."""
        self.upstream, self.token = upstream.rstrip("/"), secrets.token_hex(16)
        self.trouble = ""  # Why a request of this turn was not answered
        self.stream: Any = None  # Where bodies go; None: they are not kept
        self.is_open = True
        self.exchanges: list[ModelExchange] = []
        self.prompts: Sequence[str] = ()
        self._port, self._streams, self._mask = port, streams, mask
        self._keys: dict[bytes, bytes] = {}

    @property
    def url(self) -> str:
        """Where the agent's CLI finds its model."""
        return self.url_at(self._port)

    def url_at(self, port: int) -> str:
        """The same for a CLI whose loopback is its own, with a forwarder at `port`."""
        return f"http://127.0.0.1:{port}/{self.token}"

    def placeholder(self, key: str) -> str:
        """What the agent gets in place of a key; in its requests it is replaced by it."""
        made = f"skillup-{secrets.token_hex(16)}"
        self._keys[made.encode()] = key.encode()
        return made

    def with_keys(self, value: bytes) -> bytes:
        """A header's value, or a path, with keys in place of what stands for them."""
        for placeholder, key in self._keys.items():
            value = value.replace(placeholder, key)
        return value

    def begin(self, stem: str, prompts: Sequence[str]) -> None:
        """A turn begins; `prompts`: all messages of the conversation, its own last."""
        self.prompts, self.trouble = prompts, ""
        if self._streams is not None:
            self.stream = self._streams.open(f"{stem}.http.jsonl")

    def end(self) -> Traffic:
        """The turn is over: what passed since the one before."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        exchanges, self.exchanges = self.exchanges, []
        return _traffic_of(exchanges)

    def keep(self, exchange: ModelExchange, *bodies: bytes) -> None:
        """`--keep-traffic`: a line for a request and its answer."""
        if self.stream is not None and exchange.is_metered:
            asked, answered = (body.decode(errors="replace") for body in bodies)
            line = {"path": exchange.path, "status": exchange.status, "request": asked}
            line["answer"] = answered
            self.stream.write(self._mask(json.dumps(line).encode()) + b"\n")


NewRoute = Callable[[str, Any, Mask], Route]
"""Through the gateway: to the model at a URL, with the trial's raw streams and its mask."""
