import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from command_line import done, json_of, refused
from killed_process import START
from patience import PATIENCE


def test_users_come_and_go(climassay, tmp_path):
    place = ["-w", str(tmp_path)]
    out = done(climassay("users add", "Root", "--role", "admin", "--json", *place))
    assert json.loads(out)["name"] == "root"
    assert json.loads(out)["link"].startswith("http://127.0.0.1:8000/enter/")
    out = done(climassay("users add ada", "--display-name", "Ada", *place))
    assert "/enter/" in out
    out = done(climassay("users reset ada", "--address", "https://x.example/", "--json", *place))
    assert json.loads(out)["link"].startswith("https://x.example/enter/")
    climassay("users remove ada", *place)
    out = done(climassay("users list", "--json", *place))
    assert [(user["name"], user["role"], user["active"]) for user in json.loads(out)] == [
        ("ada", "annotator", False),
        ("root", "admin", True),
    ]
    out = done(climassay("users list", *place))
    assert "shut out" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["users", "add", "a b"], "cannot be a user name"),
        (["users", "add", "ada", "--address", "x.example"], "must look like https://"),
        (["users", "remove", "nobody"], "no user 'nobody'"),
        (["serve", "--port", "65536"], "--port. It must be between 0 and 65535"),
        (["serve", "--port", "0", "--address", "x.example"], "must look like https://"),
        (["serve", "--host", "256.1.1.1"], "cannot be used"),
    ],
    ids=["name", "link", "remove", "port", "address", "host"],
)
def test_bad_input_is_one_sentence(climassay, tmp_path, arguments, sentence):
    assert sentence in refused(climassay(*arguments, "-w", str(tmp_path)))


def test_a_port_in_use_is_said_before_anything_is_loaded(climassay, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = climassay("serve", "--port", str(port), "-w", str(tmp_path))
    assert code == 2
    assert f"Port {port} on 127.0.0.1 cannot be used" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["", "https://example.org/climassay/"], ids=["its port", "behind a proxy"])
def test_links_lead_where_the_workspace_is_served(monkeypatch, climassay, tmp_path, address):
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    served = json_of(climassay("serve", "--port", "0", "--address", address, "--json", "-w", str(tmp_path)))
    assert served["address"] == (address.rstrip("/") or served["address"])
    assert not served["address"].endswith(":8000")
    for command in ("users add ada", "users reset ada"):
        link = json_of(climassay(command, "--json", "-w", str(tmp_path)))["link"]
        assert link.startswith(f"{served['address']}/enter/")


def test_a_fresh_workspace_is_served_at_once_with_a_link(tmp_path):
    command = [*START, "serve", "--port", "0", "--json"]
    server = subprocess.Popen(
        [*command, "-w", str(tmp_path)], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        line, depth = "", 0
        for part in server.stdout:
            line += part
            depth += part.count("{") - part.count("}")
            if depth == 0:
                break
        told = json.loads(line)
        with urllib.request.urlopen(told["link"]) as answer:
            assert "signs you in once as <strong>admin</strong>" in answer.read().decode()
        with urllib.request.urlopen(told["address"] + "/sign-in") as answer:
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
            assert "server" not in answer.headers
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE)
    assert (tmp_path / "records.sqlite").is_file()


def begin(folder, *options):
    """A server in a process of its own."""
    command = [*START, "serve", "--json", *options, "-w", str(folder)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def told_by(server):
    """What it prints once it listens."""
    text = ""
    for line in server.stdout:
        text += line
        if line.startswith("}"):
            break
    return json.loads(text)


@pytest.mark.process
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_a_server_that_is_restarted_on_its_port_takes_over_when_the_first_has_ended(tmp_path, end):
    first = begin(tmp_path, "--port", "0")
    second = None
    try:
        address = told_by(first)["address"]
        second = begin(tmp_path, "--port", address.rpartition(":")[2])
        assert second.stderr.readline().startswith(f"This workspace is already served at {address}; waiting")
        first.send_signal(end)
        assert told_by(second)["address"] == address
        with urllib.request.urlopen(f"{address}/sign-in") as answer:
            assert answer.status == 200
    finally:
        for server in filter(None, (first, second)):
            server.kill()
            server.communicate()


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="the memory is read from /proc")
def test_a_server_without_a_local_model_says_that_it_starts_and_stays_below_a_gigabyte(tmp_path, climassay):
    (tmp_path / "sea.md").write_text("# The sea\n\nSea level has risen by 0.20 m since 1901.\n")
    done(climassay("corpus add books", str(tmp_path / "sea.md"), "-w", str(tmp_path)))
    server = begin(tmp_path, "--port", "0", "--public", "read", "--model", "openai:somewhere")
    try:
        # Said before the pages are prepared, so that nobody takes a slow start for a hang.
        line = server.stderr.readline()
        address = told_by(server)["address"]
        assert line.startswith(f"climassay starts at {address}")
        for path in ("/", "/check", "/library/search?q=sea+level", "/confidence"):
            with urllib.request.urlopen(address + path) as answer:
                assert answer.status == 200
        status = Path(f"/proc/{server.pid}/status").read_text()
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
        assert peak < 1_000_000
        assert "libtorch" not in Path(f"/proc/{server.pid}/maps").read_text()
    finally:
        server.kill()
        server.communicate()
