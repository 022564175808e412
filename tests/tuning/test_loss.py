"""The loss that is trained on is the one that evaluations read."""

from pathlib import Path

import pytest
import torch

from climassay.models import OptionRequest, load_model
from climassay.models.local.prompts import PromptFormat
from climassay.tuning import TuningBase
from climassay.tuning.sequences import SequenceLoss, TokenSequence, tokenise
from tiny_models import ARCHITECTURES, tiny, tiny_recurrent
from tuning_parts import parity, save_shaken

pytestmark = pytest.mark.model


class OnTheCpu:
    """What a loss asks of a base, for models that lie in no folder."""

    device = "cpu"

    def autocast(self):
        return torch.autocast("cpu", torch.bfloat16, enabled=False)


def by_hand(model, row: TokenSequence) -> float:
    """Row by row, without padding, from all logits."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([row.tokens])).logits[0].log_softmax(-1)
    return -sum(float(logits[place - 1, row.tokens[place]]) for place in range(row.start, len(row.tokens)))


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "mamba"])
def test_padded_rows_have_the_loss_they_have_alone(architecture: str) -> None:
    model = tiny_recurrent() if architecture == "mamba" else tiny(architecture)
    rows = [
        TokenSequence(tuple((7 * place + 3 * length) % 300 for place in range(length)), start)
        for length, start in ((5, 1), (17, 16), (29, 11), (2, 1))
    ]
    loss = SequenceLoss(OnTheCpu(), model, rows)
    with torch.no_grad():
        together = float(loss.nats(range(4)))
    apart = sum(by_hand(model, row) for row in rows)
    assert together == pytest.approx(apart, rel=1e-4)
    learned = 4 + 1 + 18 + 1
    assert loss.learned(range(4)) == learned
    for size in (1, 3, 4):
        assert loss.mean(size) == pytest.approx(apart / learned, rel=1e-4)


def test_the_loss_of_an_answer_is_its_log_probability_as_an_option(tmp_path: Path) -> None:
    folder = save_shaken(tmp_path / "model")
    base, data = TuningBase(str(folder), dtype="float32"), parity(0, 6)
    loaded = base.load()
    tokenised = tokenise(data, PromptFormat(loaded.tokenizer), frozenset({1}), 200)
    answers = [TokenSequence(row.tokens[:-1], row.start) for row in tokenised.sequences]  # options have no end
    loss = SequenceLoss(base, loaded.model, answers)
    requests = [OptionRequest(one.messages, (one.answer,), one.assistant_prefix) for one in data.examples]
    scores = load_model(f"local:{folder}", dtype="float32").option_logprobs(requests)
    for place, score in enumerate(scores):
        with torch.no_grad():
            assert float(loss.nats([place])) == pytest.approx(-score.logprobs[0], abs=1e-4)
