"""Reading what people give, within bounds, and writing files and folders as a whole."""

import errno
import gzip
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.io import (
    decompress,
    describe_error,
    parse_json,
    read_file,
    read_lines,
    read_text,
    remove_files,
    write_file,
    write_files,
)  # fmt: skip


def test_a_file_is_read_whole_up_to_its_bound(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"ab\r\ncd")
    assert read_file(file, max_bytes=6) == b"ab\r\ncd"
    assert read_text(file) == "ab\ncd"
    with pytest.raises(OSError, match="larger than 5 bytes") as caught:
        read_file(file, max_bytes=5)
    assert caught.value.errno == errno.EFBIG


def test_a_file_of_terabytes_on_paper_is_refused_by_its_size(tmp_path):
    file = tmp_path / "f"
    with file.open("wb") as sparse:
        sparse.truncate(1 << 42)
    with pytest.raises(OSError, match="larger than 512 MB"):
        read_file(file)


@pytest.mark.parametrize(("name", "number"), [(".", errno.EISDIR), ("gone", errno.ENOENT)])
def test_what_is_no_file_is_told(tmp_path, name, number):
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        read_file(tmp_path / name)
    assert caught.value.errno == number


def test_a_device_without_end_is_not_read(tmp_path):
    with pytest.raises(OSError, match="device") as caught:
        read_file(Path("/dev/zero"))
    assert describe_error(caught.value) == "it is a device, not a file"


def test_a_pipe_without_writer_is_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="pipe that nothing writes to"):
        read_file(pipe)


def test_a_pipe_with_a_writer_is_read_to_its_end():
    content = b"line\n" * 50_000  # more than a pipe holds at once
    out, into = os.pipe()
    os.write(into, content[:100])

    def write():
        with os.fdopen(into, "wb") as file:
            file.write(content[100:])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert read_file(Path(f"/dev/fd/{out}")) == content
    finally:
        writer.join()
        os.close(out)


def test_lines_come_one_at_a_time_and_are_bounded(tmp_path, monkeypatch):
    file = tmp_path / "f"
    file.write_text("one\nzwei\u2028still two\nthree", encoding="utf-8")
    assert list(read_lines(file)) == ["one\n", "zwei\u2028still two\n", "three"]
    monkeypatch.setattr("climassay.io.reading.MAX_LINE_LENGTH", 10)
    with pytest.raises(OSError, match="line of more than 10"):
        list(read_lines(file))


def test_gzip_is_unpacked_up_to_its_bound():
    packed = gzip.compress(b"\0" * 100_000)
    assert decompress(packed) == b"\0" * 100_000
    assert decompress(b"plain") == b"plain"
    with pytest.raises(OSError, match="unpacks to more than 99999 bytes"):
        decompress(packed, max_bytes=99_999)
    for cut in (3, 20, len(packed) - 1):
        with pytest.raises(OSError, match="damaged or truncated gzip"):
            decompress(packed[:cut])


@pytest.mark.parametrize("text", ["[" * 200_000, "9" * 5000, "{", '{"a": [' * 60_000, "", "\x00"])
def test_what_json_cannot_say_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_json(text)


def test_half_characters_are_replaced_and_told():
    with pytest.warns(UserWarning, match="half a character"):
        assert parse_json('{"a\\ud800": ["x\\udfff", {"b": "\\ud83c\\udf0d"}]}') == {
            "a\ufffd": ["x\ufffd", {"b": "🌍"}]
        }
    with pytest.warns(UserWarning, match="half a character"):
        assert parse_json(b'"\\uD800"') == "\ufffd"


def test_whole_characters_are_not_warned_of(recwarn):
    assert parse_json('{"a": "\\ud83c\\udf0d"}') == {"a": "🌍"}
    assert not recwarn


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
