import dataclasses

import numpy as np
import pytest
import torch

from climassay.errors import InputError
from climassay.judging.causal import ablate, ablated, probe_directions, random_directions
from climassay.judging.preferences import Item, Judgements, Questions, quality
from climassay.judging.probe import Probe
from climassay.learning.model_file import Provenance
from climassay.models.contract import Message, OptionRequest
from tiny_models import smollm2

pytestmark = pytest.mark.model

STATES = 30
WIDTH = 576
TEXTS = ("Ice melts.", "The ocean warms and its level rises, year after year.", "Rain.", "Heat waves grow longer.")
ITEMS = [Item(str(n), text, "", str(n // 2), float(n % 2)) for n, text in enumerate(TEXTS)]
PAIRS = np.array([[0, 1], [2, 3]])


def probe(weights, layers=(-1,)):
    return Probe("pair", weights, np.zeros(len(weights)), 1.0, 0.0, Provenance(layers=layers))


def direction(seed=0, width=WIDTH):
    return np.random.default_rng(seed).standard_normal(width)


class Judge:
    name = "judge"

    def __init__(self, odds, failed=(False, False)):
        self.odds, self.failed = np.array(odds), np.array(failed)

    def compare(self, items, pairs, *, on_progress=None):
        return Judgements(self.odds, self.failed)


def questions():
    return Questions(quality("own", sentence="says more"))


def request():
    return OptionRequest((Message("user", "Which is better, 1 or 2?"),), (" 1", " 2"), "Choice")


def states_under(directions, layers):
    with ablated(smollm2(), directions):
        return smollm2().harvest([request()], layers=layers)[0].states


@pytest.mark.parametrize("state", [0, 3, 29, 30])
def test_the_direction_is_gone_where_it_was_taken_out(state):
    unit = direction() / np.linalg.norm(direction())
    found = states_under({state: unit[None]}, (state,))
    plain = states_under({}, (state,))
    # The harvest's own hook on this state stands before or after ours; the last state is read after it.
    if state == STATES:
        assert np.abs(found[:, 0] @ unit).max() < 1e-3 * np.abs(plain[:, 0] @ unit).max() + 1e-4
    after = states_under({state: unit[None]}, (-1,))
    assert not np.allclose(after, states_under({}, (-1,)), atol=1e-4)


def test_taking_out_of_a_state_is_what_a_projection_by_hand_gives():
    """One layer is computed apart: its input, projected by hand, gives its output under ablation."""
    unit = direction() / np.linalg.norm(direction())
    model = smollm2()
    caught = {}
    layer = model.network.model.get_decoder().layers[4]

    def keep(_module, given, named):
        caught["in"] = given[0] if given else named["hidden_states"]

    with ablated(model, {4: unit[None]}):
        handle = layer.register_forward_pre_hook(keep, with_kwargs=True)
        model.option_logprobs([request()])
        handle.remove()
    projected = caught["in"].float().numpy() @ unit
    assert np.abs(projected).max() < 1e-4


def test_nothing_is_left_behind():
    model = smollm2()
    before = model.option_logprobs([request()])[0].logprobs
    unit = direction()[None] / np.linalg.norm(direction())
    with ablated(model, dict.fromkeys(range(STATES + 1), unit)):
        inside = model.option_logprobs([request()])[0].logprobs
    assert inside != pytest.approx(before, abs=1e-3)
    assert model.option_logprobs([request()])[0].logprobs == pytest.approx(before, abs=1e-4)
    with pytest.raises(RuntimeError, match="stop"), ablated(model, {0: unit}):
        raise RuntimeError("stop")
    assert model.option_logprobs([request()])[0].logprobs == pytest.approx(before, abs=1e-4)


def test_shared_and_plain_computation_agree_under_ablation():
    unit = direction()[None] / np.linalg.norm(direction())
    model = smollm2()
    with ablated(model, {8: unit}):
        shared = model.option_logprobs([request()])[0].logprobs
        prompt = model.render(request().messages, request().assistant_prefix)
        ids = [model.prompts.tokenizer(prompt + option, add_special_tokens=False).input_ids for option in (" 1", " 2")]
        with torch.inference_mode():
            plain = []
            for tokens in ids:
                logits = model.network.model(torch.tensor([tokens])).logits[0].log_softmax(-1)
                start = len(model.prompts.tokenizer(prompt, add_special_tokens=False).input_ids)
                plain.append(sum(float(logits[at - 1, tokens[at]]) for at in range(start, len(tokens))))
    assert shared == pytest.approx(plain, abs=1e-3)


@pytest.mark.parametrize(
    ("layers", "scope", "states"),
    [
        ((-1,), "probed", [30]),
        ((-1,), "onward", [30]),
        ((-1,), "all", list(range(31))),
        ((28,), "onward", [28, 29, 30]),
        ((28, -1), "probed", [28, 30]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_where_directions_are_taken_out(layers, scope, states):
    found = probe_directions(probe(direction(width=8 * len(layers)), layers), 30, scope)
    assert sorted(found) == states
    for rows in found.values():
        assert rows @ rows.T == pytest.approx(np.eye(len(rows)))


def test_two_layers_give_two_directions_from_the_later_one_on():
    found = probe_directions(probe(np.concatenate([[1.0, 0, 0], [1.0, 1, 0]]), (28, -1)), 30, "onward")
    assert [len(found[state]) for state in (28, 29, 30)] == [1, 1, 2]
    random = random_directions(found, np.random.default_rng(0))
    assert [len(random[state]) for state in (28, 29, 30)] == [1, 1, 2]
    assert random[28] == pytest.approx(random[29])


def test_the_direction_between_the_answers_carries_the_preference_and_random_ones_do_not():
    """What the head reads as 1 against 2 is taken out of the last state: nothing of the preference is left."""
    head = smollm2().network.model.get_output_embeddings().weight.double().numpy()
    one, two = (smollm2().prompts.tokenizer(text, add_special_tokens=False).input_ids[-1] for text in ("1", "2"))
    asked = questions()
    found = ablate(smollm2(), asked, probe(head[one] - head[two]), Judge([0.5, -0.5]), ITEMS, PAIRS, controls=3, seed=1)
    assert found.states == (30,)
    assert found.failed == 0
    largest = max(control.mean_absolute_change for control in found.controls)
    assert found.mean_absolute_change.value > 3 * largest
    assert found.p_value == pytest.approx(1 / 4)
    assert found.accuracy_before.n == 2


def test_correlation_and_failures_by_hand(monkeypatch):
    """Log-odds before are 1, 2, 3 and 4, and a probe says 1, 2, 3 and 9; the ablation takes half of them."""
    before = np.array([1.0, 2.0, 3.0, 4.0])
    answers = iter([Judgements(before, np.zeros(4, bool)), Judgements(before / 2 - 1, np.array([False] * 3 + [True]))])
    monkeypatch.setattr("climassay.judging.causal.averaged", lambda *_: next(answers))
    items = [Item(str(n), "x", "", str(n // 2)) for n in range(8)]
    pairs = np.array([[0, 1], [2, 3], [4, 5], [6, 7]])
    found = ablate(
        smollm2(), questions(), probe(direction()), Judge([1, 2, 3, 9], [False] * 4), items, pairs, controls=0
    )
    assert (found.n_pairs, found.failed) == (4, 1)
    # Lost: 1.5, 2 and 2.5.
    assert found.mean_absolute_change.value == pytest.approx(2.0)
    assert found.correlation.value == pytest.approx(1.0)
    # The first changes sign, the second becomes undecided.
    assert found.flips.value == pytest.approx(2 / 3)
    assert found.p_value is None
    assert found.accuracy_before.value is None


def test_what_cannot_be_ablated():
    unknown = dataclasses.replace(probe(direction()), provenance=Provenance())
    with pytest.raises(InputError, match="does not say which layers"):
        probe_directions(unknown, 30, "all")
    with pytest.raises(InputError, match="no two items"):
        ablate(smollm2(), questions(), probe(direction()), Judge([]), ITEMS, np.zeros((0, 2), dtype=np.int64))
