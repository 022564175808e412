"""A local model is loaded without running what comes with it, and its fingerprint covers all that changes answers."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from climassay import load_encoder
from climassay.errors import InputError, ModelError
from climassay.models import ModelOptions, load_model
from climassay.models.bundled import file_digest, is_digest_cached
from climassay.models.local import loading
from climassay.models.local.cpu_settings import choose_threads
from climassay.models.local.loading import load_local, stated_licence
from climassay.models.local.model import LocalModel
from tiny_models import save_tiny, save_tokenizer

pytestmark = pytest.mark.model


def test_folders_without_a_model_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json"):
        load_local(str(tmp_path))
    with pytest.raises(ModelError, match="There is no model at /nowhere/at/all"):
        load_local("/nowhere/at/all")
    with pytest.raises(ModelError, match="is an encoder"):
        load_local("minilm")


def test_truncated_weights_are_one_sentence(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ModelError, match=r"^The model .* cannot be loaded: .*\.$"):
        load_local(str(folder))


def test_a_hub_that_cannot_be_reached_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def unreachable(*_: object, **__: object) -> str:
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(ModelError, match=r"neither a bundled name .* nor a folder, and the hub could not be reached"):
        load_local("somebody/some-model")


def test_from_the_hub_only_what_is_needed_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    folder = save_tiny(tmp_path)
    asked: list[tuple[str, list[str]]] = []

    def fetched(name: str, *, allow_patterns: list[str], ignore_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        assert ignore_patterns == ["*/*"]
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    assert load_local("somebody/some-model").fingerprint == load_local(str(folder)).fingerprint
    ((name, patterns),) = asked
    assert name == "somebody/some-model"
    assert not any(pattern.endswith((".bin", ".pt", ".py", ".pth")) for pattern in patterns)


def test_an_adapter_must_be_there_and_no_pickle(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "model")
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    with pytest.raises(ModelError, match=r"has no adapter_config\.json"):
        load_local(str(folder), adapter=str(adapter))
    (adapter / "adapter_config.json").write_text("{}")
    (adapter / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match=r"has no adapter_model\.safetensors"):
        load_local(f"{folder}+adapter={adapter}")
    with pytest.raises(ModelError, match="Two adapters"):
        load_local(f"{folder}+adapter=x", adapter="y")


def test_an_unknown_dtype_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="float32, bfloat16, float16"):
        load_local(str(save_tiny(tmp_path)), dtype="int3")


@pytest.mark.parametrize(
    ("readme", "licence"),
    [
        ("---\nlanguage: en\nlicense: apache-2.0\n---\n# Model\n", "apache-2.0"),
        ("---\nlicense_name: 'gemma'\n---\n", "gemma"),
        ("# Model\nlicense: of no account\n", None),
        (None, None),
    ],
)
def test_the_licence_is_what_the_readme_states(tmp_path: Path, readme: str | None, licence: str | None) -> None:
    if readme is not None:
        (tmp_path / "README.md").write_text(readme)
    assert stated_licence(tmp_path) == licence


def test_names_and_options_of_the_registry() -> None:
    for name in ("gpt-4o", "magic:x", "local:", "openai:"):
        with pytest.raises(InputError, match="is not understood"):
            load_model(name)
    with pytest.raises(InputError, match="--base-url does not go with local: models"):
        load_model("local:smollm2", ModelOptions(base_url="http://127.0.0.1:1"))
    with pytest.raises(InputError, match="--dtype does not go with openai: models"):
        load_model("openai:x", ModelOptions(dtype="float32"))


@pytest.fixture
def no_threads_chosen(monkeypatch: pytest.MonkeyPatch):
    import torch

    before = torch.get_num_threads()
    monkeypatch.setattr("climassay.models.local.cpu_settings._n_threads", None)
    monkeypatch.delenv("CLIMASSAY_THREADS", raising=False)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("no_threads_chosen")
@pytest.mark.parametrize(("seconds", "best"), [({1: 1.0, 2: 7.0, 4: 0.1}, 1), ({1: 1.0, 2: 0.6, 4: 0.5, 6: 0.7}, 4)])
def test_the_fastest_number_of_threads_is_chosen_once(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], best: int
) -> None:
    import torch

    tried: list[int] = []

    def measured(work: object) -> float:
        tried.append(torch.get_num_threads())
        return seconds[tried[-1]]

    monkeypatch.setattr("climassay.models.local.cpu_settings.usable_cores", lambda: 6)
    monkeypatch.setattr("climassay.models.local.cpu_settings._measure_mean_seconds", measured)
    assert choose_threads(lambda: None) == best == torch.get_num_threads()
    assert tried == [1, 2, 4, 6][: len(tried)]
    count = len(tried)
    assert choose_threads(lambda: None) == best
    assert len(tried) == count


@pytest.mark.usefixtures("no_threads_chosen")
def test_the_environment_decides_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIMASSAY_THREADS", "many")
    with pytest.raises(InputError, match="CLIMASSAY_THREADS is 'many'"):
        choose_threads(lambda: None)
    monkeypatch.setenv("CLIMASSAY_THREADS", "3")
    assert choose_threads(lambda: 1 / 0) == 3


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
    monkeypatch.setattr("climassay.models.bundled._SETTLED_SECONDS", -1000.0)
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    assert not is_digest_cached(file)
    assert file_digest(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert is_digest_cached(file)
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
    monkeypatch.setattr("climassay.models.bundled._SETTLED_SECONDS", 1000.0)
    file = tmp_path / "weights"
    file.write_bytes(b"abc")
    file_digest(file)
    assert not is_digest_cached(file)


def test_a_bundled_name_may_stand_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_tiny(tmp_path)
    monkeypatch.setattr(loading, "bundled_path", lambda name: folder)
    model = load_model("smollm2")
    assert isinstance(model, LocalModel)
    assert (model.name, model.licence, model.device, model.dtype) == ("local:smollm2", "Apache-2.0", "cpu", "float32")
    model.close()
    assert model.reader.cache.tokens == ()


@pytest.mark.parametrize("load", [load_local, lambda name: load_encoder(f"local:{name}")], ids=["model", "encoder"])
def test_relative_paths_are_not_looked_for_on_the_hub(
    load: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: pytest.fail("the hub was asked"))
    for name in ("./model", "../model", "~/model", "a/b/c"):
        with pytest.raises(ModelError, match=r"There is no (model|encoder) at"):
            load(name)
