"""Check a text sentence by sentence: what in the collections supports it, what contradicts it, what nothing bears.

1. Each sentence that claims something is searched for; so is the one before it where the sentence begins with "it",
   "this" or the like. Passages that it cites by number are read as well.
2. Of each passage the sentences nearest to it are its evidence, with the probability that the passage confirms or
   contradicts it (:mod:`climassay.metrics.entailment`).
3. Rules tell what vectors do not: quantities that the passages have otherwise (:mod:`climassay.grounding.quantities`),
   opposite words, other regions and foreign names, references that point to nothing
   (:mod:`climassay.grounding.references`). A function given by the caller says how sure a sentence may be.
4. A language model may judge support instead (:class:`SupportJudge`); its quotation must appear in the passage.

Encoders lay "the Arctic warms" and "the Antarctic warms", "rises" and "falls" close together. Told apart are words of
opposite direction (:data:`~climassay.metrics.entailment.OPPOSITES`), regions, seasons and layers of which one
excludes the other, and names that the source does not have. A source may name both sides ("the troposphere warms and
the stratosphere cools"): what decides is which of them stands among the words that stand around it in the sentence.
A figure is compared with those of its kind of unit that the sources have, of the same measured thing: the one whose
sentence is near to the whole, and that has the same words close by. A figure of that kind elsewhere bears nothing.

What the default is worth is measured in docs/results/check_text.md.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from climassay.corpus.documents import Passage, split_sentences
from climassay.errors import InputError
from climassay.grounding.citations import CitingSentence, is_bare_answer, is_quoted, read_citations, states_absence
from climassay.grounding.quantities import Quantity, backs, foreign_quantities, quantities, split_at_quantities
from climassay.grounding.references import (
    CheckedReference,
    ReferenceChecker,
    ReferenceList,
    open_links,
    without_addresses,
)
from climassay.metrics.entailment import OPPOSITES, RelationScorer, content_words
from climassay.models.contract import (
    Completion,
    Encoder,
    GenerationRequest,
    Generator,
    Sampling,
    Usage,
    object_schema,
)
from climassay.prompts import Prompt, load_prompt

if TYPE_CHECKING:
    from climassay.grounding.answer import CollectionGroup


def _groups(*lines: str) -> tuple[tuple[frozenset[str], ...], ...]:
    return tuple(tuple(frozenset(side.split()) for side in line.split("|")) for line in lines)


RIVALS = _groups(
    "increase increases increased increasing rise rises rose risen rising grow grows grew grown growing climb climbs"
    " climbed climbing gain gains strengthen strengthens strengthened strengthening accelerate accelerates accelerated"
    " speed speeds sped intensify intensifies intensified expand expands expanded widen widens widened ascend ascends"
    "|decrease decreases decreased decreasing fall falls fell fallen falling drop drops dropped shrink shrinks shrank"
    " shrunk decline declines declined reduce reduces reduced weaken weakens weakened weakening slow slows slowed"
    " contract contracts contracted narrow narrows narrowed sinks sinking descend descends diminish diminishes",
    "warm warms warmed warming|cool cools cooled cooling", "warmer warmest|cooler colder coldest",
    "fresher freshens freshened|saltier salinifies", "wetter moistens|drier dries dried", "brighter|darker",
    "polewards poleward|equatorwards equatorward", "earlier|later", "always|never",
)  # fmt: skip
"""Words of direction and their contraries, a negation turns them round; on one side they say nearly the same."""
THINGS = _groups(
    "source sources|sink sinks", "shortwave|longwave", "winter winters|summer summers|spring|autumn",
    "night nights|day days",
)  # fmt: skip
"""Things of which one excludes the others, and which no negation turns round."""
PLACES = _groups(
    "arctic", "antarctic antarctica", "greenland", "southern", "northern", "eastern east", "western west", "atlantic",
    "pacific", "indian", "tropics tropical equator equatorial", "subtropics subtropical", "polar pole poles",
    "midlatitude midlatitudes", "rainforest rainforests", "desert deserts", "savanna savannas", "tundra", "boreal",
    "temperate", "land continent continents", "ocean oceans oceanic sea seas marine",
    "coast coasts coastal",
    "city cities urban", "rural", "mountain mountains", "troposphere tropospheric", "stratosphere stratospheric",
    "vegetation", "soil soils", "hemisphere",
)  # fmt: skip
"""Words for places without a capital, those of one place together; names are recognised by their capitals."""
_SAME: dict[str, frozenset[str]] = {}
_ALTERNATIVES: dict[str, frozenset[str]] = {}
for _word, _other in OPPOSITES.items():
    _ALTERNATIVES[_word] = frozenset({_other})
for _sides in (*RIVALS, *THINGS):
    for _side in _sides:
        for _word in _side:
            _SAME[_word] = _SAME.get(_word, frozenset()) | _side
            _ALTERNATIVES[_word] = (_ALTERNATIVES.get(_word, frozenset()) | frozenset().union(*_sides)) - _side
_NEVER_TURNED = frozenset(word for sides in THINGS for side in sides for word in side)
_PLACE = {word: place for place, (words,) in enumerate(PLACES) for word in words}
_REACH = 6
"""Words to either side that say what a word is about."""
_NEAR = 3
_TOKEN = re.compile(r"n['’]t\b|[^\W\d_]+(?:-[^\W\d_]+)*")
_NEGATIONS = frozenset(["no", "not", "never", "none", "nor", "neither", "without", "cannot", "hardly", "n't", "n’t"])
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<=[\s(])(?:[A-Z][a-z]{2,}|[A-Z]{2,}[a-z]?)(?:-[A-Z]?[a-z]+)?\b")
_NO_NAMES = frozenset(
    (
        "the", "this", "that", "these", "those", "january", "february", "march", "april", "may", "june", "july",
        "august", "september", "october", "november", "december", "chapter", "section", "figure", "table", "earth",
        "sun", "celsius", "kelvin", "report", "according", "however",
    )
)  # fmt: skip
_SAME_THING = 2.0
"""Weight of the words close to a figure beside the nearness of its whole sentence."""
_CLEARLY_NEARER = 0.4
"""How much nearer another figure must be than one that bears it; from the seen half of docs/results/check_text.md."""
_ROUNDING = 0.01
_HALF = 3.0
"""Words away at which a word counts for half."""
_APART = 6
"""Words for which a sign, a conjunction or a figure between counts."""
_WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|[,;:()]")
_SEPARATORS = frozenset([*",;:()", "and", "but", "while", "whereas", "or", "against", "versus"])
_FIRST_YEAR, _LAST_YEAR = 1500, 2300


class Difference(NamedTuple):
    """What a sentence says, and what its source says in that place."""

    said: str
    source: str


class DifferingFigure(NamedTuple):
    """A figure that no source bears, or that another figure of the same thing speaks against."""

    said: str
    source: str
    """The nearest figure of its kind; empty where the sources have none."""
    place: int | None
    """Place of that figure's sentence among the sources."""


