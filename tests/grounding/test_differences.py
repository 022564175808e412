"""Where sentences differ from their sources: figures, words, negations, places and names."""

import pytest

from climassay.grounding.differences import (
    SourceSentence,
    find_differing_quantities,
    find_foreign_names,
    find_opposed_words,
    find_other_places,
    find_swapped_names,
)


@pytest.mark.parametrize(
    ("sentence", "source", "opposed"),
    [
        ("Rainfall rises in winter.", "Rainfall falls in winter.", True),
        ("Rainfall climbs in winter.", "Rainfall rises in winter.", False),
        ("Rainfall did not fall in winter.", "Rainfall rose in winter.", False),
        ("Rainfall did not rise in winter.", "Rainfall rose in winter.", True),
        ("The heat pump raised bills.", "The heat pump cut bills.", True),
        ("The sun does not explain the warming.", "Neither the sun nor volcanoes explain the warming.", False),
        ("Nights have warmed more than days.", "Nights have warmed more than days over land.", False),
        ("Emissions rise.", "Volcanoes cool.", False),
        ("Antarctica is gaining ice.", "Antarctica has been losing ice since 1992.", True),
        ("Parliament approved the tax.", "Parliament rejected the tax.", True),
        ("Cars will be phased in by 2035.", "Cars will be phased out by 2035.", True),
        ("The glacier retreated until 1920.", "The glacier advanced until 1920.", True),
        ("Plants will not end by 2038.", "Coal plants will end by 2038.", True),
        ("The target does not require net zero.", "The target requires net zero emissions.", True),
        ("The target requires net zero.", "The target doesn't require net zero emissions.", True),
        ("The target not only requires net zero.", "The target requires net zero emissions.", False),
        ("It adds up without causing a runaway of warming.", "The warming adds up and causes no runaway.", False),
        ("Die Emissionen sanken im Verkehr.", "Die Emissionen stiegen im Verkehr.", True),
        ("Le Parlement a adopté la taxe.", "Le Parlement a rejeté la taxe.", True),
        ("Las emisiones subieron en enero.", "Las emisiones bajaron en enero.", True),
    ],
)
def test_words_in_whose_place_a_source_has_the_contrary(sentence, source, opposed):
    assert bool(find_opposed_words(sentence, source)) == opposed


def test_names_and_places_that_the_source_does_not_have():
    assert find_foreign_names("Models of Greenland and Norway agree.", ["Greenland melts."]) == ("Norway",)
    assert find_foreign_names("The dam generates 1.5 GW.", ["The dam generates 1,500 MW."]) == ()
    assert [one.text for one in find_other_places("The tropics dry.", "The subtropics dry.")] == ["tropics"]
    assert not find_other_places("The tropics dry.", "Rainfall decreases.")


@pytest.mark.parametrize(
    ("sentence", "differing"),
    [
        ("The sea rose by 0.2 m from 1901 to 2018.", []),
        # Another passage has 2 m, for something else.
        ("The sea rose by about 2 m from 1901 to 2018.", [("2 m", "0.20 m")]),
        ("The sea rose by 0.20 m from 1951 to 2018.", [("1951", "1901")]),
        # Both figures stand in the sentence, each of another ice sheet.
        ("Greenland lost 4900 Gt of ice, Antarctica 2700 Gt.", []),
        ("Greenland lost 2700 Gt of ice, Antarctica 4900 Gt.", [("2700 Gt", "4900 Gt")]),
        # A length of another thing is no other value of this one.
        ("Glaciers creep by 12 m.", [("12 m", "")]),
        # A sentence with all of them outweighs figures of another that has more of the words close by.
        ("The sea rose by 0.2 m between 1971 and 2015 (high confidence).", []),
        # A year that a source has never differs.
        ("The sea rose by 0.2 m between 1980 and 2015 (high confidence).", [("1980", "1901")]),
        # It may be the same figure, rounded.
        ("Sunlight of about 340 W m-2 arrives.", []),
    ],
)
def test_figures_are_compared_with_those_of_the_same_thing(sentence, differing):
    sources = [
        ("The sea rose by about 0.20 m from 1901 to 2018.", 1.6),
        ("Under very high emissions a rise of nearly 2 m by 2100 cannot be ruled out.", 0.7),
        (
            "They agree that Greenland lost about 4900 Gt of ice and Antarctica about 2700 Gt between 1992 and 2020.",
            1.2,
        ),
        ("The sea level increased by 0.20 [0.15 to 0.25] m between 1971 and 2015.", 0.8),
        ("Losses of ice made the sea rise between 2006 and 2018 (high confidence).", 1.5),
        ("The sunlight that arrives is 342 W m-2.", 1.2),
        ("The planet spreads it over a sphere, about 340 W m-2.", 0.5),
    ]
    assert [
        (one.text, one.source) for one in find_differing_quantities(sentence, [SourceSentence(*one) for one in sources])
    ] == differing


