"""The rule on findings that no term qualifies."""

import re
from collections.abc import Iterator

from climassay.confidence.linting.draft import Example, Remark, Sentence, rule
from climassay.confidence.linting.probability_rules import gives_probability
from climassay.confidence.linting.vocabulary_rules import misspellings, off_scale
from climassay.confidence.marks import speaks_of_trust

FEWEST_WORDS = 7
"""Words of the shortest sentence that may state a finding."""

_STEMS = (
    "increas|decreas|declin|intensif|accelerat|slow|strengthen|weaken|warm(?!er)|cool|melt|retreat|shrink|shrunk|expand|"
    "amplif|exacerbat|worsen|reduc|exceed|caus|driv|drove|contribut|influenc|affect|alter|threaten|damag|disrupt|"
    "constrain|limit|enhanc|improv|enabl|avoid|prevent|lead|led|result|rise|rising|rose|risen|fall|fell|fallen|grow|grew|"
    "grown|double|triple|vary|varies|varied|differ|depend|remain|persist|emerg|shift|mov|occur|experienc|face|suffer|"
    "lose|loses|losing|lost|dominat|offset|compensat|attribut|respond|acidif|thaw|bleach|displac|migrat|kill|chang"
)
_CHANGE = re.compile(rf"\b(?:{_STEMS})\w*", re.IGNORECASE)
_OUTLOOK = re.compile(
    r"\b(?:will|would|(?:is|are|was|were|has\s+been|have\s+been)\s+(?:\w+ly\s+)?(?:projected|expected|estimated|observed|"
    r"detected|anticipated|associated|linked|attributable|found|driven|caused|affected|influenced|vulnerable|exposed)|"
    r"projections?\s+(?:show|indicate|suggest)|models?\s+(?:show|project|simulate)|observations?\s+(?:show|indicate))\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\b(?:more|less|fewer|greater|higher|lower|larger|smaller|faster|slower|stronger|weaker|warmer|cooler|wetter|drier|"
    r"earlier|later|longer|shorter)\b[^.;]{0,80}?\b(?:than|compared\s+(?:to|with)|relative\s+to)\b",
    re.IGNORECASE,
)
_QUANTITY = re.compile(
    r"\d\s?(?:%|°C|per\s?cent|GtC|Gt|PgC|ppm|ppb|W\s?m|mm|cm|m\b|km|million|billion|trillion|EJ|years?|decades?)"
)
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|will|would|can|could|may|might|\w+s|\w+ed)\b", re.IGNORECASE)

