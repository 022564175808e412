"""Tags: calibrated terms in a text, that is levels of confidence, evidence, agreement and terms of likelihood.

Reports write them in brackets after what they qualify, ``(high confidence)``, ``(robust evidence, high agreement)``,
and in running words, ``there is medium confidence that``. Text extraction leaves breaks in them, ``(hi gh
confidence)``, and joins footnote numbers to them, ``(high confidence12)``. :mod:`climassay.confidence.extraction`
determines which words a tag qualifies.

Words about the certainty of other people ("farmers report high confidence in seasonal forecasts", "respondents thought
it likely") are not calibrated terms. They are recognised by the people or by the object of their confidence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, cast

from climassay.confidence.vocabulary import LEVELS, Agreement, EvidenceRating, Level, Likelihood

_PEOPLE = (
    r"(?:farmer|smallholder|grower|herder|pastoralist|fisher|forester|producer|worker|employee|household|famil(?:y|ie)|"
    r"resident|inhabitant|home-?owner|owner|villager|citizen|voter|taxpayer|consumer|customer|buyer|investor|lender|"
    r"insurer|trader|bank|compan(?:y|ie)|"
    r"firm|business(?:e)?|employer|manager|planner|practitioner|engineer|architect|teacher|student|pupil|patient|"
    r"nurse|doctor|tourist|user|operator|pilot|captain|official|officer|politician|minister|mayor|delegate|respondent|"
    r"critic|opponent|supporter|commentator|journalist|interviewee|participant|informant|volunteer|stakeholder|"
    r"decision-?\s?maker|policy-?\s?maker|leader|elder|adult|"
    r"parent|child|youth|individual|person|communit(?:y|ie)|government|municipalit(?:y|ie)|market)s?|"
    r"fishermen|children|people|women|men|public|population|who|(?:two|three)\s+(?:thirds|quarters)|half"
)
_ATTITUDE = (
    r"(?:report|express|voic|stat|profess|declar|show|display|ha(?:s|ve|d)|having|feel|felt|place|placing|put|enjoy|"
    r"los[et]|losing|gain|regain|retain|maintain|develop|acquire|build|built)(?:s|es|ed|d|ing)?"
)
_OPINION = (
    r"(?:think|thought|believ|consider|regard|rat|judg|perceiv|expect|find|found|deem|call|view|see|saw|said|say|"
    r"answer|"
    r"report|fear|feel|felt|guess)(?:s|e|es|ed|d|ing|en)?"
)
_CLAUSE = r"[^.;:()]{0,60}?"
_TRUST_HOLDER = re.compile(
    rf"\b(?:{_PEOPLE})\b(?:{_CLAUSE}\b{_ATTITUDE}\b(?:\s+(?:an?|the|only|still|more|with|that|very))*|\s+with)\s+$",
    re.IGNORECASE,
)
_COMPOUND = re.compile(
    r"\b(?:public|consumer|investor|business|market|customer|voter|user|farmer|donor|self)[\s-]+confidence\b"
    r"|\bconfidence\s+of\s+(?:the\s+)?(?:public|consumers?|investors?|markets?|citizens|voters|farmers)\b|"
    r"\bvote\s+of\s+(?:no\s+)?confidence\b|\bno[\s-]confidence\s+(?:vote|motion)\b",
    re.IGNORECASE,
)
_SOCIAL_TRUST = re.compile(
    r"\s+(?:in|about|towards?)\s+(?:(?:their|its|his|her|our|one[’']s)\s+own\b|(?:(?:the|their|its|our|local|"
    r"national|federal|"
    r"state|public|political|democratic|elected|financial|scientific)\s+)*(?:institutions|governments?|authorities|"
    r"parliaments?|"
    r"politic(?:s|ians?)|leaders(?:hip)?|police|media|banks?|currenc(?:y|ies)|science|scientists|themselves|themself|"
    r"officials|neighbou?rs)\b)",
    re.IGNORECASE,
)
_SURVEY_OPINION = re.compile(rf"\b(?:{_PEOPLE})\b[^.;]{{0,80}}?\b{_OPINION}\b[^.;]{{0,60}}$", re.IGNORECASE)
_SURVEY_QUESTION = re.compile(
    rf"\b(?:{_PEOPLE})\b[^.;]{{0,40}}?\basked\b[^.;]{{0,20}}?\b(?:whether|if|how)\b", re.IGNORECASE
)
_SURVEY = re.compile(
    r"\b(?:surveys?|questionnaires?|polls?|interviews?|respondents?|interviewees?|participants?)\b", re.IGNORECASE
)
_ASSESSMENT = re.compile(
    r"\b(?:we|authors?|experts?|assess\w*|(?:this|the|earlier|previous|assessment)\s+reports?|chapters?|IPCC|AR\d|"
    r"there\s+(?:is|was|remains))\b[^.;]{0,40}$",
    re.IGNORECASE,
)


def is_trust_of_people(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]``, for example "high confidence", refers to people's trust in something."""
    preceding_text = text[max(0, start - 140) : start]
    if _SOCIAL_TRUST.match(text, end):
        return True
    if _ASSESSMENT.search(preceding_text):
        return False
    return _TRUST_HOLDER.search(preceding_text) is not None or (
        _COMPOUND.search(text, max(0, start - 300), end + 100) is not None and text[end : end + 5] != " that"
    )


