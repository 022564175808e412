"""Rules on the terms themselves: levels of confidence, evidence and agreement, likelihood, and how they go together.

The rule on findings that no term qualifies.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from climassay.confidence.extraction.extracting import explains_terms
from climassay.confidence.linting.draft import Draft, Example, Remark, Rule, Sentence, rule
from climassay.confidence.linting.vocabulary_rules import CONCLUDES, gives_probability, misspellings, off_scale
from climassay.confidence.marks import LikelihoodTerm, TagMark, is_opinion, speaks_of_trust
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, LIKELIHOOD_RANGES, TAGS, Tag

_DIVIDED = re.compile(
    r"[;:]|[,)]\s+(?:and|but|or|while|whereas|although|with|which)\b|\b(?:but|while|whereas|although)\b"
    r"|,\s+(?:\w+ly\s+)?(?:lead|result|caus|contribut|increas|decreas|reduc|mak|giv|worsen|compound|driv|enhanc|"
    r"weaken)\w*ing\b"
)
_COMMA_OR_DIVIDED = re.compile(rf",|\b(?:except|albeit|aided)\b|{_DIVIDED.pattern}")
_CLUTTER = re.compile(r"(?:[\s,;.*_]|\{[^{}]*\})*")
_THERE = r"(?:(?:there\s+is|we\s+have|the|this|that|our|only|a)\s+)*"
_CLOSING = re.compile(
    r",?\s*\b(?:(?:though|but|albeit|although|if|however|yet|and)\s+)?(?:only\s+)?(?:with|at|of|despite|"
    r"in\s+spite\s+of)\s+(?:only\s+)?[*_]*\Z"
    rf"|[,;]?\s*(?:\b(?:though|but|albeit|although|however|yet|and)\b,?\s+|;\s+){_THERE}[*_]*\Z",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:^|;\s|\band\s)\W*(?:although|though|even\s+(?:though|with|at)|while|whereas|despite|in\s+spite\s+of|"
    r"notwithstanding|with|given|at)\s+"
    rf"{_THERE}[*_]*\Z",
    re.IGNORECASE,
)
"""Opens a clause that speaks about what follows: "although confidence is low, ..."."""
_NEAR = 60
"""Characters before a mark in which the words that introduce it are looked for."""
_BUT = re.compile(r"(?:\s+in\s+this)?,\s+but\b")
_THIS = r"in\s+(?:this|it|that|the\s+(?:finding|statement|outcome|result|assessment))(?!\s+\w)"
_ABOUT_OTHER = re.compile(rf"[\s*_]*(?!{_THIS})(?:that|in|of|for|on|about|regarding)\b", re.IGNORECASE)
RANGE_BEHIND = re.compile(r"[\s*_]*(?:ranges?|intervals?|outcomes?|values?)\b")
_RELATIVE = re.compile(
    r"[\s*_]*(?:in|of|for|on|about|regarding)\b.*?\b(?=(?:that|which|who)\b)", re.IGNORECASE | re.DOTALL
)
_NAMED = re.compile(r"\b(?:the|its|their)\s+[*_]*\Z", re.IGNORECASE)
"""Before a term that names an estimate, as in: low confidence in the likely contribution."""
_FAR = 2
"""Levels that lie so far apart do not fit."""
_NEAR_BRACKETS = 25
"""Characters before brackets in which the other half of a pair is looked for."""
_BOX = "AR6 WG1, Box 1.1"
_HEDGE = re.compile(
    r"(?P<hedge>(?<!\bwhat )(?<!\bWhat )\b(?:(?:would\s+)?(?:seem|appear|look)s?(?:\s+(?:to\s+be|that\s+it\s+is))?|"
    r"(?<=is )(?:now\s+|generally\s+)?(?:thought|believed|"
    r"held)(?:\s+to\s+be)?|should)|\b(?:may|might|could)\b(?:[\s,*_]+(?:have|been|(?P<be>be)|also|well|even|now|then|"
    r"still|already|therefore|thus|"
    r"conceivably|possibly|potentially|become|indeed|again))*|\b(?:[Pp]ossibly|[Pp]erhaps|[Mm]aybe|[Pp]otentially|"
    r"[Cc]onceivably|[Pp]resumably|[Aa]rguably|"
    r"[Ss]upposedly|[Ss]eemingly|[Aa]pparently|[Hh]opefully|(?:sort|kind)\s+of|more\s+or\s+less|"
    r"not\s+impossible\s+that\s+it\s+is))[\s,*_]+\Z"
)
"""May with a small letter: "in May likely" is a month."""
_HEDGE_BEHIND = re.compile(
    r"\s+(?P<hedge>(?:,\s*)?(?:possibly|perhaps|maybe)|(?:that|for)\b(?:(?!\b(?:that|which|who|whose|where|if|when|"
    r"as|than|and|but|or)\b)[^,.;:()])*?"
    r"\b(?:may|might|could)\b(?!\s+(?:or|not)\b))"
)
_PREDICATE = re.compile(r"[\s*_]*(?:(?:to|that|if|when|in|under|for|at|by|with|and|but)\b|[,.;:()]|$)")
_NOT = re.compile(
    r"(?<!\bor )(?<!\bif )(?<!\bbut )(?P<no>\b(?:not|hardly|scarcely|by\s+no\s+means|far\s+from|anything\s+but|never|"
    r"no\s+longer|neither)|"
    r"(?<=is)n['’]t|\bcannot\s+be\s+(?:called|considered|deemed))\s+(?:(?:at\s+all|necessarily|yet|exactly|really|"
    r"entirely|particularly)\s+)?[*_]*\Z",
    re.IGNORECASE,
)
_TO_BE_SAID = re.compile(r"\b(?:says?|said|told)\b", re.IGNORECASE)
_IT_IS = re.compile(r"\bit\s+(?:is|was|remains|becomes|has\s+been)\s+(?:\w+\s+)?[*_]*\Z", re.IGNORECASE)
_SAME_CLAUSE = re.compile(
    r"[*_]*\s+that\b(?:(?!\b(?:that|which|who|whose|where|if|when|as|than|it)\b).)*"
    r"(?:\b(?:will|would|is|are|was|were|has|have|be|to)\s+(?:\w+\s+)?[*_]*|[(\[])",
    re.DOTALL,
)
_SIDE_BY_SIDE = re.compile(
    r"[*_]*(?:\s*,?\s*(?:(?:in\s+fact|indeed|even|or\s+even|but|yet)\b,?\s*)?|\s*[/–-]\s*)[(\[]?[*_]*|"
    r"\s+[^.;:,()]{1,100}[(\[][*_]*(?=[^()]*$)"
)
_FROM = re.compile(r"\b(?:from|between|ranges?|terms?|scale)\b[^.;]{0,30}\Z", re.IGNORECASE)
_MOST_TERMS = 3
"""More terms in a sentence explain them or list classes."""
_FEWEST_IN_ITALICS = 3
"""Terms in italics from which on a file is taken to set its terms so."""


def divided(words: str) -> bool:
    """Whether words between two marks hold the end of a clause, so that the marks may speak about different things."""
    return _COMMA_OR_DIVIDED.search(words) is not None


def likelihoods_under(sentence: Sentence, mark: TagMark) -> list[LikelihoodTerm]:
    """The terms of likelihood that a mark with a level qualifies.

    Those in its own brackets; of a mark in brackets, and of ", though with low confidence", those between the mark
    before and it; of another one in running words, those between it and the next mark or the end of its clause.
    ``likely range`` names an interval and is none.
    """
    if not sentence.likelihoods:
        return []
    text = sentence.text
    others = [one for one in sentence.marks if one.whole != mark.whole and (one.levels or one.likelihood)]
    start, end = mark.whole
    base = max(0, start - _NEAR)
    # ", though with low confidence" closes the clause before it.
    closing = _CLOSING.search(text[base:start])
    bare = _ABOUT_OTHER.match(text, mark.end) is None and (not mark.scope or re.match(_THIS, mark.scope) is not None)
    opened = bare and not mark.in_brackets and (_OPENING.search(text[base:start]) or _BUT.match(text, end))
    if opened and (comma := text.find(",", end)) >= 0:
        comma += 5 if text.startswith(", but", comma) else 0
        stop = _DIVIDED.search(text, comma + 1)
        span = (comma, stop.start() if stop else len(text))
    elif mark.in_brackets or (closing is not None and bare):
        left = max((one.whole[1] for one in others if one.whole[1] <= start), default=0)
        right = start if mark.in_brackets or closing is None else base + closing.start()
        # The last clause begins behind the last semicolon, or "but" and the like.
        span = (max((match.end() for match in _DIVIDED.finditer(text, left, right)), default=left), end)
    else:
        right = min((one.whole[0] for one in others if one.whole[0] >= end), default=len(text))
        # "Low confidence in shifts to latitudes that likely were cooler" speaks about the shifts.
        relative = _RELATIVE.match(text, end, right)
        right = relative.end() if relative else right
        stop = _COMMA_OR_DIVIDED.search(text, end, right)
        span = (end, stop.start() if stop else right)
    return [
        term
        for term in sentence.likelihoods
        if span[0] <= term.start
        and term.end <= span[1]
        and not RANGE_BEHIND.match(text, term.end)
        and not _NAMED.search(text[max(0, term.start - _NEAR) : term.start])
    ]


@rule(
    "wide-range",
    "warning",
    "range of levels too wide",
    f"Five qualifiers express a level of confidence ({_BOX}); a range over three says nothing.",
    Example(
        "Storm tracks will move north (low to high confidence).", "Storm tracks will move north (medium confidence)."
    ),
)
def _wide_range(sentence: Sentence) -> Iterator[Remark]:
    for mark in sentence.marks:
        scale = not mark.in_brackets and _FROM.search(sentence.text[: mark.start])
        if len(mark.levels) == 2 and _apart(mark) >= _FAR and not scale:
            low, high = mark.levels
            message = f"A range from {low} to {high} confidence says next to nothing about the finding."
            yield Remark(*sentence.at(mark.start, mark.end), message)


_BASED_ON = re.compile(
    r"\b(?:based\s+on|given|owing\s+to|due\s+to|because(?:\s+of)?|since|as|despite|although|while|in\s+spite\s+of|"
    r"from|with|"
    r"on\s+the\s+basis\s+of)\s+(?:there\s+is\s+)?(?:this|the|such|only)?\s*[*_]*\Z",
    re.IGNORECASE,
)
_GIVES_LEVEL = re.compile(
    rf"[*_]*(?P<link>[,;]?\s*(?:{CONCLUDES}|but|yet)\b|;)?,?\s*(?:a\s+)?(?:(?:there\s+is|we\s+have|we\s+assign|"
    rf"this\s+gives|it\s+is\s+stated\s+with)\s+)?[*_]*",
    re.IGNORECASE,
)
_RATINGS = "|".join(dict.fromkeys((*EVIDENCE, *AGREEMENT)))
_TOLD_APART = re.compile(r"\brespectively\b|\bdepending\s+(?:up)?on\b", re.IGNORECASE)
_COUNTED = re.compile(r"\d\s?%|\b(?:articles|papers|responses|respondents)\b", re.IGNORECASE)
"""In brackets, agreement among so many papers is no rating."""


def _apart(mark: TagMark) -> int:
    return TAGS.index(mark.levels[-1]) - TAGS.index(mark.levels[0])


@rule(
    "ambiguous-level",
    "note",
    "two levels for one statement",
    f"A finding carries one of five qualifiers ({_BOX}); two leave open which part of it is the surer one.",
    Example(
        "Droughts last longer (medium to high confidence).",
        "Droughts last longer (medium confidence) and begin earlier (high confidence).",
    ),
    Example("Droughts last longer (high confidence, low confidence).", "Droughts last longer (high confidence)."),
)
def _ambiguous_level(sentence: Sentence) -> Iterator[Remark]:
    for mark in sentence.marks:
        if len(mark.levels) != 2 or _apart(mark) >= _FAR:
            continue
        listed = re.search(r"\b(?:low|medium|high),\s+[*_]*\Z", sentence.text[: mark.start], re.IGNORECASE)
        if mark.scope or listed or _TOLD_APART.search(sentence.text) or explains_terms(sentence.text):
            continue  # brackets, or the sentence, may say what each end is about
        words = sentence.text[mark.start : mark.end].lower()
        if mark.in_brackets or not (" or " in words or words.count("confidence") > 1):
            low, high = mark.levels
            yield Remark(
                *sentence.at(mark.start, mark.end),
                f"Two levels are given: choose one, or say to what {low} and to what {high} confidence belongs.",
                f"{low} confidence",
            )
    for first, last in pairwise(sentence.likelihoods):
        link = re.fullmatch(r"[*_]*\s*(?:\bto\b|[–-])\s*[*_]*", sentence.text[first.end : last.start])
        if link and not (_FROM.search(sentence.text[: first.start]) or _TOLD_APART.search(sentence.text)):
            message = f'"{first.term}" to "{last.term}" is no term: choose one, or say to what each belongs.'
            yield Remark(*sentence.at(first.start, last.end), message)
    for one, other in pairwise(sentence.marks):
        same = one.bracket is not None and one.bracket == other.bracket
        if same and one.levels and other.levels and one.levels != other.levels and not (one.scope or other.scope):
            message = "The brackets give two levels and do not say what each is about."
            yield Remark(*sentence.at(one.start, other.end), message)


@rule(
    "mismatched-evidence",
    "warning",
    "evidence and agreement do not fit the level",
    "More evidence and more agreement go with more confidence (Mastrandrea et al. 2010, Figure 1; "
    f"{_BOX}). The relation is flexible: only pairs two steps or more from the level are named.",
    Example(
        "Yields fall (limited evidence, low agreement; high confidence).",
        "Yields fall (robust evidence, medium agreement; high confidence).",
    ),
)
def _mismatched_evidence(sentence: Sentence) -> Iterator[Remark]:
    for pair, mark in pairwise(sentence.said):
        based = _BASED_ON.search(sentence.text[max(0, pair.start - _NEAR) : pair.start])
        between = _GIVES_LEVEL.fullmatch(sentence.text[pair.end : mark.start])
        if not (
            between
            and (based or between["link"])
            and pair.evidence
            and pair.agreement
            and mark.levels
            and not pair.levels
        ):
            continue
        total = EVIDENCE.index(pair.evidence) + AGREEMENT.index(pair.agreement)
        if abs(TAGS.index(mark.levels[-1]) - total) >= _FAR:
            words = f"{pair.evidence} evidence and {pair.agreement} agreement"
            yield Remark(
                *sentence.at(pair.start, mark.end), f"{mark.levels[-1].capitalize()} confidence does not fit {words}."
            )
    for mark in sentence.marks:
        if not mark.levels or not (mark.evidence or mark.agreement):
            continue
        low = (EVIDENCE.index(mark.evidence) if mark.evidence else 0) + (
            AGREEMENT.index(mark.agreement) if mark.agreement else 0
        )
        high = low + (0 if mark.evidence else 2) + (0 if mark.agreement else 2)
        level = TAGS.index(mark.levels[-1])
        if level >= high + _FAR or TAGS.index(mark.levels[0]) <= low - _FAR:
            rated = ((mark.evidence, "evidence"), (mark.agreement, "agreement"))
            basis = " and ".join(f"{word} {noun}" for word, noun in rated if word)
            fitting = " or ".join(TAGS[place] for place in range(max(low - 1, 0), min(high + 1, 4) + 1))
            yield Remark(
                *sentence.at(mark.start, mark.end),
                f"{mark.levels[-1].capitalize()} confidence does not fit {basis}: that goes with {fitting} confidence.",
            )


@rule(
    "incomplete-pair",
    "note",
    "evidence without agreement, or agreement without evidence",
    f"The summary terms are a pair: limited, medium or robust evidence, and low, medium or high agreement ({_BOX}).",
    Example("Yields fall (limited evidence).", "Yields fall (limited evidence, medium agreement)."),
    Example("Yields fall (high confidence) (medium evidence).", "Yields fall (low confidence: limited evidence)."),
)
def _incomplete_pair(sentence: Sentence) -> Iterator[Remark]:
    for mark in sentence.marks:
        if mark.levels or not mark.in_brackets or (mark.evidence is None) == (mark.agreement is None):
            continue
        have, lack = ("evidence", "agreement") if mark.evidence else ("agreement", "evidence")
        start, end = mark.whole
        # "There is robust evidence (medium agreement)", "low confidence (limited evidence)", "(limited evidence, weak
        # agreement)": the other half is there, or a level is what counts.
        before = sentence.text[max(0, start - _NEAR_BRACKETS) : end]
        # Of "(high confidence) (medium evidence)" the second pair of brackets rates the statement anew, by half.
        beside = re.search(r"confidence\s*[)\]]\s*\Z", sentence.text[:start])
        if _COUNTED.search(sentence.text, start, end) or re.search(
            rf"\b(?:{_RATINGS})\s+{lack}\b|\b{lack}\b[^.;()]{{0,30}}\b(?:is|was|remains)\s+(?:{_RATINGS})\b",
            re.sub(r"\([^()]*\)", "", sentence.text[:start]),
            re.IGNORECASE,
        ):
            continue
        if not re.search(rf"\b(?:dis)?{lack}\b", before) and (beside or not re.search(r"\bconfidence\b", before)):
            message = f"The brackets rate the {have} but not the {lack}."
            yield Remark(*sentence.at(mark.start, mark.end), message)


@rule(
    "repeated-tag",
    "warning",
    "statement tagged twice",
    "One statement has one level of confidence; the second tag contradicts the first or says nothing new.",
    Example(
        "There is high confidence that glaciers lose mass (medium confidence).", "Glaciers lose mass (high confidence)."
    ),
    Example("Glaciers lose mass (high confidence) (high confidence).", "Glaciers lose mass (high confidence)."),
)
def _repeated_tag(sentence: Sentence) -> Iterator[Remark]:
    for one, other in pairwise([mark for mark in sentence.marks if mark.levels and not mark.attributive]):
        if (one.bracket is not None and one.bracket == other.bracket) or not other.in_brackets:
            continue
        between = sentence.text[one.whole[1] : other.whole[0]]
        if one.in_brackets:
            doubled = _CLUTTER.fullmatch(between) is not None
        else:
            if _OPENING.search(sentence.text[: one.whole[0]]):
                between = between.lstrip(",")  # "With high confidence, rain increases (medium confidence)"
            doubled = not (one.scope or other.scope) and not divided(between)
        if doubled and one.levels == other.levels:
            message = f"The same statement is tagged twice with {other.levels[-1]} confidence."
            yield Remark(*sentence.at(other.start, other.end), message)
        elif doubled:
            message = f"The same statement is tagged with {one.levels[-1]} and with {other.levels[-1]} confidence."
            yield Remark(*sentence.at(other.start, other.end), message)


@rule(
    "tag-in-heading",
    "warning",
    "tag in a heading",
    "Levels of confidence qualify findings, which are sentences; a heading is quoted and listed without its context.",
    Example("# Glaciers lose mass (high confidence)", "# Glaciers\n\nGlaciers lose mass (high confidence)."),
)
def _tag_in_heading(sentence: Sentence) -> Iterator[Remark]:
    numbered = re.match(r"\d+(?:\.\d+)+\.?\s+[A-Z]", sentence.text) and not sentence.text.endswith(".")
    for mark in sentence.marks if sentence.block.kind == "heading" or numbered else ():
        if mark.in_brackets:
            message = "A heading is no finding: tag the sentence below it that states the finding."
            yield Remark(*sentence.at(*mark.whole), message)


def _with_levels(sentence: Sentence) -> Iterator[tuple[LikelihoodTerm, Tag, tuple[int, int]]]:
    """Terms of likelihood, each with the level of confidence that qualifies it, and where both begin and end."""
    for mark in sentence.said:
        # "(high confidence in the sign, low confidence in the size)" rates parts of the statement.
        beside = [one for one in sentence.marks if mark.bracket and one.bracket == mark.bracket and one.levels]
        told_apart = (len(beside) > 1 and re.match(r"\s+in\b", sentence.text[mark.end :])) or re.match(
            r"\s+in\s+(?:the\s+)?(?:numbers?|magnitude|size|amount|timing|rate|sign|extent|"
            r"degree)\b",
            sentence.text[mark.end :],
        )
        if mark.levels and not mark.attributive and not told_apart:
            for term in likelihoods_under(sentence, mark):
                beside_term = mark.whole[0] <= term.start < mark.whole[1]
                start, end = (mark.start, mark.end) if beside_term else mark.whole
                where = sentence.at(min(term.start, start), max(term.end, end))
                yield term, mark.levels[-1], where


@rule(
    "likelihood-low-confidence",
    "warning",
    "likelihood with low confidence",
    f"A likelihood is stated where confidence and probabilistic evidence suffice ({_BOX}, steps 5 and 6); with low "
    "confidence there is no basis for a probability.",
    Example("Rainfall will very likely double (low confidence).", "Rainfall will possibly double (low confidence)."),
    Example(
        "Although confidence is low, it is very likely that rain increases.",
        "Although confidence in the amount is low, it is very likely that rain increases.",
    ),
)
def _likelihood_low_confidence(sentence: Sentence) -> Iterator[Remark]:
    for term, level, where in _with_levels(sentence):
        if TAGS.index(level) <= TAGS.index("low"):
            yield Remark(
                *where,
                f'"{term.term.capitalize()}" states a probability, and {level} confidence does not support one: '
                "give the level alone.",
            )


@rule(
    "likelihood-and-confidence",
    "note",
    "likelihood and high confidence together",
    f"Unless otherwise indicated, likelihood is stated where confidence is high or very high ({_BOX}): the level says "
    "nothing new. Some reports give both on purpose, therefore this rule is off unless it is asked for.",
    Example(
        "Rainfall will very likely increase (high confidence).",
        "Rainfall will very likely increase. Floods will rise (high confidence).",
    ),
    default=False,
)
def _likelihood_and_confidence(sentence: Sentence) -> Iterator[Remark]:
    for term, level, _ in _with_levels(sentence):
        if TAGS.index(level) >= TAGS.index("high"):
            yield Remark(
                *sentence.at(term.start, term.end),
                f'"{term.term.capitalize()}" already implies high confidence: {level} confidence need not be added.',
            )


@rule(
    "hedged-likelihood",
    "warning",
    "likelihood taken back by another hedge",
    f"A term of likelihood says how probable an outcome is ({_BOX}); with may, could or possibly before it, "
    "nobody can say which probability is left.",
    Example("Rain may very likely increase.", "Rain will very likely increase."),
    Example("It is likely that rain may increase.", "It is likely that rain increases and wind may fall."),
    Example("It is possibly unlikely that rain increases.", "Rain may increase but will very likely fall later."),
)
def _hedged_likelihood(sentence: Sentence) -> Iterator[Remark]:
    for term in sentence.likelihoods:
        base = max(0, term.start - _NEAR)
        hedge = _HEDGE.search(sentence.text[base : term.start])
        if is_opinion(sentence.text, term.start):
            continue
        if hedge is None:
            if behind := _HEDGE_BEHIND.match(sentence.text, term.end):
                words = behind["hedge"].split()[-1]
                message = f'"{term.term.capitalize()}" is a probability already, and "{words}" takes it back.'
                yield Remark(*sentence.at(term.start, behind.end()), message)
            continue
        if hedge["be"] and not _PREDICATE.match(sentence.text, term.end):
            continue  # "could be likely candidates"
        yield Remark(
            *sentence.at(base + hedge.start("hedge"), term.end),
            f'"{term.term.capitalize()}" is a probability already, and "{hedge["hedge"]}" takes it back: keep the '
            "term alone.",
            sentence.text[term.start : term.end],
        )


@rule(
    "negated-likelihood",
    "note",
    "negated term of likelihood",
    f"Each term stands for a range of probability ({_BOX}); what is left when it is denied is not on the scale.",
    Example("It is not unlikely that rain will increase.", "It is more likely than not that rain will increase."),
    Example("It is not virtually certain.", "It is likely, if not very likely, that rain increases."),
)
def _negated_likelihood(sentence: Sentence) -> Iterator[Remark]:
    for term in sentence.likelihoods:
        base = max(0, term.start - _NEAR)
        no = _NOT.search(sentence.text[base : term.start])
        if no is not None and not is_opinion(sentence.text, term.start) and not _TO_BE_SAID.search(sentence.text):
            message = f'"Not {term.term}" leaves open which probability is meant: use the term for it.'
            yield Remark(*sentence.at(base + no.start("no"), term.end), message)


@rule(
    "two-likelihoods",
    "warning",
    "two terms of likelihood for one outcome",
    f"One outcome has one probability, and one term stands for it ({_BOX}).",
    Example(
        "It is likely that rain will very likely increase.",
        "It is likely that rain increases, and it is very likely that floods do.",
    ),
    Example("Rain is likely, virtually certain, to increase.", "It is unlikely that the very likely range is right."),
    Example(
        "Rain is likely to increase and likely to decrease.", "Rain is likely to increase and unlikely to decrease."
    ),
)
def _two_likelihoods(sentence: Sentence) -> Iterator[Remark]:
    yield from _opposites(sentence)
    terms = [term for term in sentence.likelihoods if not RANGE_BEHIND.match(sentence.text, term.end)]
    if explains_terms(sentence.text) or len(terms) > _MOST_TERMS:
        return
    for one, other in pairwise(terms):
        between = sentence.text[one.end : other.start]
        if " but " in between and not re.match(r"[*_]*\s+that\b", sentence.text[other.end :]):
            continue
        if "(" in between and not re.match(r"[*_]*[)\]]", sentence.text[other.end :]):
            continue
        it_is = _IT_IS.search(sentence.text[max(0, one.start - _NEAR) : one.start])
        framed = it_is and (
            (_SAME_CLAUSE.fullmatch(between) and not divided(between)) or between.strip() in ("or", "and")
        )
        if framed or _SIDE_BY_SIDE.fullmatch(between):
            message = f'One outcome has one probability, and here it is "{one.term}" and "{other.term}": choose one.'
            yield Remark(*sentence.at(one.start, other.end), message)


_UP, _DOWN = (
    r"(?:increas|ris(?=e|ing)|grow|gain)\w*",
    r"(?:decreas|declin|fall|drop|shrink|loss|reduc)\w*",
)
_LIKELY_TOO = r"(?:also\s+|equally\s+)?[*_]*\Z"


def _opposites(sentence: Sentence) -> Iterator[Remark]:
    """Outcomes of which one excludes the other, both called likely."""
    text = sentence.text
    for one, other in pairwise(sentence.likelihoods):
        between = text[one.end : other.start]
        if min(LIKELIHOOD_RANGES[term.term][0] for term in (one, other)) < LIKELIHOOD_RANGES["likely"][0]:
            continue
        for said, opposite in ((_UP, _DOWN), (_DOWN, _UP)):
            noun = rf"\b{said}\b.*\ban?\s+{opposite}\s+is\s+{_LIKELY_TOO}"
            if re.search(noun, between) and re.match(r"[*_]*(?:\s+too|\s+as\s+well)?\W*$", text[other.end :]):
                break
            both = (
                rf"[*_]*\s+(?:to\s+)?{said}\b[^.;,]{{0,20}}?,?\s+(?:and|but)\s+"
                rf"(?:(?:is|are|will|also|equally)\s+)*[*_]*"
            )
            if re.fullmatch(both, between) and re.match(rf"[*_]*\s+(?:to\s+)?{opposite}\W*$", text[other.end :]):
                break
            verb = rf"[*_]*\s+that\s+(?:it|they)\s+(?:will\s+)?(?:{opposite}|(?:do|does|will)\s+not)\W*$"
            if (re.search(rf"\b{said}\b", between) or "not" in text[other.end :]) and re.match(verb, text[other.end :]):
                break
        else:
            continue
        yield Remark(
            *sentence.at(one.start, other.end), "One of these outcomes excludes the other: both cannot be likely."
        )


_STUDY = r"(?:stud(?:y|ies)|trials?|papers?|experiments?|surveys?|articles?|publications?)"
_FEW = rf"(?:an?|one|two|three|(?:an?\s+)?(?:single|few)|these|this)\s+(?:[\w-]+\s+){{0,2}}{_STUDY}"
_SCARCE = re.compile(
    rf"\b(?:(?:only|just|apart\s+from|except\s+for|besides|other\s+than|based\s+on)\s+{_FEW}|"
    rf"the\s+only\s+(?:available\s+)?{_STUDY}|"
    rf"a\s+single\s+{_STUDY}\s+is\s+all|nothing\s+(?:\w+\s+)?(?:has\s+been|is|was)\s+(?:published|known|written)|"
    rf"(?:evidence|data|literature)\s+(?:is|are|remains?)\s+(?:\w+ly\s+|very\s+|still\s+)?(?:scarce|sparse|lacking|"
    rf"missing|thin)|"
    rf"(?:hardly|never|scarcely|barely)\s+been\s+studied)",
    re.IGNORECASE,
)
_DISAGREE = re.compile(
    rf"\b(?:{_STUDY}|models?|results|authors|estimates|they)\s+(?:\w+\s+){{0,3}}?(?:disagree|contradict|conflict|"
    rf"diverge|"
    r"are\s+at\s+odds|do\s+not\s+agree|reach\s+(?:opposite|contrary|different))\b|\b(?:opposite|"
    r"contradictory)\s+(?:conclusions|"
    r"results|findings|signs?)\b|\bhalf\s+of\s+(?:the|them)\b[^.;]{1,80}\bthe\s+other\s+half\b",
    re.IGNORECASE,
)
_PLENTY = re.compile(
    rf"\b(?:hundreds|dozens|many|numerous|countless|\d{{2,}})\s+(?:of\s+)?(?:[\w-]+\s+)?{_STUDY}\b|"
    r"\bstudies\s+from\s+(?:all|every)\b",
    re.IGNORECASE,
)
_UNANIMOUS = re.compile(
    rf"\b(?:all|every)\s+(?:\w+\s+)?(?:{_STUDY}|models?)\s+(?:\w+ly\s+)?(?:find|agree|show|report)s?\b|"
    r"\bconsistently\s+(?:find|show|report)\b|\bstudies\s+agree\b(?!\s+(?:that|only))|\bunanimous",
    re.IGNORECASE,
)


def _said_otherwise(draft: Draft) -> Iterator[Remark]:
    for sentence, following in zip(draft.sentences, (*draft.sentences[1:], None), strict=bool(draft.sentences)):
        rated = [
            mark for mark in sentence.marks if not mark.attributive and (mark.levels or mark.evidence or mark.agreement)
        ]
        if len(rated) != 1 or explains_terms(sentence.text):
            continue
        (mark,) = rated
        level = TAGS.index(mark.levels[-1]) if mark.levels else -1
        text = sentence.text
        if following is not None and following.block == sentence.block and not following.marks:
            text = f"{text} {following.text}"
        for pattern, contradicted in (
            (_SCARCE, mark.evidence == "robust" or level >= TAGS.index("high")),
            (_DISAGREE, mark.agreement == "high" or level == TAGS.index("very high")),
            (_PLENTY, mark.evidence == "limited" or level == 0),
            (_UNANIMOUS, mark.agreement == "low" or level == 0),
        ):
            if contradicted and (words := pattern.search(text)):
                message = f'"{words.group()}" contradicts this rating of evidence, agreement or confidence.'
                yield Remark(*sentence.at(mark.start, mark.end), message)
                break


_contradicted_rating = Rule(
    "contradicted-rating",
    "note",
    "rating against what the text says of the evidence",
    "Evidence is rated by type, amount, quality and consistency, agreement by how far studies agree (Mastrandrea et "
    "al. 2010, paragraph 8): words beside the rating that say otherwise are worth a look.",
    (
        Example(
            "Trenches raise yields (robust evidence, medium agreement). Apart from two trials, nothing is known.",
            "Trenches raise yields (limited evidence, medium agreement). Apart from two trials, nothing is known.",
        ),
        Example("All studies find this (medium evidence, low agreement).", "All studies find this (high confidence)."),
    ),
    _said_otherwise,
)


def _unmarked(draft: Draft) -> Iterator[Remark]:
    """Terms of likelihood and levels of confidence that are not in italics where most others are."""
    places: list[tuple[str, int, int]] = []
    for sentence in draft.sentences if draft.italics is not None else ():
        if sentence.block.kind == "heading":
            continue
        spans = {(term.start, term.end) for term in sentence.likelihoods}
        spans |= {(mark.start, mark.end) for mark in sentence.marks if mark.levels and not mark.attributive}
        for start, end in sorted(spans):
            if not any(one <= start and end <= other and (one, other) != (start, end) for one, other in spans):
                places.append((sentence.text[start:end], *sentence.at(start, end)))
    marked = [draft.is_italic(start, end) for _, start, end in places]
    if sum(marked) < _FEWEST_IN_ITALICS or 2 * sum(marked) < len(marked):
        return
    for (words, start, end), is_marked in zip(places, marked, strict=True):
        if not is_marked:
            message = f'"{words}" is not in italics, as the other terms are: set it so, or use another word.'
            yield Remark(start, end, message, f"*{words}*")


_unmarked_term = Rule(
    "unmarked-term",
    "note",
    "term not in italics",
    f"Italics tell a calibrated term from the everyday word ({_BOX}). Checked in Markdown and HTML files whose terms "
    f"stand in italics for the greater part, {_FEWEST_IN_ITALICS} at least.",
    (
        Example(
            "It is *likely* (*high confidence*, *medium confidence* in the south). Rain is likely.",
            "It is *likely* (*high confidence*, *medium confidence* in the south). Rain is *likely*.",
        ),
    ),
    _unmarked,
)
TERM_RULES = (
    _wide_range,
    _ambiguous_level,
    _mismatched_evidence,
    _incomplete_pair,
    _repeated_tag,
    _tag_in_heading,
    _likelihood_low_confidence,
    _likelihood_and_confidence,
    _hedged_likelihood,
    _negated_likelihood,
    _two_likelihoods,
    _contradicted_rating,
    _unmarked_term,
)


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
    r"\b(?:will|would|(?:is|are|was|were|has\s+been|have\s+been)\s+(?:\w+ly\s+)?(?:projected|expected|estimated|"
    r"observed|"
    r"detected|anticipated|associated|linked|attributable|found|driven|caused|affected|influenced|vulnerable|exposed)|"
    r"projections?\s+(?:show|indicate|suggest)|models?\s+(?:show|project|simulate)|observations?\s+(?:show|"
    r"indicate))\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\b(?:more|less|fewer|greater|higher|lower|larger|smaller|faster|slower|stronger|weaker|warmer|cooler|wetter|"
    r"drier|"
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
    r"^(?:\W*(?:in|for|throughout|see|note|here|below|above|as)\b[^,.]{0,60},?\s*)?\W*(?:(?:this|these|"
    r"the\s+(?:present|following|"
    r"next|previous|remaining|first|second|third|final|term|terms|word|remainder|purpose|aim|scope|structure|"
    r"definition|"
    r"glossary|concept|framework|approach|analysis|list|right|left|top|bottom|upper|lower|grey|gr[ae]y|shaded|shading|"
    r"colou?red|dotted|dashed|solid|error|panels?|maps?|bars?|lines?))\s+)?"
    r"(?:reports?|chapters?|sections?|assessments?|summar(?:y|ies)|box(?:es)?|figures?|tables?|panels?|annex|appendix|"
    r"faqs?|glossary|footnotes?|term|terms|word|we|our|authors?|ipcc|ar[1-6]|working\s+groups?|sr1\.?5|sroc+c?|srccl|"
    r"spm|definitions?|lines?|bars?|maps?|shading|colou?rs?|dots?|symbols?|arrows?|values?|numbers?|uncertaint\w+|"
    r"estimates|models|(?:set|range)\s+of\s+(?:scenarios|models|pathways)|ranges|statements?|results?|data|methods?|"
    r"scenarios?|ssps?|rcps?|pathways?\s+(?:are|were)\s+(?:classified|"
    r"grouped|labelled|based|selected))\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"\b(?:(?:is|are|was|were)\s+(?:further\s+)?(?:defined|described|discussed|assessed|considered|presented|shown|"
    r"provided|given|"
    r"listed|summari[sz]ed|reported|referred|explained|addressed|evaluated|reviewed|explored|illustrated|outlined|used|"
    r"based\s+on|calculated|computed|derived|obtained|taken|selected|classified|included|excluded|treated|compared)|"
    r"refers?\s+to|defined\s+as|means\s+that|denotes?|stands\s+for|for\s+example,\s+in\s+(?:chapter|section)|"
    r"(?:chapter|section|figure|table|box)\s+[\w.-]+\s+(?:shows?|presents?|assess\w*|discuss\w*|describ\w*|provid\w*|"
    r"explor\w*|"
    r"summari\w*|illustrat\w*|lists?)|(?:this|the\s+present)\s+(?:report|chapter|section|assessment|summary|box)|"
    r"we\s+(?:assess|use|show|define|find|present|consider|discuss|note))\b",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:AR[1-6]|SR1\.?5|CMIP\d|(?:Special|Assessment)\s+Reports?|Working\s+Group|literature|methodolog\w+)\b"
)
_DEFINITION = re.compile(
    r"^\W*(?:\d{1,2}\s+)?[A-Z][^.:]{0,60}:\s+(?:An?|The)\s|\(Glossary\)|\bused\s+to\s+mean\b|"
    r"\b(?:is|are)\s+(?:the\s+(?:combination|sum|difference|ratio|process|ability)|scenarios?|those|calibrated|"
    r"labelled)\b|"
    r"^\W*(?:purple|red|yellow|white|blue|green|orange|black)\s+\w+s\b"
)
_ONE_STUDY = re.compile(
    r"\bet\s+al\b|\b(?:one|another|a\s+recent|a|this|their|some|other|several|few|many|these)\s+(?:stud(?:y|ies)|"
    r"papers?|"
    r"survey|model\s+study|meta-analysis|authors|scholars)\b|(?-i:[A-Z]\w+)\s\((?:19|20)\d\d[a-z]?\)|"
    r"\b(?:narrative|argu\w+)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\b(?:should|must|ought|needs?\s+to|shall|research\s+(?:is|needs?)|if\s+only|could\s+help|aims?\s+to|"
    r"calls?\s+for|invit\w+)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:is|are|remains?)\s+(?:still\s+)?(?:unknown|unclear|(?:highly\s+|very\s+)?uncertain|not\s+(?:clear|known|"
    r"understood|assessed|available))\b|\bknowledge\s+gaps?\b",
    re.IGNORECASE,
)
_INQUIRY = re.compile(
    r"^\W*(?:\w+\s+){0,2}(?:storylines?|scenarios?|experiments?|simulations?|stress\s+tests?|indicators?|frameworks?|"
    r"reviews?)"
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
