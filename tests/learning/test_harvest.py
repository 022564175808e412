"""A harvest computes what is missing, in an order in which beginnings are shared, and says what it cost."""

from pathlib import Path

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.learning.harvest import ActivationStore, Harvest, _pieces, harvest
from climassay.models.contract import Message, OptionRequest
from counting_model import CountingModel, ask, expected_states, texts_of
from tiny_models import save_tiny
from writing_process import Shout


def check_states(found: Harvest, texts: list[str], layers=(-1,)) -> None:
    np.testing.assert_array_equal(found.states, expected_states(texts, layers))


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "disk"])
def test_states_are_in_the_order_of_the_requests(tmp_path: Path, stored: bool) -> None:
    texts = list(reversed(texts_of(40)))
    model = CountingModel()
    store = ActivationStore(tmp_path) if stored else None
    found = harvest(model, ask(*texts), layers=(3, -1), store=store, shard=7)
    check_states(found, texts, (3, -1))
    np.testing.assert_array_equal(found.logprobs, -np.abs(found.states[:, :, 0, 0]))
    np.testing.assert_array_equal(found.read(np.array([5, 1, 5])), found.states[[5, 1, 5]])
    assert found.failed == {}
    assert found.succeeded.all()
    assert (found.stored, found.computed, found.passes) == (0, 40, 40)
    lengths = [len(f"<{text}>Choice ") for text in texts]
    assert found.tokens_computed == sum(lengths)
    assert found.tokens_two_pass == 2 * sum(lengths) + 2 * 40


def test_a_second_harvest_is_served_from_disk(tmp_path: Path) -> None:
    first = harvest(CountingModel(), ask(*texts_of(20)), store=ActivationStore(tmp_path), shard=6)
    model = CountingModel()
    texts = texts_of(30)
    second = harvest(model, ask(*texts), store=ActivationStore(tmp_path), shard=6)
    assert (second.stored, second.computed, second.passes) == (20, 10, 10)
    assert sorted(prompt for call in model.asked for prompt in call) == sorted(f"<{t}>Choice " for t in texts[20:])
    assert second.tokens_two_pass > first.tokens_two_pass
    check_states(second, texts)
    again = harvest(model, ask(*texts), store=ActivationStore(tmp_path))
    assert (again.stored, again.computed, again.passes, again.tokens_computed) == (30, 0, 0, 0)
    assert again.tokens_two_pass == second.tokens_two_pass


@pytest.mark.parametrize("change", ["fingerprint", "layers", "dtype"])
def test_another_model_or_setting_is_computed_afresh(tmp_path: Path, change: str) -> None:
    harvest(CountingModel(), ask("x"), store=ActivationStore(tmp_path))
    model = CountingModel("8" * 64 if change == "fingerprint" else "7" * 64)
    if change == "dtype":
        model.dtype = "float16"
    layers = (0,) if change == "layers" else (-1,)
    found = harvest(model, ask("x"), layers=layers, store=ActivationStore(tmp_path))
    assert (found.stored, found.computed) == (0, 1)


def test_equal_requests_are_computed_once_and_counted_twice(tmp_path: Path) -> None:
    for store in (None, ActivationStore(tmp_path)):
        model = CountingModel()
        found = harvest(model, ask("a", "b", "a", "fail", "fail"), store=store)
        assert sum(map(len, model.asked)) == 3
        assert (found.computed, len(found.failed)) == (3, 2)
        assert found.tokens_two_pass == 2 * (3 * 11 + 2 * 14)
        np.testing.assert_array_equal(found.states[[0, 1, 2]], expected_states(["a", "b", "a"]))


def test_failures_are_counted_in_their_place_and_tried_again(tmp_path: Path) -> None:
    for _ in range(2):
        model = CountingModel()
        found = harvest(model, ask("a", "fail", "unrenderable", "b"), store=ActivationStore(tmp_path))
        assert found.failed == {1: "No luck.", 2: "The chat template does not accept this."}
        assert list(found.succeeded) == [True, False, False, True]
        assert found.stored + found.computed + len(found.failed) == 4
        assert "<fail>Choice " in model.asked[0]
        assert np.isfinite(found.states).all()
        np.testing.assert_array_equal(found.states[[1, 2]], 0)
        np.testing.assert_array_equal(found.logprobs[[1, 2]], 0)
        np.testing.assert_array_equal(found.states[[0, 3]], expected_states(["a", "b"]))
    assert found.stored == 2


