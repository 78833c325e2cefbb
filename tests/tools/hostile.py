"""A server on this machine that breaks the rules of HTTP, of OpenAI's format and of book-keeping, as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections import Counter
from collections.abc import Callable

from llm_coop_envs.policies.llm.testing.server import digest_answer

HUGE = 2**28  # bytes of spaces, of which gzip makes a quarter of a megabyte
DEEP = 200_000
# What a server may say of tokens and money, as the text of the JSON that it sends.
USAGES = {
    "none": "null",
    "zero": '{"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}',
    "negative": '{"prompt_tokens": -4000, "completion_tokens": -4000}',
    "without the answer": '{"prompt_tokens": 12}',
    "without the question": '{"completion_tokens": 12}',
    "texts": '{"prompt_tokens": "12", "completion_tokens": "7"}',
    "truths": '{"prompt_tokens": true, "completion_tokens": true}',
    "fractions": '{"prompt_tokens": 12.5, "completion_tokens": 1e400}',
    "NaN": '{"prompt_tokens": NaN, "completion_tokens": NaN}',
    "2^62": '{"prompt_tokens": 4611686018427387904, "completion_tokens": 4611686018427387904}',
    "10^400": f'{{"prompt_tokens": 1{"0" * 400}, "completion_tokens": 1{"0" * 400}}}',
    "lists": '{"prompt_tokens": [12], "completion_tokens": {"a": 7}}',
    "hidden beyond measure": '{"prompt_tokens": 12, "completion_tokens": 9, "completion_tokens_details": '
    '{"reasoning_tokens": 4611686018427387904}, "prompt_tokens_details": {"cached_tokens": 4611686018427387904}}',
}
COSTS = {
    "zero": "0",
    "negative": "-3.5",
    "NaN": "NaN",
    "infinite": "Infinity",
    "1e400": "1e400",
    "10^400": "1" + "0" * 400,
    "dear": "1e12",
    "text": '"free"',
}


def head(status: str = "200 OK", *headers: str, kind: str = "application/json") -> bytes:
    """The beginning of an answer, of any length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _bomb(fine: bytes) -> bytes:
    global _PACKED
    if not _PACKED:
        import io

        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as file:
            for _ in range(HUGE >> 20):
                file.write(b" " * (1 << 20))
        _PACKED = packed.getvalue()
    return head("200 OK", "Content-Encoding: gzip", f"Content-Length: {len(_PACKED)}") + _PACKED


_PACKED = b""
# Broken answers: from the completion that would have been sent to the bytes that are.
BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "bad status line": lambda fine: b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
    "no status line": lambda fine: b"SSH-2.0-OpenSSH_9.6\r\n",
    "bad header": lambda fine: b"HTTP/1.1 200 OK\r\nthis is no header\r\n\r\n" + fine,
    "zero byte in a header": lambda fine: head("200 OK", "X-A: a\x00b") + fine,
    "two lengths": lambda fine: head("200 OK", "Content-Length: 3", f"Content-Length: {len(fine)}") + fine,
    "length and chunks": lambda fine: head("200 OK", "Content-Length: 3", "Transfer-Encoding: chunked") + fine,
    "bad chunks": lambda fine: head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n" + fine,
    "header of a megabyte": lambda fine: head("200 OK", "X-A: " + "a" * 2**20) + fine,
    "closed at once": lambda fine: b"",
    "half an answer": lambda fine: head("200 OK", f"Content-Length: {len(fine)}") + fine[: len(fine) // 2],
    "deep JSON": lambda fine: head() + b"[" * DEEP,
    "deep JSON, closed": lambda fine: head() + b'{"choices":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep error": lambda fine: head("500 Oh") + b'{"error":' * DEEP + b"1" + b"}" * DEEP,
    "bomb": _bomb,
    "bad gzip": lambda fine: head("200 OK", "Content-Encoding: gzip") + b"\x1f\x8b\x08 no gzip",
    "unknown packing": lambda fine: head("200 OK", "Content-Encoding: rot13") + fine,
    "no UTF-8": lambda fine: head() + fine.replace(b"choice", b"\xff\xfe"),
    "a page": lambda fine: head(kind="text/html") + b"<html>please log in</html>",
    "too busy": lambda fine: head("429 Busy", "Retry-After: 0.01") + b"{}",
}


class HostileServer:
    """A server that does with each request as it is told.

    Args:
        act: what becomes of a request, from its body and how often its question was asked before: the name of one of
            `BROKEN`, the bytes to send, or `None` for a proper answer.
        usage: the text of a proper answer's usage.
        model: the text of the model's name, as JSON.
        delay: seconds before an answer, and between pieces of bytes given as a tuple.

    Attributes:
        requests: method, path and headers of each.
    """

    def __init__(self, act=lambda body, time: None, *, usage="null", model='"m"', delay=0.0, text=digest_answer):
        self.act = act
        self.usage = usage
        self.model = model
        self.delay = delay
        self.text = text
        self.asked: Counter[str] = Counter()
        self.requests: list[tuple[str, str, dict[str, str]]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()

    def completion(self, body) -> bytes:
        """A proper answer to a request's body."""
        text = self.text("\n\n".join(message["content"] for message in body["messages"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return (
            '{"id": "x", "object": "chat.completion", "created": 0, '
            f'"model": {self.model}, "choices": [{json.dumps(choice)}], "usage": {self.usage}}}'
        ).encode()

    async def _serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            raw = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = raw[0].split(" ", 2)
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in raw[1:])}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
            self.requests.append((method, path, headers))
            if method != "POST":
                sent = head("404 Not Found") + b"{}"
            else:
                question = headers.get("idempotency-key", json.dumps(body))
                time = self.asked[question]
                self.asked[question] += 1
                told = self.act(body, time)
                fine = self.completion(body)
                sent = head() + fine if told is None else BROKEN[told](fine) if isinstance(told, str) else told
            for piece in sent if isinstance(sent, tuple) else (sent,):
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(piece)
                await writer.drain()
        writer.close()
