"""What is told of a debate, and the same as data."""

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.factcheck import AdvocateOpinion, DebateSettings, FollowUp, as_data, from_data
from climassay.factcheck.certainty import (
    AGREEMENT,
    CONFIDENCES,
    EVIDENCE,
    allowed_confidences,
    nearest_confidence,
)
from climassay.factcheck.debate.context import PassageRegistry
from climassay.factcheck.debate.requests import FoundPassage
from climassay.factcheck.transcript import Activity, Retrieval, event_data, event_from_data
from debate_parts import Shelf, company_of
from debate_tables import PAMPHLET, PHYSICAL, SUN, UNGRADED, Script, View, among, held
from factcheck_transcripts import full_transcript, passage, transcripts


@given(transcripts())
def test_any_transcript_comes_back_as_it_was(transcript):
    text = json.dumps(as_data(transcript), allow_nan=False)
    assert from_data(json.loads(text)) == transcript


def test_whole_numbers_may_stand_for_numbers_and_defaults_may_be_missing():
    data = as_data(full_transcript())
    data["advocates"][0]["weight"] = 1
    del data["stability"], data["warnings"], data["sources"][0]["citation"]
    read = from_data(data)
    assert read == replace(full_transcript(), stability=None, warnings=())
    assert isinstance(read.advocates[0].weight, float)


def changed(*path, to):
    data = copy.deepcopy(as_data(full_transcript()))
    *way, last = path
    place = data
    for step in way:
        place = place[step]
    if to is KeyError:
        del place[last]
    else:
        place[last] = to
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "data: Input should be"),
        ("text", "data: Input should be"),
        (changed("claim", to=None), "claim: "),
        (changed("claim", "text", to=KeyError), "claim.text: Field required"),
        (changed("claim", "text", to=3), "claim.text: Input should be a valid string"),
        (changed("rounds", 0, "number", to=True), "rounds[0].number: Input should be a valid integer"),
        (changed("rounds", 0, "number", to=1.5), "rounds[0].number: Input should be a valid integer"),
        (changed("rounds", 0, "opinions", to="none"), "rounds[0].opinions: Input should be a valid array"),
        (
            changed("rounds", 1, "opinions", 2, "levels", "evidence", to="strong"),
            "evidence: Input should be 'limited', 'medium' or 'robust'",
        ),
        (
            changed("advocates", 0, "weight", to=float("nan")),
            "advocates[0].weight: Input should be a finite number",
        ),
        (
            changed("advocates", 0, "weight", to=10**400),
            "advocates[0].weight: Input should be a finite number",
        ),
        (changed("prefixed", to=1), "prefixed: Input should be a valid boolean"),
        (changed("verdict", "explanation", 0, "citations", to=[9]), "verdict names passage 9"),
        (changed("rounds", 1, "opinions", 0, "retrieved", to=[0]), "opinion of IPCC in round 2 names passage 0"),
        (changed("rounds", 1, "follow_ups", 0, "retrieved", to=[7]), "question to Pamphlet in round 2 names passage 7"),
        (changed("sources", 1, "number", to=1), "numbered from 1"),
        (changed("subclaims", 1, "end", to=999), "subclaim 2 does not lie within the claim"),
        (changed("without", 0, to=["IPCC"]), "without[0][1]: Field required"),
        (changed("verdicts", to={}), "verdicts is not a field"),
        (changed("rounds", 1, "opinions", 2, "believes", to="no"), "rounds[1].opinions[2].believes is not a field"),
    ],
    ids=range(20),
)
def test_damaged_data_is_refused_with_its_place(data, message):
    with pytest.raises(InputError) as refused:
        from_data(data)
    assert message in str(refused.value)


def events_of(transcript):
    yield transcript.subclaims
    yield Retrieval(transcript.sources)
    for one in transcript.rounds:
        yield Activity("mediator", "weighing", one.number)
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


