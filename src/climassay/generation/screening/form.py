"""Does it have the form of a question with an answer?"""

import re
from difflib import SequenceMatcher

from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Draft
from climassay.generation.screening.check import ASKED, Check
from climassay.generation.screening.words import words
from climassay.questions import KINDS

MOST_SENTENCES = 2
COPIED_WORDS = 8
COPIED_SHARE = 0.9
"""A question is copied where a run of so many words, and this share of them all, stands in a passage."""
_GAP = re.compile(r"(?:_{2,}|\.{3}|…|:|<MASK>)")
_TASK = re.compile(
    r"(?:^|[.;:]\s+|,\s+(?:and\s+)?)(?:briefly\s+|then\s+)?(?:account\s+for|analy[sz]e|argue|assess|calculate|characteri[sz]e"
    r"|classify|compare|compute|contrast|deduce|define|derive|describe|determine|differentiate|discuss|distinguish"
    r"|elaborate|estimate|evaluate|examine|explain|give|identify|illustrate|infer|interpret|justify|list|name|outline"
    r"|predict|propose|quantify|relate|say|show|sketch|specify|state|suggest|summari[sz]e|tell|trace|work\s+out)\b",
    re.IGNORECASE,
)
"""A task: a sentence, or a clause after the case that was put, that begins with what is to be done."""
_ASKING = re.compile(r"\?[\"'”’)\]]*\s*(?:\([^()]*\)\s*\.?\s*)?$")


def _no_question_mark(draft: Draft) -> str | None:
    question = draft.wording.question.strip()
    if _ASKING.search(question):
        return None
    if draft.kind == "mcq" and (_GAP.search(question) or not question.endswith((".", "!"))):
        return None  # an unfinished sentence that an option completes
    if _TASK.search(question):
        return None
    return f"It ends in “{question[-30:]}”, which asks nothing."


def _copied(draft: Draft) -> str | None:
    asked = words(draft.wording.question)
    for passage in draft.passages:
        source = words(passage.text)
        run = SequenceMatcher(None, asked, source, autojunk=False).find_longest_match()
        if run.size >= COPIED_WORDS and run.size >= COPIED_SHARE * len(asked):
            return f"{run.size} of its {len(asked)} words stand in a passage in this order."
    return None


def _long_answer(draft: Draft) -> str | None:
    count = len(split_sentences(draft.wording.answer))
    return f"The answer has {count} sentences." if count > MOST_SENTENCES else None


def _no_answer(draft: Draft) -> str | None:
    wording = draft.wording
    if not wording.question.strip():
        return "There is no question."
    if draft.kind == "freeform" and not words(wording.answer):
        return "There is no answer."
    if draft.kind == "freeform" and wording.answer.strip().endswith("?"):
        return "The answer is a question."
    return None


CHECKS = (
    Check("no answer", KINDS, "Question or answer is empty, or the answer asks back.", _no_answer),
    Check(
        "no question mark",
        ASKED,
        "Asks nothing: no question mark, no task, no gap, no sentence to complete.",
        _no_question_mark,
    ),
    Check("copied question", ASKED, "The question is a run of words of the passage.", _copied),
    Check("long answer", ("freeform",), "The answer has more than two sentences.", _long_answer),
)
