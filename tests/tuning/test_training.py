import gc
import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from climassay.errors import InputError, ModelError
from climassay.models import Message, ModelOptions, OptionRequest, load_model
from climassay.models.local import loading
from climassay.tuning import ChatData, ChatExample, TuningBase, TuningResult, list_adapters, read_result, train
from climassay.tuning.run import read_unfinished
from tuning_parts import book, library, parity, save_shaken, small

pytestmark = pytest.mark.model

WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_THREADS", "1")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_shaken(tmp_path_factory.mktemp("tuning") / "model"))


@pytest.fixture(scope="module")
def base(model: str) -> TuningBase:
    return TuningBase(model, dtype="float32")


LEARNED, HELD_OUT = parity(0, 24), parity(24, 32)


def test_the_loss_falls_and_the_adapter_can_be_loaded(model: str, base: TuningBase, tmp_path: Path) -> None:
    result = train(base, LEARNED, HELD_OUT, small(epochs=6), tmp_path / "a", preset="p", warnings=("w",))
    assert result.best.loss < 0.5 * result.before.loss
    assert result.before.step == 0
    assert [one.step for one in result.evaluations] == [3 * number for number in range(13)]
    assert [one.step for one in result.losses] == list(range(1, 37))
    assert (result.preset, result.warnings, result.stopped_early) == ("p", ("w",), False)
    assert result.train.size == result.train.sequences == 24
    assert read_result(tmp_path / "a") == result
    assert [one.name for one in list_adapters(tmp_path)] == ["a"]

    plain, tuned = load_model(f"local:{model}"), load_model(result.model)
    assert tuned.fingerprint != plain.fingerprint
    requests = [
        OptionRequest(example.messages, (" yes", " no"), example.assistant_prefix) for example in HELD_OUT.examples
    ]
    right = [(" yes", " no").index(example.answer) for example in HELD_OUT.examples]
    before, after = (
        sum(scores.logprobs[place] for scores, place in zip(one.option_logprobs(requests), right, strict=True))
        for one in (plain, tuned)
    )
    assert after > before / 2


def test_the_learning_rate_rises_and_falls(base: TuningBase, tmp_path: Path) -> None:
    config = small(epochs=2, warmup=0.25, schedule="linear")
    rates = [one.learning_rate for one in train(base, LEARNED, HELD_OUT, config, tmp_path).losses]
    assert rates[:4] == pytest.approx([0.0, 0.01 / 3, 0.02 / 3, 0.01])
    assert rates[3:] == pytest.approx([0.01 * (1 - step / 9) for step in range(9)])


def test_texts_are_learned_too(base: TuningBase, tmp_path: Path) -> None:
    read, held_out = library(book("one", "ice"), book("two", "ice")), library(book("three", "ice"), name="third")
    result = train(base, read, held_out, small(epochs=3, max_length=32), tmp_path)
    assert result.best.loss < result.before.loss - 0.5
    assert result.train.kind == "documents"
    assert result.train.sources == ("one", "two")
    assert result.before.perplexity == math.exp(result.before.loss)


