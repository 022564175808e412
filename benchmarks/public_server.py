"""What a public server bears: half-sent requests, and event streams that nobody ends.

    python benchmarks/public_server.py

Starts ``climassay serve`` in a workspace of its own. Measures how long a page takes before and under 1,050 half-sent
requests and what the log gains, then the CPU time of 500 event streams of one job, while nothing happens and while it
tells something twice a second. One machine sends and serves, so that the latencies are of both.
"""

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import uvicorn

from climassay.cli.serve import _open_socket, server_config
from climassay.web import AppState, ServerSettings, create_app
from climassay.web.jobs import JobReport
from climassay.workspace import Workspace

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: a"


TICKS = "ticks"
"""File in the workspace; while it is there, the job tells something twice a second."""


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", type=int, default=1050, help="Half-sent requests.")
    parser.add_argument("--streams", type=int, default=500, help="Event streams.")
    parser.add_argument("--seconds", type=float, default=20.0, help="Length of each measurement of CPU time.")
    parser.add_argument("--files", type=int, default=1024, help="Files that the server may open.")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.files)
        return
    with tempfile.TemporaryDirectory() as folder:
        log, workspace = Path(folder) / "log", Path(folder) / "workspace"
        command = [sys.executable, __file__, "--serve", str(workspace), "--files", str(options.files)]
        with log.open("wb") as written:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written, text=True)
        try:
            told = server.stdout.readline().split()
            if len(told) != 2:
                raise SystemExit(log.read_text())
            print(json.dumps(measure(server.pid, int(told[0]), told[1], log, workspace, options), indent=2))
        finally:
            server.terminate()
            server.wait()


def serve(folder: Path, files: int) -> None:
    """A server as ``climassay serve`` sets it up, with a job that tells something when it is wanted to."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    sockets, port = _open_socket("127.0.0.1", 0)
    settings = ServerSettings(port=port, public="read")
    place = AppState(Workspace.open(folder), settings)

    def tick(_place: AppState, _payload: object, report: JobReport) -> None:
        while not report.stopped:
            time.sleep(0.5)
            if (folder / TICKS).exists():
                report.event("number", {"n": time.time()})

    app = create_app(place)
    place.jobs.register("check", tick, "checks")
    print(port, place.jobs.submit("check", "Work", {}), flush=True)
    uvicorn.Server(server_config(app, settings)).run(sockets=sockets)


def measure(
    pid: int, port: int, job: str, log: Path, workspace: Path, options: argparse.Namespace
) -> dict[str, object]:
    """Everything that is measured, of a server that has just been started."""
    page = f"http://127.0.0.1:{port}/checks"
    for _ in range(5):
        seconds(page)
    found: dict[str, object] = {"files": options.files, "page_alone_ms": spread([seconds(page) for _ in range(20)])}
    size, cpu, began = log.stat().st_size, cpu_seconds(pid), time.monotonic()
    half = [socket.create_connection(("127.0.0.1", port)) for _ in range(options.half)]
    for one in half:
        one.sendall(HALF)
    found["page_under_half_sent_requests_ms"] = spread([seconds(page) for _ in range(20)])
    found["half_sent_requests"] = len(half)
    lasted = time.monotonic() - began
    found["log_bytes_a_second"] = round((log.stat().st_size - size) / lasted)
    found["cores_under_half_sent_requests"] = round((cpu_seconds(pid) - cpu) / lasted, 3)
    print(found, file=sys.stderr)
    for one in half:
        one.close()
    request = f"GET /jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    streams = []
    for _ in range(options.streams):
        streams.append(socket.create_connection(("127.0.0.1", port)))
        streams[-1].sendall(request)
    for one in streams:
        until(one, b"event: progress")
    print(len(streams), "streams are open", file=sys.stderr)
    found["streams"] = len(streams)
    found["cores_of_quiet_streams"] = cores(pid, options.seconds)
    found["page_beside_streams_ms"] = spread([seconds(page) for _ in range(20)])
    (workspace / TICKS).touch()
    found["cores_of_streams_told_twice_a_second"] = cores(pid, options.seconds)
    return found


def until(one: socket.socket, words: bytes) -> None:
    """Read until words have come."""
    read = b""
    while words not in read:
        more = one.recv(65536)
        if not more:
            raise SystemExit("A stream was closed.")
        read = read[-100:] + more


def seconds(url: str) -> float:
    """Time that a page takes."""
    began = time.monotonic()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return time.monotonic() - began


def spread(times: list[float]) -> dict[str, float]:
    """Median and longest, in milliseconds."""
    return {"median": round(1000 * statistics.median(times), 1), "longest": round(1000 * max(times), 1)}


def cores(pid: int, length: float) -> float:
    """CPU time a second of a process."""
    before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(length)
    return round((cpu_seconds(pid) - before) / (time.monotonic() - began), 3)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