def differing_figures(sentence: str, sources: Sequence[tuple[str, float]]) -> tuple[DifferingFigure, ...]:
    """Figures of a sentence that the sources do not have, or have otherwise for the same thing.

    Args:
        sentence: What was written.
        sources: Sentences, each with its nearness to the whole of what was written: cosine plus the share of words.
    """
    own = _figures(sentence)
    # Where one sentence says all of it, other years nearby are of something else.
    whole = len(own) > 1 and any(_has_in_order(text, [figure for figure, _ in own]) for text, _ in sources)
    known = [
        (place, nearness, figure, around)
        for place, (text, nearness) in enumerate(sources)
        for figure, around in _figures(text)
    ]
    results = []
    for number, (figure, around) in enumerate(own):
        if whole and figure.unit is None:
            continue
        bearing, others = [], []
        for place, nearness, other, there in known:
            alike = _alike(around, there)
            score = nearness + _SAME_THING * alike
            if backs(other, figure):
                bearing.append(score)
            elif alike and _same_kind(figure, other) and not any(
                # It belongs to another figure of the sentence, such as the other end of a range.
                backs(other, one) and _alike(words, there) >= alike
                for at, (one, words) in enumerate(own)
                if at != number
            ):  # fmt: skip
                others.append((score, place, other))
        nearest = max(others, key=lambda one: one[0], default=None)
        if bearing and (
            nearest is None or nearest[0] <= max(bearing) + _CLEARLY_NEARER or _rounded(figure, nearest[2])
        ):
            continue
        said = figure.bounded or figure.text
        if nearest is None:
            results.append(DifferingFigure(said, "", None))
        else:
            results.append(DifferingFigure(said, nearest[2].bounded or nearest[2].text, nearest[1]))
    return tuple(dict.fromkeys(results))


