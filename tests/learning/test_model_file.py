import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from climassay.errors import InputError
from climassay.learning.model_file import ModelFormat, checked_array

KIND = ModelFormat("climassay-thing", 2, "thing", "climassay thing train")


def both(facts, arrays):
    return facts, arrays


@given(st.floats(allow_nan=False, allow_infinity=False), st.lists(st.integers(-(2**31), 2**31), max_size=20))
def test_everything_comes_back_as_the_same_numbers(tmp_path_factory, number, integers):
    path = tmp_path_factory.mktemp("things") / "thing.safetensors"
    weights = np.array([number, *integers], dtype=np.float64)
    KIND.save(path, {"weights": weights[::-1]}, {"number": number, "words": ["ä", None, {"a": integers}]})
    facts, arrays = KIND.load(path, both)
    assert arrays["weights"].tobytes() == np.ascontiguousarray(weights[::-1]).tobytes()
    assert facts["number"] == number
    assert facts["words"] == ["ä", None, {"a": integers}]
    assert [file.name for file in path.parent.iterdir()] == ["thing.safetensors"]


def test_what_is_no_such_file_is_said(tmp_path):
    with pytest.raises(InputError, match=r"There is no thing .*: train one with climassay thing train"):
        KIND.load(tmp_path / "none", both)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="is damaged"):
        KIND.load(tmp_path / "text", both)
    save_file({"a": np.zeros(2)}, tmp_path / "foreign")
    with pytest.raises(InputError, match="no thing of climassay"):
        KIND.load(tmp_path / "foreign", both)
    save_file({"a": np.zeros(2)}, tmp_path / "newer", {"format": json.dumps("climassay-thing"), "version": "3"})
    with pytest.raises(InputError, match="format version 3, newer"):
        KIND.load(tmp_path / "newer", both)
    save_file({"a": np.zeros(2)}, tmp_path / "odd", {"format": json.dumps("climassay-thing"), "version": "{"})
    with pytest.raises(InputError, match="is damaged"):
        KIND.load(tmp_path / "odd", both)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match="x cannot be written"):
        KIND.save(tmp_path / "file" / "x", {}, {})
    KIND.save(tmp_path / "x", {"a": np.ones(1)}, {})
    with pytest.raises(TypeError):
        KIND.save(tmp_path / "x", {"a": np.zeros(1)}, {"bad": object()})
    assert KIND.load(tmp_path / "x", both)[1]["a"] == 1


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 2)), np.zeros(3), np.zeros(2, dtype=np.float32), np.array([1.0, np.nan]), np.array([1.0, np.inf])],
    ids=["rank", "length", "type", "nan", "infinity"],
)
def test_arrays_are_checked(array):
    with pytest.raises(ValueError, match="weights"):
        checked_array("weights", array, (2,))
