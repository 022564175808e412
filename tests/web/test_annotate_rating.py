"""Long answers rated in the browser: forms, conflicts, agreement, and what becomes of the ratings."""

import re

import pytest

from climassay import annotator_agreement
from climassay.evaluation import BlindAnswer
from climassay.generation import DatasetStore
from climassay.generation.annotation import AnnotationStore
from climassay.generation.annotation.long_answers import collect_ratings, rating_agreement, rating_drafts
from climassay.questions import Criterion, Question
from web_parts import post

HOME = "/annotate/rated"
QUESTION = Question("q", "longform", "Why does it rain?", "", audience="a pupil", rubric=(Criterion("Names vapour"),))
ANSWERS = [BlindAnswer("one", QUESTION, "Vapour condenses."), BlindAnswer("two", QUESTION, "Clouds <b>weep</b>.")]


@pytest.fixture
def store(place):
    def begun(overlap=2, **options):
        datasets = DatasetStore(place.records)
        datasets.begin("rated", {"ratings": "r"})
        datasets.save("rated", rating_drafts(ANSWERS, **options))
        found = AnnotationStore(place.records)
        found.configure("rated", found.settings("rated").__class__(overlap=overlap))
        return found

    return begun


def rate(client, page=None, **ratings):
    page = page or client.get(HOME)
    fields = {"rating-0": "met", "rating-5": "4", **{name.replace("_", "-"): one for name, one in ratings.items()}}
    draft, key = re.search(r'data-draft="(\w*)"', page.text)[1], re.search(r'name="key" value="([^"]*)"', page.text)[1]
    return draft, post(client, f"{HOME}/{draft}", {"key": key, "verdict": "edit", **fields})


def test_answers_are_rated_conflicts_decided_and_the_ratings_come_back(store, place, client_of):
    kept = store()
    first, second, judge = client_of("annotator"), client_of("admin"), client_of("adjudicator")
    page = first.get(HOME)
    for words in ("Why does it rain?", "a pupil", "Names vapour", "contradicted", "Accuracy", "Is what it says right?"):
        assert words in page.text
    assert "<b>weep" not in page.text
    one, _ = rate(first, page)
    other, _ = rate(first, rating_5="2")
    assert {one, other} == {item.draft.id for item in kept.items("rated")}
    assert "4</strong> accuracy" in first.get(f"{HOME}/history").text
    for _ in range(2):
        rate(second, rating_5="5")
    # A point apart is no conflict, three are.
    states = {item.draft.id: item.state for item in kept.items("rated")}
    assert states == {one: "settled", other: "conflict"}
    assert "accuracy" in judge.get(f"{HOME}/agreement").text.lower()
    assert rating_agreement(kept.items("rated"))["accuracy"].n == 2
    told = annotator_agreement("rated", workspace=place).to_dict()
    assert told["ratings"]["accuracy"].n == 2
    page = judge.get(f"{HOME}/conflicts/{other}")
    key = re.search(r'name="key" value="([^"]*)"', page.text)[1]
    post(judge, f"{HOME}/conflicts/{other}", {"key": key, "verdict": "edit", "rating-5": "3"})
    rated, preferred = collect_ratings(kept.items("rated"))
    assert not preferred
    assert sorted(one.ratings["accuracy"] for one in rated) == [(3.0,), (4.0, 5.0)]
    [agreed] = [one for one in rated if len(one.ratings["accuracy"]) == 2]
    assert (agreed.verdicts, agreed.answer.rubric[0].text) == ({0: ("met", "met")}, "Names vapour")


def test_nothing_rated_is_refused_and_the_page_keeps_what_was_chosen(store, client_of):
    kept = store()
    client = client_of("annotator")
    _, reply = rate(client, rating_0="", rating_5="")
    assert "at least one" in reply.text
    _, reply = rate(client, rating_5="9")
    assert "not a rating" in reply.text
    assert re.search(r'name="rating-0" value="met" checked', reply.text)
    assert not kept.labels("rated")


def test_pairs_are_compared(store, client_of):
    kept = store(overlap=1, pairs=5)
    client = client_of("annotator")
    page = client.get(HOME)
    assert "First answer" in page.text
    rate(client, page, rating_0="second", rating_5="")
    [_], [pair] = kept.items("rated"), collect_ratings(kept.items("rated"))[1]
    assert {pair.first, pair.second} == {one.answer for one in ANSWERS}
    assert (pair.better, pair.audience) == ("second", "a pupil")
