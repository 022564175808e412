"""Divide a sentence among its marks, and let each clause stand alone.

A mark in brackets speaks about the words before it, back to the mark before; one that opens its clause ("there is high
confidence that ...", "High confidence: ...") about those after it. What follows the last bracket is its clause's
end where it only goes on with it ("(high confidence) in many regions"), else a clause without a mark.

Clauses are completed by rules over their first words, without a parser. A clause that begins with a verb gets the
subject of the clause before; one that begins with a preposition, or names another thing, takes the place of what it
corresponds to; one that only adds to the clause before is put behind it. Each result says whether the rules can vouch
for it: nothing is made sure of where a verb may be a noun or an adjective, where words are shared in the middle, or
where "neither", "both" or "respectively" bind clauses together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from climassay.confidence.marks import TagMark


@dataclass(frozen=True, slots=True)
class Clause:
    """Part of a sentence, ``sentence[start:end]``, and the marks that speak about it (none: no level is stated)."""

    start: int
    end: int
    marks: tuple[TagMark, ...]
    opened: bool = False
    """Whether its mark comes before its words."""


@dataclass(frozen=True, slots=True)
class DividedSentence:
    """The clauses of a sentence in order, without gap, and what follows the last of them."""

    clauses: tuple[Clause, ...]
    tail: int
    """Where the words begin that belong to no clause; the sentence's length where there are none."""


_OPENS = re.compile(
    r"[\s*_]*(?:levels?\s+)?(?:\([^()]{0,80}\)\s*)?"
    r"(?:,\s+)?(?:that|in|of|for|on|about|regarding|concerning|with\s+regard\s+to|as\s+to)\b|[\s*_]*[:–—]\s"
)
_ALREADY_SAID = re.compile(
    r"\b(?:has|have|had|is|are|was|were|be|been|assessed|stated|given|of|at)\s*(?:only|a|with|at|of)?\s*$"
)
_BOUNDARY = re.compile(
    r"[;,:]\s+(?:(?:and|but|while|whereas|although|though|with)\s+)?|\s(?=(?:and|but|while|whereas)\s)"
)
_ANOTHER_FOLLOWS = re.compile(r"\s*(?:[,;]\s*(?=[^\W\d_])|(?:and|but|while|whereas|or)\s)")
_NOTE_BEHIND = re.compile(r"[,;]?\d{1,2}(?=[\s,;.]|$)|[,;]?\s\d{1,2}(?=\s*[,;]|\s+(?:and|or|but|while|with)\b)")
_FEW_WORDS = 2
_WORD = re.compile(r"[^\W\d_]{2,}")
_ANOTHER_CLAUSE = re.compile(r"[,;:]\s*(?:and|but|while|whereas|although|though|with)\b", re.IGNORECASE)
_INTRODUCTION = re.compile(
    r"(?:[,;:]?\s*\b(?:and|but|while|whereas|although|though|however|there|it|is|was|are|remains?|exists?|only|at\s+least|now|"
    r"also|still|generally|with|an?|the|overall|both|as|well|has|been|leads?|leading|led|to|gives?|giving|provides?"
    r"|providing|results?|resulting|in)\b,?)*\s*$",
    re.IGNORECASE,
)


def divide(sentence: str, marks: Sequence[TagMark]) -> DividedSentence:
    """Divide a sentence among its marks.

    Args:
        sentence: With its marks in it.
        marks: Marks of this sentence, from :func:`climassay.confidence.marks.find_tags`.

    Returns:
        One clause for each mark, or for each bracket of several marks; one clause of the whole sentence, without marks,
        where no level is stated.
    """
    units = _units(sentence, marks)
    if not units:
        return DividedSentence((Clause(0, len(sentence), ()),), len(sentence))
    clauses: list[Clause] = []
    start = 0
    opens = _opens(sentence, units[0], True)
    if opens and (place := _own_clause_before(sentence, units[0])):
        clauses.append(Clause(0, place, ()))
        start = place
    for unit, following in zip(units, [*units[1:], None], strict=True):
        if following is None:
            end = len(sentence) if opens else _behind(sentence, unit)
            clauses.append(Clause(start, end, unit, opens))
            return DividedSentence(tuple(clauses), end)
        next_opens = _opens(sentence, following, False)
        end = _cut(sentence, unit, following, opens, next_opens)
        clauses.append(Clause(start, end, unit, opens))
        start, opens = end, next_opens
    raise AssertionError("the last unit returns")


