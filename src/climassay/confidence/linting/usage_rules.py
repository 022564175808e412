"""Rules on the form of a tag, on what a term is said of, and on what a level is taken for."""

import re
from collections.abc import Iterator

from climassay.confidence.extraction.extracting import explains_terms
from climassay.confidence.linting.draft import Example, Remark, Sentence, rule
from climassay.confidence.marks import TagMark, is_mentioned
from climassay.confidence.vocabulary import EVIDENCE, LIKELIHOODS, TAGS

_BOX = "AR6 WG1, Box 1.1"
_LEVEL = "|".join(sorted(TAGS, key=len, reverse=True))
_LIKELY = "|".join(sorted((term.replace(" ", r"\s+") for term in LIKELIHOODS), key=len, reverse=True))
_BRACKETS = re.compile(r"[(\[][*_\s]*([^()\[\]]{1,120}?)[*_\s]*[)\]]")
_GAP = r"[\s\u00ad-]+"
_LINK = r"[\s-]*(?:\b(?:to|or|and)\b|[/–-])[\s-]*"
_EVIDENCE_WORD = "|".join(dict.fromkeys((*EVIDENCE, *TAGS)))
_RATING = re.compile(
    rf"(?:(?:{_LEVEL})(?:\s+confidence)?{_LINK})?(?:{_LEVEL}){_GAP}confidence"
    # What rates evidence and agreement wrongly is named by evidence-vocabulary.
    rf"|(?:(?:{_EVIDENCE_WORD}){_LINK})?(?:very\s+)?(?:{_EVIDENCE_WORD}){_GAP}(?:evidence|agreement)"
    rf"|(?:{_LIKELY})(?:\s+ranges?)?",
    re.IGNORECASE,
)
_HEAD = r"confidence|evidence|agreement|conf|likely|unlikely|certain"
_RATE = (
    r"very|low(?:er|est)?|medium|med|high(?:er|est)?|hi|limited|robust|likely|unlikely|certain|virtually|extremely|"
    r"exceptionally"
)
_GLUE = r"and|but|with|or|of|levels?|degree|is|in|to|at|an?|the|only|overall|about|as|not"
_ONLY_THESE = re.compile(rf"(?:\W|\b(?:{_HEAD}|{_RATE}|{_GLUE})\b)*", re.IGNORECASE)
_HAS_HEAD, _HAS_RATE, _HAS_EITHER = (
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words in (_HEAD, _RATE, f"{_HEAD}|{_RATE}")
)
_OPENED = re.compile(r"[(\[][\s*_]*\Z")
_CLOSED = re.compile(r"[\s*_]*[)\]}]")
_UNCLOSED = re.compile(r"[\s*_]*[.;]?\s*\Z")
_HEDGED_LEVEL = re.compile(
    r"[(\[][*_\s]*(?P<hedge>more\s+or\s+less|roughly|about|approximately|around|perhaps|possibly|maybe|presumably|sort\s+of|"
    r"arguably|kind\s+of|supposedly)\s+[*_]*\Z",
    re.IGNORECASE,
)
_DOUBTED = re.compile(r"[\s*_]*\?[\s*_]*[)\]]")


