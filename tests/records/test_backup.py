"""Backups of the records, and what takes their place when they are restored."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from climassay.errors import InputError, RecordsError
from climassay.records import Records
from climassay.records.backup import back_up, restore
from command_line import done


def fill(url, *names):
    with Records(url) as store:
        for name in names:
            with store.run("evaluate mcq", {"name": name, "text": "x" * 400}) as run:
                run.save_results("scores", [{"accuracy": 0.5}])


def names_in(path):
    with closing(sqlite3.connect(path)) as connection:
        return sorted(row[0] for row in connection.execute("SELECT json_extract(config, '$.name') FROM runs"))


KILLED = """
import os, signal, sys
from climassay.records import Records
store = Records(sys.argv[1])
for number in range(60):
    with store.run("evaluate mcq", {"name": f"late {number}", "text": "y" * 400}) as run:
        run.save_results("scores", [{"accuracy": 0.5}])
os.kill(os.getpid(), signal.SIGKILL)
"""


def write_and_be_killed(url):
    """Write to a database in a process that is killed, which leaves its write-ahead log."""
    process = subprocess.run([sys.executable, "-c", KILLED, url], env=os.environ, check=False)
    assert process.returncode == -signal.SIGKILL


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.sqlite"


@pytest.fixture
def url(path):
    return f"sqlite:///{path}"


def test_a_backup_is_one_file_with_what_is_in_the_log(path, url, tmp_path):
    fill(url, "a")
    with Records(url) as store:
        with store.run("evaluate mcq", {"name": "b"}):
            back_up(store.database, tmp_path / "copy.sqlite")
        assert (tmp_path / "records.sqlite-wal").stat().st_size
    assert names_in(tmp_path / "copy.sqlite") == ["a", "b"]
    assert not list(tmp_path.glob("copy.sqlite-*"))


def test_restoring_brings_back_the_backup_and_keeps_what_was_there(path, url, tmp_path, climassay):
    fill(url, "a")
    done(climassay("records backup", tmp_path / "copy.sqlite", "-w", tmp_path))
    fill(url, "b")
    shown = done(climassay("records restore", tmp_path / "copy.sqlite", "-w", tmp_path, "--json"))
    assert names_in(path) == ["a"]
    (replaced,) = tmp_path.glob("records.sqlite.replaced-*")
    assert names_in(replaced) == ["a", "b"]
    assert replaced.name in shown
    fill(url, "c")
    assert names_in(path) == ["a", "c"]


@pytest.mark.process
def test_an_older_file_beside_a_newer_log_is_refused_by_every_command_until_a_backup_is_restored(
    path, url, tmp_path, climassay
):
    fill(url, "a")
    done(climassay("records backup", tmp_path / "copy.sqlite", "-w", tmp_path))
    fill(url, *(f"more {number}" for number in range(200)))
    write_and_be_killed(url)
    assert (tmp_path / "records.sqlite-wal").stat().st_size
    shutil.copy(tmp_path / "copy.sqlite", path)
    content = path.read_bytes()
    for command in ("records runs", "records usage", "generate list", "users list"):
        code, out, err = climassay(command, "-w", tmp_path, "--json")
        assert (code, out) == (2, "")
        assert "is corrupt" in err
        assert "climassay records restore FILE" in err
        assert path.read_bytes() == content
    done(climassay("records restore", tmp_path / "copy.sqlite", "-w", tmp_path))
    assert names_in(path) == ["a"]
    done(climassay("records runs", "-w", tmp_path))


@pytest.mark.process
def test_the_log_of_a_killed_process_is_read(path, url):
    fill(url, "a")
    write_and_be_killed(url)
    fill(url, "b")
    assert len(names_in(path)) == 62


def test_a_corrupt_database_is_not_backed_up_but_restored(path, url, tmp_path):
    fill(url, *map(str, range(50)))
    with Records(url) as store:
        back_up(store.database, tmp_path / "copy.sqlite")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\x07" * (len(content) - len(content) // 2)
    with Records(url) as store:
        path.write_bytes(content)
        with pytest.raises(RecordsError, match="is corrupt"):
            back_up(store.database, tmp_path / "second.sqlite")
    assert not (tmp_path / "second.sqlite").exists()
    (replaced, *_) = restore(url, tmp_path / "copy.sqlite")
    assert replaced.read_bytes()[-100:] == b"\x07" * 100
    assert len(names_in(path)) == 50


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"Dear diary. " * 100, "not a SQLite database"),
        (None, "cannot be read"),
        ("another", "not a backup of climassay's records"),
        ("newer", "schema version 999"),
        ("cut", "not an intact backup"),
    ],
)
def test_what_is_no_backup_changes_nothing(content, reason, path, url, tmp_path):
    fill(url, "a")
    other = tmp_path / "other.sqlite"
    if isinstance(content, bytes):
        other.write_bytes(content)
    elif content == "another":
        with closing(sqlite3.connect(other)) as connection:
            connection.execute("CREATE TABLE birds (name TEXT)")
    elif content is not None:
        with Records(url) as store:
            back_up(store.database, other)
        if content == "cut":
            other.write_bytes(other.read_bytes()[: other.stat().st_size // 2])
        else:
            with closing(sqlite3.connect(other)) as connection, connection:
                connection.execute("UPDATE meta SET value = '999' WHERE name = 'schema_version'")
    with pytest.raises(InputError, match=reason):
        restore(url, other)
    assert names_in(path) == ["a"]


def test_a_database_in_use_is_not_replaced(path, url, tmp_path):
    fill(url, "a")
    with Records(url) as store:
        back_up(store.database, tmp_path / "copy.sqlite")
        with store.run("evaluate mcq", {"name": "b"}), pytest.raises(InputError, match="is in use"):
            restore(url, tmp_path / "copy.sqlite")
    assert names_in(path) == ["a", "b"]


def test_the_database_itself_and_postgresql_are_refused(path, url):
    fill(url, "a")
    with Records(url) as store, pytest.raises(InputError, match="itself"):
        back_up(store.database, path)
    with pytest.raises(InputError, match="itself"):
        restore(url, path)
    with pytest.raises(InputError, match="pg_restore"):
        restore("postgresql://user@host/name", path)
