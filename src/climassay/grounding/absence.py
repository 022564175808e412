"""Recognise sentences without a claim: statements about what the sources lack, and bare answers ("No.")."""

import re

_KIND = (
    r"(?:passages?|sources?|source\s+material|stud(?:y|ies)|reports?|papers?|texts?|documents?|abstracts?|excerpts?)"
)
_GIVEN = r"(?:(?:given|provided|retrieved|available|cited|quoted|numbered|two|three|four)\s+)"
_PASSAGES_IN_PROMPT = (
    rf"(?:(?:the|this|these|those|my|our)\s+(?:{_GIVEN}?{_KIND}|[\w-]+\s+passages?|information(?=\s+(?:provided|given)))"
    r"|passages?\s+\d+(?:(?:,|,?\s+and)\s+\d+)*)"
    r"(?:\s+(?:provided|given|retrieved|quoted|cited|above|here|at\s+hand|I\s+was\s+given))?"
)
"""Pattern of references to the passages in the prompt ("the passages provided").

Plurals without an article ("studies") do not match.
"""
_VERBS = (
    r"(?:give|state|say|mention|cover|address|discuss|contain|include|provide|specif[iy]e?|report|quantif[iy]e?|describe|name"
    r"|list|allow|answer|tell|offer|define|compare|distinguish|speak|touch|single\s+out|break\s+\w+\s+down)(?:e?s)?"
)
_NOT = r"(?:do|does|did|can)(?:\s+not|n't|not)(?:,\s+however,|\s+(?:directly|explicitly|themselves|itself))?"
_LACKS = (
    rf"(?:{_NOT}\s+{_VERBS}|{_VERBS}\s+(?:no|nothing|neither)\b|makes?\s+no\s+mention|lacks?|(?:is|are)\s+(?:silent|insufficient)"
    r"|leaves?\s+(?:it\s+)?open|neither\s+\w+\s+nor)\b"
)
_ABSENCE = re.compile(
    r"(?:(?:however|but|yet|still|unfortunately),?\s+)?(?:"
    rf"{_PASSAGES_IN_PROMPT}\s+{_LACKS}"
    rf"|(?:(?:none|neither|nothing)\s+(?:of|in)\s+{_PASSAGES_IN_PROMPT}|(?:no|neither)\s+{_KIND}(?:\s+here)?)\s+{_VERBS}\b"
    r"|(?:(?>[^,;:]*?\b(?:not|cannot)\b)|(?:there\s+(?:is|are)\s+)?no)\b[^,;:]*\s"
    rf"(?:in\s+(?=[^,;:]{{0,200}}\bsources\b)|(?:in|by|from)\s+(?![^,;:]{{0,200}}\b(?:sources|stud|reports?|papers?)))(?:any\s+of\s+)?{_PASSAGES_IN_PROMPT}"
    r")",
    re.IGNORECASE,
)
"""Pattern of a statement, at the beginning of a sentence, that information is missing; findings ("do not show") do not
match.
"""
_OTHER_CLAUSE = re.compile(
    r"[;:]|,\s+(?:and|as|so|since|yet|while|which|where)\b|\b(?:but|although|though|whereas|because)\b", re.I
)
"""Pattern of the beginning of another clause, which may be a statement about the world."""
_CONSEQUENCE = re.compile(
    r",\s+so\s+(?:that\s+)?(?:the|this|that|its|a|an)\s+(?:[\w-]+\s+){1,3}?(?:itself\s+)?"
    r"(?:(?:is|are|was|can)\s*not(?:\s+be)?|(?:remains?|stays|is)(?=\s+(?:open|un)))\s+"
    r"(?:made|put\s+into\s+numbers|checked|compared|judged|assessed|answered|verified|quantified|settled|tested|decided"
    r"|open|unanswered|unsettled|untested|unverified)(?:\s+(?:here|from\s+them))?(?=\s*[.!]?\s*$)",
    re.IGNORECASE,
)
"""Pattern of a consequence of missing information ("so the comparison cannot be made")."""
_BARE_ANSWER = re.compile(
    r"(?:(?:yes|no|partly|not\s+(?:quite|entirely|exactly|really))\b[,.]?\s*)?"
    r"(?:(?:it|they|this|that|he|she|there)\s+(?:is|are|was|were|has|have|had|does|do|did|will|would|can|could)"
    r"(?:\s+not|n't|not)?)?[.!]?",
    re.IGNORECASE,
)


def states_absence(sentence: str) -> bool:
    """Return whether a sentence only states what the passages lack ("The passages give no figure for Spain").

    The sentence may add a consequence, such as "so the comparison cannot be made". The result is False for statements
    about the world, for example that there is no evidence for something or that studies do not find it.
    """
    sentence_without_consequence = _CONSEQUENCE.sub("", sentence)
    return bool(_ABSENCE.match(sentence_without_consequence)) and not _OTHER_CLAUSE.search(
        sentence_without_consequence, 3
    )


def is_bare_answer(sentence: str) -> bool:
    """Return whether a sentence is only a short answer such as "No." or "It has not."."""
    return bool(_BARE_ANSWER.fullmatch(sentence))
