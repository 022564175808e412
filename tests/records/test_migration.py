"""Databases of an older version are copied and migrated, on SQLite and PostgreSQL; newer ones are refused."""

import re
import shutil
import sqlite3
from contextlib import closing

import pytest
import sqlalchemy as sa

from climassay.errors import RecordsError
from climassay.records import RecordedModel, Records, tables
from climassay.records.migration import REVISIONS
from climassay.records.recorded_answers import iterate_answers
from writing_process import Shout, ask


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    """A database of version 1 with one answer."""
    url = f"sqlite:///{tmp_path / 'records.sqlite'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    with Records(url) as store, store.run("first", {}) as run:
        RecordedModel(Shout(), store, run).generate(ask("A"))
    return url


@pytest.fixture
def next_version(monkeypatch):
    """Version 2 of the tables, in which runs have a colour."""
    monkeypatch.setattr(tables, "SCHEMA_VERSION", 2)
    monkeypatch.setitem(REVISIONS, 2, [ADD_COLOUR])


ADD_COLOUR = "ALTER TABLE runs ADD COLUMN colour VARCHAR(8) DEFAULT 'green'"


def contents(file):
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


def colours(store):
    table = sa.table("runs", sa.column("colour"), schema=None if store.database.is_sqlite else "climassay")
    with store.database.read() as connection:
        return list(connection.execute(sa.select(table.c.colour)).scalars())


def test_an_older_database_is_migrated_once_and_keeps_its_answers(url, next_version):
    for _ in range(2):
        with Records(url) as store:
            assert store.database.stored_version() == 2
            assert [answer.text for bundle in iterate_answers(store.database) for answer in bundle] == ["A"]
            assert colours(store) == ["green"]


def test_a_copy_is_made_before_anything_is_changed(tmp_path, url, next_version):
    if not url.startswith("sqlite"):
        Records(url).close()
        engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        inspector = sa.inspect(engine)
        columns = {column["name"] for column in inspector.get_columns("runs", schema="climassay_v1")}
        engine.dispose()
        assert "id" in columns
        assert "colour" not in columns
        return
    before = contents(tmp_path / "records.sqlite")
    Records(url).close()
    copy = tmp_path / "records.v1.sqlite"
    assert contents(copy) == before
    assert copy.stat().st_mode == (tmp_path / "records.sqlite").stat().st_mode


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    file = tmp_path / "records.sqlite"
    Records(f"sqlite:///{file}").close()
    before = contents(file)
    monkeypatch.setattr(tables, "SCHEMA_VERSION", 2)
    monkeypatch.setitem(REVISIONS, 2, [ADD_COLOUR, "ALTER TABLE no_such_table ADD COLUMN x INTEGER"])
    with pytest.raises(RecordsError):
        Records(f"sqlite:///{file}")
    assert contents(file) == before


def test_without_room_for_the_copy_nothing_is_changed(tmp_path, monkeypatch, next_version):
    def fill(*_):
        raise OSError(28, "No space left on device")

    file = tmp_path / "records.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(tables, "SCHEMA_VERSION", 1)
        Records(f"sqlite:///{file}").close()
    before = contents(file)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copymode", fill)
        with pytest.raises(RecordsError, match="free some space and run the command again"):
            Records(f"sqlite:///{file}")
    assert contents(file) == before
    assert not [path for pattern in ("*.v*", ".*.new") for path in tmp_path.glob(pattern)]
    Records(f"sqlite:///{file}").close()


def test_a_newer_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "records.sqlite"
    Records(f"sqlite:///{file}").close()
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    before = contents(file)
    with pytest.raises(RecordsError) as caught:
        Records(f"sqlite:///{file}")
    assert re.search(r"version 99, .* reads version 1: update climassay\.$", str(caught.value))
    assert contents(file) == before
