"""Rubrics of long questions, written by people in the browser: rows, overlap, adjudication, agreement, export."""

import json
import re

import pytest

from api_server import ApiServer, Reply, schema_of
from climassay import annotator_agreement, collect_rubrics, export_labels
from climassay.errors import InputError
from climassay.generation.annotation import AnnotationStore, Label
from climassay.questions import Criterion, read_questions
from command_line import done
from web_parts import post

HOME = "/annotate/written"
RAIN = {
    "id": "rain", "kind": "longform",
    "question": "Why does it rain?", "audience": "a pupil", "answer": "Vapour condenses & falls.",
    "passage": "Air that rises cools, and its vapour condenses.", "document": "Weather", "section": "Clouds",
}  # fmt: skip
SNOW = {"id": "snow", "question": "Why does it snow?", "rubric": ["[should] Names ice (weight 3)"]}
VAPOUR = ("Names the vapour that condenses", "2", "must", "Weather, p. 3")
COOLING = ("Says that rising air cools", "1", "should", "")


@pytest.fixture
def store(place, tmp_path):
    def begun(*questions, overlap=2):
        file = tmp_path / "asked.jsonl"
        file.write_text("\n".join(map(json.dumps, questions or (RAIN,))), encoding="utf-8")
        collect_rubrics(file, "written", overlap=overlap, workspace=place)
        return AnnotationStore(place.records)

    return begun


def fields(rows, **more):
    names = ("criterion", "weight", "must", "source")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)} | more


def key_of(page):
    return re.search(r'name="key" value="([^"]*-rubric)"', page.text)[1]


def send(client, page, rows, **more):
    action = re.search(r'<form id="rubric" method="post" action="([^"]*)"', page.text)[1]
    return post(client, action, fields(rows, key=key_of(page), verdict="edit", **more))


def rows_of(page):
    """The rows of a page's form: text, weight, level, source."""
    texts = re.findall(r'<textarea id="criterion-\d+"[^>]*>([^<]*)</textarea>', page.text)
    weights = re.findall(r'name="weight" value="([^"]*)"', page.text)
    chosen = re.findall(r'<select id="must-\d+"[^>]*>(.*?)</select>', page.text)
    levels = [(re.findall(r"<option selected>(\w+)<", one) or ["must"])[0] for one in chosen]
    sources = re.findall(r'name="source" value="([^"]*)"', page.text)
    return [*zip(texts, weights, levels, sources, strict=True)]


def focused(page):
    return re.search(r'id="criterion-(\d+)"[^>]*autofocus', page.text)


PLAN = """
benchmarks = ["long.jsonl"]
tasks = ["longform"]

[[model]]
name = "openai:writer"

[metrics]
judge = "openai:judge"
"""


def marking(asked):
    """An answer; and a judge that finds the first criterion met and no other, and rates everything with 5."""
    schema = schema_of(asked.body)
    if schema is None:
        return Reply("Air rises and cools.")
    said, found = {"quotation": "Air rises and cools", "reason": "It says so."}, {}
    for number, name in enumerate(schema["required"]):
        criterion = {"verdict": "not met" if number else "met"}
        found[name] = said | (criterion if name.startswith("criterion_") else {"issues": [], "rating": "5"})
    return Reply(json.dumps(found))


def test_two_people_write_one_decides_and_a_model_is_scored(store, place, client_of, tmp_path, monkeypatch, climassay):
    kept = store()
    first, second, judge = client_of("annotator"), client_of("admin"), client_of("adjudicator")
    page = first.get(HOME)
    for words in ("Why does it rain?", "a pupil", "Vapour condenses &amp; falls.", "Air that rises cools", "Weather"):
        assert words in page.text
    assert rows_of(page) == [("", "1", "must", "")]
    send(first, page, [VAPOUR])
    assert "weight 2" in first.get(f"{HOME}/history").text
    send(second, second.get(HOME), [COOLING, ("Names vapour that condenses", "1", "must", "")])
    [item] = kept.items("written")
    assert item.state == "conflict"
    agreed = annotator_agreement("written", workspace=place).to_dict()["rubrics"]
    assert (agreed.questions, agreed.matched, agreed.shared.value) == (1, 1, pytest.approx(2 / 3))
    shown = judge.get(f"{HOME}/agreement").text
    assert "Criteria that both have" in shown
    assert "67%" in shown
    with pytest.raises(InputError, match="No rubric of written is final"):
        export_labels("written", tmp_path / "none.jsonl", "rubrics", workspace=place)

    here = f"{HOME}/conflicts/{item.draft.id}"
    page = judge.get(here)
    assert "2 criteria" in judge.get(f"{HOME}/conflicts").text
    assert rows_of(page) == [("", "1", "must", "")]
    ticked = re.findall(r'name="take" value="([^"]*)"><span>(.*?)</span></label>', page.text)
    [cooling] = [value for value, words in ticked if COOLING[0] in words]
    [vapour] = [value for value, words in ticked if VAPOUR[0] in words]
    taken = send(judge, page, [], act="take", take=[cooling])
    assert rows_of(taken) == [COOLING]
    assert kept.item("written", item.draft.id).state == "conflict"
    # What is ticked when it is decided belongs to the rubric, too.
    edited = (COOLING[0], "3", *COOLING[2:])
    send(judge, taken, [edited], take=[vapour])
    assert kept.item("written", item.draft.id).state == "settled"
    assert rows_of(judge.get(here)) == [edited, VAPOUR]

    assert "format=rubrics" in judge.get(f"{HOME}/export").text
    download = judge.get(f"{HOME}/export?format=rubrics")
    file = tmp_path / "long.jsonl"
    export_labels("written", file, "rubrics", workspace=place)
    assert file.read_bytes() == download.content
    [question] = read_questions(file).questions
    assert question.rubric == (Criterion(edited[0], 3, "should"), Criterion(VAPOUR[0], 2, "must", VAPOUR[3]))
    plain = (question.id, question.audience, question.answer, question.context, question.document, question.section)
    assert plain == ("rain", "a pupil", RAIN["answer"], RAIN["passage"], "Weather", "Clouds")

    plan = tmp_path / "long.toml"
    plan.write_text(PLAN, encoding="utf-8")
    with ApiServer(rule=marking) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        told = json.loads(done(climassay("evaluate run", plan, "-w", tmp_path / "scored", "--json")))
    assert "Says that rising air cools" in "".join(one.content for one in server.asked)
    [score] = [one for one in told["scores"] if one["metric"] == "rubric_score" and one["level"] == "overall"]
    # Cooling, with a weight of 3 of 5, is met.
    assert (score["estimate"]["value"], score["estimate"]["n"]) == (pytest.approx(0.6), 1)


