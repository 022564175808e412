"""A debate against an adversarial source that needs a second round, and its transcript in the documentation.

Answers are scripted, but as a participant would give them: each depends on what its prompt shows, and nobody is told
the round. After a change that is meant to show, write the documentation anew by running this file as a program, with
``tests`` in the PYTHONPATH.
"""

import functools
import re
from pathlib import Path

from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.grounding import format_sentence
from debate_tables import PAMPHLET, PHYSICAL, Script, View, among, hold

DOCUMENT = Path(__file__).parents[2] / "docs" / "examples" / "adversarial_debate.md"
BOOK = among(PHYSICAL, name="Book", excerpt_words=0)
ADVERSARY = among(PAMPHLET, excerpt_words=0)
QUESTIONS = {
    "Book": "How much has solar irradiance changed since 1750, and how large is the forcing by CO2?",
    "Pamphlet": "Which measurement shows that the Sun has become brighter since 1950?",
}
FORCING = "From 1750 to 2019 the effective forcing by CO2"
SUNSPOTS = "The sun delivers practically all"
SHOWN = "The change in solar irradiance over the same interval was close to zero"


def number_of(prompt: str, beginning: str) -> str | None:
    """The number under which a passage lies before somebody."""
    found = re.search(rf"(?:^|<user>)\[(\d+)\] (?:[^\n]*\n)?{re.escape(beginning)}", prompt, re.MULTILINE)
    return found[1] if found else None


def book(prompt: str) -> View:
    """Judges by its passage on forcing, and stays with it."""
    number = number_of(prompt, FORCING)
    assert number is not None
    says = f"The effective forcing by CO2 was about 2.16 W m⁻² [{number}]. {SHOWN} [{number}]."
    return View("incorrect", "robust", "high", "high", placement="misleading", says=says)


def pamphlet(prompt: str) -> View:
    """Argues its source, until it is asked for a measurement, which the source leaves out."""
    number = number_of(prompt, SUNSPOTS)
    if f"mediator asks: {QUESTIONS['Pamphlet']}" in prompt:
        says = f"My source names active solar cycles but no measurement since 1950 [{number}]."
        return View("inaccurate", "limited", "medium", "medium", placement="outlier", says=says)
    says = f"The twentieth century had some of the most active solar cycles on record [{number}]."
    return View("correct", "medium", "medium", "medium", placement="consensus", says=says)


def mediator(prompt: str) -> View:
    """Is certain only where nobody contradicts the measurement any more."""
    book_number = re.search(rf"{SHOWN} \[(\d+)\]", prompt)
    assert book_number is not None
    if re.search(r"^Pamphlet \(authority low; [^\n]*\): correct;", prompt, re.MULTILINE):
        says = f"One side has a measurement [{book_number[1]}], the other a coincidence."
        return View("misleading", "medium", "low", "low", says=says, asks=("Book", "Pamphlet"))
    says = f"Sunlight has hardly changed, while CO2 traps more heat [{book_number[1]}]."
    return View("incorrect", "robust", "high", "high", says=says)


def reply(prompt: str) -> str:
    """Answers from the passages that lie before the advocate."""
    number = number_of(prompt, FORCING)
    if number is not None:
        return f"{SHOWN}, within about 0.1 W m⁻² either way [{number}]."
    return f"My source names active cycles, but no measurement [{number_of(prompt, SUNSPOTS)}]."


@functools.cache
def debated():
    plans = {"Book": book, "Pamphlet": pamphlet, "mediator": mediator}
    script = Script(plans, question=QUESTIONS.__getitem__, reply=reply)
    return hold(script, BOOK, ADVERSARY, rounds=4)


def test_had_nobody_asked_for_a_measurement_nobody_would_have_changed():
    plans = {"Book": book, "Pamphlet": pamphlet, "mediator": mediator}
    held = hold(Script(plans, question="Why do you say so?", reply=reply), BOOK, ADVERSARY, rounds=4)
    assert held.reasons == ["contrast", "no change"]
    assert held.transcript.verdict.caveats == (
        "The advocates still differ: Book says incorrect, Pamphlet says correct.",
    )


INTRODUCTION = """\
# A debate against an adversarial source

Two advocates debate a claim. *Book* has three passages of the primer's book on physical climate; *Pamphlet*, the
adversary, has three of its collection of contrarian arguments and holds their standpoint. The mediator is therefore
neutral: it assumes of no source that it can be trusted.

**The words of the participants are scripted** in `tests/factcheck/test_adversarial.py`: the example shows the rules of
a debate, not the abilities of a model. Each scripted answer depends on what its prompt shows. Everything else is real:
the search, the numbers of the passages, the check of citations, the comparison of verdicts, who is asked, when the
debate goes on and why it ends. A test keeps this page up to date.
"""


def prose(sentences) -> str:
    return " ".join(format_sentence(sentence) for sentence in sentences)


def certainty(levels) -> str:
    likelihood = f", {levels.likelihood}" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def document() -> str:
    """The transcript as a page of the documentation."""
    transcript = debated().transcript
    lines = [INTRODUCTION, f"> {transcript.claim.text}"]
    for held in transcript.rounds:
        lines += ["", f"## Round {held.number}"]
        for one in held.follow_ups:
            lines += ["", f"**{one.asker} asks {one.to}:** {one.question}  ", f"**{one.to}:** {prose(one.reply)}"]
        for opinion in held.opinions:
            changed = ", changed" if opinion.changed else ""
            lines += [
                "",
                f"**{opinion.advocate}: {opinion.verdict}**{changed} ({certainty(opinion.levels)}; the claim: "
                f"{opinion.placement})  ",
                prose(opinion.explanation),
            ]
        lines += ["", decided(held.decision)]
    verdict = transcript.verdict
    lines += ["", f"## Verdict: {verdict.label}", "", f"{certainty(verdict.levels)}.", "", prose(verdict.explanation)]
    lines += ["", "## Passages that are cited"]
    for source in transcript.cited:
        lines += [
            "",
            f"[{source.number}] {source.citation} (collection `{source.collection}`)",
            "",
            f"> {source.passage.text}",
        ]
    return "\n".join(lines) + "\n"


def decided(decision) -> str:
    steps = len(CLIMATE_FEEDBACK.labels) - 1
    ends = "closes the debate" if decision.closes else "opens another round"
    return f"*The verdicts lie {decision.spread} of {steps} steps apart. The mediator {ends}: {decision.reason}.*"


def test_the_documented_transcript_is_that_of_this_debate():
    assert DOCUMENT.read_text(encoding="utf-8") == document()


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