def is_opinion(text: str, start: int) -> bool:
    """Return whether a term of likelihood at ``start`` states an opinion or an answer of other people."""
    preceding_text = text[:start]
    if _SURVEY_QUESTION.search(preceding_text[-200:]):
        return True
    return _SURVEY_OPINION.search(preceding_text[-200:]) is not None and (
        _SURVEY.search(preceding_text) is not None or not _ASSESSMENT.search(preceding_text[-140:])
    )


@dataclass(frozen=True, slots=True)
class Tag:
    """Calibrated terms that belong together: a level of confidence, or evidence and agreement without a level."""

    start: int
    end: int
    """Index after the last character of the words ``text[start:end]``, which exclude the brackets around them."""
    levels: tuple[Level, ...] = ()
    """Levels of confidence: one, two for a range such as "medium to high confidence" (lower first), or none."""
    likelihood: tuple[Likelihood, ...] = ()
    """Terms of likelihood in the same brackets; :func:`find_likelihoods` returns those in running text."""
    evidence: EvidenceRating | None = None
    agreement: Agreement | None = None
    bracket: tuple[int, int] | None = None
    """Start and end of the brackets around the words, which may contain further terms; None in running text."""
    attributive: bool = False
    """Whether the level is hyphenated before a noun, as in "low-confidence processes". Such a level qualifies no
    statement."""
    scope: str = ""
    """Other words in the brackets, for example "NES" or "depending on region"."""
    subject: tuple[int, int] | None = None
    """Span of the words that a predicate qualifies ("more hail" in "confidence in more hail is low"); None if there is
    no predicate."""

    @property
    def level(self) -> Level | None:
        """Level of confidence, or the upper end of a range (Maiya 2024, section 4.3.1); None if there is no level."""
        return self.levels[-1] if self.levels else None

    @property
    def in_brackets(self) -> bool:
        """Whether the terms are in brackets."""
        return self.bracket is not None

    @property
    def span_with_brackets(self) -> tuple[int, int]:
        """Start and end of the terms, including the brackets around them."""
        return self.bracket or (self.start, self.end)


class LikelihoodTerm(NamedTuple):
    """Term of likelihood, ``text[start:end]``."""

    start: int
    end: int
    term: Likelihood


_BREAK = r"(?:[-\u2010]?\s{1,2}|[\u00ad\ufffe]\s?)?"
"""Characters that text extraction may leave inside a word."""
_GAP = r"[\s\u00ad\u2010\u2011*_-]{0,5}"
"""Pattern of the characters between two words of a term: none ("lowconfidence"), spaces, hyphens, or Markdown's
emphasis."""


def _allow_line_breaks(word: str) -> str:
    return _BREAK.join(word)


_HIGH = f"(?:h{_BREAK})?{_allow_line_breaks('igh')}"  # one report of AR6 has lost an h: "( igh confidence)"


