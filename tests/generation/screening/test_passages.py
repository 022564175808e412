"""Running text is fit to write from; near duplicates are found."""

import csv
import gzip
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus import read, split_passages
from climassay.errors import InputError
from climassay.generation.screening import DuplicateFinder, detect_other_language, find_passage_fault
from climassay.generation.screening.check import stem, words
from climassay.primer import SOURCE_BOOKS, book_path
from screened_drafts import ANSWER, ASKED, OPTIONS, cloze, freeform, mcq

DATA = Path(__file__).parents[3] / ".." / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the shared data folder is absent")

PROSE = (
    "Cloud droplets grow on particles, and their number depends on the updraught (Smith et al., 2013; Jones and "
    "Lee, 2014; "
    "Müller et al., 2020a). In the mean the forcing is about 1.5 W m−2, with a range of 0.9 to 2.1 W m−2 in 2019."
)
CASES = {
    "too short": "Cloud droplets grow on particles.",
    "references": (
        "Smith, J. A., and K. Lee, 2013: Droplets in clouds. J. Atmos. Sci., 70, 1203-1215, doi:10.1175/JAS-D-12.1.\n"
        "Jones, P., Q. Wu, and R. T. Adams, 2014: Aerosol and rain. Nature Geosci., 7(3), 45-50.\n"
        "Müller, B., 2020: Clouds. Cambridge University Press, Cambridge, 312 pp."
    ),
    "contents": (
        "1 Introduction ............ 1\n1.1 Droplets in clouds of the air ............ 4\n1.2 Rain of the "
        "tropics and its "
        "daily course ............ 12\n2 Radiation and the surface of the sea ............ 31\n3 The carbon "
        "cycle ...... 77"
    ),
    "index": (
        "absorption, 12, 45-48, 101\naccretion, 211\nadiabatic lapse rate, 14, 33\nadvection, 56-58\naerosol, "
        "3, 17, 88\n"
        "albedo, planetary, 9, 22; surface, 23\nammonia, 140\nanticyclone, 75, 76\nArctic amplification, 190-195\n"
        "baroclinic waves, 60\nblack carbon, 91, 93\nBowen ratio, 41\nbrightness temperature, 20"
    ),
    "equations": (
        "The balance of the layers is then\n$$\\begin{align} C \\frac{dT}{dt} &= (1-\\alpha) Q - \\epsilon "
        "\\sigma T^4 \\\\ "
        "F &= \\lambda T + N \\\\ N &= F - \\lambda T - \\gamma (T - T_d) \\end{align}$$\nand for the deep layer "
        "$$ C_d \\frac{dT_d}{dt} = \\gamma (T - T_d) $$\nas before."
    ),
    "numbers": "Year Mean Low High\n"
    + "\n".join(f"{year} {year / 1000} {year - 1850} 0.{year}" for year in range(1990, 2012))
    + "\nglobal mean surface temperature anomaly Hadley centre Berkeley Earth NOAA annual values series version "
    "table station",
    "capitals": "THE RADIATIVE FORCING OF CLOUDS AND AEROSOLS IN THE CLIMATE SYSTEM IS THE SUBJECT OF THE CHAPTERS OF "
    "THE SECOND PART OF THIS BOOK ON THE AIR",
    "front matter": "© 2020 The Authors. All rights reserved. Published by the Press. ISBN 978-1-23. This book "
    "is in copyright, "
    "and no part of it may be copied without the written permission of the publisher.",
    "other language": "Les nuages se forment quand l'air humide se refroidit, et leur nombre de gouttes dépend "
    "de la vitesse de "
    "l'air ainsi que des particules qui sont dans la couche.",
    "no sentences": "Authors Anna Berg Norway Carlo Rossi Italy Dana White Canada Emil Stein Germany Farid Khan "
    "Pakistan "
    "Grace Obi Nigeria Hana Sato Japan Ivan Petrov Russia Julia Costa Brazil Kofi Mensah Ghana Lena Olsen Denmark",
}  # fmt: skip


