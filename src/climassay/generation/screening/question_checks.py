"""Checks of the wording of any question: complete, in the required language, and understandable by itself."""

import re
from difflib import SequenceMatcher

from climassay.corpus.languages import FUNCTION_WORDS, OTHER_SCRIPT, count_function_words, is_in_other_script
from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError
from climassay.generation.draft import Draft
from climassay.generation.screening.check import CHECKS, QUESTION_KINDS, Check, check, content_words, words
from climassay.questions import KINDS, kinds_where

MIN_COPIED_WORDS = 8
"""A question is copied if it shares at least this number of consecutive words with a passage."""
MIN_COPIED_SHARE = 0.9
"""A question is copied only if the shared word sequence has at least this fraction of the question's words."""
_GAP = re.compile(r"(?:_{2,}|\.{3}|…|:|<MASK>)")
_TASK = re.compile(
    r"(?:^|[.;:]\s+|,\s+(?:and\s+)?)(?:briefly\s+|then\s+)?(?:account\s+for|analy[sz]e|argue|assess|calculate|characteri[sz]e"
    r"|classify|compare|compute|contrast|deduce|define|derive|describe|determine|differentiate|discuss|distinguish"
    r"|elaborate|estimate|evaluate|examine|explain|give|identify|illustrate|infer|interpret|justify|list|name|outline"
    r"|predict|propose|quantify|relate|say|show|sketch|specify|state|suggest|summari[sz]e|tell|trace|work\s+out)\b",
    re.IGNORECASE,
)
"""Pattern of a sentence, or of a clause after the description of a case, that begins with an imperative verb."""
_QUESTION_END = re.compile(r"\?[\"'”’)\]]*\s*(?:\([^()]*\)\s*\.?\s*)?$")


@check("no answer", KINDS, "Question or answer is empty, or the answer asks back.")
def _describe_missing_answer(draft: Draft) -> str | None:
    wording = draft.wording
    if not wording.question.strip():
        return "There is no question."
    if draft.type.is_prose and not words(wording.answer):
        return "There is no answer."
    if draft.type.is_prose and wording.answer.strip().endswith("?"):
        return "The answer is a question."
    return None


@check("no question mark", QUESTION_KINDS, "Asks nothing: no question mark, no task, no gap, no sentence to complete.")
def _describe_missing_question(draft: Draft) -> str | None:
    question = draft.wording.question.strip()
    if _QUESTION_END.search(question):
        return None
    if draft.type.has_options and (_GAP.search(question) or not question.endswith((".", "!"))):
        return None  # an unfinished sentence that an option completes
    if _TASK.search(question):
        return None
    return f"It ends in “{question[-30:]}”, which asks nothing."


@check("copied question", QUESTION_KINDS, "The question is a run of words of the passage.")
def _describe_copied_question(draft: Draft) -> str | None:
    question_words = words(draft.wording.question)
    for passage in draft.passages:
        passage_words = words(passage.text)
        shared_sequence = SequenceMatcher(None, question_words, passage_words, autojunk=False).find_longest_match()
        if shared_sequence.size >= MIN_COPIED_WORDS and shared_sequence.size >= MIN_COPIED_SHARE * len(question_words):
            return f"A passage has {shared_sequence.size} of its {len(question_words)} words in this order."
    return None


@check(
    "long answer",
    kinds_where(lambda question_type: question_type.max_sentences is not None),
    "The answer has more sentences than its kind allows, for example more than two in a freeform answer.",
)
def _describe_long_answer(draft: Draft) -> str | None:
    count = len(split_sentences(draft.wording.answer))
    return f"The answer has {count} sentences." if count > (draft.type.max_sentences or count) else None


MIN_LANGUAGE_LEAD = 2
"""A language is recognised only if a text has at least this many more function words of it than of the required
language."""
MIN_LANGUAGE_SHARE = 0.15
"""A language is recognised only if at least this proportion of a text's words are function words of the language."""
_ET_AL = re.compile(r"\bet al\b")


def detect_other_language(text: str, required: str = "en") -> str | None:
    """Detect a text in a language other than the required one.

    Returns:
        The code of the other language (see :data:`~climassay.corpus.languages.FUNCTION_WORDS`) or ``another script``;
        None if the text may be in the required language.

    Raises:
        InputError: The required language is not supported.
    """
    check_language(required)
    if is_in_other_script(text):
        return OTHER_SCRIPT
    hits, n_words = count_function_words(_ET_AL.sub(" ", text))
    language = max(hits, key=lambda code: (hits[code], code == required))
    if hits[language] - hits[required] < MIN_LANGUAGE_LEAD or hits[language] < MIN_LANGUAGE_SHARE * n_words:
        return None
    return language


def check_language(code: str) -> None:
    """Check that a language is supported: its function words must be known.

    Raises:
        InputError: The language is not supported.
    """
    if code not in FUNCTION_WORDS:
        raise InputError(f"The language {code!r} is not supported: use one of {', '.join(FUNCTION_WORDS)}.")


def language_check(required: str = "en") -> Check:
    """Return a check that rejects drafts whose question, answer and options are not in the required language.

    Raises:
        InputError: The language is not supported.
    """
    check_language(required)

    def examine(draft: Draft) -> str | None:
        language = detect_other_language(" ".join(draft.type.visible_texts(draft.content)), required)
        return None if language is None else f"It is written in {language}, not in {required}."

    return Check("other language", KINDS, "Is written in another language than the required one.", examine)


