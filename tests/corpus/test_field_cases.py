"""Documents of the field cases: the figures that a user would look for are in the text, and nothing else is."""

from pathlib import Path

import pytest

from climassay.corpus import Document, read

CASES = Path(__file__).parents[3] / "shared" / "data" / "cases" / "documents"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the field cases are not here")


def case(name: str) -> Document:
    (document,) = read(CASES / name).documents
    return document


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("ipcc_sup.html", ["–1.1 W m⁻²,", "10²² J"], ["1022"]),
        ("aspnet.html", ["2.4 mm per year between 1993 and 2022", "3.1 mm per year"], []),
        ("latin1_decl_cp1252.html", ["2011–2020", "1.09 °C", "1850–1900", "€450 million", "5–6% in the Länder"], []),
        (
            "pandoc_sections.html",
            [
                "rose by 34%",
                "490 billion",
                "43% of the",
                "18% in 2005",
                "61% of their",
                "only 14 stations",
                "2.1 degrees",
            ],
            [],
        ),
        ("refs.html", ["rose by 0.8 degrees"], ["geoengineering", "CRISPR"]),
        (
            "table_sup.html",
            [
                "Energy industries; 1990: 320; 2005: 301; 2020: 198",
                "Waste; 2005: 21; 2020: 11",
                "(10⁶); 1990: 58",
                "$320 per",
            ],
            ["3201", "1982", "106"],
        ),
        ("years.html", ["Year: 1990; CO2: 320; CH4: 41", "Year: 2020; CO2: 198; CH4: 31"], []),
        (
            "awkward.epub",
            [
                "Erwärmung der Alpen betrug 2,1",
                "61 Prozent",
                "2,4 Millimeter",
                "Dürren häuften",
                "33 Milliarden",
                "40 Jahren",
                "17 pro",
            ],
            ["Temperatur1"],
        ),
    ],
)
def test_figures_of_the_case_are_read(name: str, present: list[str], absent: list[str]) -> None:
    text = "\n".join(block.text for block in case(name).blocks)
    assert [words for words in present if words not in text] == []
    assert [words for words in absent if words in text] == []
