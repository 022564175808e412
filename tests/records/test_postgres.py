"""The same promises on a real PostgreSQL, started for the tests where its programs are installed."""

import pytest

from climassay.errors import RecordsError
from climassay.records import RecordedModel, Records
from climassay.records.queries import answers_to, iterate_answers, list_runs, run_details, usage_by_model
from climassay.records.tables import SCHEMA_VERSION
from climassay.records.transfer import export_answers
from writing_process import Shout, ask, write_at_once


def test_processes_that_make_the_tables_and_write_the_same_at_once_lose_nothing(postgres_url):
    write_at_once(postgres_url, [0, 0, 50], 10)
    with Records(postgres_url) as store:
        answers = [answer for bundle in iterate_answers(store.database) for answer in bundle]
    assert {answer.prompt for answer in answers} == {f"text {n}" for n in range(160)}
    assert len(answers) == 3 * 10 * 20


def test_answers_are_asked_once_failures_again_and_all_is_counted(postgres_url, tmp_path):
    model = Shout()
    texts = ["one\x00", "two \ud83d", "fail", "three 'quoted' % :x"]
    for expected in (4, 1):
        before = model.asked
        with Records(postgres_url) as store, store.run("postgres", {"n": 1}, {"seed": 2}) as run:
            recorded = RecordedModel(model, store, run)
            answers = recorded.generate(ask(*texts))
            run.save_results("scores", [{"accuracy": 0.5}])
        assert model.asked - before == expected
        assert [answer.text for answer in answers] == ["ONE\ufffd", "TWO \ufffd", "", "THREE 'QUOTED' % :X"]
    with Records(postgres_url) as store:
        summary = next(one for one in list_runs(store.database) if one.id == run.id)
        assert (summary.asked, summary.failed, summary.served, summary.status) == (1, 1, 3, "done")
        details = run_details(store.database, run.id)
        assert (details.config, details.seeds, details.results) == (
            {"n": 1},
            {"seed": 2},
            {"scores": [{"accuracy": 0.5}]},
        )
        assert [(use.answers, use.failed, use.cost) for use in usage_by_model(store.database, run.id)] == [(1, 1, None)]
        assert export_answers(store.database, tmp_path / "run.parquet", run.id) == 4
        found = next(a for bundle in iterate_answers(store.database, run.id) for a in bundle if a.error is None)
        assert answers_to(store.database, found.key[:9])[0].text == found.text


def test_tables_are_in_a_schema_of_their_own(postgres_url):
    with Records(postgres_url) as store, store.database.read() as connection:
        names = (
            connection.exec_driver_sql("SELECT schemaname FROM pg_tables WHERE tablename = 'answers'").scalars().all()
        )
    assert names == ["climassay"]


def test_a_newer_schema_is_refused(postgres_url):
    with Records(postgres_url) as store:
        statement = "UPDATE climassay.meta SET value = '{}' WHERE name = 'schema_version'"
        store.database.write(lambda connection: connection.exec_driver_sql(statement.format(99)))
        with pytest.raises(RecordsError, match="has schema version 99"):
            Records(postgres_url)
        store.database.write(lambda connection: connection.exec_driver_sql(statement.format(SCHEMA_VERSION)))


def test_a_server_that_is_not_there_is_one_sentence(postgres_url):
    with pytest.raises(RecordsError, match="does not work") as caught:
        Records(postgres_url.replace("host=", "host=/nowhere"))
    assert "\n" not in str(caught.value)