def _make_level_pattern(prefix: str) -> str:
    """Return the pattern of an English level; the names of the pattern's groups begin with ``prefix``."""
    very, low, medium = _allow_line_breaks("very"), _allow_line_breaks("low"), _allow_line_breaks("medium")
    return (
        rf"(?:(?P<{prefix}very>{very}){_GAP})?"
        rf"(?:(?P<{prefix}low>{low})|(?P<{prefix}medium>{medium})|(?P<{prefix}high>{_HIGH}))"
    )


_CONFIDENCE = (
    rf"{_allow_line_breaks('confidence')}(?!\s+(?:intervals?|bounds?|limits?|bands?|ranges?)\b)(?![^\W\d_⁰¹²³⁴-⁹])"
)
_LINK = rf"{_GAP}(?:to|or|and|–|—|-|/|‐){_GAP}"
_WORD_START = r"(?<![^\W_])(?<![^\W_][-\u2010])"
_ENGLISH_LEVELS = re.compile(
    rf"{_WORD_START}(?:{_make_level_pattern('a')}(?:{_GAP}{_CONFIDENCE})?{_LINK})?{_make_level_pattern('b')}"
    rf"\d{{0,2}}(?P<gap>{_GAP}){_CONFIDENCE}(?:\d{{1,2}}(?!\d|[.%]\d|\s*%)|[⁰¹²³⁴-⁹]{{1,2}})?",
    re.IGNORECASE,
)


def _make_translated_pattern(prefix: str, very: str, low: str, medium: str, high: str) -> str:
    """Return the pattern of a level in French or Spanish, with the group names of :func:`_make_level_pattern`."""
    return (
        rf"(?:(?P<{prefix}very>{very})\s+)?"
        rf"(?:(?P<{prefix}low>{low})|(?P<{prefix}medium>{medium})|(?P<{prefix}high>{high}))"
    )