def _has_in_order(text: str, figures: Sequence[Quantity]) -> bool:
    """Whether a text has all of these figures, one after the other."""
    known = iter(split_at_quantities(text)[1])
    return all(any(backs(other, figure) for other in known) for figure in figures)


def _figures(text: str) -> list[tuple[Quantity, Mapping[str, float]]]:
    """The figures of a text, each with the words around it and their weights, 1 beside it."""
    pieces, figures = split_at_quantities(text)
    words = [_WORD_OR_SIGN.findall(piece.lower()) for piece in pieces]
    results: list[tuple[Quantity, Mapping[str, float]]] = []
    for number, figure in enumerate(figures):
        weights: dict[str, float] = {}
        before = [piece[::-1] for piece in reversed(words[: number + 1])]
        for side in (before, words[number + 1 :]):
            away = 0
            for beside, piece in enumerate(side):
                away += _APART * (beside > 0)
                for word in piece:
                    if word in _SEPARATORS:
                        away += _APART
                        continue
                    away += 1
                    for stem in content_words(word):
                        weights[stem] = max(weights.get(stem, 0.0), 1 / (1 + away / _HALF))
        results.append((figure, weights))
    return results


def _alike(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """How far the words around a figure stand around another one, 0 to 1."""
    shared = sum(weight * other[word] for word, weight in one.items() if word in other)
    return shared / max(sum(one.values()), 1e-9)


def _same_kind(one: Quantity, other: Quantity) -> bool:
    """Whether two figures may be two values of one thing: of one kind of unit, both years, or both bare numbers."""
    if one.unit is None or other.unit is None:
        years = [figure.whole and _FIRST_YEAR <= figure.value <= _LAST_YEAR for figure in (one, other)]
        return one.unit is other.unit and years[0] == years[1]
    return other.unit.is_kind_of(one.unit) and one.unit.rate == other.unit.rate


def _rounded(one: Quantity, other: Quantity) -> bool:
    """Whether two figures with units are so close that they may be one, rounded: 340 and 342."""
    first, second = (figure.value * figure.unit.factor if figure.unit else 0.0 for figure in (one, other))
    return one.unit is not None and abs(first - second) <= _ROUNDING * abs(second)


def opposed_words(sentence: str, source: str) -> tuple[Difference, ...]:
    """Words of a sentence in whose place the source has one that excludes them.

    Args:
        sentence: What was written.
        source: One or a few sentences about the same.
    """
    own, other = _tokens(sentence), _tokens(source)
    results = []
    for place, word in enumerate(own):
        alternatives = _ALTERNATIVES.get(word)
        if not alternatives:
            continue
        turned = _turned(own, place)
        alike = _SAME.get(word, frozenset()) | {word}
        # Where both sides are named, only words close by tell which is which.
        reach = _NEAR if alternatives & set(own) and alike & set(other) else _REACH
        around = _around(own, place, reach)

        def nearest(
            words: frozenset[str], *, negated: bool, around: frozenset[str] = around, reach: int = reach
        ) -> tuple[int, str]:
            """The most words in common around one of the words, and that word; (0, "") where there is none."""
            places = [at for at, token in enumerate(other) if token in words and _turned(other, at) == negated]
            return max(((len(around & _around(other, at, reach)) + 1, other[at]) for at in places), default=(0, ""))

        same = max(nearest(alike, negated=turned), nearest(alternatives, negated=not turned))
        against = max(nearest(alternatives, negated=turned), nearest(alike, negated=not turned))
        if against[0] > max(1 if reach == _REACH else 2, same[0]):
            source_word = against[1] if against[1] not in alike else f"{'' if turned else 'not '}{against[1]}"
            results.append(Difference(f"not {word}" if turned else word, source_word))
    return tuple(dict.fromkeys(results))


def other_places(sentence: str, source: str) -> tuple[Difference, ...]:
    """Places that a sentence names in whose stead the source, which does not name them, has others."""
    own, other = _tokens(sentence), _tokens(source)
    here, there = ({_PLACE[word]: word for word in words if word in _PLACE} for words in (own, other))
    missing = ", ".join(word for place, word in there.items() if place not in here)
    return tuple(Difference(word, missing) for place, word in here.items() if missing and place not in there)


def foreign_names(sentence: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Names inside a sentence that none of the sources has: places, people, models, acronyms."""
    known = " ".join(sources).casefold()
    names = dict.fromkeys(match[0] for match in _NAME.finditer(sentence))
    return tuple(
        name
        for name in names
        if name.casefold() not in _NO_NAMES and name.casefold().rstrip("s")[: max(4, len(name) - 3)] not in known
    )


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _turned(tokens: Sequence[str], place: int) -> bool:
    """Whether a negation stands right before a word: "did not increase", "no decrease"."""
    return tokens[place] not in _NEVER_TURNED and any(
        token in _NEGATIONS for token in tokens[max(0, place - 3) : place]
    )


def _around(tokens: Sequence[str], place: int, reach: int) -> frozenset[str]:
    near = [*tokens[max(0, place - reach) : place], *tokens[place + 1 : place + 1 + reach]]
    return content_words(" ".join(near))


Status = Literal["supported", "contradicted", "unsupported", "no claim"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""``unsupported``: nothing that was found bears the sentence, which may be true nevertheless."""
PASSAGES = 5
"""Number of passages compared with each sentence."""
SUPPORTED = 0.4
CONTRADICTED = 0.8
ABOUT = 0.5
SAME = 0.7
LONGEST_TEXT = 200_000
"""Characters."""

Overstated = Callable[[str, str], str | None]
"""From a sentence and the sentences of its source to what it says too surely, in words; None where it does not."""

_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|(?:[-*+\u2022]|\d{1,2}[.)])\s+)*")
_HEADING = re.compile(r"^\s*#{1,6}\s")
_POINTING = re.compile(
    r"(?:\S+\s+){0,6}?(?:it|its|they|their|them|this|these|those|such|he|she|both|the\s+(?:latter|former|same))\b", re.I
)
"""A word near the beginning that means what was said before."""
_TALK = re.compile(
    r"(?:i\b|i['’]m|we\s+hope|let\s+me|let['’]s|please|here\s+(?:is|are)|sure\b|of\s+course|certainly[!,]|thank|hello|hi\b|dear\b|"
    r"as\s+an\s+ai|feel\s+free|if\s+you\s+(?:would|want|need|have|like)|great\s+question|you\s+(?:can|may|might)\s+(?:also\s+)?)",
    re.IGNORECASE,
)
_YEAR_OF_A_WORK = re.compile(
    r"\b(?:1[89]|20)\d\d\s+(?=(?:study|paper|report|review|assessment|article|analysis|publication)\b)", re.IGNORECASE
)
_FEWEST_WORDS = 3
"""A sentence with fewer words of content and no quantity claims nothing that could be looked up."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one passage says about a sentence."""

    passage: str
    """Id of the passage."""
    citation: str
    """Where it stands, in words."""
    quotation: str
    """Its sentences nearest to the one checked, as they appear there."""
    similarity: float
    """Cosine of the nearest of them, -1 to 1."""
    confirms: float | None
    """Probability that the passage confirms the sentence; None where the scorer failed."""
    contradicts: float | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a language model said about the support of a sentence."""

    relation: Literal["supports", "contradicts", "settles nothing"] | None
    """None where the request failed."""
    reason: str
    quotation: str = ""
    quoted: bool = False
    """Whether the quotation appears in the passage that it names."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """One sentence of a text, and what was found about it."""

    text: str
    """As written, without the numbers that it cites."""
    paragraph: int
    """Number of its paragraph, from 0."""
    status: Status
    reason: str
    """Why it has its status, in one sentence."""
    evidence: Evidence | None = None
    """The passage that bears it best, or contradicts it; None where nothing near was found."""
    differing: tuple[Difference, ...] = ()
    """Quantities and words in whose place the evidence has others; an empty source where it has none."""
    overstated: str | None = None
    """How the sentence is surer than its source; None where it is not."""
    references: tuple[CheckedReference, ...] = ()
    support: float = 0.0
    """0 to 1, by which ``supported`` is decided; 0 for what claims nothing."""
    judgement: Judgement | None = None

    @property
    def wrong_references(self) -> tuple[CheckedReference, ...]:
        """References that point to nothing or cannot be any."""
        return tuple(one for one in self.references if one.status in ("invented", "malformed"))

    @property
    def marked(self) -> bool:
        """Whether a reader should look at it: contradicted, unsupported, overstated, or with a wrong reference."""
        doubtful = self.status in ("contradicted", "unsupported") or bool(self.differing)
        return doubtful or self.overstated is not None or bool(self.wrong_references)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where the statuses are divided; defaults from the seen half of docs/results/check_text.md."""

    supported: float = SUPPORTED
    """Least support of a supported sentence."""
    contradicted: float = CONTRADICTED
    """Least probability of a contradiction that is shown by no rule."""
    about: float = ABOUT
    """Least similarity of a sentence of a passage that speaks about the same."""
    same: float = SAME
    """Least similarity of one that says nearly the same; below, a supported sentence asks to be compared with it."""


