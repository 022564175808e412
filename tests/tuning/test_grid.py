"""Grids of trainings, and one short training of the bundled model."""

from dataclasses import replace
from pathlib import Path

import pytest

from climassay.errors import InputError, ModelError
from climassay.models import Message, ModelOptions, OptionRequest, load_model
from climassay.tuning import ChatData, ChatExample, TuningBase, TuningConfig, read_result, search, train
from climassay.tuning.sequences import SequenceLoss, TokenSequence
from climassay.tuning.training import grid_configs
from tuning_parts import parity, save_shaken, small

pytestmark = pytest.mark.model

LEARNED, HELD_OUT = parity(0, 16), parity(16, 22)
GRID = {"rank": (1, 4), "learning_rate": (1e-4, 1e-2)}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> TuningBase:
    return TuningBase(str(save_shaken(tmp_path_factory.mktemp("grid") / "model")), dtype="float32")


def test_the_best_of_the_grid_is_kept(base: TuningBase, tmp_path: Path) -> None:
    seen = []
    best = search(base, LEARNED, HELD_OUT, small(), tmp_path, GRID, on_trial=seen.append)
    assert [(one.trial, one.trials) for one in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {trial.config for trial in best.trials} == {one.config.with_values({"dtype": "float32"}) for one in seen}
    losses = [trial.loss for trial in best.trials]
    assert losses == sorted(losses)
    assert best.best.loss == losses[0]
    assert best.config == best.trials[0].config
    assert best.config.learning_rate == 1e-2  # a hundredth of it moves nothing in eight steps
    assert {file.name for file in tmp_path.iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "climassay.json", ".lock",
    }  # fmt: skip
    assert read_result(tmp_path) == best
    assert load_model(best.model, ModelOptions(dtype="float32")).fingerprint != base.fingerprint


def test_an_interrupted_search_repeats_no_trial(base: TuningBase, tmp_path: Path) -> None:
    whole = search(base, LEARNED, HELD_OUT, small(), tmp_path / "whole", GRID)
    steps: list[int] = []

    def stop(progress) -> None:
        steps.append(progress.step)
        if steps.count(0) == 3 and progress.step == 2:  # in the third trial
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(base, LEARNED, HELD_OUT, small(), tmp_path / "parts", GRID, on_progress=stop)
    later: list[int] = []
    parts = search(
        base, LEARNED, HELD_OUT, small(), tmp_path / "parts", GRID, on_progress=lambda one: later.append(one.step)
    )
    assert later.count(0) == 2  # only the third and the fourth trial began anew
    assert [(one.config, one.loss) for one in parts.trials] == [(one.config, one.loss) for one in whole.trials]
    assert parts.weights_sha256 == whole.weights_sha256

    def unexpected(_: object) -> None:
        raise AssertionError("trained")

    assert search(base, LEARNED, HELD_OUT, small(), tmp_path / "parts", GRID, on_trial=unexpected) == parts


def test_another_search_is_not_overwritten_unasked(base: TuningBase, tmp_path: Path) -> None:
    search(base, LEARNED, HELD_OUT, small(), tmp_path, {"rank": (1,)})
    with pytest.raises(InputError, match="another training or search"):
        search(base, LEARNED, HELD_OUT, small(), tmp_path, {"rank": (2,)})
    with pytest.raises(InputError, match="another training or search"):
        search(base, LEARNED, HELD_OUT, small(), tmp_path, {"rank": (1, 2)})
    assert search(base, LEARNED, HELD_OUT, small(), tmp_path, {"rank": (2,)}, replace_other=True).config.rank == 2


def test_a_search_does_not_end_an_unfinished_training(base: TuningBase, tmp_path: Path) -> None:
    def stop(progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(base, LEARNED, HELD_OUT, small(), tmp_path, on_progress=stop)
    with pytest.raises(InputError, match="holds an unfinished training"):
        search(base, LEARNED, HELD_OUT, small(), tmp_path, {"rank": (1,)})
    search(base, LEARNED, HELD_OUT, small(), tmp_path, {"rank": (1,)}, replace_other=True)
    assert not (tmp_path / "checkpoints").exists()


def test_settings_that_diverge_lose(base: TuningBase, tmp_path: Path) -> None:
    wild = small(learning_rate=0.99, warmup=0.0, max_gradient_norm=0.0, epochs=20)
    best = search(base, LEARNED, HELD_OUT, wild.with_values({"epochs": 8}), tmp_path / "some", {"alpha": (1e12, 1.0)})
    assert [trial.loss is None for trial in best.trials] == [False, True]
    assert best.config.alpha == 1.0
    assert read_result(tmp_path / "some") == best
    with pytest.raises(ModelError, match="All 1 trainings of the search diverged"):
        search(base, LEARNED, HELD_OUT, wild, tmp_path / "all", {"alpha": (1e12,)})


def test_grids_that_make_no_sense() -> None:
    configs = grid_configs(small(), {"rank": (8, 8, 16), "epochs": (1,)})
    assert [(config.rank, config.epochs) for config in configs] == [(8, 1), (16, 1)]
    for grid in ({}, {"rank": ()}):
        with pytest.raises(InputError, match="nothing to choose from"):
            grid_configs(small(), grid)
    with pytest.raises(InputError, match="'colour' cannot be searched over"):
        grid_configs(small(), {"colour": ("red",)})
    with pytest.raises(InputError, match="rank must be at least 1, not 0"):
        grid_configs(small(), {"rank": (0,)})


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

    tuned = load_model(result.model, ModelOptions(dtype="float32"))
    assert tuned.fingerprint != base.fingerprint == result.base_fingerprint
    requests = [OptionRequest(one.messages, ("Zog", "Mip")) for one in asked.examples[:1]]
    merged = [score for scores in tuned.option_logprobs(requests) for score in scores.logprobs]
    assert merged == pytest.approx(_unmerged(base, tmp_path, requests), abs=1e-4)


def _unmerged(base: TuningBase, folder: Path, requests: list[OptionRequest]) -> list[float]:
    """Log-probabilities of the options with PEFT's own layers in the model."""
    import torch
    from peft import PeftModel

    from climassay.models.local.model import tokenise_options
    from climassay.models.local.prompt_format import PromptFormat

    loaded = base.load()
    model = PeftModel.from_pretrained(loaded.model, str(folder)).eval()
    prompts, found = PromptFormat(loaded.tokenizer), []
    for request in requests:
        options = tokenise_options(prompts, prompts.render(request.messages), request.options)
        rows = [TokenSequence(tokens, options.first_scored) for tokens in options.sequences]
        loss = SequenceLoss(base, model.get_base_model(), rows)
        with torch.no_grad():
            found += [-float(loss.summed_loss([place])) for place in range(len(rows))]
    return found
