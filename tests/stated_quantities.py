"""Sentences that state a quantity, for properties: those that differ in one part of it never say the same."""

from itertools import product

from hypothesis import strategies as st

NEGATIONS = ("is", "is not")
COMPARATORS = ("", "> ", "< ", "≥ ", "≤ ", "at least ", "at most ", "more than ", "less than ", "up to ", "about ")
SIGNS = ("", "+", "-", "±")
NUMBERS = ("0.5", "5", "15", "1.5", "50", "0.05", "10²", "102")
UNITS = ("%", " K", " °C", " °F", " ppm", " ppb", " mm", " m", " MW", " mW", " W m-2", " W m-3", " percentage points")

statements = st.tuples(*map(st.sampled_from, (NEGATIONS, COMPARATORS, SIGNS, NUMBERS, UNITS))).map(
    lambda parts: "The change {} {}{}{}{}.".format(*parts)
)


@st.composite
def spellings(draw, text):
    """The same statement with other spaces, quotation marks around it or a word, and words in another case."""
    for space in (" ", "\N{NO-BREAK SPACE}", "\n", "  "):
        if draw(st.booleans()):
            text = text.replace(" ", space)
    if draw(st.booleans()):
        text = text.replace("The change", "THE “Change”")
    opening, closing = draw(st.sampled_from([("", ""), ('"', '"'), ("“", "”"), ("«", "»"), ("'", "'"), ("‘", "’")]))
    return f" {opening}{text}{closing}\t"


def all_statements():
    return [
        "The change {} {}{}{}{}.".format(*parts) for parts in product(NEGATIONS, COMPARATORS, SIGNS, NUMBERS, UNITS)
    ]
