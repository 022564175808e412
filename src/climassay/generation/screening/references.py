"""Does a question stand on its own? References to its source, to figures, and to things that are not there."""

import re

from climassay.generation.draft import Draft
from climassay.generation.screening.check import Check, stated_texts
from climassay.generation.screening.words import content_words
from climassay.questions import KINDS

# What a generator calls the text it was given; "text" and "section" need words around them, since science has
# contexts, passages and sections of its own ("passage of a front", "cross section", "in the context of warming").
_SOURCE = (
    r"(?:(?:given|provided|above|following|supplied|preceding|main|retrieved|present|accompanying)\s+)*"
    r"(?:context|contexts|text|passage|passages|excerpt|excerpts|extract|paragraph|paragraphs|textbook|book|chapter"
    r"|article|document|source text|reading|lecture notes?|material|author|authors)"
)
_NOT_OF = r"(?!\s+(?:of|in\s+which|for|through|that\s+air)\b)"
_CONTEXT = re.compile(
    rf"\b(?:according\s+to|based\s+(?:up)?on|as\s+(?:\w+\s+){{1,2}}(?:in|by)|(?:mentioned|described|stated|discussed"
    rf"|presented|given|provided|explained|outlined|defined|reported|noted|listed|cited|suggested|found)\s+(?:in|by)"
    rf"|from|per|in)\s+(?:the|this|these|that)\s+{_SOURCE}\b{_NOT_OF}"
    r"|\b(?:the|this)\s+(?:(?:given|provided|above|supplied|accompanying|main|retrieved)\s+)+"
    r"(?:context|text|passage|excerpt|paragraph|information|material)s?\b"
    rf"|\b(?:the|this)\s+(?:context|text|passage|excerpt|paragraph|chapter|textbook|article|authors?)\s+"
    r"(?:says?|states?|mentions?|describes?|discusses|notes?|explains?|suggests?|claims?|argues?|reports?|implies|imply"
    r"|indicates?|provides?|refers?|lists?|defines?|gives|emphasi[sz]es?|highlights?|calls?|considers?|proposes?"
    r"|presents?|is\s+about)\b"
    r"|\b(?:does|do|did|is|are|was|were)\s+(?:the|this)\s+(?:context|text|passage|excerpt|paragraph|chapter|textbook"
    rf"|authors?)\b{_NOT_OF}"
    r"|\bauthor(?:s)?['’]s?\s+(?:view|opinion|words?|argument|claim|conclusion|point)"
    r"|\bas\s+(?:mentioned|described|stated|discussed|explained|noted|shown|defined|introduced|seen)\s+"
    r"(?:above|below|earlier|previously|before)\b"
    r"|\b(?:described|mentioned|discussed|listed|stated|introduced)\s+(?:above|below|earlier)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\b(?:fig(?:ure|s)?|figures|table|tables|tab|equation|equations|eqn?s?|box|chapter|chapters|section|sections"
    r"|appendix|panel)\b\.?\s*(?:\(?\s*(?:[A-Z]{1,2}\.?)?\d+(?:[.\-–]\d+)*[a-z]?\)?(?![\w%°]|\s?(?:years?|km|m)\b)|(?-i:[IVX]{1,4})\b(?!-))"
    r"|\b(?:the|this)\s+(?:(?:above|following|accompanying|next|previous|preceding|given)\s+)"
    r"(?:figure|table|equation|graph|diagram|plot|map|image|illustration|chart|section|chapter|box)s?\b"
    r"|\b(?:shown|depicted|illustrated|plotted|displayed|listed|seen|presented|given|summari[sz]ed)\s+(?:in|on|by)\s+"
    r"(?:the|this)\s+(?:figure|table|equation|graph|diagram|plot|map|image|illustration|chart|section|chapter|box)\b"
    r"|\bin\s+(?:the|this)\s+(?:figure|table|graph|diagram|plot|image|illustration|chart|box)\b(?!\s+(?:of|model))",
    re.IGNORECASE,
)
# Opens the text and leans on something before it: a demonstrative with a word of a text about itself, or alone.
_LEANING = re.compile(
    r"^\W*(?:this|these|those|such|that|they|it|he|she|his|her|their|its)\b(?!\s+(?:is|was)\s+(?:true|known|often|widely"
    r"|estimated|thought|expected|projected|believed|assumed|possible|likely|necessary|important|difficult|well)\b|\s+(?:takes|follows|may\s+be|can\s+be|has\s+been)\b)"
    r"|^\W*(?:however|therefore|moreover|furthermore|in\s+addition|additionally|thus|hence|consequently"
    r"|as\s+a\s+result|on\s+the\s+other\s+hand|in\s+contrast|similarly|likewise|for\s+example|for\s+instance)\s*,",
    re.IGNORECASE,
)
_ABSENT = (
    r"(?:stud(?:y|ies)|authors?|experiments?|papers?|scientists|researchers|report|results|simulations?|survey"
    r"|investigation|work|article|observations|measurements|data\s?set|dataset|analysis|scenario|method|case|findings)"
)
_UNNAMED = re.compile(
    r"\b(?:the|these)\s+(?:authors?|researchers)\b(?!\s+of\b)"
    r"|\b(?:the|this|these)\s+(?:present\s+|current\s+)?(?:study|paper|article|report)\b(?!\s+(?:of|by|on|from|that|which)\b)"
    rf"|\b(?:in|of|from|by|during)\s+(?:the|these|those)\s+{_ABSENT}\s+(?:described|mentioned|discussed|presented"
    r"|considered|conducted|performed|reported|shown|given|here)\b"
    rf"|\b(?:the|these)\s+{_ABSENT}\s+(?:described|mentioned|discussed|presented)\b",
    re.IGNORECASE,
)

