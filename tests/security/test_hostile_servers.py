"""Model servers that attack: answers without end, compressed bombs, drips, redirects, numbers that are none."""

import gzip
import json
import math
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from climassay.errors import ModelError
from climassay.models import GenerationRequest, Message, OptionRequest
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.finetuning import fine_tune
from climassay.models.openai.pacing import RetryPolicy

pytestmark = pytest.mark.faults

LIMIT = 2**20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
PIECE = b'data: {"choices": [{"delta": {"content": "warmer "}}]}\n\n'
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "It warms."}, "finish_reason": "stop"}]}


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr("climassay.models.openai.response_limit.MAX_RESPONSE_BYTES", LIMIT)


class Hostile:
    """A server that sends these pieces to whoever connects, until they are all sent or the client is gone."""

    def __init__(self, pieces, pause=0.0):
        self.sent = self.requests = 0
        self._pieces, self._pause = pieces, pause
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection, suppress(OSError):
            connection.recv(2**16)
            self.requests += 1
            for piece in self._pieces():
                connection.sendall(piece)
                self.sent += len(piece)
                time.sleep(self._pause)

    def close(self):
        self._listener.close()


@contextmanager
def asking(pieces, pause=0.0, **policy):
    server = Hostile(pieces, pause)
    client = OpenAIModel("test", base_url=server.url, policy=RetryPolicy(base=0.0, **policy))
    try:
        yield server, client
    finally:
        client.close()
        server.close()


def endless(head, piece):
    def pieces():
        yield head
        while True:
            yield piece * (2**16 // len(piece) + 1)

    return pieces


def compressed(encoding, text):
    def pieces():
        yield HEAD + b"Content-Encoding: %s\r\n\r\n" % encoding + text

    return pieces


BOMB = gzip.compress(b'{"choices": "' + bytes(64 * LIMIT))
ENDLESS = {
    "a body without end": endless(HEAD + b"\r\n", b'{"choices": ['),
    "a gigabyte that is announced": endless(HEAD + b"Content-Length: 1073741824\r\n\r\n", b" "),
    "an error without end": endless(HEAD.replace(b"200 OK", b"500 No") + b"\r\n", b"no "),
    "a stream without end": endless(STREAM, PIECE),
    "a stream without a line": endless(STREAM, b"data: "),
    "a stream of comments": endless(STREAM, b": still here\n"),
    "a stream of tiny thoughts": endless(STREAM, PIECE.replace(b"content", b"reasoning_content")),
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", list(ENDLESS))
def test_an_answer_without_end_is_a_failure_that_says_so(name, streams):
    with asking(ENDLESS[name]) as (server, client):
        with said_or_raised() as told:
            requests, ignore = [GenerationRequest((Message("user", "?"),))], lambda *_: None
            answers = client.generate_stream(requests, on_text=ignore) if streams else client.generate(requests)
            told.extend(answer.error for answer in answers)
        assert "larger than 1 MB" in told[0]
        # Operating systems hold a few megabytes of each connection.
        assert server.sent < server.requests * 16 * LIMIT


@contextmanager
def said_or_raised():
    """Errors of requests, or the one error that ends them all."""
    told = []
    try:
        yield told
    except ModelError as error:
        told.append(str(error))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [(b"gzip", BOMB), (b"br", b"\x1b"), (b"gzip, gzip", gzip.compress(BOMB)), (b"zstd", b"\x28\xb5\x2f\xfd")],
)
def test_a_compressed_bomb_is_not_unpacked(encoding, text):
    with asking(compressed(encoding, text)) as (_, client), said_or_raised() as told:
        told.extend(answer.error for answer in client.generate([GenerationRequest((Message("user", "?"),))]))
    assert "larger than" in told[0] or "compressed" in told[0]


def test_a_short_answer_may_come_compressed_though_nobody_asked_for_it():
    with asking(compressed(b"gzip", gzip.compress(json.dumps(ANSWER).encode()))) as (_, client):
        assert client.generate([GenerationRequest((Message("user", "?"),))])[0].text == "It warms."


def test_a_byte_now_and_then_does_not_outlast_the_deadline():
    def drip():
        yield HEAD + b"Content-Length: 100000\r\n\r\n"
        while True:
            yield b" "

    with asking(drip, pause=0.05, deadline=1.0) as (server, client):
        begun = time.monotonic()
        [answer] = client.generate([GenerationRequest((Message("user", "?"),))])
        assert "did not answer within" in answer.error
        assert server.sent > 5
        assert time.monotonic() - begun < 60


def test_a_redirect_is_not_followed():
    elsewhere = Hostile(lambda: [HEAD + b"\r\n" + json.dumps(ANSWER).encode()])
    head = f"HTTP/1.1 307 Go\r\nLocation: {elsewhere.url}/chat/completions\r\nContent-Length: 0\r\n\r\n".encode()
    with asking(lambda: [head]) as (_, client), said_or_raised() as told:
        told.extend(answer.error for answer in client.generate([GenerationRequest((Message("user", "?"),))]))
    assert "not followed" in told[0]
    assert elsewhere.requests == 0
    elsewhere.close()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "0.7", "null", '"-1"', "true"])
def test_a_probability_that_is_none_never_becomes_a_score(number):
    listed = f'[{{"token": "a", "logprob": {number}}}, {{"token": "b", "logprob": -1.0}}]'
    position = f'{{"token": "a", "logprob": {number}, "top_logprobs": {listed}}}'
    body = (
        f'{{"choices": [{{"message": {{"content": "a"}}, "finish_reason": "stop", '
        f'"logprobs": {{"content": [{position}]}}}}]}}'
    )
    with asking(lambda: [HEAD + b"\r\n" + body.encode()]) as (_, client), said_or_raised() as told:
        [scores] = client.option_logprobs([OptionRequest((Message("user", "a or b?"),), ("a", "b"))])
        told.append(scores.error or "")
        for logprob in scores.logprobs:
            assert not math.isnan(logprob)
            assert logprob <= 0
    assert told


def test_text_that_is_not_utf8_is_a_failure_or_kept_as_a_replacement():
    body = json.dumps(ANSWER).encode().replace(b"warms", b"w\xff\xfems")
    with asking(lambda: [HEAD + b"\r\n" + body]) as (_, client), said_or_raised() as told:
        [answer] = client.generate([GenerationRequest((Message("user", "?"),))])
        told.append(answer.error or answer.text)
    assert "not JSON" in told[0] or "\ufffd" in told[0]


def test_a_list_of_models_without_end_is_no_list():
    with asking(ENDLESS["a body without end"]) as (server, client):
        assert client.query_window() is None
        assert server.requests > 0


def test_the_server_of_a_fine_tuning_job_cannot_fill_the_memory_either(tmp_path):
    server, policy = Hostile(ENDLESS["a body without end"]), RetryPolicy(base=0.0, max_attempts=2)
    try:
        with pytest.raises(ModelError, match="larger than 1 MB"):
            fine_tune("test", b"{}\n", tmp_path / "state.json", base_url=server.url, policy=policy)
    finally:
        server.close()
