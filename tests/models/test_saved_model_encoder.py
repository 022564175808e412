"""Encoders that TensorFlow saved: unit vectors of a real small SavedModel, refused operations, and messages."""

import numpy as np
import pytest

from climassay import load_encoder
from climassay.errors import MissingExtraError, ModelError
from climassay.metrics import phrase_similarities


def save_encoder(folder, *, writes=False, scalar=False):
    """Save a module that maps a text to three sums over its bytes; or one that also writes a file."""
    tf = pytest.importorskip("tensorflow")

    class Encoder(tf.Module):
        def __init__(self):
            super().__init__()
            weights = np.random.default_rng(0).normal(size=(256, 3))
            self.weights = tf.Variable(weights, dtype=tf.float32)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, texts):
            if writes:
                tf.io.write_file(str(folder / "written"), texts[0])
            data = tf.io.decode_raw(texts, tf.uint8, fixed_length=64)
            vectors = tf.reduce_sum(tf.gather(self.weights, tf.cast(data, tf.int32)), axis=1)
            return vectors[:, 0] if scalar else vectors

    tf.saved_model.save(Encoder(), str(folder))
    return f"savedmodel:{folder}"


def test_vectors_are_of_unit_length_and_belong_to_their_texts(tmp_path):
    encoder = load_encoder(save_encoder(tmp_path / "encoder"))
    texts = [f"the sea level rises by {number} mm" for number in range(150)]
    vectors = encoder.encode(texts)
    assert vectors.shape == (150, encoder.width) == (150, 3)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(150), abs=1e-5)
    assert encoder.encode([texts[100]])[0] == pytest.approx(vectors[100], abs=1e-5)
    [same, other] = phrase_similarities(
        [("The <MASK> rises.", "sea", "sea"), ("The <MASK> rises.", "sea", "mountain")], encoder=encoder
    )
    assert same == pytest.approx(1, abs=1e-5)
    assert other < same


def test_the_fingerprint_covers_the_weights(tmp_path):
    first = load_encoder(save_encoder(tmp_path / "encoder")).fingerprint
    assert load_encoder(f"savedmodel:{tmp_path / 'encoder'}").fingerprint == first
    [data] = (tmp_path / "encoder" / "variables").glob("*.data*")
    data.write_bytes(data.read_bytes()[::-1])
    assert load_encoder(f"savedmodel:{tmp_path / 'encoder'}").fingerprint != first


def test_a_graph_that_writes_files_is_not_loaded(tmp_path):
    encoder = load_encoder(save_encoder(tmp_path / "encoder", writes=True))
    with pytest.raises(ModelError, match="WriteFile"):
        encoder.encode(["text"])
    assert not (tmp_path / "encoder" / "written").exists()


def test_a_function_without_vectors_is_refused(tmp_path):
    encoder = load_encoder(save_encoder(tmp_path / "encoder", scalar=True))
    with pytest.raises(ModelError, match="no vector for each text"):
        encoder.encode(["text"])


def test_a_damaged_graph_is_told(tmp_path):
    pytest.importorskip("tensorflow")
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12\xff\xff")
    with pytest.raises(ModelError, match="damaged"):
        load_encoder(f"savedmodel:{tmp_path}").encode(["text"])


def test_a_folder_without_a_model_and_a_missing_package_are_told(tmp_path, monkeypatch):
    with pytest.raises(ModelError, match=r"no folder with saved_model\.pb"):
        load_encoder(f"savedmodel:{tmp_path}")
    (tmp_path / "saved_model.pb").write_bytes(b"x")
    monkeypatch.setitem(__import__("sys").modules, "tensorflow", None)
    with pytest.raises(MissingExtraError, match=r"climassay\[use\]"):
        load_encoder(f"savedmodel:{tmp_path}").encode(["text"])
