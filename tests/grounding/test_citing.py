from dataclasses import dataclass, replace

import pytest

from climassay.corpus import Passage
from climassay.grounding import format_sentence, ground_text
from word_encoder import WordEncoder


@dataclass(frozen=True)
class Source:
    number: int
    passage: Passage


def source(number, text):
    return Source(number, Passage(f"p-{number}", text, "p", "Book", "book.md", number))


SOURCES = (
    source(1, "The sea rose by 0.20 [0.15 to 0.25] m between 1901 and 2018."),
    source(2, "The surface warmed by 1.09 °C."),
)


def grounded(text, encoder=None, sources=SOURCES):
    sentences, _ = ground_text(text, truncated=False, sources=sources, encoder=encoder)
    return sentences


def test_a_number_with_the_wrong_unit_or_from_another_passage_is_named_as_written():
    (sentence,) = grounded("The sea rose 0.20 °C, and it warmed by 1.1 °C [1].")
    assert sentence.foreign_numbers == ("0.20 °C", "1.1 °C")
    assert format_sentence(sentence).endswith("[1] (0.20 °C, 1.1 °C not in the cited passage).")
    (both,) = grounded("The sea rose 0.20 m, and it warmed by 1.1 °C [1, 2].")
    assert both.foreign_numbers == ()


def test_the_year_of_a_cited_report_is_not_foreign_to_its_passages():
    dated = source(1, "The sea rose by 0.20 m.")
    dated = replace(dated, passage=replace(dated.passage, report="Sixth Assessment Report", date="2021-08-09"))
    (own,) = grounded("The IPCC's report of 2021 finds a rise of 0.20 m [1].", sources=(dated,))
    assert own.foreign_numbers == ()
    (other,) = grounded("The IPCC's report of 2013 finds a rise of 0.30 m [1].", sources=(dated,))
    assert other.foreign_numbers == ("2013", "0.30 m")


def test_a_sentence_is_attributed_only_with_its_quantities_and_units():
    right, wrong = grounded("The surface warmed by 1.1 °C. The surface warmed by 1.09 mm.", WordEncoder())
    assert (right.origin, right.citations) == ("attributed", (2,))
    assert (wrong.origin, wrong.citations, wrong.in_house) == ("none", (), True)
    assert wrong.support >= 0.6


@pytest.mark.parametrize(
    "lacking",
    [
        "The passages do not say how far the surface warmed.",
        "None of these studies covers the years after 2020.",
        "Neither passage mentions the sea.",
        "However, the sources provided are silent on the surface.",
        "There is no figure for the surface in the passages.",
        "This is not covered by the passages.",
        "The passages give no figure for the surface, so the comparison itself is not put into numbers here.",
        "The sources do not say how far it warmed, so that the claim cannot be checked.",
        "The passages do not mention the sea, so this question remains open.",
    ],
)
def test_what_the_passages_lack_is_neither_own_knowledge_nor_attributed(lacking):
    # A passage of the same words: similarity alone would attribute the sentence.
    sources = (source(1, lacking),)
    (sentence,) = grounded(lacking, WordEncoder(), sources)
    assert (sentence.origin, sentence.citations, sentence.in_house) == ("none", (), False)
    assert sentence.support >= 0.6
    assert format_sentence(sentence) == lacking
    (cited,) = grounded(f"{lacking[:-1]} [1].", WordEncoder(), sources)
    assert (cited.origin, cited.citations) == ("model", (1,))
    (marked,) = grounded(f"{lacking[:-1]} (In-house knowledge).", WordEncoder(), sources)
    assert marked.in_house
    (alone,) = grounded(lacking, WordEncoder(), ())
    assert alone.in_house


@pytest.mark.parametrize(
    "claim",
    [
        "There is no evidence that the surface warmed.",
        "Studies do not find a pause.",
        "The report does not support a pause.",
        "None of the models gives a pause.",
        "The Paris Agreement does not mention coal.",
        "The source of the heat does not matter.",
        "The passages do not give a figure for Spain, where it warmed by 1.6 °C.",
        "The passages give no reason, but it is the Sun.",
        "The passages give no reason, so the warming is not due to people.",
        "The passages give no figure, so the claim is not right.",
    ],
)
def test_what_is_said_of_the_world_needs_support_also_in_the_negative(claim):
    (own,) = grounded(claim, WordEncoder())
    assert own.in_house
    (attributed,) = grounded(claim, WordEncoder(), (source(1, claim),))
    assert (attributed.origin, attributed.citations) == ("attributed", (1,))


def test_a_bare_answer_before_a_cited_sentence_is_not_marked():
    for bare in ("No.", "Yes.", "It has not.", "No, it has not.", "Not quite."):
        answer, _ = grounded(f"{bare} The surface warmed by 1.09 °C [2].", WordEncoder())
        assert (answer.text, answer.citations, answer.in_house) == (bare, (), False)
        alone, _ = grounded(f"{bare} Penguins skate.", WordEncoder())
        assert alone.in_house
    marked, _ = grounded("No (In-house knowledge). The surface warmed by 1.09 °C [2].", WordEncoder())
    assert marked.in_house
    cited, _ = grounded("It has not [1]. The surface warmed by 1.09 °C [2].", WordEncoder())
    assert cited.citations == (1,)
