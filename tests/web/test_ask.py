"""Asking in the browser: from the question to an answer whose sentences name their passages, and what is refused."""

import html
import threading
from itertools import cycle

import pytest

from api_server import ApiServer, Behaviour, Reply
from browser import arriving, barriers, sideways
from check_parts import furnish, write_settings
from climassay.corpus import RelevanceRule
from climassay.errors import InputError
from climassay.models import Completion
from climassay.models.openai.client import OpenAIModel
from climassay.records.queries import list_runs
from climassay.web.ask import MAX_QUESTION_LENGTH
from html_pages import Page
from patience import PATIENCE, job_at_its_end, reached, until
from scripted_model import USAGE, ScriptedModel
from web_parts import post

QUESTION = "Has the brightness of the Sun caused the warming?"
ANSWER = "The brightness of the Sun shows no trend since 1978 [1]. Volcanoes on Mars are purple."
MARK = "(Not from the sources)"


class Scripted:
    """A script as :func:`furnish` takes it."""

    def __init__(self, write, **more):
        self.model = ScriptedModel(write=lambda prompt, _schema: write(prompt), **more)


@pytest.fixture
def place_settings(tmp_path):
    return {"debates": (write_settings(tmp_path),), "public": "read"}


@pytest.fixture
def answering(place):
    """Has the server's model answer with a text, or with what a function makes of the prompt."""

    def give(text=ANSWER, **more):
        made = Scripted(text if callable(text) else lambda _prompt: text, **more)
        furnish(place, made)
        return made.model

    return give


@pytest.fixture
def held(answering):
    """A model that writes nothing until a test lets it."""
    began, go_on = threading.Event(), threading.Event()
    answering(lambda _prompt: (began.set(), reached(go_on), ANSWER)[-1])
    yield began, go_on
    go_on.set()


def send(client, question=QUESTION, **more):
    """Ask; the address of the question."""
    answer = post(client, "/ask", {"question": question, **more})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def answered(place, client, question=QUESTION, **more):
    """Ask, and wait; the address and the page that is then there."""
    address = send(client, question, **more)
    job_at_its_end(place.jobs, address.removeprefix("/ask/"))
    page = client.get(address)
    assert page.status_code == 200
    return address, Page(page.text)


def test_an_answer_that_was_cut_off_says_so(client_of, place, answering):
    answering(lambda _prompt: Completion(ANSWER, "length", USAGE))
    _, seen = answered(place, client_of("annotator"))
    assert "cut off" in seen.text


def test_an_answer_stands_sentence_by_sentence_with_passages_pages_and_marks(client_of, place, answering):
    model = answering()
    client = client_of("annotator")
    _, seen = answered(place, client)
    assert "cut off" not in seen.text
    [prompt] = model.texts
    assert QUESTION in prompt
    assert "The brightness of the Sun shows no trend since 1978" in seen.text
    # In the answer, and in the text that is there to be copied.
    assert seen.text.count(MARK) == 2
    assert "Sentences that no passage supports, marked below: 1 of 2." in seen.text
    assert seen.every("a", class_="cite", href="#passage-1")
    assert seen.every("article", id="passage-1")
    links = {found["href"] for found in seen.every("a") if "/passages/" in found["href"]}
    assert links
    for link in links:
        assert client.get(link).status_code == 200
    assert "p. 2" in seen.text
    assert "given to the model, not cited" in seen.text
    assert "local:scripted" in seen.text
    assert any(f"http://127.0.0.1:8000{link.partition('?')[0]}" in seen.text for link in links)
    [cited] = {link for link in links if "trend" in link}
    assert "trend" in client.get(cited).text.partition("<mark>")[2].partition("</mark>")[0]
    assert "very small language model" not in seen.text
    assert [(run.command, run.status) for run in list_runs(place.database)] == [("ask", "done")]


def test_only_the_collections_that_are_chosen_are_searched(client_of, place, answering):
    answering()
    client = client_of("annotator")
    assert len(Page(client.get("/ask").text).every("input", name="collections")) == 2
    _, seen = answered(place, client, collections=["pamphlet"])
    assert "The book pamphlet" in seen.text
    assert "The book physical" not in seen.text


@pytest.mark.parametrize("found", [True, False], ids=["not in the passages", "no passage"])
def test_what_the_library_does_not_hold_is_said_with_what_was_found(client_of, place, answering, monkeypatch, found):
    model = answering("Not enough information.")
    if not found:
        monkeypatch.setattr("climassay.corpus.collection.RELEVANCE", {"words": RelevanceRule(1.0, 1.0)})
    _, seen = answered(place, client_of("annotator"))
    assert "Not enough information." in seen.text
    assert len(model.texts) == found
    assert ("Passages found" in seen.text) == found
    assert bool(seen.every("article", id="passage-1")) == found
    assert ("was not asked" in seen.text) == (not found)
    assert not seen.every("button", data_copy="copied")


