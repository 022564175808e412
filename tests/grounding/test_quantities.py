import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from climassay.grounding.quantities import find_foreign_quantities, find_quantities


def read(text):
    """Number, kind of unit and rate of every quantity of a text, values in the kind's own unit."""
    found = []
    for quantity in find_quantities(text):
        unit = quantity.unit
        value = quantity.value * (unit.factor if unit else 1)
        found.append((pytest.approx(value), unit.kind + (f"/{unit.rate}" if unit.rate else "") if unit else None))
    return found


CELSIUS, KELVIN, LENGTH = "temperature:C", "temperature:K", "length"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "1.07 °C, 2 degrees Celsius, 3 K, 1.5C, a 2-degree rise",
            [(1.07, CELSIUS), (2, CELSIUS), (3, KELVIN), (1.5, CELSIUS), (2, "temperature")],
        ),
        ("1.8 °F and 5.7 degrees Fahrenheit", [(1.8, "temperature:F"), (5.7, "temperature:F")]),
        ("60°N, 30 degrees south", [(60, "angle"), (30, "angle")]),
        ("410 ppm, 1866 ppb, 280 parts per million", [(410, "mixing"), (1.866, "mixing"), (280, "mixing")]),
        ("20 cm, 200 mm, 0.2 m, 5 km", [(0.2, LENGTH), (0.2, LENGTH), (0.2, LENGTH), (5000, LENGTH)]),
        ("3 mm/yr, 3 mm per year, 3 mm yr-1, 3 mm yr⁻¹, 3 mm yr –1, 3 mm a-1, 3 mm a year", [(0.003, "length/yr")] * 7),
        ("30 mm per decade, 0.3 m per century", [(0.003, "length/yr")] * 2),
        ("7%, 7 per cent, 7 percent", [(7, "share")] * 3),
        ("7 percentage points, 7-percentage-point, 7 %-points, 7 percent points, 7 pp, 7 p.p.", [(7, "points")] * 6),
        ("2.7 W/m2, 2.7 W m-2, 2.7 W m⁻², 2.7 W m –2", [(2.7, "flux")] * 4),
        ("−1.3 W m⁻² °C⁻¹", [(-1.3, "flux/K")]),
        ("37 GtCO2, 37 Gt CO2, 37 billion tonnes of CO2", [(37e9, "mass:CO2")] * 3),
        (
            "59 GtCO 2 -eq yr –1, 10 PgC, 5 Mt of methane, 270 Gt",
            [(59e9, "mass:CO2e/yr"), (10e9, "mass:C"), (5e6, "mass:CH4"), (270e9, "mass")],
        ),
        ("4 million km2, 4.0 × 10 6 km 2, 4×10⁶ km², 4 million square kilometres", [(4e12, "area")] * 4),
        ("$5m, USD 5 million, 5 million dollars", [(5e6, "money:USD")] * 3),
        ("in 2019, 1850–1900", [(2019, None), (1850, None), (1900, None)]),
        ("the 1990s, the 20th century", [(1990, "span"), (20, "ordinal")]),
        ("1,000 m, 1 000 m, 114,669 people", [(1000, LENGTH), (1000, LENGTH), (114669, None)]),
        ("two degrees, three million people, twelve of them", [(2, "temperature"), (3e6, None)]),
        ("one day it will", []),
        ("3.6E+4 m, 3.6e4 m, 1e6 people, 2E-3 m", [(36000, LENGTH), (36000, LENGTH), (1e6, None), (0.002, LENGTH)]),
        ("5 MW, 5 mW", [(5e6, "power"), (5e-3, "power")]),
        ("Methane reached 1,866 ppb in 2019.", [(1.866, "mixing"), (2019, None)]),
        ("-3 K, –3 K, −3 K, 5-3 K", [(-3, KELVIN)] * 3 + [(5, KELVIN), (3, KELVIN)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_numbers_are_read_with_their_units(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.8 to 1.3 °C", [0.8, 1.3]), ("0.8–1.3 °C", [0.8, 1.3]), ("between 0.8 and 1.3 °C", [0.8, 1.3]),
        ("1.07 °C [0.8 to 1.3]", [1.07, 0.8, 1.3]), ("1.07 [0.8 to 1.3] °C", [1.07, 0.8, 1.3]),
        ("1.07 °C (likely range 0.8 to 1.3)", [1.07, 0.8, 1.3]), ("0.3 ± 0.1 °C", [0.3, 0.1]),
        ("0.2, 0.4 and about 0.6 °C", [0.2, 0.4, 0.6]), ("–0.1°C to +0.1°C", [-0.1, 0.1]),
    ],
)  # fmt: skip
def test_both_ends_of_a_range_carry_the_unit(text, expected):
    assert read(text) == [(value, CELSIUS) for value in expected]


def test_ranges_share_magnitudes_but_years_and_ranks_take_no_units():
    assert read("3.3 to 3.6 billion people") == [(3.3e9, None), (3.6e9, None)]
    assert read("USD 5 to 10 billion") == [(5e9, "money:USD"), (10e9, "money:USD")]
    assert read("from 200 to 3 million") == [(200, None), (3e6, None)]
    assert read("In 2019, 3% more; rank 3 (5%)") == [(2019, None), (3, "share"), (3, None), (5, "share")]


@pytest.mark.parametrize(
    "period", ["in 1901 to 1971", "between 1901 and 1971", "in 1901–1971", "from 1901 to 1971", "over 1901 to 1971"]
)
def test_years_take_no_units_of_what_comes_behind_them(period):
    years = [(1901, None), (1971, None)]
    assert read(f"from 1.3 mm {period} to 3.7 mm") == [(0.0013, LENGTH), *years, (0.0037, LENGTH)]
    assert read(f"{period}, 3.7 mm") == [*years, (0.0037, LENGTH)]
    passage = "Sea level rose by 1.3 mm yr-1 between 1901 and 1971, and by 3.7 mm yr-1 between 2006 and 2018."
    assert find_foreign_quantities(f"From 1.3 mm a year {period} to 3.7 mm a year in 2006–2018.", [passage]) == ()
    assert find_foreign_quantities(f"From 1.3 mm a year {period} to 3.7 mm a year.", ["1.3 mm yr-1, 3.7 mm yr-1"]) == (
        "1901",
        "1971",
    )


def test_numbers_like_years_with_a_unit_are_measurements():
    assert read("from 1000 to 1500 mm") == [(1, LENGTH), (1.5, LENGTH)]
    assert read("in 1500 to 2500 mm of rain") == [(1.5, LENGTH), (2.5, LENGTH)]
    assert read("by 2.5 mm in 1971 to 3.7 mm") == [(0.0025, LENGTH), (1971, None), (0.0037, LENGTH)]


NAMES = (
    "CO2|CO 2|CH4|N2O|RCP8.5|RCP 4.5|SSP5-8.5|PM2.5|PM 2.5|AR6|COP28|COP 28|CMIP6|[3]|[1, 12]|Figure 3.2|Table 4"
    "|Section 2.3.1|9.2.2|B.1.2|{3.1, Figure SPM.1}|carbon-14|COVID-19|W m–2"
)


@pytest.mark.parametrize("name", NAMES.split("|"))
def test_names_references_and_citations_are_no_quantities(name):
    assert find_quantities(f"What {name} says about warming.") == ()


@pytest.mark.parametrize(
    ("sentence", "passage", "foreign"),
    [
        ("It rose by 3 mm.", "It warmed by 3 °C.", ("3 mm",)),
        ("It rose by 3 mm.", "It rose by 3 mm per year.", ("3 mm",)),
        ("It rose by 3 mm per year.", "It rose by 3 cm per year.", ("3 mm per year",)),
        ("It rose by 3 mm per year.", "It rose by 30 mm per decade.", ()),
        ("It rose 20 cm.", "It rose by 0.20 [0.15 to 0.25] m.", ()),
        ("Half a metre, 15 to 25 cm.", "It rose by 0.20 [0.15 to 0.25] m.", ()),
        ("About 1.1 °C.", "It warmed by 1.09 °C.", ()), ("About 1.0 °C.", "It warmed by 1.09 °C.", ("1.0 °C",)),
        ("Exactly 1.09 °C.", "It warmed by 1.1 °C.", ("1.09 °C",)),
        ("Two K.", "It warmed by 2.0 degrees Celsius.", ()), ("2 degrees.", "It warmed by 2 °F.", ()),
        ("2 °C.", "It warmed by 2 °F.", ("2 °C",)), ("30 per cent.", "30% of it.", ()),
        ("30 per cent.", "30 of them.", ("30 per cent",)), ("30 of them.", "30% of it.", ()),
        ("30 of them.", "30.2 of it.", ("30",)), ("In 2019.", "In 2018 and 2020.", ("2019",)),
        ("37 Gt a year.", "Annual emissions are 37 GtCO2.", ()), ("37 Gt a year.", "Yearly emissions: 37 GtCO2.", ()),
        ("37 GtCO2.", "37 GtC.", ("37 GtCO2",)),
        ("40 billion tonnes of CO2.", "They are 40.3 GtCO2.", ()),
        ("It fell by 0.2 °C.", "A trend of −0.2 °C.", ()),
        ("A trend of −0.2 °C.", "It rose by 0.2 °C.", ("−0.2 °C",)),
        ("It cost $5 million.", "It cost €5 million.", ("$5 million",)),
        ("Four models.", "All of the 4 models.", ()), ("4 models.", "All of the four models.", ()),
        ("7% and 9%, again 9%.", "It is 7%.", ("9%",)),
    ],
)  # fmt: skip
def test_a_quantity_needs_the_same_value_and_kind_of_unit(sentence, passage, foreign):
    assert find_foreign_quantities(sentence, [passage]) == foreign


@pytest.mark.parametrize(
    ("sentence", "passage", "foreign"),
    [
        ("It is > 3 K.", "It is < 3 K.", ("> 3 K",)),
        ("It is more than 3 K.", "It is at most 3 K.", ("more than 3 K",)),
        ("It is at least 3 K.", "It is no more than 3 K.", ("at least 3 K",)),
        ("It is 3 K or more.", "It is below 3 K.", ("3 K or more",)),
        ("It is up to 3 K.", "It is more than 3 K.", ("up to 3 K",)),
        ("It is more than 3 K.", "It is 3 K.", ("more than 3 K",)),
        ("It is more than 3 K.", "It is 3.4 K.", ()),
        ("It is more than 3 K.", "It is 30 K.", ("more than 3 K",)),
        ("It is more than 400 ppm.", "It is 410 ppm.", ()),
        ("It is less than 400 ppm.", "It is 410 ppm.", ("less than 400 ppm",)),
        ("It is at least 3 K.", "It is 3 K.", ()),
        ("It is up to 5 K.", "It is 2 to 5 K.", ()),
        ("It is more than 3 K.", "It is greater than 3 °C.", ()),
        ("Warming above 2 °C.", "Warming of 2 °C.", ()),
        ("Warming above 2 °C.", "Warming below 2 °C.", ("above 2 °C",)),
        ("It is 3 K.", "It is up to 3 K.", ()),
        ("It is +0.5 percent.", "It is -0.5 percent.", ("+0.5 percent",)),
        ("It is -0.5 percent.", "It is +0.5 percent.", ("-0.5 percent",)),
        ("It is minus 0.5 percent.", "It is 0.5 percent.", ("minus 0.5 percent",)),
        ("It fell by more than 3 K.", "A change of -3.4 K.", ()),
        ("It is over 3 K.", "It is more than 3 K.", ()),
        ("It is over 3 K.", "It is 3.4 K.", ()),
        ("It is over 3 K.", "It is 3 K.", ("over 3 K",)),
        ("It is over 3 K.", "It is less than 3 K.", ("over 3 K",)),
        ("It is less than 3 K.", "It is over 3 K.", ("less than 3 K",)),
        ("It rises by over 3 mm a year.", "It rises by 3 mm a year.", ("over 3 mm a year",)),
        # Something may happen or extend over these.
        ("It warmed over 10 to 20 years.", "It took 10 to 20 years.", ()),
        ("Ice over 4 million km2, over 2006 to 2018.", "From 2006 to 2018 it had 4 million km2.", ()),
    ],
)  # fmt: skip
def test_signs_and_bounds_are_part_of_a_quantity(sentence, passage, foreign):
    assert find_foreign_quantities(sentence, [passage]) == foreign


@pytest.mark.parametrize(
    ("sentence", "passage", "different"),
    [
        ("23% (12 ± 3 billion tonnes).", "It is 23% (12 ± 3 Gt).", "It is 23%, or 12 ± 3 Mt."),
        ("155 billion tonnes a year.", "It lost 155 ± 19 Gt yr –1.", "It lost 155 ± 19 Mt yr –1."),
        ("It is 1.2 °C.", "It is 1.2 [0.9 to 1.5] K.", "It is 1.3 [0.9 to 1.5] K."),
        ("It took 25 years.", "It took 25 y.", "It took 26 y."),
        ("It took 25 years.", "It took twenty-five years.", "It took twenty years and five days."),
        ("It took 18,000 years.", "It took 18 ky.", "It took 18 y."),
        ("It took two decades.", "It took twenty years.", "It took thirty years."),
        ("It took 24 hours.", "It took 24 h.", "It took 12 h."),
        ("3 mm a year.", "It is 3 mm/y.", "It is 3 mm/d."),
        ("In the late 19th century.", "Between 1850 and 1900.", "Between 1750 and 1790."),
        ("In the 19th century.", "In the 1850s.", "In the 1900s."),
        ("In the 21st century.", "From 2015 to 2100.", "It grows (NIWA, 2020)."),
        ("The 19th meeting.", "At the 19th meeting.", "In 1850 at the 20th meeting."),
        ("From 2 Gt in 1901, 1990 to 3 Gt.", "From 2 Gt in 1901–1990 to 3 Gt.", "From 2 Gt in 1901–1991 to 3 Gt."),
        ("2 Gt over 1901 and 1990 to 3 Gt.", "From 2 Gt in 1901–1990 to 3 Gt.", "From 2 Gt in 1901–1991 to 3 Gt."),
        ("In 2018.", "Over 2006–18.", "It was 2006–2017."),
        ("In 2018.", "Over 2006–18 (high confidence).", "It was 2006–18%."),
        ("0.5 watts for it, 0.5 watts a square metre.", "It is 0.5 W, or 0.5 W m–2.", "It is 0.5 W."),
        ("0.5 watts per metre squared.", "It is 0.5 W m –2.", "It is 0.5 mW m –2."),
        ("It is 5 pascals.", "It is 0.05 hPa.", "It is 5 hPa."),
        ("It is 5 millibars.", "It is 5 hPa.", "It is 5 Pa."),
        ("From 2010 to 2019.", "For 201 0–2019 it is.", "For 201 1–2019 it is."),
        ("From 1850 to 1900.", "For 18 50–190 0 it is.", "For 185 1–19 00 it is."),
        ("From 2000 to 2009.", "For 200 0–2 009 it is.", "There are 200 and 0–2 009."),
        ("It gained 10²² J.", "A gain of 10^22 J.", "A gain of 10²¹ J."),
        ("One million km².", "An area of 10⁶ km².", "An area of 10 km²."),
        (r"It rose by $20$ cm at $1.5\,^\circ$C.", "By 20 cm at 1.5 °C.", "By $20 and 1.5."),
        (r"The $\mathrm{CO}_2$ is at $420$ ppm.", "It is at 420 ppm.", "It costs $420."),
        ("It is 1.5 °C.", "Warming of 1. 5 °C.", "Warming of 1. 6 °C."),
        ("It is 1.5 °C.", "Warming of 1. 5°C (>50%).", "It was measured in 1. The five are 5 °C."),
    ],
)  # fmt: skip
def test_the_same_in_other_words_is_found_and_another_is_not(sentence, passage, different):
    assert find_foreign_quantities(sentence, [passage]) == ()
    assert find_foreign_quantities(sentence, [different]) != ()


def test_what_looks_torn_is_left_where_it_may_be_whole():
    assert read("There were 20 19 models.") == [(20, None), (19, None)]
    assert read("1. 5 °C of warming") == [(1, None), (5, CELSIUS)]  # an item of a list
    assert read("from 1 500 to 2 000 mm") == [(1.5, LENGTH), (2, LENGTH)]
    assert read("2000–50 mm") == [(2, LENGTH), (0.05, LENGTH)]
    assert read("on 2017-05-18") == [(2017, None), (5, None), (18, None)]


PLAIN = ("", "about ")
ABOVE = ("> ", "more than ", "over ", "at least ", "≥ ")
BELOW = ("< ", "less than ", "at most ", "≤ ", "up to ")
KINDS = (" K", "%", " ppm", " W m⁻²", " GtCO2", " mm per year")
AMOUNTS = st.decimals("0.1", "99.9", places=1).map(str)


@given(st.data(), st.sampled_from(("comparator", "sign", "number", "unit", "nothing")))
def test_one_part_of_a_statement_that_differs_is_found(data, changed):
    """Two statements of a figure: alike, or with another sign, bound, number or unit."""
    side = data.draw(st.sampled_from((PLAIN, ABOVE, BELOW)))
    comparator, sign = data.draw(st.sampled_from(side)), data.draw(st.sampled_from(("", "+", "-")))
    number, unit = data.draw(AMOUNTS), data.draw(st.sampled_from(KINDS))
    said = f"The change is {comparator}{sign}{number}{unit}."
    match changed:
        case "comparator":
            assume(side is not PLAIN)
            comparator = data.draw(st.sampled_from(BELOW if side is ABOVE else ABOVE))
        case "sign":
            assume(sign)  # without one, words may carry it
            sign = "-" if sign == "+" else "+"
        case "number":
            number = data.draw(AMOUNTS.filter(lambda other: other != number))
        case "unit":
            unit = data.draw(st.sampled_from([kind for kind in KINDS if kind != unit]))
    found = find_foreign_quantities(said, [f"The change is {comparator}{sign}{number}{unit}."])
    assert bool(found) is (changed != "nothing")


@pytest.mark.parametrize(
    ("sentence", "foreign"),
    [
        ("Snow fell on 8.5 days less.", ()),
        ("Snow fell on 8.5 ± 2.1 days less.", ()),
        ("The uncertainty is 2.1 days.", ()),
        ("Snow fell on 2.1 days less.", ("2.1 days",)),
    ],
)
def test_a_margin_backs_only_margins(sentence, foreign):
    assert find_foreign_quantities(sentence, ["Snow fell on 8.5 ± 2.1 days less."]) == foreign


def test_what_the_claim_says_may_be_repeated():
    claim, passage = "In 2023 it warmed by 3 K.", "It warmed by 1.2 K."
    assert find_foreign_quantities("Not by 3 K in 2023, but by 1.2 K.", [passage]) == ("3 K", "2023")
    assert find_foreign_quantities("Not by 3 K in 2023, but by 1.2 K.", [claim, passage]) == ()
    assert find_foreign_quantities("Not by 4 K in 2023.", [claim, passage]) == ("4 K",)


UNITS = "| °C| K|%| per cent| mm| cm| mm yr⁻¹| ppm| GtCO2| W m⁻²| million km2| degrees| years"
NUMBERS = (
    st.decimals(0, 5000, places=2).map(str)
    | st.integers(0, 3000).map(str)
    | st.integers(1000, 10**6).map("{:,}".format)
)
WORDS = "warming of|to|and|in|about|CO2|(|)|,|–|fell by|[2]|yr|SSP5-8.5|annual|−"
MEASUREMENTS = st.tuples(NUMBERS, st.sampled_from(UNITS.split("|"))).map("".join)
TEXTS = st.lists(st.sampled_from(WORDS.split("|")) | MEASUREMENTS, max_size=12).map(" ".join) | st.text(max_size=60)


@given(TEXTS)
def test_a_sentence_has_all_its_own_quantities(text):
    assert find_foreign_quantities(text, [text]) == ()


@given(TEXTS, st.integers(10_000, 999_999), st.sampled_from(UNITS.split("|")))
def test_a_new_number_is_found(text, number, unit):
    # Rounding cannot bring a smaller number to this one: every other one is either below or another unit's.
    assume(not re.search(r"\d{5}|\d,\d{3}|million|[⁰-⁹₀-₉]|\d{3} ", text))
    added = f"{text} . There were {number}{unit} of it."
    assert any(found.startswith(str(number)) for found in find_foreign_quantities(added, [text]))


@given(st.text())
def test_any_text_can_be_read(text):
    for quantity in find_quantities(text):
        assert quantity.text.strip() == quantity.text != ""
        assert quantity.step > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Der Anstieg betrug 1,09 °C [0,95 bis 1,20 °C].", [(1.09, CELSIUS), (0.95, CELSIUS), (1.2, CELSIUS)]),
        ("Es sind 1.234,5 m und 1.250.000 Euro.", [(1234.5, LENGTH), (1.25e6, "money:EUR")]),
        ("Es waren 1.250 Euro.", [(1250, "money:EUR")]),
        ("It was 1,250 m.", [(1250, LENGTH)]),
        ("It was 1.250 m.", [(1.25, LENGTH)]),
        ("It was 1,234.5 m or 1,250,000 m.", [(1234.5, LENGTH), (1.25e6, LENGTH)]),
        ("Es waren 20,7 Mio. t und 1,5 Mrd. Euro.", [(20.7e6, "mass"), (1.5e9, "money:EUR")]),
        ("Ce sont 1\u00a0234,5 m et 72\u202f000 hectares.", [(1234.5, LENGTH), (7.2e8, "area")]),
        ("373 millions de tonnes d'équivalent CO2", [(373e6, "mass:CO2e")]),
        ("Es sind 1'234 m und 1’234.5 m.", [(1234, LENGTH), (1234.5, LENGTH)]),
        ("Las pérdidas son de 3,5 por ciento y 2 grados.", [(3.5, "share"), (2, "temperature")]),
        ("O nível subiu 3,7 mm por ano.", [(0.0037, "length/yr")]),
        ("La hausse est de 5 pour cent, ou 2 degrés Celsius.", [(5, "share"), (2, CELSIUS)]),
        ("Um zwei Grad, um drei Prozent.", [(2, "temperature"), (3, "share")]),
        ("Das 1,5-Grad-Ziel und 0,20 m.", [(1.5, "temperature"), (0.2, LENGTH)]),
        # Two numbers of a list, not one with a decimal comma.
        ("The values are 1,2 and 3 in the table.", [(1, None), (2, None), (3, None)]),
        ("Of 1400,1777 only one is right.", [(1400, None), (1777, None)]),
        # One figure with a comma does not turn an English text round.
        ("The warming is 1,5 °C of 234,567 in the list.", [(1.5, CELSIUS), (234567, None)]),
        ("1990\u20112020: 12\u201115 %", [(1990, None), (2020, None), (12, "share"), (15, "share")]),
    ],
)
def test_numbers_mean_what_their_language_and_shape_say(text, expected):
    assert read(text) == expected


