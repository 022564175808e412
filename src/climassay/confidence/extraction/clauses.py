"""Let each clause of a divided sentence stand alone, and say whether rules can vouch for it.

A clause is completed without a parser, by what it begins with. One with a subject and a verb stands alone, under the
place or condition that opens the sentence. One that only adds to the clause before is put behind it. All others take
the place of earlier words: a verb that of a verb, with the same subject; a preposition, "that", "to", and words in
"-ing" and "-ed" that of the only words of the same form; a thing that of an object.

A result is sure where there is one such place. Nothing is sure where a verb may be a noun or an adjective, where words
are shared at the end or in the middle, or where "neither", "both" or "respectively" bind clauses together.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from climassay.confidence.extraction.division import (
    ADDS,
    BEGINS_WITH_FORM,
    BEGINS_WITH_PREPOSITION,
    BEGINS_WITH_VERB,
    CONJUNCTION,
    DESCRIBED,
    FEW_WORDS,
    FINITE,
    FINITE_OR_PRESENT,
    GOVERNS_INFINITIVE,
    HAS_AUXILIARY,
    INFINITE,
    INFINITIVE,
    NOUN_TOO,
    PLACE_OR_TIME,
    PREPOSITION,
    RELATIVE_BEFORE,
    SUBORDINATE,
    SUBORDINATOR,
    SURELY_BEGINS_WITH_VERB,
    SURELY_FINITE,
    VERB,
    VERB_GROUP,
    WORD,
    has_verb,
    main_verb,
)

_PLACE = re.compile(r"over|in|at|within|across|around|along|throughout", re.IGNORECASE)
_LIST_MARK = re.compile(r":\s|\bincluding\b|\bsuch\s+as\b|\be\.g\.", re.IGNORECASE)
_LISTS = re.compile(r".*(?::\s|\bincluding\b|\bsuch\s+as\b)", re.IGNORECASE | re.DOTALL)
_SHORT = 4
_LAST_PLACE = re.compile(r".*\b(?:in|over|across|for|on)(?=(?:\s+\S+){1,5}$)", re.IGNORECASE | re.DOTALL)
_LAST_NAME = re.compile(
    r".*\b(?:in|over|across|for|on|throughout|around|during|since|under)(?=(?:\s+\S+){1,8}$)", re.IGNORECASE | re.DOTALL
)
"""The last preposition of a clause that ends with a short name: "... in global ocean temperature"."""
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_END = " ,;:.–—-"
_LINKS = re.compile(r"(?:with|including|such\s+as|due\s+to|leading\s+to|resulting\s+(?:in|from)|driven\s+by)\b", re.I)
"""Openings of what is added, after which another thing may stand: ", with larger losses (...) and earlier peaks"."""
_PROCESS = re.compile(
    r"(?:an?\s+)?(?:(?!in\b|of\b|on\b|to\b|from\b)[\w-]+\s+){0,3}(?:increases?|decreases?|reductions?|loss(?:es)?|changes?|impacts?|shifts?|declines?|risks?"
    r"|intensification|degradation|damages?)\s+(?:in|of|on|to)\b|(?:more|fewer|less)\s",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"(?<=\bto )(?:increases?|decreases?|reductions?|loss(?:es)?|changes?|shifts?|declines?)\s+(?:in|of)\b",
    re.IGNORECASE,
)
"""A process behind a verb that no list has: "pointed to increases in"."""
_ADDED_OBJECT = re.compile(
    r"(.*(?:\bcontributing\s+to|\bleading\s+to|\bresulting\s+in|,\s+causing|\bdue\s+to))\s(?P<object>[^,]+)$",
    re.IGNORECASE | re.DOTALL,
)
"""What has an object of its own at the end of a clause: ", contributing to A (...) and B (...)"."""
_SHORT_ITEM = re.compile(r"(?:,\s*(?:(?:and|or)\s+)?|(?:and|or)\s+)[a-z][\w-]*(?:\s+[a-z][\w-]*){0,2}")
"""One of a list of short things: ", coastal protection (...) and tourism (...)"."""
_EFFECT_ON = re.compile(
    r"(.*\b(?:increases?|decreases?|reductions?|declines?|changes?|effects?|impacts?|risks?|loss(?:es)?)\s+(?:in|of|on|to|for))"
    r"(?:\s+[\w-]+){1,5}$",
    re.IGNORECASE | re.DOTALL,
)
"""What a list of short things goes on with, where it ends a sentence: "negative effects on structure and function"."""
_LAST_THE = re.compile(
    r"(.*\b(?:in|over|across|during|within|around|throughout))\s+(?:the(?=\s)|(?=[A-Z]))(?:\s*(?!of\b|in\b|and\b)\S+){1,6}$",
    re.IGNORECASE | re.DOTALL,
)
_WANTS_VERB = re.compile(
    r"\b(?:and|or|but|nor|yet|although|though|while|whilst|whereas|because|if|when|since)\W*$", re.IGNORECASE
)
_CONCESSION_LOST = re.compile(r",?\s+(?:although|though|albeit)\W*$", re.IGNORECASE)
"""A conjunction that only bound a level to the words before: "seas rise, although (medium confidence)"."""
_TWO_CLAIMS = re.compile(r"^[^()]*(?:\([^()]*\)[^()]*)*\w;\s")
"""A semicolon between claims of which a later clause has two, outside brackets."""
_ADVERB_BEFORE_VERB = re.compile(r"\s+(?:(?!supply|family|anomaly|assembly)[a-z]+ly|also|now|already|still)$")
_VERB_BEFORE_LIST = re.compile(
    r"\b(?:include[sd]?|is|are|was|were|namely|as|to|by|on|in|for|of|through|with|from)$", re.IGNORECASE
)
_THIRD_PERSON = re.compile(r"(?!is\b|was\b|has\b|does\b)[a-z]{4,}s\s+(?!in\b|of\b|and\b|or\b)[a-z]")
_BASE_FORM = re.compile(
    r"(?:affect|reduce|increase|decrease|cause|limit|improve|enhance|support|drive)\s+(?!in\b|of\b|and\b|or\b)[a-z]"
)
_DETERMINER = re.compile(r"an?\s", re.IGNORECASE)
_SAID = re.compile(
    r"(?:(?<=reported)|(?<=assessed)|(?<=expressed))\s+(?:only\s+)?the\s+assessment\s+that\b", re.IGNORECASE
)
"""What is left of "reported medium confidence that"."""
_PLACE_FIRST = re.compile(rf"(?:[^,]{{1,24}},\s+)?(?:{PREPOSITION})\b", re.IGNORECASE)
_ADJUNCT = re.compile(
    r"\s*,\s*(?:with|including|especially|particularly|leading\s+to|resulting\s+in|causing|due\s+to|because|which|while"
    r"|although|though|whereas|despite|(?:\w+ly\s+)?\w{3,}ing)\b",
    re.IGNORECASE,
)
"""What only adds to a sentence, so that its main verb is in the words before."""
_JOINS = re.compile(r"\s*(?:[,;]\s*)?(?:and|but|while|whereas|although|though)\b|\s*;", re.IGNORECASE)
_ALONE_IN_PAIR = re.compile(r"\bboth\s+(?!.*\band\b)", re.IGNORECASE | re.DOTALL)
_BINDS = re.compile(r"\b(?:respectively|neither|nor|(?<!which )in\s+turn)\b", re.IGNORECASE)
"""Words that tie the clauses of a sentence together, so that none of them stands alone."""
_LEFT_OPEN = re.compile(
    r"\b(?:either(?!\s+(?:direction|way|case|side)\b)|not\s+only)\b(?!.*\b(?:or|but)\b)|\bbetween\s+[\d–-](?!.*\b(?:and|to)\b)"
    r"|\b(?:and|or|but|nor|of|the|an?|that|which|where|when|if|(?:if|when|because)\s+it|in|to|by|for|with|from|than|as|at|its|their|is|are|was|were|has|have|be|been|we"
    r"|whether|while|whilst|whereas|although|though|because|unless|e\.g\.|including|such\s+as|in\s+some)\W*$"
    r"|\balso\s+play(?:s|ed)?\s+an?\s+(?:\w+\s+)?role\W*$|\bthe\s+assessment\s+(?:is|was)\s+\w+ed\W*$"
    r"|\b(?:lending|associated)\s+to\b|\b(?:leads?|led|leading)\s+to\s+thereafter\b|\bthere\s+(?:is|was)\s+(?:\w+ly\s+)?to\b"
    r"|^\W*there\s+(?:is|was|are)\s+(?:that|among|between|for|in|due|because)\b|\bthe\s+assessment\s+(?:of|that)\b|^(?:stated|found|reported|assessed|concluded|noted|to\s+it)\b|\bmid\W*$|\band\s+(?:while|although|though|if|when)\b[^,]*$|^(?:due\s+to|despite|because|since|although|while|if|as)\b[^,]*$|^that\b"
    r"|\b(?:some|many|most|several|certain)\s+[a-z]*[^s\W]$",
    re.IGNORECASE | re.DOTALL,
)
_REMAINS = re.compile(
    r"\b(?:where|which|who|when|if|whether)\s+\w+$|\bthere\s+(?:is|was|are|were)\s+that\b|\(\s*(?:from|all|but|both|albeit)\W"
    r"|,\s+and\s+(?:low|medium|high|limited)\s+(?:agreement|evidence)\b|\bwith\s+in\b|(?<!-)\b(?:and|or|with|in|of)\s*\)",
    re.IGNORECASE,
)
"""What a division leaves of words that a level stood among: "ranked as very high (very high risk and)"."""
_NO_SENTENCE = re.compile(
    rf"(?:for|of)\s[^,]*$|{VERB}\s+\w+ly\b|(?:[^,]{{0,24}},\s+)?even\s+though\b|[^,]{{1,24}},\s+(?:while|although|though|whereas)\b[^,]*$"
    r"|.*\(i\).*\(ii\)|.*(?<!was)(?<!were)(?<!also)\s(?:reports?|reported|assess(?:es|ed)|found|finds|conclude[sd]?|stated|expressed|suggests?|indicates?)\W*$",
    re.IGNORECASE | re.DOTALL,
)
"""Openings after which no sentence comes: a preposition alone, a verb without subject, a concession."""
_CONTRAST = re.compile(r",\s(?:but|while|whereas|although)\s([^,]*)$")
_CONDITION = re.compile(
    r"(?:at|under|if|when|where|with|without|unless|depending|beyond|above|below)\b[^,]{2,120},", re.I
)
_INTRODUCED = re.compile(
    r"(?:in|at|under|by|over|with|for|from|during|since|until|after|before|without|among|across)\b[^,]{2,120},", re.I
)
_RANGE = re.compile(r"\d\s*(?:[–-]|to)\s*\d")
_NUMBER_FIRST = re.compile(r"\d(?!\d*(?:\.\d+)?(?:\s*(?:[–-]|to)\s*\d+(?:\.\d+)?)?\s*%)")
_PART_OF_THING = re.compile(rf"\b(?:{PREPOSITION})\b", re.IGNORECASE)
_CLAUSE_FOLLOWS = re.compile(r"[\s,;]*(?:while|whilst|whereas|although|though|yet)\b", re.IGNORECASE)
_LIKELY_THAT = re.compile(r"(?:\w+ly\s+)?(?:un)?likely\b|virtually\s+certain\b", re.IGNORECASE)
_NOT_THING = re.compile(r"\d|(?:both|it|they|this|these)\b", re.IGNORECASE)
_FEWEST_WORDS = 2
_NEAR_END = 8
_LONG_WORD = 5
_INTERRUPTED_GOES_ON = re.compile(
    rf"(?!(?:of|to)\b)(?:{BEGINS_WITH_PREPOSITION.pattern[1:]}|{SUBORDINATE.pattern[1:]})", re.IGNORECASE
)
_FORMS = tuple(
    (re.compile(words, re.IGNORECASE), re.compile(place, re.IGNORECASE), group)
    for words, place, group in (
        (r"that\b", r"\bthat\b", 0),
        (r"to\b", r"\bto\b", 0),
        (
            r"(?:\w+ly\s+)?(?!during\b|spring\b)\w{2,}ing\s+\w",
            r"(?:,|\b(?:by|through|via|while|are|is|was|were))\s+(?!including\b|during\b|being\b)((?:\w+ly\s+)?\w{2,}ing\b)",
            1,
        ),
        (
            r"(?:\w+ly\s+)?\w+ed\s+(?:the|an?|its|their|in|to|by|from|with|on|more|as|over|across)\b",
            r"\b(?:has|have|had|is|are|was|were)\s+(?:(?:not|also|been|\w+ly)\s+)*(\w+ed\b)",
            1,
        ),
    )
)
"""How words begin that may take the place of earlier ones of the same form, and where those begin (a group)."""
_INCLUDES = re.compile(r"\binclud(?:es?|ed)\b", re.IGNORECASE)
_HOLDS_LIST = re.compile(
    r":\s|\binclud\w+\b|\bsuch\s+as\b|\b(?:by|through|of|in|for|on|from|via|are)\s+(?:\w+ly\s+)?\w+ing\b", re.IGNORECASE
)
"""What a word in "-ing" after a comma may go on with, rather than with the sentence."""
_RELATIVE_CLAUSE = re.compile(r",\s*(?:which|who)\b[^,]*(?:,|$)", re.IGNORECASE)
_HANGS_ON = re.compile(
    r"(?:[^,]{1,24},\s+)?(?:even\s+though|although|though|while|whilst|whereas|due\s+to|because|despite|if|when|as(?!\s+(?:such|a\s+result|a\s+consequence)\b))\b",
    re.IGNORECASE,
)
_CONCESSION = re.compile(
    r"(?P<remark>[^,]{1,24},\s+)?(?:even\s+though|although|though|while|whilst|whereas|given\s+that),?\s+",
    re.IGNORECASE,
)
_CONCESSION_WITHIN = re.compile(
    r"(?P<reported>.*\bthat),?\s+(?:even\s+though|although|though|while|whilst|whereas),?\s+(?P<clause>[^,]+)$",
    re.IGNORECASE | re.DOTALL,
)
"""A concession that is all of what is reported before the first level: "assesses that, while A (...), B"."""
_ATTRIBUTED = re.compile(r"(?:[^,;:]{1,60}:\s+)?.{0,200}?\bthe\s+assessment\s+of\s+(?:both\s+)?(?=\w+\s+\w)")
"""Who gives a level in running words, or from what it follows: "Section 11.9 assessed low confidence in"."""
_CONCLUDED_THAT = re.compile(
    r"(?:[^,;:]{0,60}\s)?(?:assess|conclud|find|found|indicat|not|report|stat|suggest)\w*\s+that\s+(?=\w+\s+\w)",
    re.IGNORECASE,
)
_DANGLES = re.compile(
    r"[,;]?\s+(?:and|but|or|yet|hence|while|whereas|although|though|albeit|because)"
    r"(?:\s+(?:that|only|similarly|with|also|there|it|is|in\s+general))*\W*$",
    re.IGNORECASE,
)
"""What a level leaves of the words that bound it to the next clause."""
_ENDS_WITH_ADJECTIVE = re.compile(
    r"\b(?:in|of|on|at|for|the|to|under|from|across|over|during|both|and|or)\s+(?:\w+ly\s+)?(?:\w{3,}(?:ern|ernmost|(?<!re)most|ous|ible|able|ful)"
    r"|[a-z]{2,}[^v]al(?<!coal)(?<!potential)(?<!material)(?<!animal)(?<!signal)|(?-i:[a-z])\w+(?:stic|tric|phic|omic|atic)"
    r"|\w+-(?:borne|based|related|driven|term|induced|sensitive|dependent|scale|latitude)|short|long|high|low|near|mid|early|late|small|large|past|upper|lower|warm|cold|dry|wet|moderate|marine|terrestrial"
    r"|\w+(?:’|')s?)$",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"(?:in\s+(?:summary|addition|particular|general|conclusion|contrast|turn|fact|total|short|other\s+words)|for\s+(?:example"
    r"|instance)|on\s+the\s+other\s+hand|at\s+the\s+same\s+time|at\s+present|by\s+contrast|over\s*all|with\s+(?:few|some|the)\s+exceptions?)\b",
    re.IGNORECASE,
)
"""Openings of a sentence that say nothing of where or when it holds."""


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
    results: list[CompletedClause] = []
    base, base_sure = "", False
    broken = 0
    shortly = len(clauses) > _FEWEST_WORDS and all(_SHORT_ITEM.fullmatch(clause.strip()) for clause in clauses[1:])
    for number, clause in enumerate(clauses):
        words = clause.strip()
        plain = CONJUNCTION.sub("", words).strip()
        goes_on_directly = bool(results) and plain == words
        if number < len(opened) and opened[number]:
            one = _opened(plain) if len(clauses) > 1 else CompletedClause(_SAID.sub(" that", plain), True)
            goes_on_directly = False
        elif base:
            one = _completed(
                words, CompletedClause(base, base_sure), clauses[number - 1].strip(), results[-1], shared, shortly
            )
        else:
            one = _first(words, [*clauses[number + 1 :], tail], shared)
        if goes_on_directly and not _INTERRUPTED_GOES_ON.match(plain) and not _goes_on(plain, results):
            # Its mark interrupts a clause, whose words the clauses before may share; or only the sentence's subject.
            subject_first = number == 1 and one.text == f"{clauses[0].strip()} {plain}"
            broken = number if subject_first else number + 1
        one = one._replace(text=_ALONE_IN_PAIR.sub("", one.text))
        shared_end = number > 0 and (
            _is_another_thing(clauses[number - 1], ()) or re.search(r"\band\s+(?:an?|the)\b", plain)
        )
        if goes_on_directly and shared_end and _INTERRUPTED_GOES_ON.match(plain):
            broken = number  # "heat waves (...) and drought (...) on land": nothing says where the first ones are
        if number < len(opened) and opened[number]:
            one = one._replace(sure=not (shared and number + 1 == len(clauses)) and one.sure)
        elif shared and number + 1 == len(clauses) and _WANTS_VERB.search(one.text):
            # "..., although medium confidence arises due to ...": the level is the subject of what follows.
            one = CompletedClause(f"{one.text.rstrip(_END)} {shared}", False)
        elif len(clauses) == 1 and INFINITE.match(shared):
            one = one._replace(text=f"{one.text.rstrip(_END)} {shared}")  # "is likely (...) to be"
        elif shared and one.text and not has_verb(one.text):
            whole = SURELY_BEGINS_WITH_VERB.match(shared) and len(_RANGE.findall(shared)) < 2
            one = CompletedClause(
                f"{one.text.rstrip(_END)} {shared}", bool(whole) and number >= broken and (number == 0 or one.sure)
            )
        elif own_tail and number == len(clauses) - 1:
            one = CompletedClause(f"{one.text.rstrip(_END)} {own_tail}", one.sure)
        if len(clauses) > 1 and re.search(r"\b(?:is|are|was|were|has|have|be|been|that)\W*$", one.text):
            one = one._replace(sure=False)  # "there is" goes on behind its mark
        results.append(one)
        hangs = SUBORDINATE.match(plain) or BEGINS_WITH_VERB.match(plain)
        if number == 0 or not base or (has_verb(plain) and not hangs):
            base, base_sure = one
            if number == 0 and _HANGS_ON.match(words) and not has_verb(one.text, surely=True):
                base = words
    if len(clauses) == 1:
        text = _CONCESSION_LOST.sub("", results[0].text)
        return [CompletedClause(text, not _is_left_open(text) and not (shared and _WANTS_VERB.search(clauses[0])))]
    shares = _is_another_thing(clauses[-1], opened[-1:]) or re.match(r"\s*and\b", clauses[-1])
    but = re.match(r"\s*but\s+", clauses[-1])
    shares = shares or (
        but and (SURELY_BEGINS_WITH_VERB.match(clauses[-1], but.end()) or INFINITIVE.match(clauses[-1], but.end()))
    )
    if own_tail and results and shares:
        # "has increased A (...) and B (...) associated with C": nothing says that A is not.
        broken = max(broken, len(results) - 1)
    tied = _BINDS.search(" ".join([*clauses, tail])) is not None
    results = [one._replace(text=_DANGLES.sub("", one.text)) for one in results]
    return [
        one._replace(
            sure=one.sure
            and not tied
            and place >= broken
            and not _is_left_open(one.text)
            and _REMAINS.search(one.text) is None
            and not ((place or (opened and opened[0])) and _TWO_CLAIMS.search(clauses[place]))
            and not _lacks_noun(one.text, [*clauses, tail][place + 1]),
        )
        for place, one in enumerate(results)
    ]


def _goes_on(plain: str, found: Sequence[CompletedClause]) -> bool:
    """Whether words without a comma or conjunction only add to the sentence before, as words in "-ing" do."""
    adds = re.match(r"(?:\w+ly\s+)?(?!during\b|spring\b)\w{3,}ing\s+\w", plain)
    return adds is not None and len(found) == 1 and found[0].sure


def _opened(words: str) -> CompletedClause:
    """A clause that its mark opens, without the words that only bind it to others."""
    words = re.sub(r"^that,?\s+", "", _SAID.sub(" that", words))
    attributed = _ATTRIBUTED.match(words) or _CONCLUDED_THAT.match(words)
    if attributed and not has_verb(words[attributed.end() :]):
        words = words[attributed.end() :]
    concession = _CONCESSION.match(words)
    if concession is None or "," in words[concession.end() :]:
        return CompletedClause(words, concession is None)
    return CompletedClause(f"{concession['remark'] or ''}{words[concession.end() :]}", True)


def _lacks_noun(text: str, following: str) -> bool:
    """Whether a clause ends with an adjective whose noun comes with the next: "in northern (...) and western Asia"."""
    joined = re.match(r"\s*,?\s*(?:and|or|to)\s", following) is not None
    return joined and _ENDS_WITH_ADJECTIVE.search(text) is not None and not has_verb(following, surely=True)


def _is_another_thing(clause: str, opened: Sequence[bool]) -> bool:
    """Whether a clause is only another thing of what the one before says: "and B", "or B", ", B"."""
    plain = CONJUNCTION.sub("", clause.strip()).strip()
    joined = (
        plain != clause.strip() and SUBORDINATE.match(plain) is None and BEGINS_WITH_PREPOSITION.match(plain) is None
    )
    return joined and not any(opened) and not has_verb(plain) and BEGINS_WITH_VERB.match(plain) is None


def continues_clause(tail: str) -> bool:
    """Whether words behind a mark only go on with its clause, so that they are not a clause of their own."""
    return bool(tail.strip(_END)) and any(_tail_words(tail))


def _is_left_open(text: str) -> bool:
    if SURELY_BEGINS_WITH_VERB.match(text) or _NO_SENTENCE.match(text):
        return True
    contrast = _CONTRAST.search(text)
    without_verb = contrast is not None and not (FINITE.search(contrast[1]) or SURELY_FINITE.search(contrast[1]))
    return len(text.split()) < _FEWEST_WORDS or without_verb or _LEFT_OPEN.search(text) is not None


def _tail_words(tail: str) -> tuple[str, str]:
    """A predicate that all clauses share, and words that belong to the last clause; at most one of them is there."""
    words = tail.strip()
    if not words or words[0] in ",;:–—." or CONJUNCTION.match(words):
        return "", ""
    if BEGINS_WITH_VERB.match(words):
        return words, ""
    # What does not begin with a comma or a conjunction belongs to the clause that the bracket interrupts.
    return "", words


def _completed(
    words: str, base: CompletedClause, before: str, last: CompletedClause, shared: str, listed_shortly: bool
) -> CompletedClause:
    """A later clause made to stand alone.

    ``base`` is the last clause that has a verb, completed; ``before`` the clause before in its own words, ``last`` the
    same completed; ``shared`` a predicate that all clauses share, if there is one.
    """
    plain = CONJUNCTION.sub("", words).strip()
    if not plain:
        return CompletedClause("", False)
    if _lacks_noun(last.text, words):
        # "on short (...) and long time scales": the words take the place of the adjective.
        return CompletedClause(f"{last.text.rsplit(None, 1)[0]} {plain}", last.sure)
    exchanged = None if ADDS.match(plain) else _in_place_of_same_form(words, plain, base, last)
    if exchanged:
        return exchanged
    even = re.match(r"even\s+(?:under|in|at|with|where|if)\b[^,]*,\s", plain)
    if even and has_verb(plain[even.end() :], surely=True):
        return CompletedClause(plain, True)
    if SUBORDINATE.match(plain):
        own = re.search(r",\s+(?:whereas|while|but)\b|^with\b.*,\s+and\s(?P<clause>.*)", plain)
        adds = ADDS.match(plain) is not None and (own is None or (own["clause"] and not has_verb(own["clause"])))
        return CompletedClause(f"{last.text.rstrip(_END)}, {plain}", last.sure and bool(adds))
    if not _CLAUSE_FOLLOWS.match(words) and (infinitive := _with_infinitive(plain, base)):
        return infinitive
    begins = BEGINS_WITH_VERB.match(plain)
    if begins and not _JOINS.match(words) and base.text == before and not has_verb(before.partition(" ")[2]):
        # "A and B (...) have affected C (...)": the first level interrupts the sentence.
        whole = re.match(r"(?:has|have|had|is|are|was|were|will|can|may|could|would|caused|led)\b", plain) is not None
        return CompletedClause(f"{before.rstrip(_END)}{',' if ', ' in before else ''} {plain}", whole)
    if begins and not (NOUN_TOO.fullmatch(begins.group()) and HAS_AUXILIARY.search(plain, begins.end())):
        return _with_subject(plain, base)
    preposition = None if _REMARK.match(plain) else BEGINS_WITH_PREPOSITION.match(plain)
    if has_verb(plain, surely=preposition is not None):
        return _own_clause(words, plain, base.text)
    if words == plain and re.match(r"(?:\w+ly\s+)?(?!during\b|spring\b)\w{3,}ing\s+\w", plain):
        return CompletedClause(f"{last.text.rstrip(_END)} {plain}", last.sure and _HOLDS_LIST.search(last.text) is None)
    if preposition and words == plain:
        # "compromises food (medium confidence) through exposure (low confidence)" goes on with what comes before.
        return CompletedClause(
            f"{last.text.rstrip(_END)} {plain}", last.sure and not re.search(r",\s+(?:and|but)\b", plain)
        )
    if preposition and re.match(r"in\s+(?:some|many|most|certain|both|all)\s+cases\b", plain):
        return CompletedClause(f"{last.text.rstrip(_END)} {plain}", False)
    if preposition:
        return _in_its_place(plain, preposition["word"].lower(), last)
    if shared:
        # "A (high confidence) and B (medium confidence) are projected"; in "a shift in A (...) and B (...)" B is none.
        return CompletedClause(plain, bool(_PART_OF_THING.search(plain)) == bool(_PART_OF_THING.search(before)))
    link = _LINKS.match(CONJUNCTION.sub("", before).strip())
    if link and last.text != base.text:
        in_list = re.match(r"\s*(?:,\s+(?!and\b|or\b|as\b)|and\b|or\b)", words) is not None
        one_thing = _PART_OF_THING.search(CONJUNCTION.sub("", before)[link.end() :]) is None
        one_thing = one_thing or _PROCESS.match(plain) is not None or re.match(r"\w+(?:er|ed)\s", plain) is not None
        return CompletedClause(f"{base.text.rstrip(_END)}, {link.group()} {plain}", base.sure and in_list and one_thing)
    return _as_object(words, plain, base, before, last, listed_shortly)


def _with_infinitive(words: str, base: CompletedClause) -> CompletedClause | None:
    """``words`` after the verb that governs the infinitive of ``base``: "can store carbon (...) and improve soils".

    None where they begin with none; "increase in number" does after "projected to decrease in frequency".
    """
    alike = re.match(r"(?:in|de)crease\s+in\b", words) and re.search(r"\bto\s+(?:in|de)crease\s+in\b", base.text)
    governs = GOVERNS_INFINITIVE.search(base.text)
    if governs is None or not (alike or INFINITIVE.match(words)):
        return None
    subject = base.text[: governs.start()]
    sure = base.sure and SUBORDINATOR.search(subject) is None and SURELY_FINITE.search(subject) is None
    return CompletedClause(f"{base.text[: governs.end()]} {words}", sure)


def _first(words: str, following: Sequence[str], shared: str) -> CompletedClause:
    """The words before the first mark.

    They are a sentence where they have a verb, or where no other words of the sentence can hold it: only verbs that
    are nouns too, or that no list has, are left to be theirs then.
    """
    concession = _CONCESSION.match(words)
    main_clause = [*following, ""][0]
    main_follows = re.match(r"\s*,\s", main_clause) and not _JOINS.match(main_clause)
    main_follows = main_follows and not ADDS.match(CONJUNCTION.sub("", main_clause)) and has_verb(main_clause)
    if concession and (
        main_follows or ("," not in words[concession.end() :] and SURELY_FINITE.search(words, concession.end()))
    ):
        # A main clause may stand between the concession and the level too: "although A, B (...), C".
        conceded, *parts = words[concession.end() :].split(", ")
        if has_verb(conceded, surely=True) and any(
            has_verb(part, surely=True) for part in parts if not CONJUNCTION.match(part)
        ):
            return CompletedClause(words, True)
        alone = not any(has_verb(part) for part in parts if not CONJUNCTION.match(part))
        return CompletedClause(f"{concession['remark'] or ''}{words[concession.end() :]}", alone)
    within = _CONCESSION_WITHIN.match(words)
    if within:
        return CompletedClause(f"{within['reported']} {within['clause']}", has_verb(within["clause"], surely=True))
    if shared:
        # Where a predicate follows the last mark, the first words may be its subject alone, behind "that" too.
        return CompletedClause(words, SURELY_FINITE.search(re.split(r"\bthat\b", words)[-1]) is not None)
    if _HANGS_ON.match(words) and not any(
        has_verb(part) for part in words.split(", ")[1:] if not CONJUNCTION.match(part)
    ):
        return CompletedClause(words, False)
    main = _RELATIVE_CLAUSE.sub(" ", words)
    results = [
        match for match in FINITE_OR_PRESENT.finditer(main) if not RELATIVE_BEFORE.search(main, 0, match.start())
    ]
    if results and results[0].end() < len(main):
        return CompletedClause(words, True)
    others = [CONJUNCTION.sub("", part).strip() for part in following]
    predicate_follows = any(
        BEGINS_WITH_VERB.match(other) or (has_verb(other) and part.lstrip()[:1] not in {",", ";"})
        for part, other in zip(following, others, strict=True)
    )
    joined = any(_JOINS.match(part) for part in following) or all(_ADJUNCT.match(part) for part in following if part)
    goes_on = WORD.match(following[-1].lstrip()) is not None and not CONJUNCTION.match(following[-1])
    return CompletedClause(words, joined and not predicate_follows and not goes_on and not _PLACE_FIRST.match(words))


def _in_place_of_same_form(
    words: str, plain: str, base: CompletedClause, last: CompletedClause
) -> CompletedClause | None:
    """``plain`` in place of the only earlier words of its form, as in "that A (...) and that B (...)"."""
    for begins, place, group in _FORMS:
        if begins.match(plain) is None:
            continue
        if words == plain or (group and (has_verb(plain, surely=True) or _INCLUDES.search(last.text))):
            return None
        verb = SURELY_FINITE.search(last.text)
        results = list(place.finditer(last.text, verb.start() if verb and begins.match("doing it") else 0))
        if len(results) == 1:
            start = results[0].start(group)
            # "the transition to high risk is (...) and to very high risk" has its verb behind what is replaced.
            verb_stays = group or not plain.startswith("to ") or main_verb(last.text[:start]) is not None
            return CompletedClause(f"{last.text[:start]}{plain}", last.sure and bool(verb_stays))
        if BEGINS_WITH_FORM.match(plain) is None or results:
            return CompletedClause(f"{last.text.rstrip(_END)} and {plain}", False)
        if plain.split()[0].lower().endswith("ing") or re.match(r"\w+ly\s+\w+ing\b", plain):
            # ", causing A (...)" goes on with what comes before; after "and", nothing says with what.
            goes_on = re.match(r"\s*,(?!\s*(?:and|or|but|as)\b)", words) is not None
            return CompletedClause(
                f"{last.text.rstrip(_END)}, {plain}",
                last.sure and goes_on and _HOLDS_LIST.search(last.text, verb.end() if verb else 0) is None,
            )
        finite = SURELY_FINITE.search(base.text)
        if finite and not HAS_AUXILIARY.match(finite.group()) and not re.search(r"\b(?:which|who|that)\b", base.text):
            joined = re.match(r"\s*(?:,\s*)?(?:and|but)\b", words) is not None
            return CompletedClause(f"{base.text[: finite.start()]}{plain}", base.sure and joined)
        return CompletedClause(f"{base.text.rstrip(_END)} and {plain}", False)
    return None


def _own_clause(words: str, plain: str, base: str) -> CompletedClause:
    """A clause with a verb of its own, under the place, time or condition that the sentence begins with."""
    sure = not _NUMBER_FIRST.match(plain) and has_verb(plain, surely=True)  # the number may be a footnote's
    listed = not _JOINS.match(words) or re.match(r"\s*,?\s*and\b", words)
    if listed and not _HANGS_ON.match(base) and not FINITE_OR_PRESENT.search(re.split(r"\bthat\b", base)[-1]):
        return CompletedClause(plain, False)  # its verb may be that of the words before too
    if _INTRODUCED.match(plain) or _CONDITION.match(plain):
        return CompletedClause(plain, sure)
    if BEGINS_WITH_PREPOSITION.match(plain):
        return CompletedClause(plain, False)  # "in Asia may already be reached" has no subject
    opening = None if _REMARK.match(base) else _CONDITION.match(base) or _INTRODUCED.match(base)
    if opening is None:
        return CompletedClause(plain, sure)
    contrast = re.match(r"[\s,;]*(?:but|yet|although|though|however)\b", words, re.IGNORECASE)
    finite = FINITE.search(base, opening.end())
    if contrast or finite is None or "," in base[opening.end() : finite.start()]:
        return CompletedClause(plain, sure and _CONDITION.match(base) is None)
    return CompletedClause(f"{opening.group()} {plain}", sure)


def _with_subject(words: str, base: CompletedClause) -> CompletedClause:
    finite = main_verb(base.text)
    if finite is None or not base.text[: finite.start()].strip():
        return CompletedClause(f"{base.text.rstrip(_END)} and {words}", False)
    subject = _ADVERB_BEFORE_VERB.sub("", base.text[: finite.start()].rstrip(_END))
    if INFINITE.match(words):
        group = VERB_GROUP.search(base.text, finite.start())
        auxiliary = re.match(r"\w+(?:\s+(?:be\s+)?\w+(?:ed|en)\b)?", group.group()) if group else None
        return CompletedClause(f"{subject} {auxiliary.group() if auxiliary else ''} {words}", False)
    plain_subject = SUBORDINATOR.search(subject) is None and SURELY_FINITE.match(base.text, finite.start())
    relative = re.search(r"\b(?:which|who|that)\b", base.text)
    sure = bool(plain_subject) and SURELY_BEGINS_WITH_VERB.match(words) is not None
    # Two verbs of the same form, "increases A (...) and amplifies B", are no nouns.
    alike = _THIRD_PERSON.match(base.text, finite.start()) and _THIRD_PERSON.match(words) and not subject.endswith("s")
    of_plural = subject.endswith("s") and _BASE_FORM.match(base.text, finite.start()) and HAS_AUXILIARY.match(words)
    sure = sure or (bool(alike or of_plural) and SUBORDINATOR.search(base.text) is None)
    return CompletedClause(f"{subject} {words}", base.sure and sure and not relative)


def _in_its_place(words: str, preposition: str, last: CompletedClause) -> CompletedClause:
    """The clause before with its part of the same preposition replaced, else with its last part of place or time."""
    text = last.text
    same = [match.start() for match in re.finditer(rf"\b{preposition}\b", text, re.IGNORECASE) if match.start() > 0]
    verb = main_verb(text)
    if same and preposition not in ("of", "to"):
        behind = [place for place in same if verb and place > verb.end()]
        # "in A in 1990 (...) and in B in 2000" gives two of them for two.
        taken = max(1, min(len(re.findall(rf"\b{preposition}\b", words, re.IGNORECASE)), len(behind)))
        near = len(behind) == taken or (bool(behind) and taken == 1 and len(text[same[-1] :].split()) <= _NEAR_END)
        return CompletedClause(f"{text[: same[-taken]].rstrip(_END)} {words}", last.sure and near)
    other = [match for match in PLACE_OR_TIME.finditer(text) if verb and match.start() > verb.end()]
    if other:
        places = _PLACE.fullmatch(preposition) and _PLACE.fullmatch(other[-1].group())
        near = len(text[other[-1].start() :].split()) <= _SHORT + 1
        return CompletedClause(f"{text[: other[-1].start()].rstrip(_END)} {words}", last.sure and bool(places) and near)
    return CompletedClause(f"{text.rstrip(_END)} {words}", False)


def _as_object(
    words: str, plain: str, base: CompletedClause, before: str, last: CompletedClause, listed_shortly: bool
) -> CompletedClause:
    """``plain`` as another thing of what ``base`` says: after its colon, or after its verb."""
    own = CONJUNCTION.sub("", before)
    if INFINITIVE.match(own) or SURELY_BEGINS_WITH_VERB.match(own):
        base, before = last, last.text  # "will shift A (...), reduce B (...) and C" shares the nearer verb
    text = base.text
    if _CLAUSE_FOLLOWS.match(words) or _LIKELY_THAT.match(plain):
        return CompletedClause(f"{text.rstrip(_END)} and {plain}", False)  # its verb is not known to be one
    if not _LETTERS.search(plain):
        return CompletedClause(f"{text.rstrip(_END)} and {plain}", False)  # "between 2°C (high) and 5°C (medium)"
    listed = _LISTS.search(text)
    if listed and ":" in listed.group() and not has_verb(listed.group()):
        listed = None  # "Permafrost: ..." is a label
    if listed:
        # "A, including B (...), and C (...)": whether C is one of A, nobody can tell.
        colon = ":" in listed.group()
        closes = not colon and re.match(r"\s*,\s+(?:and|or|as\s+well\s+as)\b", words)
        in_list = not closes or re.match(r"\s*,\s+(?!and\b|or\b|as\b)", before) is not None
        once = (
            SURELY_FINITE.search(listed.group()) is not None
            and len(_LIST_MARK.findall(text)) == 1
            and not _NOT_THING.match(plain)
            and (_same_form(plain, text[listed.end() :].strip()) or DESCRIBED.match(plain) is not None)
        )
        short = len(plain.split()) < FEW_WORDS + 1 and _PART_OF_THING.search(text, listed.end()) is not None
        head = text[: listed.end()].rstrip(_END)
        colon_stays = ":" if colon and not _VERB_BEFORE_LIST.search(head) else ""
        return CompletedClause(f"{head}{colon_stays} {plain}", last.sure and in_list and once and not short)
    # A comma and "and" join things in longer lists, else clauses.
    may_be_clause = re.match(r"\s*,\s*(?:and|but)\b", words) and before == text and not _PROCESS.match(plain)
    if may_be_clause and SURELY_FINITE.search(plain):
        return CompletedClause(plain, False)
    if may_be_clause:
        base, last = base._replace(sure=False), last._replace(sure=False)
    process = _HEAD.search(text)
    if process and main_verb(text) is None and _PROCESS.match(plain) and not _LISTS.search(text):
        return CompletedClause(f"{text[: process.start()]}{plain}", base.sure and len(_HEAD.findall(text)) == 1)
    object_of = _ADDED_OBJECT.search(last.text)
    joined = re.match(r"\s*,?\s*(?:and|or)\b", words) is not None
    alike = (
        object_of
        and not has_verb(object_of["object"], surely=True)
        and (_PART_OF_THING.search(plain) or not _PART_OF_THING.search(object_of["object"]))
    )
    if object_of and alike and joined and before == last.text and not re.match(r"\s*,", words):
        return CompletedClause(f"{object_of[1]} {plain}", last.sure and not _NOT_THING.match(plain))
    the_same = _LAST_THE.search(last.text) if joined and plain.startswith("the ") else None
    if (
        the_same
        and re.search(r"\bthe\b", last.text[result.end() if (result := main_verb(last.text)) else 0 : the_same.end(1)])
        is None
    ):
        return CompletedClause(f"{the_same[1]} {plain}", last.sure and not has_verb(plain))
    effect = _EFFECT_ON.search(text)
    if listed_shortly and effect and not _PART_OF_THING.search(plain) and len(plain.split()) <= _SHORT:
        return CompletedClause(f"{effect[1]} {plain}", base.sure)
    place = (_LAST_NAME if plain[0].isupper() else _LAST_PLACE).search(last.text)
    if place and has_verb(last.text[place.end() :]):
        place = None
    if place and len(plain.split()) <= _SHORT and not PLACE_OR_TIME.search(plain) and not _PROCESS.match(plain):
        return CompletedClause(f"{last.text[: place.end()]} {plain}", last.sure and plain[0].isupper())
    finite = main_verb(text)
    group = VERB_GROUP.match(text, finite.start()) if finite else None
    if group is None:
        return CompletedClause(plain, False)
    replaced = text[group.end() :].strip()
    # What is replaced is one thing, or begins like what replaces it: nothing shared is lost with it.
    begins = re.match(rf"(?:{PREPOSITION}|with|as|than|near)\b", replaced)
    one_thing = not begins and not PLACE_OR_TIME.search(replaced) and not re.search(r"\b(?:of|to)\b|,", replaced)
    alike = all(map(_PROCESS.match, (plain, replaced))) or all(map(_DETERMINER.match, (plain, replaced)))
    first_words = [{word.rstrip("s,") for word in words.split()[:_SHORT]} for words in (plain, replaced)]
    alike = alike or any(len(word) >= _LONG_WORD for word in first_words[0] & first_words[1])
    repeats = group.group().split()[-1].lower() in plain.lower().split()
    degree = re.search(r"\s+\w+ly$", group.group()) if HAS_AUXILIARY.match(group.group()) else None
    sure = (
        base.sure
        and bool(replaced)
        and not degree
        and (one_thing or alike)
        and not repeats
        and not _NOT_THING.match(plain)
    )
    same_form = _same_form(plain, replaced) or _INCLUDES.fullmatch(group.group().split()[0]) is not None
    sure = sure and not GOVERNS_INFINITIVE.fullmatch(group.group()) and same_form
    return CompletedClause(f"{text[: group.end()].rstrip(_END)} {plain}", sure)


def _same_form(one: str, other: str) -> bool:
    """Whether words begin with a form in "-ing" or "-ed" only where those that they replace do."""
    forms = [match["form"].lower() if (match := BEGINS_WITH_FORM.match(words)) else "" for words in (one, other)]
    return not forms[0] or forms[0] == forms[1]
