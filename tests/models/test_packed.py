"""Linear layers in the processor's blocks compute what plain ones compute."""

import weakref

import pytest
import torch

from climassay.models.contract import GenerationRequest, Message, OptionRequest, Sampling
from climassay.models.local import network as networks
from climassay.models.local import network as packing
from climassay.models.local.loading import load_local
from climassay.models.local.model import LocalModel
from climassay.models.local.network import PackedLinear, pack_linear_layers
from tiny_models import save_tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def packed(folder):
    """A model in bfloat16 whose layers are packed."""
    model = load_local(str(folder), device="cpu", dtype="bfloat16").model
    if not pack_linear_layers(model):
        pytest.skip("this processor, or this torch, has no blocks for bfloat16 weights")
    return model


def test_a_packed_model_gives_what_the_plain_one_gives(folder, packed):
    plain = load_local(str(folder), device="cpu", dtype="bfloat16").model
    tokens = torch.arange(1, 41).view(2, 20)
    with torch.inference_mode():
        expected, found = (model(input_ids=tokens).logits.float() for model in (plain, packed))
    assert not any(type(module) is torch.nn.Linear for module in packed.modules())
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.05)


def test_a_plain_layer_is_given_up_before_the_next_one_is_packed(packed, monkeypatch):
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8, dtype=torch.bfloat16) for _ in range(3))).requires_grad_(False)
    plain = [weakref.ref(layer) for layer in model]
    alive = []

    class Watched(PackedLinear):
        def __init__(self, linear):
            super().__init__(linear)
            alive.append(sum(layer() is not None for layer in plain))

    monkeypatch.setattr(packing, "PackedLinear", Watched)
    assert pack_linear_layers(model) == 3
    assert alive == [3, 3, 2, 1], "the first is the trial"


def test_a_torch_that_cannot_pack_computes_plainly(folder, monkeypatch):
    monkeypatch.setattr("climassay.models.local.network._operators", lambda: object())
    model = load_local(str(folder), device="cpu", dtype="bfloat16").model
    assert pack_linear_layers(model) == 0


def test_a_local_model_in_bfloat16_answers_as_the_plain_one_does(folder, packed, monkeypatch):
    """Greedy answers, options and parameters; the words of a model with random weights hang on the last bit."""
    ours = LocalModel(str(folder), device="cpu", dtype="bfloat16")
    monkeypatch.setattr(networks, "pack_linear_layers", lambda _model: 0)
    plain = LocalModel(str(folder), device="cpu", dtype="bfloat16")
    assert ours.fingerprint == plain.fingerprint
    assert ours.network.parameters == plain.network.parameters > 0
    asked = [OptionRequest((Message("user", f"Is it {word}?"),), ("yes", "no", "perhaps")) for word in ("warm", "cold")]
    for first, second in zip(ours.option_logprobs(asked), plain.option_logprobs(asked), strict=True):
        assert first.logprobs == pytest.approx(second.logprobs, abs=0.1)
    requests = [GenerationRequest((Message("user", text),), Sampling(max_tokens=4)) for text in ("Why?", "How so?")]
    assert all(done.error is None and done.text for done in ours.generate(requests))
