"""Every check of one draft, in the order in which faults are listed.

First the words alone: is it a question with an answer, in the wanted language, that stands on its own? Then what
multiple choice and cloze statements are prone to: options and clues, the sentence and the masked term. Last whether the
answer rests on the passages: its numbers, units and words, and its meaning as models measure it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, combinations, zip_longest
from math import isclose

import numpy as np

from climassay.corpus.documents import split_sentences
from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, has_term
from climassay.generation.screening.check import (
    ASKED,
    CHECKS,
    CHOICE,
    FUNCTION_WORDS,
    STATED,
    Check,
    check,
    content_words,
    right_answer,
    stem,
    word_set,
    words,
)
from climassay.generation.terms import FUNCTION_WORDS as MASKER_FUNCTION_WORDS
from climassay.generation.terms import GENERIC
from climassay.grounding.quantities import foreign_quantities, quantities
from climassay.metrics import Entailment, RelationScorer
from climassay.models.contract import Encoder
from climassay.questions import KINDS
from climassay.reporting import counted

MOST_SENTENCES = 2
COPIED_WORDS = 8
COPIED_SHARE = 0.9
"""A question is copied where a run of so many words, and this share of them all, appears in a passage."""
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


@check("no answer", KINDS, "Question or answer is empty, or the answer asks back.")
def _no_answer(draft: Draft) -> str | None:
    wording = draft.wording
    if not wording.question.strip():
        return "There is no question."
    if draft.kind == "freeform" and not words(wording.answer):
        return "There is no answer."
    if draft.kind == "freeform" and wording.answer.strip().endswith("?"):
        return "The answer is a question."
    return None


@check("no question mark", ASKED, "Asks nothing: no question mark, no task, no gap, no sentence to complete.")
def _no_question_mark(draft: Draft) -> str | None:
    question = draft.wording.question.strip()
    if _ASKING.search(question):
        return None
    if draft.kind == "mcq" and (_GAP.search(question) or not question.endswith((".", "!"))):
        return None  # an unfinished sentence that an option completes
    if _TASK.search(question):
        return None
    return f"It ends in “{question[-30:]}”, which asks nothing."


@check("copied question", ASKED, "The question is a run of words of the passage.")
def _copied(draft: Draft) -> str | None:
    asked = words(draft.wording.question)
    for passage in draft.passages:
        source = words(passage.text)
        run = SequenceMatcher(None, asked, source, autojunk=False).find_longest_match()
        if run.size >= COPIED_WORDS and run.size >= COPIED_SHARE * len(asked):
            return f"{run.size} of its {len(asked)} words stand in a passage in this order."
    return None


@check("long answer", ("freeform",), "The answer has more than two sentences.")
def _long_answer(draft: Draft) -> str | None:
    count = len(split_sentences(draft.wording.answer))
    return f"The answer has {count} sentences." if count > MOST_SENTENCES else None


_LISTS = {
    "en": """the of and to in is that it for was on are as with be by at from this have or had not but what which when
        how why who where than then would could should does do did its their there been has into over between during
        after before these those if will can may more most such also about through under because while an""",
    "de": """der die das und in den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er
        hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis
        mehr durch man welche welcher warum wann wo wenn kein unter zwischen""",
    "fr": """le la les de des du et en un une est que qui dans pour par sur au aux il elle ce cette ces ne pas plus se
        avec sont son sa ses ou où mais comme leur leurs été être ont avait entre après avant quelle quel quelles
        pourquoi comment quand si sous dont lors""",
    "es": """el la los las de del y en un una es que se por con para su sus al lo como más pero sus le ya o este esta
        estos entre cuando muy sin sobre también me hasta hay donde quien desde qué cuál cuáles cómo son fue ha no
        durante según""",
    "pt": """o a os as de do da dos das e em um uma é que se por com para seu sua ao à no na nos nas como mais mas foi
        são pelo pela pelos pelas entre quando muito sem sobre também até há onde quem desde qual quais não ou isso este
        esta ser tem durante""",
    "it": """il lo la i gli le di del della dei delle e in un una è che si per con su al alla come più ma sono da dal
        dalla nel nella non anche o questo questa tra quando quale quali perché dove chi ha stato essere loro durante
        gli dopo prima""",
    "nl": """de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar bij nog uit door over naar
        hij zij wordt werd kan deze dit die tot wat waarom wanneer hoe welke tussen onder tijdens meer heeft hebben
        geen of""",
}
LANGUAGES: Mapping[str, frozenset[str]] = {code: frozenset(text.split()) for code, text in _LISTS.items()}
"""Function words by ISO 639-1 code."""
LANGUAGE_LEAD = 2
"""Another language must have so many function words more than the wanted one ..."""
LANGUAGE_SHARE = 0.15
"""... and they must be this share of all words."""
FOREIGN_SCRIPT = 0.3
"""Share of letters of another script than Latin from which a text is not in any of these languages (Greek symbols are
single letters in a text of words)."""
_WORD = re.compile(r"[^\W\d_]+")
_NOT_LATIN = re.compile(r"[^A-Za-z\u00aa-\u024f\u1e00-\u1eff]")
_ET_AL = re.compile(r"\bet al\b")


def other_language(text: str, wanted: str = "en") -> str | None:
    """What a text is written in where it is not the wanted language.

    Returns:
        A code of :data:`LANGUAGES`, ``another script``, or None where the text may be in the wanted language.

    Raises:
        InputError: The wanted language is not known.
    """
    check_language(wanted)
    results = [word.lower() for word in _WORD.findall(_ET_AL.sub(" ", text))]
    letters = "".join(results)
    if letters and len(_NOT_LATIN.findall(letters)) >= FOREIGN_SCRIPT * len(letters):
        return "another script" if len(letters) >= 10 else None
    counts = Counter(results)
    hits = {code: sum(counts[word] for word in known) for code, known in LANGUAGES.items()}
    best = max(hits, key=lambda code: (hits[code], code == wanted))
    if hits[best] - hits[wanted] < LANGUAGE_LEAD or hits[best] < LANGUAGE_SHARE * len(results):
        return None
    return best


def check_language(code: str) -> None:
    """Refuse a language whose function words are not known.

    Raises:
        InputError: It is not one of :data:`LANGUAGES`.
    """
    if code not in LANGUAGES:
        raise InputError(f"The language {code!r} is not supported: use one of {', '.join(LANGUAGES)}.")


def language_check(wanted: str = "en") -> Check:
    """The check that all that a reader is shown is in one language.

    Raises:
        InputError: The language is not known.
    """
    check_language(wanted)

    def examine(draft: Draft) -> str | None:
        result = other_language(" ".join(draft.type.visible_texts(draft.content)), wanted)
        return None if result is None else f"It is written in {result}, not in {wanted}."

    return Check("other language", KINDS, "Is written in another language than the one asked for.", examine)


CHECKS.add("other language", language_check(), __name__)


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
"""One of several cases, named by its rank and not by a name: *the lower scenario*."""
_NAMED_CASE = re.compile(r"\b(?:SSP|RCP|B[12]|A1B|A2|IS92)\w*|\bscenarios?\s+(?:of|with|in\s+which|without)\b|[\"“‘]")
_PERSONS = re.compile(r"author|researcher|scientist|paper|article|report|stud(?:y|ies)", re.IGNORECASE)
_SUPPOSED = re.compile(r"^\W*(?:suppose|if|imagine|consider|assume|given|when)\b|[.;:]\s", re.IGNORECASE)
FEWEST_BEFORE = 2
"""Content words that a question must have before *this* or *these* for there to be something it can point to."""


def _first(pattern: re.Pattern[str], draft: Draft) -> str | None:
    results = (pattern.search(text) for text in draft.type.visible_texts(draft.content))
    return next((" ".join(match[0].split()) for match in results if match), None)


@check("context reference", KINDS, "Refers to the context, text, passage or its author.")
def _context_reference(draft: Draft) -> str | None:
    result = _first(_CONTEXT, draft)
    return None if result is None else f"It speaks of its source: “{result}”."


@check("figure reference", KINDS, "Refers to a figure, table, equation, box or section.")
def _figure_reference(draft: Draft) -> str | None:
    result = _first(_FIGURE, draft)
    return None if result is None else f"It leans on something outside: “{result}”."


@check(
    "not self-contained",
    KINDS,
    "Leans on something that is not there: a dangling *this*, *the authors*, *the experiment described*.",
)
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


OPTIONS = 4
_GATHERING = re.compile(
    r"\b(?:all|none|both|any|either|neither|some)\s+of\s+(?:(?:the\s+)?(?:above|(?:other|given)\s+options|options)\b"
    r"|(?:these|those|them)\W*$)"
    r"|\b(?:both|neither|only|either)\s+\(?[a-d]\)?\s*(?:and|or|nor|&|,)\s*\(?[a-d]\)?(?=\W|$)"
    r"|^\W*(?:options?\s+)?\(?[a-d]\)?\s+(?:and|or|&)\s+\(?[a-d]\)?\W*$|^\W*(?:all|none|both)\W*$"
    r"|\b(?:not\s+enough|insufficient)\s+information\b|\bcannot\s+be\s+determined\b",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"^\W*(?:not\b(?!\s+(?:only|merely|just|all))|no\b(?!\s*[-.\d]|\s+(?:change|effect|response|trend|difference|net))"
    r"|never\b|cannot\b)"
    r"|^(?:\w+\s+){0,4}(?:does|do|did|is|are|was|were|has|have|can|could|will|would|should|must)(?:\s+not|n['’]t)\b"
    r"(?!\s+(?:only|yet|always|change|vary|respond|differ|depend)\b)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-−–+]?\d+(?:[.,]\d+)*")


@check("option count", CHOICE, "Has not exactly four options with one marked as correct.")
def _count(draft: Draft) -> str | None:
    wording = draft.wording
    empty = sum(not option.strip() for option in wording.options)
    if len(wording.options) != OPTIONS or empty:
        return f"It has {counted(len(wording.options), 'option')}" + (
            f", {empty} of them empty." if empty else ", not four."
        )
    if wording.correct is None or not 0 <= wording.correct < len(wording.options):
        return "No option is marked as the correct one."
    return None


def _plain(option: str) -> tuple[str, ...]:
    """Words of an option without articles, numbers kept as they are."""
    text = re.sub(r"^\W*[a-dA-D][).:]\s+", "", option).replace("−", "-").replace("–", "-")
    return tuple(re.findall(r"-?\d+(?:\.\d+)?|\w+|%", re.sub(r"\b(?:a|an|the)\b", " ", text.casefold())))


@check("duplicate options", CHOICE, "Two options are the same but for case, articles or punctuation.")
def _duplicates(draft: Draft) -> str | None:
    for first, second in combinations(draft.wording.options, 2):
        if _plain(first) == _plain(second):
            return f"“{first}” appears twice."
    return None


@check(
    "overlapping options",
    CHOICE,
    "Two options say the same in other forms of words, or one is the other with something added.",
)
def _overlap(draft: Draft) -> str | None:
    for first, second in combinations(draft.wording.options, 2):
        if _plain(first) == _plain(second):
            continue
        if _same_quantities(first, second):
            return f"“{first}” and “{second}” are the same quantity."
        # The same stems in the same order but for function words.
        if _stems(first) == _stems(second) != () or _within(first, second):
            return f"“{first}” and “{second}” say nearly the same."
    return None


# A degree makes another answer: *likely* and *very likely*, *high confidence* and *very high confidence* exclude
# each other on their scales.
_MEANING = word_set(
    "no not never nor neither without less more least most few many much above below before after up down over under"
    " into from in out off on against between within all only each every both either same other again"
    " further as to by very extremely exceptionally virtually highly nearly almost partly fully wholly slightly"
    " strongly weakly about than"
)


def _stems(option: str) -> tuple[str, ...]:
    """Stems of an option's words; numbers, negations and comparisons count as content."""
    return tuple(stem(word) for word in _plain(option) if word in _MEANING or word not in FUNCTION_WORDS)


