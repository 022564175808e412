"""Reports in the IPCC's other languages, and languages that are not read."""

import pytest

from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.extraction.documents import language_of
from climassay.confidence.marks import find_likelihoods, find_tags
from climassay.corpus.documents import Block, Document
from climassay.errors import InputError

GERMAN = (
    "Der Meeresspiegel und die Temperatur steigen mit der Zeit, und das Eis ist von den Bergen nicht zu retten. " * 3
)


def told(text):
    found = extract([Document("d", "R", "r", (Block(text),))], ExtractOptions(acronyms="none"))
    return [(one.tag, one.text) for one in found]


@pytest.mark.parametrize(
    ("words", "levels"),
    [
        ("(confiance élevée)", ("high",)),
        ("(degré de confiance très élevé)", ("very high",)),
        ("(niveau de confiance faible)", ("low",)),
        ("(confiance moyenne à élevée)", ("medium", "high")),
        ("(nivel de confianza alto)", ("high",)),
        ("(confianza muy baja)", ("very low",)),
        ("con un nivel de confianza medio", ("medium",)),
    ],
)
def test_levels_in_french_and_spanish(words, levels):
    assert [mark.levels for mark in find_tags(f"X {words}.")] == [levels]


def test_statements_in_french_and_spanish():
    assert told("Le niveau des mers monte (confiance élevée). {1.2}") == [("high", "Le niveau des mers monte.")]
    assert told("El nivel del mar subirá, con un nivel de confianza medio.") == [("medium", "El nivel del mar subirá.")]
    both = "Les mers montent (confiance élevée) et les glaces vont fondre (confiance faible)."
    assert told(both) == [(tag, "Les mers montent et les glaces vont fondre.") for tag in ("high", "low")]
    assert [one.term for one in find_likelihoods("Il est très probable que ... ; es sumamente improbable")] == [
        "very likely",
        "extremely unlikely",
    ]


def test_another_language_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="German"):
        told(GERMAN)
    with pytest.raises(InputError, match="script"):
        told("уровень моря растёт и лёд тает в горах " * 5)


def test_too_little_text_is_of_no_language():
    assert language_of(["Seas rise."]) is None
