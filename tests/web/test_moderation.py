"""Who may read a check: everybody with an account, also visitors once it is published, adjudicators if it is hidden."""

import pytest
import sqlalchemy as sa

from api_parts import bearer
from check_parts import SUN, ask, ended, furnish, scripted, write_settings
from climassay.records import tables
from climassay.records.database import POSTGRES_SCHEMA
from climassay.web.checks.store import get_check_store
from web_parts import application_over, post


@pytest.fixture
def place_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    return {"debates": (write_settings(tmp_path),), "public": "read"}


@pytest.fixture
def script(place):
    made = scripted()
    furnish(place, made)
    return made


def addresses(check, run):
    """Where a check can be read."""
    return (
        f"/checks/{check}",
        f"/checks/{check}/check.json",
        f"/checks/{check}/page.html",
        f"/api/v1/checks/{check}",
        f"/api/v1/checks/{check}/transcript",
        f"/results/{run}",
        f"/results/{run}/claims",
        f"/results/{run}/claims/1",
        f"/results/{run}/run.json",
        f"/api/v1/runs/{run}",
    )


LISTS = ("/checks", "/checks.csv", "/checks.jsonl", "/api/v1/checks", "/results", "/api/v1/runs")


def seen_by(client, check, run):
    """Addresses at which a client reads a check, and lists that name it or its run."""
    return (
        [address for address in addresses(check, run) if client.get(address).status_code == 200],
        [address for address in LISTS if check in client.get(address).text or run in client.get(address).text],
    )


def test_a_check_is_read_by_those_whom_an_adjudicator_lets(client_of, place, script):
    visitor, user, judge = client_of(None), client_of("annotator"), client_of("adjudicator")
    check = ask(user)
    run = ended(place, check).about.run
    everywhere = ([*addresses(check, run)], [*LISTS])
    nowhere = ([], [])
    assert seen_by(visitor, check, run) == nowhere
    assert seen_by(user, check, run) == seen_by(judge, check, run) == everywhere
    assert post(judge, f"/checks/{check}/visibility", {"visibility": "published"}).status_code == 303
    assert seen_by(visitor, check, run) == everywhere
    post(judge, f"/checks/{check}/visibility", {"visibility": "hidden"})
    assert seen_by(visitor, check, run) == seen_by(user, check, run) == nowhere
    assert seen_by(judge, check, run) == everywhere
    assert "An adjudicator has hidden this check." in user.get(f"/checks/{check}").text
    # Nobody is pointed at a hidden check by asking the same claim again.
    assert post(user, "/check", {"claim": SUN}).status_code == 303


def test_only_adjudicators_moderate_and_only_checks_that_have_ended(client_of, place, script):
    user, judge = client_of("annotator"), client_of("adjudicator")
    check = ask(user)
    ended(place, check)
    assert "Who may read this check" in judge.get(f"/checks/{check}").text
    assert "Who may read this check" not in user.get(f"/checks/{check}").text
    for path, fields in ((f"/checks/{check}/visibility", {"visibility": "published"}), (f"/checks/{check}/delete", {})):
        assert post(user, path, fields).status_code == 403
        assert post(judge, path.replace(check, "c0"), fields).status_code == 404
    assert post(judge, f"/checks/{check}/visibility", {"visibility": "everywhere"}).status_code == 400
    assert get_check_store(place).get(check).about.visibility == "unpublished"


def test_a_deleted_check_leaves_no_word_of_the_claim_behind(place_on, database_url):
    place = place_on(database_url)
    furnish(place, scripted())
    with application_over(place) as client_of:
        user, judge = client_of("annotator"), client_of("adjudicator")
        check = ask(user)
        run = ended(place, check).about.run
        other = ask(user, claim="The ocean takes up most of the heat.")
        other_run = ended(place, other).about.run
        post(user, f"/checks/{check}/review", {"opinion": "agree"})
        kept = rows_of(place, other_run)
        assert post(judge, f"/checks/{check}/delete", {}).headers["location"] == "/checks"
        assert check not in get_check_store(place)
        assert rows_of(place, run) == (0, 0)
        assert rows_of(place, other_run) == kept
        assert user.get(f"/checks/{other}").status_code == 200
        assert SUN not in " ".join(dump(place))
        assert "Sun" in " ".join(dump(place))
        assert post(user, "/check", {"claim": SUN}).status_code == 303


def rows_of(place, run):
    """Numbers of a run's answers and of its rows of results."""
    counts = [
        sa.select(sa.func.count()).select_from(table).where(table.c.run == run)
        for table in (tables.answers, tables.results)
    ]
    return tuple(place.database.scalar(count) for count in counts)


def dump(place):
    """Every text of the database, column by column."""
    metadata = sa.MetaData()
    with place.database.read() as connection:
        metadata.reflect(connection, schema=None if place.database.is_sqlite else POSTGRES_SCHEMA)
        for table in metadata.sorted_tables:
            for row in connection.execute(sa.select(table)):
                yield from (value for value in row if isinstance(value, str))


def test_programs_moderate_with_the_rights_of_their_user(client_of, place, script):
    check = ask(client_of("annotator"))
    ended(place, check)
    visitor, path = client_of(None), f"/api/v1/checks/{check}"

    def call(role, method, address=path, **more):
        return visitor.request(method, address, headers=bearer(place, role), **more)

    for readers, seen in (("published", 200), ("hidden", 404), ("unpublished", 404)):
        assert call("annotator", "PATCH", json={"visibility": readers}).status_code == 403
        changed = call("adjudicator", "PATCH", json={"visibility": readers})
        assert (changed.status_code, changed.json()["visibility"]) == (200, readers)
        assert visitor.get(path).status_code == seen
    assert call("adjudicator", "PATCH", json={"visibility": "everywhere"}).status_code in (400, 422)
    assert call("adjudicator", "PATCH", "/api/v1/checks/c0", json={"visibility": "hidden"}).status_code == 404
    assert call("annotator", "DELETE").status_code == 403
    assert check in get_check_store(place)
    assert call("adjudicator", "DELETE").status_code == 204
    assert check not in get_check_store(place)
    assert call("adjudicator", "DELETE").status_code == 404


def test_a_hidden_check_is_not_followed_by_its_job_either(client_of, place, script):
    user, judge = client_of("annotator"), client_of("adjudicator")
    check = ask(user)
    events = f"/jobs/{ended(place, check).about.job}/events"
    assert SUN in user.get(events).text
    post(judge, f"/checks/{check}/visibility", {"visibility": "hidden"})
    assert user.get(events).status_code == 404
    assert SUN not in user.get(events).text
    assert SUN in judge.get(events).text


def test_visitors_do_not_learn_who_asked(client_of, place, script):
    visitor, user, judge = client_of(None), client_of("annotator"), client_of("adjudicator")
    place.accounts.change("annotator", display_name="Ada Lovelace")
    check = ask(user)
    ended(place, check)
    post(judge, f"/checks/{check}/visibility", {"visibility": "published"})
    assert "by Ada Lovelace" in user.get(f"/checks/{check}").text
    for path in (f"/checks/{check}", f"/checks/{check}/check.json", f"/api/v1/checks/{check}", "/checks.csv"):
        text = visitor.get(path).text
        assert "Ada" not in text, path
        assert "annotator" not in text, path
