"""Words that tell clauses of English apart: verbs, prepositions and conjunctions, as patterns without a parser.

Many verbs are nouns or adjectives as well ("increases", "limits", "warm"); patterns whose names begin with ``SURELY``
hold only words that are verbs where they stand.
"""

import re

FEW_WORDS = 2

WORD = re.compile(r"[^\W\d_]{2,}")

CONJUNCTION = re.compile(
    r"^[\s,;:–—]*(?:(?:and/or|and|or|but|nor|yet|while|whilst|whereas|although|though|however|as\s+well\s+as|also)\b[\s,]*)+|^[\s,;:–—]+",
    re.IGNORECASE,
)

_AUXILIARY = (
    r"(?:is|are|was|were|has|have|had|will|would|can|could|cannot|may|might|must|should|shall|do|does|did)"
    r"(?:\s+(?:not|also|only|already|still|now|then|thus|further|likely|unlikely|\w+ly)\b)*"
)

VERB = (
    r"(?:leads?|led|exists?|remains?|remained|becomes?|became|depends?|depended|varies|vary|varied|occurs?|occurred|continues?"
    r"|continued|contributes?|contributed|exceeds?|exceeded|provides?|provided|requires?|required|shows?|showed|indicates?"
    r"|indicated|suggests?|suggested|includes?|constrains?|constrained|affects?|affected|grew|grows?|rose|fell|began"
    r"|persists?|persisted|enables?|enabled|emerges?|emerged|drove|drives?|reduces?|increases?|decreases?|declines?|intensif(?:y|ies|ied)"
    r"|enhances?|improves?|supports?|plays?|played|faces?|makes?|made|causes?|limits?|prevents?|accelerates?|warms?|warmed"
    r"|increased|decreased|declined|reduced|caused|shifted|melts?|melted|needs?|experiences?|experienced|represents?)"
)

_NOT_NOUN = r"(?!\s+(?:in|of|and|or|to)\b)"

_AFTER_DETERMINER = "".join(
    rf"(?<!\b{word} )" for word in ("the", "a", "an", "of", "in", "by", "more", "less", "these", "such", "to")
)

FINITE = re.compile(rf"\b(?:{_AUXILIARY}|{_AFTER_DETERMINER}{VERB}{_NOT_NOUN})\b", re.IGNORECASE)


SUBORDINATE = re.compile(
    r"^(?:which|that|who|whose|where|whereby|thereby|thus|given|followed\s+by|leading\s+to|resulting\s+(?:in|from)|causing|making|driven\s+by|due\s+to|in\s+part|albeit|because|with|including|"
    r"especially|particularly|mainly|mostly|primarily|partly|such\s+as|even|if|when|unless|since|so|as|than|rather|despite)\b",
    re.IGNORECASE,
)

SUBORDINATOR = re.compile(
    r"\b(?:if|that|which|when|where|because|while|although|who|whose|unless|than)\b", re.IGNORECASE
)

PREPOSITION = (
    r"over|in|on|at|by|for|from|during|until|through|throughout|within|across|under|between|after|before|since|into|to|of|"
    r"among|along|above|below|beyond|around|against|towards?|upon|per"
)

BEGINS_WITH_PREPOSITION = re.compile(rf"^(?:(?:also|both|only|\w+ly)\s+)?(?P<word>{PREPOSITION})\b", re.IGNORECASE)

PLACE_OR_TIME = re.compile(
    r"\b(?:over|in|on|at|by|during|until|within|across|for|under|between|from|after|since)\b", re.IGNORECASE
)

VERB_GROUP = re.compile(
    r"\b(?:will|would|can|could|may|might|must|should)(?:\s+(?:also|further|\w+ly))*\s+(?:(?:continue|help|tend|begin|need)\s+to\s+)?"
    r"(?!be\b|have\b|\w+ly\b)[a-z]+(?:\s+(?:to|in|by)\b)?|"
    rf"\b{_AUXILIARY}(?:\s+(?:been|being|be)\b)?(?:\s+\w+ly)?(?:\s+(?:\w+(?:ed|en|ing)|found|shown|led|due)\b)?(?:\s+to\s+(?:be\s+)?(?!\w+ing\b|an?\b|the\b)\w+)?"
    r"(?:\s+(?:by|to|in|of|including|for|such\s+as)\b)*"
    rf"|\b{VERB}(?:\s+(?:to|in|by|on)\b)?",
    re.IGNORECASE,
)

HAS_AUXILIARY = re.compile(rf"\b{_AUXILIARY}", re.IGNORECASE)

NOUN_TOO = re.compile(
    r"(?:increased|decreased|reduced|improved|enhanced|increases|decreases|declines|needs|causes|limits|plays|supports)",
    re.IGNORECASE,
)

INFINITE = re.compile(r"(?:to\s+\w+|be\b|been\b)", re.IGNORECASE)

