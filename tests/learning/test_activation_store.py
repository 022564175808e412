"""What is written is read back, by any process, and damage costs the damaged file only."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.learning.harvest import ActivationStore, Rows, Section, Setting, request_key

SETTING = Setting("a" * 64, "float32", (-1,), 384)


def rows(count: int, *, options: int = 2, width: int = 4, seed: int = 0) -> Rows:
    draw = np.random.default_rng(seed)
    states = draw.normal(size=(count, options, 1, width)).astype(np.float32)
    return Rows(states, -draw.random((count, options)), draw.integers(1, 99, count))


def keys(count: int, start: int = 0) -> list[bytes]:
    return [request_key(f"prompt {number}", ("1", "2")) for number in range(start, start + count)]


def filled(folder: Path, *, shards: int = 3) -> Section:
    section = ActivationStore(folder).section(SETTING)
    for number in range(shards):
        section.write(keys(5, 5 * number), rows(5, seed=number))
    return section


@given(order=st.lists(st.integers(0, 14), min_size=1, max_size=30))
def test_rows_come_back_in_any_order_and_as_often_as_asked(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("store")
    filled(folder)
    section = ActivationStore(folder).section(SETTING)
    parts = [rows(5, seed=number) for number in range(3)]
    asked = [keys(15)[index] for index in order]
    logprobs, tokens = section.scores(asked)
    np.testing.assert_array_equal(section.states(asked), np.concatenate([part.states for part in parts])[order])
    np.testing.assert_array_equal(logprobs, np.concatenate([part.logprobs for part in parts])[order])
    np.testing.assert_array_equal(tokens, np.concatenate([part.tokens for part in parts])[order])


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    section = filled(tmp_path)
    assert len(section) == 15
    assert keys(1)[0] in section
    assert request_key("prompt 0", ("1", "2", "3")) not in section
    assert request_key("prompt 0", ("12",)) not in section
    with pytest.raises(KeyError):
        section.states([b"0" * 16])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Setting("b" * 64, "float32", (-1,), 384), id="model"),
        pytest.param(Setting("a" * 64, "bfloat16", (-1,), 384), id="dtype"),
        pytest.param(Setting("a" * 64, "float32", (-1, 4), 384), id="layers"),
    ],
)
def test_activations_computed_otherwise_are_apart(tmp_path: Path, other: Setting) -> None:
    filled(tmp_path)
    assert len(ActivationStore(tmp_path).section(other)) == 0
    assert len(ActivationStore(tmp_path, storage="float16").section(SETTING)) == 0
    assert len(ActivationStore(tmp_path).section(SETTING)) == 15


def test_the_token_budget_separates_16_bit_results_only(tmp_path: Path) -> None:
    def key(dtype: str, budget: int) -> str:
        return Setting("a", dtype, (-1,), budget).key("float32")

    assert key("float32", 100) == key("float32", 200)
    assert key("float16", 100) != key("float16", 200)
    assert key("bfloat16", 100) != key("bfloat16", 200)


def test_half_precision_takes_half_the_space_and_keeps_three_digits(tmp_path: Path) -> None:
    sizes = {}
    for storage in ("float32", "float16"):
        section = ActivationStore(tmp_path, storage=storage).section(SETTING)
        section.write(keys(50), rows(50, width=400))
        (path,) = tmp_path.glob(f"{SETTING.key(storage)}/*.safetensors")
        sizes[storage] = path.stat().st_size
        np.testing.assert_allclose(section.states(keys(50)), rows(50, width=400).states, rtol=1e-3, atol=1e-6)
    assert sizes["float16"] < 0.52 * sizes["float32"]
    assert section.states(keys(1)).dtype == np.float32


def test_a_state_too_large_for_half_precision_is_refused(tmp_path: Path) -> None:
    section = ActivationStore(tmp_path, storage="float16").section(SETTING)
    large = rows(2)._replace(states=np.full((2, 2, 1, 4), 1e6, dtype=np.float32))
    with pytest.raises(InputError, match="too large to be stored as float16"):
        section.write(keys(2), large)
    assert list(tmp_path.rglob("*.safetensors")) == []


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def damage_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_other(path: Path) -> None:
    path.write_bytes(b"not at all a file of tensors" * 4)


def damage_list(path: Path) -> None:
    path.write_bytes((4).to_bytes(8, "little") + b"[12]")


def damage_shape(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"shape":[5,16]', b'"shape":[9,16]'))


@pytest.mark.parametrize(
    "damage",
    [damage_cut, damage_header, damage_empty, damage_other, damage_list, damage_shape],
    ids=lambda f: f.__name__,
)
def test_a_damaged_shard_is_named_and_the_others_serve(tmp_path: Path, damage) -> None:
    filled(tmp_path)
    shards = sorted(tmp_path.rglob("*.safetensors"))
    damage(shards[1])
    with pytest.warns(UserWarning, match=f"{shards[1].name} are not used"):
        section = ActivationStore(tmp_path).section(SETTING)
    assert len(section) == 10
    held = [key for key in keys(15) if key in section]
    assert section.states(held).shape == (10, 2, 1, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        section.refresh()  # the damage is told once


def test_a_part_left_by_a_killed_process_is_not_seen(tmp_path: Path) -> None:
    section = filled(tmp_path)
    (next(tmp_path.iterdir()) / ".abc.safetensors.def.part").write_bytes(b"half")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ActivationStore(tmp_path).section(SETTING)) == len(section)


@pytest.mark.process
def test_what_another_process_wrote_is_seen_after_a_refresh(tmp_path: Path) -> None:
    first = ActivationStore(tmp_path).section(SETTING)
    second = filled(tmp_path, shards=2)
    assert len(first) == 0
    first.refresh()
    assert len(first) == 10
    first.write(keys(5), rows(5, seed=0))  # the same again does no harm
    second.refresh()
    assert len(second) == 10
    np.testing.assert_array_equal(second.states(keys(5)), rows(5, seed=0).states)


def test_one_row_of_a_large_shard_is_read_without_the_rest(tmp_path: Path) -> None:
    """The pages of a mapped file are counted by the kernel as they are touched."""
    count, width = 4000, 2000
    large = Rows(np.ones((count, 2, 1, width), np.float32), np.zeros((count, 2)), np.ones(count, np.int64))
    ActivationStore(tmp_path).section(SETTING).write(keys(count), large)
    section = ActivationStore(tmp_path).section(SETTING)
    (path,) = tmp_path.rglob("*.safetensors")
    parts = section._parts(keys(1, 3000))
    file, _, (row,) = next(parts)
    assert file.get_slice("states")[row : row + 1].sum() == 2 * width
    assert path.stat().st_size > 60e6
    resident = _resident_kilobytes(str(path))
    if resident is None:
        pytest.skip("this system does not tell which pages of a file are in memory")
    assert resident < 0.1 * path.stat().st_size / 1024


def _resident_kilobytes(path: str) -> int | None:
    """Of a mapped file, counted for this process alone."""
    listing = Path("/proc/self/smaps")
    if not listing.exists():
        return None
    lines = iter(listing.read_text(encoding="utf-8", errors="replace").splitlines())
    for line in lines:
        if line.endswith(path):
            return next(int(entry.split()[1]) for entry in lines if entry.startswith("Rss:"))
    return None


def test_the_setting_stands_beside_the_shards_for_people_to_read(tmp_path: Path) -> None:
    filled(tmp_path)
    (folder,) = tmp_path.iterdir()
    about = json.loads((folder / "setting.json").read_text(encoding="utf-8"))
    assert about["fingerprint"] == "a" * 64
    assert about["layers"] == [-1]
    assert about["storage"] == "float32"


def test_requests_with_different_numbers_of_options_are_kept_but_not_mixed(tmp_path: Path) -> None:
    section = filled(tmp_path, shards=1)
    section.write(keys(3, 100), rows(3, options=4))
    assert section.states(keys(3, 100)).shape == (3, 4, 1, 4)
    with pytest.raises(InputError, match="different numbers of options"):
        section.states([*keys(1), *keys(1, 100)])


def test_a_store_is_a_folder_of_one_of_two_types(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="it is a file"):
        ActivationStore(tmp_path / "file")
    with pytest.raises(InputError, match="'int8'"):
        ActivationStore(tmp_path, storage="int8")  # type: ignore[arg-type]
