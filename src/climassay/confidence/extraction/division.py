"""Divide a sentence among its marks.

A mark in brackets speaks about the words before it, back to the mark before; one that opens its clause ("there is high
confidence that ...", "High confidence: ...") about those after it. What follows the last bracket is its clause's
end where it only goes on with it ("(high confidence) in many regions"), else a clause without a mark.

Words that tell clauses of English apart: verbs, prepositions and conjunctions, as patterns without a parser.

Many verbs are nouns or adjectives as well ("increases", "limits", "warm"); patterns whose names begin with ``SURELY``
hold only words that are verbs where they stand.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from climassay.confidence.marks import TagMark

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
    r"(?:\s+(?:by|to|in|of|including|for|from|with|through|such\s+as)\b)*"
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
_BASE_FORMS = Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split()


def _alternatives(words: Iterable[str]) -> str:
    """A pattern of many words that looks at the first two letters once."""
    grouped = groupby(sorted(words, reverse=True), key=lambda word: word[:2])
    return "|".join(f"{begin}(?:{'|'.join(word[2:] for word in ending)})" for begin, ending in grouped)


def _third_person(verb: str) -> str:
    if re.search(r"[^aeou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if re.search(r"(?:s|sh|ch|x|z|o)$", verb) else f"{verb}s"


_BASE_FORM = _alternatives(_BASE_FORMS)

_PLAIN_VERB = (
    rf"(?:{_alternatives({*_BASE_FORMS, *map(_third_person, _BASE_FORMS)})}"
    r"|led|remained|became|varied|occurred|contributed|exceeded|grew|rose|fell|began|persisted|drove|lost|resulted|concluded"
    r"|differed|displayed|dominated|tended|appeared|started|arose|came|gave|took|seems?|shows?|drives?|finds|found|plays"
    r"|faces|exacerbates|compromises|falls(?=\s+(?:short|below)\b)|reflects?|confirms?|explains?|stems"
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
    rf"|(?:{_BASE_FORM}|lower|commit)(?!\s+(?:of|and|or)\b))\b",
    re.IGNORECASE,
)

ADDS = re.compile(
    r"(?:with|including|especially|particularly|mainly|mostly|primarily|partly|in\s+part|albeit|such\s+as|due\s+to|because|leading\s+to"
    r"|resulting\s+(?:in|from)|causing|making|driven\s+by|followed\s+by|given|thereby|which|where|even|despite|if|when|unless"
    r"|as\s+(?:is|are|was|were|has|have|do|does|did))\b",
    re.IGNORECASE,
)

RELATIVE_BEFORE = re.compile(r"\b(?:that|which|who|to)\s+$", re.IGNORECASE)

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
    result = [*SURELY_FINITE.finditer(text)] or [*FINITE.finditer(text)]
    main: list[re.Match[str]] = []
    relative = -1
    for match in result:
        if RELATIVE_BEFORE.search(text, 0, match.start()) or 0 <= match.start() - relative <= 1:
            relative = match.end()  # "that may exceed" has two verbs
        elif not _REPORTED.match(text, match.end()):
            main.append(match)
    return main[0] if main else result[0] if result else None


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
    r"\b(?:has|have|had|is|are|was|were|be|been|of|at|(?:is|are|was|were|be|been)\s+(?:assessed|stated|given))\s*(?:only|a|with|at|of)?\s*$"
)

_ASSESSED = re.compile(r"\b(?:assessed|stated|given)\s*(?:only|a|with|at|of)?\s*$")

_BOUNDARY = re.compile(
    r"[;,:]\s+(?:(?:and|but|while|whereas|although|though|with)\s+)?|\s(?=(?:and|but|while|whereas)\s)"
)

_ANOTHER_FOLLOWS = re.compile(r"\s*(?:[,;]\s*(?=[^\W\d_])|(?:and|but|while|whereas|or)\s)")

_NOTE_BEHIND = re.compile(r"[,;]?\d{1,2}(?=[\s,;.]|$)|[,;]?\s\d{1,2}(?=\s*[,;]|\s+(?:and|or|but|while|with)\b)")

_ANOTHER_CLAUSE = re.compile(r"[,;:]\s*(?:and|but|while|whereas|although|though|with)\b", re.IGNORECASE)

_UNDER = re.compile(
    r"[,;]\s+(?:(?:and|but|while|whereas|although|though|however),?\s+)?(?:in|over|at|under|by|for|across|during|since)\s[^,;]{2,80}$",
    re.IGNORECASE,
)
"""The place, time or condition for which a level in running words opens a finding: ", while in Asia, there is ..."."""

_INTRODUCTION = re.compile(
    r"(?:[,;:]?\s*\b(?:and|but|while|whereas|although|though|however|there|it|is|was|are|remains?|exists?|only|at\s+least|now|"
    r"also|still|generally|with|an?|the|overall|both|as|well|has|been|leads?|leading|led|to|gives?|giving|provides?"
    r"|providing|results?|resulting|in|they|we|assess(?:es|ed)?|reports?|reported|finds?|found|indicates?|indicated|suggests?|shows?|concludes?|concluded|stated?|have|yet"
    r"|despite)\b,?)*\s*$",
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
    opens = _opens(sentence, units[0], True, len(units) == 1)
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


def _opens(sentence: str, unit: tuple[TagMark, ...], first: bool, alone: bool = False) -> bool:
    """Whether a mark speaks about the words after it; ``alone`` where the sentence has no other."""
    start, end = unit[0].whole
    before, after = sentence[:start], sentence[end:]
    words_before = len(WORD.findall(before)) if first else FEW_WORDS
    if unit[0].in_brackets:
        return first and words_before == 0 and bool(WORD.search(after))
    if not WORD.search(after):
        return False
    if _OPENS.match(after):
        # "is assessed with high confidence in most regions" speaks about what it comes after.
        said = _ALREADY_SAID.search(before) or (alone and _ASSESSED.search(before))
        return not (first and said and not re.match(r"\W*(?:that)\b", after)) or (
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
        under = _UNDER.search(between, 0, place)
        place = under.start() if under else place
        if opens and place == len(between):
            place = _last_boundary(between)
        return end + place
    # As in: there is high confidence that A, and B (medium confidence).
    return end + _last_boundary(between)


_LIST_OF_SUBJECTS = re.compile(r",\s+\w+(?:\s+\w+)?\s+and\s+(?:\w+\s+){1,2}?(?:is|are|was|were|has|have|will)\b")


def _last_boundary(between: str) -> int:
    """Where the last clause of some words begins that has words of its own; their end where there is none."""
    results = [match.start() for match in _BOUNDARY.finditer(between)]
    for place in reversed(results):
        rest = between[place:]
        if not has_verb(rest) and (between[place].isspace() or not SUBORDINATE.match(CONJUNCTION.sub("", rest))):
            continue  # "agricultural and ecological drought" are no two clauses
        # "NSA, NES and SCA are projected to increase" is one clause.
        listed = re.match(r"\s+and\b", rest) and not has_verb(re.split(r"[,;]\s", between[:place])[-1])
        listed = listed or bool(_LIST_OF_SUBJECTS.match(rest))
        if len(WORD.findall(rest)) >= FEW_WORDS and WORD.search(between[:place]) and not listed:
            return place
    return len(between)


_SAYS_THAT = re.compile(r"[\s*_,]*(?:\([^()]{0,80}\)\s*)?(?:that\b|[:–—])", re.IGNORECASE)

_ANAPHORA = re.compile(
    r"(?:it|they|this|that|these|those|which|how\s+(?:it|they)|whether\s+(?:it|they))\b", re.IGNORECASE
)

_SAME_TIME = re.compile(r"\b(?:over|during|in|for|since)\s+(?:that|the\s+same)\s+(?:period|time)\W*$", re.IGNORECASE)
"""A time that the clause before names: "the magnitudes of trends over that period"."""

_REGION = re.compile(
    r"(?:(?:the|most|some|all|both|many|other|remaining|each|every|parts?\s+of)\s+)*(?:[A-Z0-9]|(?:north|south|east|west)(?:ern)?\b|(?:(?:north|south|east|west|mid|centr|tropic|subtropic|high|low)[\w-]*\s+)+[A-Z]|(?:\w+\s+){0,2}(?:rest|remainder|elsewhere|"
    r"(?:sub-?)?regions?(?!-)|areas?|countries|basins?|hemispheres?|scenarios?|parts|continents?|levels?|seasons?|months|periods?|cent(?:ury|uries))\b)"
)

_CONTRASTED = re.compile(r"[,;]\s+(?:but|while|whereas|although|though|however)\b|;", re.IGNORECASE)

_QUANTITY = re.compile(
    r"(?:(?!(?:in|of|for|over|across|at)\b)[^\s,;]+\s+){0,5}?(?:changes?|increases?|decreases?|trends?|reductions?|declines?|projections?"
    r"|estimates?|observations?|loss|losses|shifts?|attribution|contributions?|influences?|impacts?|effects?|risks?|role)\b",
    re.IGNORECASE,
)

_OF_WHAT = re.compile(
    r"(?:the|its|their)\s+\w+\s*(?:$|[(,;.])|(?:an?\s+)?(?:increases?|decreases?|changes?|trends?|declines?)\s*(?:$|[,;.])"
    r"|(?:an?\s+)?(?:(?:observed|projected|moderate|small|slight|further|such|opposite|general|large|strong)\s+)?"
    r"(?:increases?|decreases?|changes?|trends?|reductions?|declines?)\s+(?:in|on|over|across|for|by|under|during|since|prior\s+to"
    r"|before|after|elsewhere)\s+(?:(?:the|and|most|all|some|other|following|parts\s+of|(?:north|south|east|west|mid)[\w-]*|end-\w+|[A-Z][\w-]*|\d+"
    r"|regions?|areas?)(?:,?\s+|(?=$|[.,:;(])))+(?:$|[.,:;(]|(?:by|until|with|under|from|for|of)\b)"
)
"""Findings whose subject stands elsewhere in the sentence: "low confidence in the magnitude", "changes in Mexico"."""

_MAIN_CLAUSE_FOLLOWS = re.compile(
    r"(?:^|\b(?:and|but|yet)\s+)(?:[^,]{1,24},\s+)?(?:even\s+though|although|though|while|whilst|whereas|given\s+that)\b[^,]*$",
    re.IGNORECASE,
)

_ABOUT = re.compile(r"[\s*_]*(?:\([^()]{0,80}\)\s*)?(?P<word>in|of|for|on|about|regarding|concerning)\s+(?:both\s+)?")

_LABEL = re.compile(r"(?:[A-Z](?:[^.;()]|\.\d){1,80})?")


def opens_finding(sentence: str, clause: Clause) -> bool:
    """Whether a mark in running words opens the finding that it is about, so that the words after it need no others.

    "There is high confidence that A" and "but low confidence in the sign of B" do; "with low confidence in Asia" only
    says where what comes before holds too.
    """
    before, after = sentence[clause.start : clause.marks[0].whole[0]], sentence[clause.marks[-1].whole[1] : clause.end]
    if _MAIN_CLAUSE_FOLLOWS.search(before) and re.search(r",\s", after):
        return False  # "and while there is medium confidence that A, B"
    if _SAYS_THAT.match(after):
        return True
    about = _ABOUT.match(after)
    introduction = _INTRODUCTION.search(before)
    if about is None or introduction is None:
        return False
    label = before[: introduction.start()].strip(" ,:")
    if _LABEL.fullmatch(label) is None or has_verb(label) or SUBORDINATOR.search(label):
        return False
    finding = after[about.end() :]
    contrasted = _CONTRASTED.search(re.sub(r"\([^()]*\)", "", finding))
    if _ANAPHORA.match(finding) or _SAME_TIME.search(finding) or contrasted or len(WORD.findall(finding)) < FEW_WORDS:
        return False
    if _OF_WHAT.match(finding) or (not before.strip() and has_verb(finding, surely=True)):
        return False  # "low confidence in A is due to B" says B
    exists = re.search(r"\b(?:there|exists?|remains?)\b", introduction.group(), re.IGNORECASE)
    named = _QUANTITY.match(finding) is not None
    return named or (
        about["word"] != "for" and not _REGION.match(finding) and (exists is not None or about["word"] != "about")
    )


def about_begins(sentence: str, clause: Clause) -> int:
    """Where the words begin that a mark in "with low confidence in ..." opens; 0 where nothing but "with" binds it."""
    before, after = sentence[clause.start : clause.marks[0].whole[0]], sentence[clause.marks[-1].whole[1] : clause.end]
    about = _ABOUT.match(after)
    if (
        about is None
        or about["word"] == "for"
        or _ONLY_WITH.fullmatch(before) is None
        or _REGION.match(after[about.end() :])
    ):
        return 0
    return clause.marks[-1].whole[1] + about.end()


_ONLY_WITH = re.compile(
    r"[\s,;]*(?:(?:and|but|although|though|while|albeit|yet)\s+)?with\s+(?:(?:only|an?|at\s+least)\s+)?", re.IGNORECASE
)
