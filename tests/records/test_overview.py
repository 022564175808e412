"""Pages of the list of runs, and usage, counted by hand, on both databases."""

from datetime import UTC, datetime

import pytest

from climassay.errors import InputError
from climassay.records import Records
from climassay.records.queries import list_run_page, list_runs, usage_by
from climassay.records.recorded_answers import search_answers
from stored_runs import Costly, ask


@pytest.fixture
def store(database_url):
    """Three runs: one asks three of one model, one is served two and asks one, one asks another model."""
    with Records(database_url) as records:
        with records.run("first", {"file": "A_b.csv"}) as run:
            ask(records, run, "one", "broken", "free")
        with records.run("second", {"file": "Axb.csv"}) as run:
            ask(records, run, "one", "free", "two")
        with records.run("first", {"file": "other"}) as run:
            ask(records, run, "one", model=Costly("local:other"))
        yield records


def commands(found):
    return [line.summary.command for line in found.entries]


def test_a_line_has_counts_models_and_tokens(store):
    newest, second, oldest = list_run_page(store.database).entries
    assert (oldest.summary.sent, oldest.summary.failed, oldest.summary.served, oldest.tokens) == (3, 1, 0, 24)
    assert (second.summary.sent, second.summary.failed, second.summary.served, second.tokens) == (1, 0, 2, 12)
    assert (oldest.models, newest.models) == (("openai:costly",), ("local:other",))
    assert oldest.summary == list_runs(store.database)[0]


def test_pages_follow_each_other_without_gap_or_double(store):
    whole = [line.summary.id for line in list_run_page(store.database).entries]
    pages = [list_run_page(store.database, limit=1, offset=number) for number in range(4)]
    assert [line.summary.id for page in pages for line in page.entries] == whole
    assert {page.total for page in pages} == {3}
    assert pages[0].commands == ("first", "second")


def test_runs_are_found_by_command_and_by_text_as_it_stands(store):
    assert commands(list_run_page(store.database, command="second")) == ["second"]
    # The line of a_b is no wildcard, and case does not matter.
    found = list_run_page(store.database, text="a_B.csv")
    assert (found.total, commands(found)) == (1, ["first"])
    assert list_run_page(store.database, text="%").total == 0
    some = list_runs(store.database)[1].id
    assert [line.summary.id for line in list_run_page(store.database, text=some).entries] == [some]


@pytest.mark.parametrize(
    ("order", "greatest"),
    [("sent", "first"), ("failed", "first"), ("served", "second"), ("tokens", "first"), ("command", "second")],
)
def test_runs_are_sorted_by_what_they_used(store, order, greatest):
    assert commands(list_run_page(store.database, order=order))[0] == greatest
    assert commands(list_run_page(store.database, order=order, descending=False))[-1] == greatest


def test_usage_adds_up_whatever_it_is_grouped_by(store):
    by_command = {line.name: line for line in usage_by(store.database, "command")}
    first, second = by_command["first"], by_command["second"]
    assert (first.answers, first.failed, first.served, first.attempts, first.unpriced) == (4, 1, 0, 6, 1)
    assert (second.answers, second.served, second.reused_fraction) == (1, 2, pytest.approx(2 / 3))
    assert first.cost == pytest.approx(0.02)
    by_model = {line.name: line for line in usage_by(store.database, "model")}
    assert (by_model["openai:costly"].prompt_tokens, by_model["local:other"].prompt_tokens) == (30, 10)
    days = usage_by(store.database, "day")
    for group in (by_command.values(), by_model.values(), days):
        assert sum(line.answers for line in group) == 5
        assert sum(line.served for line in group) == 2
        assert sum(line.completion_tokens for line in group) == 8


def test_a_day_ends_at_midnight_utc(store):
    import sqlalchemy as sa

    from climassay.records import tables

    midnight = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    moments = iter([midnight - 0.4, midnight - 0.6, midnight, midnight + 0.4, midnight + 86399.9])

    def shift(connection):
        for number in connection.execute(sa.select(tables.answers.c.id).order_by(tables.answers.c.id)).scalars().all():
            mine = tables.answers.update().where(tables.answers.c.id == number)
            connection.execute(mine.values(answered_at=next(moments)))

    store.database.write(shift)
    found = {line.name: line.answers for line in usage_by(store.database, "day") if line.answers}
    assert found == {"2026-02-28": 2, "2026-03-01": 3}


def test_what_does_not_exist_is_refused(store):
    with pytest.raises(InputError, match="not by 'size'"):
        list_run_page(store.database, order="size")
    with pytest.raises(InputError, match="not by 'hour'"):
        usage_by(store.database, "hour")


def test_answers_are_found_by_words_of_their_prompt(database_url):
    with Records(database_url) as records:
        with records.run("ask", {}) as run:
            ask(records, run, 'What is "100%"?', "What is 1000?", '[{"content": "What is \\"100%\\"?"}]')
        with records.run("ask", {}) as other:
            ask(records, other, "What is 1000?")
        found = search_answers(records.database, run.id, 'is "100%"', 10)
        assert [one.prompt for one in found] == ['What is "100%"?', '[{"content": "What is \\"100%\\"?"}]']
        assert len(search_answers(records.database, run.id, "What is", 2)) == 2
        # Served to the second run, though the first one asked.
        assert [one.run for one in search_answers(records.database, other.id, "1000", 10)] == [run.id]
