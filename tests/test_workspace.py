"""The workspace, and the database that the environment may name instead of the workspace's own."""

import json

import pytest

from api_server import ApiServer
from climassay.errors import RecordsError
from climassay.records import Records
from climassay.workspace import Workspace
from command_line import done, refused

VARIABLE = "CLIMASSAY_DATABASE_URL"


@pytest.fixture
def climassay(tmp_path, monkeypatch, climassay):
    monkeypatch.setenv("COLUMNS", "200")

    return lambda *arguments: climassay(*arguments, "--workspace", tmp_path / "workspace")


def test_records_lie_in_the_workspace_unless_the_environment_names_a_database(tmp_path, monkeypatch):
    place = Workspace.open(tmp_path)
    own = f"sqlite:///{tmp_path / 'records.sqlite'}"
    assert (place.records_url, place.has_records) == (own, False)
    Records(own).close()
    assert place.has_records
    monkeypatch.setenv(VARIABLE, "postgresql://tester@/elsewhere")
    assert (place.records_url, place.has_records) == ("postgresql://tester@/elsewhere", True)
    monkeypatch.setenv(VARIABLE, "")
    assert place.records_url == own


def test_commands_use_the_database_of_the_environment(climassay, tmp_path, database_url, monkeypatch):
    monkeypatch.setenv(VARIABLE, database_url)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with ApiServer() as server:
        arguments = ["evaluate", "mcq", "primer", "--limit", "4", "--scoring", "letter", "--json"]
        arguments += ["--model", "openai:test", "--base-url", server.url]
        tallies = []
        for _ in range(2):
            out = done(climassay(*arguments))
            tallies.append(json.loads(out)["tally"])
    assert [tally["sent"] for tally in tallies] == [4, 0]
    out = done(climassay("records", "runs", "--json"))
    assert [(run["command"], run["sent"], run["served"]) for run in json.loads(out)] == [
        ("evaluate mcq", 4, 0),
        ("evaluate mcq", 0, 4),
    ]
    assert not (tmp_path / "workspace" / "records.sqlite").exists()


def test_records_of_a_command_go_before_the_environment(climassay, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, f"sqlite:///{tmp_path}/ours.sqlite")
    code, _, err = climassay("records", "runs", "--records", f"sqlite:///{tmp_path}/given.sqlite")
    assert code == 0
    assert "given.sqlite" in err
    assert not (tmp_path / "ours.sqlite").exists()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://tester:hunter2@/{database}?host={folder}",
        "postgresql://tester@/{database}?host={folder}&password=hunter2",
    ],
    ids=["before-the-host", "among-the-options"],
)
def test_a_password_is_never_shown(url, climassay, tmp_path, postgres_server, postgres_database, monkeypatch):
    monkeypatch.setenv(VARIABLE, url.format(database=postgres_database, folder=postgres_server.folder))
    code, out, err = climassay("records", "runs")
    assert (code, out) == (0, "")
    assert postgres_database in err
    assert "hunter2" not in err
    for wrong in ("/nowhere", str(tmp_path)):
        monkeypatch.setenv(VARIABLE, url.format(database=postgres_database, folder=wrong))
        code, out, err = climassay("records", "runs")
        assert code == 2
        assert "hunter2" not in out + err
        assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://root:hunter2@host/name", "not in mysql"),
        ("postgres:hunter2", "is not valid"),
        ("sqlite://", "would be lost"),
        ("sqlite:///:memory:", "would be lost"),
        ("sqlite:////nowhere/at/all.sqlite", "does not exist"),
    ],
    ids=["other-database", "no-url", "in-memory", "named-memory", "no-folder"],
)
def test_an_address_that_names_no_database_is_one_sentence(url, words, climassay, monkeypatch):
    monkeypatch.setenv(VARIABLE, url)
    err = refused(climassay("records", "runs"))
    assert words in err
    assert "hunter2" not in err
    with pytest.raises(RecordsError):
        Records(url)
