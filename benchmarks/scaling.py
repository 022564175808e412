"""One worker of a Ray cluster against two, side by side, and what a simulation makes of the figures for many.

Both pools belong to one cluster on this machine and work in turns; ratios are those of the same round, and their median
is shown, since other work on the machine changes from round to round. "alone" is the same work in this process without
Ray, on one thread. Measured: embedding passages of the bundled books (local:minilm), weighing the options of bundled
questions (local:smollm2), the time of a job that does nothing, and the time that a dataset of Ray Data takes to begin.

Run: python benchmarks/scaling.py [--passages 512] [--questions 48] [--repeats 3] [--json]
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CLIMASSAY_THREADS", "1")

import numpy as np

from climassay import primer
from climassay.corpus import Collection, read, split_passages
from climassay.corpus.documents import Block, Document
from climassay.distributed import ClusterOptions, WorkerPool
from climassay.distributed.cluster import WorkerResources, cluster_connection
from climassay.distributed.pool import run_streamed
from climassay.distributed.remote import EncoderSpec, JobResult, RemoteCall
from climassay.models import OptionRequest, load_model
from climassay.models.contract import Message
from climassay.models.encoders import load_encoder
from scaling_simulation import Measured, simulate

Timed = dict[str, list[float]]
EMPTY_JOBS = 200
MANY = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def passages(count: int) -> list[str]:
    """Texts of the bundled books, repeated with a number where there are too few."""
    texts = [
        passage.text
        for name in primer.book_names()
        for document in read(primer.book_path(name)).documents
        for passage in split_passages(document, size=2000, overlap=200)
    ]
    numbered = (text if turn == 0 else f"{turn}. {text}" for turn in range(count) for text in texts)
    return list(islice(numbered, count))


def questions(count: int) -> list[OptionRequest]:
    """Bundled questions with their four options."""
    found = [question for question in primer.gold_questions().questions if question.kind == "mcq"][:count]
    return [
        OptionRequest((Message("user", f"{one.question}\nAnswer with one of the options."),), tuple(one.options))
        for one in found
    ]


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turns(ways: dict[str, Callable[[], object]], repeats: int) -> Timed:
    """Seconds of each way of doing the same, round by round; a first round warms everything up and is not kept."""
    found: Timed = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, work in ways.items():
            seconds = timed(work)
            if turn:
                found[name].append(seconds)
    return found


def measure(count: int, asked: int, repeats: int) -> dict[str, object]:
    texts, requests = passages(count), questions(asked)
    encoder, model = load_encoder(threads=1), load_model()
    with cluster_connection(ClusterOptions("local", workers=3)):
        one, two = (WorkerPool(WorkerResources(workers, 1, 0.0)) for workers in (1, 2))
        pools = {"1 worker": one, "2 workers": two}
        encoders = {name: pool.load_encoder("local:minilm") for name, pool in pools.items()}
        models = {name: pool.load_model("local:smollm2") for name, pool in pools.items()}
        embedding = {"alone": lambda: encoder.encode(texts)}
        embedding |= {name: lambda name=name: list(encoders[name].encode_stream(chunks(texts))) for name in pools}
        weighing = {"alone": lambda: model.option_logprobs(requests)}
        weighing |= {name: lambda name=name: models[name].option_logprobs(requests) for name in pools}
        found = {
            "embedding": in_turns(embedding, repeats),
            "weighing": in_turns(weighing, repeats),
            "empty job": empty_jobs(one),
            "dataset": dataset_seconds(two),
        }
        for pool in pools.values():
            pool.close()
    return {**found, "passages": len(texts), "questions": len(requests)}


def chunks(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[start : start + 512] for start in range(0, len(texts), 512)]


def empty_jobs(pool: WorkerPool) -> float:
    """Seconds of a job that does nothing."""
    spec = EncoderSpec("local:minilm", 1)
    jobs = [RemoteCall("info")] * min(EMPTY_JOBS, pool._batch_sizes.first)
    return timed(lambda: list(pool.run(spec, jobs))) / len(jobs)


def dataset_seconds(pool: WorkerPool) -> float:
    """Seconds until a dataset of jobs that do nothing has come through."""
    spec = EncoderSpec("local:minilm", 1)

    def run() -> list[tuple[int, JobResult]]:
        return list(run_streamed(pool._workers, spec, [RemoteCall("info")] * 8))

    return timed(run)


class RandomVectors:
    """An encoder that takes no time, so that only the driver's part of an addition is measured."""

    name, width, fingerprint = "local:random", 384, "0" * 64

    def encode(self, texts: Sequence[str], **_: object) -> np.ndarray:
        """Unit vectors drawn at random."""
        drawn = np.random.default_rng(len(texts)).normal(size=(len(texts), self.width)).astype(np.float32)
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def storing(count: int = 4096) -> float:
    """CPU seconds of the driver for a job of 64 passages: splitting documents, storing, the full-text index."""
    texts = passages(count)
    documents = [
        Document(f"d{at}", f"D {at}", f"d{at}", tuple(Block(text, chapter=str(at)) for text in texts[at : at + 64]))
        for at in range(0, len(texts), 64)
    ]
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.create(folder, "stored", RandomVectors())
        started = time.process_time()  # what it would take on a processor of its own
        collection.add(documents)
        return (time.process_time() - started) / len(collection) * 64


def ratio(found: Timed, slow: str, fast: str) -> float:
    """Median over rounds of how many times faster."""
    return statistics.median(a / b for a, b in zip(found[slow], found[fast], strict=True))


def simulated(found: dict[str, object]) -> list[dict[str, float]]:
    """What more workers would do with jobs of 64 passages, and where the driver becomes the limit."""
    texts, seconds = found["passages"], found["embedding"]
    assert isinstance(texts, int)
    assert isinstance(seconds, dict)
    job = statistics.median(seconds["1 worker"]) / texts * 64
    driver = float(str(found["empty job"])) + float(str(found["storing"]))
    measured = Measured(job=job, variation=0.2, driver=driver)
    alone = simulate(20_000, 1, measured).seconds
    return [
        {"workers": workers, "speedup": alone / run.seconds, "efficiency": run.efficiency}
        for workers in MANY
        for run in [simulate(20_000, workers, measured)]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=512)
    parser.add_argument("--questions", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measure(given.passages, given.questions, given.repeats)
    found["storing"] = storing()
    found["simulated"] = simulated(found)
    if given.json:
        print(json.dumps(found, indent=2))
        return 0
    for name, unit, count in (("embedding", "passages/s", "passages"), ("weighing", "questions/s", "questions")):
        rounds = found[name]
        for way, seconds in rounds.items():
            print(f"{name:10} {way:10} {found[count] / statistics.median(seconds):8.2f} {unit}")
        print(f"{name:10} 2 workers are {ratio(rounds, '1 worker', '2 workers'):.2f} times as fast as 1 (median)")
        print(f"{name:10} 1 worker is {ratio(rounds, 'alone', '1 worker'):.2f} times as fast as no Ray (median)")
    print(f"a job that does nothing: {1000 * found['empty job']:.1f} ms; a dataset: {found['dataset']:.1f} s")
    print(f"the driver's part of adding 64 passages: {1000 * found['storing']:.1f} ms")
    for row in found["simulated"]:
        print(f"{row['workers']:4} workers: {row['speedup']:6.1f} times, efficiency {row['efficiency']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
