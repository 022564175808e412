"""Does the answer rest on the passages: its numbers, its units, its words?"""

from climassay.generation.draft import Draft
from climassay.generation.screening.check import Check, right_answer
from climassay.generation.screening.words import content_words
from climassay.grounding.quantities import foreign_quantities, quantities
from climassay.questions import KINDS

LEAST_SHARE, LEAST_SHARE_OF_CHOICES = 0.4, 0.25
"""Least share of the content words of question and right answer, or of a statement, that the passages must have.
What rests on its passages says it in other words, but shares their terms; docs/results/screening.md has the shares."""
FEWEST_WORDS = 3
"""Texts of fewer content words are not judged by their share."""
_KIND_OF_RATE = {"yr": "time", "d": "days", "K": "temperature"}


def _foreign_quantity(draft: Draft) -> str | None:
    """Numbers and units that are nowhere in the passages.

    A reasoning or hypothetical question brings assumptions of its own and asks for what follows from them: there only
    a unit of the answer that neither passages nor question have is foreign.
    """
    texts = [passage.text for passage in draft.passages]
    if not texts:
        return None
    question, answer = draft.wording.question, right_answer(draft)
    if draft.level == "base" or not draft.type.levels:
        found = foreign_quantities(draft.type.claim(draft.content), texts)
        return f"The passages do not have {', '.join(found)}." if found else None
    known = [quantity.unit for text in (*texts, question) for quantity in quantities(text) if quantity.unit]
    # What is counted per year or per kelvin may well be asked in years or kelvins.
    kinds = {_KIND_OF_RATE.get(unit.rate, "") for unit in known}
    foreign = [
        quantity.text
        for quantity in quantities(answer)
        if quantity.unit
        and quantity.unit.kind.partition(":")[0] not in kinds
        and not any(quantity.unit.is_kind_of(unit) for unit in known)
    ]
    return f"Neither passages nor question have the unit of {', '.join(foreign)}." if foreign else None


def _unsupported(draft: Draft) -> str | None:
    if draft.kind == "freeform" and not any(letter.isdigit() for letter in draft.wording.answer):
        said = set(content_words(draft.wording.answer))
        if said and not said & set(content_words(draft.context)):
            return "No word of the answer stands in the passages."
    wanted = set(content_words(draft.type.claim(draft.content)))
    known = set(content_words(draft.context))
    if len(wanted) < FEWEST_WORDS or not known:
        return None
    share = len(wanted & known) / len(wanted)
    if share >= (LEAST_SHARE_OF_CHOICES if draft.type.options and not draft.type.states else LEAST_SHARE):
        return None
    missing = sorted(wanted - known)[:4]
    return f"The passages have {share:.0%} of its words; they lack for example {', '.join(missing)}."


CHECKS = (
    Check(
        "foreign quantity",
        KINDS,
        "Has a number or unit that the passages do not have (evolved levels: a unit that nothing given has).",
        _foreign_quantity,
    ),
    Check("unsupported answer", KINDS, "Shares too few words with the passages to rest on them.", _unsupported),
)