# *Which of these statements ...* points to the options.
_POINTING = re.compile(
    r"(?<!\bof )(?<!\bof the )\b(?:this|these)\s+(?!(?:century|millennium|decade|day|days|year)\b)[a-z]{3,}",
    re.IGNORECASE,
)
_WHICH = (
    r"(?:low|high|larg|small|strong|weak|warm|cold|earli|lat|old|young|great)er|first|second|third|former|latter|other"
    r"|two|three"
)
_CASES = (
    r"scenarios?|pathways?|cases?|experiments?|simulations?|(?:model\s+)?runs?|projections?|stud(?:y|ies)|groups?"
    r"|reports?"
    r"|programmes?|programs?|approach(?:es)?"
)
_ONE_OF_SEVERAL = re.compile(
    rf"\b(?:the|these|those|both)\s+(?:{_WHICH})\s+(?:one|of\s+them|{_CASES})\b(?!\s+(?:of|in\s+which|that|with|without|where|from|by)\b)",
    re.IGNORECASE,
)
"""One of several cases, told by its rank and not by a name: *the lower scenario*."""
_NAMED_CASE = re.compile(r"\b(?:SSP|RCP|B[12]|A1B|A2|IS92)\w*|\bscenarios?\s+(?:of|with|in\s+which|without)\b|[\"“‘]")
_PERSONS = re.compile(r"author|researcher|scientist|paper|article|report|stud(?:y|ies)", re.IGNORECASE)
_SUPPOSED = re.compile(r"^\W*(?:suppose|if|imagine|consider|assume|given|when)\b|[.;:]\s", re.IGNORECASE)
FEWEST_BEFORE = 2
"""Content words that a question must have before *this* or *these* for there to be something it can point to."""


def _first(pattern: re.Pattern[str], draft: Draft) -> str | None:
    found = (pattern.search(text) for text in stated_texts(draft))
    return next((" ".join(match[0].split()) for match in found if match), None)


def _context_reference(draft: Draft) -> str | None:
    found = _first(_CONTEXT, draft)
    return None if found is None else f"It speaks of its source: “{found}”."


def _figure_reference(draft: Draft) -> str | None:
    found = _first(_FIGURE, draft)
    return None if found is None else f"It leans on something outside: “{found}”."


def _not_self_contained(draft: Draft) -> str | None:
    question = draft.wording.question
    leaning = _LEANING.search(question)
    if leaning:
        return f"It opens with “{leaning[0].strip()}”, which points to something before it."
    pointing = _POINTING.search(question)
    if pointing and len(content_words(question[: pointing.start()])) < FEWEST_BEFORE:
        return f"It speaks of “{pointing[0]}” before it has said what that is."
    ranked = _ONE_OF_SEVERAL.search(question)
    if ranked and not _NAMED_CASE.search(question) and not _introduced(ranked[0], question[: ranked.start()]):
        return f"It speaks of “{ranked[0]}”, which nobody has named."
    unnamed = _UNNAMED.search(question)
    if unnamed and not _introduced(unnamed[0], question[: unnamed.start()]):
        return f"It speaks of “{' '.join(unnamed[0].split())}”, which nobody has named."
    return None


def _introduced(mention: str, before: str) -> bool:
    """Whether the question itself has said what it speaks of.

    A study may be taken up again (*a study ... the study*); a scenario or an experiment is what the question has
    supposed, or has told in a sentence of its own.
    """
    nouns = [word.lower().removesuffix("s") for word in re.findall(r"[A-Za-z]{4,}", mention)]
    pointing = {"this", "these", "those", "present", "current"}
    if any(noun in before.lower() for noun in nouns if noun not in pointing and not re.fullmatch(_WHICH, noun)):
        return True
    return not _PERSONS.search(mention) and _SUPPOSED.search(before) is not None


CHECKS = (
    Check("context reference", KINDS, "Refers to the context, text, passage or its author.", _context_reference),
    Check("figure reference", KINDS, "Refers to a figure, table, equation, box or section.", _figure_reference),
    Check(
        "not self-contained",
        KINDS,
        "Leans on something that is not there: a dangling *this*, *the authors*, *the experiment described*.",
        _not_self_contained,
    ),
)
