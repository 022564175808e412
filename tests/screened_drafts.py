"""Drafts for tests of the screening: good ones of each kind, to be made faulty in one respect."""

from climassay.generation import Draft, Origin, SourcePassage, Wording

PASSAGE = (
    "Pure cloud droplets freeze homogeneously only near −38 °C, because at higher temperatures the chance that "
    "molecules arrange themselves into an ice embryo of critical size is negligible. At warmer temperatures freezing "
    "relies on an ice-nucleating particle, most often immersed in the droplet. Mineral dust is the leading type below "
    "about −15 °C, while certain bacterial proteins nucleate ice at a few degrees below zero."
)
ORIGIN = Origin("local:writer", "f" * 64, (("generate_mcq", "a" * 64),), 7)
QUESTION = "At which temperature do pure cloud droplets freeze without an ice-nucleating particle?"
OPTIONS = ("Near −15 °C", "Near −38 °C", "Near −5 °C", "Near −60 °C")
ASKED = "Why do pure cloud droplets not freeze at higher temperatures?"
ANSWER = "The chance that molecules arrange themselves into an ice embryo of critical size is negligible there."
STATEMENT = "At warmer temperatures the freezing of droplets relies on an immersed particle such as mineral dust."


def mcq(question=QUESTION, options=OPTIONS, correct=1, *, id="q1", level="base", passage=PASSAGE, error=None):
    answer = options[correct] if correct is not None and correct < len(options) else ""
    return _draft(id, "mcq", level, Wording(question, answer, tuple(options), correct), passage, error)


def freeform(question=ASKED, answer=ANSWER, *, id="q2", level="base", passage=PASSAGE, error=None):
    return _draft(id, "freeform", level, Wording(question, answer), passage, error)


def cloze(statement=STATEMENT, term="", *, id="q3", passage=PASSAGE, error=None):
    return _draft(id, "cloze", "base", Wording(statement, term), passage, error)


def _draft(id, kind, level, wording, passage, error):
    source = SourcePassage("p1", passage, "book", "A book", "Ice", "A book, p. 3")
    return Draft(id, kind, level, wording, (source,), ORIGIN, error=error)


def faults(draft, **options):
    """Reasons for which a draft is stopped by the screening."""
    from climassay.generation.screening import screen

    return [one.reason for one in screen([draft], **options)[0].decisions if one.accepted is False]
