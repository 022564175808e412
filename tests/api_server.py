"""A real HTTP server that speaks chat completions, answers by rule and misbehaves on request.

In a test: ``with ApiServer(Behaviour(...)) as server: OpenAIModel("test", base_url=server.url)`` runs it in a thread of
the test process. As a process of its own (benchmarks, tests that kill the client)::

    python tests/api_server.py --latency 0.2 --log served.jsonl      # prints its URL

What it answers is a function of the prompt (a letter a-d drawn by the prompt's hash) unless :class:`ApiServer` is given
another rule. Faults are ordered inside the prompt, so that they work in either form: ``[[503 x2]]`` fails the first two
requests of this prompt with status 503. Known orders, each optionally with ``xN`` (first N requests; without it
always):

    [[503]] [[400 some message]]      that status, with the message
    [[429 after=1.5]]                 that status with a Retry-After header, verbatim
    [[drop]] [[drop-in-body]]         close the connection before the headers, or after half of the body
    [[break]] [[end-early]]           a stream of which half comes: cut, or ended as if that were all
    [[error-in-stream]]               a stream that turns into an error half way
    [[truncate]]                      half of a body under a Content-Length that fits it
    [[malformed]]                     a complete body that is not JSON
    [[empty-choices]] [[wrong-shape]] valid JSON without an answer
    [[hang]]                          never answer
    [[error-200]]                     an error in the body of status 200
    [[null]] [[number]] [[list]]      valid JSON of another kind
    [[no-content]]                    a message without content
    [[nan]] [[bad-token]]             log-probabilities that are not numbers, tokens that are not texts
    [[half-character]]                a body that ends within a character of UTF-8
    [[deep]]                          a body nested 100,000 levels deep
    [[other-type]]                    a page of HTML that says it is one
    [[long-answer]]                   a megabyte of answer
    [[parts N]]                       the answer's text in two parts, the first of N characters
    [[say TEXT]]                      the answer is TEXT

Every request is logged twice, when it arrives (``asked``) and right before its answer is written (``served``): who
has the answer finds both entries.
"""

import argparse
import asyncio
import hashlib
import json
import math
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from patience import reached

ORDER = re.compile(r"\[\[(.+?)(?: x(\d+))?\]\]")
LETTERS = "abcd"


@dataclass(frozen=True)
class Reply:
    """What the rule answers: text, and for each generated token the likely tokens with their log-probabilities."""

    text: str
    positions: list[list[tuple[str, float]]] = field(default_factory=list)
    finish_reason: str = "stop"


@dataclass(frozen=True)
class Behaviour:
    """How the server is, apart from orders inside prompts."""

    latency: float = 0.0
    """Seconds before each answer."""
    logprobs: str = "yes"
    """``yes``, ``ignore`` (answers without them) or ``refuse`` (status 400)."""
    schema: str = "yes"
    """``yes`` (answers fit the schema), ``ignore`` or ``refuse`` (status 400)."""
    max_top_logprobs: int = 20
    refused: tuple[str, ...] = ()
    """Parameters that get status 400."""
    system_refusal: str = ""
    """Error message for requests with a system message; empty if they are answered."""
    streams: str = "yes"
    """``yes``, ``always`` (unasked as well), ``ignore`` (answers come whole), ``uncounted``, ``counted`` (streams
    never, or always, have the usage) or ``refuse`` (status 400, in words that name no parameter)."""
    hold: tuple[str, threading.Event] | None = None
    """Words of the answer, and what must be set before a stream goes on with them."""
    gather: int = 0
    """So many requests have to be under way before the first is answered."""
    capacity: int | None = None
    """More requests at once than this get status 429."""
    echo_authorization: bool = False
    """Put the Authorization header into every answer and error."""
    echo_in_errors: bool = False
    """Put it into every error."""
    log: str | None = None


@dataclass
class Request:
    body: dict[str, Any]
    headers: dict[str, str]
    prompt: str
    """SHA-256 of the canonical JSON of the messages."""
    content: str
    """All messages' contents."""
    attempt: int
    """How often this prompt has been asked before."""


Rule = Callable[[Request], Reply]
Refusal = tuple[int, Any] | tuple[int, Any, dict[str, str]]