def test_a_sentence_with_all_figures_does_not_bear_a_quantity_of_another_thing():
    source = "Of the heat from 1971 to 2018, about 91 per cent went into the ocean, about 5 per cent into the land."
    [found] = find_differing_quantities(
        "Of the heat from 1971 to 2018, about 5 per cent went into the ocean.", [SourceSentence(source, 1.6)]
    )
    assert (found.text, found.source) == ("5 per cent", "91 per cent")


def differing(sentence, *sources, nearness=1.4):
    found = find_differing_quantities(
        sentence, [SourceSentence(one, nearness, " ".join(sources)) for one in sources], sentence
    )
    return [(one.text, one.source) for one in found]


GERMAN = (
    "Die globale Mitteltemperatur lag 2011–2020 um 1,09 °C [0,95 bis 1,20 °C] höher als 1850–1900.",
    "Die Emissionen betrugen 2022 rund 72,8 Millionen Tonnen CO2-Äquivalent, um 6,4 % weniger als 2021.",
    "Die Investitionen beliefen sich auf 1.250.000 Euro, davon 1.200,5 Mio. Euro im Jahr 2023.",
    "Zwei Drittel der Haushalte erhalten einen Zuschuss.",
)


@pytest.mark.parametrize(
    ("sentence", "differs"),
    [
        ("Die globale Mitteltemperatur lag 2011–2020 um 1,1 °C höher als 1850–1900.", False),
        ("Die globale Mitteltemperatur lag 2011–2020 um 1,1 Grad höher als 1850–1900.", False),
        ("Die globale Mitteltemperatur lag 2011–2020 um 1,59 °C höher als 1850–1900.", True),
        ("Die Emissionen betrugen 2022 rund 72,8 Mio. t CO2-Äquivalent.", False),
        ("Die Emissionen betrugen 2022 rund 78,2 Mio. t CO2-Äquivalent.", True),
        ("Die Emissionen sanken 2022 um 6,4 Prozent.", False),
        ("Die Emissionen stiegen 2022 um 6,4 Prozent.", True),
        ("Die Investitionen beliefen sich auf 1,25 Millionen Euro.", False),
        ("Die Investitionen beliefen sich auf 1.250 Euro.", True),
        ("Rund 67 % der Haushalte erhalten einen Zuschuss.", False),
        ("Die Hälfte der Haushalte erhält einen Zuschuss.", True),
    ],
)
def test_figures_of_german_texts(sentence, differs):
    assert bool(differing(sentence, *GERMAN)) == differs