class SupportJudge:
    """A language model asked whether passages support a sentence, contradict it or settle nothing."""

    def __init__(self, model: Generator, prompt: Prompt | None = None, *, max_tokens: int = 400) -> None:
        """Prepare; nothing is asked yet.

        Args:
            model: Answers under a JSON schema; one that is recorded keeps its answers.
            prompt: Template with ``statement``, ``before`` (the sentence before it, or nothing) and ``passages``
                (``number``, ``citation``, ``text``); the built-in ``check_text`` by default.
            max_tokens: Room for an answer.
        """
        self.name = model.name
        self.usage = Usage()
        """Usage of all requests so far."""
        self._model = model
        self._prompt = prompt or load_prompt("check_text")
        self._sampling = Sampling(max_tokens)

    def judge(
        self, asked: Sequence[tuple[str, str, Sequence[Passage]]], on_progress: Callable[[int], None] | None = None
    ) -> list[tuple[Judgement, Passage | None]]:
        """A judgement of each (sentence, sentence before it, passages), and the passage that it names."""
        requests = []
        for sentence, before, passages in asked:
            shown = [
                {"number": number, "citation": one.citation, "text": one.text}
                for number, one in enumerate(passages, start=1)
            ]
            rendered = self._prompt.render(statement=sentence, before=before, passages=shown)
            requests.append(
                GenerationRequest(
                    rendered.messages,
                    self._sampling,
                    object_schema(
                        {
                            "reasoning": {"type": "string", "maxLength": 600},
                            "relation": {"type": "string", "enum": list(_RELATIONS)},
                            "passage": {"type": "integer", "minimum": 0, "maximum": len(passages)},
                            "quotation": {"type": "string", "maxLength": 600},
                        }
                    ),
                    assistant_prefix=rendered.assistant_prefix,
                )
            )
        told = None if on_progress is None else (lambda _place, _answer: on_progress(1))
        answers = self._model.generate(requests, on_result=told) if requests else []
        for answer in answers:
            self.usage += answer.usage
        return [_judgement(answer, passages) for answer, (_, _, passages) in zip(answers, asked, strict=True)]