def _units(sentence: str, marks: Sequence[TagMark]) -> list[tuple[TagMark, ...]]:
    """Marks of the same bracket together, in order; none where no level is stated.

    A bracket without a level divides too where another clause follows: "A (virtually certain) and B (high confidence)".
    """
    levelled = [mark for mark in marks if mark.levels and not mark.attributive]
    if not levelled:
        return []
    others = [mark for mark in marks if not mark.levels and mark.in_brackets]
    dividing = [mark for mark in others if _ANOTHER_FOLLOWS.match(sentence, mark.whole[1])]
    units = sorted([*levelled, *dividing], key=lambda mark: (mark.whole, mark.start))
    return [tuple(group) for _, group in groupby(units, key=lambda mark: mark.whole)]


def _opens(sentence: str, unit: tuple[TagMark, ...], first: bool) -> bool:
    """Whether a mark speaks about the words after it."""
    start, end = unit[0].whole
    before, after = sentence[:start], sentence[end:]
    words_before = len(_WORD.findall(before)) if first else _FEW_WORDS
    if unit[0].in_brackets:
        return first and words_before == 0 and bool(_WORD.search(after))
    if not _WORD.search(after):
        return False
    if _OPENS.match(after):
        # "is assessed with high confidence in most regions" speaks about what it comes after.
        return not (first and _ALREADY_SAID.search(before) and not re.match(r"\W*(?:that)\b", after)) or (
            re.search(r"\bthere\b", before[-40:], re.IGNORECASE) is not None
        )
    return first and words_before == 0


def _own_clause_before(sentence: str, unit: tuple[TagMark, ...]) -> int:
    """Where a first mark's clause begins if another one, without a mark, comes before it; 0 where none does.

    As in: it is virtually certain that A, with high confidence that B.
    """
    introduction = _INTRODUCTION.search(sentence[: unit[0].whole[0]])
    if introduction is None or not _ANOTHER_CLAUSE.match(introduction.group()):
        return 0
    return introduction.start() if has_verb(sentence[: introduction.start()]) else 0


def _behind(sentence: str, unit: tuple[TagMark, ...]) -> int:
    """Where a mark ends, with the number of a footnote behind its bracket."""
    end = unit[0].whole[1]
    note = _NOTE_BEHIND.match(sentence, end) if unit[0].in_brackets else None
    return note.end() if note else end


def _cut(
    sentence: str, unit: tuple[TagMark, ...], following: tuple[TagMark, ...], opens: bool, next_opens: bool
) -> int:
    """Where the clause of one unit ends and that of the next begins."""
    end, begin = _behind(sentence, unit), following[0].whole[0]
    if not opens and not next_opens:
        return end
    between = sentence[end:begin]
    if next_opens:
        introduction = _INTRODUCTION.search(between)
        place = introduction.start() if introduction else len(between)
        if opens and place == len(between):
            place = _last_boundary(between)
        return end + place
    # As in: there is high confidence that A, and B (medium confidence).
    return end + _last_boundary(between)


def _last_boundary(between: str) -> int:
    """Where the last clause of some words begins that has words of its own; their end where there is none."""
    found = [match.start() for match in _BOUNDARY.finditer(between)]
    for place in reversed(found):
        if len(_WORD.findall(between[place:])) >= _FEW_WORDS and _WORD.search(between[:place]):
            return place
    return len(between)