@pytest.mark.parametrize("fault", CASES)
def test_every_fault_is_told_by_its_name(fault):
    assert find_passage_fault(CASES[fault]) == fault


def test_prose_with_citations_numbers_and_a_formula_is_fit():
    assert find_passage_fault(PROSE) is None
    assert (
        find_passage_fault(
            f"{PROSE} The balance is $C dT/dt = F - \\lambda T$, where $T$ is the warming of the surface."
        )
        is None
    )


def test_the_language_can_be_another_one():
    assert find_passage_fault(CASES["other language"], "fr") is None
    assert find_passage_fault(PROSE, "fr") == "other language"
    with pytest.raises(InputError, match="is not supported"):
        find_passage_fault(PROSE, "xx")


def test_no_passage_of_the_primer_is_refused():
    for name in SOURCE_BOOKS:
        for document in read(book_path(name)).documents:
            assert [passage.id for passage in split_passages(document) if find_passage_fault(passage.text)] == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the albedo of the sea?", None),
        ("Aerosol optical depth, 550 nm", None),
        ("", None),
        ("Quelle est la température de la surface de la mer ?", "fr"),
        ("¿Cuál es la temperatura de la superficie del mar?", "es"),
        ("Qual é a temperatura da superfície do mar?", "pt"),
        ("Wat is de temperatuur van het oppervlak van de zee?", "nl"),
        ("海洋表面的温度是多少以及为什么会变化", "another script"),
        ("σ, λ and Φ", None),
    ],
)  # fmt: skip
def test_languages_are_told_by_their_function_words(text, language):
    assert detect_other_language(text) == language