@pytest.mark.parametrize(
    ("kind", "data", "sentence"),
    [
        ("opinion", {"advocate": "IPCC"}, "round: Field required"),
        ("decision", {"advocate": "IPCC"}, "round: Field required"),
        ("passages", {"passages": [{"number": 1}]}, "passage: Field required"),
        ("cheer", {}, "'cheer' is not an event of a debate"),
    ],
)
def test_damaged_events_are_told_in_one_sentence(kind, data, sentence):
    with pytest.raises(InputError, match=sentence):
        event_from_data(kind, data)


def test_passages_are_told_before_anybody_cites_them_and_again_when_they_lie_before_another_one():
    script = Script(
        {
            "Physical": [View(says="It did not [1].")],
            "Pamphlet": [View("correct"), View("inaccurate")],
            "mediator": [View(asks=("Physical",), says="So it is [1].")],
        },
        question="What melts?",
    )
    shelves = Shelf("physical", "The Sun is steady.", "Ice melts."), Shelf("pamphlet", "The Sun caused the warming.")
    advocates = [among(one, min_cosine=None, passages=1) for one in (PHYSICAL, PAMPHLET)]
    settings = DebateSettings(
        tuple(advocates),
        model="local:scripted",
        scale="climate-feedback",
        profile=UNGRADED,
        split="whole",
        check_claims=False,
    )
    found = held(script, settings, company_of(script.model, *shelves), SUN)
    told, cited = {}, set()
    for event in found.events:
        if isinstance(event, Retrieval):
            told.update((source.number, source) for source in event.passages)
        said = event.explanation if isinstance(event, AdvocateOpinion) else ()
        said = event.reply if isinstance(event, FollowUp) else said
        cited.update(number for sentence in said for number in sentence.citations)
        assert cited <= set(told)
    assert cited
    assert len(found.transcript.rounds) > 1
    assert tuple(told[number] for number in sorted(told)) == found.transcript.sources


def test_news_of_passages_are_those_that_came_or_changed_since():
    one, two = (FoundPassage(passage(number), "ar6", 0.5, "Text.") for number in (1, 2))
    book = PassageRegistry()
    assert book.take_changes() == ()
    book.add([one], "IPCC")
    assert [source.number for source in book.take_changes()] == [1]
    book.add([one], "IPCC")
    assert book.take_changes() == ()
    book.add([two, one], "WMO")
    assert [(source.number, source.advocates) for source in book.take_changes()] == [
        (1, ("IPCC", "WMO")),
        (2, ("WMO",)),
    ]


@pytest.mark.parametrize(
    ("evidence", "agreement", "allowed"),
    [
        ("limited", "low", ("very low", "low")),
        ("limited", "medium", ("very low", "low", "medium")),
        ("limited", "high", ("low", "medium", "high")),
        ("medium", "low", ("very low", "low", "medium")),
        ("medium", "medium", ("low", "medium", "high")),
        ("medium", "high", ("medium", "high", "very high")),
        ("robust", "low", ("low", "medium", "high")),
        ("robust", "medium", ("medium", "high", "very high")),
        ("robust", "high", ("high", "very high")),
    ],
)
def test_confidence_increases_towards_the_corner_of_high_evidence_and_agreement(evidence, agreement, allowed):
    # Mastrandrea et al. (2010), figure 1: the levels lie on the diagonals of the table.
    assert allowed_confidences(evidence, agreement) == allowed


@given(st.sampled_from(EVIDENCE), st.sampled_from(AGREEMENT), st.sampled_from(CONFIDENCES))
def test_an_incoherent_confidence_becomes_the_nearest_one_allowed(evidence, agreement, confidence):
    allowed = allowed_confidences(evidence, agreement)
    found = nearest_confidence(evidence, agreement, confidence)
    assert found in allowed
    place = CONFIDENCES.index(confidence)
    steps = [abs(CONFIDENCES.index(level) - place) for level in allowed]
    assert abs(CONFIDENCES.index(found) - place) == min(steps)
    assert nearest_confidence(evidence, agreement, found) == found