_CONJUNCTION = re.compile(
    r"^[\s,;:–—]*(?:(?:and/or|and|or|but|nor|yet|while|whilst|whereas|although|though|however|as\s+well\s+as|also)\b[\s,]*)+|^[\s,;:–—]+",
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
    r"^(?:exacerbating|compounding|committing|reflecting|propagating|threatening|undermining|affecting|disrupting"
    r"|contributing|posing|putting|creating|preventing|increasing\s+(?:\w+\s+)?risks?|which|that|who|whose|where|whereby|thereby|thus|leading\s+to|resulting\s+(?:in|from)|causing|making|driven\s+by|due\s+to|because|with|including|"
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
_PLACE = re.compile(r"over|in|at|within|across|around|along|throughout", re.IGNORECASE)
_PLACE_OR_TIME = re.compile(
    r"\b(?:over|in|on|at|by|during|until|within|across|for|under|between|from|after|since)\b", re.IGNORECASE
)
_VERB_GROUP = re.compile(
    rf"\b{_AUXILIARY}(?:\s+(?:be|been|being))?(?:\s+\w+ly)?(?:\s+\w+(?:ed|en|ing)\b)?(?:\s+to\s+(?:be\s+)?(?!\w+ing\b|an?\b|the\b)\w+)?"
    r"(?:\s+(?:by|to|in|of|including|for|such\s+as)\b)*"
    rf"|\b{_VERB}(?:\s+(?:to|in|by|on)\b)?",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r":\s|\bincluding\b|\bsuch\s+as\b|\be\.g\.", re.IGNORECASE)
_LISTS = re.compile(r".*(?::\s|\bincluding\b|\bsuch\s+as\b)", re.IGNORECASE | re.DOTALL)
_HAS_AUXILIARY = re.compile(rf"\b{_AUXILIARY}", re.IGNORECASE)
_NOUN_TOO = re.compile(r"(?:increases|decreases|declines|needs|causes|limits|plays|supports)", re.IGNORECASE)
_SHORT = 4
_LAST_PLACE = re.compile(r".*\b(?:in|over|across|for|on)(?=(?:\s+\S+){1,5}$)", re.IGNORECASE | re.DOTALL)
_LAST_NAME = re.compile(
    r".*\b(?:in|over|across|for|on|throughout|around)(?=(?:\s+\S+){1,8}$)", re.IGNORECASE | re.DOTALL
)
"""The last preposition of a clause that ends with a short name: "... in global ocean temperature"."""
_INFINITE = re.compile(r"(?:to\s+\w+|be\b|been\b)", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_END = " ,;:.–—-"
# What rules can vouch for. A verb that is not a noun, adjective or participle as well:
_PLAIN_VERB = (
    r"(?:leads?|led|exists?|remains?|remained|becomes?|became|depends?|varies|vary|varied|occurs?|occurred|continues"
    r"|contributes?|contributed|exceeds?|exceeded|provides?|requires?|indicates?|suggests?|includes?|affects?|grew|rose"
    r"|fell|began|persists?|persisted|enables?|emerges?|drove|reduces|intensif(?:y|ies)|enhances|improves|faces|makes"
    r"|prevents|accelerates|plays|shows?|represents?|poses?|constrains?|drives|underpins?|exacerbates?|threatens?"
    r"|compromises|undermines?|amplif(?:y|ies)|strengthens?|creates?|brings?|helps?)"
)
_SURELY_FINITE = re.compile(
    rf"\b(?:{_AUXILIARY}|{_AFTER_DETERMINER}{_PLAIN_VERB}|(?:also|further)\s+{_VERB}|{_VERB}(?=\s+(?:an?|the|its|their|\w+ly)\b)"
    r"|(?:increased|decreased|declined|continued|warmed|shifted)(?=\s+(?:over|during|since|by|from|between|across|at)\b))\b",
    re.IGNORECASE,
)
_FINITE_OR_PRESENT = re.compile(
    rf"{_SURELY_FINITE.pattern}|{_FINITE.pattern}|\b(?:include|arise|expand|reinforce|reduce|support|cause|limit|face|increase"
    r"|decrease|improve|enhance|compound|result|homogenise|affect|need|warm)s?(?=\s+(?!in\b|of\b|to\b|and\b|or\b)\w)",
    re.IGNORECASE,
)
_SURELY_BEGINS_WITH_VERB = re.compile(
    rf"(?:(?:also|further|then|thus|therefore|not|\w+ly)\s+)*(?:{_AUXILIARY}\b|{_PLAIN_VERB}\b"
    rf"|{_VERB}\s+(?:an?|the|its|their)\b)",
    re.IGNORECASE,
)
_GOVERNS_INFINITIVE = re.compile(
    r"\b(?:will|would|can|could|may|might|must|should|(?:is|are|was|were)\s+(?:\w+ly\s+)?\w+ed\s+to)(?:\s+\w+ly|\s+also)?\b",
    re.IGNORECASE,
)
_INFINITIVE = re.compile(
    r"(?:lead|contribute|reduce|increase|decrease|decline|improve|enhance|support|cause|limit|affect|provide|remain|become"
    rf"|create|modify|exacerbate|continue|help|lower|intensify|require|strengthen|weaken|delay|accelerate|amplify|alter"
    rf"|result|occur|persist|exceed|pose|disrupt|threaten|make|allow|enable|deliver|bring|commit){_NOT_NOUN}\b",
    re.IGNORECASE,
)
_ADDS = re.compile(
    r"(?:with|including|especially|particularly|mainly|mostly|primarily|partly|such\s+as|due\s+to|because|leading\s+to"
    r"|resulting\s+(?:in|from)|causing|driven\s+by|thereby|exacerbating|compounding|committing|reflecting|propagating|threatening|undermining|affecting|disrupting"
    r"|contributing|posing|putting|creating|preventing|increasing|which|where|even|despite|if|when|unless)\b",
    re.IGNORECASE,
)
_LINKS = re.compile(r"(?:with|including|such\s+as|due\s+to|leading\s+to|resulting\s+(?:in|from)|driven\s+by)\b", re.I)
"""Openings of what is added, after which another thing may stand: ", with larger losses (...) and earlier peaks"."""
_PROCESS = re.compile(
    r"(?:an?\s+)?(?:\w+\s+)?(?:increases?|decreases?|reductions?|loss(?:es)?|changes?|impacts?|shifts?|declines?|risks?"
    r"|intensification|degradation|damages?)\s+(?:in|of|on|to)\b|(?:more|fewer|less)\s",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"an?\s", re.IGNORECASE)
_ALONE_IN_PAIR = re.compile(r"\bboth\s+(?!.*\band\b)", re.IGNORECASE | re.DOTALL)
_BINDS = re.compile(r"\b(?:respectively|neither|nor|in\s+turn)\b", re.IGNORECASE)
"""Words that tie the clauses of a sentence together, so that none of them stands alone."""
_LEFT_OPEN = re.compile(
    r"\b(?:either|not\s+only)\b(?!.*\b(?:or|but)\b)|\bbetween\s+[\d–-](?!.*\b(?:and|to)\b)"
    r"|\b(?:and|or|but|nor|of|the|an?|that|which|where|when|if|(?:if|when|because)\s+it|in|to|by|for|with|from|than|as|at|its|their|is|are|was|were|has|have|be|been|we"
    r"|whether|while|e\.g\.|including|such\s+as)\W*$"
    r"|^\W*there\s+(?:is|was|are)\s+that\b|\bthe\s+assessment\s+(?:of|that)\b|^(?:because|since|although|while|if|as)\b[^,]*$|^that\b"
    r"|\b(?:some|many|most|several|certain)\s+[a-z]*[^s\W]$",
    re.IGNORECASE | re.DOTALL,
)
_CONTRAST = re.compile(r",\s(?:but|while|whereas|although)\s([^,]*)$")
_CONDITION = re.compile(
    r"(?:at|under|if|when|where|with|without|unless|depending|beyond|above|below)\b[^,]{2,120},", re.I
)
_INTRODUCED = re.compile(r"(?:in|at|under|by|over|with|for|during|since|without|among|across)\b[^,]{2,120},", re.I)
_RANGE = re.compile(r"\d\s*(?:[–-]|to)\s*\d")
_NUMBER_FIRST = re.compile(r"\d")
_NOT_THING = re.compile(r"\d|(?:both|it|they|this|these)\b", re.IGNORECASE)
_FEWEST_WORDS = 2
_NEAR_END = 8
_LONG_WORD = 5


_INTERRUPTED_GOES_ON = re.compile(
    rf"(?!(?:of|to)\b)(?:{_BEGINS_WITH_PREPOSITION.pattern[1:]}|{_SUBORDINATE.pattern[1:]})", re.IGNORECASE
)


class CompletedClause(NamedTuple):
    """A clause made to stand alone."""

    text: str
    sure: bool
    """Whether it says what the sentence says, as far as rules can tell."""


def complete_clauses(clauses: Sequence[str], tail: str = "", opened: Sequence[bool] = ()) -> list[CompletedClause]:
    """The clauses of one sentence, each as a sentence of its own as far as rules can tell.

    Args:
        clauses: Their words in order, marks taken out; empty ones stay empty.
        tail: What follows the last one's mark and goes on with it.
        opened: Which of them a mark opened ("low confidence in ..."): they keep their words.

    Returns:
        As many as clauses. A single clause, and the first one, keep their words.
    """
    shared, own_tail = _tail_words(tail)
    found: list[CompletedClause] = []
    base, base_sure = "", False
    broken = 0
    for number, clause in enumerate(clauses):
        words = clause.strip()
        plain = _CONJUNCTION.sub("", words).strip()
        goes_on_directly = bool(found) and plain == words
        if number < len(opened) and opened[number]:
            one = CompletedClause(plain, True)
            goes_on_directly = False
        elif base:
            one = _completed(words, CompletedClause(base, base_sure), clauses[number - 1].strip(), found[-1], shared)
        else:
            # Where a predicate follows the last mark, the first words may be its subject alone.
            verb = _SURELY_FINITE if shared else _FINITE_OR_PRESENT
            one = CompletedClause(words, verb.search(words) is not None)
        if goes_on_directly and not _INTERRUPTED_GOES_ON.match(plain):
            broken = number + 1  # its mark interrupts a clause, whose words the clauses before may share
        one = one._replace(text=_ALONE_IN_PAIR.sub("", one.text))
        if shared and one.text and not has_verb(one.text):
            whole = _SURELY_BEGINS_WITH_VERB.match(shared) and len(_RANGE.findall(shared)) < 2
            one = CompletedClause(f"{one.text.rstrip(_END)} {shared}", bool(whole) and number >= broken)
        elif own_tail and number == len(clauses) - 1:
            one = CompletedClause(f"{one.text.rstrip(_END)} {own_tail}", one.sure)
        found.append(one)
        hangs = _SUBORDINATE.match(plain) or _BEGINS_WITH_VERB.match(plain)
        if number == 0 or not base or (has_verb(plain) and not hangs):
            base, base_sure = one
    if len(clauses) == 1:
        return [CompletedClause(one.text, not _is_left_open(one.text)) for one in found]
    tied = _BINDS.search(" ".join([*clauses, tail])) is not None
    return [
        CompletedClause(one.text, one.sure and not tied and place >= broken and not _is_left_open(one.text))
        for place, one in enumerate(found)
    ]


def continues_clause(tail: str) -> bool:
    """Whether words behind a mark only go on with its clause, so that they are not a clause of their own."""
    return bool(tail.strip(_END)) and any(_tail_words(tail))


def _is_left_open(text: str) -> bool:
    if _SURELY_BEGINS_WITH_VERB.match(text):
        return True
    contrast = _CONTRAST.search(text)
    without_verb = contrast is not None and _FINITE.search(contrast[1]) is None
    return len(text.split()) < _FEWEST_WORDS or without_verb or _LEFT_OPEN.search(text) is not None


def _tail_words(tail: str) -> tuple[str, str]:
    """A predicate that all clauses share, and words that belong to the last clause; at most one of them is there."""
    words = tail.strip()
    if not words or words[0] in ",;:–—." or _CONJUNCTION.match(words):
        return "", ""
    if _BEGINS_WITH_VERB.match(words):
        return words, ""
    # What does not begin with a comma or a conjunction belongs to the clause that the bracket interrupts.
    return "", words


def has_verb(words: str, *, surely: bool = False) -> bool:
    """Whether the main clause has a finite verb, that is, one before "if", "that" and their like.

    Args:
        words: The clause.
        surely: Count only verbs that are not nouns, adjectives or participles as well.
    """
    cut = _SUBORDINATOR.search(words, 1)
    pattern = _SURELY_FINITE if surely else _FINITE
    return pattern.search(words[: cut.start()] if cut else words) is not None


def _completed(words: str, base: CompletedClause, before: str, last: CompletedClause, shared: str) -> CompletedClause:
    """A later clause made to stand alone.

    ``base`` is the last clause that has a verb, completed; ``before`` the clause before in its own words, ``last`` the
    same completed; ``shared`` a predicate that all clauses share, if there is one.
    """
    plain = _CONJUNCTION.sub("", words).strip()
    if not plain:
        return CompletedClause("", False)
    if _SUBORDINATE.match(plain):
        return CompletedClause(f"{last.text.rstrip(_END)}, {plain}", last.sure and _ADDS.match(plain) is not None)
    infinitive = _INFINITIVE.match(plain) and _with_infinitive(plain, base)
    if infinitive:
        return infinitive
    begins = _BEGINS_WITH_VERB.match(plain)
    if begins and not (_NOUN_TOO.fullmatch(begins.group()) and _HAS_AUXILIARY.search(plain, begins.end())):
        return _with_subject(plain, base)
    if has_verb(plain):
        return CompletedClause(plain, has_verb(plain, surely=True) and not _is_conditional(words, plain, base.text))
    preposition = _BEGINS_WITH_PREPOSITION.match(plain)
    if preposition and words == plain:
        # "compromises food (medium confidence) through exposure (low confidence)" goes on with what comes before.
        return CompletedClause(f"{last.text.rstrip(_END)} {plain}", last.sure)
    if preposition:
        return _in_its_place(plain, preposition["word"].lower(), last)
    if shared:
        return CompletedClause(plain, True)  # "A (high confidence) and B (medium confidence) are projected"
    link = _LINKS.match(_CONJUNCTION.sub("", before).strip())
    if link and last.text != base.text:
        in_list = re.match(r"\s*(?:,\s+(?!and\b|or\b|as\b)|and\b|or\b)", words) is not None
        return CompletedClause(f"{base.text.rstrip(_END)}, {link.group()} {plain}", base.sure and in_list)
    return _as_object(words, plain, base, before, last)


def _with_infinitive(words: str, base: CompletedClause) -> CompletedClause | None:
    """``words`` after the verb that governs the infinitive of ``base``: "can store carbon (...) and improve soils"."""
    governs = _GOVERNS_INFINITIVE.search(base.text)
    if governs is None:
        return None
    subject = base.text[: governs.start()]
    sure = base.sure and _SUBORDINATOR.search(subject) is None and _SURELY_FINITE.search(subject) is None
    return CompletedClause(f"{base.text[: governs.end()]} {words}", sure)


def _is_conditional(words: str, plain: str, base: str) -> bool:
    """Whether a clause with a verb of its own may also appear under what the sentence begins with."""
    if _NUMBER_FIRST.match(plain):
        return True  # of a footnote
    if _INTRODUCED.match(plain):
        return False
    return bool(_CONDITION.match(base)) or (bool(_INTRODUCED.match(base)) and not re.match(r"\s*[,;:–—]", words))


def _with_subject(words: str, base: CompletedClause) -> CompletedClause:
    finite = _SURELY_FINITE.search(base.text) or _FINITE.search(base.text)
    if finite is None or not base.text[: finite.start()].strip():
        return CompletedClause(f"{base.text.rstrip(_END)} and {words}", False)
    subject = base.text[: finite.start()].rstrip(_END)
    if _INFINITE.match(words):
        group = _VERB_GROUP.search(base.text, finite.start())
        auxiliary = re.match(r"\w+(?:\s+(?:be\s+)?\w+(?:ed|en)\b)?", group.group()) if group else None
        return CompletedClause(f"{subject} {auxiliary.group() if auxiliary else ''} {words}", False)
    plain_subject = _SUBORDINATOR.search(subject) is None and _SURELY_FINITE.match(base.text, finite.start())
    relative = re.search(r"\b(?:which|who|that)\b", base.text)
    sure = base.sure and bool(plain_subject) and not relative and _SURELY_BEGINS_WITH_VERB.match(words) is not None
    return CompletedClause(f"{subject} {words}", sure)


def _in_its_place(words: str, preposition: str, last: CompletedClause) -> CompletedClause:
    """The clause before with its part of the same preposition replaced, else with its last part of place or time."""
    text = last.text
    same = [match.start() for match in re.finditer(rf"\b{preposition}\b", text, re.IGNORECASE) if match.start() > 0]
    verb = _SURELY_FINITE.search(text) or _FINITE.search(text)
    if same and preposition not in ("of", "to"):
        behind = [place for place in same if verb and place > verb.end()]
        near = len(behind) == 1 or (bool(behind) and len(text[same[-1] :].split()) <= _NEAR_END)
        return CompletedClause(f"{text[: same[-1]].rstrip(_END)} {words}", last.sure and near)
    other = [match for match in _PLACE_OR_TIME.finditer(text) if verb and match.start() > verb.end()]
    if other:
        places = _PLACE.fullmatch(preposition) and _PLACE.fullmatch(other[-1].group())
        near = len(text[other[-1].start() :].split()) <= _SHORT + 1
        return CompletedClause(f"{text[: other[-1].start()].rstrip(_END)} {words}", last.sure and bool(places) and near)
    return CompletedClause(f"{text.rstrip(_END)} {words}", False)


def _as_object(words: str, plain: str, base: CompletedClause, before: str, last: CompletedClause) -> CompletedClause:
    """``plain`` as another thing of what ``base`` says: after its colon, or after its verb."""
    text = base.text
    if not _LETTERS.search(plain):
        return CompletedClause(f"{text.rstrip(_END)} and {plain}", False)  # "between 2°C (high) and 5°C (medium)"
    listed = _LISTS.search(text)
    if listed:
        # "A, including B (...), and C (...)": whether C is one of A, nobody can tell.
        colon = ":" in listed.group()
        closes = not colon and re.match(r"\s*,\s+(?:and|or|as\s+well\s+as)\b", words)
        in_list = not closes or re.match(r"\s*,\s+(?!and\b|or\b|as\b)", before) is not None
        once = (
            _SURELY_FINITE.search(listed.group()) is not None
            and len(_LIST_MARK.findall(text)) == 1
            and not _NOT_THING.match(plain)
        )
        return CompletedClause(f"{text[: listed.end()].rstrip(_END)} {plain}", last.sure and in_list and once)
    place = (_LAST_NAME if plain[0].isupper() else _LAST_PLACE).search(last.text)
    if place and len(plain.split()) <= _SHORT and not _PLACE_OR_TIME.search(plain) and not _PROCESS.match(plain):
        return CompletedClause(f"{last.text[: place.end()]} {plain}", last.sure and plain[0].isupper())
    finite = _SURELY_FINITE.search(text) or _FINITE.search(text)
    group = _VERB_GROUP.match(text, finite.start()) if finite else None
    if group is None:
        return CompletedClause(plain, False)
    replaced = text[group.end() :].strip()
    # What is replaced is one thing, or begins like what replaces it: nothing shared is lost with it.
    begins = re.match(rf"(?:{_PREPOSITION}|with|as|than|near)\b", replaced)
    one_thing = not begins and not _PLACE_OR_TIME.search(replaced) and not re.search(r"\b(?:of|to)\b|,", replaced)
    alike = all(map(_PROCESS.match, (plain, replaced))) or all(map(_DETERMINER.match, (plain, replaced)))
    alike = alike or any(len(word) >= _LONG_WORD for word in {*plain.split()[:_SHORT]} & {*replaced.split()[:_SHORT]})
    repeats = group.group().split()[-1].lower() in plain.lower().split()
    sure = base.sure and bool(replaced) and (one_thing or alike) and not repeats and not _NOT_THING.match(plain)
    sure = sure and not _GOVERNS_INFINITIVE.fullmatch(group.group()) and not re.match(r"(?:further\s+)?\w+ing\b", plain)
    return CompletedClause(f"{text[: group.end()].rstrip(_END)} {plain}", sure)
