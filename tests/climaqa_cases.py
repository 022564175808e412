"""The case study of ClimaQA, appendix A.2.3, with the scores printed there."""

from typing import NamedTuple


class Case(NamedTuple):
    """A printed answer and its printed scores."""

    topic: str
    model: str
    reference: str
    answer: str
    bleu: float
    bert_score: float
    factual_accuracy: float


QUESTIONS = {
    "emission": (
        "How might the global emission estimates have been different if air quality measures were not "
        "introduced mainly targeted at large, coal-burning installations before 2000?"
    ),
    "Mars": ("How does the distance from the sun affect the surface pressure on Mars?"),
}

# Sub- and superscripts are written as plain digits and apostrophes are straight: the spelling under which most of the
# printed BLEU come out.
EMISSION_REFERENCE = (
    "Without the introduction of air quality measures mainly targeted at large, coal-burning installations "
    "before 2000, the global emission estimates, particularly for SO2, may not have shown a decrease before "
    "2000. The emissions could have continued to rise or remained at higher levels due to the ongoing "
    "industrial growth and lack of regulations to curb pollution from such sources."
)
MARS_REFERENCE = (
    "The surface pressure on Mars varies seasonally from 7.0 hPa during the austral winter, when Mars is "
    "farthest from the sun, to 9.0 hPa during the austral summer."
)
EMISSION_GEMMA = (
    "Global emission estimates would likely be significantly higher without those air quality measures. Reduced "
    "emissions from coal-burning power plants would have contributed less to the overall decline in global "
    "emissions observed since 2000."
)

CASES = (
    Case(
        "emission",
        "gpt-3.5-turbo",
        EMISSION_REFERENCE,
        "Global emission estimates would likely have been higher if air quality measures targeting large, "
        "coal-burning installations were not introduced before 2000, as these measures have helped to reduce "
        "emissions of pollutants such as sulfur dioxide and particulate matter.",
        0.485,
        0.901,
        0.988,
    ),
    Case(
        "emission",
        "gpt-4o",
        EMISSION_REFERENCE,
        "Without air quality measures targeting large, coal-burning installations before 2000, global "
        "emissions, particularly sulfur dioxide and particulate matter, would likely have been significantly "
        "higher, exacerbating air pollution and related health issues. This could have also contributed to more "
        "severe acid rain and potentially altered climate patterns due to increased atmospheric aerosols.",
        0.589,
        0.898,
        0.982,
    ),
    Case(
        "emission",
        "llama3-70b",
        EMISSION_REFERENCE,
        "If air quality measures were not introduced before 2000, global emission estimates would likely be "
        "higher, as coal-burning installations would have continued to emit large amounts of pollutants, "
        "including particulate matter, sulfur dioxide, and nitrogen oxides, contributing to increased "
        "greenhouse gas emissions. This could have resulted in an additional 1-2 gigatons of CO2 equivalent "
        "emissions per year, exacerbating climate change impacts.",
        0.542,
        0.888,
        0.968,
    ),
    Case(
        "emission",
        "mixtral-8x22b",
        EMISSION_REFERENCE,
        "If air quality measures hadn't been introduced for large, coal-burning installations before 2000, "
        "global emission estimates would likely have been significantly higher due to unregulated emissions "
        "from these sources. This could have potentially accelerated global warming and worsened air quality on "
        "a global scale.",
        0.546,
        0.910,
        0.988,
    ),
    Case(
        "emission",
        "gemma-27b",
        EMISSION_REFERENCE,
        EMISSION_GEMMA,
        0.364,
        0.885,
        0.741,
    ),
    Case(
        "Mars",
        "gpt-3.5-turbo",
        MARS_REFERENCE,
        "The distance from the sun does not directly affect the surface pressure on Mars; instead, the surface "
        "pressure on Mars is primarily influenced by the planet's atmospheric composition and temperature.",
        0.388,
        0.880,
        0.175,
    ),
    Case(
        "Mars",
        "gpt-4o",
        MARS_REFERENCE,
        "The distance from the Sun affects Mars' temperature, which in turn influences the sublimation of its "
        "polar ice caps, impacting atmospheric pressure. During warmer periods, more CO2 sublimates, increasing "
        "surface pressure, while colder periods result in lower pressure.",
        0.253,
        0.865,
        0.980,
    ),
    Case(
        "Mars",
        "llama3-70b",
        MARS_REFERENCE,
        "The distance from the Sun affects the surface pressure on Mars by controlling the amount of "
        "atmospheric gas that freezes out or escapes to space, with more gas freezing out at greater distances. "
        "As a result, Mars' surface pressure is about 1% of Earth's, due to its average distance from the Sun "
        "being about 1.5 times greater than Earth's.",
        0.262,
        0.861,
        0.896,
    ),
    Case(
        "Mars",
        "mixtral-8x22b",
        MARS_REFERENCE,
        "The distance from the sun does not significantly affect the surface pressure on Mars. Instead, Mars' "
        "thin atmosphere and low gravity are the primary factors influencing its surface pressure.",
        0.403,
        0.874,
        0.051,
    ),
    Case(
        "Mars",
        "gemma-27b",
        MARS_REFERENCE,
        "Mars is farther from the sun than Earth, receiving less solar radiation. This weaker solar heating "
        "results in a much lower surface pressure on Mars compared to Earth.",
        0.458,
        0.870,
        0.905,
    ),
)