_FRENCH = (r"très", r"faible", r"moyen(?:ne)?", r"élevée?|haut|fort|grand")
_SPANISH = (r"muy", r"baj[oa]", r"medi[oa]", r"alt[oa]")
_TRANSLATED_LEVELS = tuple(
    re.compile(rf"\b{pattern}(?P<gap>)", re.IGNORECASE)
    for before, noun, link, words in (
        (r"(?:degré|niveau)\s+de", "confiance", "à|ou", _FRENCH),
        (r"(?:nivel|grado)\s+de", "confianza", "a|o", _SPANISH),
    )
    for pattern in (
        rf"(?:{before}\s+)?{noun}\s+(?:{_make_translated_pattern('a', *words)}\s+(?:{link})\s+)?"
        rf"{_make_translated_pattern('b', *words)}\b",
        rf"(?:{_make_translated_pattern('a', *words)}\s+(?:{link})\s+)?"
        rf"{_make_translated_pattern('b', *words)}\s+{before}\s+{noun}\b",
    )
)
"""Patterns of the IPCC's levels in French and Spanish: "confiance élevée", "faible degré de confiance", "confianza
alta"."""
_EVIDENCE = re.compile(
    rf"{_WORD_START}(?:(?:low|limited|medium|robust|high)(?:\s*(?:to|or|–|-)\s*))?"
    rf"(?P<word>{_allow_line_breaks('limited')}|{_allow_line_breaks('low')}|insufficient|{_allow_line_breaks('medium')}|{_allow_line_breaks('robust')}|{_HIGH})"
    rf"{_GAP}{_allow_line_breaks('evidence')}\b",
    re.IGNORECASE,
)
_AGREEMENT = re.compile(
    rf"{_WORD_START}(?:(?:low|medium|high)(?:\s*(?:to|or|–|-)\s*))?"
    rf"(?P<word>{_allow_line_breaks('low')}|{_allow_line_breaks('medium')}|{_HIGH}){_GAP}{_allow_line_breaks('agreement')}\b",
    re.IGNORECASE,
)
_PAIR_SEPARATOR = re.compile(r"[\s,;*_]*(?:and|but|with|or)?[\s*_]*", re.IGNORECASE)
_LIKELIHOOD = re.compile(
    r"\b(?:(?P<not>(?:about[\s-]+)?as[\s-]+likely[\s-]+as[\s-]+not)|(?P<more>more[\s-]+likely[\s-]+than[\s-]+not)"
    r"|(?P<less>more[\s-]+unlikely[\s-]+than[\s-]+likely)"
    r"|(?P<certain>virtually[\s-]+certain)|(?P<exceptional>exceptionally[\s-]+unlikely)"
    r"|(?P<comparative>(?:more|less|most|(?<!\bat\s)least|equally|as|how|so)[\s-]+(?:un)?likely)"
    r"|(?P<plain>(?:(?:very|extremely)[\s-]+)?(?:un)?likely))\b(?![-\u2010]hood)",
    re.IGNORECASE,
)
_LIKELIHOOD_OF_GROUP: dict[str, Likelihood] = {
    "not": "about as likely as not",
    "more": "more likely than not",
    "less": "more unlikely than likely",
    "certain": "virtually certain",
    "exceptional": "exceptionally unlikely",
}
_TRANSLATED_LIKELIHOODS: dict[Likelihood, re.Pattern[str]] = {
    term: re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for term, words in cast(
        "dict[Likelihood, str]",
        {
            "exceptionally unlikely": r"(?:exceptionnellement|excepcionalmente)\s+improbables?",
            "extremely unlikely": r"(?:extrêmement|extremadamente|sumamente)\s+improbables?",
            "very unlikely": r"(?:très|muy)\s+(?:improbables?|peu\s+probables?|poco\s+probables?)",
            "more likely than not": r"plus\s+probables?\s+qu[’']improbables?"
            r"|más\s+probables?\s+que\s+(?:no|improbables?)",
            "very likely": r"(?:très|muy)\s+probables?",
            "extremely likely": r"(?:extrêmement|extremadamente|sumamente)\s+probables?",
            "virtually certain": r"(?:quasiment|pratiquement|virtualmente|prácticamente)\s+(?:certain|segur)[a-z]*",
        },
    ).items()
}
"""Patterns of likelihood terms in French and Spanish, except "probable", which is also an English word."""
_TAG_WORDS = ("confiden", "confiance", "confianza", "evidence", "agreement", "likely", "certain")
_OMITTED_CHARACTERS = dict.fromkeys(map(ord, "-\u00ad\u2010\ufffe"))
_OPEN, _CLOSE = "([{", ")]}"
_QUOTES = tuple("“”\"„«»‘’'")
_MAX_BRACKET_CHARACTERS = 700
_MAX_LABEL_WORDS = 9
_SENTENCE_IN_BRACKETS = re.compile(r"\b(?:there (?:is|are|was)|assess\w*|conclude\w*|that)\b", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")
_NEGATION_WINDOW = 60
"""Number of characters before a level within which a negation is searched for."""
_NOT_SCOPE = re.compile(r"^[\s,;:.*_–—-]+|[\s,;:*_–—-]+$")


def find_tags(text: str) -> list[Tag]:
    """Return the groups of calibrated terms in a text, in order.

    These terms are:

    - levels of confidence anywhere, also as predicates ("confidence in more hail remains low") and behind a label
      ("Confidence: low");
    - evidence or agreement in brackets;
    - evidence and agreement side by side in running text ("limited evidence" alone is ordinary English);
    - likelihood terms in brackets that contain nothing else.

    "95% confidence interval", people's trust ("farmers report high confidence in forecasts") and negated levels ("not
    high confidence") are excluded.

    Returns:
        Groups of terms that belong together; their words do not overlap. Brackets may contain several groups: ``(NES:
        high confidence; WAF: low confidence)``.
    """
    # Few sentences have a calibrated word; this test is faster than the patterns.
    compact_text = "".join(text.split()).translate(_OMITTED_CHARACTERS).lower()
    if not any(word in compact_text for word in _TAG_WORDS):
        return []
    brackets = _find_brackets(text)
    phrases = [
        phrase
        for pattern in (_ENGLISH_LEVELS, *_TRANSLATED_LEVELS)
        for phrase in pattern.finditer(text)
        if not _NEGATION_BEFORE.search(text[max(0, phrase.start() - _NEGATION_WINDOW) : phrase.start()])
        and not _NEGATION_AFTER.match(text, phrase.end())
    ]
    tags: list[Tag] = []
    by_bracket: dict[tuple[int, int], list[re.Match[str]]] = {}
    for phrase in phrases:
        bracket = _find_enclosing_bracket(brackets, phrase.start(), phrase.end())
        if bracket is None or _is_sentence(text, bracket):
            is_quoted = text[phrase.start() - 1 : phrase.start()] in _QUOTES and text[phrase.end() :][:1] in _QUOTES
            if not is_quoted and not is_trust_of_people(text, phrase.start(), phrase.end()):
                tags.append(_parse_running_tag(text, phrase))
        else:
            by_bracket.setdefault(bracket, []).append(phrase)
    for bracket, bracket_phrases in by_bracket.items():
        tags += _parse_bracketed_tags(text, bracket, bracket_phrases)
    tags += [
        tag
        for tag in (*_find_predicates(text), *_find_labelled_levels(text, brackets))
        if not any(phrase.start() < tag.end and tag.start < phrase.end() for phrase in phrases)
    ]
    occupied_spans = {*by_bracket, *(tag.span_with_brackets for tag in tags)}
    tags += _find_tags_without_level(text, brackets, sorted(occupied_spans))
    return sorted(tags, key=lambda tag: (tag.start, tag.end))


def find_likelihoods(text: str) -> list[LikelihoodTerm]:
    """Return all likelihood terms in a text, in order, except in comparisons ("more likely in winter")."""
    results = []
    for term, pattern in _TRANSLATED_LIKELIHOODS.items():
        results += [LikelihoodTerm(*match.span(), term) for match in pattern.finditer(text)]
    for match in _LIKELIHOOD.finditer(text):
        group = match.lastgroup or "plain"
        if group == "comparative":
            continue
        words = " ".join(re.split(r"[\s-]+", match.group().lower()))
        results.append(
            LikelihoodTerm(match.start(), match.end(), _LIKELIHOOD_OF_GROUP.get(group, cast("Likelihood", words)))
        )
    return sorted(results)


_LEVEL = "|".join(sorted(LEVELS, key=len, reverse=True)).replace(" ", r"\s+")
_RATING_WORDS = (
    r"(?:(?:therefore|still|now|also|only|thus|hence|generally|overall|however|currently|mostly|assessed|rated|judged|"
    r"considered|deemed|estimated|found|as|to\s+be|being|at)\s+)*"
)
_COPULA = (
    rf"(?:is|are|was|were|being|remains?|remained|stays?|stayed|becomes?|has\s+been|have\s+been)\s+{_RATING_WORDS}"
)
_CHANGE_VERB = (
    r"(?:(?:has|have|been|since|now)\s+){0,3}(?:increased|risen|grown|improved|decreased|fallen|upgraded|downgraded|"
    rf"raised|lowered|revised|changed)\s+(?:from\s+(?:{_LEVEL})\s+)?to\s+"
)
_RANGE_VERB = rf"(?:(?:ranging|ranges?|ranged|varies|varied|varying|vary)\s+(?:from|between)|(?:{_COPULA})between)\s+"
_NOTE = r"(?:\s+\([^()]{0,80}\))?"
_CLAUSE_START = "confidence|because|since|while|whereas|although|though|where|when|if|that|which|who"
_SUBJECT = rf"\s+(?:in|about|on|of|for|regarding)\s+(?P<about>(?:(?!\b(?:{_CLAUSE_START})\b)[^.;:()]){{1,200}}?)"
_RANGE_OF_LEVELS = (
    rf"(?P<first>{_LEVEL})\b(?:[*_]*(?:\s+confidence)?\s*[-–—]?(?:to|and|or|[-–—])[-–—]?\s*[*_]*(?P<last>{_LEVEL})\b)?"
    r"[*_]*(?!-\w|\s+(?:to|or|than|confidence|evidence|agreement|enough|among)\b)"
)
_PREDICATE = re.compile(
    r"(?:\b(?:(?:the|our|overall|such|levels?\s+of|degrees?\s+of)\s+)+)?(?<![-\u2010%])\bconfidence"
    rf"(?:\s+(?:levels?|statements?))?{_NOTE}(?:{_SUBJECT})?{_NOTE}\s+"
    rf"(?:(?:{_COPULA}|{_CHANGE_VERB}|(?P<varies>{_RANGE_VERB}))[*_]*){_RANGE_OF_LEVELS}",
    re.IGNORECASE,
)
_PREDICATE_OF_CLAUSE = re.compile(
    r"(?:^|(?<=[,;:]\s)|(?<=\band\s)|(?<=\bbut\s)|(?<=\bwhile\s)|(?<=\balthough\s))(?:(?:the|our|overall)\s+)*confidence\s+that"
    rf"\s+(?P<about>(?:(?!\b(?:{_CLAUSE_START})\b)[^.;:()])+?\s[^.;:()\s]+)\s+(?P<varies>(?!))?{_COPULA}[*_]*{_RANGE_OF_LEVELS}"
    r"(?=\s*(?:[.,;(]|$))",
    re.IGNORECASE,
)
"""Pattern of the beginning of a predicate that qualifies a clause, as in "confidence that seas rise is high". The
clause ends before the level."""
_CONFIDENT_PREDICATE = re.compile(
    r"\b(?:we|(?:the\s+)?authors|the\s+IPCC|AR\d|(?:the|this)\s+(?:assessment|report|chapter|panel))\s+(?:are|is|were|was|remains?)\s+"
    r"(?:(?:now|also|still|therefore)\s+)?highly\s+confident\b(?=\s+(?:that|in|of|about)\b)",
    re.IGNORECASE,
)
_LABELLED_LEVEL = re.compile(
    r"(?:\b(?:levels?|degrees?)\s+of\s+)?(?<![-\u2010%\w])confidence(?:\s+(?:levels?|ratings?|statements?))?\s*[:=]\s*[*_]*"
    rf"{_RANGE_OF_LEVELS}(?=[*_]*\s*(?:$|[^\w\s]|(?:for|in|over|at|on|that|because|due|and|but|with)\b))"
    rf"(?!\s*[,/|]\s*(?:or\s+)?(?:{_LEVEL})\b)",
    re.IGNORECASE,
)
"""Pattern of a level behind its label, as in "(confidence: high)" and in the rows of tables. A list of levels, as in an
explanation of them, does not match."""
_SECOND_LEVEL = re.compile(
    rf"[^.;:()]{{1,120}}?,?\s+(?:and|but|while|whereas|yet)\s+(?:(?:is|only|remains)\s+)*(?P<level>{_LEVEL})"
    r"(?=\s+(?:for|in|over|at|on|that|elsewhere)\b)",
    re.IGNORECASE,
)
"""Pattern of the second level of a predicate: "confidence is high for heat and low for hail"."""
_POSSESSIVE = re.compile(
    r"(?:['’]s?|\b(?:their|his|her|its|your|public|per\s?cent))\s+(?:own\s+)?$|%\s*$", re.IGNORECASE
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|where|wherever|whether|which|unless|until|once|how|as\s+long\s+as|whose|of|no|not|low|medium|high)\s+$"
    r"|\bnot\b[^.;]{0,40}\bthat\s+(?:the\s+)?$",
    re.IGNORECASE,
)
"""Pattern of words before a predicate that prevent it from stating a level: a condition, a negation, or an explanation
of levels."""
_NEGATION_BEFORE = re.compile(
    r"\b(?:not|no|no\s+longer|never|without|neither|nor|cannot|lacks?|(?:is|are|was|were|do|does|did)n[’']t)\s+"
    r"(?:(?:yet|have|has|had|hold|of|any|an?|the|with|at|be)\s+)*[*_]*$"
    r"|\b(?:not|cannot|never)\s+(?:yet\s+)?(?:(?:be|been)\s+)?(?:\w+ed|made|drawn|given|said|known)\s+(?:with|at)\s+(?:an?\s+)?[*_]*$",
    re.IGNORECASE,
)
"""Pattern of a negation before a level: "not high confidence"."""
_NEGATION_AFTER = re.compile(r"[*_]*\s+(?:(?:is|was)\s+(?:not|never|no\s+longer)|cannot|could\s+not)\b", re.IGNORECASE)
"""Pattern of a negation after a level in running text: "high confidence is not warranted"."""


