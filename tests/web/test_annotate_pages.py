"""The annotation pages as a browser without scripts uses them."""

import re
from dataclasses import replace
from html import unescape

import pytest
from selectolax.lexbor import LexborHTMLParser

from annotated_dataset import DATASET, draft, fill
from climassay.generation import Wording
from climassay.generation.annotation import Label
from web_parts import post

HOME = f"/annotate/{DATASET}"


@pytest.fixture
def queue(place):
    return fill(place)


@pytest.fixture
def annotator(client_of):
    return client_of("annotator")


def shown(page):
    """Id of the item on a page."""
    return re.search(r'data-draft="(\w*)"', page.text)[1]


def field(page, name):
    return re.search(rf'name="{name}" value="([^"]*)"', page.text)[1]


def send(client, page, verdict="valid", **fields):
    term = {"term": "dust"} if 'name="term"' in page.text else {}
    said = {"key": field(page, "key"), "verdict": verdict, **term, **fields}
    return post(client, f"{HOME}/{shown(page)}", said)


def text_of(page):
    blocks = re.sub(r"</(dt|dd|th|td|p|li)>", " ", page.text)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", blocks)).split())


def test_the_guidelines_list_the_reasons(queue, annotator):
    assert "The marked answer is wrong" in annotator.get(f"{HOME}/guidelines").text


def test_without_a_dataset_the_page_says_where_questions_come_from(place, annotator, client_of):
    assert "assigned to you, or open to everybody" in annotator.get("/annotate").text
    assert "Open a file of questions below" in client_of("admin").get("/annotate").text


def test_after_a_label_comes_the_next_item(queue, annotator):
    page = annotator.get(HOME)
    answer = send(annotator, page, term="aerosol")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{HOME}?done=label")
    following = annotator.get(answer.headers["location"])
    assert shown(following) != shown(page)
    assert "Saved. 1 of 6." in unescape(following.text)


def test_a_label_says_what_was_chosen(place, annotator):
    queue = fill(place, [draft("q1")])
    page = annotator.get(HOME)
    send(annotator, page, "invalid", reason=["wrong answer", "other"], remark="It is warmer.", seconds="7.5")
    (label,) = queue.labels(DATASET)
    assert (label.accepted, label.reasons, label.remark) == (False, ("wrong answer", "other"), "It is warmer.")
    assert (label.seconds, label.annotator, label.key) == (7.5, "annotator", field(page, "key"))


def test_a_faulty_label_shows_why_and_keeps_what_was_typed(place, annotator):
    queue = fill(place, [draft("q2")])
    page = annotator.get(HOME)
    answer = send(annotator, page, "invalid", reason="other", remark="")
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert re.search(r'<details id="reject" class="card" open>', answer.text)
    assert re.search(r'value="other" data-reason="5" checked', answer.text)
    answer = send(annotator, page, "edit", question="Better?", answer=" ")
    assert answer.status_code == 400
    assert "Better?</textarea>" in answer.text
    assert queue.labels(DATASET) == []


def test_skip_and_look_again(place, annotator):
    queue = fill(place, [draft("q1"), draft("q2")])
    first = shown(annotator.get(HOME))
    answer = post(annotator, f"{HOME}/{first}/skip")
    assert answer.headers["location"] == f"{HOME}?done=skip"
    second = annotator.get(HOME)
    assert shown(second) != first
    send(annotator, second)
    assert "Nothing is left for you" in annotator.get(HOME).text
    assert queue.progress(DATASET, "annotator").skipped == 1
    post(annotator, f"{HOME}/unskip")
    assert shown(annotator.get(HOME)) == first


def test_undo_takes_back_one_thing_a_page(place, annotator):
    queue = fill(place, [draft("q1"), draft("q2")])
    for _ in range(2):
        send(annotator, annotator.get(HOME))
    end = annotator.get(HOME)
    labelled = [label.draft for label in queue.labels(DATASET)]
    last = {"last": field(end, "last")}
    assert post(annotator, f"{HOME}/undo", last).headers["location"] == f"{HOME}/{labelled[1]}?done=undo"
    assert "Taken back. 1 of 2." in annotator.get(f"{HOME}/{labelled[1]}?done=undo").text
    assert post(annotator, f"{HOME}/undo", last).headers["location"] == f"{HOME}?done=nothing"
    assert [label.draft for label in queue.labels(DATASET)] == labelled[:1]


