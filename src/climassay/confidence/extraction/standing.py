"""Let each clause of a divided sentence stand alone: give it the subject, verb or beginning that it shares.

By rules over the first words of a clause, without a parser. A clause that begins with a verb gets the subject of the
clause before; one that begins with a preposition, or names another thing, takes the place of what it corresponds to;
one that only adds to the clause before is put behind it. Not caught: shared words that stand in the middle, objects
that the first clause lists without commas, pronouns.
"""

import re
from collections.abc import Sequence

_CONJUNCTION = re.compile(
    r"^[\s,;:–—]*(?:(?:and/or|and|or|but|nor|yet|while|whereas|although|though|however|as\s+well\s+as|also)\b[\s,]*)+|^[\s,;:–—]+",
    re.IGNORECASE,
)
_AUXILIARY = (
    r"(?:is|are|was|were|has|have|had|will|would|can|could|cannot|may|might|must|should|shall|do|does|did)"
    r"(?:\s+(?:not|also|only|already|still|now|then|thus|further|likely|unlikely|\w+ly)\b)*"
)
_VERB = (
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
_FINITE = re.compile(rf"\b(?:{_AUXILIARY}|{_AFTER_DETERMINER}{_VERB}{_NOT_NOUN})\b", re.IGNORECASE)
_BEGINS_WITH_VERB = re.compile(
    rf"^(?:(?:also|further|likely|then|thus|therefore|not|\w+ly)\s+)*(?:{_AUXILIARY}|be\b|been\b|to\s+\w+|{_VERB}{_NOT_NOUN}\b)",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"^(?:which|that|who|whose|where|whereby|thereby|thus|leading\s+to|resulting\s+(?:in|from)|causing|making|driven\s+by|due\s+to|because|with|including|"
    r"especially|particularly|mainly|mostly|primarily|partly|such\s+as|even|if|when|unless|since|so|as|than|rather|despite)\b",
    re.IGNORECASE,
)
_SUBORDINATOR = re.compile(
    r"\b(?:if|that|which|when|where|because|while|although|who|whose|unless|than)\b", re.IGNORECASE
)
_PREPOSITION = (
    r"over|in|on|at|by|for|from|during|until|through|throughout|within|across|under|between|after|before|since|into|to|of|"
    r"among|along|above|below|beyond|around|against|towards?|upon|per"
)
_BEGINS_WITH_PREPOSITION = re.compile(
    rf"^(?:(?:also|both|only|mainly|especially)\s+)?(?P<word>{_PREPOSITION})\b", re.IGNORECASE
)
_PLACE_OR_TIME = re.compile(
    r"\b(?:over|in|on|at|by|during|until|within|across|for|under|between|from|after|since)\b", re.IGNORECASE
)
_VERB_GROUP = re.compile(
    rf"\b{_AUXILIARY}(?:\s+(?:be|been|being))?(?:\s+\w+ly)?(?:\s+\w+(?:ed|en|ing)\b)?(?:\s+to\s+(?:be\s+)?\w+)?"
    r"(?:\s+(?:by|to|in|of|including|for|such\s+as)\b)*"
    rf"|\b{_VERB}(?:\s+(?:to|in|by|on)\b)?",
    re.IGNORECASE,
)
_LISTS = re.compile(r".*(?::\s|\bincluding\b|\bsuch\s+as\b)", re.IGNORECASE | re.DOTALL)
_HAS_AUXILIARY = re.compile(rf"\b{_AUXILIARY}", re.IGNORECASE)
_NOUN_TOO = re.compile(r"(?:increases|decreases|declines|needs|causes|limits|plays|supports)", re.IGNORECASE)
_SHORT = 4
_LAST_PLACE = re.compile(r".*\b(?:in|over|across|for|on)(?=(?:\s+\S+){1,5}$)", re.IGNORECASE | re.DOTALL)
"""The last preposition of a clause that ends with a short name: "... in global ocean temperature"."""
_INFINITE = re.compile(r"(?:to\s+\w+|be\b|been\b)", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_END = " ,;:.–—-"


def stand_alone(clauses: Sequence[str], tail: str = "", opened: Sequence[bool] = ()) -> list[str]:
    """The clauses of one sentence, each as a sentence of its own as far as rules can tell.

    Args:
        clauses: Their words in order, marks taken out; empty ones stay empty.
        tail: What stands behind the last one's mark and goes on with it.
        opened: Which of them a mark opened ("low confidence in ..."): they keep their words.

    Returns:
        As many texts as clauses. A single clause, and the first one, keep their words.
    """
    shared, own_tail = _tail_words(tail)
    texts: list[str] = []
    base = ""
    for number, clause in enumerate(clauses):
        words = clause.strip()
        if number < len(opened) and opened[number]:
            text = _CONJUNCTION.sub("", words).strip()
        else:
            text = _completed(_CONJUNCTION.sub("", words).strip(), base, texts[-1], shared) if base else words
        if shared and text and not has_verb(text):
            text = f"{text.rstrip(_END)} {shared}"
        elif own_tail and number == len(clauses) - 1:
            text = f"{text.rstrip(_END)} {own_tail}"
        texts.append(text)
        if _is_sentence(words, number) or not base:
            base = text
    return texts


def goes_on(tail: str) -> bool:
    """Whether words behind a mark only go on with its clause, so that they are no clause of their own."""
    return bool(tail.strip(_END)) and any(_tail_words(tail))


def _tail_words(tail: str) -> tuple[str, str]:
    """A predicate that all clauses share, and words that belong to the last clause; at most one of them is there."""
    words = tail.strip()
    if not words or words[0] in ",;:–—." or _CONJUNCTION.match(words):
        return "", ""
    if _BEGINS_WITH_VERB.match(words):
        return words, ""
    # What does not begin with a comma or a conjunction belongs to the clause that the bracket interrupts.
    return "", words


def _is_sentence(words: str, number: int) -> bool:
    plain = _CONJUNCTION.sub("", words)
    return number == 0 or (has_verb(plain) and not _hangs(plain))


def _hangs(words: str) -> bool:
    return bool(_SUBORDINATE.match(words) or _BEGINS_WITH_VERB.match(words))


def has_verb(words: str) -> bool:
    """Whether the main clause has a finite verb, that is, one before "if", "that" and their like."""
    cut = _SUBORDINATOR.search(words, 1)
    return _FINITE.search(words[: cut.start()] if cut else words) is not None


def _completed(words: str, base: str, last: str, shared: str) -> str:
    if not words or not base:
        return words
    if _SUBORDINATE.match(words):
        return f"{last.rstrip(_END)}, {words}"
    begins = _BEGINS_WITH_VERB.match(words)
    if begins and not (_NOUN_TOO.fullmatch(begins.group()) and _HAS_AUXILIARY.search(words, begins.end())):
        return _with_subject(words, base)
    if has_verb(words):
        return words
    preposition = _BEGINS_WITH_PREPOSITION.match(words)
    if preposition:
        return _in_its_place(words, preposition["word"].lower(), last)
    if shared:
        return words  # "A (high confidence) and B (medium confidence) are projected": the predicate follows
    return _as_object(words, base)


def _with_subject(words: str, base: str) -> str:
    finite = _FINITE.search(base)
    if finite is None or not base[: finite.start()].strip():
        return f"{base.rstrip(_END)} and {words}"
    subject = base[: finite.start()].rstrip(_END)
    if _INFINITE.match(words):
        group = _VERB_GROUP.search(base, finite.start())
        auxiliary = re.match(r"\w+(?:\s+(?:be\s+)?\w+(?:ed|en)\b)?", group.group()) if group else None
        return f"{subject} {auxiliary.group() if auxiliary else ''} {words}"
    return f"{subject} {words}"


def _in_its_place(words: str, preposition: str, base: str) -> str:
    """``base`` with its part of the same preposition replaced, else with its last part of place or time."""
    same = [match.start() for match in re.finditer(rf"\b{preposition}\b", base, re.IGNORECASE) if match.start() > 0]
    if same and preposition not in ("of", "to"):
        return f"{base[: same[-1]].rstrip(_END)} {words}"
    other = [match.start() for match in _PLACE_OR_TIME.finditer(base) if match.start() > 0]
    verb = _FINITE.search(base)
    other = [place for place in other if verb and place > verb.end()]
    if other:
        return f"{base[: other[-1]].rstrip(_END)} {words}"
    return f"{base.rstrip(_END)} {words}"


def _as_object(words: str, base: str) -> str:
    """``words`` as another thing of what ``base`` says: after its colon, or after its verb."""
    if not _LETTERS.search(words):
        return f"{base.rstrip(_END)} and {words}"  # "between 2°C (high confidence) and 5°C (medium confidence)"
    place = _LAST_PLACE.search(base)
    if place and len(words.split()) <= _SHORT and not _PLACE_OR_TIME.search(words):
        return f"{base[: place.end()]} {words}"
    listed = _LISTS.search(base)
    if listed:
        return f"{base[: listed.end()].rstrip(_END)} {words}"
    finite = _FINITE.search(base)
    group = _VERB_GROUP.search(base, finite.start()) if finite else None
    if group is None:
        return words
    return f"{base[: group.end()].rstrip(_END)} {words}"
