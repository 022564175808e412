"""Checking a claim in the browser: from the form to the verdict, its files, its reviews, and who debates."""

import csv
import io
import json
import re
import zipfile
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from check_parts import DISPUTE, SUN, Gate, add_collection, ask, ended, furnish, scripted, write_settings
from climassay import list_checks
from climassay.errors import InputError
from climassay.factcheck import claim_review, from_data, make_claim
from climassay.factcheck.check_records import PAGE_SIZE, iso_time
from climassay.factcheck.results.citation import day_in_words
from climassay.web.checks.debate import estimate_remaining_seconds
from climassay.web.checks.store import choose_debate, get_check_store, list_debate_choices
from climassay.web.library.cache import collection_cache
from debate_tables import View
from factcheck_transcripts import full_transcript
from html_pages import Page
from patience import reached
from web_parts import application_over, post


@pytest.fixture
def place_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    return {"debates": (write_settings(tmp_path),), "publisher": "Example Observatory"}


@pytest.fixture
def script(place):
    made = scripted()
    furnish(place, made)
    return made


@pytest.fixture
def gate(place):
    """A server whose debates wait for the test before the mediator speaks."""
    made = Gate()
    furnish(place, scripted(made))
    yield made
    made.open.set()


def test_a_claim_is_debated_and_its_page_shows_verdict_levels_citations_and_who_took_part(client_of, place, script):
    client = client_of("annotator")
    assert Page(client.get("/check").text).every("textarea", name="claim", data_max_length="2000")
    check = ask(client, source="A columnist", date="15 May 2023")
    kept = ended(place, check)
    assert (kept.about.state, kept.about.label, kept.about.by) == ("done", "incorrect", "annotator")
    assert kept.about.claim.date == "2023-05-15"
    assert [held.decision.reason for held in kept.transcript.rounds] == ["contrast", "close verdicts"]
    seen = Page(client.get(f"/checks/{check}").text)
    for words in (SUN, "incorrect", "A columnist, 2023-05-15", "Confidence", "What each advocate holds", "Round 2",
                  "shows no trend", "local:scripted", "two sides", "asks", kept.about.run):  # fmt: skip
        assert words in seen.text
    for link in seen.every("a", class_="cite"):
        assert seen.every("article", id=f"passage-{link['data-passage']}")
    assert seen.every("a", class_="cite")


def test_the_whole_way_is_the_same_on_both_databases(place_on, database_url):
    made = place_on(database_url)
    furnish(made, scripted())
    with application_over(made) as client_of:
        client = client_of("annotator")
        check = ask(client)
        kept = ended(made, check)
        post(client, f"/checks/{check}/review", {"opinion": "disagree", "comment": "No."})
        assert (kept.about.state, kept.about.label) == ("done", "incorrect")
        assert "0 agree, 1 disagrees." in client.get(f"/checks/{check}").text
        assert f"/checks/{check}" in client.get("/checks?q=sun&verdict=incorrect&review=disagreed").text
        assert "the same claim" in post(client, "/check", {"claim": SUN}).text


