"""Connections before a request is whole: half-sent requests, too many of them, and what the log says."""

import asyncio
import io
import logging
import socket
import threading
from types import SimpleNamespace

import h11
import pytest
import uvicorn

from climassay.errors import InputError
from climassay.web.connections import (
    ACCEPT_BACKLOG,
    RESERVED_FILES,
    ConnectionLimits,
    ControlCharacterFilter,
    RepeatedMessageFilter,
    make_protocol_class,
)
from climassay.web.settings import Networks

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
WHOLE = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LIMITS = ConnectionLimits(max_connections=6, max_per_peer=4, max_waiting=5)


class Task:
    def add_done_callback(self, work):
        pass


class Loop:
    """Timers that ring when a test says so."""

    def __init__(self):
        self.timers = []

    def call_later(self, seconds, work):
        timer = SimpleNamespace(seconds=seconds, work=work, off=False)
        timer.cancel = lambda: setattr(timer, "off", True)
        self.timers.append(timer)
        return timer

    def create_task(self, work, **_):
        work.close()
        return Task()

    def pass_time(self, seconds):
        for timer in [one for one in self.timers if not one.off and one.seconds <= seconds]:
            timer.off = True
            timer.work()


class Transport:
    def __init__(self, peer):
        self.peer, self.gone = peer, False

    def get_extra_info(self, name):
        return (self.peer, 1) if name == "peername" else None

    def is_closing(self):
        return self.gone

    def abort(self):
        self.gone = True

    close = abort

    def write(self, data):
        pass

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Server:
    """Connections of one guarded server, without a network or a clock."""

    def __init__(self, limits=LIMITS, proxies="127.0.0.1"):
        self.loop = Loop()
        self.kind = make_protocol_class(limits, Networks(proxies))
        self.config = uvicorn.Config(None, ws="none", log_level="critical")
        self.config.load()
        self.state = uvicorn.server.ServerState()

    def connect(self, peer="203.0.113.5"):
        made = self.kind(config=self.config, server_state=self.state, app_state={}, _loop=self.loop)
        made.connection_made(Transport(peer))
        return made

    def alive(self, *connections):
        return [not one.transport.gone for one in connections]


def test_who_does_not_say_what_they_want_is_let_go():
    server = Server()
    silent, slow, quick = (server.connect() for _ in range(3))
    slow.data_received(HALF)
    quick.data_received(WHOLE)
    server.loop.pass_time(LIMITS.header_seconds - 1)
    slow.data_received(b"a")
    assert server.alive(silent, slow, quick) == [True] * 3
    server.loop.pass_time(LIMITS.header_seconds)
    assert server.alive(silent, slow, quick) == [False, False, True]


def test_the_time_for_a_later_request_begins_with_its_first_byte():
    server = Server()
    one = server.connect()
    one.data_received(WHOLE)
    server.loop.pass_time(LIMITS.header_seconds)
    assert server.alive(one) == [True]
    one.cycle.response_complete = True
    one.conn.send(h11.Response(status_code=204, headers=[]))
    one.conn.send(h11.EndOfMessage())
    one.on_response_complete()
    one.data_received(HALF)
    server.loop.pass_time(LIMITS.header_seconds)
    assert server.alive(one) == [False]


def test_one_address_has_its_share_and_a_proxy_needs_more():
    server = Server(ConnectionLimits(max_connections=100, max_per_peer=4, max_waiting=100))
    assert server.alive(*(server.connect("203.0.113.5") for _ in range(6))) == [True] * 4 + [False] * 2
    assert server.alive(server.connect("203.0.113.6")) == [True]
    assert server.alive(*(server.connect("127.0.0.1") for _ in range(20))) == [True] * 20


def test_a_place_that_is_given_up_is_free_again():
    server = Server()
    held = [server.connect() for _ in range(4)]
    assert server.alive(server.connect()) == [False]
    held[0].connection_lost(None)
    assert server.alive(server.connect()) == [True]


def test_half_sent_requests_make_room_for_whole_ones():
    server = Server()
    half = [server.connect(f"203.0.113.{number}") for number in range(6)]
    for one in half:
        one.data_received(HALF)
    assert server.alive(*half) == [False] + [True] * 5
    # Two more than are borne: those who have waited longest go.
    new = [server.connect("198.51.100.1"), server.connect("198.51.100.2")]
    assert server.alive(*half, *new) == [False] * 3 + [True] * 5