def _find_predicates(text: str) -> Iterator[Tag]:
    """Yield the levels that predicates state, as in "confidence in more hail is low" or "we are highly confident that".

    Conditions ("where confidence is low"), negations and people's trust are skipped.
    """
    for match in (*_PREDICATE.finditer(text), *_PREDICATE_OF_CLAUSE.finditer(text)):
        start, end = match.span()
        noun_start = text.lower().index("confidence", start)
        if (
            _POSSESSIVE.search(text[:start])
            or _CONDITION.search(text[:start])
            or is_trust_of_people(text, noun_start, noun_start + 10)
        ):
            continue
        words = (match["first"], match["last"])
        level_words = {" ".join(word.lower().split()) for word in words if word is not None}
        if match["last"] is not None and " and " in text[match.end("first") : end] and not match["varies"]:
            continue  # "confidence in A and B is low and high" does not say which is which
        levels = tuple(level for level in LEVELS if level in level_words)
        yield Tag(start, end, levels, subject=None if match["about"] is None else match.span("about"))
        while second_level := _SECOND_LEVEL.match(text, end):
            end = second_level.end()
            yield Tag(*second_level.span("level"), (cast("Level", " ".join(second_level["level"].lower().split())),))
    for match in _CONFIDENT_PREDICATE.finditer(text):
        yield Tag(*match.span(), ("high",))


