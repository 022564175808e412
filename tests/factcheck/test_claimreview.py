import json
from dataclasses import replace

import pytest

from climassay.errors import InputError
from climassay.factcheck import Claim, claim_review
from climassay.factcheck.scales import CLIMATE_FEEDBACK, CLIMATE_FEVER
from factcheck_transcripts import checked, full_transcript, sentence, unchecked

WHO = {"url": "https://example.org/checks/1", "author": "The Checkers"}
NEI = CLIMATE_FEEDBACK.nei


def the_claim(text="It warms.", label="correct", **changes):
    return replace(checked(text, ({"IPCC": label}, label)), **changes)


def check_requirements(review):
    """What Google's documentation of fact checks requires and says of the values."""
    assert review["@context"] == "https://schema.org"
    assert review["@type"] == "ClaimReview"
    for name in ("claimReviewed", "url"):
        assert isinstance(review[name], str)
        assert review[name]
    rating = review["reviewRating"]
    assert rating["@type"] == "Rating"
    assert rating["alternateName"]
    if "ratingValue" in rating:
        assert 1 <= rating["worstRating"] < rating["bestRating"]
        assert rating["worstRating"] <= rating["ratingValue"] <= rating["bestRating"]
    assert review["author"]["@type"] in ("Organization", "Person")
    assert review["itemReviewed"]["@type"] == "Claim"
    author = review["itemReviewed"].get("author", {"@type": "Person", "name": "x"})
    assert author["@type"] in ("Organization", "Person")
    assert author["name"]


@pytest.mark.parametrize("label", CLIMATE_FEEDBACK.labels)
def test_every_verdict_has_what_is_required(label):
    review = json.loads(json.dumps(claim_review(the_claim(label=label), **WHO)))
    check_requirements(review)
    assert review["claimReviewed"] == "It warms."
    assert review["reviewRating"]["alternateName"] == label


def test_the_more_true_the_higher_the_rating():
    values = [
        claim_review(the_claim(label=label), **WHO)["reviewRating"]["ratingValue"] for label in CLIMATE_FEEDBACK.labels
    ]
    assert values == list(range(1, 13))
    refuted = checked("It cools.", ({"IPCC": "REFUTES"}, "REFUTES"), scale=CLIMATE_FEVER)
    rating = claim_review(refuted, **WHO)["reviewRating"]
    assert (rating["ratingValue"], rating["bestRating"]) == (1, 3)


def test_without_enough_information_or_evidence_there_is_nothing_to_rate():
    unborne = checked("It warms.", ({"IPCC": "correct"}, "correct"), explanation=(sentence("I know.", in_house=True),))
    for transcript in (the_claim(label=NEI), unborne):
        with pytest.raises(InputError, match="ended as 'not enough information'"):
            claim_review(transcript, **WHO)


def test_what_is_known_is_said():
    made = full_transcript()
    review = claim_review(
        replace(made, claim=replace(made.claim, appearance="https://daily.example/column")),
        **WHO,
        author_url="https://example.org",
        published="2024-05-31",
        claimant="Organization",
    )
    check_requirements(review)
    assert review["datePublished"] == "2024-05-31"
    assert review["author"] == {"@type": "Organization", "name": "The Checkers", "url": "https://example.org"}
    assert review["itemReviewed"] == {
        "@type": "Claim",
        "appearance": {"@type": "CreativeWork", "url": "https://daily.example/column"},
        "author": {"@type": "Organization", "name": "A columnist, The Daily"},
        "datePublished": "2023-04-28",
    }
    # What no passage bears, and every mark of ours, stays out of what others publish.
    assert review["reviewBody"] == "The Sun has not become brighter since 1950. Carbon dioxide has."
    assert review["citation"] == [
        {
            "@type": "CreativeWork",
            "name": "Physical climate",
            "pagination": "11",
            "url": "https://example.org/report?page=11",
        },
        {"@type": "CreativeWork", "name": "State of the Climate, Physical climate", "pagination": "12"},
        {"@type": "CreativeWork", "name": "A pamphlet", "pagination": "13"},
    ]
    assert "Confidence of the model: very high." in review["reviewRating"]["ratingExplanation"]


def test_a_source_that_is_an_address_is_where_the_claim_appears():
    claim = Claim("It warms.", "https://daily.example/column", "15-May-23")
    item = claim_review(the_claim(claim=claim), **WHO)["itemReviewed"]
    assert item == {"@type": "Claim", "appearance": {"@type": "CreativeWork", "url": "https://daily.example/column"}}


@pytest.mark.parametrize(
    ("appearance", "work"),
    [("https://daily.example/column", {"url": "https://daily.example/column"}), ("The Daily", {"name": "The Daily"})],
)
def test_who_said_it_and_where_are_two_fields(appearance, work):
    claim = Claim("It warms.", "A columnist", appearance=appearance)
    item = claim_review(the_claim(claim=claim), **WHO)["itemReviewed"]
    assert item["author"] == {"@type": "Person", "name": "A columnist"}
    assert item["appearance"] == {"@type": "CreativeWork", **work}


@pytest.mark.parametrize("outcome", ["not checkable", "not about climate", "failed"])
def test_without_a_verdict_there_is_no_review(outcome):
    with pytest.raises(InputError, match=f"ended as '{outcome}'"):
        claim_review(unchecked("Hello.", outcome), **WHO)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "javascript:alert(1)"}, "url of a ClaimReview must be a web address"),
        ({"author": " "}, "needs an author"),
        ({"author_url": "example"}, "author_url"),
        ({"published": "31.5.2024"}, "like 2024-05-31"),
    ],
    ids=range(4),
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        claim_review(the_claim(), **{**WHO, **change})
