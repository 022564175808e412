"""Markup in every text that people, models and documents bring: on no page does it become part of the page."""

import json
from urllib.parse import urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser

from annotated_dataset import WORDINGS, draft, fill, source
from browser import arriving
from climassay.corpus import Passage
from climassay.factcheck import CheckStore, DebateSettings, make_claim
from climassay.generation import Wording
from climassay.generation.annotation import Label
from climassay.grounding import AnswerSentence, GroundedAnswer, Source
from climassay.web.jobs import jobs
from factcheck_transcripts import full_transcript, with_text_everywhere
from library_parts import add_book
from web_routes import Site, crawl

pytestmark = pytest.mark.faults

EVIL = (
    "'\"></title></textarea></script>--><xss-marker onfocus=alert(1) autofocus></xss-marker><script>alert(1)</script>"
)
LINK = "javascript:alert(1)//"
STARTS = (
    "/", "/ask", "/account", "/users", "/annotate", "/checks", "/check", "/library", "/results", "/usage",
)  # fmt: skip
MOST_PAGES = 120
SAFE_SCHEMES = ("", "http", "https", "mailto")


def evil_wording(wording):
    options = tuple(f"{EVIL} {number}" for number in range(len(wording.options)))
    answer = options[wording.correct] if wording.correct is not None else EVIL
    return Wording(f"{EVIL} {wording.question}", answer, options, wording.correct)


def poison(site):
    """Store hostile texts wherever the application keeps any."""
    place = site.place
    site.account("admin", "admin")
    place.accounts.add("mallory", "annotator", EVIL)
    place.accounts.make_token("admin", EVIL)
    place.jobs.submit("check", EVIL, {"note": EVIL}, by="mallory")
    passages = (source(1, EVIL, section=EVIL, document=EVIL, citation=EVIL, url=LINK), source(2, EVIL, licence=EVIL))
    # A cloze statement stays without markup at its words, which are buttons of their own: the question has it.
    drafts = [
        draft(name, wording=evil_wording(WORDINGS[name][1]), passages=passages) for name in ("q1", "q2", "q4", "q5")
    ]
    store = fill(place, drafts, dataset="evil", overlap=1)
    fill(place, drafts[:1], dataset=EVIL[:60].replace("/", "|"))
    store.label("evil", Label("q1", "mallory", accepted=False, reasons=("other",), remark=EVIL, key="k1"))
    edited = evil_wording(WORDINGS["q5"][1])
    store.label("evil", Label("q5", "admin", accepted=True, wording=Wording(edited.question + EVIL, EVIL), key="k2"))
    add_book(place, "evil", title=EVIL, texts=(EVIL, EVIL * 3), source=EVIL, url=LINK, licence=EVIL)
    checks = CheckStore(place.records)
    transcript = with_text_everywhere(full_transcript(), EVIL)
    for state in ("done", "failed", "waiting"):
        check = checks.begin(make_claim(EVIL, source=LINK), DebateSettings(), setup=EVIL, by="mallory")
        if state == "done":
            checks.finish(check, transcript, run=EVIL)
            checks.review(check, "mallory", "disagree", EVIL)
        elif state == "failed":
            checks.fail(check, EVIL)
    passage = Passage("evil-0", EVIL, "evil", EVIL, EVIL, 0, (EVIL,), url=LINK)
    said = AnswerSentence(EVIL, (1,), "model", True, 0.5, (EVIL,), unchecked_references=(EVIL,))
    answer = GroundedAnswer(EVIL, True, (said,), (Source(1, passage, 0.5),), EVIL, EVIL, 1).to_dict()
    for job, before in (("jevil1", ""), ("jevil2", "jevil1")):
        result = {"page": f"/ask/{job}", "answer": answer, "collections": [EVIL], "demonstration": True}
        asked = {"question": EVIL, "collections": [EVIL], "before": before}
        row = {"id": job, "kind": "ask", "lane": "questions", "title": EVIL, "state": "done", "made_at": 1.0, "done": 0}
        row |= {"total": 0, "message": EVIL, "payload": json.dumps(asked), "result": json.dumps(result)}
        place.jobs.database.execute(jobs.insert().values(row))
    with place.records.run(EVIL, {EVIL: EVIL, "model": EVIL}, {EVIL: 1}) as run:
        run.save_results(EVIL, [{EVIL: EVIL, "accuracy": 0.5}])
        run.save_results("scores", [{"level": EVIL, "accuracy": 0.5}])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    opened = Site(tmp_path_factory.mktemp("site"))
    poison(opened)
    yield opened
    opened.close()


def pages(site):
    """All pages: address, and parsed page."""
    for address, answer in crawl(site.visitor("admin"), STARTS, MOST_PAGES):
        assert answer.status_code < 500, f"{address}: {answer.text[:500]}"
        if answer.headers.get("content-type", "").startswith("text/html"):
            yield address, LexborHTMLParser(answer.text)


def faults(tree, own_scripts):
    """What of a page is not the application's own."""
    if tree.css_first("xss-marker") is not None:
        yield "an element from a text"
    for element in tree.css("*"):
        for name, value in element.attributes.items():
            if name.startswith("on"):
                yield f"a handler {name} on {element.tag}"
            if name == "style" and not own_scripts:
                yield f"a style on {element.tag}"
            picture = element.tag in ("img", "link") and (value or "").startswith("data:image/")
            leads = name in ("href", "src", "action", "formaction") and not picture
            if leads and urlsplit(value or "").scheme not in SAFE_SCHEMES:
                yield f"an address {value[:40]} in {element.tag}"
    for script in tree.css("script"):
        kind, address = script.attributes.get("type"), script.attributes.get("src") or ""
        data = kind in ("application/json", "application/ld+json")
        if not data and not address.startswith("/") and not own_scripts:
            yield "a script in the page"
        if "alert(1)" in script.text() and not data:
            yield "a script from a text"


def complaints(site):
    found, poisoned = [], 0
    for address, tree in pages(site):
        poisoned += "xss-marker" in tree.html
        # Reports that are downloaded as one file bring their own scripts and styles along.
        own_scripts = address.partition("?")[0].endswith(".html")
        found += [f"{address}: {fault}" for fault in faults(tree, own_scripts)]
    return found, poisoned


def test_no_text_becomes_part_of_a_page(site):
    found, poisoned = complaints(site)
    assert found == []
    assert poisoned >= 20, "The hostile texts are on too few pages for this test to say much."


def test_a_browser_runs_nothing_of_it(visit, running_server):
    """The same texts in a real browser, which logs what the content policy stops, and throws where scripts run."""
    poison(running_server_site(running_server))
    page = visit("admin")
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for address in ("/users", "/annotate/evil", "/annotate/evil/conflicts", "/checks", "/library/evil", "/results"):
        page.goto(address)
        assert page.locator("xss-marker").count() == 0
    page.goto("/checks")
    with arriving(page):
        page.locator("main a[href^='/checks/c']").first.click()
    assert page.locator("xss-marker").count() == 0
    assert dialogs == []


def running_server_site(server):
    """A server as :func:`poison` takes it."""

    class Running:
        place = server.place

        @staticmethod
        def account(name, role):
            server.session(role)

    return Running