def test_nothing_and_nothing_but_failures_are_harvests_too() -> None:
    assert harvest(CountingModel(), []).states.shape == (0, 0, 1, 0)
    found = harvest(CountingModel(), ask("fail", "unrenderable"), layers=(1, 2))
    assert found.states.shape == (2, 2, 2, 0)
    assert len(found.failed) == 2


def test_progress_adds_up_to_the_requests(tmp_path: Path) -> None:
    harvest(CountingModel(), ask("a", "b"), store=ActivationStore(tmp_path))
    steps: list[int] = []
    texts = ["a", "b", "c", "c", "fail", "unrenderable", "d"]
    harvest(CountingModel(), ask(*texts), store=ActivationStore(tmp_path), shard=1, on_progress=steps.append)
    assert sum(steps) == len(texts)
    assert steps[0] == 3  # two served, one without a prompt


def test_an_interrupted_harvest_keeps_all_pieces_but_the_last(tmp_path: Path) -> None:
    steps: list[int] = []

    def interrupt(done: int) -> None:
        steps.append(done)
        if sum(steps) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harvest(CountingModel(), ask(*texts_of(40)), store=ActivationStore(tmp_path), shard=6, on_progress=interrupt)
    found = harvest(CountingModel(), ask(*texts_of(40)), store=ActivationStore(tmp_path), shard=6)
    assert (found.stored, found.computed) == (18, 22)
    check_states(found, texts_of(40))


def test_pieces_are_cut_between_articles() -> None:
    prompts = dict(enumerate(sorted(f"article {number // 6} item {number % 6}" for number in range(30))))
    assert [len(piece) for piece in _pieces(list(prompts), prompts, 10)] == [6, 6, 6, 6, 6]
    assert [len(piece) for piece in _pieces(list(prompts), prompts, 13)] == [12, 12, 6]
    assert [len(piece) for piece in _pieces(list(prompts), prompts, 1)] == [1] * 30
    flat = [index for piece in _pieces(list(prompts), prompts, 4) for index in piece]
    assert flat == list(prompts)


def test_half_precision_gives_the_same_when_it_is_computed_and_when_it_is_served(tmp_path: Path) -> None:
    first, second = (
        harvest(CountingModel(), ask(*texts_of(9)), store=ActivationStore(tmp_path, storage="float16"))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.states, second.states)
    assert second.stored == 9
    np.testing.assert_allclose(second.states, expected_states(texts_of(9)), rtol=1e-3, atol=1e-4)


@pytest.mark.model
def test_a_local_model_is_harvested_as_it_harvests_itself(tmp_path: Path) -> None:
    from climassay.models.local.model import LocalModel

    model = LocalModel(f"local:{save_tiny(tmp_path / 'model')}", device="cpu")
    requests = [
        OptionRequest((Message("user", f"ice {first} or {second}"),), (" a", " b"), "it is")
        for first in "abcd"
        for second in "abcd"
    ]
    direct = model.harvest(requests, layers=(1, -1))
    model.reader.release()
    before = model.work
    found = harvest(model, requests, layers=(1, -1), store=ActivationStore(tmp_path / "store"), shard=5)
    assert (found.passes, found.tokens_computed) == (
        model.work.passes - before.passes,
        model.work.tokens - before.tokens,
    )
    assert found.tokens_two_pass == sum(one.tokens for one in direct) > 2 * found.tokens_computed
    np.testing.assert_allclose(found.states, np.stack([one.states for one in direct]), atol=1e-4)
    np.testing.assert_allclose(found.logprobs, [one.logprobs for one in direct], atol=1e-4)


def test_a_model_that_hides_its_states_is_refused_by_name() -> None:
    hidden = Shout()
    with pytest.raises(InputError, match="local:shout cannot be read"):
        harvest(hidden, ask("x"))


def test_arguments_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InputError, match=r"\[1, 2\] options"):
        harvest(CountingModel(), [*ask("x"), *ask("y", options=("1",))])
    with pytest.raises(InputError, match="shard size is 0"):
        harvest(CountingModel(), ask("x"), shard=0)