@needs_data
def test_real_passages_are_kept_and_translated_ones_refused():
    with gzip.open(DATA / "ipcc_ar6_paragraphs.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = [row["text"] for row in rows[::150] if row["class"] == "body" and len(row["text"].split()) >= 25]
    # The table calls legends that a figure has lost "body".
    legends = [text for text in texts if text.startswith(("Figure ", "Table "))]
    prose = [text for text in texts if text not in legends]
    assert len(prose) > 100
    assert sum(find_passage_fault(text) is not None for text in prose) < 0.03 * len(prose)
    assert {find_passage_fault(text) for text in legends} <= {"figure legend", None}
    with (DATA / "pira_qa.csv").open(encoding="utf-8") as file:
        abstracts = list(csv.DictReader(file))
    assert not any(find_passage_fault(row["abstract"]) for row in abstracts[::5])
    assert all(find_passage_fault(row["abstract_translated_pt"]) == "other language" for row in abstracts[::5])


@pytest.mark.parametrize(
    "heading",
    ["Acknowledgements", "Contents", "References", "Drafting Authors:", "7. References", "Preface", "List of Figures"],
)
def test_nothing_is_written_from_under_headings_of_front_matter(heading):
    assert find_passage_fault(PROSE, headings=("A book", heading)) == "front matter"


def test_legends_of_figures_and_lists_of_authors_are_told_by_their_shape():
    legend = (
        "Figure 2.4 | Temperature anomalies in three regions. (a) The coast, (b) the plateau. Thin grey lines show "
        "single stations and the thick red line their mean; shading marks the range of the ensemble in each panel."
    )
    authors = (
        "Coordinating lead authors: Ilse Brandvold (Norway), Tomas Achterberg (Belgium), Priya Ramanujan (India), and "
        "review editor Helena Sousa (Portugal), who have written and edited this part of the handbook of the region."
    )
    assert find_passage_fault(legend) == "figure legend"
    assert find_passage_fault(authors) == "front matter"
    assert find_passage_fault(f"Figure 2.4 shows how the balance is reached. {PROSE}") is None


def test_the_first_of_two_is_kept_and_named():
    finder = DuplicateFinder()
    assert finder.add(freeform(id="a")) is None
    assert finder.add(freeform(f"{ASKED} ", ANSWER.upper(), id="b")) == "a"
    assert finder.add(freeform(ASKED.replace("do", "did"), id="c")) == "a"
    assert finder.add(freeform("Which dust leads among nucleating particles?", "Mineral dust.", id="d")) is None
    assert len(finder) == 2


def test_options_and_their_order_do_not_matter_but_the_answer_does():
    finder = DuplicateFinder()
    finder.add(mcq(id="a"))
    assert finder.add(mcq(options=OPTIONS[::-1], correct=2, id="b")) == "a"
    assert finder.add(mcq(options=("x", OPTIONS[1], "y", "z"), id="c")) == "a"
    assert finder.add(mcq(correct=3, id="d")) is None


def test_another_number_or_another_kind_is_no_repetition():
    finder = DuplicateFinder(jaccard=0.5)
    finder.add(cloze("Near −38 °C pure droplets of clouds freeze without the help of any particle.", id="a"))
    assert (
        finder.add(cloze("Near −33 °C pure droplets of clouds freeze without the help of any particle.", id="b"))
        is None
    )
    finder.add(freeform(id="c"))
    assert finder.add(mcq(ASKED, (ANSWER, *OPTIONS[:3]), 0, id="d")) is None


def test_a_refilled_finder_goes_on_where_it_stopped():
    drafts = [freeform(f"Why does effect {name} of cloud droplets grow?", name * 3, id=name) for name in "abcdef"]
    whole, second = DuplicateFinder(), DuplicateFinder()
    for draft in drafts:
        whole.add(draft)
    second.add_unchecked(drafts)
    again = [replace(draft, id=f"{draft.id}2") for draft in drafts]
    assert [whole.add(draft) for draft in again] == [second.add(draft) for draft in again] == list("abcdef")


WORDS = ["ice", "dust", "droplets", "freeze", "clouds", "vapour", "grow", "temperature"]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), max_size=12), st.sampled_from([0.5, 0.8, 1.0])
)
def test_the_index_finds_what_comparing_all_pairs_finds(texts, threshold):
    drafts = [freeform(" ".join(text), "Yes", id=str(number)) for number, text in enumerate(texts)]
    finder, kept = DuplicateFinder(jaccard=threshold), []
    for draft in drafts:
        pairs = _pairs(draft)
        similar = [other for other, known in kept if len(pairs & known) >= threshold * len(pairs | known) - 1e-9]
        expected = similar[0] if similar else None
        assert finder.add(draft) == expected
        if expected is None:
            kept.append((draft.id, pairs))


def _pairs(draft):
    found = ["freeform", *map(stem, words(f"{draft.wording.question} {draft.wording.answer}")), "."]
    return set(pairwise(found))


class Encoder:
    """Direction by topic: what speaks of ice, and what does not."""

    name, fingerprint, width = "local:topics", "e" * 64, 2

    def encode(self, texts, *, role="passage", on_progress=None):
        return np.array([[1.0, 0.0] if "ice" in text.lower() else [0.0, 1.0] for text in texts], dtype=np.float32)


def test_an_encoder_finds_repetitions_in_other_words():
    finder = DuplicateFinder(Encoder())
    assert finder.add(freeform("Why is ice slippery?", "It melts.", id="a")) is None
    assert finder.add(freeform("What makes frozen water (ice) smooth?", "A film of water.", id="b")) == "a"
    assert finder.add(freeform("What makes ice smooth at 5 °C?", "A film.", id="c")) is None
    refilled = DuplicateFinder(Encoder())
    refilled.add_unchecked([freeform("Why is dust red?", "Iron.", id=str(number)) for number in range(300)])
    assert refilled.add(freeform("What colours sand?", "Rust.", id="x")) == "0"


def test_thresholds_are_checked():
    for options in ({"jaccard": 0.0}, {"jaccard": 1.2}, {"cosine": 2.0}):
        with pytest.raises(InputError, match="Similarities"):
            DuplicateFinder(**options)
