"""Does a passage entail a statement: confirm it, rather than contradict it or leave it open? What two texts show of it.

Features are of a premise and a statement that were not read together. An encoder tells whether two texts are about the
same, hardly whether they say the same: "rises" and "falls", with and without a "not", lie close together. So its
cosines appear beside what rules can see: words the premise has, negations, words of direction and their opposites,
numbers.

Labelled contradictions about climate are few (482 in Climate-FEVER). Turning a direction round, adding or taking away a
negation, or changing a number makes contradictions of any sentence, to teach and to test what contradicts a passage.

References:
    Conneau et al. (2017), Supervised Learning of Universal Sentence Representations, EMNLP, section 3 (u, v, |u - v|,
    u * v).
    MacCartney and Manning (2008), Modeling Semantic Containment and Exclusion in Natural Language Inference, COLING
    (what negations and opposites do to an entailment).
    Kryscinski et al. (2020), Evaluating the Factual Consistency of Abstractive Text Summarization, EMNLP, section 3.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.documents import excerpt, split_sentences
from climassay.models.contract import BLANK, Encoder, OptionRequest, OptionScorer, option_probabilities
from climassay.prompts import Prompt, load_prompt, profile_of

_OPPOSITES = """
increase:decrease increases:decreases increased:decreased increasing:decreasing rise:fall rises:falls rising:falling
rose:fell risen:fallen grow:shrink grows:shrinks growing:shrinking grew:shrank warm:cool warms:cools warmer:cooler
warming:cooling warmed:cooled hot:cold hotter:colder hottest:coldest higher:lower highest:lowest high:low more:less
most:least gain:loss gains:losses strengthen:weaken strengthens:weakens strengthening:weakening stronger:weaker
strong:weak expand:contract expands:contracts expanding:contracting wet:dry wetter:drier before:after faster:slower
larger:smaller largest:smallest large:small greater:lesser great:slight above:below positive:negative
accelerate:slow accelerating:slowing accelerated:slowed thicker:thinner early:late earlier:later upward:downward
melt:freeze melts:freezes melting:freezing long:short longer:shorter many:few always:never absorb:emit absorbs:emits
advance:retreat advances:retreats advancing:retreating summer:winter maximum:minimum worse:better
improve:worsen improves:worsens exacerbate:alleviate likely:unlikely possible:impossible important:unimportant
significant:insignificant natural:human natural:artificial deep:shallow deeper:shallower wider:narrower
acidic:alkaline stable:unstable dependent:independent
"""
OPPOSITES: dict[str, str] = {}
"""Words of opposite direction, both ways."""
for _pair in _OPPOSITES.split():
    _one, _other = _pair.split(":")
    OPPOSITES.setdefault(_one, _other)
    OPPOSITES.setdefault(_other, _one)

_DIRECTION = re.compile(rf"\b(?:{'|'.join(sorted(OPPOSITES, key=len, reverse=True))})\b", re.IGNORECASE)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|may|might|should|must|does|do|did)\b(?!\s+(?:not|n't)\b)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|may|might|should|must|does|do|did)(?:\s+not|n['’]t)\b"
    r"|\bcannot\b",
    re.IGNORECASE,
)
_QUANTITY = re.compile(r"(?<![\w.,–-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w,.–-]*\d)")
_TAIL = re.compile(r",?\s+(?:which|who|where|because|although|while|whereas|and thus|so that|thereby)\b")
_FACTORS = (0.2, 0.5, 2.0, 3.0, 10.0)


def reverse_direction(sentence: str, generator: np.random.Generator) -> str | None:
    """One word of direction replaced by its opposite; None where there is none."""
    results = list(_DIRECTION.finditer(sentence))
    if not results:
        return None
    match = results[int(generator.integers(len(results)))]
    word = OPPOSITES[match[0].lower()]
    written = word.capitalize() if match[0][:1].isupper() else word
    return sentence[: match.start()] + written + sentence[match.end() :]


def negate(sentence: str, generator: np.random.Generator) -> str | None:
    """The first negated verb affirmed, or else one auxiliary verb negated; None where there is no such verb."""
    denied = _DENIED.search(sentence)
    if denied:
        verb: str = denied[1] or "can"
        return sentence[: denied.start()] + verb + sentence[denied.end() :]
    result = list(_AUXILIARY.finditer(sentence))[:2]
    if not result:
        return None
    match = result[int(generator.integers(len(result)))]
    return f"{sentence[: match.end()]} not{sentence[match.end() :]}"


def change_number(sentence: str, generator: np.random.Generator) -> str | None:
    """One number multiplied, years moved by decades; None where there is none."""
    results = list(_QUANTITY.finditer(sentence))
    if not results:
        return None
    match = results[int(generator.integers(len(results)))]
    written = match[0]
    value = float(written.replace(",", ""))
    if "." not in written and "," not in written and 1500 <= value <= 2100:
        changed = str(int(value) + int(generator.choice([-50, -20, 20, 50])))
    else:
        decimals = len(written.partition(".")[2])
        product = value * float(generator.choice(_FACTORS))
        changed = f"{product:.{decimals}f}" if decimals or product >= 1 else f"{product + 1:.0f}"
    if changed == written:
        return None
    return sentence[: match.start()] + changed + sentence[match.end() :]


def cut_tail(sentence: str) -> str | None:
    """What comes before a clause that adds to it; the sentence says this too. None where there is no such clause."""
    match = _TAIL.search(sentence)
    if match is None or len(sentence[: match.start()].split()) < 5:
        return None
    return sentence[: match.start()].rstrip(" ,;") + "."


CONTRADICTING: tuple[Callable[[str, np.random.Generator], str | None], ...] = (
    reverse_direction, negate, change_number,
)  # fmt: skip
"""Changes after which a sentence says the contrary of what it said."""


def contradict(sentence: str, generator: np.random.Generator) -> str | None:
    """The sentence after one of the changes in :data:`CONTRADICTING` that apply; None where none does."""
    for place in generator.permutation(len(CONTRADICTING)):
        changed: str | None = CONTRADICTING[int(place)](sentence, generator)
        if changed is not None:
            return changed
    return None


FloatArray = NDArray[np.float64]

ENTAILED = 0.5
"""Probability from which a citation counts as faithful: entailment is then likelier than all else together."""

NAMES = (
    "cosine", "nearest sentence", "covered", "covering", "same words",
    "one negated", "both negated", "negated and near", "opposite direction", "opposite and near",
    "same direction", "new numbers", "shared numbers", "new numbers and near", "statement longer",
)  # fmt: skip
"""Names of the features of :func:`pair_features`, in order."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _words(
    """
    no not never none nor neither without cannot hardly false myth incorrect wrong contrary despite fail fails failed
    n't n’t
    """
)
_TOKEN = re.compile(r"n['’]t\b|[a-z]+?(?=n['’]t\b)|[a-z]+")
_REACH = 4
"""Words before a word of direction in which a negation turns it round ("have not shown a decrease")."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FUNCTION_WORDS = _words(
    """
    the a an of in on at by to for from with and or as is are was were be been being has have had it its this that
    these those which who than then there their they we our can could will would may might must should do does did
    not no nor so such if because while when where how what why also more most less least very into about over under
    between during after before through per
    """
)
_ENDINGS = re.compile(r"(?:ations?|ings?|ed|es|s|ly|e)$")


class PairFeatures(NamedTuple):
    """Features of pairs of a premise and a statement."""

    named: FloatArray
    """Shape [pairs, features]; see :data:`NAMES`."""
    vectors: FloatArray
    """Shape [pairs, 4 width]: u, v, |u - v| and u * v of the vectors of premise and statement."""

    def blocks(self, *, vectors: bool, places: NDArray[np.int64] | None = None) -> list[FloatArray]:
        """The named ones, behind those of the vectors where they are wanted.

        Args:
            vectors: Whether they are wanted.
            places: Places of pairs, shape [chosen]; None: all.

        Returns:
            Each of shape [pairs, features].
        """
        return [block if places is None else block[places] for block in (self.vectors, self.named)[not vectors :]]


def pair_features(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> PairFeatures:
    """Features of pairs of (premise, statement); every different text is encoded once."""
    sentences = {premise: split_sentences(premise) or [premise] for premise, _ in pairs}
    texts = dict.fromkeys(text for premise, said in pairs for text in (premise, *sentences[premise], said))
    places = {text: place for place, text in enumerate(texts)}
    vectors = encoder.encode(list(texts)).astype(np.float64) if texts else np.zeros((0, encoder.width))
    rows = np.zeros((len(pairs), len(NAMES)))
    for number, (premise, said) in enumerate(pairs):
        own = vectors[places[said]]
        each = vectors[[places[sentence] for sentence in sentences[premise]]] @ own
        nearest = sentences[premise][int(each.argmax())]
        rows[number] = _features(premise, nearest, said, float(vectors[places[premise]] @ own), float(each.max()))
    first = vectors[[places[premise] for premise, _ in pairs]]
    second = vectors[[places[said] for _, said in pairs]]
    return PairFeatures(rows, np.concatenate([first, second, np.abs(first - second), first * second], axis=1))


def _features(premise: str, nearest: str, said: str, cosine: float, near: float) -> tuple[float, ...]:
    words, given = content_words(said), content_words(premise)
    shared = len(words & given)
    covered, covering = shared / max(1, len(words)), shared / max(1, len(given))
    negated, denied = resolved(nearest).negated, resolved(said).negated
    one, both = float(negated != denied), float(negated and denied)
    # Words of direction in the statement: whether the premise has an opposite instead, and whether it has the same.
    premised = resolved(premise).words
    directed = {word for word in resolved(said).words if word in OPPOSITES}
    opposite = float(any(OPPOSITES[word] in premised and word not in premised for word in directed))
    same = float(bool(directed & premised))
    numbers, known = (set(_NUMBER.findall(text)) for text in (said, premise))
    new, alike = float(bool(numbers - known)), float(bool(numbers & known))
    longer = np.log((1 + len(words)) / (1 + len(given)))
    top = max(cosine, near)
    return (
        cosine, top, covered, covering, float(words == given),
        one, both, one * top, opposite, opposite * top,
        same, new, alike, new * top, float(longer),
    )  # fmt: skip


def content_words(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(
        _ENDINGS.sub("", word) if len(word) > 4 else word
        for word in _WORD.findall(text.lower())
        if word not in _FUNCTION_WORDS
    )


class Resolved(NamedTuple):
    """The words of a text, those of direction turned round where a negation stands shortly before them."""

    words: frozenset[str]
    negated: bool
    """An odd number of other negations."""


def resolved(text: str) -> Resolved:
    """What "did not decrease" says in words without a negation: increase."""
    tokens = _TOKEN.findall(text.lower())
    negations = [place for place, token in enumerate(tokens) if token in _NEGATIONS]
    left, words = set(negations), set()
    for place, token in enumerate(tokens):
        before = [at for at in negations if at in left and place - _REACH <= at < place]
        if token in OPPOSITES and before:
            left.discard(before[-1])
            token = OPPOSITES[token]
        words.add(token)
    return Resolved(frozenset(words), len(left) % 2 == 1)


RELATIONS = ("confirms", "contradicts", "leaves open")
"""What a passage does to a statement, in the order of the options."""
OPTIONS = (" confirms the statement", " contradicts the statement", " leaves the statement open")
"""How each relation is said after the prompt's "The passage"; parallel, so that none is favoured for its length."""
PREMISE_WORDS = 120
"""Maximum number of words of a premise that go into the prompt."""


