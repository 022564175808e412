"""What the participants of a debate share: numbered passages, prompts, and texts that are fit to be shown."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus.documents import Passage
from climassay.errors import InputError
from climassay.factcheck.debate.assessment import ElicitationConfig
from climassay.factcheck.debate.context import (
    TEMPLATES,
    DebateContext,
    RetrievedPassage,
    SourceBook,
    as_one_line,
    last_question,
    load_templates,
    provenance,
)
from climassay.factcheck.debate.scheduler import Found
from climassay.factcheck.scales import BINARY
from climassay.grounding import AnswerSentence


def passage(name, text="Arctic ice melts. Cows graze."):
    return Passage(name, text, "d", "A book", "book.md", 0)


def found(name, cosine=0.5, collection="ar6", text="Arctic ice melts. Cows graze."):
    return Found(passage(name, text), collection, cosine, text.partition(".")[0] + ".")


def stage(encoder=None, **manner):
    return DebateContext(
        "The claim.", BINARY, ElicitationConfig(**manner), load_templates(), encoder, False, lambda event: None
    )


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
    return [RetrievedPassage(number, passage(str(number), text), text) for number, text in enumerate(texts, start=3)]


# ------------------------------------------------------------------------------------------------------------ prompts


def test_every_template_is_loaded_and_brief_ones_are_used_where_there_are_some():
    assert set(load_templates()) == set(TEMPLATES)
    values = {"name": "IPCC", "kind": "collection", "stance": "", "claim": "C", "statement": "C", "sources": [],
              "opinions": [], "exchanges": [], "about": "A book.", "others": [], "ask": False, "most_questions": 3,
              "statements": [], "questions": []}  # fmt: skip
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
    assert len(as_one_line(text).splitlines()) <= 1
    assert as_one_line(text).split() == text.split()


def test_what_others_said_is_told_with_citations_and_cut_for_small_models_only():
    sentences = [
        AnswerSentence("Ice melts.", (1, 2), "model", False, 1.0),
        AnswerSentence("So.", (), "none", True, 0.0),
    ]
    assert stage().told(sentences) == "Ice melts [1] [2]. So (In-house knowledge)."
    assert stage().told([]) == ""
    long = [AnswerSentence("word " * 200, (), "none", False, 0.0)]
    assert len(stage().told(long).split()) == 91
    assert stage().told(long).endswith(" ...")
    assert len(stage(elicitation="schema").told(long).split()) == 200


def test_a_passage_comes_with_report_chapter_page_and_year_and_without_its_address():
    shown = replace(passage("a"), report="AR6", chapter="Ocean", first_page=7, date="2021-08-09", url="https://x.y")
    assert provenance(shown) == "AR6, A book (book.md), Ocean, p. 7, 2021"


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