def fields_of(page, form):
    """What a form of a page sends without being touched."""
    root, sent = LexborHTMLParser(page.text), {}
    for one in root.css(f"#{form} :is(input, textarea), [form={form}][name]"):
        name, kind = one.attributes.get("name"), one.attributes.get("type")
        if name and (kind not in ("radio", "checkbox") or "checked" in one.attributes):
            value = one.text().replace("\n", "\r\n") if one.tag == "textarea" else one.attributes.get("value") or ""
            sent.setdefault(name, []).append(value)
    return sent


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("q1", {"question": "Where?", "option": ["here", "there"], "correct": "0"}),
        ("q2", {"question": "Why so?", "answer": 'By "chance" & luck.'}),
        ("q3", {"question": "Mineral dust leads.", "answer": "dust"}),
    ],
    ids=["mcq", "freeform", "cloze"],
)
def test_valid_keeps_an_edit_and_the_first_wording_can_be_had_back(place, annotator, name, edit):
    queue = fill(place, [draft(name)])
    send(annotator, annotator.get(HOME), "edit", **edit)
    edited = queue.labels(DATASET)[0].wording
    page = annotator.get(f"{HOME}/{name}")
    assert f">{edit['question']}</" in page.text or name == "q3"
    assert "<ins>" in page.text
    again = fields_of(page, "accept")
    assert post(annotator, f"{HOME}/{name}", again).status_code == 303
    [label] = queue.labels(DATASET)
    assert (label.accepted, label.wording, label.key) == (True, edited, again["key"][0])
    first = fields_of(annotator.get(f"{HOME}/{name}"), "original")
    assert post(annotator, f"{HOME}/{name}", first).status_code == 303
    assert [(label.accepted, label.wording) for label in queue.labels(DATASET)] == [(True, None)]


@pytest.mark.parametrize(
    ("name", "change", "wording"),
    [
        ("q1", {"question": ["Where?"]}, lambda first: replace(first, question="Where?")),
        ("q1", {"correct": ["2"]}, lambda first: replace(first, answer=first.options[2], correct=2)),
        ("q2", {"answer": ["By chance."]}, lambda first: replace(first, answer="By chance.")),
        ("q3", {"question": ["Mineral dust leads."]}, lambda first: replace(first, question="Mineral dust leads.")),
        ("q3", {"answer": ["immersed particle"]}, lambda first: replace(first, answer="immersed particle")),
        ("q6", {"term": ["aerosol"]}, lambda first: replace(first, answer="aerosol")),
    ],
    ids=["question", "right option", "answer", "statement", "gap of two words", "gap"],
)
def test_valid_stores_what_was_changed_in_the_edit(place, annotator, name, change, wording):
    queue = fill(place, [draft(name)])
    answer = post(annotator, f"{HOME}/{name}", fields_of(annotator.get(HOME), "accept") | change)
    [label] = queue.labels(DATASET)
    assert (label.accepted, label.wording) == (True, wording(draft(name).wording))
    only_gap = label.wording.question == draft(name).wording.question and name in ("q3", "q6")
    assert ("with your wording" in annotator.get(answer.headers["location"]).text) is not only_gap


LINE_ENDS = ("\nTwo\r\nlines\rthree  ", "Up & <b>\n\n", " x ")


@pytest.mark.parametrize("name", ["q1", "q2", "q3"])
def test_a_wording_that_nobody_touched_is_accepted_as_it_is(place, annotator, name):
    first = draft(name).wording
    options = tuple(f"{text}{end}" for text, end in zip(first.options, (*LINE_ENDS, ""), strict=False))
    answer = first.answer if name == "q3" else options[first.correct] if options else f"{first.answer}{LINE_ENDS[0]}"
    odd = replace(first, question=f"{first.question}{LINE_ENDS[0]}", answer=answer, options=options)
    queue = fill(place, [draft(name, wording=odd)])
    post(annotator, f"{HOME}/{name}", fields_of(annotator.get(HOME), "accept"))
    [label] = queue.labels(DATASET)
    assert (label.accepted, label.wording) == (True, None)


def test_an_edit_that_cannot_be_stored_comes_back_open(place, annotator):
    queue = fill(place, [draft("q1")])
    answer = post(annotator, f"{HOME}/q1", fields_of(annotator.get(HOME), "accept") | {"question": ["  "]})
    assert answer.status_code == 400
    assert re.search(r'<details id="edit" class="card" open>', answer.text)
    assert queue.labels(DATASET) == []


