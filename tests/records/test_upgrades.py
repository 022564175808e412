"""Workspaces of every landed version: opened, moved forward, and everything found; killed, full and newer ones told."""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from annotated_drafts import DATASET
from climassay.corpus import Collection
from climassay.errors import RecordsError
from climassay.factcheck.check_store import CheckFilter, CheckStore
from climassay.generation.annotation import AnnotationStore
from climassay.generation.dataset_store import DatasetStore
from climassay.learning.text_classifier import TextClassifier
from climassay.records import RecordedModel, Records
from climassay.records.database import Database
from climassay.records.queries import iterate_answers, list_runs
from climassay.records.tables import SCHEMA_VERSION, migrate
from climassay.web.accounts import AccountStore
from climassay.web.jobs import Jobs
from debate_parts import WordEncoder
from earlier_workspaces import CLAIM, PASSAGE, PASSWORD, QUESTIONS, TRAINED, VERSIONS, into_postgres, unpacked
from writing_process import Shout, ask


def url_of(folder):
    return f"sqlite:///{folder / 'records.sqlite'}"


@pytest.fixture(params=VERSIONS)
def workspace(request, tmp_path):
    """A workspace of an earlier version."""
    folder = unpacked(request.param, tmp_path / "workspace")
    return SimpleNamespace(folder=folder, version=request.param, url=url_of(folder))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request, workspace):
    """Its database, also as it would be in PostgreSQL."""
    if request.param == "sqlite":
        return workspace.url
    return into_postgres(workspace.folder, request.getfixturevalue("postgres_url"))


def test_a_workspace_of_every_landed_version_is_kept():
    assert list(range(1, SCHEMA_VERSION)) == VERSIONS


def test_every_answer_label_account_job_and_check_is_found(url, workspace):
    for _ in range(2):  # at the first opening, and then
        with Records(url) as store:
            assert store.database.stored_version() == SCHEMA_VERSION
            assert [run.command for run in list_runs(store.database)][:2] == ["first", "second"]
            answers = [answer for bundle in iterate_answers(store.database) for answer in bundle]
            assert [answer.text for answer in answers][:3] == ["IS IT WARM?", "IS IT COLD?", None]
            items = {one.draft.id: one for one in AnnotationStore(store).items(DATASET)}
            assert {name: (item.state, len(item.labels)) for name, item in items.items()} == {
                "q0000": ("settled", 2),
                "q0001": ("open", 1),
                "q0002": ("open", 0),
            }
            assert [one.draft for one in AnnotationStore(store).skipped(DATASET)] == ["q0002"]
            AnnotationStore(store).comment(DATASET, "q0000", "ann", "Written after the upgrade.", key="c")
            assert [one.author for one in AnnotationStore(store).comments(DATASET)] == ["ann"]
            assert [one.id for one in DatasetStore(store).drafts(DATASET)] == ["q0000", "q0001", "q0002"]
            accounts = AccountStore(store.database)
            assert [(user.name, user.role) for user in accounts.users()] == [("ann", "admin"), ("bob", "annotator")]
            assert accounts.check_password("ann", PASSWORD, "here").name == "ann"
            assert [token.label for token in accounts.tokens("ann")] == ["script"]
            checks = CheckStore(store)
            done = next(one for one in checks.newest(most=9) if one.claim.text == CLAIM)
            assert (done.state, done.agree, done.label) == ("done", 1, "incorrect")
            assert (done.topic, done.seconds) == (None, None)
            # What a check's advocates read was kept in its settings only; the workspaces of versions 1 and 2 have none.
            assert list(checks.collections()) == (["ice"] if workspace.version >= 3 else [])
            assert checks.list(CheckFilter(collection="ice", reviewer="bob")).total == (workspace.version >= 3)
            assert [len(one.opinions) for one in checks.get(done.id).transcript.rounds] == [3, 3]
            [job] = Jobs(store.database).list()
            assert (job.kind, job.state) == ("check", "running")


def test_only_what_had_failed_is_asked_again(url):
    model = Shout()
    with Records(url) as store, store.run("after", {}) as run:
        RecordedModel(model, store, run).generate(ask(*QUESTIONS))
    assert model.asked == 1


def test_a_collection_is_read(workspace):
    collection = Collection.open(workspace.folder / "collections", "ice", WordEncoder())
    assert [passage.text for passage in collection.each_passage()] == [PASSAGE]


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 3])
def test_a_trained_file_is_read(version, tmp_path):
    classifier = TextClassifier.load(unpacked(version, tmp_path) / TRAINED)
    assert classifier.predict(["the ice melts", "the air warms"]) == ["ice", "air"]


def test_the_tables_are_those_of_a_new_database(workspace, tmp_path):
    """Down to columns, keys and indexes, apart from the order of columns."""
    shapes = []
    for folder in (workspace.folder, tmp_path):
        with Records(url_of(folder)) as store:
            for open_room in (DatasetStore, AnnotationStore, CheckStore):
                open_room(store)
            for open_room in (AccountStore, Jobs):
                open_room(store.database)
            with store.database.read() as connection:
                shapes.append(shape_of(connection))
    assert shapes[0] == shapes[1]