def by_hash(request: Request) -> Reply:
    """A letter drawn by the prompt's hash, with log-probabilities drawn from the hash too."""
    said = re.search(r"\[\[say (.*?)\]\]", request.content)
    if said:
        return Reply(said[1], [[(said[1], -0.1)]])
    if schema := schema_of(request.body):
        return Reply(json.dumps(instance(schema, request.prompt)))
    digest = bytes.fromhex(request.prompt)
    weights = [1 + digest[i] for i in range(4)]
    total = sum(weights) * 1.05
    likely = [(letter, math.log(weight / total)) for letter, weight in zip(LETTERS, weights, strict=True)]
    likely.sort(key=lambda pair: -pair[1])
    return Reply(likely[0][0], [likely])


def schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    return body.get("response_format", {}).get("json_schema", {}).get("schema")


def instance(schema: dict[str, Any], salt: str) -> Any:
    """A small value that satisfies the schema."""
    if "enum" in schema:
        return schema["enum"][int(salt[:4], 16) % len(schema["enum"])]
    kind = schema["type"]
    if kind == "object":
        return {name: instance(part, salt) for name, part in schema["properties"].items()}
    if kind == "array":
        return [instance(schema["items"], salt)] * max(1, schema.get("minItems", 1))
    simple = {"string": salt[: schema.get("maxLength", 8)], "integer": 1, "number": 0.5, "boolean": True}
    return simple[kind]


