"""Folders that say they are models and want code to be run: each is refused in one sentence, and nothing of it runs."""

import contextlib
import io
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from climassay import load_encoder
from climassay.errors import ClimassayError
from climassay.metrics.entailment import load_classifier
from climassay.metrics.overlap import TokenEncoder
from climassay.models.encoders import cached_vectors
from climassay.models.local.loading import load_local
from tiny_models import SIZES, save_tiny
from topic_encoder import TopicEncoder

pytestmark = pytest.mark.model

CODE = "import pathlib\npathlib.Path({canary!r}).write_text('ran')\n"
CLASSES = "class Config: pass\nclass Model: pass\nclass Tokenizer: pass\nclass Module: pass\n"


class Evil:
    """What makes a file where a pickle of it is read."""

    def __init__(self, canary: Path) -> None:
        self.canary = str(canary)

    def __reduce__(self):
        return (open, (self.canary, "w"))


@pytest.fixture
def canary(tmp_path):
    return tmp_path / "ran"


@pytest.fixture(autouse=True)
def nobody_is_asked(monkeypatch):
    """Whoever asks on the terminal whether code may run hears yes, as a user in a hurry says."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")


def edit(file: Path, **changes) -> None:
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps(known | changes), encoding="utf-8")


def add_code(folder: Path, canary: Path) -> None:
    (folder / "evil.py").write_text(CODE.format(canary=str(canary)) + CLASSES)


@pytest.fixture(scope="module")
def harmless_generator(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("harmless") / "generator")


@pytest.fixture
def generator(harmless_generator, tmp_path):
    return Path(shutil.copytree(harmless_generator, tmp_path / "generator"))


@pytest.fixture
def encoder(harmless_encoder, tmp_path):
    return Path(shutil.copytree(harmless_encoder, tmp_path / "encoder"))


@pytest.fixture(scope="module")
def harmless_encoder(tmp_path_factory):
    """A small BERT as a sentence-transformers folder: with modules, and pooling in a folder of its own."""
    from transformers import BertConfig, BertModel

    folder = save_tiny(tmp_path_factory.mktemp("harmless") / "encoder")
    edit(folder / "tokenizer_config.json", pad_token="</s>")
    (folder / "model.safetensors").unlink()
    BertModel(BertConfig(**SIZES)).save_pretrained(folder)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    kinds = "sentence_transformers.models"
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"{kinds}.{name}"} for n, (path, name) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    edit(folder / "1_Pooling" / "config.json", word_embedding_dimension=32, pooling_mode_mean_tokens=True)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": False}))
    return folder


def refused(load, canary: Path) -> str:
    with pytest.raises(ClimassayError) as caught:
        load()
    assert not canary.exists(), "code of the folder ran"
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith(".")
    return said


def encode(folder: Path) -> np.ndarray:
    return load_encoder(f"local:{folder}").encode(["The sea warms."])


def tokens(folder: Path):
    return TokenEncoder(f"local:{folder}").encode(["The sea warms."])


def classify(folder: Path):
    return load_classifier(str(folder)).score([("The sea warms.", "It warms.")])


def test_the_harmless_folders_are_read(generator, encoder):
    assert load_local(str(generator)).fingerprint
    assert encode(encoder).shape == (1, 32)
    assert len(tokens(encoder)) == 1


def test_a_pickle_of_ours_would_make_the_file(canary):
    """The ground of all these tests: who reads the pickle runs it."""
    pickle.loads(pickle.dumps(Evil(canary)))
    assert canary.exists()


READERS = pytest.mark.parametrize("read", [encode, tokens, classify, lambda one: load_local(str(one))],
                                  ids=["encoder", "tokens", "classifier", "generator"])  # fmt: skip


@READERS
def test_classes_that_a_model_brings_along_are_not_imported(read, encoder, canary):
    kinds = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification")
    edit(encoder / "config.json", model_type="evil", auto_map=dict.fromkeys(kinds, "evil.Model"))
    add_code(encoder, canary)
    refused(lambda: read(encoder), canary)


@READERS
def test_a_tokenizer_that_a_model_brings_along_is_not_imported(read, encoder, canary):
    edit(
        encoder / "tokenizer_config.json", tokenizer_class="Evil", auto_map={"AutoTokenizer": ["evil.Tokenizer", None]}
    )
    add_code(encoder, canary)
    with contextlib.suppress(ClimassayError):  # or it is read with a tokenizer of the library
        read(encoder)
    assert not canary.exists()


@READERS
def test_weights_in_a_pickle_are_not_read(read, encoder, canary):
    (encoder / "model.safetensors").unlink()
    (encoder / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(canary)))
    refused(lambda: read(encoder), canary)


@READERS
@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation"])
def test_compiled_code_from_elsewhere_is_not_fetched(read, name, encoder, canary):
    edit(encoder / "config.json", **{name: "somebody/kernel"})
    assert "compiled code from elsewhere" in refused(lambda: read(encoder), canary)


@pytest.mark.parametrize("kind", ["evil.Module", "sentence_transformers.nowhere.Module", "os.system", "climassay.Evil"])
def test_modules_of_an_encoder_are_those_of_the_library(kind, encoder, canary):
    listed = json.loads((encoder / "modules.json").read_text())
    (encoder / "modules.json").write_text(
        json.dumps([*listed, {"idx": 2, "name": "2", "path": "2_Evil", "type": kind}])
    )
    (encoder / "2_Evil").mkdir()
    add_code(encoder, canary)
    add_code(encoder / "2_Evil", canary)
    refused(lambda: encode(encoder), canary)


def test_a_further_module_with_weights_in_a_pickle_is_refused(encoder, canary):
    listed = json.loads((encoder / "modules.json").read_text())
    dense = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    (encoder / "modules.json").write_text(json.dumps([*listed, dense]))
    (encoder / "2_Dense").mkdir()
    edit(encoder / "2_Dense" / "config.json", in_features=32, out_features=4, activation_function="torch.nn.Tanh")
    (encoder / "2_Dense" / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(canary)))
    assert "2_Dense" in refused(lambda: encode(encoder), canary)


def test_of_a_hub_no_pickle_and_no_code_is_fetched(encoder, monkeypatch):
    import fnmatch

    import huggingface_hub

    asked, ignored = [], []

    def fetched(name, *, allow_patterns, ignore_patterns):
        asked.extend(allow_patterns)
        ignored.extend(ignore_patterns)
        return str(encoder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    load_encoder("local:somebody/encoder")
    for wanted in ("model.safetensors", "1_Pooling/config.json", "tokenizer.json", "modules.json"):
        assert any(fnmatch.fnmatch(wanted, pattern) for pattern in asked)
        assert not any(fnmatch.fnmatch(wanted, pattern) for pattern in ignored)
    for unwanted in ("pytorch_model.bin", "evil.py", "2_Dense/pytorch_model.bin", "onnx/model.onnx", "model.pkl"):
        assert not any(fnmatch.fnmatch(unwanted, pattern) for pattern in asked)


ADAPTERS = {
    "tokenizer-of-its-own": {"peft_type": "PROMPT_TUNING", "tokenizer_kwargs": {"trust_remote_code": True}},
    "other-adapters": {"peft_type": "XLORA", "adapters": {"0": "somewhere"}},
    "module": {"peft_type": "LORA", "r": 2, "megatron_config": {"x": 1}, "megatron_core": "megatron.evil"},
    "no-kind": {"auto_mapping": {"base_model_class": "Model", "parent_library": "evil"}},
    "a-list": [],
}


@pytest.mark.parametrize("config", ADAPTERS.values(), ids=ADAPTERS)
def test_an_adapter_is_numbers_and_nothing_else(config, generator, tmp_path, canary, monkeypatch):
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    add_code(adapter, canary)
    monkeypatch.syspath_prepend(adapter)
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    shutil.copy(generator / "model.safetensors", adapter / "adapter_model.safetensors")
    refused(lambda: load_local(str(generator), adapter=str(adapter)), canary)


def trained_readers():
    from climassay import load_tagger
    from climassay.judging import load_probe

    return {"probe": load_probe, "tagger": load_tagger}


def pickled_array(canary: Path) -> bytes:
    """A .npy file whose values are pickles."""
    out = io.BytesIO()
    np.save(out, np.array([Evil(canary)], dtype=object), allow_pickle=True)
    return out.getvalue()


@pytest.mark.parametrize("content", [lambda one: pickle.dumps(Evil(one)), pickled_array], ids=["pickle", "array"])
@pytest.mark.parametrize("kind", ["probe", "tagger"])
def test_a_trained_file_that_is_a_pickle_is_refused(kind, content, tmp_path, canary):
    file = tmp_path / "trained.safetensors"
    file.write_bytes(content(canary))
    refused(lambda: trained_readers()[kind](file), canary)


def test_a_cache_that_somebody_spoilt_is_made_again_and_nothing_in_it_runs(tmp_path, canary, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    encoder = TopicEncoder()
    first = cached_vectors(["ocean", "cloud"], encoder, folder="texts")
    (file,) = (tmp_path / "cache" / "texts").iterdir()
    whole = io.BytesIO()
    np.savez(whole, keys=np.array([Evil(canary)], dtype=object), vectors=first)
    for spoilt in (pickle.dumps(Evil(canary)), pickled_array(canary), whole.getvalue(), b""):
        file.write_bytes(spoilt)
        assert np.array_equal(cached_vectors(["ocean", "cloud"], encoder, folder="texts"), first)
    assert not canary.exists()


def test_a_cache_that_everybody_can_write_to_is_refused(tmp_path, monkeypatch):
    from climassay.workspace import cache_folder

    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    assert cache_folder().stat().st_mode & 0o777 == 0o700
    cache_folder().chmod(0o1777)
    with pytest.raises(ClimassayError, match="can be written by everybody"):
        cache_folder()
