"""Work on a cluster of two nodes, whose workers and drivers are killed in the middle of it.

The tests share one cluster and, after those of whole commands, one pool of workers.
"""

import importlib.util
import os
import random
import signal
import threading

import numpy as np
import pytest

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document, open_or_create
from climassay.distributed import BatchSizes, ClusterOptions, DistributedModel, open_pool
from climassay.errors import ModelError
from climassay.learning import ActivationStore, harvest
from climassay.models import GenerationRequest, Message, OptionRequest, Sampling, load_model
from climassay.records import RecordedModel, Records
from distant_model import WantedDistant, asked
from patience import until
from tiny_models import save_tiny

pytestmark = pytest.mark.cluster

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed (the extra ray brings it)", allow_module_level=True)


@pytest.fixture(scope="module")
def pool(address):
    with open_pool(ClusterOptions(address), batch_sizes=BatchSizes(first=20, later=100, min_streamed=8)) as opened:
        yield opened


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A random model with a window that takes a question; its positions have no weights."""
    return save_tiny(tmp_path_factory.mktemp("tiny"), context=2048)


@pytest.fixture
def distant(pool, tmp_path):
    spec = WantedDistant(str(tmp_path))
    return DistributedModel(pool, spec, "local:distant", pool.info(spec))


def chats(*texts):
    return [GenerationRequest((Message("user", text),), Sampling(seed=n)) for n, text in enumerate(texts)]


def backwards(*texts):
    return [f"{text[::-1]} {n}" for n, text in enumerate(texts)]


def opened_when(folder, true):
    """A thread that lets the waiting workers answer when something is true."""
    gate = threading.Thread(target=lambda: (until(true), (folder / "go").touch()))
    gate.start()
    return gate


def test_answers_are_those_of_one_process(pool, tiny, tmp_path):
    alone, spread = load_model(f"local:{tiny}"), pool.load_model(f"local:{tiny}")
    assert (spread.name, spread.fingerprint) == (alone.name, alone.fingerprint)
    texts = [f"Say {number} words about glaciers." for number in range(12)]
    requests = [
        GenerationRequest((Message("user", text),), Sampling(max_tokens=6, temperature=0.8, seed=seed))
        for seed, text in enumerate(texts)
    ]
    assert [one.text for one in spread.generate(requests)] == [one.text for one in alone.generate(requests)]
    weighed = [OptionRequest((Message("user", text),), ("yes", "no")) for text in texts]
    np.testing.assert_allclose(
        [scores.logprobs for scores in spread.option_logprobs(weighed)],
        [scores.logprobs for scores in alone.option_logprobs(weighed)],
        atol=1e-4,
    )
    assert spread.count_tokens(texts) == alone.count_tokens(texts)

    # Activations of the workers are found by the model itself, in the same store.
    store = ActivationStore(tmp_path)
    first = harvest(spread, weighed, layers=(1, -1), store=store)
    assert (first.computed, first.stored) == (12, 0)
    again = harvest(alone, weighed, layers=(1, -1), store=store)
    assert (again.computed, again.stored) == (0, 12)
    np.testing.assert_allclose(first.states, harvest(alone, weighed, layers=(1, -1)).states, atol=1e-4)


def test_a_collection_is_the_same(pool, tmp_path):
    said = "Glacier {} lost {} metres of ice this year, because the summers there are warmer than they have ever been."
    documents = [
        Document(
            f"d{n}", f"Report {n}", f"r{n}.txt", tuple(Block(said.format(n, m), chapter=f"{m}") for m in range(40))
        )
        for n in range(3)
    ]
    spread = open_or_create(tmp_path / "spread", "ice", passage_size=120, passage_overlap=0, load=pool.load_encoder)
    told = []
    report = spread.add(documents, on_progress=told.append)
    alone = open_or_create(tmp_path / "alone", "ice", passage_size=120, passage_overlap=0)
    assert report == alone.add(documents)
    assert told[-1].passages_done == report.passages == len(alone) == 120

    def rows(collection):
        found = collection._table.search().limit(None).to_arrow().to_pylist()
        return {row["id"]: row["vector"] for row in found}

    assert rows(spread) == rows(alone)
    # It remembers the encoder, not who computed.
    assert Collection.open(tmp_path / "spread", "ice").search("metres lost", k=3) == alone.search("metres lost", k=3)
    encoder = pool.load_encoder("local:minilm")
    np.testing.assert_array_equal(encoder.encode(["sea", "ice"]), load_encoder().encode(["sea", "ice"]))
    assert encoder.encode([]).shape == (0, 384)


def test_both_nodes_work(distant, tmp_path):
    # Each node has one CPU, and each worker takes one. Nobody is answered before both have been asked.
    texts = [f"[wait] {number}" for number in range(8)]
    gate = opened_when(tmp_path, lambda: len(asked(tmp_path)[1]) == 2)
    assert [one.text for one in distant.generate(chats(*texts))] == backwards(*texts)
    gate.join()
    assert len(asked(tmp_path)[1]) == 2


def test_much_work_streams_through_ray_data(pool, distant, tmp_path):
    texts = [f"number {number}" for number in range(1100)]  # 35 jobs: 20 in the first window, 15 streamed
    random.Random(4).shuffle(texts)
    heard = []
    answers = distant.generate(chats(*texts), on_result=lambda place, answer: heard.append((place, answer.text)))
    assert [one.text for one in answers] == backwards(*texts)
    assert sorted(heard) == list(enumerate(backwards(*texts)))
    assert asked(tmp_path)[0] == dict.fromkeys(texts, 1)


def test_a_model_that_no_worker_finds_is_told_in_one_sentence(pool, tiny, tmp_path):
    with pytest.raises(ModelError, match=r"^There is no model at /nowhere/at-all: give a bundled name"):
        pool.load_model("local:/nowhere/at-all")
    with pytest.raises(ModelError, match="has no layer 99"):
        pool.load_model(f"local:{tiny}").harvest([OptionRequest((Message("user", "Why?"),), ("a", "b"))], layers=(99,))
    spec = WantedDistant(str(tmp_path), own_weights=True)
    model = DistributedModel(pool, spec, "local:distant", pool.info(spec))
    texts = [f"[wait] {number}" for number in range(8)]
    gate = opened_when(tmp_path, lambda: len(asked(tmp_path)[1]) == 2)
    with pytest.raises(ModelError, match="Two workers have different weights"):
        model.generate(chats(*texts))
    gate.join()


def test_a_killed_worker_loses_nothing_and_nothing_recorded_is_asked_again(distant, tmp_path):
    texts = [f"{'[wait] ' if number >= 8 else ''}number {number}" for number in range(16)]

    def kill_who_waits():
        until(lambda: any("[wait]" in prompt for prompt in asked(tmp_path)[0]) and len(stored_first()) == 8)
        lines = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
        os.kill(int(next(line for line in lines if "[wait]" in line).split()[0]), signal.SIGKILL)
        (tmp_path / "go").touch()

    def stored_first():
        return [place for place in done if place < 8]

    done = []
    with Records(f"sqlite:///{tmp_path}/records.sqlite") as store:
        with store.run("first", {}) as run:
            killer = threading.Thread(target=kill_who_waits)
            killer.start()
            recorded = RecordedModel(distant, store, run)
            recorded.generate(chats(*texts[:8]), on_result=lambda place, _: done.append(place))
            answers = recorded.generate(chats(*texts))
            killer.join()
        assert [one.text for one in answers] == backwards(*texts)
        assert (recorded.tally.sent, recorded.tally.hits, recorded.tally.failed) == (16, 8, 0)
        times, _ = asked(tmp_path)
        assert all(times[text] == 1 for text in texts[:8])
        # A job of two requests was under way in the killed worker; only its requests may be asked a second time.
        assert sum(times[text] - 1 for text in texts[8:]) in (1, 2)
        with store.run("second", {}) as run:
            RecordedModel(distant, store, run).generate(chats(*texts))
        assert asked(tmp_path)[0] == times


def test_what_kills_every_worker_fails_in_its_place(distant, tmp_path, capsys):
    texts = ["good", "[crash] fine words", "[die] at once", "good too"]
    first, second, third, fourth = distant.generate(chats(*texts))
    assert (first.text, fourth.text) == ("doog 0", "oot doog 3")
    assert third.error == "No answer from 3 workers in turn; the last one: its worker died."
    assert second.error is not None
    assert "the model has a fault of its own" in second.error
    assert asked(tmp_path)[0] == {"good": 1, "good too": 1, texts[1]: 3, texts[2]: 3}
    # What Ray has to say of dead workers does not come between what a command prints.
    assert capsys.readouterr().out == ""
