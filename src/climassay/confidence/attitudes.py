"""Whose certainty words speak about: that of an assessment's authors, or that of people whom a text describes.

"Farmers report high confidence in seasonal forecasts" states a finding about farmers, and "respondents thought it
likely" one about respondents. Neither is a calibrated term. What decides is who holds the attitude, or what it is held
in.
"""

import re

_PEOPLE = (
    r"(?:farmer|smallholder|grower|herder|pastoralist|fisher|forester|producer|worker|employee|household|famil(?:y|ie)|"
    r"resident|villager|citizen|voter|taxpayer|consumer|customer|buyer|investor|lender|insurer|trader|bank|compan(?:y|ie)|"
    r"firm|business(?:e)?|employer|manager|planner|practitioner|engineer|architect|teacher|student|pupil|patient|"
    r"nurse|doctor|tourist|user|operator|pilot|captain|official|officer|politician|minister|mayor|delegate|respondent|"
    r"interviewee|participant|informant|volunteer|stakeholder|decision-?\s?maker|policy-?\s?maker|leader|elder|adult|"
    r"parent|child|youth|individual|person|communit(?:y|ie)|government|municipalit(?:y|ie)|market)s?|"
    r"fishermen|children|people|women|men|public|population|who|(?:two|three)\s+(?:thirds|quarters)|half"
)
_ATTITUDE = (
    r"(?:report|express|voic|stat|profess|declar|show|display|ha(?:s|ve|d)|having|feel|felt|place|placing|put|enjoy|"
    r"los[et]|losing|gain|regain|retain|maintain|develop|acquire|build|built)(?:s|es|ed|d|ing)?"
)
_OPINION = (
    r"(?:think|thought|believ|consider|regard|rat|judg|perceiv|expect|find|found|deem|call|view|see|saw|said|say|answer|"
    r"report|fear|feel|felt|guess)(?:s|e|es|ed|d|ing|en)?"
)
_CLAUSE = r"[^.;:()]{0,60}?"
_TRUST = re.compile(r"(?:very\s+)?\w+\s+confidence\b", re.IGNORECASE)
_HOLDS = re.compile(
    rf"\b(?:{_PEOPLE})\b(?:{_CLAUSE}\b{_ATTITUDE}\b(?:\s+(?:an?|the|only|still|more|with|that|very))*|\s+with)\s+$",
    re.IGNORECASE,
)
_COMPOUND = re.compile(
    r"\b(?:public|consumer|investor|business|market|customer|voter|user|farmer|donor|self)[\s-]+confidence\b"
    r"|\bconfidence\s+of\s+(?:the\s+)?(?:public|consumers?|investors?|markets?|citizens|voters|farmers)\b|"
    r"\bvote\s+of\s+(?:no\s+)?confidence\b|\bno[\s-]confidence\s+(?:vote|motion)\b",
    re.IGNORECASE,
)
_HELD_IN_SOCIETY = re.compile(
    r"\s+(?:in|about|towards?)\s+(?:(?:their|its|his|her|our|one[’']s)\s+own\b|(?:(?:the|their|its|our|local|national|federal|"
    r"state|public|political|democratic|elected|financial|scientific)\s+)*(?:institutions|governments?|authorities|parliaments?|"
    r"politic(?:s|ians?)|leaders(?:hip)?|police|media|banks?|currenc(?:y|ies)|science|scientists|themselves|themself|"
    r"officials|neighbou?rs)\b)",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"\b(?:{_PEOPLE})\b[^.;]{{0,80}}?\b{_OPINION}\b[^.;]{{0,60}}$", re.IGNORECASE)
_SURVEY = re.compile(
    r"\b(?:surveys?|questionnaires?|polls?|interviews?|respondents?|interviewees?|participants?)\b", re.IGNORECASE
)
_ASSESSMENT = re.compile(
    r"\b(?:we|authors?|experts?|assess\w*|(?:this|the|earlier|previous|assessment)\s+reports?|chapters?|IPCC|AR\d|"
    r"there\s+(?:is|was|remains))\b[^.;]{0,40}$",
    re.IGNORECASE,
)


def is_held_by_people(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]``, words such as "high confidence", name trust that people have."""
    before = text[max(0, start - 140) : start]
    if _HELD_IN_SOCIETY.match(text, end):
        return True
    if _ASSESSMENT.search(before):
        return False
    return _HOLDS.search(before) is not None or (
        _COMPOUND.search(text, max(0, start - 300), end + 100) is not None and text[end : end + 5] != " that"
    )


def speaks_of_trust(text: str) -> bool:
    """Whether a sentence is about the confidence that people have."""
    return any(is_held_by_people(text, *match.span()) for match in _TRUST.finditer(text))


def is_opinion(text: str, start: int) -> bool:
    """Whether a term of likelihood at ``start`` is what people answered or thought."""
    before = text[:start]
    return _ASKED.search(before[-200:]) is not None and (
        _SURVEY.search(before) is not None or not _ASSESSMENT.search(before[-140:])
    )