_RELATIONS = ("supports", "contradicts", "settles nothing")


def _judgement(answer: Completion, passages: Sequence[Passage]) -> tuple[Judgement, Passage | None]:
    if answer.error is not None:
        return Judgement(None, "", error=answer.error), None
    try:
        data = json.loads(answer.text)
        relation, number = data["relation"], int(data["passage"])
        reason, quotation = str(data["reasoning"]).strip(), str(data["quotation"]).strip()
    except (KeyError, TypeError, ValueError, RecursionError):
        return Judgement(None, "", error="The reply is not what was asked for."), None
    if relation not in _RELATIONS:
        return Judgement(None, reason, error="The reply is not what was asked for."), None
    named = passages[number - 1] if 0 < number <= len(passages) else None
    # The number may be wrong where the words are right.
    holder = next((one for one in (named, *passages) if one is not None and is_quoted(quotation, one.text)), None)
    return Judgement(relation, reason, quotation, holder is not None), holder or named


@dataclass(frozen=True, slots=True)
class _Claim:
    """A sentence on its way through the check."""

    text: str
    plain: str
    """What is compared: without references and addresses."""
    paragraph: int
    before: str
    references: tuple[CheckedReference, ...]
    numbers: tuple[int, ...]
    claims: bool

    @property
    def in_context(self) -> str:
        """With the sentence before it, where it means something that is said there: "It has risen since"."""
        return f"{self.before} {self.plain}" if _POINTING.match(self.plain) else self.plain


