"""Sentences that claim nothing about the world: what the passages lack, and bare answers such as "No."."""

import re

_KIND = (
    r"(?:passages?|sources?|source\s+material|stud(?:y|ies)|reports?|papers?|texts?|documents?|abstracts?|excerpts?)"
)
_GIVEN = r"(?:(?:given|provided|retrieved|available|cited|quoted|numbered|two|three|four)\s+)"
_THESE = (
    rf"(?:(?:the|this|these|those|my|our)\s+(?:{_GIVEN}?{_KIND}|[\w-]+\s+passages?|information(?=\s+(?:provided|given)))"
    r"|passages?\s+\d+(?:(?:,|,?\s+and)\s+\d+)*)"
    r"(?:\s+(?:provided|given|retrieved|quoted|cited|above|here|at\s+hand|I\s+was\s+given))?"
)
"""What lay before the model: "the passages provided". Bare plurals ("studies") are the world's."""
_TELL = (
    r"(?:give|state|say|mention|cover|address|discuss|contain|include|provide|specif[iy]e?|report|quantif[iy]e?|describe|name"
    r"|list|allow|answer|tell|offer|define|compare|distinguish|speak|touch|single\s+out|break\s+\w+\s+down)(?:e?s)?"
)
_NOT = r"(?:do|does|did|can)(?:\s+not|n't|not)(?:,\s+however,|\s+(?:directly|explicitly|themselves|itself))?"
_LACKS = (
    rf"(?:{_NOT}\s+{_TELL}|{_TELL}\s+(?:no|nothing|neither)\b|makes?\s+no\s+mention|lacks?|(?:is|are)\s+(?:silent|insufficient)"
    r"|leaves?\s+(?:it\s+)?open|neither\s+\w+\s+nor)\b"
)
_ABSENCE = re.compile(
    r"(?:(?:however|but|yet|still|unfortunately),?\s+)?(?:"
    rf"{_THESE}\s+{_LACKS}"
    rf"|(?:(?:none|neither|nothing)\s+(?:of|in)\s+{_THESE}|(?:no|neither)\s+{_KIND}(?:\s+here)?)\s+{_TELL}\b"
    r"|(?:[^,;:]*\b(?:not|cannot)|(?:there\s+(?:is|are)\s+)?no)\b[^,;:]*\s"
    rf"(?:in\s+(?=[^,;:]*\bsources\b)|(?:in|by|from)\s+(?![^,;:]*\b(?:sources|stud|reports?|papers?)))(?:any\s+of\s+)?{_THESE}"
    r")",
    re.IGNORECASE,
)
"""At the beginning of a sentence. A finding ("do not show", "do not support") is a statement about the world."""
_MORE = re.compile(
    r"[;:]|,\s+(?:and|as|so|since|yet|while|which|where)\b|\b(?:but|although|though|whereas|because)\b", re.I
)
"""What another clause begins with, which may say something about the world."""
_BARE = re.compile(
    r"(?:(?:yes|no|partly|not\s+(?:quite|entirely|exactly|really))\b[,.]?\s*)?"
    r"(?:(?:it|they|this|that|he|she|there)\s+(?:is|are|was|were|has|have|had|does|do|did|will|would|can|could)"
    r"(?:\s+not|n't|not)?)?[.!]?",
    re.IGNORECASE,
)


def states_absence(sentence: str) -> bool:
    """Whether a sentence says only what the passages do not say, as in "The passages give no figure for Spain".

    That there is no evidence for something, or that studies do not find it, is a statement about the world.
    """
    return bool(_ABSENCE.match(sentence)) and not _MORE.search(sentence, 3)


def is_bare_answer(sentence: str) -> bool:
    """Whether a sentence answers a question in the question's own words: "No.", "It has not."."""
    return bool(_BARE.fullmatch(sentence))