class Relations(NamedTuple):
    """Probabilities of what a premise does to a statement, summing to 1; in the order of :data:`RELATIONS`."""

    confirms: float
    contradicts: float
    leaves_open: float

    @property
    def supports(self) -> float:
        """P(SUPPORTS) where only SUPPORTS and REFUTES are asked for; a half where the premise says nothing at all."""
        decided = self.confirms + self.contradicts
        return self.confirms / decided if decided > 0 else 0.5


class Entailment(Protocol):
    """Anything that tells how far premises entail statements."""

    @property
    def name(self) -> str:
        """Name for reports."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails statement) for each pair of (premise, statement), in order.

        Returns:
            0 to 1; None where the call failed.
        """


@runtime_checkable
class RelationScorer(Entailment, Protocol):
    """A scorer that also tells a contradiction from a premise that says nothing."""

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations for each pair of (premise, statement), in order; None where it failed.

        ``relations(pairs)[i].confirms == score(pairs)[i]``.
        """


def supports(scorer: Entailment, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """P(SUPPORTS) rather than REFUTES of each pair of (premise, statement), in order; None where the call failed.

    A scorer that does not tell contradictions from open questions gives its P(premise entails statement).
    """
    if isinstance(scorer, RelationScorer):
        return [None if result is None else result.supports for result in scorer.relations(pairs)]
    return scorer.score(pairs)


class PromptedEntailment:
    """Entailment as a question to a language model, answered by the probabilities of three answers.

    Only the part of a premise that is nearest to the statement is put before the model (:func:`nearest_parts`).

    With ``calibrated``, the answers' probabilities are divided by those that the model gives when premise and statement
    say nothing, and normalised: what it prefers before it has read anything is taken out.

    The bundled model cannot do it: on 300 evidence sentences of Climate-FEVER (75 support their claim) it finds the
    relation in 10.7% of the cases (95% interval 7.7 to 14.7; 25.0% without calibration, 20.4 to 30.2, where it always
    says "confirms"), a constant answer in 67.7%; its probability of support ranks no better than chance (AUROC 0.49,
    0.50 without calibration). Take a larger model.

    References:
        Zhao et al. (2021), Calibrate Before Use, ICML, section 5 (contextual calibration).
        Thorne et al. (2018), FEVER, NAACL (the three relations).
    """

    def __init__(
        self,
        model: OptionScorer,
        *,
        calibrated: bool | None = None,
        encoder: Encoder | None = None,
        prompt: Prompt | None = None,
    ) -> None:
        """Prepare; no model is asked yet.

        Args:
            model: Weighs the answers.
            calibrated: Whether to take out what the model prefers without content; by default as its profile says.
            encoder: Finds the part of a long premise that is nearest to the statement; None does it by shared words.
            prompt: Template of the question with the values ``premise`` and ``statement``; the built-in
                ``entailment`` by default.
        """
        self.name = f"{model.name}, prompted"
        self._model = model
        self._calibrated = profile_of(model).calibrated if calibrated is None else calibrated
        self._encoder = encoder
        self._prompt = prompt or load_prompt("entailment")

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails statement) for each pair; see :class:`Entailment`."""
        return [None if shares is None else shares[0] for shares in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations for each pair; see :class:`RelationScorer`."""
        result = prompted_shares(self._model, self._prompt, ("premise", "statement"), OPTIONS, pairs,
                                calibrated=self._calibrated, words=PREMISE_WORDS, encoder=self._encoder)  # fmt: skip
        return [None if shares is None else Relations(*shares) for shares in result]


def prompted_shares(
    model: OptionScorer,
    prompt: Prompt,
    names: tuple[str, str],
    options: tuple[str, ...],
    pairs: Sequence[tuple[str, str]],
    *,
    calibrated: bool,
    words: int,
    encoder: Encoder | None,
) -> list[tuple[float, ...] | None]:
    """Probabilities of the options for each pair of (premise, statement), in order; None where the call failed.

    ``names`` are what the template calls premise and statement. Premises are cut to the part of so many ``words`` that
    is nearest to the statement; ``calibrated`` divides by the probabilities of a prompt without content (Zhao et al.
    2021).
    """
    if not pairs:
        return []
    parts = nearest_parts(pairs, words=words, encoder=encoder)
    blanks = [(BLANK, BLANK)] * calibrated
    requests = []
    for part, statement in [*blanks, *((part, said) for part, (_, said) in zip(parts, pairs, strict=True))]:
        rendered = prompt.render(**{names[0]: part, names[1]: statement})
        requests.append(OptionRequest(rendered.messages, options, rendered.assistant_prefix))
    answers = model.option_logprobs(requests)
    blank = answers[0] if calibrated else None
    # Without the content-free answer nothing can be calibrated: an uncalibrated score among the others would not be
    # comparable, so all of them are failures. Answers that were generated are not calibrated at all.
    if blank is not None and blank.error is not None and not blank.is_named:
        return [None] * len(pairs)
    asked = answers[1:] if calibrated else answers
    return [None if one.error is not None else option_probabilities(one, blank) for one in asked]


def nearest_parts(
    pairs: Sequence[tuple[str, str]], *, words: int = PREMISE_WORDS, encoder: Encoder | None = None
) -> list[str]:
    """The sentences of each premise that are nearest to its statement, in the premise's order.

    Sentences are taken from the most similar one on, as long as they fit; the most similar one always, cut to ``words``
    where it alone is longer; gaps are marked. A premise that fits is returned as it is. Every text is encoded once.

    Args:
        pairs: Pairs of (premise, statement).
        words: Maximum number of words of each.
        encoder: Similarity is the cosine of its vectors; None: the share of the statement's words that a sentence has,
            words that occur in fewer sentences of the premise counting more (inverse document frequency).
    """
    long = {premise for premise, _ in pairs if len(premise.split()) > words}
    sentences = {premise: split_sentences(premise) for premise in sorted(long)}
    if encoder is None:
        nearness = [_shared_words(sentences[p], s) if p in long else None for p, s in pairs]
    else:
        texts = dict.fromkeys(
            text for premise, statement in pairs if premise in sentences for text in (*sentences[premise], statement)
        )
        places = {text: place for place, text in enumerate(texts)}
        vectors = encoder.encode(list(texts)).astype(np.float64)
        nearness = [
            vectors[[places[sentence] for sentence in sentences[premise]]] @ vectors[places[statement]]
            if premise in sentences
            else None
            for premise, statement in pairs
        ]
    return [
        premise if values is None else excerpt(sentences[premise], values, words)
        for (premise, _), values in zip(pairs, nearness, strict=True)
    ]


def _shared_words(sentences: Sequence[str], statement: str) -> NDArray[np.float64]:
    """Weight of the statement's words that each sentence has [sentences]."""
    bags = [set(re.findall(r"\w+", sentence.lower())) for sentence in sentences]
    nearness = np.zeros(len(sentences))
    for word in sorted(set(re.findall(r"\w+", statement.lower()))):
        has = np.array([word in bag for bag in bags])
        nearness[has] += math.log(1 + len(bags) / max(1, int(has.sum())))
    return nearness