def test_rows_are_added_moved_and_taken_away_without_being_stored(store, client_of):
    kept = store()
    client = client_of("annotator")
    page = client.get(HOME)
    page = send(client, page, [VAPOUR], act="add")
    assert (rows_of(page), focused(page)[1]) == ([VAPOUR, ("", "1", "must", "")], "2")
    page = send(client, page, [VAPOUR, COOLING], act="up-1")
    assert (rows_of(page), focused(page)[1]) == ([COOLING, VAPOUR], "1")
    page = send(client, page, rows_of(page), act="down-0")
    assert rows_of(page) == [VAPOUR, COOLING]
    for hostile in ("remove-9", "up-0", "down-99999999999999999999", "remove-x", "nonsense", "up-²"):
        assert rows_of(send(client, page, [VAPOUR, COOLING], act=hostile)) == [VAPOUR, COOLING], hostile
    page = send(client, page, [VAPOUR, COOLING], act="remove-0")
    assert (rows_of(page), focused(page)[1]) == ([COOLING], "1")
    page = send(client, page, [COOLING], act="remove-0")
    assert rows_of(page) == [("", "1", "must", "")]
    assert not kept.labels("written", current=False)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "at least one criterion"),
        ([("", "1", "must", "")], "at least one criterion"),
        ([VAPOUR, ("", "1", "must", "a source")], "criterion 2 of the rubric has no text"),
        ([(VAPOUR[0], "much", "must", "")], "has the weight"),
        ([(VAPOUR[0], "1", "maybe", "")], "instead of must or should"),
        ([(f"{number}", "1", "must", "") for number in range(51)], "more than 50"),
        ([("x" * 9_990, "1", "must", "")], "The rubric has"),
    ],
)
def test_what_is_no_rubric_is_refused_and_kept_on_the_page(store, client_of, rows, says):
    kept = store()
    client = client_of("annotator")
    reply = send(client, client.get(HOME), rows)
    assert reply.status_code == 400
    assert says in reply.text
    assert [row[0] for row in rows_of(reply)] == ([row[0] for row in rows] or [""])
    assert not kept.labels("written")


def test_a_rubric_comes_back_to_be_changed_taken_back_or_skipped(store, client_of):
    kept = store(RAIN, SNOW, overlap=1)
    client = client_of("annotator")
    page = client.get(HOME)
    if "Why does it rain?" not in page.text:
        post(client, re.search(r'action="([^"]*/skip)"', page.text)[1])
        page = client.get(HOME)
    send(client, page, [("<b>bold</b> & more", "1", "must", "")])
    [said] = kept.history("written", "annotator")
    page = client.get(f"{HOME}/{said.draft}")
    assert "<b>" not in page.text
    send(client, page, [VAPOUR])
    assert rows_of(client.get(f"{HOME}/{said.draft}")) == [VAPOUR]
    withdrawn = [one for one in kept.labels("written", current=False) if one.withdrawn_at]
    assert len(withdrawn) == 1
    post(client, f"{HOME}/undo", {"last": kept.history("written", "annotator")[0].key})
    assert not kept.labels("written")


def test_a_rubric_that_came_with_a_question_may_stay_as_it_is(store, place, client_of, tmp_path):
    kept = store(SNOW)
    first, second = client_of("annotator"), client_of("admin")
    page = first.get(HOME)
    assert "came with the question" in page.text
    assert rows_of(page) == [("Names ice", "3", "should", "")]
    send(first, page, rows_of(page))
    [item] = kept.items("written")
    kept.label("written", Label(item.draft.id, "bob", accepted=True, key="b"))
    assert kept.item("written", item.draft.id).state == "settled"
    export_labels("written", tmp_path / "long.jsonl", "rubrics", workspace=place)
    [question] = read_questions(tmp_path / "long.jsonl").questions
    assert question.rubric == (Criterion("Names ice", 3, "should"),)
    assert second.get(HOME).status_code == 200


def test_a_label_without_a_rubric_is_refused(store):
    kept = store()
    [item] = kept.items("written")
    with pytest.raises(InputError, match="at least one criterion"):
        kept.label("written", Label(item.draft.id, "bob", accepted=True, key="b"))


def test_other_files_and_datasets_are_refused(store, place, tmp_path):
    kept = store()
    with pytest.raises(InputError, match="started with another"):
        store(SNOW)
    store()
    assert len([*kept.items("written")]) == 1
    file = tmp_path / "cloze.jsonl"
    file.write_text(json.dumps({"question": "It <MASK>.", "answer": "rains"}), encoding="utf-8")
    with pytest.raises(InputError, match="no long-form question"):
        collect_rubrics(file, "other", workspace=place)