def test_what_is_finished_is_returned_without_loading(
    model: str, base: TuningBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = train(base, LEARNED, HELD_OUT, small(), tmp_path)

    def unexpected(*_: object, **__: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr("climassay.tuning.base.load_local", unexpected)
    assert train(model, LEARNED, HELD_OUT, small(), tmp_path) == result
    assert train(model, LEARNED, HELD_OUT, small(gradient_checkpointing=True), tmp_path) == result


def test_the_fingerprint_is_of_model_data_and_settings(model: str, base: TuningBase, tmp_path: Path) -> None:
    from climassay.tuning.training import training_fingerprint

    assert base.fingerprint == loading.load_local(model, dtype="float32").fingerprint
    usual = training_fingerprint(base, LEARNED, HELD_OUT, small())
    other_model = TuningBase(str(save_shaken(tmp_path / "other", seed=1)), dtype="float32")
    others = [
        training_fingerprint(other_model, LEARNED, HELD_OUT, small()),
        training_fingerprint(base, parity(0, 23), HELD_OUT, small()),
        training_fingerprint(base, LEARNED, parity(24, 31), small()),
        training_fingerprint(base, LEARNED, HELD_OUT, small(seed=1)),
    ]
    assert len({usual, *others}) == 5
    assert training_fingerprint(base, parity(0, 24, "renamed"), HELD_OUT, small()) == usual


def test_another_training_is_not_overwritten_unasked(base: TuningBase, tmp_path: Path) -> None:
    first = train(base, LEARNED, HELD_OUT, small(), tmp_path)
    with pytest.raises(InputError, match="holds an adapter trained from other data"):
        train(base, LEARNED, HELD_OUT, small(rank=2), tmp_path)
    assert read_result(tmp_path) == first
    second = train(base, LEARNED, HELD_OUT, small(rank=2), tmp_path, replace_other=True)
    assert read_result(tmp_path) == second
    assert second.fingerprint != first.fingerprint


def test_damaged_weights_are_trained_again(base: TuningBase, tmp_path: Path) -> None:
    first = train(base, LEARNED, HELD_OUT, small(), tmp_path)
    content = (tmp_path / WEIGHTS).read_bytes()
    (tmp_path / WEIGHTS).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert train(base, LEARNED, HELD_OUT, small(), tmp_path).losses == first.losses
    assert (tmp_path / WEIGHTS).read_bytes() == content


@pytest.fixture(scope="module")
def uninterrupted(base: TuningBase, tmp_path_factory: pytest.TempPathFactory) -> TuningResult:
    return train(base, LEARNED, HELD_OUT, small(epochs=2), tmp_path_factory.mktemp("tuning") / "whole")


@pytest.mark.parametrize("stop_at", [0, 3, 7, 12])
def test_an_interrupted_training_goes_on_as_if_nothing_had_been(
    base: TuningBase, uninterrupted: TuningResult, tmp_path: Path, stop_at: int
) -> None:
    """Stopped at an evaluation, between two, and at the end; dropout is on."""
    config, whole = small(epochs=2), uninterrupted

    def stop(progress) -> None:
        if progress.step == stop_at and progress.step in (0, len(seen)):
            raise KeyboardInterrupt
        seen.add(progress.step)

    seen: set[int] = set()
    with pytest.raises(KeyboardInterrupt):
        train(base, LEARNED, HELD_OUT, config, tmp_path / "parts", on_progress=stop)
    parts = train(base, LEARNED, HELD_OUT, config, tmp_path / "parts")
    assert (parts.losses, parts.evaluations, parts.best_step) == (whole.losses, whole.evaluations, whole.best_step)
    assert (tmp_path / "parts" / WEIGHTS).read_bytes() == (whole.folder / WEIGHTS).read_bytes()


def test_ctrl_c_is_noticed_between_two_passes_and_saves(base: TuningBase, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)

    def interrupt(progress) -> None:
        if progress.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(base, LEARNED, HELD_OUT, small(), tmp_path / "parts", on_progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    parts = train(base, LEARNED, HELD_OUT, small(), tmp_path / "parts")
    whole = train(base, LEARNED, HELD_OUT, small(), tmp_path / "whole")
    assert parts.losses == whole.losses
    assert parts.weights_sha256 == whole.weights_sha256


def test_a_second_ctrl_c_ends_at_once_and_saves_nothing(base: TuningBase, tmp_path: Path) -> None:
    """It may come in the middle of a step: what was saved before stays."""

    def interrupt(progress) -> None:
        if progress.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("went on")

    with pytest.raises(KeyboardInterrupt):
        train(base, LEARNED, HELD_OUT, small(), tmp_path, on_progress=interrupt)
    assert read_unfinished(tmp_path) is not None
    assert len(train(base, LEARNED, HELD_OUT, small(), tmp_path).losses) == 6


def test_too_little_memory_is_one_sentence(base: TuningBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("climassay.tuning.sequences.SequenceLoss.summed_loss", full)
    with pytest.raises(ModelError, match="is not enough for a batch of 4 sequences: lower the batch size"):
        train(base, LEARNED, HELD_OUT, small(), tmp_path)


def test_an_unfinished_training_is_not_mixed_with_another(base: TuningBase, tmp_path: Path) -> None:
    def stop(progress) -> None:
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(base, LEARNED, HELD_OUT, small(), tmp_path, on_progress=stop)
    with pytest.raises(InputError, match="holds an unfinished training with other data or settings"):
        train(base, LEARNED, HELD_OUT, small(rank=2), tmp_path)
    assert train(base, LEARNED, HELD_OUT, small(rank=2), tmp_path, replace_other=True).config.rank == 2


def test_damaged_checkpoints_are_one_sentence(base: TuningBase, tmp_path: Path) -> None:
    file = tmp_path / "checkpoints" / "training.json"
    file.parent.mkdir()
    file.write_text("{}")
    with pytest.raises(InputError, match=r"is damaged: remove .* to train from the start"):
        train(base, LEARNED, HELD_OUT, small(), tmp_path)


def test_a_checkpoint_that_was_cut_off_is_passed_over(base: TuningBase, tmp_path: Path) -> None:
    def stop(progress) -> None:
        if progress.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(base, LEARNED, HELD_OUT, small(), tmp_path / "parts", on_progress=stop)
    partial = tmp_path / "parts" / "checkpoints" / "checkpoint-5"
    partial.mkdir()
    (partial / "optimizer.pt").write_bytes(b"cut off")
    parts = train(base, LEARNED, HELD_OUT, small(), tmp_path / "parts")
    whole = train(base, LEARNED, HELD_OUT, small(), tmp_path / "whole")
    assert parts.weights_sha256 == whole.weights_sha256


def test_two_processes_do_not_train_into_one_folder(base: TuningBase, tmp_path: Path) -> None:
    def second(progress) -> None:
        with pytest.raises(InputError, match="Another process is training into"):
            train(base, LEARNED, HELD_OUT, small(), tmp_path)

    train(base, LEARNED, HELD_OUT, small(), tmp_path, on_progress=second)


def test_accumulated_gradients_are_those_of_one_large_batch(base: TuningBase, tmp_path: Path) -> None:
    """Passes of different numbers of learned tokens count by their tokens, not by their means."""
    data = ChatData(
        "uneven",
        tuple(
            ChatExample((Message("user", f"Say {number}"),), "", " and".join(["a"] * (1 + 3 * number)))
            for number in range(8)
        ),
    )
    together = train(base, data, HELD_OUT, small(batch_size=8, dropout=0.0, epochs=3), tmp_path / "one")
    apart = train(base, data, HELD_OUT, small(batch_size=2, accumulation=4, dropout=0.0, epochs=3), tmp_path / "four")
    assert [one.loss for one in apart.losses] == pytest.approx([one.loss for one in together.losses], rel=1e-4)
    assert len(apart.losses) == 3


def test_gradient_checkpointing_changes_nothing(base: TuningBase, tmp_path: Path) -> None:
    plain = train(base, LEARNED, HELD_OUT, small(), tmp_path / "plain")
    saving = train(base, LEARNED, HELD_OUT, small(gradient_checkpointing=True), tmp_path / "saving")
    assert [one.loss for one in saving.losses] == pytest.approx([one.loss for one in plain.losses], rel=1e-5)
    assert not base.load().model.is_gradient_checkpointing


def test_training_stops_when_the_validation_loss_no_longer_falls(base: TuningBase, tmp_path: Path) -> None:
    """Answers that are wrong on the validation data are learned by heart: it gets worse and worse."""
    wrong = ChatData(
        "wrong",
        tuple(replace(one, answer=" no" if one.answer == " yes" else " yes") for one in parity(24, 32).examples),
    )
    config = small(epochs=30, evaluations=1, patience=2, dropout=0.0, learning_rate=2e-2)
    result = train(base, parity(24, 31, "right"), wrong, config, tmp_path)
    assert result.stopped_early
    assert len(result.losses) < result.steps
    losses = [one.loss for one in result.evaluations[1:]]
    assert result.best.loss == min(losses)
    assert [one.step for one in result.evaluations].index(result.best_step) == len(result.evaluations) - 1 - 2


def test_an_adapter_that_does_harm_is_kept_with_a_warning(base: TuningBase, tmp_path: Path) -> None:
    nonsense = ChatData("nonsense", tuple(replace(one, answer="q" * 9) for one in LEARNED.examples))
    there = ChatData("there", (ChatExample((Message("user", "Go on"),), "", _most_probable(base)),))
    result = train(base, nonsense, there, small(epochs=3), tmp_path / "bad")
    assert result.best_step > 0
    assert result.best.loss > result.before.loss
    assert "did not lower the validation loss" in result.warnings[-1]


def _most_probable(base: TuningBase) -> str:
    """What the model says by itself."""
    model = load_model(base.name, ModelOptions(dtype="float32"))
    from climassay.models import GenerationRequest, Sampling

    answer = model.generate([GenerationRequest((Message("user", "Go on"),), Sampling(max_tokens=6))])[0].text
    assert answer.strip()
    return answer.replace("�", "")


def test_a_diverging_training_is_one_sentence(base: TuningBase, tmp_path: Path) -> None:
    config = small(learning_rate=0.99, warmup=0.0, alpha=1e12, max_gradient_norm=0.0, epochs=20)
    with pytest.raises(ModelError, match=r"The training diverged: .* lower learning rate"):
        train(base, LEARNED, HELD_OUT, config, tmp_path)


def test_the_model_is_as_before_and_random_numbers_too(base: TuningBase, tmp_path: Path) -> None:
    tokens = torch.arange(20)[None]
    before = base.load().model(input_ids=tokens).logits
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(base, LEARNED, HELD_OUT, small(), tmp_path)
    assert torch.equal(torch.rand(3), expected)
    after = base.load().model
    torch.testing.assert_close(after(input_ids=tokens).logits, before)
    assert not after.training
    assert not any(weight.requires_grad for weight in after.parameters())
    gc.collect()
    assert not any("lora" in name for name, _ in after.named_modules())


def test_only_the_layers_named_are_adapted(base: TuningBase, tmp_path: Path) -> None:
    from safetensors import safe_open

    train(base, LEARNED, HELD_OUT, small(targets=("v_proj", "q_proj")), tmp_path / "some")
    with safe_open(tmp_path / "some" / WEIGHTS, framework="pt") as weights:
        assert {name.split(".")[-3] for name in weights.keys()} == {"q_proj", "v_proj"}  # noqa: SIM118
    settings = json.loads((tmp_path / "some" / "adapter_config.json").read_text())
    # In sets the order would be another one in every process, and with it the fingerprint of the tuned model.
    lists = [value for value in settings.values() if isinstance(value, list)]
    assert ["q_proj", "v_proj"] in lists
    assert all(value == sorted(value) for value in lists)
    assert settings["base_model_name_or_path"] == "model"
    with pytest.raises(InputError, match="no linear layers named w_proj"):
        train(base, LEARNED, HELD_OUT, small(targets=("w_proj",)), tmp_path / "none")


def test_prompts_that_are_cut_are_reported(base: TuningBase, tmp_path: Path) -> None:
    result = train(base, LEARNED, HELD_OUT, small(max_length=44), tmp_path)
    assert 0 < result.train.cut < 24
    assert f"{result.train.cut} of 24 training prompts were longer than 44 tokens" in result.warnings[0]


def test_bfloat16_weights_learn_with_a_float32_adapter(model: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    result = train(model, parity(0, 8), HELD_OUT, small(dtype="bfloat16", epochs=3, evaluations=1), tmp_path)
    assert result.dtype == "bfloat16"
    assert result.best.loss < 0.8 * result.before.loss
    assert {weight.dtype for weight in load_file(tmp_path / WEIGHTS).values()} == {torch.float32}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("openai:gpt-4o", "only local: models can be tuned"),
        ("local:smollm2+adapter=somewhere", "has an adapter already: tune the model itself, local:smollm2"),
    ],
)
def test_models_that_cannot_be_tuned(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TuningBase(name)


def test_limits_of_the_model_and_of_the_base(base: TuningBase, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="takes 256 tokens: lower the maximum length from 300"):
        train(base, LEARNED, HELD_OUT, small(max_length=300), tmp_path)
    with pytest.raises(InputError, match="ask for bfloat16, but the model is in float32"):
        train(base, LEARNED, HELD_OUT, small(dtype="bfloat16"), tmp_path)


def test_dtype_follows_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    from climassay.tuning.base import default_dtype

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    assert default_dtype("cuda:1") == "bfloat16"
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert default_dtype("cuda") == "float32"
    assert default_dtype("mps") == "float32"
    for found in ("float32", "bfloat16"):
        monkeypatch.setattr("climassay.tuning.base.fastest_cpu_dtype", lambda found=found: found)
        assert default_dtype("cpu") == found


def test_devices_that_are_not_there(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="torch sees no GPU"):
        TuningBase(model, device="cuda")
    with pytest.raises(InputError, match="There is no device 'warp'"):
        TuningBase(model, device="warp")