def test_a_model_that_fails_and_a_job_that_breaks_are_told(client_of, place, answering, monkeypatch):
    answering(lambda _prompt: RuntimeError("the server is away"))
    client = client_of("annotator")
    assert "The model gave no answer: the server is away" in answered(place, client)[1].text

    def broken(*_given, **_more):
        raise InputError("The collection has gone.")

    monkeypatch.setattr("climassay.api.documents.ask", broken)
    assert "There is no answer: The collection has gone." in answered(place, client)[1].text


def test_an_answer_of_a_very_small_model_says_so(client_of, place, answering):
    answering(parameters=135_000_000)
    assert "A very small language model made this." in answered(place, client_of("annotator"))[1].text


def test_a_further_question_stands_below_the_earlier_ones(client_of, place, answering):
    model = answering()
    client = client_of("annotator")
    first, seen = answered(place, client)
    [before] = seen.every("input", name="before")
    second, _ = answered(place, client, "Since when is the brightness of the Sun measured?", before=before["value"])
    third, seen = answered(place, client, "How large is the effective forcing?", before=second.removeprefix("/ask/"))
    assert [one["href"] for one in seen.every("a") if one["href"].startswith("/ask/")] == [first, second]
    assert QUESTION in seen.text
    assert QUESTION not in model.texts[-1]
    assert post(client, "/ask", {"question": QUESTION, "before": "j000000000000"}).status_code == 404
    assert third not in (first, second)


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"question": " \n"}, "The question is empty."),
        ({"question": "warm " * 201}, f"The question has 1,004 characters, and the limit is {MAX_QUESTION_LENGTH:,}"),
        ({"question": QUESTION, "collections": "nobody"}, "There is no collection 'nobody' with passages"),
    ],
    ids=["empty", "long", "collection"],
)
def test_what_cannot_be_asked_is_told_and_not_lost(client_of, place, answering, form, sentence):
    answering()
    answer = post(client_of("annotator"), "/ask", form)
    assert answer.status_code == 400
    assert sentence in html.unescape(answer.text)
    assert form["question"].strip() in answer.text
    assert place.jobs.list() == []


def test_an_empty_library_is_told(client_of):
    client = client_of("annotator")
    assert "The library has no passages yet" in client.get("/ask").text
    assert "add documents first" in post(client, "/ask", {"question": QUESTION}).text


def test_a_question_that_waits_can_be_watched_stopped_and_is_not_asked_twice(client_of, place, held):
    began, go_on = held
    client, other = client_of("annotator"), client_of("adjudicator")
    address = send(client)
    reached(began)
    job = address.removeprefix("/ask/")
    page = client.get(address)
    seen = Page(page.text)
    assert seen.every("div", data_job=job)
    assert '<noscript><meta http-equiv="refresh"' in page.text
    assert "writing from 3 passages of The book" in seen.text
    assert send(client) == address
    assert f"/jobs/{job}/stop" not in other.get(address).text
    assert post(other, f"/jobs/{job}/stop").status_code == 403
    waiting = send(other, "And the Moon?")
    assert post(client, f"/jobs/{job}/stop", {"next": address}).headers["location"] == address
    assert "Stopped before there was an answer." in client.get(address).text
    go_on.set()
    assert job_at_its_end(place.jobs, waiting.removeprefix("/ask/")).state == "done"
    assert place.jobs.get(job).state == "stopped"


def test_questions_and_checks_of_one_person_have_one_limit(client_of, place, held, monkeypatch):
    monkeypatch.setattr("climassay.web.checks.store.MAX_WAITING_PER_USER", 2)
    client, other = client_of("annotator"), client_of("adjudicator")
    send(client, "How bright is the Sun?")
    assert post(client, "/check", {"claim": "The Sun is bright."}).status_code == 303
    assert post(client, "/ask", {"question": QUESTION}).status_code == 429
    assert post(client, "/check", {"claim": "The Moon is not."}).status_code == 429
    assert post(other, "/check", {"claim": "The Moon is not."}).status_code == 303


@pytest.mark.parametrize(("public", "form", "answer"), [("read", 200, 200), ("nothing", 303, 303)])
def test_who_may_only_read_sees_answers_and_asks_nothing(client_of, place, answering, public, form, answer):
    answering()
    address, _ = answered(place, client_of("annotator"))
    object.__setattr__(place.settings, "public", public)
    visitor = client_of()
    assert visitor.get("/ask").status_code == form
    shown = visitor.get(address)
    assert shown.status_code == answer
    assert 'action="/ask"' not in shown.text
    assert 'href="/ask"' not in visitor.get("/").text


def test_a_question_that_does_not_exist_is_not_found(client_of, place, answering):
    answering()
    client = client_of("annotator")
    assert client.get("/ask/j000000000000").status_code == 404
    place.jobs.register("other", lambda app, payload, report: None, "corpus")
    assert client.get(f"/ask/{place.jobs.submit('other', 'x', {})}").status_code == 404
    until(lambda: all(job.has_ended for job in place.jobs.list()))