def test_two_right_answers_are_a_reason(place, annotator):
    queue = fill(place, [draft("q1")])
    send(annotator, annotator.get(HOME), "invalid", reason="two right answers")
    assert [label.reasons for label in queue.labels(DATASET)] == [("two right answers",)]


def test_questions_are_found_by_the_filters_of_the_address(place, client_of):
    queue = conflicting(place)
    queue.label(DATASET, Label("q3", "annotator", accepted=True, key="n3"))
    annotator, adjudicator = client_of("annotator"), client_of("adjudicator")

    def found(client, **wanted):
        return re.findall(
            r'<h2 class="annotate-entry">(?:<a href="([^"]*)">)?', client.get(f"{HOME}/questions", params=wanted).text
        )

    assert found(annotator) == ["", f"{HOME}/q3"]
    assert found(annotator, state="done") == [f"{HOME}/q3"]
    assert found(annotator, state="conflict") == [""]
    assert found(adjudicator, state="conflict") == [f"{HOME}/conflicts/q1"]
    assert found(annotator, state="todo") == []
    assert found(adjudicator, state="todo", kind="cloze", q="MINERAL") == [f"{HOME}/q3"]
    page = annotator.get(f"{HOME}/questions", params={"q": '"><b>'})
    assert 'value="&#34;&gt;&lt;b&gt;"' in page.text
    assert "No question fits" in page.text
    assert annotator.get(f"{HOME}/questions?state=lost").status_code == 422


def test_pages_count_alike(place, client_of):
    """What experts rejected is no longer accepted in the list of datasets either."""
    queue = conflicting(place)
    queue.label(DATASET, Label("q1", "eve", accepted=False, reasons=["wrong answer"], key="e", adjudicates=True))
    reader = client_of("adjudicator")
    row = re.search(rf">{DATASET}</a>.*?</tr>", reader.get("/results/datasets").text)[0]
    assert re.findall(r'class="number">(\d+)<', row) == ["1", "1", "0"]
    assert "1 accepted question of 2 drafts" in text_of(reader.get(f"/results/datasets/{DATASET}"))
    queue.label(
        DATASET, Label("q1", "adjudicator", accepted=False, reasons=["wrong answer"], key="e2", adjudicates=True)
    )
    history = reader.get(f"{HOME}/history")
    assert ("0 labels, 1 decision." in text_of(history), history.text.count("<article")) == (True, 1)
    queue.undo(DATASET, "adjudicator")
    exported = text_of(reader.get(f"{HOME}/export"))
    assert "2 labels, 1 decision and 0 comments on 2 questions" in exported


def conflicting(place):
    queue = fill(place, [draft("q1"), draft("q3")], overlap=2)
    queue.label(DATASET, Label("q1", "ann", accepted=True, key="a1"))
    queue.label(DATASET, Label("q1", "bob", accepted=False, reasons=["wrong answer"], key="b1"))
    return queue


def divided(place, names):
    """Three annotators' labels on items: two call each valid and one does not."""
    queue = fill(place, [draft(name) for name in names], overlap=3)
    for name in names:
        for who in ("zoe", "mia"):
            queue.label(DATASET, Label(name, who, accepted=True, key=f"{who}-{name}"))
        queue.label(DATASET, Label(name, "kim", accepted=False, reasons=["wrong answer"], key=f"kim-{name}"))
    return queue


def test_a_decision_leads_to_the_next_conflict_and_the_last_one_to_the_list(place, client_of):
    queue = divided(place, ("q1", "q2", "q4"))
    adjudicator = client_of("adjudicator")
    order = [item.draft.id for item in queue.conflicts(DATASET)]
    for number, name in enumerate(order):
        answer = post(adjudicator, f"{HOME}/conflicts/{name}", {"key": name, "verdict": "valid"})
        following = [f"/{one}" for one in order[number + 1 : number + 2]]
        assert answer.headers["location"] == f"{HOME}/conflicts{''.join(following)}?done=decided"
        assert "Decided." in adjudicator.get(answer.headers["location"]).text