def _within(first: str, second: str) -> bool:
    """Whether one option is the other with a beginning or an end added: an answer that is true where the other is.

    A comparison, a negation or a number in what is added makes another answer of it.
    """
    short, long = sorted((_plain(first), _plain(second)), key=len)
    if len(short) < 2 or len(short) == len(long) or _NUMBER.fullmatch(short[-1]):
        return False
    if long[: len(short)] == short:
        added = long[len(short) :]
    elif long[-len(short) :] == short:
        added = long[: -len(short)]
    else:
        return False
    return not any(word in _MEANING or word[0].isdigit() or word.startswith("-") for word in added)


_ROUGHLY = word_set("about around roughly approximately circa some to and between from by at near")


def _same_quantities(first: str, second: str) -> bool:
    """Whether both options consist of the same numbers in the same unit, written in two ways."""

    def other_words(option: str) -> tuple[str, ...]:
        for quantity in quantities(option):
            option = option.replace(quantity.text, " ", 1)
        return tuple(word for word in _plain(option) if word not in _ROUGHLY and not word[0].isdigit())

    pairs = list(zip_longest(quantities(first), quantities(second)))
    return (
        other_words(first) == other_words(second)
        and bool(pairs)
        and all(
            one is not None
            and other is not None
            and one.unit is not None
            and other.unit is not None
            and one.unit.is_kind_of(other.unit)
            and one.unit.rate == other.unit.rate
            and isclose(one.value * one.unit.factor, other.value * other.unit.factor)
            for one, other in pairs
        )
    )