class ApiServer:
    """The server; in a ``with`` it runs in a thread of this process."""

    def __init__(self, behaviour: Behaviour | None = None, rule: Rule = by_hash) -> None:
        self.behaviour = behaviour or Behaviour()
        self.rule = rule
        self.asked: list[Request] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.connections = 0
        self.port = 0
        self.path = "/v1"
        self._counts: Counter[str] = Counter()
        self._log = None
        if self.behaviour.log:
            self._log = os.open(self.behaviour.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def __enter__(self) -> "ApiServer":
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready.set)), daemon=True)
        self._thread.start()
        reached(ready)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def run_forever(self) -> None:
        """Serve in this process; the URL is the first line on stdout."""
        asyncio.run(self._serve(lambda: print(self.url, flush=True)))

    async def _serve(self, ready: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.gathered = asyncio.Event()
        self._open: set[Connection] = set()
        server = await self._loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await self._stop.wait()
        server.close()
        for connection in list(self._open):
            connection.abort()

    def log(self, event: str, request: Request) -> None:
        if self._log is None:
            return
        entry = {
            "event": event,
            "prompt": request.prompt,
            "messages": request.body["messages"],
            "kind": "options" if request.body.get("logprobs") else "generate",
            "client": request.headers.get("openai-organization"),
            "attempt": request.attempt,
        }
        os.write(self._log, json.dumps(entry).encode() + b"\n")

    def receive(self, headers: dict[str, str], raw: bytes) -> Request:
        body = json.loads(raw)
        prompt = hashlib.sha256(json.dumps(body["messages"], sort_keys=True).encode()).hexdigest()
        content = "\n".join(message["content"] for message in body["messages"])
        request = Request(body, headers, prompt, content, self._counts[prompt])
        self._counts[prompt] += 1
        if len(self.asked) < 10_000:
            self.asked.append(request)
        self.log("asked", request)
        return request

    def error(self, request: Request) -> Refusal | None:
        """Status and body with which a request is refused, and headers; None where it is not."""
        message = self.refusal(request)
        return None if message is None else (400, {"error": {"message": message, "type": "test"}})

    def refusal(self, request: Request) -> str | None:
        behaviour, body = self.behaviour, request.body
        if body.get("logprobs") and behaviour.logprobs == "refuse":
            return "This model does not support logprobs."
        if body.get("top_logprobs", 0) > behaviour.max_top_logprobs:
            return f"top_logprobs must be at most {behaviour.max_top_logprobs}."
        if body.get("response_format") and behaviour.schema == "refuse":
            return "response_format of type json_schema is not supported by this model."
        if body.get("stream") and behaviour.streams == "refuse":
            return "Bad request."
        if behaviour.system_refusal and body["messages"][0]["role"] == "system":
            return behaviour.system_refusal
        for name in behaviour.refused:
            if name in body:
                advice = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                return f"Unsupported parameter: '{name}' is not supported with this model.{advice}"
        return None

    def completion(self, request: Request) -> dict[str, Any]:
        """The body of an answer."""
        behaviour, body = self.behaviour, request.body
        reply = self.rule(request)
        text = "Sure! It depends." if schema_of(body) and behaviour.schema == "ignore" else reply.text
        if behaviour.echo_authorization:
            text += request.headers.get("authorization", "")
        choice = {
            "index": 0,
            "finish_reason": reply.finish_reason,
            "message": {"role": "assistant", "content": text},
            "logprobs": None,
        }
        if body.get("logprobs") and behaviour.logprobs == "yes":
            limit = body.get("max_tokens", 1000)
            choice["logprobs"] = {
                "content": [
                    {
                        "token": likely[0][0],
                        "logprob": likely[0][1],
                        "top_logprobs": [
                            {"token": token, "logprob": logprob} for token, logprob in likely[: body["top_logprobs"]]
                        ],
                    }
                    for likely in reply.positions[:limit]
                ]
            }
        usage = {"prompt_tokens": len(request.content.split()), "completion_tokens": max(1, len(text.split()))}
        return {
            "id": f"chatcmpl-{request.prompt[:12]}",
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage,
        }

    def events(self, request: Request) -> list[bytes]:
        """The server-sent events of an answer: a piece for a word, or for six letters of a longer one."""
        completion = self.completion(request)
        [choice] = completion["choices"]
        message = choice["message"]
        text = message.get("content")
        words = re.findall(r"\s*\S{1,6}|\s+$", text) if isinstance(text, str) else [text]
        deltas = [{**message, "content": ""}, *({"content": word} for word in words)]
        pieces = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
        asked = request.body.get("stream_options", {}).get("include_usage")
        if self.behaviour.streams == "counted" or (asked and self.behaviour.streams != "uncounted"):
            pieces.append({"choices": [], "usage": completion["usage"]})
        return [
            b": pieces follow\n\n",
            *(b"data: %s\n\n" % json.dumps(one).encode() for one in pieces),
            b"data: [DONE]\n\n",
        ]

    def other_route(self, method: str, path: str, _headers: dict[str, str], _raw: bytes) -> Refusal:
        """Status and body for whatever is not chat completions, and headers."""
        return 404, {"error": {"message": f"No such route: {method} {path}"}}

    def order_of(self, request: Request) -> str | None:
        """The fault that this request's prompt orders, if it is still due."""
        for order, times in ORDER.findall(request.content):
            if order.split()[0] != "say" and (not times or request.attempt < int(times)):
                return order
        return None


def _with_choice(completion: dict[str, Any], **changes: Any) -> bytes:
    return json.dumps({**completion, "choices": [{**completion["choices"][0], **changes}]}).encode()


def _with_likely(completion: dict[str, Any], token: Any, logprob: Any) -> bytes:
    entry = {"token": token, "logprob": logprob}
    return _with_choice(completion, logprobs={"content": [{**entry, "top_logprobs": [entry]}]})


LIES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "error-200": lambda _: b'{"error": {"message": "the engine is gone"}}',
    "null": lambda _: b"null",
    "number": lambda _: b"17",
    "list": lambda _: b"[[]]",
    "no-content": lambda completion: _with_choice(completion, message={"role": "assistant"}, logprobs=None),
    "nan": lambda completion: _with_likely(completion, "a", float("nan")),
    "bad-token": lambda completion: _with_likely(completion, {"text": "a"}, -0.1),
    "half-character": lambda completion: json.dumps(completion, ensure_ascii=False).encode()[:-9] + b"\xc3",
    "deep": lambda _: b"[" * 100_000,
    "long-answer": lambda completion: _with_choice(
        completion, message={"role": "assistant", "content": "a" * 1_000_000}, logprobs=None
    ),
}
"""Bodies that are complete and arrive, and say something else than they should."""


