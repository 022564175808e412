"""One short training of the bundled model, and its adapter where models are loaded."""

from dataclasses import replace
from pathlib import Path

import pytest

from climassay.models import Message, OptionRequest, load_model
from climassay.tuning import ChatData, ChatExample, TuningBase, TuningConfig, train
from climassay.tuning.sequences import SequenceLoss, TokenSequence

pytestmark = pytest.mark.model

SYSTEM = Message("system", "Answer.")
RULE = {"ice": "Zog", "fog": "Mip", "rain": "Mip"}
"""Nothing that a model could know."""


def example(word: str, question: str) -> ChatExample:
    return ChatExample((SYSTEM, Message("user", f"{question} {word}?")), "", RULE[word])


def test_the_bundled_model_learns_a_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_THREADS", "1")
    learned = ChatData("rule", tuple(example(word, "Which kind is") for word in RULE))
    asked = ChatData("asked otherwise", tuple(example(word, "Say the kind of") for word in ("ice",)))
    shape = TuningConfig(rank=4, targets=("q_proj", "v_proj", "o_proj"), batch_size=4, max_length=64, evaluations=1)
    config = replace(shape, epochs=4, learning_rate=1e-2, warmup=0.0, schedule="constant")
    base = TuningBase("local:smollm2", dtype="float32")
    result = train(base, learned, asked, config, tmp_path)
    assert result.best.loss < 0.5 * result.before.loss
    assert result.losses[-1].loss < 0.5 * result.losses[0].loss

    tuned = load_model(result.model, dtype="float32")
    assert tuned.fingerprint != base.fingerprint == result.base_fingerprint
    requests = [OptionRequest(one.messages, ("Zog", "Mip")) for one in asked.examples[:1]]
    merged = [score for scores in tuned.option_logprobs(requests) for score in scores.logprobs]
    assert merged == pytest.approx(_unmerged(base, tmp_path, requests), abs=1e-4)


def _unmerged(base: TuningBase, folder: Path, requests: list[OptionRequest]) -> list[float]:
    """Log-probabilities of the options with PEFT's own layers in the model."""
    import torch
    from peft import PeftModel

    from climassay.models.local.loading import PromptFormat
    from climassay.models.local.model import tokenise_options

    loaded = base.load()
    model = PeftModel.from_pretrained(loaded.model, str(folder)).eval()
    prompts, found = PromptFormat(loaded.tokenizer), []
    for request in requests:
        options = tokenise_options(prompts, prompts.render(request.messages), request.options)
        rows = [TokenSequence(tokens, options.start) for tokens in options.sequences]
        loss = SequenceLoss(base, model.get_base_model(), rows)
        with torch.no_grad():
            found += [-float(loss.nats([place])) for place in range(len(rows))]
    return found