@rule(
    "malformed-tag",
    "warning",
    "tag that is not in the form of a term",
    f"A tag is a term of the vocabulary and nothing else ({_BOX}): readers and programs look for these words in this "
    "order, between brackets that close.",
    Example("Rain will increase (confidence: high confidence).", "Rain will increase (high confidence)."),
    Example("Rain will increase (confidence high).", "Rain will increase (very high confidence, likely)."),
    Example("Rain will increase (high confidence.", "Rain will increase (robust evidence, high agreement)."),
    Example("Rain will increase (higher confidence).", "Confidence is higher in the north (Figure 3)."),
)
def _malformed_tag(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    if explains_terms(text):
        return
    for bracket in _BRACKETS.finditer(text):
        left, inside = _RATING.sub(" ", bracket[1]), bracket[1]
        rates = _HAS_HEAD.search(inside) and _HAS_RATE.search(inside)
        if rates and _HAS_EITHER.search(left) and _ONLY_THESE.fullmatch(left):
            message = f'"{bracket[1]}" is not in the form of a term: say, for example, "high confidence".'
            yield Remark(*sentence.at(*bracket.span()), message)
    for mark in sentence.marks:
        start, end = mark.start, mark.end
        if not mark.levels or mark.attributive:
            continue
        opened = _OPENED.search(text[:start]) is not None
        doubted = _DOUBTED.match(text, end)
        if mark.in_brackets and doubted:
            message = "A question mark takes the level back: choose the level that the evidence bears."
            yield Remark(*sentence.at(start, doubted.end() - 1), message)
        elif not mark.in_brackets and opened and (closed := _UNCLOSED.match(text, end) or _CLOSED.match(text, end)):
            yield Remark(*sentence.at(start - 1, max(end, closed.end())), "The brackets around the tag do not close.")
        elif hedge := _HEDGED_LEVEL.search(text[:start]):
            message = f'"{hedge["hedge"]}" takes the level back: choose the level that the evidence bears.'
            yield Remark(*sentence.at(hedge.start("hedge"), end), message)
        elif not mark.in_brackets and not opened and (closed := _CLOSED.match(text, end)) and "(" not in text[:start]:
            yield Remark(*sentence.at(start, closed.end()), "The brackets around the tag do not open.")


_AGENT = (
    r"(?:(?:national|local|city|regional|municipal|state|town|central|federal|all|both)\s+)*(?:governments?|authorit(?:y|ies)|"
    r"councils?|cit(?:y|ies)|municipalit(?:y|ies)|countr(?:y|ies)|nations?|states|parties|part(?:y|ies)|ministr(?:y|ies)|"
    r"ministers?|parliaments?|legislators?|regulators?|policy-?\s?makers?|decision-?\s?makers?|planners?|politicians?|"
    r"compan(?:y|ies)|firms?|businesses|industr(?:y|ies)|banks?|investors?|insurers?|donors?|utilities|farmers?|households?|"
    r"citizens|consumers?|people|societ(?:y|ies)|communit(?:y|ies)|everyone|everybody|we|one)"
)
_PRESCRIBES = re.compile(
    r"\bshould\s+(?:not\s+|never\s+)?(?:\w+ly\s+)?be\s+(?:\w+ly\s+)?\w+(?:ed|en|lt|de|ut)\b"
    rf"|\b{_AGENT}\s+(?:should|must|ought\s+to|shall|need\s+to|are\s+(?:urged|advised|called\s+(?:up)?on)\s+to)\b"
    r"|\b(?:it\s+is\s+(?:recommended|advisable|imperative|desirable)|we\s+(?:recommend|urge|advise|call\s+(?:up)?on|propose))\b"
    r"|^\W*let\s+us\b",
    re.IGNORECASE,
)
_ON_CONDITION = re.compile(
    r"\b(?:if|in\s+order\s+to|so\s+(?:as\s+to|that)|would|(?:stud|paper|author|scholar|literature|farmer|respondent)\w*|argu\w+|"
    r"suggest\w*|(?:to|for)\s+(?:limit|limiting|reach|reaching|achiev|meet|keep|stay|hold|avoid|stabili)\w*)\b",
    re.IGNORECASE,
)
_PART = (
    r"(?:(?:this|the\s+(?:present|following|next|previous|remaining|first|second|third|last)|each)\s+(?:chapters?|sections?|"
    r"reports?|box(?:es)?|figures?|tables?|annex(?:es)?|appendix|assessments?|paragraphs?|summary|faq|map|panel|text)|"
    r"(?:(?:cross-chapter|online)\s+)?(?:chapters?|sections?|box(?:es)?|figures?|fig\.|tables?|annex|appendix|panels?|part|faq)\s+"
    r"[\dA-Z][\w.-]*(?:\s*(?:,|and|to|–|-)\s*[\dA-Z][\w.-]*)*|we)"
)
_ABOUT_TEXT = re.compile(
    rf"^\W*(?:(?:here|in\s+[^,]{{0,60}}),?\s+)?{_PART}\s+(?:(?:then|also|first|next|now|finally|further|briefly|in\s+turn)\s+)*"
    r"(?:turns?|discuss\w*|describ\w*|review\w*|introduc\w*|cover\w*|deal\w*|list\w*|outlin\w*|address\w*|"
    r"present\w*|contain\w*|explor\w*|examin\w*|explain\w*|consider\w*|look\w*|treat\w*|set\w*\s+out|focus\w*|begin\w*|start\w*|"
    r"(?:is|are)\s+(?:organi[sz]ed|structured|devoted|divided|dedicated|concerned|based)|consists?|builds?\s+on|draws?\s+on|"
    r"maps?|plots?|depicts?|displays?|illustrates?|summari[sz]es?|compares?|lists?|uses?|used|defines?|aims?|intends?)\b(?!\s+(?:to\s+)?(?:that|how\s+much)\b)"
    r"|^\W*(?:see|compare|consult|refer\s+to|cf\.)\s+(?:also\s+)?(?:the\s+)?(?:chapter|section|box|figure|fig\.|table|annex)",
    re.IGNORECASE,
)
_ALWAYS_TRUE = re.compile(
    r"\b(?:increase|rise|grow)\w*,?\s+(?:or\s+)?(?:decrease|fall|decline|shrink)\w*,?\s+or\s+(?:stay|remain|not\s+change)\b"
    r"|\b(?:may\s+or\s+may\s+not|will\s+or\s+will\s+not|will\s+either\s+(?:\w+\s+){1,3}or\s+not)\b",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"\b(?:was|were)\s+(?:\w+ly\s+)?(?:adopted|signed|ratified|founded|established|published|opened\s+for\s+signature|launched|"
    r"approved|held|elected|released)\s+(?:\w+\s+){0,4}?(?:in|on)\s+(?:\w+\s+){0,2}(?:1[89]|20)\d\d\b"
    r"|\bentered\s+into\s+force\s+(?:in|on)\b",
    re.IGNORECASE,
)
_ACT = "The date of an act"
_BY_THE_WAY = re.compile(r"[,;]|\b(?:since|after|when|before|as|which|who|while|because|until)\b", re.IGNORECASE)
_QUOTED_OR_ASKED = re.compile(r"[\"“‘']|\bmeans?\b|\bbetween\b|\bterms?\b|\bwords?\b", re.IGNORECASE)
_SOURCE = re.compile(
    r"(?:\b(?:(?:this|that|the|a|an|one|single|recent|new)\s+)+(?:[\w-]+\s+)?(?:study|paper|article|simulation|survey|experiment|"
    r"thesis|(?:data\s?set|reanalysis|satellite\s+record)|(?:climate\s+|earth\s+system\s+|crop\s+|impact\s+)?models?)\b"
    r"(?:\s+(?:by|of)\s+[^,;]{1,30})?|\b[A-Z][\w’'-]+(?:\s+et\s+al\.?|\s+and\s+[A-Z]\w+)?,?\s+\((?:19|20)\d\d[a-z]?\))\s+"
    r"(?:(?:itself|alone|also|therefore)\s+)?"
    r"(?:has|have|had|holds?|gives?|gave|shows?|carr(?:y|ies)|is|are|(?:(?:finds?|found|conclude[sd]?|states?|stated|reports?|reported|"
    r"projects?|projected|predicts?|predicted|shows?|simulates?)\s+)with)\s+(?:(?:of|given|assigned)\s+)?[*_]*\Z",
    re.IGNORECASE,
)


def _asks(text: str) -> bool:
    return text.rstrip(' "”’*_').endswith("?")


def _no_finding(text: str) -> str:
    """What a sentence with a tag is, where it is no finding; empty where it may be one."""
    if _asks(text):
        return "" if _QUOTED_OR_ASKED.search(text) else "A question"
    if _ALWAYS_TRUE.search(text):
        return "What cannot be false"
    if _ABOUT_TEXT.search(text):
        return "A sentence about the text"
    if _PRESCRIBES.search(text) and not _ON_CONDITION.search(text):
        return "A recommendation"
    event = _EVENT.search(text)
    return _ACT if event and not _BY_THE_WAY.search(text[: event.start()]) else ""


@rule(
    "term-without-finding",
    "note",
    "term on what is no finding",
    "Terms qualify findings of the assessment (Mastrandrea et al. 2010, paragraphs 1 and 11): not questions, "
    "recommendations, sentences about the text, dates of acts, or single studies and models.",
    Example("Will rain increase (high confidence)?", "What does 'high confidence' mean?"),
    Example("Governments should build dams (high confidence).", "Dams reduce floods (high confidence)."),
    Example(
        "Section 3 turns to floods (medium confidence).", "Section 3 shows that floods increase (high confidence)."
    ),
    Example(
        "The treaty was signed in 1992 (very high confidence).", "Rain has increased since 1992 (high confidence)."
    ),
    Example("The model has high confidence that rain increases.", "AR5 had high confidence that rain increases."),
)
def _term_without_finding(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    marks = [mark for mark in sentence.marks if not mark.attributive and not is_mentioned(text, mark.start, mark.end)]
    behind = [
        mark.whole
        for mark in marks
        if (_asks(text) and ":" not in text[mark.end :])
        or (mark.in_brackets and re.fullmatch(r"[\W\d]*", text[mark.whole[1] :]))
    ]
    what = _no_finding(text) if marks or sentence.likelihoods else ""
    spans = behind or [(one.start, one.end) for one in sentence.likelihoods if what == _ACT]
    for start, end in spans[: bool(what)]:
        yield Remark(*sentence.at(start, end), f"{what} is no finding, and a term qualifies findings: leave it out.")
    for mark in marks:
        if mark.levels and not mark.in_brackets and _SOURCE.search(text[max(0, mark.start - 120) : mark.start]):
            message = (
                "Confidence is the assessment's, not that of one study, model or record: say who assesses, and what."
            )
            yield Remark(*sentence.at(mark.start, mark.end), message)


_STATISTICS = (
    r"(?:\bp(?:-value)?s?\s*[<>=≤≥]\s*0?\.\d+|\bp-values?\b|\b(?:statistical(?:ly)?\s+)significan(?:t|ce)\b|"
    r"\bsignifican(?:ce\b|t\s+(?:at|\(p)\b)|"
    r"\b\d{1,2}(?:\.\d)?\s?%\s+(?:significance\s+|confidence\s+)?(?:levels?|intervals?)|\bt-test\b|\b\d\s?(?:sigma|σ)\b)"
)
_HENCE = r"(?:\b(?:therefore|hence|thus|so|consequently|accordingly|which\s+(?:gives|means|implies)|meaning|giving)\b)"
_BECAUSE = r"(?:\b(?:because|since|as|given|due\s+to|owing\s+to|i\.e\.|that\s+is|in\s+that|based\s+on)\b|[:=(])"
_STATISTICS_BEFORE = re.compile(rf"{_STATISTICS}[^.;()]{{0,60}}?{_HENCE}[^.;()]{{0,40}}\Z", re.IGNORECASE)
_STATISTICS_AS_REASON = re.compile(
    rf"\b(?:because|since|as)\b[^.;()]{{0,100}}{_STATISTICS}[^.;]{{0,30}},[^.;,()]{{0,40}}\Z", re.I
)
_STATISTICS_BEHIND = re.compile(
    rf"\s*,?\s*(?:{_BECAUSE}[^.;()]{{0,60}}?{_STATISTICS}|at\s+(?:the\s+)?\d{{1,2}}(?:\.\d)?\s?%)", re.IGNORECASE
)
_PERCENT_BEFORE = re.compile(r"\b\d{2}(?:\.\d)?\s?%\s+[*_]*\Z")
_IS_READ_AS = re.compile(
    r"\s*[,(]?\s*(?:here\s+|thus\s+|then\s+)?(?:i\.\s?e\.,?|that\s+is(?:\s+to\s+say)?,?|=|or|meaning|(?:which\s+)?(?:means?|implies|equals?|is\s+the\s+same\s+as|"
    r"corresponds?\s+to|is\s+equivalent\s+to))\s+(?:(?:that\s+)?it\s+is\s+)?[*_]*\Z",
    re.IGNORECASE,
)
_DENIAL = (
    r"(?:(?:will|would|does|do|did|is|are|has|have|can|was|were)\s*(?:not|n['’]t)\b|cannot\b|(?:is|are|was|were|will\s+be|there\s+is|has\s+been)\s+no\b|"
    r"will\s+(?:\w+\s+)?(?:decrease|decline|fall|drop|remain|stay|be\s+(?:stable|absent|unchanged|fewer|less))|never\b|"
    r"(?:is|are|was|were)\s+(?:very\s+|extremely\s+)?(?:unlikely|impossible|absent|wrong|false)|(?:decreases?|declines?|falls?)\b)"
)
_DENIED_BEHIND = re.compile(
    r"[^.;]{0,160}?(?:[,;–—]\s*(?:and\s+|it\s+)?(?:so|therefore|hence|thus|consequently|meaning|in\s+other\s+words,?|i\.e\.,?|that\s+is,?|which\s+"
    r"(?:means|implies|shows))|(?<!not )\b(?:means?|implies|proves?|and\s+(?:therefore|so|hence|thus)))\s+(?:that\s+)?"
    rf"(?P<claim>[^.;:]{{0,60}}?\b{_DENIAL})",
    re.IGNORECASE,
)
_DENIED_BECAUSE = re.compile(rf"[^.;,]{{0,160}},\s*(?P<claim>[^.;:,]{{0,60}}?\b{_DENIAL})", re.IGNORECASE)
_GIVES_REASON = re.compile(r"^\W*(?:because|since|as|given\s+that)\b[^.;:,\d]{0,80}\Z", re.IGNORECASE)
_OF_THE_ASSESSMENT = re.compile(
    r"\b(?:confidence|curve|range|section|figure|assess\w*|attribut\w*|quantif\w*|provid\w*|report\w*|conclu\w*|possible|given|made|shown|used|includ\w*|consider\w*|"
    r"constrain\w*|available|clear|mean|imply|exclude\w*|ruled?|detect\w*|determin\w*|estimat\w*|known?|robust)\b",
    re.IGNORECASE,
)


@rule(
    "misread-level",
    "warning",
    "level taken for significance, likelihood or a denial",
    "Confidence sums up evidence and agreement (Mastrandrea et al. 2010, paragraphs 8 and 9): it is no statistical "
    f"significance and no likelihood ({_BOX}), and low confidence in a change does not say that there is none.",
    Example(
        "The trend is significant at the 95% level, hence there is high confidence.",
        "The trend is significant at the 95% level in most data sets (high confidence).",
    ),
    Example("Rain will increase (high confidence, i.e. very likely).", "Rain will increase (high confidence, likely)."),
    Example(
        "There is low confidence in more rain, which means that rain will not increase.",
        "There is low confidence in more rain, so that no range is given.",
    ),
)
def _misread_level(sentence: Sentence) -> Iterator[Remark]:
    text = sentence.text
    for mark in sentence.marks:
        if not mark.levels or mark.attributive or is_mentioned(text, mark.start, mark.end):
            continue
        yield from _as_statistics(sentence, mark)
        for term in sentence.likelihoods:
            # No level equals a term: "high confidence, that is, very likely".
            if 0 <= term.start - mark.end < 80 and _IS_READ_AS.fullmatch(text, mark.end, term.start):
                message = "A level of confidence is no likelihood: give each for itself."
                yield Remark(*sentence.at(mark.start, term.end), message)
        if TAGS.index(mark.levels[-1]) > TAGS.index("low") or mark.in_brackets:
            continue
        denied = _DENIED_BEHIND.match(text, mark.end)
        if denied is None and _GIVES_REASON.search(text[: mark.start]):
            denied = _DENIED_BECAUSE.match(text, mark.end)
        if denied and not _OF_THE_ASSESSMENT.search(text, denied.start("claim"), denied.end() + 40):
            message = f"{mark.levels[-1].capitalize()} confidence in a finding does not say that its opposite holds."
            yield Remark(*sentence.at(mark.start, denied.end()), message)


def _as_statistics(sentence: Sentence, mark: TagMark) -> Iterator[Remark]:
    """A level that a test of significance is given as reason or as another word for."""
    text = sentence.text
    before = text[max(0, mark.start - 200) : mark.start]
    start, end = mark.start, mark.end
    if behind := _STATISTICS_BEHIND.match(text, end):
        end = behind.end()
    elif percent := _PERCENT_BEFORE.search(before):
        start -= len(before) - percent.start()
    elif mark.in_brackets and (inside := re.search(_STATISTICS, text[slice(*mark.whole)], re.IGNORECASE)):
        start, end = min(start, mark.whole[0] + inside.start()), max(end, mark.whole[0] + inside.end())
    elif reason := _STATISTICS_BEFORE.search(before) or _STATISTICS_AS_REASON.search(before):
        start -= len(before) - reason.start()
    else:
        return
    message = "Confidence sums up evidence and agreement: statistical significance alone gives no level."
    yield Remark(*sentence.at(start, end), message)


USAGE_RULES = (_malformed_tag, _term_without_finding, _misread_level)