@check("gathering option", CHOICE, "An option is *all of the above*, *none of the above* or the like.")
def _gathering(draft: Draft) -> str | None:
    result = next((option for option in draft.wording.options if _GATHERING.search(option)), None)
    return None if result is None else f"The option “{result}” gathers the others or avoids an answer."


@check("negative option", CHOICE, "An option denies instead of stating.")
def _negative(draft: Draft) -> str | None:
    negative = [option for option in draft.wording.options if _NEGATIVE.search(option)]
    if not negative or len(negative) == len(draft.wording.options):
        return None
    return f"“{negative[0]}” is phrased negatively."


LONGER = 1.6
"""The correct option gives itself away from this many times the length of the longest distractor ..."""
LONGER_CHARACTERS = 20
"""... and so many characters more."""
SHARED = 2
"""So many content words of the stem in the correct option alone give it away, if they are half of its words."""
_ARTICLE = re.compile(r"\b(an?)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$", re.IGNORECASE)
_VOWEL = re.compile(
    r"^\W*(?:(?!u[bcfhjknqrstv][aeiou]|uni|eu|one\b|once\b|UV|US\b)[aeiouAEIOU8]|hour|honest|heir|11\b|18\b)"
)
_PLURAL_STEM = re.compile(
    r"\b(?:are|were)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$|^\W*which\s+(?:\w+\s+){1,3}(?:are|were)\b", re.IGNORECASE
)
_SINGULAR_STEM = re.compile(
    r"\b(?:is|was)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$|^\W*which\s+(?:\w+\s+){1,3}(?:is|was)\b", re.IGNORECASE
)


