"""The finer metric: which facts of an answer the reference supports, and which of the reference's it covers.

An answer that is true and beside the point scores high on factual accuracy, as the paper's authors note of their
example of Mars (ClimaQA, appendix A.2.3). Here reference and answer are cut into statements, and each is held against
the other side.

Statements are cut by rules on words, without a parser and the same every time: after a semicolon, before "because",
", which" and ", but", where ", and" joins two clauses or two verbs of one subject, and before a participle that adds a
consequence (", increasing ..."). A clause without a subject gets that of the clause it belongs to. Conditions
("without ...", "if ...") stay with what they condition, and a negation with its verb: nothing is cut that would say
more, or the contrary, once it stands alone.

References:
    Min et al. (2023), FActScore, EMNLP, section 3 (atomic facts; there by a language model).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from climassay.corpus.documents import split_sentences
from climassay.errors import InputError
from climassay.metrics.entailment import Relations, RelationScorer
from climassay.metrics.factual_accuracy import scorer_name
from climassay.metrics.registry import Answered, Batch, metric
from climassay.models.contract import Encoder


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_AUXILIARY = (
    r"(?:is|are|was|were|has|have|had|can|could|will|would|may|might|must|should|does|do|did|cannot"
    r"|(?:is|are|was|were|has|have|had|does|do|did|could|would|should)n['’]t)"
)
_FINITE_STEMS = _words(
    """
    absorb accelerat affect allow alter amount appear balanc becom cause chang coincid come compris condens consist
    contain contribut control cool creat decreas depend deposit determin driv emit evaporat exceed expand explain fall
    flow follow form freez go grow happen hold impact impl includ increas indicat influenc intensif involv keep lead
    lie limit lower maintain make mean melt mov occur oxidis oxidiz play prevent produc promot provid rais range
    reach receiv reduc reflect releas remain remov requir respond result ris scatter show shrink shift slow span
    stabilis stabiliz stay stem store strengthen sublimat suggest supply sustain tak tend transport trap turn uptak
    vari warm weaken worsen
    """
)
_FINITE = rf"(?:{'|'.join(sorted(_FINITE_STEMS))})(?:s|es|ies|ed|ied)"
_PAST = r"(?:became|came|drove|fell|froze|gave|grew|held|kept|lay|led|made|meant|rose|shrank|stood|took|went|ran|leads)"
_VERB = rf"(?:{_AUXILIARY}|{_FINITE}|{_PAST})"
_ADVERBS = r"(?:(?:also|then|thus|therefore|hence|so|in turn|thereby|consequently|even|instead|still|only|\w+ly)\s+)*"

_FIND_VERB = re.compile(rf"\b{_VERB}\b", re.IGNORECASE)
_STARTS_WITH_VERB = re.compile(rf"{_ADVERBS}{_VERB}\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|never|no|nor|neither|cannot)\b|n['’]t\b", re.IGNORECASE)

_CLAUSE = re.compile(
    r"\s*;\s+"
    r"|,?\s+(?=because\b(?!\s+of\b))"
    r"|,?\s+(?=(?:whereas|although|though)\b)"
    r"|,\s+(?=while\b)"
    r"|,\s+(?=(?:but|yet|so|and|thus|therefore|hence)\b)"
    r"|,\s+(?=(?:(?:in|of|from|at|by)\s+)?which\b)"
    r"|,\s+(?=(?:(?:thereby|thus|further|in turn)\s+)?[a-z]{3,}ing\b)"
    r"|\s+(?=and\b)"
)
_LINK = re.compile(
    r"(?:because|whereas|although|though|while|but|yet|so that|so|and|thus|therefore|hence|thereby|further|in turn"
    r"|as a result|however|instead|moreover|furthermore|in addition|additionally|consequently|for example"
    r"|for instance|in contrast|on the other hand|conversely|similarly)\b,?\s*",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(r"(?:(?:thereby|thus|further|in turn)\s+)?(?P<word>[a-z]{3,}ing)\b")
_NOT_PARTICIPLES = _words(
    """
    during including regarding concerning following according depending owing considering excluding being having
    warming cooling spring evening morning string something anything nothing everything
    """
)
_CONDITION = r"(?:if|when|by|without|with|after|before|under|during|in|as|at|for|once)\b"
_DETERMINED = re.compile(r"(?:the|this|these|that|those|a|an|more|less|most|global|its|their)\b", re.IGNORECASE)
"""How a subject mostly begins, rather than one more thing in a list."""
_NEAR = 4
"""Maximum number of words between a bare "and" and the verb of the clause that it opens."""
_PRONOUN = re.compile(r"(?:it|they)\s+", re.IGNORECASE)
_SHORTEST = 2
"""Least words of a statement."""


def split_facts(text: str) -> tuple[str, ...]:
    """Statements of a text, in its order, each a sentence that can stand alone.

    Example:
        "Cold water, which holds more gas, sinks and carries carbon down." gives "Cold water sinks ...": see the tests
        for what the rules do and leave.
    """
    results: list[str] = []
    subject = ""
    for sentence in split_sentences(" ".join(text.split())):
        # A word that links it to the sentence before goes, and a pronoun becomes the subject of that one.
        link = _LINK.match(sentence)
        plain = sentence[link.end() :] if link and link[0].rstrip().endswith(",") else sentence
        pronoun = _PRONOUN.match(plain)
        if pronoun and subject and _STARTS_WITH_VERB.match(plain, pronoun.end()):
            plain = f"{subject} {plain[pronoun.end() :]}"
        statements, subject = _of_sentence(plain)
        results += statements
    return tuple(dict.fromkeys(results))


def _of_sentence(sentence: str) -> tuple[list[str], str]:
    """Statements of a sentence, and the subject of its first clause."""
    clauses = _clauses(sentence.rstrip(" .!?"))
    if not clauses:
        return [], ""
    subject = _subject(clauses[0])
    statements = clauses[:1]
    for before, clause in pairwise(clauses):
        said = _standing_alone(clause, subject, before)
        if said is None:
            # It cannot stand alone: it stays with the clause before it.
            statements[-1] = f"{statements[-1]}{'' if clause.startswith(',') else ','} {clause.lstrip(', ')}"
        else:
            statements.append(said)
    kept = [one for one in statements if len(one.split()) >= _SHORTEST or len(statements) == 1]
    plain = [one.strip(" ,;") for one in kept]
    return [f"{one[:1].upper()}{one[1:]}." for one in plain], subject


def _clauses(sentence: str) -> list[str]:
    """The sentence cut where a clause with a verb of its own begins."""
    cuts, start = [], 0
    for match in _CLAUSE.finditer(sentence):
        before, after = sentence[start : match.start()], sentence[match.end() :]
        # What semicolons part stands alone, with a verb that the rules know or without.
        parted = ";" in match[0] and min(len(before.split()), len(after.split())) >= _SHORTEST
        if not parted and not (_FIND_VERB.search(before) and _begins_clause(before, after, "," in match[0])):
            continue
        cuts.append(before)
        start = match.end()
    return [part.strip(" ,;") for part in (*cuts, sentence[start:]) if part.strip(" ,;")]


def _begins_clause(before: str, after: str, comma: bool) -> bool:
    """Whether a clause of its own begins with ``after``; ``comma`` says whether one comes before it."""
    participle = _PARTICIPLE.match(after)
    if participle:
        return (
            participle["word"] not in _NOT_PARTICIPLES
            and len(after.split()) > 2
            and not (re.match(rf"{_CONDITION}[^,]*$", before, re.IGNORECASE) is not None)
        )
    link = _LINK.match(after)
    rest = after[link.end() :] if link else after
    if re.match(r"(?:(?:in|of|from|at|by)\s+)?which\b", rest):
        return _FIND_VERB.search(rest) is not None
    if _STARTS_WITH_VERB.match(rest):
        # Two verbs of one subject; what a negation reaches cannot be told, so it is left whole.
        return not _NEGATED.search(before)
    if re.match(r"and\b", after) and not comma:
        # Without a comma "and" mostly joins two things; a new clause shows by its own verb soon after.
        verb = _FIND_VERB.search(rest)
        if verb is None or len(rest[: verb.start()].split()) > _NEAR:
            return False
    verb = _FIND_VERB.search(rest)
    # Before the verb stands a subject, and no further comma: else it is the end of a list ("a, b, and c, doing ...").
    return verb is not None and bool(rest[: verb.start()].strip()) and "," not in rest[: verb.start()]


def _standing_alone(clause: str, subject: str, before: str) -> str | None:
    """A clause as a statement of its own; None where it has no subject and none can be given."""
    participle = _PARTICIPLE.match(clause)
    if participle:
        if not subject:
            return None
        last = subject.split(" of ")[0].split()[-1].lower()
        several = last.endswith("s") and not last.endswith(("ss", "us", "is", "'s", "’s", "s'", "mars"))
        return f"{subject} {'are' if several else 'is'} {clause[participle.start('word') :]}"
    link = _LINK.match(clause)
    rest = clause[link.end() :] if link else clause
    relative = re.match(r"(?:(?P<preposition>in|of|from|at|by)\s+)?which\b\s*", rest)
    if relative:
        named = _antecedent(before)
        if relative["preposition"] or not named or not _STARTS_WITH_VERB.match(rest, relative.end()):
            return None
        return f"{named} {rest[relative.end() :]}"
    if _STARTS_WITH_VERB.match(rest):
        return f"{subject} {rest}" if subject else None
    pronoun = _PRONOUN.match(rest)
    return f"{subject} {rest[pronoun.end() :]}" if pronoun and subject else rest


def _subject(clause: str) -> str:
    """What comes before the first verb of a clause, without a condition before it; empty where nothing does."""
    if not re.match(_CONDITION, clause, re.IGNORECASE):
        return _before_verb(clause)
    # The condition ends at the last comma before which no clause of its own has begun; if in doubt, no subject.
    for match in re.finditer(r",\s+", clause):
        named = _before_verb(clause[match.end() :].split(", ")[0])
        if named and _DETERMINED.match(named):
            return named
    return ""


def _before_verb(main: str) -> str:
    verb = _FIND_VERB.search(main)
    if verb is None:
        return ""
    named = main[: verb.start()].rstrip(" ,")
    named = re.sub(r"\s+(?:also|then|thus|therefore|not|\w+ly)$", "", named).split(", ")[0]
    return named if 0 < len(named.split()) <= 12 else ""


def _antecedent(clause: str) -> str:
    """The thing named last before "which": the words after the last verb or preposition (save "of")."""
    words = clause.rstrip(" ,").split()
    named: list[str] = []
    for word in reversed(words):
        bare = word.strip(",;").lower()
        if named and (word.endswith((",", ";")) or _FIND_VERB.fullmatch(bare) or bare in _STOPS):
            break
        named.insert(0, word)
    return " ".join(named) if len(named) < len(words) and len(named) <= 8 else ""


_STOPS = _words(
    """
    in on at by from to into with within during through for and or as than that which between among over under after
    before increasing decreasing causing producing affecting impacting
    """
)


Standing = Literal["supported", "contradicted", "open", "irrelevant"]

RELEVANT = 0.3
"""Least cosine of an answer's statement with question and reference; chosen on Pirá, see docs/results/entailment.md."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement and how it stands to the other side."""

    text: str
    confirms: float
    """P(the other side confirms it)."""
    contradicts: float
    """P(the other side contradicts it)."""
    relevance: float
    """Cosine with question and reference; 1 for statements of the reference."""
    standing: Standing
    """What is most probable; ``irrelevant`` where the relevance is below the threshold."""