class Writing(ScriptedModel):
    """Shows texts, one after the other, and between two of them waits for a test."""

    def __init__(self, *texts):
        super().__init__(write=lambda _prompt, _schema: texts[-1])
        self.shown = texts
        self.reached, self.go_on = threading.Semaphore(0), threading.Semaphore(0)

    def generate_stream(self, requests, *, on_text, on_result=None):
        for text in self.shown:
            on_text(0, text)
            self.reached.release()
            assert self.go_on.acquire(timeout=PATIENCE)
        return self.generate(requests, on_result=on_result)


@pytest.fixture
def writing(place):
    """A model that writes its second sentence when it is let, and gives up its first try."""
    first, rest = ANSWER.split(" Volcanoes")
    script = Scripted(ANSWER)
    script.model = Writing(f"{first} Volcanoes on", "", f"{first} Volcanoes{rest}")
    furnish(place, script)
    yield script.model
    script.model.go_on.release(3)


def test_the_page_has_what_is_written_so_far_and_takes_back_what_failed(client_of, place, writing):
    client, visitor = client_of("annotator"), client_of()
    address = send(client)
    job = address.removeprefix("/ask/")
    assert writing.reached.acquire(timeout=PATIENCE)
    for seen in (Page(client.get(address).text), Page(visitor.get(address).text)):
        assert "The brightness of the Sun shows no trend since 1978" in seen.text
        assert "Volcanoes" not in seen.text
        assert "Still being written and checked" in seen.text
        assert seen.every("a", class_="cite", href="#passage-1")
        assert seen.every("article", id="passage-1")
        assert not seen.every("button", data_copy="copied")
    assert place.jobs.get(job).message.startswith("writing from 3 passages of The book")
    writing.go_on.release()
    assert writing.reached.acquire(timeout=PATIENCE)
    seen = Page(client.get(address).text)
    assert "The brightness of the Sun shows no trend" not in seen.text.partition("Passages that")[0]
    writing.go_on.release(2)
    assert job_at_its_end(place.jobs, job).state == "done"
    seen = Page(client.get(address).text)
    # In the answer, and in the text that is there to be copied.
    assert seen.text.count(MARK) == 2
    assert "Still being written" not in seen.text


def test_stopping_while_it_is_written_interrupts_the_run(client_of, place, writing):
    writing.shown = cycle(writing.shown)
    client = client_of("annotator")
    address = send(client)
    assert writing.reached.acquire(timeout=PATIENCE)
    assert post(client, f"/jobs/{address.removeprefix('/ask/')}/stop").status_code == 303
    # The job looks now and then whether it is to stop.
    until(lambda: (writing.go_on.release(), list_runs(place.database)[0].status != "running")[1])
    assert [(run.command, run.status) for run in list_runs(place.database)] == [("ask", "interrupted")]
    assert "Stopped before there was an answer." in client.get(address).text


@pytest.fixture
def server_settings(tmp_path):
    return {"debates": (write_settings(tmp_path),)}


def test_sentences_appear_while_the_server_still_holds_the_next_one_back(running_server, visit):
    go_on = threading.Event()
    behaviour = Behaviour(hold=("purple", go_on))
    text = ANSWER.replace("Volcanoes", "It rises and falls over eleven years [1]. Volcanoes")
    with ApiServer(behaviour, lambda _request: Reply(text)) as server:
        script = Scripted(ANSWER)
        script.model = model = OpenAIModel("strong", base_url=server.url)
        furnish(running_server.place, script)
        page, plain = visit("annotator"), visit("annotator", javascript=False)
        page.goto("/ask")
        page.get_by_label("The question").fill(QUESTION)
        with arriving(page):
            page.get_by_role("button", name="Ask").click()
        try:
            # No reload until the end: what appears was brought by the stream.
            page.evaluate("window.same = true")
            page.get_by_role("heading", name="Answer so far").wait_for()
            page.get_by_text("It rises and falls over eleven years").wait_for()
            assert page.locator("#sentences > li").count() == 2
            assert page.get_by_text("Volcanoes").count() == 0
            assert page.get_by_text("Still being written and checked").is_visible()
            assert page.locator("#sentences a", has_text="p. 2").count() == 2
            page.locator("#sentences .cite").first.click()
            assert "The book" in page.get_by_role("dialog", name="Passage").inner_text()
            page.keyboard.press("Escape")
            assert page.evaluate("window.same") is True
            assert sideways(page) == 0
            assert barriers(page) == []
            plain.goto(page.url)
            plain.get_by_text("It rises and falls over eleven years").wait_for()
        finally:
            go_on.set()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        assert page.locator(".in-house", has_text=MARK).is_visible()
        assert page.get_by_role("heading", name="Answer so far").count() == 0
        model.close()