def test_a_check_can_be_taken_along_as_data_as_claimreview_and_as_a_page(client_of, place, script):
    client = client_of("annotator")
    check = ask(client, source="https://example.org/column")
    kept = ended(place, check)
    post(client, f"/checks/{check}/review", {"opinion": "agree", "comment": "Well said."})
    data = client.get(f"/checks/{check}/check.json")
    assert from_data(data.json()["transcript"]) == kept.transcript
    assert [(one["by"], one["opinion"], one["comment"]) for one in data.json()["reviews"]] == [
        ("annotator", "agree", "Well said.")
    ]
    # Only what a person with the role has approved is published, and nothing that somebody disagrees with.
    assert client.get(f"/checks/{check}/claimreview.json").status_code == 404
    assert "application/ld+json" not in client.get(f"/checks/{check}").text
    judge, other = client_of("adjudicator"), client_of("admin")
    post(judge, f"/checks/{check}/review", {"opinion": "agree"})
    post(other, f"/checks/{check}/review", {"opinion": "disagree"})
    assert client.get(f"/checks/{check}/claimreview.json").status_code == 404
    post(other, f"/checks/{check}/review", {"opinion": "agree"})
    assert "application/ld+json" in client.get(f"/checks/{check}").text
    review = client.get(f"/checks/{check}/claimreview.json")
    assert review.headers["content-type"].startswith("application/ld+json")
    assert review.json()["url"] == f"http://127.0.0.1:8000/checks/{check}"
    assert review.json()["author"]["name"] == "Example Observatory"
    assert review.json()["reviewRating"]["alternateName"] == "incorrect"
    alone = client.get(f"/checks/{check}/page.html")
    assert "<!doctype html>" in alone.text
    for file in (data, review, alone):
        assert file.headers["content-disposition"].startswith(f'attachment; filename="{check}')
    embedded = [text for text in Page(client.get(f"/checks/{check}").text).scripts if text.strip()]
    assert json.loads(embedded[0]) == review.json()


def test_a_check_can_be_cited_with_publisher_address_date_and_the_reviews_that_happened(client_of, place, script):
    client, judge = client_of("annotator"), client_of("adjudicator")
    check = ask(client, source="A & B columnist", appearance="https://daily.example/column", date="2024")
    kept = ended(place, check)
    address, day = f"http://127.0.0.1:8000/checks/{check}", iso_time(kept.about.ended_at)[:10]
    seen = Page(client.get(f"/checks/{check}").text)
    [link] = seen.every("link", rel="canonical")
    assert link["href"] == address
    head = {tag.get("property", tag.get("name")): tag["content"] for tag in seen.every("meta") if "content" in tag}
    assert head["og:url"] == address
    assert head["og:site_name"] == "Example Observatory"
    assert head["og:title"] == f"Fact-check of “{SUN}”: incorrect"
    assert head["article:published_time"] == day
    assert head["description"] == head["og:description"]
    assert "not reviewed by a person" in head["description"]
    assert "2 documents without a date" in head["description"]
    assert seen.every("a", href="https://daily.example/column")
    for words in (
        "Example Observatory",
        address,
        day_in_words(day),
        "A & B columnist, 2024",
        "@misc{factcheck-",
        "{{Example",
    ):
        assert words in seen.text
    post(judge, f"/checks/{check}/review", {"opinion": "agree", "comment": "It is so."})
    seen = Page(client.get(f"/checks/{check}").text)
    assert "Fact-check by machine, reviewed" in seen.text
    assert "1 person agrees with the result" in seen.text
    file = client.get(f"/checks/{check}/page.html").text
    for words in (
        "Example Observatory",
        address,
        day_in_words(day),
        "Reviewed by:",
        "adjudicator",
        "How to cite this page",
    ):
        assert words in file
    assert "<span></span>" not in file
    post(client, f"/checks/{check}/review", {"opinion": "disagree"})
    assert "1 person agrees and 1 person disagrees with the result" in client.get(f"/checks/{check}/page.html").text
    assert "Fact-check by machine, reviewed" not in client.get(f"/checks/{check}").text
    item = claim_review(kept.transcript, url=address, author="Example Observatory")["itemReviewed"]
    assert item["author"]["name"] == "A & B columnist"
    assert item["appearance"]["url"] == "https://daily.example/column"


def test_a_document_that_was_renamed_has_its_title_in_every_file(client_of, place, script):
    client, judge = client_of("annotator"), client_of("adjudicator")
    check = ask(client)
    ended(place, check)
    post(judge, f"/checks/{check}/review", {"opinion": "agree"})
    collection_cache(place).edit_document("physical", "physical-document", title="Radiation and Climate")
    for path in (f"/checks/{check}/check.json", f"/checks/{check}/page.html", f"/checks/{check}/claimreview.json",
                 "/checks.jsonl", f"/api/v1/checks/{check}/transcript"):  # fmt: skip
        # The name under which a source was presented to the models stays as it was.
        text = re.sub(r'"about": ?"[^"]*"', "", client.get(path).text)
        assert "Radiation and Climate" in text, path
        assert "The book physical" not in text, path


