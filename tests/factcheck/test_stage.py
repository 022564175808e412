"""What the participants of a debate share: numbered passages, prompts, and texts that are fit to be shown."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus.documents import Passage
from climassay.errors import InputError
from climassay.factcheck.assessment import Assessment, Manner
from climassay.factcheck.scales import BINARY
from climassay.factcheck.stage import (
    TEMPLATES,
    Exhibit,
    SourceBook,
    Stage,
    last_question,
    load_templates,
    material,
    quotation,
    told,
)
from climassay.factcheck.steps import Found
from climassay.grounding import AnswerSentence
from debate_parts import WordEncoder


def passage(name, text="Arctic ice melts. Cows graze."):
    return Passage(name, text, "d", "A book", "book.md", 0)


def found(name, cosine=0.5, collection="ar6", text="Arctic ice melts. Cows graze."):
    return Found(passage(name, text), collection, cosine, text.partition(".")[0] + ".")


def stage(encoder=None, **manner):
    return Stage("The claim.", BINARY, Manner(**manner), load_templates(), encoder, False, lambda event: None)


# ----------------------------------------------------------------------------------------------------------- sources


def test_passages_are_numbered_in_order_of_first_retrieval():
    book = SourceBook()
    assert [one.number for one in book.add([found("a"), found("b")], "IPCC")] == [1, 2]
    again = book.add([found("c"), found("a", 0.7)], "WMO")
    assert [one.number for one in again] == [3, 1]
    assert again[1].excerpt == "Arctic ice melts."
    assert [(one.number, one.passage.id, one.cosine, one.advocates) for one in book.citations()] == [
        (1, "a", 0.7, ("IPCC", "WMO")), (2, "b", 0.5, ("IPCC",)), (3, "c", 0.5, ("WMO",)),
    ]  # fmt: skip


def test_the_same_id_in_another_collection_is_another_passage():
    book = SourceBook()
    book.add([found("a"), found("a", collection="wmo")], "IPCC")
    assert [(one.number, one.collection) for one in book.citations()] == [(1, "ar6"), (2, "wmo")]


FINDS = st.lists(
    st.tuples(
        st.lists(
            st.builds(found, st.sampled_from("abcde"), st.none() | st.floats(0, 1), st.sampled_from(["ar6", "wmo"])),
            max_size=4,
        ),
        st.sampled_from(["IPCC", "WMO"]),
    ),
    max_size=6,
)


@given(FINDS)
def test_numbers_are_whole_and_a_passage_keeps_its_own(finds):
    book, numbers = SourceBook(), {}
    for some, advocate in finds:
        for one, exhibit in zip(some, book.add(some, advocate), strict=True):
            assert numbers.setdefault((one.collection, one.passage.id), exhibit.number) == exhibit.number
    citations = book.citations()
    assert [one.number for one in citations] == list(range(1, len(numbers) + 1))
    for one in citations:
        seen = [
            (f.cosine, who)
            for some, who in finds
            for f in some
            if (f.collection, f.passage.id) == (one.collection, one.passage.id)
        ]
        assert one.cosine == max((cosine for cosine, _ in seen if cosine is not None), default=None)
        assert one.advocates == tuple(dict.fromkeys(who for _, who in seen))


# --------------------------------------------------------------------------------------------------------- quotations


def exhibits(*texts):
    return [Exhibit(number, passage(str(number), text), text) for number, text in enumerate(texts, start=3)]


def test_the_nearest_sentence_is_quoted_with_its_passage():
    shown = exhibits("Cows graze. Grass grows.", "The Arctic ice melts fast. Nobody knows.")
    sentence = quotation("the Arctic ice melts", shown, WordEncoder())
    assert sentence.text == "A passage says: \u201cThe Arctic ice melts fast\u201d."
    assert (sentence.citations, sentence.origin, sentence.in_house) == ((4,), "attributed", False)
    assert sentence.support == pytest.approx(4 / 20**0.5)


def test_a_passage_without_a_sentence_can_be_quoted():
    assert quotation("ice", exhibits("ice"), WordEncoder()).text == "A passage says: \u201cice\u201d."


def test_an_explanation_that_cannot_be_used_gives_way_to_a_quotation():
    shown = exhibits("The ice melts. Cows graze.")
    grounded = stage(WordEncoder())
    sentences, removed = grounded.explained(Assessment(explanation="The ice melts [3]. So it is [9]."), "ice", shown)
    assert ([one.citations for one in sentences], removed) == ([(3,), ()], 1)
    sentences, removed = grounded.explained(Assessment(explanation="[9]"), "ice melts", shown)
    assert [one.text for one in sentences] == ["A passage says: \u201cThe ice melts\u201d."]
    assert grounded.explained(Assessment(), "ice", []) == ((), 0)
    assert stage(None).explained(Assessment(), "ice", shown) == ((), 0)


def test_a_sentence_that_was_cut_off_is_left_out():
    sentences, _ = stage(WordEncoder()).explained(Assessment(explanation="Ice melts. And the", cut=True), "ice", [])
    assert [one.text for one in sentences] == ["Ice melts."]


# ------------------------------------------------------------------------------------------------------------ prompts


def test_every_template_is_loaded_and_brief_ones_are_used_where_there_are_some():
    assert set(load_templates()) == set(TEMPLATES)
    values = {"name": "IPCC", "kind": "collection", "stance": "", "claim": "C", "statement": "C", "sources": [],
              "opinions": [], "exchanges": []}  # fmt: skip
    full, brief = stage().messages("advocate", **values), stage(brief=True).messages("advocate", **values)
    assert len(full.messages[0].content) > 2 * len(brief.messages[0].content)
    assert "is contradicted by the evidence" in full.messages[1].content
    whole = {"parts": [], "claim": "C"}
    assert stage().messages("whole", **whole) == stage(brief=True).messages("whole", **whole)


def test_templates_can_be_overridden_and_a_folder_has_to_be_there(tmp_path):
    (tmp_path / "factcheck_side.prompt").write_text("[user]\nMine: {{ claim }}\n", encoding="utf-8")
    mine = load_templates(tmp_path)
    assert mine["side"].render(claim="C", explanation="E").messages[0].content == "Mine: C"
    assert mine["whole"] == load_templates()["whole"]
    with pytest.raises(InputError):
        load_templates(tmp_path / "missing")


# -------------------------------------------------------------------------------------------------------------- texts


@given(st.text())
def test_material_is_one_line(text):
    assert len(material(text).splitlines()) <= 1
    assert material(text).split() == text.split()


def test_what_others_said_is_told_with_citations_and_cut():
    sentences = [
        AnswerSentence("Ice melts.", (1, 2), "model", False, 1.0),
        AnswerSentence("So.", (), "none", True, 0.0),
    ]
    assert told(sentences) == "Ice melts. [1] [2] So. (In-house knowledge)"
    assert told([]) == ""
    long = told([AnswerSentence("word " * 200, (), "none", False, 0.0)])
    assert len(long.split()) == 91
    assert long.endswith(" ...")


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Which of your passages say so?", "Which of your passages say so?"),
        ('"Which of your passages say so?" I ask because', "Which of your passages say so?"),
        (" Which of\nyour passages say so? And why?", "Which of your passages say so?"),
        ("I am not sure.", None),
        ("Why? ", None),
        ("?????", None),
        ("", None),
    ],
)
def test_a_question_ends_at_its_mark_and_has_four_words(text, question):
    assert last_question(text) == question


def test_words_that_lead_into_an_explanation_do_not_take_part_in_its_attribution():
    shown = [Exhibit(1, passage("a", "Arctic ice melts."), "Arctic ice melts.")]
    lead = "This is rated \u201cincorrect\u201d, because"
    said = Assessment("incorrect", explanation="arctic ice melts.", lead=lead)
    [sentence], _ = stage(WordEncoder()).explained(said, "ice", shown)
    [alone], _ = stage(WordEncoder()).explained(replace(said, lead=""), "ice", shown)
    assert (sentence.text, sentence.citations) == (f"{lead} arctic ice melts.", (1,))
    assert (alone.text, alone.support) == ("arctic ice melts.", sentence.support)


def test_without_information_nothing_is_quoted():
    shown = [Exhibit(1, passage("a"), "Arctic ice melts.")]
    assert stage(WordEncoder()).explained(Assessment(BINARY.nei), "ice", shown) == ((), 0)