@dataclass(frozen=True, slots=True)
class FactScores:
    """How the facts of an answer and of its reference agree."""

    precision: float
    """0 to 1: mean over the answer's facts of P(confirmed) where relevant, times 1 less the mean of P(contradicted)."""
    recall: float
    """0 to 1: mean over the reference's facts of P(confirmed by the answer)."""
    f1: float
    contradicted: float
    """Mean P(contradicted) over the answer's facts."""
    irrelevant: float
    """Share of the answer's facts that have to do with neither question nor reference."""
    answer_facts: tuple[Fact, ...]
    reference_facts: tuple[Fact, ...]


class FactMetric:
    """Precision, recall and F1 of facts.

    Every statement of the answer is held against the reference (its sentences, and all of it; what confirms it most
    counts), and every statement of the reference against the answer in the same way. With ``c`` and ``d`` the
    probabilities that the other side confirms and contradicts a statement, and ``r`` 1 where it is relevant, else 0::

        precision = (mean over the answer's facts of r c) (1 - mean over the answer's facts of d)
        recall    = mean over the reference's facts of c
        F1        = 2 precision recall / (precision + recall), 0 where both are 0

    So a contradicted fact counts twice, as one that is not supported and against those that are. An empty answer scores
    0.

    Notes:
        Scores are as good as the scorer, and only those of one scorer can be compared. A statement that is true but not
        in the reference counts as unsupported: the reference is all that is known.
    """

    def __init__(self, scorer: RelationScorer, encoder: Encoder) -> None:
        """Prepare; nothing is computed yet.

        Raises:
            InputError: A scorer that does not tell contradictions from open questions.
        """
        if not isinstance(scorer, RelationScorer):
            raise InputError(
                "Facts need a scorer that recognises contradictions: one with relations(), not only score()."
            )
        self._scorer = scorer
        self._encoder = encoder

    def score(self, items: Sequence[Answered]) -> list[FactScores | None]:
        """Scores of each item, in order; None where the scorer failed on one of its statements.

        All statements of all items go to scorer and encoder in one call.

        Raises:
            InputError: A reference answer without words.
        """
        if any(not item.reference.strip() for item in items):
            raise InputError("Facts need a reference answer for every question: at least one has none.")
        stated = [split_facts(item.answer) for item in items]
        wanted = [split_facts(item.reference) for item in items]
        forward = [(item.reference, said) for item, facts in zip(items, stated, strict=True) for said in facts]
        answered = [(item, facts) for item, facts in zip(items, wanted, strict=True) if item.answer.strip()]
        backward = [(item.answer, said) for item, facts in answered for said in facts]
        relations = self._relations([*forward, *backward])
        own, other = iter(relations[: len(forward)]), iter(relations[len(forward) :])
        relevance = iter(self._relevance(items, stated))
        results: list[FactScores | None] = []
        for item, said, meant in zip(items, stated, wanted, strict=True):
            nothing = Relations(0.0, 0.0, 1.0)
            answer = [self._fact(text, next(own), next(relevance)) for text in said]
            spoken = bool(item.answer.strip())
            reference = [self._fact(text, next(other) if spoken else nothing, 1.0) for text in meant]
            results.append(_fact_scores(answer, reference))
        return results

    def _relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Relations of each pair of (text, statement) by the part of the text, sentence or whole, that says most."""
        parts = [list(dict.fromkeys([premise, *split_sentences(premise)])) for premise, _ in pairs]
        read = iter(
            self._scorer.relations([(part, said) for own, (_, said) in zip(parts, pairs, strict=True) for part in own])
        )
        results: list[Relations | None] = []
        for own in parts:
            each = [next(read) for _ in own]
            known = [one for one in each if one is not None]
            # The part that leaves least open is the one that speaks about the statement.
            results.append(min(known, key=lambda one: one.leaves_open) if len(known) == len(each) else None)
        return results

    def _relevance(self, items: Sequence[Answered], stated: Sequence[Sequence[str]]) -> list[float]:
        texts = [f"{item.question} {item.reference}" for item in items]
        said = [fact for facts in stated for fact in facts]
        if not said:
            return []
        vectors = self._encoder.encode([*texts, *said]).astype(np.float64)
        owners = np.repeat(np.arange(len(items)), [len(facts) for facts in stated])
        return [float(near) for near in np.sum(vectors[owners] * vectors[len(items) :], axis=1)]

    def _fact(self, text: str, found: Relations | None, relevance: float) -> Fact | None:
        if found is None:
            return None
        standings: tuple[Standing, ...] = ("supported", "contradicted", "open")
        likely = standings[max(range(len(standings)), key=lambda place: found[place])]
        standing: Standing = likely if relevance >= RELEVANT else "irrelevant"
        return Fact(text, found.confirms, found.contradicts, relevance, standing)


def _fact_scores(stated: Sequence[Fact | None], wanted: Sequence[Fact | None]) -> FactScores | None:
    answer = [fact for fact in stated if fact is not None]
    reference = [fact for fact in wanted if fact is not None]
    if len(answer) < len(stated) or len(reference) < len(wanted):
        return None

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values)) if values else 0.0

    contradicted = mean([fact.contradicts for fact in answer])
    supported = mean([fact.confirms if fact.standing != "irrelevant" else 0.0 for fact in answer])
    precision, recall = supported * (1 - contradicted), mean([fact.confirms for fact in reference])
    total = precision + recall
    return FactScores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / total if total > 0 else 0.0,
        contradicted=contradicted,
        irrelevant=mean([fact.standing == "irrelevant" for fact in answer]),
        answer_facts=tuple(answer),
        reference_facts=tuple(reference),
    )


def fact_scores(
    items: Sequence[Answered], scorer: RelationScorer, encoder: Encoder | None = None
) -> list[FactScores | None]:
    """Return the :class:`FactMetric` scores of each item, with the bundled encoder if none is given.

    Raises:
        InputError: A reference answer without words, or a scorer that gives no relations.
    """
    from climassay.models.encoders import load_encoder

    return FactMetric(scorer, encoder or load_encoder()).score(items)


def _add(name: str, label: str, field: str, **more: bool) -> None:
    @metric(name, label, kinds=["freeform"], needs="facts", source=scorer_name, **more)
    def _(batch: Batch) -> list[float | None]:
        comparing = batch.scorer.facts
        assert comparing is not None
        results = batch.once("facts", lambda: comparing.score(batch.items))
        return [None if result is None else getattr(result, field) for result in results]


_add("fact_precision", "fact precision", "precision")
_add("fact_recall", "fact recall", "recall")
_add("fact_f1", "fact F1", "f1", tested=True)
