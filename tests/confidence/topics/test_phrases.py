"""Names of topics are phrases as the statements write them."""

import pytest

from climassay.confidence.topics.naming import joined_name, phrases, plain, terms, written

EMISSIONS = [
    "Net greenhouse gas emissions were 59 GtCO2-eq yr⁻¹ in 2019.",
    "Greenhouse gas emissions of all sectors rose by 1.3% yr–1 and CO 2 emissions by 0.8 GtCO2 yr-1.",
    "Emissions of CO2 and N 2 O, of which agriculture emits most, fell by 2 MtCO2-eq.",
    "Deep cuts of greenhouse gas emissions, CO2 in particular, are needed for pH to recover.",
    "Heat-related mortality is projected to rise with emissions and CO2.",
]


def test_units_are_no_terms_and_formulas_are():
    found = set(
        terms("CO 2, CH4 and N 2 O: 59 ± 6.6 GtCO2-eq yr⁻¹, 0.7 W m–2, 3.2 mm yr-1, 12 ppm, 5 EJ, 1.5°C; PM 2.5")
    )
    assert found == {"co2", "ch4", "n2o", "pm2.5"}
    assert plain("CO 2 from 2 5 plants") == "CO2 from 2 5 plants"


def test_pairs_stand_side_by_side_in_the_text():
    found = set(terms("Emissions, methane and ocean heat content of the sea"))
    assert "ocean heat" in found
    assert not {"emissions methane", "methane ocean", "content sea"} & found


def test_phrases_have_the_number_and_the_case_of_the_text():
    found = phrases(["greenhouse", "gas", "co2", "projected", "n2o", "ph"], EMISSIONS)
    assert found == ("greenhouse gas emissions", "CO2", "N2O", "pH")
    assert written(["co2", "greenhouse gas", "ph"], EMISSIONS) == ("CO2", "greenhouse gas", "pH")


@pytest.mark.parametrize(
    ("texts", "word", "phrase"),
    [
        ("The greenhouse gases are mixed. Other greenhouse gases, too. A greenhouse gas.", "gas", "greenhouse gases"),
        ("The coastal zone floods. Coastal towns flood. Many coastal people move.", "coastal", ""),
        ("Risks are increasing. Losses have increased, too.", "increased", ""),
        ("Marine heatwaves in the sea. A marine heatwave of 2013. Marine heatwaves.", "heatwave", "marine heatwaves"),
        ("In the West African monsoon, rain falls. A West African monsoon.", "african", "West African monsoon"),
        ("The model phase 6 runs. A model phase 5 ran. Some model phase 6, too.", "model", "model"),
        ("The ice model phase 6 runs. An ice model phase 5 ran. See ice model phase 6.", "phase", "ice model"),
        ("See Tier 1 and Tier 2, then Tier 3.", "tier", ""),
        ("The risks associated with heat. All risks associated with it.", "risks associated", ""),
        ("A watershed of rivers, and a watershed with lakes, by law.", "watershed", "watershed"),
    ],
    ids=["plural", "adjective", "verb", "neighbour", "proper name", "word of a number", "grown to it", "number alone",
        "participle", "noun in -ed",
    ],
)  # fmt: skip
def test_only_noun_phrases_name(texts, word, phrase):
    assert phrases([word], [texts]) == ((phrase,) if phrase else ())


@pytest.mark.parametrize(
    ("pieces", "name"),
    [
        (["emissions", "CO2", "greenhouse gases"], "Emissions, CO2 and greenhouse gases"),
        (["sea level", "sea", "level rise", "coasts", "coastal towns"], "Sea level and coasts"),
        (["climate change", "pH", "corals"], "pH and corals"),
        (["risks"], "Risks"),
        ([], "Unnamed"),
    ],
    ids=["three", "new words only", "general", "only a general one", "none"],
)
def test_a_name_joins_what_is_new(pieces, name):
    assert joined_name(pieces) == name


def test_a_name_stays_short():
    pieces = ["climate-resilient development pathways", "integrated water resources management", "dams"]
    assert joined_name(pieces) == "Climate-resilient development pathways and dams"


@pytest.mark.parametrize(
    ("text", "word", "phrase"),
    [
        ("An ice sheet of old. The Greenland Ice Sheet is large; the East Ice Sheet, too.", "ice sheet", "ice sheet"),
        ("Hadley circulation is wide. The Hadley circulation of Mars.", "hadley", "Hadley circulation"),
        ("Emissions increased by much, as emissions increased in towns. Emissions fall.", "emissions increased", ""),
    ],
    ids=["part of names", "name at the beginning", "participle"],
)  # fmt: skip
def test_capitals_are_those_of_the_phrase_itself(text, word, phrase):
    assert phrases([word], [text]) == ((phrase,) if phrase else ())