def test_a_sentence_without_words_of_its_own_is_read_as_the_text_around_it():
    german = "Die Kosten lagen bei 1,5 Mio. Euro."
    assert [one.value for one in find_quantities("Kosten: 1.250 Euro", german)] == [1250]
    assert [one.value for one in find_quantities("Kosten: 1.250 Euro", "The costs of it were 1.5 million.")] == [1.25]


@given(st.integers(1, 10**9), st.integers(0, 99))
def test_every_way_of_writing_a_number_has_its_value(whole, cents):
    groups = f"{whole:,}"
    for thousands, decimal, text in (
        (",", ".", "The cost of it is {} m."), (".", ",", "Die Kosten sind {} m."), (" ", ",", "Le prix est de {} m."),
        ("\u202f", ",", "Le prix est de {} m."), ("'", ".", "Die Kosten sind {} m."), ("", ",", "El coste es {} m."),
    ):  # fmt: skip
        written = groups.replace(",", thousands) + decimal + f"{cents:02d}"
        [found] = find_quantities(text.format(written))
        assert (found.value, found.text) == (pytest.approx(whole + cents / 100), f"{written} m")


@pytest.mark.parametrize(
    ("sentence", "passage", "foreign"),
    [
        ("About 67% of them.", "Two-thirds of them.", ()),
        ("About 60% of them.", "Two-thirds of them.", ("60%",)),
        ("On 4 November 2016.", "On 3 November 2016.", ("4",)),
        ("On 18 May 2017.", "On 2017-05-18.", ()),
        ("It grew 3 times.", "It tripled.", ()),
        ("It grew 3 times.", "It doubled.", ("3 times",)),
        ("A quarter of them, or 25%.", "A quarter of them.", ()),
        ("Un tiers des forêts, soit 33 %.", "33 % des forêts.", ()),
        ("Um 6 % weniger als 2021.", "6 % unter dem Wert von 2021.", ()),
    ],
)
def test_shares_in_words_bear_percentages(sentence, passage, foreign):
    assert find_foreign_quantities(sentence, [passage]) == foreign