def check_sentences(
    text: str,
    group: "CollectionGroup | None",
    *,
    scorer: RelationScorer,
    encoder: Encoder | None = None,
    passages: Mapping[int, Passage] | None = None,
    judge: SupportJudge | None = None,
    overstated: Overstated | None = None,
    ask: Callable[[str], bool | None] | None = None,
    k: int = PASSAGES,
    thresholds: Thresholds = Thresholds(),
    on_progress: Callable[[int], None] | None = None,
) -> tuple[CheckedSentence, ...]:
    """Check every sentence of a text.

    Args:
        text: Plain text or Markdown; a list of references at its end is looked up, not checked.
        group: Collections that are searched; None looks at ``passages`` alone.
        scorer: Tells what a passage does to a sentence.
        encoder: Compares sentences; by default the group's.
        passages: What numbers in brackets name, where the text's writer was given passages. A sentence is compared with
            those that it cites beside what is found; with all of them where there is no group.
        judge: Decides support in place of the scorer; where it fails, the scorer does.
        overstated: Tells where a sentence is surer than its source.
        ask: Asks for DOIs and addresses (:func:`~climassay.grounding.references.address_answers`); nothing by default.
        k: Number of passages compared with each sentence.
        thresholds: Where the statuses are divided.
        on_progress: Called with 1 for each sentence done.

    Raises:
        InputError: The text is empty or too long, or there is nothing to compare it with.
    """
    if not text.strip():
        raise InputError("The text is empty.")
    if len(text) > LONGEST_TEXT:
        raise InputError(
            f"The text has {len(text):,} characters, and the limit is {LONGEST_TEXT:,}: check it in parts."
        )
    given = dict(passages or {})
    if group is None and not given:
        raise InputError("There is nothing to compare the text with: name a collection.")
    reader = encoder or (group.encoder if group else None)
    if reader is None:
        raise InputError("An encoder is needed to compare sentences.")
    claims = _claims(text, group, given, ask)
    result = _candidates(claims, group, given, k)
    evidence = _evidence(claims, result, scorer, reader)
    checked = []
    for claim, near in zip(claims, evidence, strict=True):
        checked.append(_decided(claim, near, thresholds, overstated))
        if on_progress is not None and judge is None:
            on_progress(1)
    if judge is not None:
        places = [
            place for place, (claim, near) in enumerate(zip(claims, result, strict=True)) if claim.claims and near
        ]
        asked = [(claims[place].plain, claims[place].before, result[place]) for place in places]
        for place, (said, passage) in zip(places, judge.judge(asked, on_progress), strict=True):
            checked[place] = _judged(checked[place], said, passage, evidence[place])
    return tuple(checked)


def _claims(
    text: str,
    group: "CollectionGroup | None",
    given: Mapping[int, Passage],
    ask: Callable[[str], bool | None] | None,
) -> list[_Claim]:
    listed = ReferenceList.split(text)
    numbered = {number: passage.citation for number, passage in given.items()}
    checker = ReferenceChecker(() if group is None else group.documents(), numbered, listed.numbered, ask)
    claims: list[_Claim] = []
    before = ""
    paragraphs = [line for line in listed.body.splitlines() if line.strip()]
    for paragraph, line in enumerate(paragraphs):
        heading = bool(_HEADING.match(line))
        shown = re.sub(r"\*\*|__|`", "", _MARKUP.sub("", line))
        for sentence in read_citations(open_links(shown), checker.known):
            if not re.search(r"\w", sentence.text):
                continue
            plain = _YEAR_OF_A_WORK.sub("", without_addresses(sentence.plain))
            references = checker.check(sentence)
            claims.append(
                _Claim(
                    sentence.text, plain, paragraph, before, references, sentence.numbers,
                    not heading and is_claim(sentence, plain),
                )
            )  # fmt: skip
            before = plain
    return claims


def is_claim(sentence: CitingSentence, plain: str) -> bool:
    """Whether a sentence says something about the world that could be looked up.

    Questions, talk to the reader, bare answers, introductions of lists and words on what the sources lack do not.
    """
    if plain.endswith(("?", ":")) or _TALK.match(plain) or is_bare_answer(plain) or states_absence(plain):
        return False
    return len(content_words(plain)) >= _FEWEST_WORDS or bool(quantities(sentence.plain))