CHECKS.add("other language", language_check(), __name__)


# Names of the source text in generated questions. "text" and "section" need words around them, since science has
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
# A beginning that refers to something before it: a demonstrative or a connective.
_DANGLING_START = re.compile(
    r"^\W*(?:this|these|those|such|that|they|it|he|she|his|her|their|its)\b(?!\s+(?:is|was)\s+(?:true|known|often|widely"
    r"|estimated|thought|expected|projected|believed|assumed|possible|likely|necessary|important|difficult|well)\b|\s+(?:takes|follows|may\s+be|can\s+be|has\s+been)\b)"
    r"|^\W*(?:however|therefore|moreover|furthermore|in\s+addition|additionally|thus|hence|consequently"
    r"|as\s+a\s+result|on\s+the\s+other\s+hand|in\s+contrast|similarly|likewise|for\s+example|for\s+instance)\s*,",
    re.IGNORECASE,
)
_SOURCE_NOUN = (
    r"(?:stud(?:y|ies)|authors?|experiments?|papers?|scientists|researchers|report|results|simulations?|survey"
    r"|investigation|work|article|observations|measurements|data\s?set|dataset|analysis|scenario|method|case|findings)"
)
_UNNAMED_SOURCE = re.compile(
    r"\b(?:the|these)\s+(?:authors?|researchers)\b(?!\s+of\b)"
    r"|\b(?:the|this|these)\s+(?:present\s+|current\s+)?(?:study|paper|article|report)\b(?!\s+(?:of|by|on|from|that|which)\b)"
    rf"|\b(?:in|of|from|by|during)\s+(?:the|these|those)\s+{_SOURCE_NOUN}\s+(?:described|mentioned|discussed|presented"
    r"|considered|conducted|performed|reported|shown|given|here)\b"
    rf"|\b(?:the|these)\s+{_SOURCE_NOUN}\s+(?:described|mentioned|discussed|presented)\b",
    re.IGNORECASE,
)

# *Which of these statements ...* points to the options.
_DEMONSTRATIVE = re.compile(
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
"""Pattern of a case that is identified only by comparison with others, as in *the lower scenario*."""
_NAMED_CASE = re.compile(r"\b(?:SSP|RCP|B[12]|A1B|A2|IS92)\w*|\bscenarios?\s+(?:of|with|in\s+which|without)\b|[\"“‘]")
_PERSON_OR_PAPER = re.compile(r"author|researcher|scientist|paper|article|report|stud(?:y|ies)", re.IGNORECASE)
_SUPPOSITION = re.compile(r"^\W*(?:suppose|if|imagine|consider|assume|given|when)\b|[.;:]\s", re.IGNORECASE)
MIN_WORDS_BEFORE = 2
"""*This* or *these* has an antecedent only if at least this number of content words precede it."""


def _find_phrase(pattern: re.Pattern[str], draft: Draft) -> str | None:
    matches = (pattern.search(text) for text in draft.type.visible_texts(draft.content))
    return next((" ".join(match[0].split()) for match in matches if match), None)


@check("context reference", KINDS, "Refers to the context, text, passage or its author.")
def _describe_context_reference(draft: Draft) -> str | None:
    reference = _find_phrase(_CONTEXT, draft)
    return None if reference is None else f"It mentions its source: “{reference}”."


@check("figure reference", KINDS, "Refers to a figure, table, equation, box or section.")
def _describe_figure_reference(draft: Draft) -> str | None:
    reference = _find_phrase(_FIGURE, draft)
    return None if reference is None else f"It refers to something outside the question: “{reference}”."


@check(
    "not self-contained",
    KINDS,
    "Refers to something that is not in the question: a dangling *this*, *the authors*, *the experiment described*.",
)
def _describe_unclear_reference(draft: Draft) -> str | None:
    question = draft.wording.question
    if match := _DANGLING_START.search(question):
        return f"It begins with “{match[0].strip()}”, which refers to something before it."
    match = _DEMONSTRATIVE.search(question)
    if match and len(content_words(question[: match.start()])) < MIN_WORDS_BEFORE:
        return f"It mentions “{match[0]}” before it says what that is."
    match = _ONE_OF_SEVERAL.search(question)
    if match and not _NAMED_CASE.search(question) and not _is_introduced(match[0], question[: match.start()]):
        return f"It mentions “{match[0]}”, which it does not name."
    match = _UNNAMED_SOURCE.search(question)
    if match and not _is_introduced(match[0], question[: match.start()]):
        return f"It mentions “{' '.join(match[0].split())}”, which it does not name."
    return None


def _is_introduced(mention: str, text_before: str) -> bool:
    """Return whether the text before a mention introduces what is mentioned.

    A study can be mentioned again (*a study ... the study*). A scenario or an experiment can be supposed (*if ...*), or
    described in an earlier sentence.
    """
    nouns = [word.lower().removesuffix("s") for word in re.findall(r"[A-Za-z]{4,}", mention)]
    determiners = {"this", "these", "those", "present", "current"}
    if any(noun in text_before.lower() for noun in nouns if noun not in determiners and not re.fullmatch(_WHICH, noun)):
        return True
    return not _PERSON_OR_PAPER.search(mention) and _SUPPOSITION.search(text_before) is not None
