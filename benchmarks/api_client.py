"""API client: share of the ideal throughput against a server with 200 ms latency, records on, and CPU time a request.

The server is a process of its own (``tests/api_server.py``) that answers each request after the latency, as many at
once as are sent. With c requests under way, n requests take at least n / c x latency; the share of the ideal is that
time over the measured one. Measured in one run, in turns: the bare ``openai`` client over httpx and over aiohttp, and
climassay's client without and with records (a fresh SQLite file, every answer committed before it is handed on).

Before each measurement 64 requests warm the client up (connections, imports, our adaptive limit). CPU time is that of
this process with all its threads; the server's is not in it.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from climassay.models.contract import GenerationRequest, Generator, Message, Sampling
from climassay.models.openai.client import OpenAIModel
from climassay.records import RecordedModel, Records

SERVER = Path(__file__).parent.parent / "tests" / "api_server.py"
WARM_UP = 64


@dataclass(frozen=True)
class Load:
    """What is asked of each client."""

    requests: int
    concurrency: int
    latency: float

    @property
    def ideal(self) -> float:
        """Seconds that the requests take at least."""
        return self.requests / self.concurrency * self.latency


@dataclass(frozen=True)
class Measurement:
    """Seconds of wall clock and of CPU for all requests."""

    seconds: float
    cpu: float


def prompt(number: int) -> str:
    """A multiple-choice question of usual size, different for each number."""
    options = "\n".join(f"{letter}) It changes the answer in the way number {letter} says." for letter in "abcd")
    return f"Question {number}: which statement about the climate is right?\n{options}\nAnswer with the letter only."


@contextmanager
def measured(into: list[Measurement]) -> Iterator[None]:
    def cpu() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    cpu_before, before = cpu(), time.perf_counter()
    yield
    into.append(Measurement(time.perf_counter() - before, cpu() - cpu_before))


def bare_client(over: str) -> Callable[[str, Load, list[Measurement]], None]:
    """The openai client as its documentation shows it, with as many workers as requests may be under way."""

    async def drive(url: str, load: Load, into: list[Measurement]) -> None:
        from openai import AsyncOpenAI, DefaultAioHttpClient, DefaultAsyncHttpxClient

        http = DefaultAioHttpClient() if over == "aiohttp" else DefaultAsyncHttpxClient()
        client = AsyncOpenAI(base_url=url, api_key="none", http_client=http)

        async def work(numbers: Iterator[int]) -> None:
            for number in numbers:
                await client.chat.completions.create(
                    model="test", messages=[{"role": "user", "content": prompt(number)}], max_tokens=5, temperature=0
                )

        async def all_of(count: int) -> None:
            numbers = iter(range(count))
            await asyncio.gather(*(work(numbers) for _ in range(load.concurrency)))

        await all_of(WARM_UP)
        with measured(into):
            await all_of(load.requests)
        await client.close()

    return lambda url, load, into: asyncio.run(drive(url, load, into))


def our_client(with_records: bool) -> Callable[[str, Load, list[Measurement]], None]:
    """Our own client, alone or wrapped by the records."""

    def requests(first: int, count: int) -> list[GenerationRequest]:
        sampling = Sampling(max_tokens=5)
        return [GenerationRequest((Message("user", prompt(n)),), sampling) for n in range(first, first + count)]

    def drive(url: str, load: Load, into: list[Measurement]) -> None:
        model = OpenAIModel("test", base_url=url, concurrency=load.concurrency)
        warm_up, wanted = requests(-WARM_UP, WARM_UP), requests(0, load.requests)
        with ExitStack() as stack:
            asked: Generator = model
            if with_records:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                store = stack.enter_context(Records(f"sqlite:///{folder}/records.sqlite"))
                asked = RecordedModel(model, store, stack.enter_context(store.run("benchmark", {})))
            asked.generate(warm_up)
            with measured(into):
                answers = asked.generate(wanted)
        model.close()
        assert all(answer.error is None for answer in answers)

    return drive


CLIENTS = {
    "openai client, httpx": bare_client("httpx"),
    "openai client, aiohttp": bare_client("aiohttp"),
    "climassay, no records": our_client(with_records=False),
    "climassay, records on": our_client(with_records=True),
}


@contextmanager
def server(latency: float) -> Iterator[str]:
    command = [sys.executable, str(SERVER), "--latency", str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def measure(load: Load, repeats: int) -> dict[str, list[Measurement]]:
    measurements: dict[str, list[Measurement]] = {name: [] for name in CLIENTS}
    with server(load.latency) as url:
        for _ in range(repeats):
            for name, drive in CLIENTS.items():
                drive(url, load, measurements[name])
    return measurements


def summary(load: Load, measurements: dict[str, list[Measurement]]) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for name, taken in measurements.items():
        seconds = statistics.median(one.seconds for one in taken)
        cpu = statistics.median(one.cpu for one in taken)
        rows.append(
            {
                "client": name,
                "share_of_ideal": load.ideal / seconds,
                "worst_share": load.ideal / max(one.seconds for one in taken),
                "requests_per_second": load.requests / seconds,
                "cpu_ms_per_request": 1000 * cpu / load.requests,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    load = Load(given.requests, given.concurrency, given.latency)
    rows = summary(load, measure(load, given.repeats))
    if given.json:
        print(json.dumps({"load": vars(load), "ideal_seconds": load.ideal, "clients": rows}, indent=2))
        return
    print(f"{load.requests} requests, {load.concurrency} at once, {load.latency * 1000:.0f} ms latency")
    print(f"{'client':<26}{'of ideal':>10}{'worst':>10}{'req/s':>10}{'CPU ms/req':>12}")
    for row in rows:
        print(
            f"{row['client']:<26}{row['share_of_ideal']:>10.1%}{row['worst_share']:>10.1%}"
            f"{row['requests_per_second']:>10.0f}{row['cpu_ms_per_request']:>12.2f}"
        )


if __name__ == "__main__":
    main()