def test_who_is_served_is_never_closed_for_somebody_new():
    server = Server()
    served = []
    for number in range(6):
        served.append(server.connect(f"203.0.113.{number}"))
        served[-1].data_received(WHOLE)
    assert server.alive(server.connect("198.51.100.1")) == [False]
    assert server.alive(*served) == [True] * 6


def test_who_takes_nothing_of_an_answer_is_let_go():
    server = Server()
    stuck, slow = server.connect(), server.connect()
    for one in (stuck, slow):
        one.data_received(WHOLE)
        one.pause_writing()
    slow.resume_writing()
    server.loop.pass_time(LIMITS.stalled_seconds)
    assert server.alive(stuck, slow) == [False, True]


@pytest.mark.parametrize("files", [256, 1024, 20_000])
def test_limits_leave_room_for_other_files(files):
    limits = ConnectionLimits.for_open_files(files)
    assert limits.max_waiting < limits.max_connections
    assert limits.max_per_peer <= limits.max_connections
    if files > 500:
        assert limits.max_connections + ACCEPT_BACKLOG + RESERVED_FILES <= files


def test_a_log_says_the_same_a_few_times_a_minute():
    clock, said = [0.0], []
    logger = logging.Logger("one")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger.addHandler(handler)
    logger.addFilter(RepeatedMessageFilter(max_messages=3, clock=lambda: clock[0]))
    for number in range(1000):
        logger.warning("Invalid HTTP request %s", number)
    assert len(said) == 3
    assert "left out" in said[-1]
    logger.error("Something else")
    assert said[-1] == "Something else"
    clock[0] = 60.0
    logger.warning("Invalid HTTP request %s", 1)
    assert len(said) == 5


def test_no_text_forges_a_line_of_the_log_or_commands_its_terminal():
    logger, said = logging.Logger("one"), io.StringIO()
    logger.addHandler(logging.StreamHandler(said))
    logger.addFilter(ControlCharacterFilter())
    text = "100% \x1b]0;title\x07\nERROR all labels lost"
    logger.error("%s", text)
    logger.error(text)
    try:
        raise ValueError(text)
    except ValueError:
        logger.exception("A job failed.")
    lines = said.getvalue().splitlines()
    assert not any(line.startswith("ERROR all labels") for line in lines)
    assert not any(character in said.getvalue() for character in "\x1b\x07")
    assert lines[0] == lines[1] == r"100% \x1b]0;title\x07\nERROR all labels lost"
    assert "ValueError: 100%" in lines[-2]


@pytest.mark.parametrize(
    ("written", "inside", "outside"),
    [("127.0.0.1, 10.0.0.0/8", ["127.0.0.1", "10.9.8.7"], ["127.0.0.2", "::1", "testclient"]),
     ("*", ["203.0.113.5"], []), ("", [], ["127.0.0.1"]), ("::1", ["::1"], ["127.0.0.1"])],
)  # fmt: skip
def test_networks_are_read_as_one_writes_them(written, inside, outside):
    networks = Networks(written)
    assert all(one in networks for one in inside)
    assert not any(one in networks for one in outside)


def test_what_is_no_network_is_refused():
    with pytest.raises(InputError, match="Proxies"):
        Networks("my-proxy")


@pytest.mark.faults
def test_a_server_under_half_sent_requests_answers_others():
    """With real sockets: more half-sent requests than it bears, and then a whole one."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    kind = make_protocol_class(
        ConnectionLimits(max_connections=20, max_per_peer=4, max_waiting=10), Networks("127.0.0.1")
    )
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http=kind, ws="none", lifespan="off", log_level="critical", backlog=8))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    crowd = [socket.create_connection(listening.getsockname()) for _ in range(60)]
    try:
        for one in crowd:
            one.sendall(HALF)
        for _ in range(5):
            with socket.create_connection(listening.getsockname()) as one:
                one.sendall(WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                answer = b"".join(iter(lambda one=one: one.recv(4096), b""))
            assert answer.startswith(b"HTTP/1.1 200")
        assert len(kind.pool) <= 20
    finally:
        for one in crowd:
            one.close()
        server.should_exit = True
        thread.join()
