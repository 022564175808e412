"""Which cluster is joined, what workers get of it, and what it costs."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from climassay import load_encoder
from climassay.corpus import Block, Document, open_or_create
from climassay.corpus import collection as collection_adding
from climassay.distributed import ClusterOptions
from climassay.distributed.cluster import WorkerResources, cluster_connection, divide_resources
from climassay.distributed.pool import Worker
from climassay.distributed.remote import ModelArguments, RemoteCall, job_size
from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.models.contract import StreamingEncoder
from command_line import refused
from tiny_models import save_tiny
from work_costs import (
    Assumptions,
    Machine,
    comparisons,
    cost_table,
    large_work,
    question_cost,
    ranking_cost,
    training_cost,
)


def nodes(*resources, dead=()):
    return [{"Alive": place not in dead, "Resources": one} for place, one in enumerate(resources)]


SMALL = nodes({"CPU": 2.0}, {"CPU": 6.0})
GRAPHICS = nodes({"CPU": 0.0}, {"CPU": 16.0, "GPU": 2.0}, {"CPU": 16.0, "GPU": 2.0})


@pytest.mark.parametrize(
    ("cluster", "workers", "gpus", "share"),
    [
        (SMALL, None, None, WorkerResources(8, 1, 0.0)),
        (SMALL, 4, None, WorkerResources(4, 2, 0.0)),
        # Three workers of two CPUs each would lie on the larger node alone; four fit with two, so three get three.
        (SMALL, 2, None, WorkerResources(2, 3, 0.0)),
        (SMALL, 1, None, WorkerResources(1, 6, 0.0)),
        (GRAPHICS, None, None, WorkerResources(4, 8, 1.0)),
        (GRAPHICS, None, 0.5, WorkerResources(8, 4, 0.5)),
        (GRAPHICS, 2, 2.0, WorkerResources(2, 16, 2.0)),
        (GRAPHICS, None, 0.0, WorkerResources(32, 1, 0.0)),
    ],
    ids=["default", "four", "two", "one", "gpus", "half gpus", "two gpus each", "no gpus"],
)
def test_a_worker_lies_within_one_node(cluster, workers, gpus, share):
    assert divide_resources(cluster, ClusterOptions("auto", workers, gpus)) == share


@pytest.mark.parametrize(
    ("cluster", "options", "words"),
    [
        (SMALL, ClusterOptions("auto", 9), "9 workers need 9 CPUs, there are 8 CPUs and 0 GPUs on 2 nodes"),
        (GRAPHICS, ClusterOptions("auto", 5), "5 workers need 5 CPUs and 5 GPUs, there are 32 CPUs and 4 GPUs"),
        (nodes({"CPU": 4.0, "GPU": 1.0}, {"CPU": 4.0, "GPU": 1.0}), ClusterOptions("auto", 1, 2.0), "and 2 GPUs"),
        (nodes({"CPU": 2.0}, {"CPU": 2.0}, dead={1}), ClusterOptions("auto", 3), "2 CPUs and 0 GPUs on 1 node"),
    ],
    ids=["cpus", "gpus", "gpus of one node", "dead node"],
)
def test_a_cluster_that_is_too_small_is_told_before_anything_waits(cluster, options, words):
    with pytest.raises(InputError, match=words):
        divide_resources(cluster, options)


@pytest.mark.parametrize("address", ["ray://head:10001", "nowhere", "head:", "", "a b:1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="--ray takes HOST:PORT"), cluster_connection(ClusterOptions(address)):
        pass


def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_an_address_where_nobody_listens_ends_the_command_with_one_sentence(tmp_path, climassay):
    page = tmp_path / "page.txt"
    page.write_text("The ice melts.", encoding="utf-8")
    address = f"127.0.0.1:{closed_port()}"
    where = ("--workspace", tmp_path / "work")
    err = refused(climassay("corpus add ice", page, "--ray", address, *where))
    assert (
        err.strip().splitlines()[-1].startswith(f"climassay: No Ray cluster answers at {address} (connection refused)")
    )


def test_without_ray_the_command_says_what_to_install(tmp_path, monkeypatch, climassay):
    page = tmp_path / "page.txt"
    page.write_text("The ice melts.", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "ray", None)
    where = ("--workspace", tmp_path / "work")
    err = refused(climassay("corpus add ice", page, "--ray", "local", *where))
    assert err.strip().splitlines()[-1] == (
        "climassay: --ray needs Ray: install it with `pip install 'climassay[ray]'`."
    )
    with pytest.raises(MissingExtraError), cluster_connection(ClusterOptions()):
        pass


def test_ray_starts_without_keys_and_passwords(monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed (the extra ray brings it)")
    import ray._private.utils as inner

    given = {
        "OPENAI_API_KEY": "sk-c4n4ryZk93xQ",
        "CLIMASSAY_DATABASE_URL": "postgresql://user:canary-2@host/name",
        "AWS_SECRET_ACCESS_KEY": "canary-3",
    }
    # A model of the hub is fetched by the workers, and a cluster may ask for a token.
    needed = {"HF_TOKEN": "for-the-hub", "RAY_AUTH_TOKEN": "for-the-cluster", "HARMLESS": "seen"}
    for name, value in {**given, **needed}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        inner, "get_entrypoint_name", lambda: "climassay ask --base-url http://user:canary-4@host/v1 sk-c4n4ryZk93xQ"
    )
    told = []

    def refused(**_):
        told.append((dict(os.environ), inner.get_entrypoint_name()))
        raise RuntimeError("no room")

    monkeypatch.setattr(ray, "init", refused)
    with (
        pytest.raises(ModelError, match=r"Ray does not start on this machine \(no room\)"),
        cluster_connection(ClusterOptions()),
    ):
        pass
    for environment, line in told:
        assert needed.items() <= environment.items()
        assert "canary" not in str(environment)
        assert line == "climassay ask --base-url http://***@host/v1 ***"
    assert {**given, **needed}.items() <= os.environ.items()
    assert "canary-4" in inner.get_entrypoint_name()


def test_workers_without_a_cluster_are_refused(tmp_path, climassay):
    assert "need --ray" in refused(climassay("evaluate mcq primer", "--ray-workers", "2", "--workspace", tmp_path))


def test_jobs_are_a_quarter_of_a_share_at_most():
    assert job_size(1000, 2, 32) == 32
    assert job_size(80, 2, 32) == 10
    assert job_size(3, 2, 32) == 1
    assert job_size(0, 2, 32) == 1


def test_a_worker_holds_one_model_whoever_names_its_number_format(tmp_path, monkeypatch):
    for here, elsewhere in (("bfloat16", "float32"), ("float32", "bfloat16")):
        monkeypatch.setenv("CLIMASSAY_DTYPE", here)
        worker = Worker(1)
        spec = ModelArguments(f"local:{save_tiny(tmp_path / here)}", device="cpu")
        first = worker.run_job(spec, RemoteCall("info"))
        assert first.result.dtype == here
        again = worker.run_job(replace(spec, dtype=here), RemoteCall("info"))
        assert again.fingerprint == first.fingerprint
        assert len(worker._loaded) == 1
        # What a node with another processor has chosen is computed here too.
        assert worker.run_job(replace(spec, dtype=elsewhere), RemoteCall("info")).fingerprint != first.fingerprint


SCALE = Path(__file__).parents[2] / "docs" / "scale.md"
GIVEN = Assumptions(
    accelerator=Machine("a GPU", prompt_tokens=1000, completion_tokens=100, passages=0, dollars=2.0),
    processor=Machine("a core", prompt_tokens=0, completion_tokens=0, passages=10, dollars=0.5),
    question_prompt=800,
    question_completion=20,
    comparison_tokens=450,
    labelled=4,
    passage_bytes=5000,
)


def test_questions_are_read_and_written():
    # 3600 questions: 2.88 million tokens read in 2880 s, 72,000 written in 720 s.
    cost = question_cost(3600, GIVEN)
    assert (cost.prompt_tokens, cost.completion_tokens) == (2_880_000, 72_000)
    assert cost.hours == pytest.approx(1.0)
    assert cost.dollars == 2.0
    assert cost.days(2) == pytest.approx(1 / 48)


def test_a_ranking_grows_a_little_faster_than_its_items():
    assert [comparisons(count, GIVEN) for count in (0, 1, 2, 8, 1024)] == [0, 0, 2, 24, 10240]
    cost = ranking_cost(8, GIVEN)
    assert (cost.requests, cost.prompt_tokens) == (48, 48 * 450)
    assert ranking_cost(2048, GIVEN).requests / ranking_cost(1024, GIVEN).requests == pytest.approx(2.2)


def test_only_training_grows_with_the_square():
    assert training_cost(GIVEN).requests == 12  # 4 items: 6 pairs, both orders
    assert training_cost(replace(GIVEN, labelled=8)).requests == 56


def test_the_documentation_shows_the_table():
    text = SCALE.read_text(encoding="utf-8")
    for line in cost_table(large_work()):
        assert line in text


class BackwardsEncoder:
    """Takes some chunks ahead and gives the last of them first."""

    def __init__(self, ahead):
        self._encoder = load_encoder()
        self._ahead = ahead
        self.name, self.fingerprint, self.width = self._encoder.name, self._encoder.fingerprint, self._encoder.width

    def encode(self, texts, *, role="passage", on_progress=None):
        return self._encoder.encode(texts, role=role, on_progress=on_progress)

    def encode_stream(self, chunks, *, on_progress=None):
        held = []
        for number, texts in enumerate(chunks):
            held.append((number, texts))
            if len(held) == self._ahead:
                yield from self._given(held, on_progress)
        yield from self._given(held, on_progress)

    def _given(self, held, on_progress):
        while held:
            number, texts = held.pop()
            yield number, self.encode(texts, on_progress=on_progress)


def documents():
    said = "Station {} saw the glacier retreat by {} metres, more than in any of the hundred years before this one."
    return [
        Document(f"d{n}", f"Report {n}", f"r{n}.txt", tuple(Block(said.format(n, m), chapter=f"{m}") for m in range(9)))
        for n in range(3)
    ]


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_chunks_may_come_in_any_order(ahead, tmp_path, monkeypatch):
    monkeypatch.setattr(collection_adding, "CHUNK_PASSAGES", 4)
    made = {"passage_size": 120, "passage_overlap": 0}
    alone = open_or_create(tmp_path / "alone", "ice", **made)
    alone.add(documents())
    encoder, told = BackwardsEncoder(ahead), []
    assert isinstance(encoder, StreamingEncoder)
    streamed = open_or_create(tmp_path / "streamed", "ice", **made, load=lambda _: encoder)
    report = streamed.add(documents(), on_progress=told.append)
    assert report.passages == len(streamed) == len(alone) == 27
    assert told[-1].passages_done == 27
    assert streamed.search("glacier retreat at station 2", k=5) == alone.search("glacier retreat at station 2", k=5)


def test_chunks_that_came_are_kept_when_the_encoder_fails_later(tmp_path, monkeypatch):
    monkeypatch.setattr(collection_adding, "CHUNK_PASSAGES", 4)

    class Failing(BackwardsEncoder):
        def _given(self, held, on_progress):
            if any(number >= 2 for number, _ in held):
                raise RuntimeError("No worker is left.")
            yield from super()._given(held, on_progress)

    made = {"passage_size": 120, "passage_overlap": 0}
    failing = open_or_create(tmp_path, "ice", **made, load=lambda _: Failing(1))
    with pytest.raises(RuntimeError, match="No worker"):
        failing.add(documents())
    again = open_or_create(tmp_path, "ice", **made)
    assert len(again) == 8
    assert again.add(documents()).passages == 19
