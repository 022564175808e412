"""Harvests and the store behind them: nothing is computed twice, nothing half written is read."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.learning import ActivationStore, Harvest, harvest
from climassay.learning.harvest import ActivationSetting, Rows, SettingActivations, request_key
from climassay.models import Message, OptionRequest
from counting_model import CountingModel, ask, expected_states, texts_of
from tiny_models import save_tiny
from writing_process import Shout

SETTING = ActivationSetting("a" * 64, "float32", (-1,), 384)


def rows(count: int, *, options: int = 2, width: int = 4, seed: int = 0) -> Rows:
    draw = np.random.default_rng(seed)
    states = draw.normal(size=(count, options, 1, width)).astype(np.float32)
    return Rows(states, -draw.random((count, options)), draw.integers(1, 99, count))


def keys(count: int, start: int = 0) -> list[bytes]:
    return [request_key(f"prompt {number}", ("1", "2")) for number in range(start, start + count)]


def filled(folder: Path, *, shards: int = 3) -> SettingActivations:
    section = ActivationStore(folder).section(SETTING)
    for number in range(shards):
        section.write(keys(5, 5 * number), rows(5, seed=number))
    return section


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    section = filled(tmp_path)
    assert len(section) == 15
    assert keys(1)[0] in section
    assert request_key("prompt 0", ("1", "2", "3")) not in section
    assert request_key("prompt 0", ("12",)) not in section
    with pytest.raises(KeyError):
        section.states([b"0" * 16])


def test_the_token_budget_separates_16_bit_results_only(tmp_path: Path) -> None:
    def key(dtype: str, budget: int) -> str:
        return ActivationSetting("a", dtype, (-1,), budget).key("float32")

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


DAMAGES = {
    "cut": lambda data: data[:-10],
    "header": lambda data: data[:20],
    "empty": lambda _: b"",
    "other": lambda _: b"not at all a file of tensors" * 4,
    "list": lambda _: (4).to_bytes(8, "little") + b"[12]",
    "shape": lambda data: data.replace(b'"shape":[5,16]', b'"shape":[9,16]'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_is_named_and_the_others_serve(tmp_path: Path, damage: str) -> None:
    filled(tmp_path)
    shards = sorted(tmp_path.rglob("*.safetensors"))
    shards[1].write_bytes(DAMAGES[damage](shards[1].read_bytes()))
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
    parts = section._open_shards(keys(1, 3000))
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


def check_states(found: Harvest, texts: list[str], layers=(-1,)) -> None:
    np.testing.assert_array_equal(found.states, expected_states(texts, layers))


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "disk"])
def test_states_are_in_the_order_of_the_requests(tmp_path: Path, stored: bool) -> None:
    texts = list(reversed(texts_of(40)))
    model = CountingModel()
    store = ActivationStore(tmp_path) if stored else None
    found = harvest(model, ask(*texts), layers=(3, -1), store=store, shard=7)
    check_states(found, texts, (3, -1))
    np.testing.assert_array_equal(found.logprobs, -np.abs(found.states[:, :, 0, 0]))
    np.testing.assert_array_equal(found.read(np.array([5, 1, 5])), found.states[[5, 1, 5]])
    assert found.failed == {}
    assert found.succeeded.all()
    assert (found.stored, found.computed, found.passes) == (0, 40, 40)
    lengths = [len(f"<{text}>Choice ") for text in texts]
    assert found.tokens_computed == sum(lengths)
    assert found.tokens_two_pass == 2 * sum(lengths) + 2 * 40


def test_a_second_harvest_is_served_from_disk(tmp_path: Path) -> None:
    first = harvest(CountingModel(), ask(*texts_of(20)), store=ActivationStore(tmp_path), shard=6)
    model = CountingModel()
    texts = texts_of(30)
    second = harvest(model, ask(*texts), store=ActivationStore(tmp_path), shard=6)
    assert (second.stored, second.computed, second.passes) == (20, 10, 10)
    assert sorted(prompt for call in model.asked for prompt in call) == sorted(f"<{t}>Choice " for t in texts[20:])
    assert second.tokens_two_pass > first.tokens_two_pass
    check_states(second, texts)
    again = harvest(model, ask(*texts), store=ActivationStore(tmp_path))
    assert (again.stored, again.computed, again.passes, again.tokens_computed) == (30, 0, 0, 0)
    assert again.tokens_two_pass == second.tokens_two_pass


def test_equal_requests_are_computed_once_and_counted_twice(tmp_path: Path) -> None:
    for store in (None, ActivationStore(tmp_path)):
        model = CountingModel()
        found = harvest(model, ask("a", "b", "a", "fail", "fail"), store=store)
        assert sum(map(len, model.asked)) == 3
        assert (found.computed, len(found.failed)) == (3, 2)
        assert found.tokens_two_pass == 2 * (3 * 11 + 2 * 14)
        np.testing.assert_array_equal(found.states[[0, 1, 2]], expected_states(["a", "b", "a"]))


def test_failures_are_counted_in_their_place_and_tried_again(tmp_path: Path) -> None:
    for _ in range(2):
        model = CountingModel()
        found = harvest(model, ask("a", "fail", "unrenderable", "b"), store=ActivationStore(tmp_path))
        assert found.failed == {1: "No luck.", 2: "The chat template does not accept this."}
        assert list(found.succeeded) == [True, False, False, True]
        assert found.stored + found.computed + len(found.failed) == 4
        assert "<fail>Choice " in model.asked[0]
        assert np.isfinite(found.states).all()
        np.testing.assert_array_equal(found.states[[1, 2]], 0)
        np.testing.assert_array_equal(found.logprobs[[1, 2]], 0)
        np.testing.assert_array_equal(found.states[[0, 3]], expected_states(["a", "b"]))
    assert found.stored == 2


def test_an_interrupted_harvest_keeps_all_pieces_but_the_last(tmp_path: Path) -> None:
    steps: list[int] = []

    def interrupt(done: int) -> None:
        steps.append(done)
        if sum(steps) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harvest(CountingModel(), ask(*texts_of(40)), store=ActivationStore(tmp_path), shard=6, on_progress=interrupt)
    found = harvest(CountingModel(), ask(*texts_of(40)), store=ActivationStore(tmp_path), shard=6)
    assert (found.stored, found.computed) == (18, 22)
    check_states(found, texts_of(40))


def test_slow_work_is_stored_before_its_piece_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[harvest.__module__], "STORE_SECONDS", 0.0)
    steps: list[int] = []

    def interrupt(done: int) -> None:
        steps.append(done)
        if sum(steps) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harvest(CountingModel(), ask(*texts_of(40)), store=ActivationStore(tmp_path), on_progress=interrupt)
    found = harvest(CountingModel(), ask(*texts_of(40)), store=ActivationStore(tmp_path))
    assert (found.stored, found.computed) == (20, 20)
    check_states(found, texts_of(40))


@pytest.mark.model
def test_a_local_model_is_harvested_as_it_harvests_itself(tmp_path: Path) -> None:
    from climassay.models.local.model import LocalModel

    model = LocalModel(f"local:{save_tiny(tmp_path / 'model')}", device="cpu")
    requests = [
        OptionRequest((Message("user", f"ice {first} or {second}"),), (" a", " b"), "it is")
        for first in "abcd"
        for second in "abcd"
    ]
    direct = model.harvest(requests, layers=(1, -1))
    model.reader.release()
    before = model.work
    found = harvest(model, requests, layers=(1, -1), store=ActivationStore(tmp_path / "store"), shard=5)
    assert (found.passes, found.tokens_computed) == (
        model.work.passes - before.passes,
        model.work.tokens - before.tokens,
    )
    assert found.tokens_two_pass == sum(one.tokens for one in direct) > 2 * found.tokens_computed
    np.testing.assert_allclose(found.states, np.stack([one.states for one in direct]), atol=1e-4)
    np.testing.assert_allclose(found.logprobs, [one.logprobs for one in direct], atol=1e-4)


def test_a_model_that_hides_its_states_is_refused_by_name() -> None:
    hidden = Shout()
    with pytest.raises(InputError, match="local:shout cannot be read"):
        harvest(hidden, ask("x"))


def test_arguments_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InputError, match=r"\[1, 2\] options"):
        harvest(CountingModel(), [*ask("x"), *ask("y", options=("1",))])
    with pytest.raises(InputError, match="shard size is 0"):
        harvest(CountingModel(), ask("x"), shard=0)