class Connection(asyncio.Protocol):
    """One connection; answers one request after the other."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.buffer = b""
        self.tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.server.connections += 1
        self.server._open.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self.server._open.discard(self)
        for task in self.tasks:
            task.cancel()

    def abort(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        task = asyncio.get_running_loop().create_task(self.answer(lines[0], headers, rest[:length]))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def answer(self, first_line: str, headers: dict[str, str], raw: bytes) -> None:
        server = self.server
        method, path, _ = first_line.split(" ", 2)
        if method != "POST" or path != f"{server.path}/chat/completions":
            self.send(*server.other_route(method, path, headers, raw))
            return
        request = server.receive(headers, raw)
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        if server.in_flight >= server.behaviour.gather:
            server.gathered.set()
        crowded = server.behaviour.capacity is not None and server.in_flight > server.behaviour.capacity
        try:
            await server.gathered.wait()
            if server.behaviour.latency and not crowded:
                await asyncio.sleep(server.behaviour.latency)
            if crowded:
                self.fail(request, 429, "Too many requests at once.")
            elif order := server.order_of(request):
                await self.misbehave(request, order)
            elif error := server.error(request):
                self.send(*error)
            elif server.behaviour.streams == "always" or (
                request.body.get("stream") and server.behaviour.streams != "ignore"
            ):
                await self.stream(server.events(request))
                server.log("served", request)
            else:
                completion = server.completion(request)
                server.log("served", request)
                self.send(200, completion)
        finally:
            server.in_flight -= 1

    async def stream(self, events: list[bytes], *, whole: bool = True) -> None:
        """Send events one after the other; the connection stays open where all of them are sent."""
        head = "HTTP/1.1 200 X\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.transport.write(head.encode())
        sent = ""
        for event in events:
            if event.startswith(b"data: {"):
                choices = json.loads(event[6:]).get("choices") or [{}]
                sent += str(choices[0].get("delta", {}).get("content", ""))
            if (hold := self.server.behaviour.hold) is not None and sent.endswith(hold[0]):
                await asyncio.get_running_loop().run_in_executor(None, reached, hold[1])
            # In two parts, as networks cut them.
            for part in (event[:9], event[9:]):
                self.transport.write(b"%x\r\n%s\r\n" % (len(part), part))
                await asyncio.sleep(0)
        if whole:
            self.transport.write(b"0\r\n\r\n")

    async def misbehave(self, request: Request, order: str) -> None:
        word, _, rest = order.partition(" ")
        if word.isdigit():
            after = re.match(r"after=(.+)", rest)
            self.fail(request, int(word), "" if after else rest, {"Retry-After": after[1]} if after else {})
        elif word == "drop":
            self.transport.abort()
        elif word == "drop-in-body":
            text = self.text(200, self.server.completion(request))
            self.transport.write(text[: len(text) - 40])
            await asyncio.sleep(0)
            self.transport.close()
        elif word in ("break", "end-early", "error-in-stream") and request.body.get("stream"):
            events = self.server.events(request)
            half = events[: len(events) // 2]
            if word == "error-in-stream":
                half.append(b'data: {"error": {"message": "the engine is gone"}}\n\n')
            await self.stream(half, whole=word != "break")
            if word == "break":
                self.transport.close()
        elif word in ("break", "end-early", "error-in-stream"):
            self.send(200, self.server.completion(request))
        elif word == "truncate":
            body = json.dumps(self.server.completion(request)).encode()
            self.send_raw(200, body[: len(body) // 2])
        elif word == "malformed":
            self.send_raw(200, b"<html>upstream error</html>")
        elif word == "empty-choices":
            self.send(200, {**self.server.completion(request), "choices": []})
        elif word == "wrong-shape":
            self.send(200, {"choices": [{"message": "a text where an object should be"}]})
        elif word == "hang":
            await asyncio.Event().wait()
        elif word == "parts":
            completion, cut = self.server.completion(request), int(rest)
            text = completion["choices"][0]["message"]["content"]
            parts = [{"type": "text", "text": part} for part in (text[:cut], text[cut:])]
            self.send_raw(200, _with_choice(completion, message={"role": "assistant", "content": parts}))
        elif word in LIES:
            self.send_raw(200, LIES[word](self.server.completion(request)))
        elif word == "other-type":
            page = b"<html><body>Gateway</body></html>"
            head = f"HTTP/1.1 200 X\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n"
            self.transport.write(head.encode() + page)
        else:
            raise ValueError(f"unknown order {order!r}")

    def fail(self, request: Request, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        if self.server.behaviour.echo_authorization or self.server.behaviour.echo_in_errors:
            message += f" (you sent {request.headers.get('authorization')})"
        self.send(status, {"error": {"message": message or f"status {status}", "type": "test"}}, headers)

    def send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self.transport.write(self.text(status, value, headers))

    def send_raw(self, status: int, body: bytes) -> None:
        self.transport.write(self.head(status, len(body)) + body)

    def text(self, status: int, value: Any, headers: dict[str, str] | None = None) -> bytes:
        body = json.dumps(value).encode()
        return self.head(status, len(body), headers) + body

    def head(self, status: int, length: int, headers: dict[str, str] | None = None) -> bytes:
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {length}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Chat completions by rule.")
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--logprobs", choices=("yes", "ignore", "refuse"), default="yes")
    parser.add_argument("--log")
    given = parser.parse_args()
    # The server goes when its parent goes: stdin is the leash.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    ApiServer(Behaviour(latency=given.latency, logprobs=given.logprobs, log=given.log)).run_forever()


if __name__ == "__main__":
    main()