def test_the_verdict_of_a_demonstration_is_marked_wherever_it_is_shown(client_of, place, script):
    client = client_of("annotator")
    script.model.parameters = 135_000_000
    check = ask(client)
    kept = ended(place, check)
    assert kept.about.demonstration
    for path in (f"/checks/{check}", "/checks", f"/results/{kept.about.run}/claims"):
        badges = Page(client.get(path).text).root.css("span.badge.warn")
        assert [badge.text() for badge in badges] == ["demonstration"]
    assert "<title>Demonstration, incorrect: " in client.get(f"/checks/{check}").text
    [row] = csv.DictReader(io.StringIO(client.get("/checks.csv").text))
    assert (row["verdict"], row["demonstration"]) == ("incorrect", "true")
    assert client.get(f"/api/v1/checks/{check}").json()["demonstration"] is True
    assert client.get("/api/v1/checks").json()["items"][0]["demonstration"] is True
    assert "demonstration" in post(client, "/check", {"claim": SUN}).text
    [table] = list_checks(workspace=place).tables()
    assert table.rows[0][3] == "incorrect (demonstration)"


def test_a_claim_that_was_checked_before_is_shown_before_it_is_asked_again(client_of, place, script):
    client = client_of("annotator")
    check = ask(client)
    ended(place, check)
    asked = len(script.model.texts)
    answer = post(client, "/check", {"claim": SUN.upper(), "source": "Somebody", "setup": "two sides"})
    seen = Page(answer.text)
    assert answer.status_code == 200
    assert "the same claim" in seen.text
    assert seen.every("a", href=f"/checks/{check}")
    assert get_check_store(place).list().total == 1
    again = {field["name"]: field["value"] for field in seen.every("input", type="hidden")}
    assert again["claim"] == SUN.upper()
    second = ask(client, **{name: again[name] for name in ("claim", "source", "setup", "anyway")})
    assert ended(place, second).about.claim.source == "Somebody"
    assert second != check
    assert len(script.model.texts) > asked


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"claim": "   "}, "The claim is empty."),
        ({"claim": "warm " * 2000}, "The claim has 9,999 characters, and the limit is 2,000: shorten it."),
        ({"claim": SUN, "source": "a" * 501}, "The source has 501 characters, and the limit is 500: shorten it."),
        ({"claim": SUN, "date": "x" * 41}, "is not a date: write it like 2024-05-31"),
        ({"claim": SUN, "setup": "nobody"}, "There is no set-up &#39;nobody&#39;; there are two sides."),
    ],
    ids=["empty", "long", "source", "date", "set-up"],
)
def test_a_claim_that_cannot_be_taken_is_told_in_one_sentence_and_not_lost(client_of, place, script, form, sentence):
    answer = post(client_of("annotator"), "/check", form)
    assert answer.status_code == 400
    assert sentence in answer.text
    assert form["claim"].strip() in answer.text
    assert get_check_store(place).list().total == 0


def test_a_claim_that_is_nothing_to_check_ends_so_without_a_debate(client_of, place, script, tmp_path):
    loose = choose_debate(place, "").settings
    object.__setattr__(loose, "check_claims", True)
    client = client_of("annotator")
    check = ask(client, "Is it really getting warmer?")
    kept = ended(place, check)
    assert (kept.about.state, kept.about.outcome, kept.about.label) == ("done", "not checkable", None)
    text = Page(client.get(f"/checks/{check}").text).text
    assert "Nothing that can be checked" in text
    assert "It was not debated" in text
    assert client.get(f"/checks/{check}/claimreview.json").status_code == 404
    assert script.model.texts == []


