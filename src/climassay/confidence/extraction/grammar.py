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
    rf"(?<!\b{word} )" for word in ("the", "a", "an", "of", "in", "by", "more", "less", "these", "such")
)

FINITE = re.compile(rf"\b(?:{_AUXILIARY}|{_AFTER_DETERMINER}{VERB}{_NOT_NOUN})\b", re.IGNORECASE)

BEGINS_WITH_VERB = re.compile(
    rf"^(?:(?:also|further|likely|then|thus|therefore|not|\w+ly)\s+)*(?:{_AUXILIARY}|be\b|been\b|to\s+\w+|{VERB}{_NOT_NOUN}\b)",
    re.IGNORECASE,
)

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

BEGINS_WITH_PREPOSITION = re.compile(
    rf"^(?:(?:also|both|only|mainly|especially)\s+)?(?P<word>{PREPOSITION})\b", re.IGNORECASE
)

PLACE_OR_TIME = re.compile(
    r"\b(?:over|in|on|at|by|during|until|within|across|for|under|between|from|after|since)\b", re.IGNORECASE
)

VERB_GROUP = re.compile(
    rf"\b{_AUXILIARY}(?:\s+(?:been|being|be)\b)?(?:\s+\w+ly)?(?:\s+\w+(?:ed|en|ing)\b)?(?:\s+to\s+(?:be\s+)?(?!\w+ing\b|an?\b|the\b)\w+)?"
    r"(?:\s+(?:by|to|in|of|including|for|such\s+as)\b)*"
    rf"|\b{VERB}(?:\s+(?:to|in|by|on)\b)?",
    re.IGNORECASE,
)

HAS_AUXILIARY = re.compile(rf"\b{_AUXILIARY}", re.IGNORECASE)

NOUN_TOO = re.compile(r"(?:increases|decreases|declines|needs|causes|limits|plays|supports)", re.IGNORECASE)

INFINITE = re.compile(r"(?:to\s+\w+|be\b|been\b)", re.IGNORECASE)

# What rules can vouch for. A verb that is not a noun, adjective or participle as well:
_PLAIN_VERB = (
    r"(?:leads?|led|exists?|remains?|remained|becomes?|became|depends?|varies|vary|varied|occurs?|occurred|continues"
    r"|contributes?|contributed|exceeds?|exceeded|provides?|requires?|indicates?|suggests?|includes?|affects?|grew|rose"
    r"|fell|began|persists?|persisted|enables?|emerges?|drove|reduces|intensif(?:y|ies)|enhances|improves|faces|makes"
    r"|prevents|accelerates|plays|shows?|represents?|poses?|constrains?|drives|underpins?|exacerbates?|threatens?"
    r"|compromises|undermines?|display|displayed|amplif(?:y|ies)|strengthens?|creates?|brings?|helps?"
    r"|tends?|tended|alters?|degrades?|disrupts?|dominates?|dominated|demonstrates?|determines?|differs?|disappears?"
    r"|generates?|impairs?|induces?|inhibits?|involves?|offers?|promotes?|reveals?|allows?|ensures?|relies|rely|yields"
    r"|arises?|arose|comes?|came|gives?|gave|takes?|took|shifts|reflects?|confirms?|projects|found|finds)"
)

SURELY_FINITE = re.compile(
    rf"\b(?:{_AUXILIARY}|{_AFTER_DETERMINER}{_PLAIN_VERB}|(?:also|further)\s+{VERB}|{VERB}(?=\s+(?:an?|the|its|their|\w+ly)\b)"
    r"|(?:increased|decreased|declined|continued|warmed|shifted)(?=\s+(?:over|during|since|by|from|between|across|at)\b))\b",
    re.IGNORECASE,
)

FINITE_OR_PRESENT = re.compile(
    rf"{SURELY_FINITE.pattern}|{FINITE.pattern}|\b(?:include|arise|expand|reinforce|reduce|support|cause|limit|face|increase"
    r"|decrease|improve|enhance|compound|result|homogenise|affect|need|warm)s?(?=\s+(?!in\b|of\b|to\b|and\b|or\b)\w)",
    re.IGNORECASE,
)

SURELY_BEGINS_WITH_VERB = re.compile(
    rf"(?:(?:also|further|then|thus|therefore|not|\w+ly)\s+)*(?:{_AUXILIARY}\b|{_PLAIN_VERB}\b"
    rf"|{VERB}\s+(?:an?|the|its|their)\b)",
    re.IGNORECASE,
)

GOVERNS_INFINITIVE = re.compile(
    r"\b(?:will|would|can|could|may|might|must|should|(?:is|are|was|were)\s+(?:\w+ly\s+)?\w+ed\s+to)(?:\s+\w+ly|\s+also)?\b",
    re.IGNORECASE,
)

INFINITIVE = re.compile(
    r"(?:lead|contribute|reduce|increase|decrease|decline|improve|enhance|support|cause|limit|affect|provide|remain|become"
    rf"|create|modify|exacerbate|continue|help|lower|intensify|require|strengthen|weaken|delay|accelerate|amplify|alter"
    rf"|result|occur|persist|exceed|pose|disrupt|threaten|make|allow|enable|deliver|bring|commit){_NOT_NOUN}\b",
    re.IGNORECASE,
)

ADDS = re.compile(
    r"(?:with|including|especially|particularly|mainly|mostly|primarily|partly|in\s+part|albeit|such\s+as|due\s+to|because|leading\s+to"
    r"|resulting\s+(?:in|from)|causing|making|driven\s+by|followed\s+by|given|thereby|which|where|even|despite|if|when|unless)\b",
    re.IGNORECASE,
)

RELATIVE_BEFORE = re.compile(r"\b(?:that|which|who)\s+$", re.IGNORECASE)

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
    pattern = SURELY_FINITE if surely else FINITE
    return pattern.search(words[: cut.start()] if cut else words) is not None


def main_verb(text: str) -> re.Match[str] | None:
    """The first finite verb that is not a relative clause's: "include" in "options that tend to help include A"."""
    found = [*SURELY_FINITE.finditer(text)] or [*FINITE.finditer(text)]
    main = [match for match in found if not RELATIVE_BEFORE.search(text, 0, match.start())]
    return main[0] if main else found[0] if found else None