def test_a_long_history_goes_on_behind_its_last_entry(queue, annotator, monkeypatch):
    monkeypatch.setattr("climassay.web.annotate.pages.MAX_HISTORY", 2)
    for name in ("q1", "q2", "q3"):
        queue.label(DATASET, Label(name, "annotator", accepted=False, reasons=["wrong answer"], key=f"key-{name}"))
    first = annotator.get(f"{HOME}/history")
    [older] = re.findall(r'href="([^"]*after=[^"]*)"', first.text)
    second = annotator.get(unescape(older))
    seen = [set(re.findall(rf'href="{HOME}/(q\d)"', page.text)) for page in (first, second)]
    assert seen == [{"q3", "q2"}, {"q1"}]
    assert "after=" not in second.text


def people_on(page):
    return {name for name in ("zoe", "mia", "kim") if re.search(rf"\b{name}\b", text_of(page))}


def test_adjudicators_see_who_said_what_once_it_is_decided(place, client_of):
    queue = divided(place, ("q1", "q2"))
    queue.comment(DATASET, "q1", "kim", "It freezes earlier.", key="c")
    adjudicator = client_of("adjudicator")
    pages = ("conflicts", "conflicts/q1", "history?annotator=kim", "questions")
    for path in pages:
        page = adjudicator.get(f"{HOME}/{path}")
        assert people_on(page) <= ({"kim"} if "history" in path else set()), path
    text = text_of(adjudicator.get(f"{HOME}/conflicts/q1"))
    assert all(f"Annotator {number}" in text for number in (1, 2, 3))
    assert "It freezes earlier." in text
    assert "wrong answer" not in text_of(adjudicator.get(f"{HOME}/history?annotator=kim"))
    post(adjudicator, f"{HOME}/conflicts/q1", {"key": "d", "like": "kim-q1"})
    page = adjudicator.get(f"{HOME}/conflicts/q1")
    assert people_on(page) == {"zoe", "mia", "kim"}
    assert "Annotator 1" not in page.text
    assert "wrong answer" in text_of(adjudicator.get(f"{HOME}/history?annotator=kim"))


def test_annotators_have_the_same_number_for_everybody_who_reads_an_item(place, client_of):
    queue = fill(place, [draft("q1")], overlap=2)
    annotator, adjudicator = client_of("annotator"), client_of("adjudicator")
    for who, accepted in (("annotator", True), ("bob", False)):
        queue.label(
            DATASET, Label("q1", who, accepted=accepted, reasons=() if accepted else ("wrong answer",), key=who)
        )
        queue.comment(DATASET, "q1", who, f"{who} speaking", key=f"c-{who}")
    number = re.search(r"(Annotator \d) \(you\)</strong>", annotator.get(f"{HOME}/q1").text)[1]
    seen = adjudicator.get(f"{HOME}/conflicts/q1").text
    assert re.search(rf"<strong>{number}</strong>.*?annotator speaking", seen, re.DOTALL)
    post(adjudicator, f"{HOME}/conflicts/q1", {"key": "d", "verdict": "valid"})
    assert ">bob<" not in annotator.get(f"{HOME}/q1").text
    assert ">bob<" in adjudicator.get(f"{HOME}/conflicts/q1").text


def test_a_discussion_is_read_by_those_who_have_labelled(place, client_of):
    queue = fill(place, [draft("q1")], overlap=3)
    queue.label(DATASET, Label("q1", "bob", accepted=True, key="b"))
    queue.comment(DATASET, "q1", "bob", "Bob's own opinion", key="c")
    annotator, adjudicator = client_of("annotator"), client_of("adjudicator")
    page = annotator.get(HOME)
    assert "own opinion" not in page.text
    answer = post(annotator, f"{HOME}/q1/comment", {"key": "mine", "comment": "Which\r\npage?"})
    assert answer.headers["location"] == f"{HOME}/q1?done=comment#discussion"
    page = annotator.get(f"{HOME}/q1?done=comment")
    assert "Which\npage?" in page.text
    assert "own opinion" not in page.text
    send(annotator, page)
    assert "own opinion" in annotator.get(f"{HOME}/q1").text
    assert post(adjudicator, f"{HOME}/conflicts/q1/comment", {"key": "a", "comment": "Page 3."}).status_code == 303
    assert "<strong>Adjudicator</strong>" in annotator.get(f"{HOME}/q1").text
    assert post(annotator, f"{HOME}/q1/comment", {"key": "none", "comment": " "}).status_code == 400
    assert post(adjudicator, f"{HOME}/conflicts/q1/comment", {"key": "none", "comment": ""}).status_code == 400
    assert annotator.get(f"{HOME}/history?annotator=bob").status_code == 403
    said = [(one.author, one.adjudicates) for one in queue.comments(DATASET, "q1")]
    assert said == [("bob", False), ("annotator", False), ("adjudicator", True)]


