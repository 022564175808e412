import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given

from climassay.errors import InputError
from climassay.factcheck.transcript import as_data, from_data
from factcheck_transcripts import full_transcript, transcripts, unchecked


@given(transcripts())
def test_any_transcript_comes_back_as_it_was(transcript):
    text = json.dumps(as_data(transcript), allow_nan=False)
    assert from_data(json.loads(text)) == transcript


def test_a_full_transcript_comes_back_as_it_was_with_its_keys_in_order():
    transcript = full_transcript()
    data = json.loads(json.dumps(as_data(transcript)))
    assert from_data(data) == transcript
    assert list(data)[:4] == ["format", "claim", "scale", "advocates"]
    assert as_data(from_data(data)) == data


def test_what_follows_from_the_records_is_written_for_other_readers():
    data = as_data(full_transcript())
    assert data["sources"][0]["citation"] == full_transcript().sources[0].citation
    assert data["sources"][0]["passage"]["url"] == "https://example.org/report?page=11"


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
        ([], "must be a table of names and values"),
        ("text", "not 'text'"),
        (changed("format", to=2), "format 2"),
        (changed("format", to=KeyError), "format None"),
        (changed("claim", to=None), "claim: "),
        (changed("claim", "text", to=KeyError), "claim.text: Field required"),
        (changed("claim", "text", to=3), "claim.text: Input should be a valid string"),
        (changed("claim", "colour", to="red"), "claim.colour: Unexpected"),
        (changed("rounds", 0, "number", to=True), "rounds[0].number: Input should be a valid integer"),
        (changed("rounds", 0, "number", to=1.5), "rounds[0].number: Input should be a valid integer"),
        (changed("rounds", 0, "opinions", to="none"), "rounds[0].opinions: Input should be a valid array"),
        (
            changed("rounds", 1, "opinions", 2, "levels", "evidence", to="strong"),
            "evidence: Input should be 'limited', 'medium' or 'robust'",
        ),
        (
            changed("rounds", 1, "opinions", 2, "levels", "evidence", to=["low"]),
            "evidence: Input should be 'limited', 'medium' or 'robust'",
        ),
        (
            changed("verdict", "probabilities", 0, to=float("nan")),
            "verdict.probabilities[0]: Input should be a finite number",
        ),
        (
            changed("verdict", "probabilities", 0, to=10**400),
            "verdict.probabilities[0]: Input should be a finite number",
        ),
        (changed("prefixed", to=1), "prefixed: Input should be a valid boolean"),
        (changed("verdict", "explanation", 0, "citations", to=[9]), "verdict names passage 9"),
        (changed("rounds", 1, "opinions", 0, "retrieved", to=[0]), "opinion of IPCC in round 2 names passage 0"),
        (changed("rounds", 1, "follow_ups", 0, "retrieved", to=[7]), "question to Pamphlet in round 2 names passage 7"),
        (changed("sources", 1, "number", to=1), "numbered from 1"),
        (changed("subclaims", 1, "end", to=999), "subclaim 2 does not lie within the claim"),
        (changed("without", 0, to=["IPCC"]), "without[0][1]: Field required"),
    ],
    ids=range(22),
)
def test_damaged_data_is_refused_with_its_place(data, message):
    with pytest.raises(InputError) as refused:
        from_data(data)
    assert message in str(refused.value)


@pytest.mark.parametrize(("earlier", "now"), [("low", "limited"), ("medium", "medium"), ("high", "robust")])
def test_levels_of_evidence_in_earlier_words_are_read_in_those_of_the_ipcc(earlier, now):
    path = ("rounds", 1, "opinions", 2, "levels", "evidence")
    given = changed(*path, to=earlier)
    before = json.dumps(given)
    assert as_data(from_data(given)) == changed(*path, to=now)
    assert json.dumps(given) == before


def test_a_check_without_debate_comes_back():
    transcript = unchecked("Hello.", "not checkable", error="It states nothing.")
    assert from_data(json.loads(json.dumps(as_data(transcript)))) == transcript


def test_what_is_no_record_is_not_written():
    with pytest.raises(TypeError, match="not set"):
        as_data(replace(full_transcript(), warnings={"a"}))