@pytest.mark.parametrize(
    ("sentence", "passage", "is_confirmed"),
    [
        # Per cent and percentage points.
        ("It rose by 15 percentage points.", "It rose by 15%.", False),
        ("It rose by 15%.", "It rose by 15 percentage points.", False),
        ("It rose by 15 percentage points.", "It rose by 15 pp on average.", True),
        ("Der Anteil stieg um 15 Prozentpunkte.", "The share rose by 15 percentage points.", True),
        ("La part a augmenté de 15 points de pourcentage.", "A 15-percentage-point rise.", True),
        ("It rose by 3 to 5 percentage points.", "It rose by 3–5 percentage points.", True),
        ("It rose by 3 percentage points.", "It rose by 3–5%.", False),
        # Shares as counts.
        ("It affects 1 in 5 people.", "It affects 20% of people.", True),
        ("It affects 20% of people.", "It affects 1 in every 5 people.", True),
        ("It affects one in five people.", "It affects 1 in 5 people.", True),
        ("It affects one fifth of people.", "It affects 1 in 5 people.", True),
        ("It affects 1 in 5 people.", "It affects 25% of people.", False),
        ("It affects 9 out of 10 glaciers.", "It affects 90 per cent of glaciers.", True),
        ("It affects 1 in 1,000 homes.", "It affects 0.1% of homes.", True),
        ("It affects 1 in 100 homes.", "It affects 2% of homes.", False),
        ("It affects 2/3 of the area.", "It affects 67% of the area.", True),
        ("A 1-in-5 chance.", "A 20% chance.", True),
        ("It happened 6 in 5 times.", "It is 120%.", False),
        ("There were 3 in 2019.", "There were 3 events in 2019.", True),
        ("It lasted 2 in 10 years.", "It is 20%.", False),
        # Scales of temperature: changes and readings.
        ("It warmed by 3.6 °F.", "It warmed by 2 °C.", True),
        ("It warmed by 35.6 °F.", "It warmed by 2 °C.", False),
        ("It warmed by 2 °F.", "It warmed by 2 °C.", False),
        ("0.2 °C per decade.", "0.36 °F per decade.", True),
        ("0.2 °C per decade.", "0.36 °F per year.", False),
        ("2 °C above pre-industrial levels.", "3.6 °F above pre-industrial levels.", True),
        ("Temperatures reached 86 °F.", "Temperatures reached 30 °C.", True),
        ("Temperatures rose to 30 °C.", "Temperatures rose to 86 °F.", True),
        ("Temperatures reached 30 °C.", "Temperatures reached 30 °F.", False),
        ("The mean is −18 °C.", "The mean is 255 K.", True),
        ("The mean is 18 °C.", "The mean is 255 K.", False),
        ("10 °C.", "14 °F.", False),
        ("It cooled by 5 K.", "It cooled by 5 °C.", True),
        ("It warmed by 278.15 K.", "It warmed by 5 °C.", False),
    ],
)
def test_shares_points_and_scales_of_temperature_are_told_apart_and_converted(sentence, passage, is_confirmed):
    assert (find_foreign_quantities(sentence, [passage]) == ()) == is_confirmed


@pytest.mark.parametrize("words", ["annual emissions", "yearly emissions", "emissions every year"])
def test_a_rate_may_be_said_apart_from_its_figure(words):
    assert not find_foreign_quantities(f"The {words} are 37 Gt.", ["It emits 37 Gt per year."])
    assert find_foreign_quantities("The emissions are 37 Gt.", ["It emits 37 Gt per year."])