@pytest.mark.parametrize(
    ("sentence", "source", "differs"),
    [
        ("About 67% of the households get it.", "Two-thirds of the households get it.", False),
        ("Half of the households get it.", "Two-thirds of the households get it.", True),
        ("Nearly a third of the light is reflected.", "About 29 per cent of the light is reflected.", False),
        ("More than half of the households get it.", "Some 64% of the households get it.", False),
        ("More than half of the households get it.", "Some 24% of the households get it.", True),
        ("Nine out of ten reefs will die.", "Some 90% of reefs will die.", False),
        ("Neun von zehn Riffen werden sterben.", "Rund 90 % der Riffe werden sterben.", False),
        ("Two of the five models dry.", "Three of the five models dry.", True),
        ("The soil holds half as much carbon as the air.", "The soil holds twice as much carbon as the air.", True),
        ("It saves €350 a month.", "It saves €350 a year.", True),
        ("It saves 4,200 euros a year.", "It saves €350 a month.", False),
        ("The sea rose by 15 to 25 cm.", "The sea rose by 20 cm (15 to 25 cm) from 1901 to 2018.", False),
        ("The sea rose by 5 to 25 cm.", "The sea rose by 20 cm (15 to 25 cm) from 1901 to 2018.", True),
        ("One in five reefs will die.", "Some 90% of reefs will die.", True),
        ("It happens one in ten years.", "It has a chance of 5% in ten years.", False),
        ("The rate grew 3-fold since 1990.", "The rate tripled since 1990.", False),
        ("Methane has doubled since 1750.", "Methane has risen by 100% since 1750.", False),
        ("Methane has tripled since 1750.", "Methane has more than doubled since 1750.", True),
        ("Emissions were halved by 2030.", "Emissions fell by 50% by 2030.", False),
        ("It entered into force on 4 December 2016.", "It entered into force on 4 November 2016.", True),
        ("It entered into force on November 4, 2016.", "It entered into force on 4 November 2016.", False),
        ("It entered into force on 14 November 2016.", "It entered into force on 4 November 2016.", True),
        ("Das Abkommen trat am 4. Dezember 2016 in Kraft.", "Das Abkommen trat am 4. November 2016 in Kraft.", True),
        ("L'accord est entré en vigueur en mai 2016.", "L'accord est entré en vigueur en juin 2016.", True),
        ("It may warm by March.", "It may warm by May.", True),
        ("It may warm.", "The march of the penguins ended in May.", False),
        ("The year 2024 was the second warmest.", "The year 2024 was the warmest, and 2023 the second.", True),
        ("2023 was the warmest on record.", "2024 was the warmest, and 2023 was the second warmest on record.", True),
        ("Emissions rose by 5%.", "Emissions were 5% lower than before.", True),
        ("Emissions did not rise by 5%.", "Emissions fell by 5%.", False),
        ("The share rose by 15%.", "The share rose by 15 percentage points.", True),
        ("The share rose by 15 percentage points.", "The share rose by 15 percentage points.", False),
        ("1 in 5 reefs will die.", "Some 20% of reefs will die.", False),
        ("1 in 5 reefs will die.", "Some 90% of reefs will die.", True),
        ("The land warmed by 2.9 °F.", "The land warmed by 1.6 °C.", False),
        ("The land warmed by 1.6 °F.", "The land warmed by 1.6 °C.", True),
        ("The sea rises at 1.3 mm a year now.", "The sea rose at 1.3 mm a year, and rises at 3.7 mm a year now.", True),
        ("De 1,5 à 2 degrés en moins.", "Entre 1,5 et 2 °C en moins.", False),
        ("Ardieron más de 306 mil hectáreas.", "Ardieron 306.555 hectáreas.", False),
        ("Ardieron más de 603 mil hectáreas.", "Ardieron 306.555 hectáreas.", True),
        ("La surface a atteint 72\u202f000 hectares.", "La surface a atteint 72 000 hectares.", False),
        ("The forcing was \u22121.1 W/m2 in 2019.", "The forcing was –1.1 W m⁻² in 2019.", False),
        ("The forcing was 1.1 W/m2 in 2019.", "The forcing was –1.1 W m⁻² in 2019.", False),
    ],
)
def test_shares_multiples_dates_ranks_and_directions(sentence, source, differs):
    assert bool(differing(sentence, source)) == differs


def test_names_in_whose_stead_the_source_has_another():
    germany = "Germany emitted 674 million tonnes in 2023, 10% less than in 2022."
    assert find_swapped_names("Spain emitted 674 million tonnes in 2023.", germany) == (("Spain", "Germany"),)
    assert find_swapped_names("In 2023, Spain emitted 674 million tonnes.", germany) == (("Spain", "Germany"),)
    # Names beside other words are not in each other's place, neither in German beside one of two.
    assert not find_swapped_names("Coal from Spain burned in 2023.", "Ministers in Germany met in 2022.")
    assert not find_swapped_names("Die Gletscher Norwegens verloren 6 %.", "Die Wälder Schwedens wuchsen um 6 %.")
    # Common words at the beginning of a sentence are no names.
    assert not find_swapped_names("Rain removes dust.", "Precipitation removes dust.", ["rain or other precipitation"])
    assert find_swapped_names(
        "Die Gletscher Norwegens verloren 6 %.", "Die Gletscher Schwedens verloren 2022 rund 6 %."
    ) == (("Norwegens", "Schwedens"),)