def test_news_are_pieces_of_the_same_page_from_an_event_on(client_of, place, gate):
    client = client_of("annotator")
    check = ask(client)
    reached(gate.reached)
    page = client.get(f"/checks/{check}").text
    assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', page)
    whole = Page(page)
    for words in ("Round 1", "Physical", "incorrect", "Pamphlet", "shows no trend", "Evidence"):
        assert words in whole.text
    assert "closed the debate" not in whole.text
    [box] = whole.every("div", data_live=check)
    first = Page(client.get(f"/checks/{check}/debate").text)
    assert [piece["data-region"] for piece in first.tags_with("data-region")] == [
        "statements", "passages", "debate", "debate",
    ]  # fmt: skip
    assert first.every("div", data_last=box["data-last"])
    nothing = Page(client.get(f"/checks/{check}/debate?after={box['data-last']}").text)
    assert nothing.tags_with("data-region") == []
    gate.open.set()
    ended(place, check)
    later = Page(client.get(f"/checks/{check}/debate?after={box['data-last']}").text)
    assert "The mediator holds another round." in [
        one["data-announcement"] for one in later.tags_with("data-announcement")
    ]
    assert "Round 1" not in later.text
    assert "Round 2" in later.text


def test_a_check_says_at_which_step_it_is_how_long_it_has_taken_and_what_everybody_does(client_of, place, gate):
    settings = choose_debate(place, "").settings
    for number in range(2):
        past = get_check_store(place).begin(make_claim(f"Past {number}."), settings, setup="x")
        get_check_store(place).finish(past, full_transcript(), run="r1", seconds=1000.0 * (number + 1))
    client = client_of("annotator")
    check = ask(client)
    reached(gate.reached)
    text = Page(client.get(f"/checks/{check}").text).text
    assert "Step 5 of at most 14 : round 1 of at most 3, the mediator weighs the views." in text
    assert "Physical has given its view: incorrect" in text
    assert "The mediator is weighing the advocates’ views" in text
    assert re.search(r"\d+ s so far ?\.", text)
    assert "to go" not in text  # two past checks are no ground for an estimate
    get_check_store(place).finish(
        get_check_store(place).begin(make_claim("Past 3."), settings, setup="x"),
        full_transcript(),
        run="r1",
        seconds=2500.0,
    )
    later = Page(client.get(f"/checks/{check}/debate").text)
    assert "about 33 minutes to go, judging by 3 earlier checks with the same model" in later.text
    [box] = later.tags_with("data-progress")
    assert 0 <= float(box["data-elapsed"]) < 900
    gate.open.set()
    kept = ended(place, check).about
    assert 0 < kept.seconds <= kept.ended_at - kept.asked_at + 1
    job = place.jobs.get(kept.job)
    assert (job.done, job.total) > (0, 0)


@pytest.mark.parametrize(
    ("past", "elapsed", "left"),
    [((10, 20), 0, None), ((10, 20, 60), 0, 20), ((10, 20, 60, 80), 30, 40), ((10, 20, 60), 60, 0), ((), 5, None)],
)
def test_what_is_left_of_a_debate_is_judged_by_past_ones_that_took_longer(past, elapsed, left):
    assert estimate_remaining_seconds(past, elapsed) == left


def test_the_same_claim_of_the_same_person_is_not_begun_twice(client_of, place, gate):
    client = client_of("annotator")
    check = ask(client)
    reached(gate.reached)
    assert ask(client) == check
    assert ask(client_of("adjudicator")) != check
    assert get_check_store(place).list().total == 2


def test_a_check_is_stopped_by_who_asked_and_goes_on_without_asking_again(client_of, place, gate):
    client = client_of("adjudicator")
    check = ask(client)
    reached(gate.reached)
    assert post(client_of("annotator"), f"/checks/{check}/stop").status_code == 403
    assert Page(client.get(f"/checks/{check}").text).every("form", action=f"/checks/{check}/stop")
    assert post(client, f"/checks/{check}/stop").headers["location"] == f"/checks/{check}"
    gate.open.set()
    assert ended(place, check).about.state == "stopped"
    seen = Page(client.get(f"/checks/{check}").text)
    assert "The check was stopped" in seen.text
    post(client, f"/checks/{check}/again")
    kept = ended(place, check)
    assert (kept.about.state, kept.about.label) == ("done", "incorrect")
    model = place.shared("model local:scripted", lambda: None)
    assert len(model.texts) == len(set(model.texts))


