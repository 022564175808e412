import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from climassay.models.local.loading import load_local
from climassay.models.model_files import file_digest, is_remembered
from tiny_models import save_tiny, save_tokenizer

pytestmark = pytest.mark.model

TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant] "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "model", chat_template=TEMPLATE)


def fingerprint(folder: Path, **options: str) -> str:
    return load_local(str(folder), **options).fingerprint


def test_the_same_model_elsewhere_has_the_same_fingerprint(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy" / "deeper")
    assert fingerprint(folder) == fingerprint(tmp_path / "copy" / "deeper")
    assert len(fingerprint(folder)) == 64


def other_weights(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][3] += 1e-6
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def other_tokenizer(folder: Path) -> None:
    save_tokenizer(folder, TEMPLATE, merges=41)


def other_template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(TEMPLATE + " ", encoding="utf-8")


def other_settings(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["rms_norm_eps"] = 1e-3
    (folder / "config.json").write_text(json.dumps(config))


def other_end_token(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"eos_token_id": 5}')


@pytest.mark.parametrize("change", [other_weights, other_tokenizer, other_template, other_settings, other_end_token])
def test_the_same_name_with_something_else_inside_has_another_fingerprint(
    folder: Path, change: Callable[[Path], None]
) -> None:
    before = fingerprint(folder)
    assert fingerprint(folder) == before
    change(folder)
    assert fingerprint(folder) != before


def test_another_dtype_is_another_model(folder: Path) -> None:
    assert len({fingerprint(folder, dtype=dtype) for dtype in ("float32", "bfloat16", "float16")}) == 3
    assert fingerprint(folder) == fingerprint(folder, dtype="float32")


def save_adapter(folder: Path, target: Path, seed: int) -> str:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(folder)
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    adapted.save_pretrained(target)
    return str(target)


def test_an_adapter_changes_the_fingerprint_and_the_answers(folder: Path, tmp_path: Path) -> None:
    first = save_adapter(folder, tmp_path / "first", seed=1)
    second = save_adapter(folder, tmp_path / "second", seed=2)
    loaded = [load_local(str(folder)), load_local(str(folder), adapter=first), load_local(f"{folder}+adapter={second}")]
    assert len({model.fingerprint for model in loaded}) == 3
    assert load_local(f"{folder}+adapter={first}").fingerprint == loaded[1].fingerprint
    tokens = torch.tensor([[5, 6, 7, 8]])
    logits = [model.model(tokens).logits for model in loaded]
    assert not torch.allclose(logits[0], logits[1], atol=1e-4)
    assert not torch.allclose(logits[1], logits[2], atol=1e-4)


def test_a_digest_is_remembered_until_the_file_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("climassay.models.model_files._SETTLED_SECONDS", -1000.0)
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    assert not is_remembered(file)
    assert file_digest(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert is_remembered(file)
    hashed: list[str] = []
    fresh = SimpleNamespace(hexdigest=lambda: "fresh")
    monkeypatch.setattr("hashlib.file_digest", lambda file, kind: hashed.append(kind) or fresh)
    assert file_digest(file).startswith("ba7816bf")
    assert not hashed
    status = file.stat()
    file.write_bytes(b"abd")
    # Even a writer that restores the modification time is noticed.
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file_digest(file) == "fresh"


def test_a_file_that_has_just_changed_is_hashed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("climassay.models.model_files._SETTLED_SECONDS", 1000.0)
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    file_digest(file)
    assert not is_remembered(file)


def test_a_spoilt_memory_of_digests_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("climassay.models.model_files._SETTLED_SECONDS", -1000.0)
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    file_digest(file)
    (entry,) = (tmp_path / "cache" / "digests").iterdir()
    entry.write_text("{half", encoding="utf-8")
    assert file_digest(file).startswith("ba7816bf")
