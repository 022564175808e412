"""What may be shown of a fact-check, however it came about."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.factcheck import Subclaim, factcheck_page
from climassay.factcheck.results.page import claim_pieces, list_notices, safe_link
from climassay.factcheck.scales import ACCURACY, CLIMATE_FEEDBACK, CLIMATE_FEVER
from climassay.factcheck.transcript import cited_numbers, reader_view
from climassay.prompts import DEMONSTRATION
from factcheck_transcripts import (
    SURE,
    checked,
    full_transcript,
    sentence,
    source,
    transcripts,
    unchecked,
    with_text_everywhere,
)
from html_pages import Elements

NEI = CLIMATE_FEEDBACK.nei
UNBORNE = checked(
    "Volcanoes emit more CO2 than people do.",
    ({"IPCC": "mostly accurate"}, "mostly accurate"),
    explanation=(sentence("Volcanoes emit much.", in_house=True),),
)


def page_of(transcript, **options):
    return Elements(factcheck_page(transcript, **options))


NEI_CHECK = checked("It snows.", ({"IPCC": NEI, "WMO": NEI}, NEI), reason="not enough information")
PAGES = {
    "full": full_transcript(),
    "one statement": checked("It warms.", ({"IPCC": "correct"}, "correct"), reason="one informed advocate"),
    "nothing found": replace(NEI_CHECK, sources=()),
    "not checkable": unchecked("What a day!", "not checkable"),
    "not about climate": unchecked("Bern is in Switzerland.", "not about climate"),
    "failed": unchecked("It warms.", "failed", error="The server did not answer."),
}


@pytest.mark.parametrize("transcript", PAGES.values(), ids=PAGES)
def test_every_page_is_whole_self_contained_and_in_order(transcript):
    page = page_of(transcript)
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(page.tags)
    assert not re.search(r"url\(|@import", page.page)
    assert not [name for _, attributes, _ in page.found for name in attributes if name.startswith("on")]
    page.check()
    assert "Written by a machine" in page.words


def test_a_page_says_what_came_out_and_how():
    page = page_of(full_transcript())
    for text in (
        "the claim is contradicted by the evidence.",
        "A columnist, The Daily, 2023-04-28",
        "Likelihood that the claim is true",
        "a probability of 0 to 10 per cent",
        "What speaks for the claim",
        "\u201cThe Sun drives the weather.\u201d",
        "[3] A pamphlet (physical.pdf)",
        "What speaks against it",
        "\u201cSolar irradiance has changed little.\u201d",
        "Carbon dioxide has [1] [2].",
        "That is common knowledge (Not from the sources).",
        "1 of 2 cited sentences got their citation by comparing",
        "argues the position of pamphlet",
        "It fell by 42 percent [3] (42 not in the cited passage).",
        "In its view the claim is an outlier",
        "mediator asks Pamphlet: Which measurement shows that CO2 does nothing?",
        "Pamphlet replies: Plants like it [3].",
        "closed the debate, because the mediator was satisfied",
        "called another round, because the informed advocates' verdicts were more than one step apart",
        "Draft, written before the verdict",
        "Without IPCC the mediator would have said misleading",
        "Without WMO the mediator would have said incorrect (the same)",
        "12,345 read by the models, 678 written",
    ):
        assert text in page.words
    assert "https://example.org/report?page=11" in page.links
    assert "passage-4" in page.ids


def test_warnings_come_before_the_explanation_and_name_everything():
    found = list_notices(full_transcript())
    assert found[0].startswith("The advocates still differ")
    text = " ".join(found)
    for part in ("older than 2023", "1 of 3 sentences rests", "1 citation of", "67% of 3", "1 model call", "context"):
        assert part in text
    page = page_of(full_transcript())
    assert page.words.index("Before you rely on this") < page.words.index("Why")
    assert list_notices(checked("It warms.", ({"IPCC": "correct"}, "correct"))) == ()


def test_passages_that_do_not_entail_what_they_are_cited_for_are_warned_of():
    said = (
        replace(sentence("One.", 1, 2), entailment=(0.1, 0.9)),
        replace(sentence("Two.", 1, 2), entailment=(0.1, None)),
        replace(sentence("Three.", 1), entailment=(None,)),
    )
    weak = checked("It warms.", ({"IPCC": "correct"}, "correct"), explanation=said)
    [note] = list_notices(weak)
    assert note.startswith("1 sentence cites a passage that may not say so. A small model misses what it should mark")
    assert note in page_of(weak).words


def test_too_little_information_is_said_plainly_with_what_was_searched():
    page = page_of(NEI_CHECK)
    assert "No verdict: nothing that was found and quoted supports one." in page.words
    assert "IPCC in ar6: 1 passage found ([1]), on which no verdict rests" in page.words
    assert 'class="scale"' not in page.page
    empty = replace(NEI_CHECK, rounds=tuple(
        replace(held, opinions=tuple(replace(one, retrieved=()) for one in held.opinions)) for held in NEI_CHECK.rounds
    ), sources=())  # fmt: skip
    assert "WMO in ar6: no relevant passage found" in page_of(empty).words


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ("not checkable", "states nothing that evidence could confirm or refute"),
        ("not about climate", "is not about climate"),
        ("failed", "The server did not answer."),
    ],
)
def test_a_claim_without_debate_has_its_reason(outcome, text):
    page = page_of(PAGES[outcome])
    assert text in page.words
    assert "No debate was held" in page.words
    assert "What each advocate holds" not in page.words
    assert "debated the claim" not in page.words


def test_other_scales_are_known_by_name_or_given():
    refuted = checked("It cools.", ({"IPCC": "REFUTES"}, "REFUTES"), scale=CLIMATE_FEVER)
    assert "is refuted by the evidence" in page_of(refuted).words
    own = replace(CLIMATE_FEVER, name="mine")
    assert (
        "mineREFUTES: the claim is refuted by the evidence." in page_of(replace(refuted, scale="mine"), scale=own).words
    )
    with pytest.raises(InputError, match="no scale 'mine'"):
        factcheck_page(replace(refuted, scale="mine"))
    with pytest.raises(InputError, match="not a verdict of the scale"):
        factcheck_page(replace(refuted, scale="binary"))


@pytest.mark.parametrize("transcript", [full_transcript(), PAGES["one statement"], NEI_CHECK])
def test_what_a_demonstration_model_made_says_so(transcript):
    assert DEMONSTRATION in page_of(transcript).words
    strong = replace(
        transcript,
        mediator="expert, openai:strong",
        advocates=tuple(replace(one, model="openai:strong") for one in transcript.advocates),
    )
    assert DEMONSTRATION not in page_of(strong).words
    assert DEMONSTRATION in page_of(replace(strong, demonstration=True)).words


ATTACK = "\"'></p><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}"


def test_nothing_that_people_or_models_write_becomes_markup():
    attacked = with_text_everywhere(full_transcript(), ATTACK)
    page = page_of(replace(attacked, scale="climate-feedback"))
    assert not {"script", "img"} & set(page.tags)
    assert not any("onerror" in attributes for _, attributes, _ in page.found)
    assert page.page.count("&lt;script&gt;alert(1)") > 40
    assert "49" not in page.words.split()
    assert not [link for link in page.links if not link.startswith("#")]


@given(transcripts())
def test_any_transcript_makes_a_page_whose_links_lead_somewhere(transcript):
    page = page_of(transcript)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", " javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)",
        "data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd", "//example.org",
        "https:example.org", "https://", "https://ipcc.ch@example.org/", "https://ipcc.ch\\@example.org/",
        "https://[broken/", "https://example.org/\u202egro", "example.org", "", None,
    ],
    ids=range(17),
)  # fmt: skip
def test_other_addresses_never_become_links(url):
    assert safe_link(url) is None
    shown = checked("It warms.", ({"IPCC": "correct"}, "correct"), sources=(source(1, url=url),))
    assert all(link.startswith("#") for link in page_of(shown).links)


@given(
    st.text(max_size=20).flatmap(
        lambda text: st.tuples(
            st.just(text),
            st.lists(st.tuples(*[st.integers(0, len(text))] * 2).map(sorted), min_size=2, max_size=4),
        )
    )
)
def test_pieces_join_to_the_claim_and_belong_to_their_subclaims(drawn):
    text, spans = drawn
    subclaims = [Subclaim(number, "", *span) for number, span in enumerate(spans, start=1)]
    pieces = claim_pieces(text, subclaims)
    assert "".join(piece.text for piece in pieces) == text
    for subclaim in subclaims:
        own = "".join(piece.text for piece in pieces if subclaim.number in piece.subclaims)
        assert own == text[subclaim.start : subclaim.end]
        ends = sum(subclaim.number in piece.ends for piece in pieces)
        assert ends == (subclaim.start < subclaim.end)


UNQUOTED = checked("It warms.", ({"IPCC": "correct"}, "correct"), explanation=(sentence("I know."),))


@given(transcripts())
def test_whatever_is_shown_as_a_verdict_rests_on_a_passage_and_contradicts_no_likelihood(transcript):
    shown = reader_view(transcript, CLIMATE_FEEDBACK)
    verdict, numbers = shown.verdict, {source.number for source in shown.sources}
    if verdict.outcome == "verdict" and verdict.label is not None:
        assert numbers & set(cited_numbers(verdict.explanation, verdict.quotations))
    for held in shown.rounds:
        for one in (verdict, held.decision, *held.opinions, *held.parts):
            label = one.label if one is verdict else one.verdict
            if label in CLIMATE_FEEDBACK.labels and one.levels and one.levels.likelihood:
                low, high = "unlikely" in one.levels.likelihood, one.levels.likelihood == "about as likely as not"
                assert high or low != CLIMATE_FEEDBACK.is_correct(label)
    assert reader_view(shown, CLIMATE_FEEDBACK) == shown


@pytest.mark.parametrize(("label", "kept"), [("false", False), ("misleading", False), ("true", True)])
def test_no_likelihood_stands_beside_a_verdict_that_it_contradicts(label, kept):
    levels = replace(SURE, likelihood="extremely likely")
    made = checked("It warms.", ({"IPCC": label}, label), scale=ACCURACY, levels=levels)
    shown = reader_view(made, ACCURACY)
    assert shown.verdict.levels == (levels if kept else replace(levels, likelihood=None))
    opposite = replace(levels, likelihood="exceptionally unlikely")
    against = replace(made, verdict=replace(made.verdict, levels=opposite))
    assert (reader_view(against, ACCURACY).verdict.levels.likelihood is None) == kept