def test_a_failed_call_is_told_and_asked_again_on_request(client_of, place):
    failing = scripted(plans={**DISPUTE, "mediator": [View(fails=True)]})
    furnish(place, failing)
    client = client_of("annotator")
    check = ask(client)
    assert ended(place, check).about.outcome == "failed"
    seen = Page(client.get(f"/checks/{check}").text)
    assert "The check failed" in seen.text
    assert "mediator is not to be reached." in seen.text
    failing.plans = DISPUTE
    post(client, f"/checks/{check}/again")
    kept = ended(place, check)
    assert (kept.about.outcome, kept.about.label) == ("verdict", "incorrect")


def test_a_check_that_cannot_begin_says_why(client_of, place):
    furnish(place, scripted(), texts={})
    client = client_of("annotator")
    check = ask(client)
    assert ended(place, check).about.state == "failed"
    text = Page(client.get(f"/checks/{check}").text).text
    assert "The check broke off. Documents that this check needs are no longer in the library." in text
    assert "There is no collection 'physical'" in text


def test_a_job_that_was_stopped_before_its_turn_stops_its_check(client_of, place, gate):
    client = client_of("annotator")
    ask(client)
    reached(gate.reached)
    second = ask(client, "Glaciers grow.")
    place.jobs.stop(get_check_store(place).get(second).about.job)
    assert "The check was stopped" in Page(client.get(f"/checks/{second}").text).text


def test_only_so_many_checks_wait_at_a_time(client_of, place, gate, monkeypatch):
    monkeypatch.setattr("climassay.web.checks.store.MAX_WAITING", 1)
    client = client_of("annotator")
    ask(client)
    answer = post(client, "/check", {"claim": "Glaciers grow."})
    assert (answer.status_code, "try again later" in answer.text) == (503, True)


def test_people_agree_disagree_and_change_their_minds(client_of, place, script):
    client = client_of("annotator")
    check = ask(client)
    ended(place, check)
    post(client, f"/checks/{check}/review", {"opinion": "disagree", "comment": "Too harsh.\r\nReally."})
    post(client_of("admin"), f"/checks/{check}/review", {"opinion": "agree"})
    assert get_check_store(place).get(check).about.reviewed == "divided"
    post(client, f"/checks/{check}/review", {"opinion": "agree", "comment": "On second thought."})
    for opinion, comment in (("love", "x"), ("agree", "x" * 4001), ("undecided", "")):
        wrong = post(client, f"/checks/{check}/review", {"opinion": opinion, "comment": comment})
        assert wrong.status_code == 400
    seen = Page(client.get(f"/checks/{check}").text)
    assert "2 agree, 0 disagree" in seen.text
    assert "changed since" in seen.text
    assert "Too harsh. Really." in seen.text
    assert [(one.by, one.opinion, one.current) for one in get_check_store(place).reviews(check)] == [
        ("annotator", "disagree", False), ("admin", "agree", True), ("annotator", "agree", True),
    ]  # fmt: skip
    listed = Page(client.get("/checks").text).text
    assert "People agree with 100% of the verdicts they reviewed (21 to 100%; 1 check)." in listed


def test_a_check_that_goes_on_and_one_that_is_not_there_cannot_be_reviewed(client_of, place, gate):
    client = client_of("annotator")
    check = ask(client)
    answer = post(client, f"/checks/{check}/review", {"opinion": "agree"})
    assert answer.status_code == 400
    assert "once its debate has ended" in answer.text
    assert post(client, "/checks/c0/review", {"opinion": "agree"}).status_code == 404
    assert client.get("/checks/c0").status_code == 404