def _candidates(
    claims: Sequence[_Claim], group: "CollectionGroup | None", given: Mapping[int, Passage], k: int
) -> list[list[Passage]]:
    """For each claim the passages that it is compared with, those that it cites first."""
    wanted = [claim for claim in claims if claim.claims]
    queries = [one.in_context for one in wanted]
    hits = iter(group.search_many(queries, k=k)) if group is not None and queries else iter(())
    results: list[list[Passage]] = []
    before: list[Passage] = []
    for claim in claims:
        if not claim.claims:
            results.append([])
            continue
        cited = [given[number] for number in claim.numbers if number in given]
        near = [hit.passage for hit in next(hits)] if group is not None else list(given.values())
        # A text that dwells on a subject often dwells in the same passage.
        results.append(list({one.id: one for one in (*cited, *near, *before)}.values()))
        before = near[:2]
    return results


@dataclass(frozen=True, slots=True)
class _Near:
    """A passage beside a claim."""

    evidence: Evidence
    passage: Passage
    covered: float
    """Share of the claim's words of content that the nearest sentences have."""
    lacking: float
    """Share of the claim's quantities that the passage does not have."""
    sentences: Sequence[tuple[str, float]]
    """Sentences of the passage, each with its nearness to the claim: cosine plus the share of the claim's words."""


def _evidence(
    claims: Sequence[_Claim], found: Sequence[Sequence[Passage]], scorer: RelationScorer, encoder: Encoder
) -> list[list[_Near]]:
    """For each claim its passages with their nearest sentences, the best first."""
    parts = {one.id: split_sentences(one.text) or [one.text] for near in found for one in near}
    texts = list(
        dict.fromkeys(
            text
            for claim, near in zip(claims, found, strict=True)
            if near
            for text in (claim.plain, claim.in_context, *(sentence for one in near for sentence in parts[one.id]))
        )
    )
    vectors = dict(zip(texts, encoder.encode(texts), strict=True)) if texts else {}
    pairs = [(one.text, claim.plain) for claim, near in zip(claims, found, strict=True) for one in near]
    related = iter(scorer.relations(pairs) if pairs else [])
    ranked = []
    for claim, near in zip(claims, found, strict=True):
        read = []
        for one in near:
            relation = next(related)
            sentences = parts[one.id]
            known = np.stack([vectors[sentence] for sentence in sentences])
            cosines = np.maximum(known @ vectors[claim.plain], known @ vectors[claim.in_context])
            quotation, covered = _nearest(claim.plain, sentences, cosines)
            lacking = len(foreign_quantities(claim.plain, [one.text])) / max(1, len(quantities(claim.plain)))
            shares = (None, None) if relation is None else (relation.confirms, relation.contradicts)
            read.append(
                _Near(
                    Evidence(one.id, one.citation, quotation, float(cosines.max()), *shares),
                    one,
                    covered,
                    lacking,
                    tuple(
                        (text, float(cosine) + max(_share(claim.plain, text), _share(claim.in_context, text)))
                        for text, cosine in zip(sentences, cosines, strict=True)
                    ),
                )
            )
        ranked.append(sorted(read, key=lambda one: one.covered + one.evidence.similarity - one.lacking, reverse=True))
    return ranked


def _nearest(claim: str, sentences: Sequence[str], cosines: np.ndarray) -> tuple[str, float]:
    """The sentence nearest to a claim, with its neighbour where that has more of the claim's words."""

    def share(text: str) -> float:
        return _share(claim, text)

    best = max(range(len(sentences)), key=lambda place: float(cosines[place]) + share(sentences[place]))
    chosen = sentences[best]
    wider = [" ".join(sentences[low : low + 2]) for low in (best - 1, best) if 0 <= low < len(sentences) - 1]
    longer = max(wider, key=share, default=chosen)
    # A neighbour belongs to it where it brings words that the sentence itself lacks.
    return (longer, share(longer)) if share(longer) >= share(chosen) + 0.15 else (chosen, share(chosen))


def _share(claim: str, text: str) -> float:
    """Share of a claim's words of content that a text has."""
    words = content_words(claim)
    return len(words & content_words(text)) / max(1, len(words))


