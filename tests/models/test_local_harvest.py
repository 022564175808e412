"""Harvested states are those of two plain passes a comparison, whatever the budget; the work is counted."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from climassay.errors import InputError, ModelError
from climassay.models import Activations, Message, OptionRequest
from climassay.models.local.model import LocalModel, TokenisedOptions, read_options
from climassay.models.local.network import Network
from climassay.models.local.reader import SequenceReader
from tiny_models import ARCHITECTURES, save_tiny, save_tokenizer, smollm2, tiny

pytestmark = pytest.mark.model

ITEMS = ("ice melts", "ice is lost by melting", "seas rise", "it is")
ARTICLE = "Of late ice has been melting and the level of the sea rises."


def comparisons(article: str, items: tuple[str, ...], prefix: str, options: tuple[str, str]) -> list[OptionRequest]:
    """Both orders of all pairs; the answer is forced after a prefix that ends with a space."""
    return [
        OptionRequest((Message("user", f"{article}\n1: {first}\n2: {second}\nWhich?"),), options, prefix)
        for first, second in itertools.permutations(items, 2)
    ]


def plain(model: LocalModel, request: OptionRequest, layers: tuple[int, ...]) -> tuple[list[np.ndarray], list[int]]:
    """A whole pass for each option, as the published loop makes it."""
    states, lengths = [], []
    for option in request.options:
        tokens = model.prompts.encode(model.render(request.messages, request.assistant_prefix) + option)
        with torch.no_grad():
            out = model.network.model(torch.tensor([tokens]), output_hidden_states=True)
        states.append(np.stack([out.hidden_states[layer][0, -1].numpy() for layer in layers]))
        lengths.append(len(tokens))
    return states, lengths


@pytest.fixture(scope="module", params=ARCHITECTURES)
def local(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    folder = tmp_path_factory.mktemp(request.param)
    tiny(request.param).save_pretrained(folder)
    save_tokenizer(folder)
    return LocalModel(f"local:{folder}", device="cpu")


@pytest.mark.parametrize("budget", [5, 48, 1000])
def test_states_equal_two_plain_passes_at_any_budget(local: LocalModel, budget: int) -> None:
    # The tokenizer joins " a" and " b", so that the forced answer swallows the prefix's last space.
    layers = (0, 2, -1)
    requests = comparisons(ARTICLE, ITEMS, "the better one is ", ("a", "b"))
    before = local.work
    found = local.harvest(requests, layers=layers, token_budget=budget)
    assert local.reader.shares_prefixes
    assert local.work.passes - before.passes >= (local.work.tokens - before.tokens) / budget
    for request, activations in zip(requests, found, strict=True):
        states, lengths = plain(local, request, layers)
        np.testing.assert_allclose(activations.states, np.stack(states), atol=1e-4)
        assert activations.tokens == sum(lengths)
        assert activations.error is None


@pytest.mark.parametrize(
    ("article", "budget"),
    [
        pytest.param(ARTICLE * 2, 40, id="small budget"),
        pytest.param("The committee met on Monday. " * 12, None, id="default budget"),
    ],
)
def test_the_bundled_model_compares_exactly(article: str, budget: int | None) -> None:
    model = smollm2()
    requests = comparisons(article, ITEMS[:3], "the better choice is Choice ", ("1", "2"))
    found = model.harvest(requests, layers=(-1, 15), token_budget=budget)
    states, lengths = plain(model, requests[4], (-1, 15))
    expected = np.stack(states)
    np.testing.assert_allclose(found[4].states[:, 0], expected[:, 0], atol=1e-4)
    # Inside the network some states are a thousand times larger than others, and so is their rounding.
    np.testing.assert_allclose(found[4].states[:, 1], expected[:, 1], atol=1e-5 * np.abs(expected).max())
    assert found[4].tokens == sum(lengths)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_hooks_and_transformers_own_lists_give_the_same(architecture: str) -> None:
    requests = [TokenisedOptions(((5, 6, 7, 8), (5, 6, 7, 9)), 3), TokenisedOptions(((5, 6, 9, 9, 3), (5, 6, 2)), 2)]
    by_hooks, by_lists = Network(tiny(architecture)), Network(tiny(architecture))
    assert by_hooks._states.matches_transformers
    by_lists._states._matches_transformers = False
    first, second = (
        dict(read_options(SequenceReader(network), requests, layers=(0, 1, 3, -2))) for network in (by_hooks, by_lists)
    )
    for index in (0, 1):
        np.testing.assert_allclose(first[index].states, second[index].states, rtol=1e-5, atol=1e-6)
        assert first[index].logprobs == pytest.approx(second[index].logprobs)


def tree() -> list[TokenisedOptions]:
    """An article of 50 tokens, 3 items of 5 tokens in both orders, answers of one token: 6 comparisons."""
    article = tuple(range(10, 60))
    items = [tuple(range(100 + 10 * number, 105 + 10 * number)) for number in range(3)]
    prompts = [article + first + second for first, second in itertools.permutations(items, 2)]
    return [TokenisedOptions(((*prompt, 201), (*prompt, 202)), 60) for prompt in prompts]


@pytest.mark.parametrize(
    ("budget", "passes"),
    [
        pytest.param(200, 1, id="all in one pass"),
        # The article in two passes; each first item's branch, 5 + 2 * (5 + 2) = 19 tokens, in a pass of its own.
        pytest.param(30, 5, id="article cut, branches apart"),
        # The article, 50 = 13 * 4 - 2; 3 first items, 5 = 4 + 1; 6 second items likewise; both answers together.
        pytest.param(4, 13 + 3 * 2 + 6 * 2 + 6, id="everything cut"),
    ],
)
def test_passes_and_tokens_of_a_small_tree_worked_by_hand(budget: int, passes: int) -> None:
    reader = SequenceReader(Network(tiny("llama")))
    assert len(list(read_options(reader, tree(), layers=(-1,), token_budget=budget))) == 6
    assert reader.work.tokens == 50 + 3 * 5 + 6 * 5 + 6 * 2
    assert reader.work.passes == passes
    assert sum(request.n_tokens_unshared for request in tree()) == 6 * 2 * 61


def test_no_pass_is_larger_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(tiny("gpt-neox"))
    reader = SequenceReader(network)
    assert reader.shares_prefixes
    sizes = []
    step = network.compute_step
    monkeypatch.setattr(network, "compute_step", lambda work, *rest: sizes.append(work.size) or step(work, *rest))
    for budget in (1, 7, 23):
        sizes.clear()
        reader.release()
        list(read_options(reader, tree(), layers=(-1,), token_budget=budget))
        assert max(sizes) <= budget
        assert sum(sizes) == 107


@pytest.fixture
def base_model(tmp_path: Path) -> LocalModel:
    return LocalModel(f"local:{save_tiny(tmp_path)}", device="cpu")


def ask(text: str, *options: str) -> OptionRequest:
    return OptionRequest((Message("user", text),), options, "it is")


def test_what_cannot_be_harvested_fails_in_its_place(base_model: LocalModel) -> None:
    reported: dict[int, Activations] = {}
    requests = [ask("x", ""), ask("x", " a", " b"), ask("long " * 90, " a"), ask("y", " c"), ask("y")]
    found = base_model.harvest(requests, on_result=reported.__setitem__)
    assert [one.error is None for one in found] == [False, True, False, True, False]
    assert "adds nothing" in (found[0].error or "")
    assert "the model accepts 256" in (found[2].error or "")
    assert "no options" in (found[4].error or "")
    for failed in (found[0], found[2], found[4]):
        assert failed.states.shape == (0, 0, 0)
        assert failed.logprobs == ()
    assert found[1].states.shape == (2, 1, 32)
    assert len(reported) == 5
    assert all(reported[index] is found[index] for index in range(5))


def test_states_that_are_no_numbers_are_a_failure_with_their_cost(base_model: LocalModel) -> None:
    assert base_model.reader.shares_prefixes
    with torch.no_grad():
        base_model.network.model.model.norm.weight.fill_(float("nan"))
    (found,) = base_model.harvest([ask("x", " a", " b")])
    assert "not a finite number" in (found.error or "")
    assert found.states.shape == (0, 0, 0)
    assert found.tokens == 2 * (len(base_model.prompts.encode("user:\nx\n\nassistant:\nit is")) + 1)


def test_arguments_that_cannot_be_used_are_refused(base_model: LocalModel) -> None:
    with pytest.raises(ModelError, match="no layer 4: its hidden states are 0 to 3"):
        base_model.harvest([ask("x", " a")], layers=[4])
    with pytest.raises(InputError, match="token budget is 0"):
        base_model.harvest([ask("x", " a")], token_budget=0)
    with pytest.raises(InputError, match="No layer"):
        base_model.harvest([ask("x", " a")], layers=[])
