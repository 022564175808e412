"""The bundled encoder against sentence-transformers, and encoders of other folders."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay import load_encoder
from climassay.errors import ModelError
from climassay.models.bundled import bundled_path, encoder_fingerprint
from climassay.models.encoders import BertEncoder, SentenceTransformerEncoder, token_batches, windows
from climassay.primer import book_path

pytestmark = pytest.mark.model

TEXTS = (
    "Aerosols scatter sunlight and so cool the surface below them.",
    "The ocean takes up more than nine tenths of the heat that the Earth gains.",
    "Ice sheets lose mass where they meet a warming ocean.",
    "How much does the planet warm when carbon dioxide doubles?",
    "Bake the bread at 220 °C until its crust is brown.",
)


def paragraphs(count: int) -> list[str]:
    """Real paragraphs that fit into one window."""
    lines = book_path("physical_climate").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if 200 < len(line) < 900][:count]


@pytest.fixture(scope="module")
def encoder() -> BertEncoder:
    loaded = load_encoder()
    assert isinstance(loaded, BertEncoder)
    return loaded


@pytest.fixture(scope="module")
def reference():
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(bundled_path("minilm")), device="cpu")


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory) -> Path:
    """A random BERT of another shape than the bundled one, with a prompt before queries."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel

    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("tiny")
    config = BertConfig(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3)
    model = BertModel(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder / "plain")
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(bundled_path("minilm") / name, folder / "plain" / name)
    parts = [Transformer(str(folder / "plain")), Pooling(24), Normalize()]
    whole = SentenceTransformer(modules=parts, prompts={"query": "query: ", "document": ""}, device="cpu")
    whole.save(str(folder / "whole"))
    return folder / "whole"


def test_vectors_are_those_of_the_published_model(encoder, reference):
    texts = [*TEXTS, *paragraphs(20)]
    cosines = (encoder.encode(texts) * reference.encode(texts, normalize_embeddings=True)).sum(axis=1)
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.98


def test_in_float32_the_graph_computes_what_torch_computes(encoder, reference, tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))
    exact = BertEncoder("exact", bundled_path("minilm"), encoder.fingerprint, "float32")
    texts = [*TEXTS, *paragraphs(4)]
    np.testing.assert_allclose(exact.encode(texts), reference.encode(texts, normalize_embeddings=True), atol=2e-6)


def test_the_graph_follows_the_configuration(tiny_folder, tmp_path, monkeypatch):
    """Layers, heads and widths come from config.json, none is that of the bundled model."""
    from sentence_transformers import SentenceTransformer

    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path))
    exact = BertEncoder("tiny", tiny_folder, encoder_fingerprint(tiny_folder, {}), "float32")
    expected = SentenceTransformer(str(tiny_folder), device="cpu").encode(list(TEXTS), normalize_embeddings=True)
    np.testing.assert_allclose(exact.encode(TEXTS), expected, atol=1e-5)


def test_vectors_are_unit_vectors_whatever_the_text(encoder):
    texts = ["", " ", "a", "?!", "CO₂ " * 3000, "気候変動"]
    vectors = encoder.encode(texts)
    assert vectors.shape == (6, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_nothing_gives_no_vectors(encoder):
    assert encoder.encode([]).shape == (0, 384)


def test_a_vector_does_not_depend_on_what_is_encoded_with_it(encoder):
    texts = [*TEXTS, *paragraphs(6)]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(encoder.encode(texts[::-1])[::-1], together)


def test_a_long_text_is_the_weighted_mean_of_its_windows(encoder):
    words = ["ice"] * 200 + ["cloud"] * 201  # one token each
    first, second = encoder.encode([" ".join(words[:200]), " ".join(words[200:])])
    mean = 200 * first + 201 * second
    np.testing.assert_allclose(encoder.encode([" ".join(words)])[0], mean / np.linalg.norm(mean), atol=1e-6)


@given(st.integers(0, 2000), st.integers(1, 300))
def test_windows_cover_all_tokens_evenly(length, most):
    ids = list(range(length))
    parts = [list(part) for part in windows(ids, most)]
    assert [token for part in parts for token in part] == ids
    sizes = [len(part) for part in parts]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == max(1, -(-length // most))


@given(st.lists(st.integers(1, 600), max_size=60), st.integers(1, 5000))
def test_batches_hold_each_text_once_within_the_budget(lengths, budget):
    batches = list(token_batches(lengths, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget


def test_a_torch_encoder_gives_what_sentence_transformers_gives(reference):
    folder = bundled_path("minilm")
    encoder = SentenceTransformerEncoder("local:folder", folder, encoder_fingerprint(folder, {}), "cpu")
    texts = [*TEXTS, *paragraphs(12)]
    assert encoder.width == 384
    expected = reference.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)


def test_a_torch_encoder_puts_the_models_prompt_before_queries(tiny_folder):
    encoder = load_encoder(f"local:{tiny_folder}", device="cpu")
    asked = encoder.encode(["what melts"], role="query")
    assert asked.shape == (1, 24)
    np.testing.assert_allclose(asked, encoder.encode(["query: what melts"]), atol=1e-5)
    assert not np.allclose(asked, encoder.encode(["what melts"]), atol=1e-3)


@pytest.mark.parametrize("changed", ["model.safetensors", "tokenizer.json", "config.json", "1_Pooling/config.json"])
def test_any_file_that_counts_changes_the_fingerprint(tiny_folder, tmp_path, changed):
    copy = shutil.copytree(tiny_folder, tmp_path / "copy")
    before = encoder_fingerprint(copy, {"precision": "int8"})
    assert before == encoder_fingerprint(tiny_folder, {"precision": "int8"})
    (copy / "README.md").write_text("other words")
    assert encoder_fingerprint(copy, {"precision": "int8"}) == before
    assert encoder_fingerprint(copy, {"precision": "float32"}) != before
    content = bytearray((copy / changed).read_bytes())
    content[-2] ^= 1
    (copy / changed).write_bytes(bytes(content))
    assert encoder_fingerprint(copy, {"precision": "int8"}) != before


@pytest.mark.parametrize("name", ["minilm", "openai:x", "local:", "local:/no/such/folder", "local:./none"])
def test_a_name_that_is_none_is_told(name):
    with pytest.raises(ModelError):
        load_encoder(name)


def test_the_bundled_encoder_says_that_it_needs_no_gpu():
    with pytest.raises(ModelError, match="runs on the processor"):
        load_encoder("local:minilm", device="cuda:0")


def test_a_folder_without_weights_is_told(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="has no safetensors weights"):
        load_encoder(f"local:{tmp_path}")


def test_another_architecture_gets_no_graph(tiny_folder, tmp_path):
    copy = shutil.copytree(tiny_folder, tmp_path / "copy")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"model_type": "roberta"}))
    with pytest.raises(ModelError, match="not a BERT"):
        BertEncoder("x", copy, encoder_fingerprint(copy, {})).encode(["text"])


def test_two_processes_make_the_graph_at_once(encoder, tmp_path):
    """Both start with an empty cache; one graph is left, whole, and both got its vectors."""
    script = (
        "import sys; from climassay.models.encoders import load_encoder\n"
        "vector = load_encoder().encode([sys.argv[1]])[0]\n"
        "sys.stdout.write(vector.tobytes().hex())"
    )
    environment = os.environ | {"CLIMASSAY_CACHE": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", script, TEXTS[0]], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert told == [encoder.encode([TEXTS[0]])[0].tobytes().hex()] * 2
    made = sorted((tmp_path / "encoders").iterdir())
    assert [file.suffix for file in made] == [".onnx", ".sha256"]