def _find_labelled_levels(text: str, brackets: list[tuple[int, int]]) -> Iterator[Tag]:
    for match in _LABELLED_LEVEL.finditer(text):
        start, end = match.span()
        if not is_trust_of_people(text, start, end) and not _POSSESSIVE.search(text[:start]):
            words = [match["first"], match["last"] or ""]
            levels = tuple(level for level in LEVELS if level in [" ".join(word.lower().split()) for word in words])
            yield Tag(start, end, levels, bracket=_find_enclosing_bracket(brackets, start, end))


def _find_brackets(text: str) -> list[tuple[int, int]]:
    """Return the spans of brackets; inner brackets come before those around them."""
    pairs: list[tuple[int, int]] = []
    stack: list[int] = []
    for match in re.finditer(r"[(\[{)\]}]", text):
        char = match.group()
        if char in _OPEN:
            stack.append(match.start())
        elif stack and _CLOSE.index(char) == _OPEN.index(text[stack[-1]]):
            start = stack.pop()
            if match.end() - start <= _MAX_BRACKET_CHARACTERS:
                pairs.append((start, match.end()))
    return pairs


def _find_enclosing_bracket(brackets: list[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    enclosing_brackets = [bracket for bracket in brackets if bracket[0] < start and end < bracket[1]]
    return min(enclosing_brackets, key=lambda bracket: bracket[1] - bracket[0], default=None)


def _is_sentence(text: str, bracket: tuple[int, int]) -> bool:
    """Return whether brackets contain a complete sentence, so that terms in them count as running text."""
    content = text[bracket[0] + 1 : bracket[1] - 1]
    remaining_text = _AGREEMENT.sub(" ", _EVIDENCE.sub(" ", _ENGLISH_LEVELS.sub(" ", content)))
    is_long = len(remaining_text.split()) > _MAX_LABEL_WORDS
    return is_long and _SENTENCE_IN_BRACKETS.search(remaining_text) is not None


def _parse_levels(match: re.Match[str]) -> tuple[Level, ...]:
    results = set()
    for prefix in ("a", "b"):
        for name in ("low", "medium", "high"):
            if match[prefix + name] is not None:
                results.add(f"very {name}" if match[f"{prefix}very"] is not None and name != "medium" else name)
                break
    return tuple(level for level in LEVELS if level in results)


def _parse_running_tag(text: str, phrase: re.Match[str]) -> Tag:
    start, end = phrase.span()
    # Evidence and agreement in the next brackets: "very high confidence (robust evidence)".
    next_bracket = re.match(r"\s*\(([^()]{0,80})\)", text[end : end + 90])
    return Tag(
        start,
        end,
        _parse_levels(phrase),
        attributive=bool(re.search("[-\u2010\u2011]", phrase["gap"]) and re.match(r"\s+[^\W\d_]", text[end:])),
        evidence=_parse_evidence(next_bracket[1]) if next_bracket else None,
        agreement=_parse_agreement(next_bracket[1]) if next_bracket else None,
    )


def _parse_bracketed_tags(text: str, bracket: tuple[int, int], phrases: list[re.Match[str]]) -> Iterator[Tag]:
    """Yield a tag for each level in brackets; the words between two levels are divided between the two tags."""
    boundaries = [bracket[0] + 1]
    for left_match, right_match in pairwise(phrases):
        text_between = text[left_match.end() : right_match.start()]
        offset = text_between.rfind(";")
        if offset < 0:
            match = re.search(r",|\b(?:but|and|while|whereas)\b", text_between)
            offset = match.start() if match else 0
        boundaries.append(left_match.end() + offset)
    boundaries.append(bracket[1] - 1)
    for phrase, start, end in zip(phrases, boundaries, boundaries[1:], strict=False):
        tag_text = text[start:end]
        yield Tag(
            phrase.start(),
            phrase.end(),
            _parse_levels(phrase),
            tuple(likelihood.term for likelihood in find_likelihoods(tag_text)),
            _parse_evidence(tag_text),
            _parse_agreement(tag_text),
            bracket,
            scope=_extract_scope(tag_text),
        )


def _extract_scope(part: str) -> str:
    scope = part
    for pattern in (_ENGLISH_LEVELS, *_TRANSLATED_LEVELS, _EVIDENCE, _AGREEMENT):
        scope = pattern.sub(" ", scope)
    scope = " ".join(scope.split())
    while (stripped_scope := _NOT_SCOPE.sub("", scope)) != scope:
        scope = stripped_scope
    return scope if _LETTER.search(_LIKELIHOOD.sub("", scope)) else ""


def _parse_evidence(text: str) -> EvidenceRating | None:
    match = _EVIDENCE.search(text)
    if match is None:
        return None
    word = re.sub(r"\W", "", match["word"].lower())
    return {"low": "limited", "insufficient": "limited", "limited": "limited", "medium": "medium"}.get(word, "robust")  # type: ignore[return-value]


def _parse_agreement(text: str) -> Agreement | None:
    match = _AGREEMENT.search(text)
    if match is None:
        return None
    word = re.sub(r"\W", "", match["word"].lower())
    return cast("Agreement", word if word in ("low", "medium") else "high")


def _find_tags_without_level(
    text: str, brackets: list[tuple[int, int]], occupied_spans: list[tuple[int, int]]
) -> Iterator[Tag]:
    """Yield tags without a level: terms of evidence and agreement, and likelihood terms that are alone in brackets."""

    def is_free(start: int, end: int) -> bool:
        return not any(span_start < end and start < span_end for span_start, span_end in occupied_spans)

    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    running_spans: list[tuple[int, int]] = []
    for start, end in sorted(match.span() for match in (*_EVIDENCE.finditer(text), *_AGREEMENT.finditer(text))):
        bracket = _find_enclosing_bracket(brackets, start, end)
        if not is_free(start, end):
            continue
        if bracket is None or _is_sentence(text, bracket):
            running_spans.append((start, end))
        else:
            groups.setdefault(bracket, []).append((start, end))
    for bracket, spans in groups.items():
        content = text[bracket[0] + 1 : bracket[1] - 1]
        terms = tuple(term.term for term in find_likelihoods(content))
        yield Tag(
            spans[0][0],
            spans[-1][1],
            (),
            terms,
            _parse_evidence(content),
            _parse_agreement(content),
            bracket,
            scope=_extract_scope(content),
        )
    # Evidence and agreement next to each other in running words.
    is_pair = False
    for (start, end), (next_start, next_end) in pairwise(running_spans):
        words = text[start:next_end]
        evidence, agreement = _parse_evidence(words), _parse_agreement(words)
        is_pair = not is_pair and bool(evidence and agreement and _PAIR_SEPARATOR.fullmatch(text[end:next_start]))
        if is_pair:
            yield Tag(start, next_end, (), (), evidence, agreement)
    for start, end in brackets:
        content_text = text[start + 1 : end - 1]
        terms = tuple(term.term for term in find_likelihoods(content_text))
        fills_bracket = terms and not re.sub(r"\brange\b|[\s,;*_]", "", _LIKELIHOOD.sub("", content_text))
        if fills_bracket and is_free(start, end):
            yield Tag(start + 1, end - 1, (), terms, bracket=(start, end))