def _distractors(draft: Draft) -> list[str]:
    return [option for place, option in enumerate(draft.wording.options) if place != draft.wording.correct]


@check("clue by length", CHOICE, "The correct option is far longer or shorter than all others.")
def _length(draft: Draft) -> str | None:
    answer, others = right_answer(draft).strip(), [option.strip() for option in _distractors(draft)]
    if draft.wording.correct is None or not others:
        return None
    longest, shortest = max(map(len, others)), min(map(len, others))
    if len(answer) >= LONGER * longest and len(answer) - longest >= LONGER_CHARACTERS:
        return f"The correct option has {len(answer)} characters, the longest other one {longest}."
    if shortest >= LONGER * len(answer) and shortest - len(answer) >= LONGER_CHARACTERS:
        return f"The correct option has {len(answer)} characters, the shortest other one {shortest}."
    return None


@check("clue by words", CHOICE, "Only the correct option takes up the words of the stem.")
def _copied_words(draft: Draft) -> str | None:
    if draft.wording.correct is None:
        return None
    stem = set(content_words(draft.wording.question))
    answer = set(content_words(right_answer(draft)))
    others = set().union(*(content_words(option) for option in _distractors(draft)))
    telling = sorted((answer & stem) - others)
    if any(len((set(content_words(option)) & stem) - answer) >= SHARED for option in _distractors(draft)):
        # A distractor takes up other words of the stem, as where the stem itself names what is to be compared.
        return None
    if len(telling) >= SHARED and 2 * len(telling) >= len(answer):
        return f"Only the correct option takes up words of the stem: {', '.join(telling)}."
    return None