def test_the_list_is_searched_filtered_and_paged(client_of, place, script):
    from climassay.factcheck import DebateSettings

    checks = get_check_store(place)
    client = client_of("annotator")
    check = ask(client)
    ended(place, check)
    for number in range(PAGE_SIZE + 1):
        checks.stop(checks.begin(make_claim(f"Claim {number} % about ice"), DebateSettings(), setup="x"))
    first, second = (Page(client.get(f"/checks?page={number}").text) for number in (1, 2))
    assert len(first.every("li", class_="card")) == PAGE_SIZE
    assert len(second.every("li", class_="card")) == 2
    assert first.every("a", rel="next", href="/checks?page=2")
    assert "Claim 50 %" in first.text
    one = Page(client.get("/checks?q=SUN+warming").text)
    assert len(one.every("li", class_="card")) == 1
    assert one.every("a", href=f"/checks/{check}")
    assert "No check matches this: the words “%%”." in Page(client.get("/checks?q=%25%25").text).text
    assert "There is no page 9" in Page(client.get("/checks?page=9").text).text
    assert len(Page(client.get("/checks?verdict=incorrect").text).every("li", class_="card")) == 1
    assert "No check matches" in Page(client.get("/checks?review=agreed").text).text
    assert client.get("/checks?review=liked").status_code == 422
    assert client.get("/checks?page=0").status_code == 422


FILTERS = "verdict=incorrect&topic=2&collection=physical&source=column&since=2020-01-01&reviewer=annotator"


def test_filters_go_together_stay_in_the_address_and_are_told_where_nothing_fits(client_of, place, script):
    client = client_of("annotator")
    check = ask(client, source="A columnist")
    assert ended(place, check).about.topic == "2.1"
    ended(place, ask(client, "The warming of the Sun paused.", source="Another columnist"))
    post(client, f"/checks/{check}/review", {"opinion": "agree"})
    seen = Page(client.get(f"/checks?{FILTERS}").text)
    assert len(seen.every("li", class_="card")) == 1
    assert seen.every("a", href=f"/checks/{check}")
    assert seen.every("option", value="2", selected=None)
    assert seen.every("a", href=f"/checks.csv?{FILTERS}")
    nothing = Page(client.get(f"/checks?{FILTERS}&until=2020-01-02").text).text
    for words in (
        "No check matches all of this",
        "until 2020-01-02",
        "People do not cause it.",
        "reviewed by annotator",
    ):
        assert words in nothing
    for wrong, status in (("since=2024-02-30", 400), ("until=soon", 422)):
        for path in ("/checks", "/checks.csv", "/api/v1/checks"):
            assert client.get(f"{path}?{wrong}").status_code == status


def test_checks_that_fit_are_taken_along_as_a_table_a_workbook_and_lines(client_of, place, script):
    client = client_of("annotator")
    check = ask(client, source="=A columnist")
    kept = ended(place, check)
    ended(place, ask(client, "The warming of the Sun paused."))
    post(client, f"/checks/{check}/review", {"opinion": "agree", "comment": "Well said."})
    [line] = client.get("/checks.jsonl?review=agreed").text.splitlines()
    assert from_data(json.loads(line)["transcript"]) == kept.transcript
    assert json.loads(line)["reviews"][0]["comment"] == "Well said."
    table = client.get("/checks.csv?review=agreed")
    assert table.headers["content-disposition"] == 'attachment; filename="checks.csv"'
    [row] = csv.DictReader(io.StringIO(table.text))
    assert (row["id"], row["verdict"], row["collections"]) == (check, "incorrect", "pamphlet; physical")
    assert row["page"] == f"{place.settings.root}/checks/{check}"
    assert not row["source"].startswith("=")
    assert len(list(csv.DictReader(io.StringIO(client.get("/checks.csv").text)))) == 2
    book = workbook_rows(client.get("/checks.xlsx?review=agreed").content)
    assert [len(book), book[0], book[1][0]] == [2, list(row), check]
    assert [one["id"] for one in client.get("/api/v1/checks?review=agreed&topic=2.1").json()["items"]] == [check]
    assert client.get("/checks.pdf").status_code == 404


