"""Folders written as a whole: what is left alone, what a failure leaves behind, and what can never be removed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.io import remove_files, write_file, write_files


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


names = st.sampled_from(["a", "b/c", "b/d/e", "b/d/f", "g/h"])


@given(before=st.dictionaries(names, st.binary(max_size=3)), after=st.dictionaries(names, st.binary(max_size=3)))
def test_a_folder_made_again_holds_what_it_should_and_says_what_changed(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("whole")
    assert write_files(folder, before) == (tuple(before), ())
    written, unchanged = write_files(folder, after)
    removed = remove_files(folder, set(before) - set(after))
    assert files_in(folder) == after
    assert set(unchanged) == {path for path in after if before.get(path) == after[path]}
    assert sorted(written) == sorted(set(after) - set(unchanged))
    assert sorted(removed) == sorted(set(before) - set(after))
    assert all(any(one.iterdir()) for one in folder.rglob("*") if one.is_dir())


def test_a_file_that_is_the_same_is_not_touched(tmp_path):
    write_files(tmp_path, {"a": b"1"})
    before = (tmp_path / "a").stat()
    assert write_files(tmp_path, {"a": b"1"}) == ((), ("a",))
    assert (tmp_path / "a").stat().st_ino == before.st_ino


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    write_file(tmp_path / "a", b"old")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="No space left"):
        write_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_file_in_the_way_is_one_sentence(tmp_path):
    (tmp_path / "data").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        write_files(tmp_path, {"data/rows": b"1"})


def test_nothing_outside_of_the_folder_is_removed(tmp_path):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "out").write_text("mine")
    (folder / "link").symlink_to(tmp_path / "out")
    paths = ["../out", str(tmp_path / "out"), "link", "deep", "deep/gone"]
    assert remove_files(folder, paths) == ()
    assert (tmp_path / "out").read_text() == "mine"
    assert (folder / "deep").is_dir()