@check("clue by grammar", CHOICE, "Article or number of the stem fits the correct option alone.")
def _grammar(draft: Draft) -> str | None:
    if draft.wording.correct is None or len(draft.wording.options) < 2:
        return None
    stem, answer, others = draft.wording.question, right_answer(draft), _distractors(draft)
    if article := _ARTICLE.search(stem):
        wants_vowel = article[1].lower() == "an"
        fits, *others_fit = ((_VOWEL.match(option) is not None) == wants_vowel for option in (answer, *others))
        if fits and not any(others_fit):
            return f"The article “{article[1]}” before the gap fits the correct option alone."
    for pattern, plural, name in ((_PLURAL_STEM, True, "plural"), (_SINGULAR_STEM, False, "singular")):
        if (
            pattern.search(stem)
            and _is_plural(answer) is plural
            and all(_is_plural(one) is not plural for one in others)
        ):
            return f"The stem asks for a {name}, and the correct option alone is one."
    return None


def _is_plural(option: str) -> bool:
    """Whether a short option looks like a plural noun; whole clauses never do."""
    result = words(option)
    if not result or len(result) > 5:
        return False
    last = result[-1]
    return " and " in option or (last.endswith("s") and not last.endswith(("ss", "us", "is", "ics", "ous")))


MOST_WORDS = 60
FEWEST_WORDS = 6
_ONE_WORD = re.compile(r"[^\W_]+(?:[-‐–'’][^\W_]+)*")
_NUMBER_WORDS = word_set(
    "zero one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second"
    " third half quarter"
)
_TRIVIAL = FUNCTION_WORDS | MASKER_FUNCTION_WORDS | GENERIC


@check("several sentences", STATED, "The statement is not one sentence of usual length.")
def _sentences(draft: Draft) -> str | None:
    statement = draft.wording.question.strip()
    count = len(split_sentences(statement))
    if count != 1:
        return f"The statement has {count} sentences."
    if statement.endswith("?"):
        return "The statement is a question."
    length = len(words(statement))
    if not FEWEST_WORDS <= length <= MOST_WORDS:
        return f"The statement has {length} words, not {FEWEST_WORDS} to {MOST_WORDS}."
    return None


