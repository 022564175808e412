import pytest

from climassay.errors import InputError
from climassay.tuning import PRESETS, TuningConfig, find_preset
from climassay.tuning.result import FORMAT, RESULT_FILE, read_result


@pytest.mark.parametrize(
    ("name", "rank", "alpha", "epochs", "learning_rate"),
    [
        pytest.param("mistral-7b-pretrain", 64, 16, 1, 5e-5, id="table-8-mistral"),
        pytest.param("llama3.1-8b-pretrain", 16, 16, 2, 2e-5, id="table-8-llama"),
        pytest.param("mistral-7b-finetune", 16, 16, 3, 5e-5, id="table-9-mistral"),
        pytest.param("llama3.1-8b-finetune", 16, 16, 3, 5e-5, id="table-9-llama"),
    ],
)
def test_presets_are_those_of_the_paper(name: str, rank: int, alpha: float, epochs: int, learning_rate: float) -> None:
    config = find_preset(name).config
    assert (config.rank, config.alpha, config.epochs, config.learning_rate) == (rank, alpha, epochs, learning_rate)
    assert config.patience is None  # the paper trains for a given number of epochs
    assert f"Table {8 if name.endswith('pretrain') else 9}" in find_preset(name).source


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rank", 0), ("alpha", 0.0), ("alpha", float("nan")), ("dropout", 1.0), ("targets", ()), ("epochs", 0),
        ("learning_rate", 0.0), ("learning_rate", 5.0), ("warmup", 1.0), ("schedule", "sine"), ("weight_decay", -0.1),
        ("batch_size", 0), ("accumulation", 0), ("max_length", 3), ("max_gradient_norm", -1.0), ("dtype", "float16"),
        ("patience", 0), ("evaluations", 0),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(setting: str, value: object) -> None:
    with pytest.raises(InputError) as refused:
        TuningConfig(**{setting: value})
    assert setting in str(refused.value)


def test_values_are_put_in_and_none_changes_nothing() -> None:
    config = TuningConfig(rank=8)
    assert config.with_values({"epochs": 3, "rank": None}) == TuningConfig(rank=8, epochs=3)
    with pytest.raises(InputError, match="no tuning setting 'lr'"):
        config.with_values({"lr": 1e-3})


def test_an_adapter_of_a_newer_climassay_is_refused(tmp_path):
    (tmp_path / RESULT_FILE).write_text(f'{{"format": {FORMAT + 1}}}')
    with pytest.raises(InputError, match=r"written by a newer climassay .*: update climassay\.$"):
        read_result(tmp_path)


def test_every_preset_says_its_name_and_task() -> None:
    for name, preset in PRESETS.items():
        assert (preset.name, preset.task) == (name, name.rpartition("-")[2])
    with pytest.raises(InputError, match="There is no tuning preset 'gpt'"):
        find_preset("gpt")