def workbook_rows(content):
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    return [["".join(cell.itertext()) for cell in row] for row in sheet.iter(f"{space}row")]


def small_model(**script):
    """A script whose model is asked by scores, as no file sets a profile."""
    made = scripted(**script)
    made.model.parameters = 1
    return made


class TestEveryCollection:
    """Without files every collection is an advocate."""

    @pytest.fixture
    def place_settings(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
        return {"model": "local:scripted"}

    def test_a_collection_that_was_added_later_takes_part_in_the_next_check(self, client_of, place):
        furnish(place, small_model(plans={}), texts={})
        client = client_of("annotator")
        assert "the model alone" in client.get("/check").text
        add_collection(place, "mediator", "Solar forcing of the climate is small.")
        first = ended(place, ask(client))
        assert [one.name for one in first.settings.advocates] == ["mediator_"]
        add_collection(place, "physical", "Carbon dioxide caused the warming of the climate.")
        second = ended(place, ask(client, anyway="true"))
        assert [one.name for one in second.settings.advocates] == ["mediator_", "physical"]
        assert {one.collection for one in second.transcript.sources} == {"mediator", "physical"}

    def test_a_refused_claim_is_debated_if_a_user_asks_for_it_anyway(self, client_of, place):
        furnish(place, small_model(plans={}))
        client = client_of("annotator")
        refused = ask(client, claim="Is the Sun getting brighter?", source="Somebody")
        assert ended(place, refused).about.outcome == "not checkable"
        seen = Page(client.get(f"/checks/{refused}").text)
        fields = {field["name"]: field["value"] for field in seen.every("input", type="hidden")}
        forced = ask(client, **{name: fields[name] for name in ("claim", "source", "date", "setup", "anyway", "force")})
        assert forced != refused
        assert ended(place, forced).transcript.rounds
        assert ended(place, forced).about.claim.source == "Somebody"
        assert "Check it anyway" not in client.get(f"/checks/{forced}").text
        assert "Check it anyway" not in client_of(None).get(f"/checks/{refused}").text

    def test_without_a_publisher_nothing_is_published(self, client_of, place):
        furnish(place, small_model(plans={}))
        client = client_of("annotator")
        check = ask(client)
        ended(place, check)
        assert client.get(f"/checks/{check}/claimreview.json").status_code == 404
        assert "ld+json" not in client.get(f"/checks/{check}").text


def files_in(folder, *names, text=None):
    for name in names:
        write_settings(folder).rename(folder / name)
        if text is not None:
            (folder / name).write_text(text)
    return (folder,)


def test_a_folder_of_files_gives_a_choice(place, tmp_path):
    folder = tmp_path / "debates"
    folder.mkdir()
    place.settings = replace(place.settings, debates=files_in(folder, "b.toml", "a.toml"))
    furnish(place, scripted())
    with application_over(place) as client_of:
        client = client_of("annotator")
        options = Page(client.get("/check").text).every("option")
        assert [one["value"] for one in options] == ["a", "b"]
        assert ended(place, ask(client, setup="b")).about.setup == "b"


@pytest.mark.parametrize(
    ("names", "text", "sentence"),
    [
        ((), None, "has no .toml files that set up debates"),
        (("a.toml",), 'model = "local:x"', "has no \\[\\[advocate\\]\\]"),
        (("a.toml",), 'scale = "love"', "love"),
    ],
    ids=["empty", "nobody", "scale"],
)
def test_set_ups_that_cannot_be_used_are_told_when_the_server_starts(place, tmp_path, names, text, sentence):
    folder = tmp_path / "debates"
    folder.mkdir()
    place.settings = replace(place.settings, debates=files_in(folder, *names, text=text))
    with pytest.raises(InputError, match=sentence):
        list_debate_choices(place)