def test_a_conflict_is_decided_in_ones_own_words(place, client_of):
    queue = conflicting(place)
    adjudicator = client_of("adjudicator")
    path = f"{HOME}/conflicts/q1"
    assert post(adjudicator, path, {"key": "d1", "verdict": "invalid"}).status_code == 400
    assert post(adjudicator, path, {"key": "d1", "like": "withdrawn"}).status_code == 404
    edit = {"key": "d1", "verdict": "edit", "question": "Where?", "option": ["here", "there"], "correct": "0"}
    assert post(adjudicator, path, edit).status_code == 303
    assert queue.item(DATASET, "q1").state == "settled"
    assert [label.wording for label in queue.labels(DATASET) if label.adjudicates] == [
        Wording("Where?", "here", ("here", "there"), 0)
    ]


def test_settings_are_stored_and_faulty_ones_refused(queue, client_of):
    admin = client_of("admin")
    form = {"overlap": "3", "minutes": "5", "retrain_every": "7", "order": "random", "show_confidence": "true"}
    assert post(admin, f"{HOME}/settings", form).status_code == 303
    settings = queue.settings(DATASET)
    assert (settings.overlap, settings.lease_seconds, settings.retrain_every) == (3, 300, 7)
    assert (settings.order, settings.hide_confidence, settings.include_rejected) == ("random", False, False)
    assert post(admin, f"{HOME}/settings", form | {"overlap": "0"}).status_code == 400
    assert post(admin, f"{HOME}/settings", form | {"order": "alphabet"}).status_code == 422
    assert post(admin, f"{HOME}/settings", form | {"overlap": "many"}).status_code == 422
    assert queue.settings(DATASET) == settings


def test_what_is_not_there_is_not_found(queue, client_of):
    admin = client_of("admin")
    pages = ("", "/history", "/guidelines", "/q1", "/conflicts", "/conflicts/q1", "/agreement", "/settings", "/export")
    for path in (f"{HOME}/q99", f"{HOME}/conflicts/q99", *(f"/annotate/none{page}" for page in pages)):
        answer = admin.get(path)
        assert answer.status_code == 404, path
        assert "There is no" in text_of(answer) or "has no item" in text_of(answer)


@pytest.fixture
def taken(place):
    """Six items; ann has labelled the first one, and the second one lies before her."""
    store = fill(place, [draft("q1"), draft("q2")])
    store.label(DATASET, Label("q1", "ann", accepted=True, key="a1"))
    store.next(DATASET, "ann")
    return store


@pytest.mark.parametrize("name", ["q1", "q2"], ids=["labelled by another", "before another"])
def test_an_item_in_other_hands_is_neither_shown_nor_labelled(taken, client_of, name):
    client = client_of("annotator")
    before = taken.labels(DATASET, current=False)
    assert client.get(f"{HOME}/{name}").status_code == 403
    assert post(client, f"{HOME}/{name}", {"key": "k", "verdict": "valid"}).status_code == 403
    assert post(client, f"{HOME}/{name}/skip").status_code == 403
    assert taken.labels(DATASET, current=False) == before
    assert taken.progress(DATASET, "annotator").skipped == 0


def test_undo_takes_back_only_ones_own(taken, client_of):
    post(client_of("annotator"), f"{HOME}/undo", {"last": "a1"})
    assert [label.key for label in taken.labels(DATASET)] == ["a1"]


def test_people_go_by_the_names_that_they_are_shown_by(client_of, place):
    store = fill(place, [draft("q1")], overlap=2)
    place.accounts.add("ann", display_name="Ann Lee")
    for name in ("ann", "guest"):
        store.label(DATASET, Label("q1", name, accepted=True, key=name))
    client = client_of("adjudicator")
    shown = text_of(client.get(f"{HOME}/agreement"))
    assert "Ann Lee" in shown
    assert "guest" in shown, "imported labels may name people without an account"
    assert "ann," not in shown
    assert "What Ann Lee said" in text_of(client.get(f"{HOME}/history?annotator=ann"))