def test_tables_under_names_of_before_are_dropped(url):
    """Servers of versions 2 and 3 indexed the questions of runs in these."""
    old = ("web_question_indexes", "web_questions", "web_question_answers")
    metadata = sa.MetaData()
    for name in old:
        sa.Table(name, metadata, sa.Column("run", sa.String(16), primary_key=True), sa.Column("words", sa.Text))
    sa.Index("web_questions_by_words", metadata.tables["web_questions"].c.words)
    schema = None if url.startswith("sqlite") else "climassay"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    metadata.create_all(engine.execution_options(schema_translate_map={None: schema}))
    assert set(old) <= set(sa.inspect(engine).get_table_names(schema=schema))
    Records(url).close()
    assert not set(old) & set(sa.inspect(engine).get_table_names(schema=schema))
    engine.dispose()


def shape_of(connection):
    inspector = sa.inspect(connection)
    return {
        table: (
            sorted((c["name"], str(c["type"]), c["nullable"], c["default"]) for c in inspector.get_columns(table)),
            inspector.get_pk_constraint(table)["constrained_columns"],
            sorted((i["name"], tuple(i["column_names"])) for i in inspector.get_indexes(table)),
        )
        for table in inspector.get_table_names()
    }


def test_a_copy_is_made_before_anything_is_changed(workspace):
    before = contents(workspace.folder / "records.sqlite")
    Records(workspace.url).close()
    copy = workspace.folder / f"records.v{workspace.version}.sqlite"
    assert contents(copy) == before
    assert copy.stat().st_mode == (workspace.folder / "records.sqlite").stat().st_mode
    assert not list(workspace.folder.glob(".*.new"))


@pytest.mark.postgres
def test_postgresql_is_copied_into_a_schema_beside(workspace, postgres_url):
    def rows(schema):
        names = sa.inspect(engine).get_table_names(schema=schema)
        with engine.connect() as read:
            return {name: read.exec_driver_sql(f'SELECT * FROM {schema}."{name}" ORDER BY 1').all() for name in names}

    url = into_postgres(workspace.folder, postgres_url)
    engine = sa.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    before = rows("climassay")
    Records(url).close()
    assert rows(f"climassay_v{workspace.version}") == before != rows("climassay")
    engine.dispose()


def contents(file):
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


KILLED = """
import os, signal, sys
from climassay.records import Records, database
moved = database.migrate
def cut(connection, version):
    moved(connection, version)
    os.kill(os.getpid(), signal.SIGKILL)
database.migrate = cut
Records(sys.argv[1])
"""


@pytest.mark.process
def test_a_migration_that_is_killed_before_its_commit_is_done_by_the_next_opening(workspace):
    before = contents(workspace.folder / "records.sqlite")
    killed = subprocess.run([sys.executable, "-c", KILLED, workspace.url], check=False)
    assert killed.returncode == -9
    assert contents(workspace.folder / "records.sqlite") == before
    test_every_answer_label_account_job_and_check_is_found(workspace.url, workspace)


def test_two_that_open_at_once_move_it_forward_once(workspace, monkeypatch):
    moved, others = [], []

    def counting(connection, version):
        if not others:  # the second opener has read the earlier version by now, and waits for this transaction
            others.append(version)
        moved.append(version)
        migrate(connection, version)

    monkeypatch.setattr("climassay.records.database.migrate", counting)
    seen = Database.stored_version

    def late(self):
        version = seen(self)
        if not moved and version == workspace.version and not others:
            others.append(version)
            Database(workspace.url).close()
        return version

    monkeypatch.setattr(Database, "stored_version", late)
    Records(workspace.url).close()
    assert moved == [workspace.version]


def test_without_room_for_the_copy_nothing_is_changed(workspace, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    before = contents(workspace.folder / "records.sqlite")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copymode", full)
        with pytest.raises(
            RecordsError, match=r"no backup copy can be made first .*: free some space and run the command again\.$"
        ):
            Records(workspace.url)
    assert contents(workspace.folder / "records.sqlite") == before
    assert not [file for pattern in ("*.v*", ".*.new") for file in workspace.folder.glob(pattern)]
    Records(workspace.url).close()


def test_a_newer_database_is_refused_and_left_alone(workspace):
    Records(workspace.url).close()
    with closing(sqlite3.connect(workspace.folder / "records.sqlite")) as other, other:
        other.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    before = contents(workspace.folder / "records.sqlite")
    with pytest.raises(RecordsError) as caught:
        Records(workspace.url)
    assert re.search(rf"version 99, .* reads version {SCHEMA_VERSION}: update climassay\.$", str(caught.value))
    assert contents(workspace.folder / "records.sqlite") == before