# What rules can vouch for. A verb that is not a noun, adjective or participle as well:
_PLAIN_VERB = (
    r"(?:leads?|led|exists?|remains?|remained|becomes?|became|depends?|varies|vary|varied|occurs?|occurred|continues"
    r"|contributes?|contributed|exceeds?|exceeded|provides?|requires?|indicates?|suggests?|includes?|affects?|grew|rose"
    r"|fell|began|persists?|persisted|enables?|emerges?|drove|reduces|intensif(?:y|ies)|enhances|improves|faces|makes"
    r"|prevents|accelerates|plays|shows?|represents?|poses?|constrains?|drives|underpins?|exacerbates?|threatens?"
    r"|compromises|undermines?|display|displayed|follows?|extends?|amplif(?:y|ies)|strengthens?|creates?|brings?|helps?"
    r"|tends?|tended|alters?|degrades?|disrupts?|dominates?|dominated|demonstrates?|determines?|differs?|disappears?"
    r"|generates?|impairs?|induces?|inhibits?|involves?|offers?|promotes?|reveals?|allows?|ensures?|relies|rely"
    r"|lost|resulted|concluded|raises?|hinders?|hampers?|worsens?|erodes?|differed|explains?|modif(?:y|ies)|destabilises?"
    r"|replaces?|restricts?|sustains?|diminish(?:es)?|facilitates?|encourages?|stems|exhibits?|appears?|appeared|seems?"
    r"|underlies?|undergo(?:es)?|assess(?:es)?"
    r"|arises?|arose|comes?|came|gives?|gave|takes?|took|reflects?|confirms?|found|finds"
    r"|(?:shifts|yields|projects|displays?|scales)(?=\s+(?:an?|the|its|their|with|that|upwards?|downwards?|polewards?|\w+ly)\b))"
)

_AFTER_THESE = r"(?<=\bthese )(?:include|lead|contribute|remain|depend|provide|require|indicate|suggest|enable|affect)"
"""Verbs that are no nouns, behind a word that elsewhere stands before a noun."""

SURELY_FINITE = re.compile(
    rf"\b(?:{_AUXILIARY}|{_AFTER_DETERMINER}{_PLAIN_VERB}|{_AFTER_THESE}|(?:also|further)\s+{VERB}|{VERB}(?=\s+(?:an?|the|its|their|\w+ly)\b)"
    r"|(?:increased|decreased|declined|continued|warmed|shifted)(?=\s+(?:over|during|since|by|from|between|across|at)\b))\b",
    re.IGNORECASE,
)

FINITE_OR_PRESENT = re.compile(
    rf"{SURELY_FINITE.pattern}|{FINITE.pattern}|\b(?:include|arise|expand|reinforce|reduce|support|cause|limit|face|increase"
    r"|decrease|improve|enhance|compound|result|homogenise|affect|need|warm)s?(?=\s+(?!in\b|of\b|to\b|and\b|or\b)\w)",
    re.IGNORECASE,
)

BEGINS_WITH_VERB = re.compile(
    rf"^(?:(?:also|further|likely|then|thus|therefore|not|\w+ly)\s+)*(?:{_AUXILIARY}|be\b|been\b|to\s+\w+|{VERB}{_NOT_NOUN}\b|{_PLAIN_VERB}\b)",
    re.IGNORECASE,
)

SURELY_BEGINS_WITH_VERB = re.compile(
    rf"(?:(?:also|further|then|thus|therefore|not|\w+ly)\s+)*(?:{_AUXILIARY}\b|{_PLAIN_VERB}\b"
    rf"|{VERB}\s+(?:an?|the|its|their)\b|(?:increased|decreased|declined|continued|warmed|shifted)\s+(?:over|during|since|by|from"
    r"|between|across|at)\b)",
    re.IGNORECASE,
)

GOVERNS_INFINITIVE = re.compile(
    r"\b(?:will|would|can|could|may|might|must|should|(?:is|are|was|were)\s+(?:\w+ly\s+)?\w+ed\s+to)(?:\s+\w+ly|\s+also)?\b",
    re.IGNORECASE,
)

INFINITIVE = re.compile(
    rf"(?:(?:increase|decrease|decline|support|cause|limit|affect|help|result|delay){_NOT_NOUN}"
    r"|(?:lead|contribute|reduce|improve|enhance|provide|remain|become|create|modify|exacerbate|continue|lower|intensify"
    r"|require|strengthen|weaken|accelerate|amplify|alter|occur|persist|exceed|pose|disrupt|threaten|make|allow|enable"
    r"|deliver|bring|commit)(?!\s+(?:of|and|or)\b))\b",
    re.IGNORECASE,
)

ADDS = re.compile(
    r"(?:with|including|especially|particularly|mainly|mostly|primarily|partly|in\s+part|albeit|such\s+as|due\s+to|because|leading\s+to"
    r"|resulting\s+(?:in|from)|causing|making|driven\s+by|followed\s+by|given|thereby|which|where|even|despite|if|when|unless"
    r"|as\s+(?:is|are|was|were|has|have|do|does|did))\b",
    re.IGNORECASE,
)

RELATIVE_BEFORE = re.compile(r"\b(?:that|which|who)\s+$", re.IGNORECASE)

_REPORTED = re.compile(r"\s+(?:with\s+[\w\s]+\s+)?that\b")

DESCRIBED = re.compile(r"\w+ed\b", re.IGNORECASE)
"""In a list of things, "accelerated melting" is one."""

BEGINS_WITH_FORM = re.compile(
    r"(?!during\b|spring\b)(?:(?:also|further|\w+ly)\s+)?\w{2,}(?P<form>ing|ed)\b", re.IGNORECASE
)


def has_verb(words: str, *, surely: bool = False) -> bool:
    """Whether the main clause has a finite verb, that is, one before "if", "that" and their like.

    Args:
        words: The clause.
        surely: Count only verbs that are not nouns, adjectives or participles as well.
    """
    cut = SUBORDINATOR.search(words, 1)
    main = words[: cut.start()] if cut else words
    return SURELY_FINITE.search(main) is not None or (not surely and FINITE.search(main) is not None)


def main_verb(text: str) -> re.Match[str] | None:
    """The first finite verb that is not a relative clause's: "include" in "options that tend to help include A"."""
    found = [*SURELY_FINITE.finditer(text)] or [*FINITE.finditer(text)]
    main = [
        match
        for match in found
        if not RELATIVE_BEFORE.search(text, 0, match.start()) and not _REPORTED.match(text, match.end())
    ]
    return main[0] if main else found[0] if found else None