def _decided(
    claim: _Claim, near: Sequence[_Near], limits: Thresholds, overstated: Overstated | None
) -> CheckedSentence:
    """A sentence with its status by scorer and rules."""
    bare = CheckedSentence(claim.text, claim.paragraph, "no claim", "It claims nothing that could be looked up.",
                           references=claim.references)  # fmt: skip
    if not claim.claims:
        return bare
    about = [one for one in near if one.evidence.similarity >= limits.about]
    if not about:
        closest = near[0].evidence if near else None
        return replace(bare, status="unsupported", reason="No passage speaks about it.", evidence=closest)
    best = about[0]
    # How far a passage bears a claim, 0 to 1: nearness, words in common and entailment, in equal parts.
    support = (max(0.0, best.evidence.similarity) + best.covered + (best.evidence.confirms or 0.0)) / 3
    sources = [(one, text, nearness) for one in about for text, nearness in one.sentences]
    otherwise = differing_figures(claim.plain, [(text, nearness) for _, text, nearness in sources])
    figures = [Difference(one.said, one.source) for one in otherwise]
    words = (*opposed_words(claim.plain, best.evidence.quotation), *other_places(claim.plain, best.evidence.quotation))
    names = foreign_names(claim.plain, [f"{one.passage.text} {one.evidence.citation}" for one in about])
    differing = (*figures, *words, *(Difference(name, "") for name in names))
    shown = replace(
        bare,
        evidence=best.evidence,
        differing=differing,
        support=support,
        overstated=overstated(claim.plain, best.evidence.quotation) if overstated else None,
    )
    against = [one for one in differing if one.source]
    if against:
        spoken = next((sources[one.place] for one in otherwise if one.place is not None), None)
        if spoken is not None and not words:
            # The sentence that has the other figure.
            shown = replace(shown, evidence=replace(spoken[0].evidence, quotation=spoken[1]))
        told = "; ".join(f"“{one.said}” in the text, “{one.source}” in the passage" for one in against)
        return replace(shown, status="contradicted", reason=f"The passage says otherwise: {told}.")
    if names or figures:
        told = ", ".join(one.said for one in differing)
        return replace(shown, status="unsupported", reason=f"The passages do not have {told}.")
    worst = max(about, key=lambda one: one.evidence.contradicts or 0.0)
    if (worst.evidence.contradicts or 0.0) >= limits.contradicted and support < limits.supported:
        said = "A passage on the same subject probably says the opposite."
        return replace(shown, status="contradicted", reason=said, evidence=worst.evidence)
    if support >= limits.supported:
        same = best.evidence.similarity >= limits.same
        said = "A passage says nearly the same." if same else "A passage supports it in other words: compare the two."
        return replace(shown, status="supported", reason=said)
    return replace(shown, status="unsupported", reason="Passages mention the subject, but none says this.")


def _judged(
    checked: CheckedSentence, said: Judgement, passage: Passage | None, near: Sequence[_Near]
) -> CheckedSentence:
    """A sentence with what a model said in place of the scorer's word."""
    if said.relation is None:
        return replace(checked, judgement=said)
    evidence = next((one.evidence for one in near if passage is not None and one.passage.id == passage.id), None)
    if evidence is not None and said.quoted:
        evidence = replace(evidence, quotation=said.quotation)
    shown = replace(
        checked, judgement=said, reason=said.reason or checked.reason, evidence=evidence or checked.evidence
    )
    if said.relation == "settles nothing":
        return replace(shown, status="unsupported")
    if not said.quoted:
        unfounded = "The judge's quotation is in no passage, so its judgement is ignored."
        return replace(shown, status="unsupported", reason=unfounded)
    return replace(shown, status="supported" if said.relation == "supports" else "contradicted")


def status_counts(sentences: Sequence[CheckedSentence]) -> dict[Status, int]:
    """How many sentences have each status, zeros included."""
    counts = Counter(one.status for one in sentences)
    return {status: counts[status] for status in STATUSES}


def sentence_data(sentence: CheckedSentence) -> dict[str, Any]:
    """A sentence as JSON can write it."""
    data = asdict(sentence)
    data["differing"] = [one._asdict() for one in sentence.differing]
    return {**data, "marked": sentence.marked}