@check("term not one word", STATED, "The masked term has several words or none.")
def _not_one_word(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    return f"“{term}” is not one word." if term and not _ONE_WORD.fullmatch(term) else None


@check("term absent", STATED, "The masked term is not a word of the statement.")
def _absent(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    return None if not term or has_term(draft.wording.question, term) else f"“{term}” is not a word of the statement."


@check("term repeated", STATED, "The statement has the masked term, or a form of it, a second time.")
def _repeated(draft: Draft) -> str | None:
    """The term, or another form of it, appears elsewhere in the statement and gives itself away."""
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    wanted = tuple(map(stem, words(term)))
    results = [stem(word) for word in words(draft.wording.question)]
    times = sum(tuple(results[place : place + len(wanted)]) == wanted for place in range(len(results)))
    return f"“{term}” or a form of it stands there {times} times." if times > 1 else None


@check("term trivial", STATED, "The masked term is a function word, a number, or a word of any science.")
def _trivial(draft: Draft) -> str | None:
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    if term in _TRIVIAL or len(term) < 2 or not any(character.isalpha() for character in term):
        return f"“{term}” says nothing of the subject."
    return f"“{term}” is a number." if term in _NUMBER_WORDS else None


TERM_CHECKS = ("term not one word", "term absent", "term repeated", "term trivial")
"""Checks that see something only once a term is chosen: they are worth running again after masking."""


LEAST_SUPPORT, LEAST_SUPPORT_OF_CHOICES = 0.4, 0.25
"""Least share of the content words of question and right answer, or of a statement, that the passages must have.
What rests on its passages says it in other words, but shares their terms; docs/results/screening.md has the shares."""
FEWEST_CONTENT_WORDS = 3
"""Texts of fewer content words are not judged by their share."""
_KIND_OF_RATE = {"yr": "time", "d": "days", "K": "temperature"}


@check(
    "foreign quantity",
    KINDS,
    "Has a number or unit that the passages do not have (evolved levels: a unit that nothing given has).",
)
def _foreign_quantity(draft: Draft) -> str | None:
    """Numbers and units that are nowhere in the passages.

    A reasoning or hypothetical question brings assumptions of its own and asks for what follows from them: there only
    a unit of the answer that neither passages nor question have is foreign.
    """
    texts = [passage.text for passage in draft.passages]
    if not texts:
        return None
    question, answer = draft.wording.question, right_answer(draft)
    if draft.level == "base" or not draft.type.has_levels:
        result = foreign_quantities(draft.type.claim(draft.content), texts)
        return f"The passages do not have {', '.join(result)}." if result else None
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


@check("unsupported answer", KINDS, "Shares too few words with the passages to rest on them.")
def _unsupported(draft: Draft) -> str | None:
    if draft.kind == "freeform" and not any(letter.isdigit() for letter in draft.wording.answer):
        said = set(content_words(draft.wording.answer))
        if said and not said & set(content_words(draft.context)):
            return "No word of the answer stands in the passages."
    wanted = set(content_words(draft.type.claim(draft.content)))
    known = set(content_words(draft.context))
    if len(wanted) < FEWEST_CONTENT_WORDS or not known:
        return None
    share = len(wanted & known) / len(wanted)
    if share >= (LEAST_SUPPORT_OF_CHOICES if draft.type.has_options and not draft.type.is_statement else LEAST_SUPPORT):
        return None
    missing = sorted(wanted - known)[:4]
    return f"The passages have {share:.0%} of its words; they lack for example {', '.join(missing)}."


LEAST_COSINE = 0.45
"""Least cosine between question with answer and the nearest part of the passages, for the bundled encoder."""
LEAST_ENTAILED = 0.5
"""Least P(passages entail the answer) for scorers that know two classes only."""
CONTRADICTED = 0.5
"""P(passages contradict the answer) from which it is faulty, for scorers that know three classes."""
MODEL_CHECKS: dict[str, str] = {
    "off topic": "Question and answer are far from everything in the passages (needs an encoder).",
    "not entailed": "The passages contradict the answer, or do not entail it (needs an entailment scorer).",
}


def off_topic(drafts: Sequence[Draft], encoder: Encoder) -> list[Decision | None]:
    """Rejections by the cosine to the nearest pair of neighbouring sentences of the passages, None for other drafts."""
    if not drafts:
        return []
    parts = []
    for draft in drafts:
        sentences = [split_sentences(passage.text) for passage in draft.passages]
        pairs = [" ".join(own[place : place + 2]) for own in sentences for place in range(max(1, len(own) - 1))]
        parts.append([pair for pair in pairs if pair])
    asked = encoder.encode([f"{draft.wording.question} {right_answer(draft)}".strip() for draft in drafts])
    vectors = encoder.encode([part for one in parts for part in one])
    results: list[Decision | None] = []
    for own, end, vector in zip(parts, accumulate(map(len, parts)), asked, strict=True):
        cosine = float(np.max(vectors[end - len(own) : end] @ vector, initial=-1.0))
        detail = f"The nearest part of the passages has a cosine of {cosine:.2f}, less than {LEAST_COSINE}."
        far = Decision("screen", "off topic", False, "off topic", detail, cosine)
        results.append(None if cosine >= LEAST_COSINE else far)
    return results


def not_entailed(drafts: Sequence[Draft], scorer: Entailment) -> list[Decision | None]:
    """Rejections by P(contradicts) where the scorer tells it, else by P(entails); None for drafts that pass.

    A draft for which the scorer gives no probability is undecided.
    """
    claims = {place: claim for place, draft in enumerate(drafts) if (claim := draft.type.claim(draft.content))}
    result: list[Decision | None] = [None] * len(drafts)
    if not claims:
        return result
    pairs = [(drafts[place].context, claim) for place, claim in claims.items()]
    scores: Sequence[float | None]
    if isinstance(scorer, RelationScorer):
        scores = [None if one is None else one.contradicts for one in scorer.relations(pairs)]
        sentence = "The passages contradict the answer with probability {:.2f}."
    else:
        scores = scorer.score(pairs)
        sentence = "The passages entail the answer with probability {:.2f} only."
    for place, score in zip(claims, scores, strict=True):
        if score is None:
            result[place] = Decision("screen", "not entailed", None, "failed call", "The scorer gave no probability.")
        elif score >= CONTRADICTED if isinstance(scorer, RelationScorer) else score < LEAST_ENTAILED:
            result[place] = Decision("screen", "not entailed", False, "not entailed", sentence.format(score), score)
    return result
