"""What is told of a debate, and the same as data."""

import json

import pytest
from hypothesis import given, settings

from climassay.errors import InputError
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.debate.context import SourceBook
from climassay.factcheck.debate.steps import Found
from climassay.factcheck.transcript import (
    EVENT_KINDS,
    AdvocateOpinion,
    FollowUp,
    Retrieval,
    event_data,
    event_from_data,
)
from debate_parts import Shelf, company_of
from debate_tables import PAMPHLET, PHYSICAL, SCORED, SUN, Script, View, among, held
from factcheck_transcripts import full_transcript, passage, transcripts


def events_of(transcript):
    yield transcript.subclaims
    yield Retrieval(transcript.sources)
    for one in transcript.rounds:
        yield from (*one.follow_ups, *one.opinions, *one.parts, one.decision)
    yield transcript.verdict


def again(event):
    kind, data = event_data(event)
    return event_from_data(kind, json.loads(json.dumps(data, allow_nan=False)))


@settings(max_examples=15)
@given(transcripts())
def test_any_event_comes_back_as_it_was(transcript):
    for event in events_of(transcript):
        assert again(event) == event


def test_every_kind_of_event_has_a_name():
    assert {event_data(event)[0] for event in events_of(full_transcript())} == set(EVENT_KINDS)


@pytest.mark.parametrize(
    ("kind", "data", "sentence"),
    [
        ("opinion", {"advocate": "IPCC"}, "round: Field required"),
        ("decision", {"advocate": "IPCC"}, "round: Field required"),
        ("passages", {"passages": [{"number": 1}]}, "passage: Field required"),
        ("cheer", {}, "'cheer' is nothing that happens in a debate"),
    ],
)
def test_damaged_events_are_told_in_one_sentence(kind, data, sentence):
    with pytest.raises(InputError, match=sentence):
        event_from_data(kind, data)


def test_passages_are_told_before_anybody_cites_them_and_again_when_they_lie_before_another_one():
    script = Script({"Physical": [View(says="It did not [1].")], "Pamphlet": [View("correct"), View("inaccurate")]})
    shelves = Shelf("physical", "The Sun is steady.", "Ice melts."), Shelf("pamphlet", "The Sun caused the warming.")
    advocates = [among(one, min_cosine=None, passages=1) for one in (PHYSICAL, PAMPHLET)]
    settings = DebateSettings(
        tuple(advocates),
        model="local:scripted",
        scale="climate-feedback",
        profile=SCORED,
        split="none",
        check_claims=False,
    )
    found = held(script, settings, company_of(script.model, *shelves), SUN)
    told, cited = {}, set()
    for event in found.events:
        if isinstance(event, Retrieval):
            told.update((source.number, source) for source in event.sources)
        said = event.explanation if isinstance(event, AdvocateOpinion) else ()
        said = event.reply if isinstance(event, FollowUp) else said
        cited.update(number for sentence in said for number in sentence.citations)
        assert cited <= set(told)
    assert cited
    assert len(found.transcript.rounds) > 1
    assert tuple(told[number] for number in sorted(told)) == found.transcript.sources


def test_news_of_passages_are_those_that_came_or_changed_since():
    one, two = (Found(passage(number), "ar6", 0.5, "Text.") for number in (1, 2))
    book = SourceBook()
    assert book.news() == ()
    book.add([one], "IPCC")
    assert [source.number for source in book.news()] == [1]
    book.add([one], "IPCC")
    assert book.news() == ()
    book.add([two, one], "WMO")
    assert [(source.number, source.advocates) for source in book.news()] == [(1, ("IPCC", "WMO")), (2, ("WMO",))]