_CERTAIN_WORDS = re.compile(
    r"\b(?:unequivocal|established\s+fact|certain(?:ly)?\s+that|beyond\s+doubt|assessed\s+to\s+be)", re.IGNORECASE
)
_ABOUT_THE_TEXT = re.compile(
    r"^(?:\W*(?:in|for|throughout|see|note|here|below|above|as)\b[^,.]{0,60},?\s*)?\W*(?:(?:this|these|the\s+(?:present|following|"
    r"next|previous|remaining|first|second|third|final|term|terms|word|remainder|purpose|aim|scope|structure|definition|"
    r"glossary|concept|framework|approach|analysis|list|right|left|top|bottom|upper|lower|grey|gr[ae]y|shaded|shading|"
    r"colou?red|dotted|dashed|solid|error|panels?|maps?|bars?|lines?))\s+)?"
    r"(?:reports?|chapters?|sections?|assessments?|summar(?:y|ies)|box(?:es)?|figures?|tables?|panels?|annex|appendix|"
    r"faqs?|glossary|footnotes?|term|terms|word|we|our|authors?|ipcc|ar[1-6]|working\s+groups?|sr1\.?5|sroc+c?|srccl|"
    r"spm|definitions?|lines?|bars?|maps?|shading|colou?rs?|dots?|symbols?|arrows?|values?|numbers?|uncertaint\w+|"
    r"estimates|models|(?:set|range)\s+of\s+(?:scenarios|models|pathways)|ranges|statements?|results?|data|methods?|scenarios?|ssps?|rcps?|pathways?\s+(?:are|were)\s+(?:classified|"
    r"grouped|labelled|based|selected))\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"\b(?:(?:is|are|was|were)\s+(?:further\s+)?(?:defined|described|discussed|assessed|considered|presented|shown|provided|given|"
    r"listed|summari[sz]ed|reported|referred|explained|addressed|evaluated|reviewed|explored|illustrated|outlined|used|"
    r"based\s+on|calculated|computed|derived|obtained|taken|selected|classified|included|excluded|treated|compared)|"
    r"refers?\s+to|defined\s+as|means\s+that|denotes?|stands\s+for|for\s+example,\s+in\s+(?:chapter|section)|"
    r"(?:chapter|section|figure|table|box)\s+[\w.-]+\s+(?:shows?|presents?|assess\w*|discuss\w*|describ\w*|provid\w*|explor\w*|"
    r"summari\w*|illustrat\w*|lists?)|(?:this|the\s+present)\s+(?:report|chapter|section|assessment|summary|box)|"
    r"we\s+(?:assess|use|show|define|find|present|consider|discuss|note))\b",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:AR[1-6]|SR1\.?5|CMIP\d|(?:Special|Assessment)\s+Reports?|Working\s+Group|literature|methodolog\w+)\b"
)
_DEFINITION = re.compile(
    r"^\W*(?:\d{1,2}\s+)?[A-Z][^.:]{0,60}:\s+(?:An?|The)\s|\(Glossary\)|\bused\s+to\s+mean\b|"
    r"\b(?:is|are)\s+(?:the\s+(?:combination|sum|difference|ratio|process|ability)|scenarios?|those|calibrated|labelled)\b|"
    r"^\W*(?:purple|red|yellow|white|blue|green|orange|black)\s+\w+s\b"
)
_ONE_STUDY = re.compile(
    r"\bet\s+al\b|\b(?:one|another|a\s+recent|a|this|their|some|other|several|few|many|these)\s+(?:stud(?:y|ies)|papers?|"
    r"survey|model\s+study|meta-analysis|authors|scholars)\b|(?-i:[A-Z]\w+)\s\((?:19|20)\d\d[a-z]?\)|"
    r"\b(?:narrative|argu\w+)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:should|must|ought|needs?\s+to|shall|research\s+(?:is|needs?)|if\s+only|could\s+help|aims?\s+to|calls?\s+for|invit\w+)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:is|are|remains?)\s+(?:still\s+)?(?:unknown|unclear|(?:highly\s+|very\s+)?uncertain|not\s+(?:clear|known|understood|assessed|available))\b|\bknowledge\s+gaps?\b",
    re.IGNORECASE,
)
_INQUIRY = re.compile(
    r"^\W*(?:\w+\s+){0,2}(?:storylines?|scenarios?|experiments?|simulations?|stress\s+tests?|indicators?|frameworks?|reviews?)"
    r"\s+(?:explores?|examines?|considers?|investigates?|describes?|asks?|tests?)\b",
    re.IGNORECASE,
)
_END = re.compile(r"\.\W*$")
_CUES_NEEDED = 2


def states_finding(sentence: Sentence) -> bool:
    """Whether a sentence asserts a result about the world.

    It is a whole sentence that speaks of change, cause, expectation, comparison or a quantity, twice over at least. It
    is not about the text itself or its methods, no definition, no result of a single study, nothing on what people
    trust, no probability in figures, no wish, no open question.
    """
    text = sentence.text
    if sentence.block.kind not in ("paragraph", "item", "quotation") or not _END.search(text):
        return False
    if len(text.split()) < FEWEST_WORDS or not _VERB.search(text):
        return False
    refused = (_CERTAIN_WORDS, _ABOUT_THE_TEXT, _POINTS, _REPORTS, _DEFINITION, _ONE_STUDY, _WISH, _OPEN, _INQUIRY)
    if any(pattern.search(text) for pattern in refused):
        return False
    return cues(text) >= _CUES_NEEDED and not speaks_of_trust(text) and not gives_probability(text)


def cues(text: str) -> int:
    """How much in a sentence speaks for a result: verbs of change, outlook (twice), comparison (twice), quantities."""
    changes = len({match.group().lower() for match in _CHANGE.finditer(text)})
    outlook = 2 if _OUTLOOK.search(text) else 0
    compared = 2 if _COMPARED.search(text) else 0
    return min(changes, 2) + outlook + compared + (1 if _QUANTITY.search(text) else 0)


@rule(
    "untagged-finding",
    "note",
    "finding without a term",
    "Each finding is grounded in evidence and agreement and carries a term of confidence or likelihood; facts "
    "may go without (AR6 WG1, Box 1.1). A program cannot tell a fact from a finding, and half of what it names in "
    "chapters is none: off unless it is asked for, as a list to go through. How many sentences it would name is "
    "always told.",
    Example(
        "Glaciers will lose more mass than in the last century.",
        "Glaciers will lose more mass than in the last century (high confidence).",
    ),
    Example(
        "Heavy rain has increased over most land and causes more floods.",
        "This chapter assesses how heavy rain has increased and causes more floods.",
    ),
    default=False,
)
def _untagged_finding(sentence: Sentence) -> Iterator[Remark]:
    tagged = any(not mark.attributive for mark in sentence.marks) or sentence.likelihoods
    # A term that is misspelt or off the scale is one that other rules name.
    if not tagged and states_finding(sentence) and not off_scale(sentence) and not any(misspellings(sentence)):
        yield Remark(
            *sentence.at(0, len(sentence.text)),
            "This sentence states a finding without a term of confidence or likelihood: add one, or leave it where "
            "it is a fact.",
        )


FINDING_RULES = (_untagged_finding,)
