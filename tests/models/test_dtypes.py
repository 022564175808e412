"""The number format of a CPU is decided once, where nobody says it, and is the same from then on."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from climassay.errors import InputError
from climassay.models.local import cpu_settings as dtypes
from climassay.models.local.cpu_settings import DTYPE_VARIABLE, fastest_cpu_dtype
from climassay.models.local.loading import load_local
from climassay.tuning import TuningBase
from tiny_models import save_tiny


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and nobody who says which format."""
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(DTYPE_VARIABLE)
    return tmp_path / "cache" / "dtypes"


def taking(plain: float, half: float):
    """A measurement of these seconds; a new one each time, which has not been made yet."""
    return lambda: (plain, half)


@pytest.mark.parametrize(
    ("plain", "half", "expected"),
    [(2.0, 1.0, "bfloat16"), (1.2, 1.0, "bfloat16"), (1.1, 1.0, "float32"), (1.0, 7.0, "float32")],
)
def test_bfloat16_must_be_clearly_faster(plain, half, expected):
    assert fastest_cpu_dtype(taking(plain, half)) == expected


def test_a_decision_stays_whatever_is_measured_later(cache):
    assert fastest_cpu_dtype(taking(2.0, 1.0)) == "bfloat16"
    assert fastest_cpu_dtype(taking(1.0, 2.0)) == "bfloat16"
    [file] = cache.iterdir()
    assert json.loads(file.read_text()) == {"dtype": "bfloat16", "float32_seconds": 2.0, "bfloat16_seconds": 1.0}


def test_of_two_that_measure_at_once_the_first_decides(cache):
    def measure():
        assert fastest_cpu_dtype(taking(2.0, 1.0)) == "bfloat16"
        return 1.0, 2.0

    assert fastest_cpu_dtype(measure) == "bfloat16"


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"dtype": "int3"}', "\xff"])
def test_a_damaged_decision_is_made_anew(cache, damage):
    fastest_cpu_dtype(taking(1.0, 2.0))
    [file] = cache.iterdir()
    file.write_text(damage, encoding="latin-1")
    assert fastest_cpu_dtype(taking(2.0, 1.0)) == "bfloat16"
    assert fastest_cpu_dtype(taking(1.0, 2.0)) == "bfloat16"


def test_another_processor_decides_for_itself(monkeypatch):
    assert fastest_cpu_dtype(taking(2.0, 1.0)) == "bfloat16"
    monkeypatch.setattr(dtypes, "processor", lambda: "another")
    assert fastest_cpu_dtype(taking(1.0, 2.0)) == "float32"


def test_without_a_place_to_keep_it_the_process_remembers(cache):
    cache.parent.mkdir()
    cache.write_text("no folder")
    measured = []

    def measure():
        measured.append(1)
        return 2.0, 1.0

    assert [fastest_cpu_dtype(measure), fastest_cpu_dtype(measure)] == ["bfloat16", "bfloat16"]
    assert len(measured) == 1


def test_the_variable_decides_without_measuring(cache, monkeypatch):
    for wanted in ("bfloat16", "float32"):
        monkeypatch.setenv(DTYPE_VARIABLE, wanted)
        assert fastest_cpu_dtype(lambda: pytest.fail("measured")) == wanted
    monkeypatch.setenv(DTYPE_VARIABLE, "float16")
    with pytest.raises(InputError, match=f"{DTYPE_VARIABLE} is 'float16': set it to float32 or bfloat16"):
        fastest_cpu_dtype()
    assert not cache.exists()


@pytest.mark.process
def test_a_measurement_says_the_same_in_every_process_and_leaves_the_threads(cache):
    code = (
        "import torch; torch.set_num_threads(2)\n"
        "from climassay.models.local.cpu_settings import fastest_cpu_dtype\n"
        "print(fastest_cpu_dtype(), torch.get_num_threads())"
    )
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert said[0].stdout == said[1].stdout
    [file] = cache.iterdir()
    kept = json.loads(file.read_text())
    assert said[0].stdout.split() == [kept["dtype"], "2"]
    assert kept["float32_seconds"] > 0 < kept["bfloat16_seconds"]


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_models_are_loaded_and_tuned_in_the_format_decided_for(wanted, tmp_path: Path, monkeypatch):
    monkeypatch.setenv(DTYPE_VARIABLE, wanted)
    name = str(save_tiny(tmp_path / "model"))
    loaded = load_local(name, device="cpu")
    assert (loaded.dtype, str(loaded.model.dtype)) == (wanted, f"torch.{wanted}")
    assert loaded.fingerprint == load_local(name, device="cpu", dtype=wanted).fingerprint
    assert TuningBase(name, device="cpu").fingerprint == loaded.fingerprint
    other = {"float32": "bfloat16", "bfloat16": "float32"}[wanted]
    assert load_local(name, device="cpu", dtype=other).fingerprint != loaded.fingerprint


@pytest.mark.parametrize("fastest", ["float32", "bfloat16"])
def test_bfloat16_on_a_processor_without_it_warns(tmp_path, monkeypatch, fastest):
    monkeypatch.setattr(dtypes, "_measure_dtypes", lambda: (1.0, 7.0 if fastest == "float32" else 0.5))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert load_local(str(save_tiny(tmp_path / "model")), device="cpu", dtype="bfloat16").dtype == "bfloat16"
    assert any("no fast bfloat16" in str(warning.message) for warning in caught) == (fastest == "float32")
