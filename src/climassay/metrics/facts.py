"""Facts: which statements of an answer the reference supports, and which of the reference the answer covers.

An answer that is true and irrelevant scores high on factual accuracy, as the paper's authors note of their example of
Mars (ClimaQA, appendix A.2.3). Here reference and answer are split into statements, and each is compared with the other
side.

Statements are split by deterministic rules on words, without a parser: after a semicolon, before "because", ", which"
and ", but", at ", and" between two clauses or two verbs of one subject, and before a participle that adds a consequence
(", increasing ..."). A clause without a subject gets that of its main clause. Conditions ("without ...", "if ...") stay
with their clause, and a negation with its verb: no split may strengthen or reverse a statement.

References:
    Min et al. (2023), FActScore, EMNLP, section 3 (atomic facts; there by a language model).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError
from climassay.metrics.entailment import Relations, RelationScorer
from climassay.metrics.factual_accuracy import scorer_name
from climassay.metrics.pair_features import word_set
from climassay.metrics.registry import AnswerItem, Batch, metric
from climassay.models.contract import Encoder

_AUXILIARY = (
    r"(?:is|are|was|were|has|have|had|can|could|will|would|may|might|must|should|does|do|did|cannot"
    r"|(?:is|are|was|were|has|have|had|does|do|did|could|would|should)n['’]t)"
)
_FINITE_STEMS = word_set(
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
_FINITE_VERB = rf"(?:{'|'.join(sorted(_FINITE_STEMS))})(?:s|es|ies|ed|ied)"
_PAST_TENSE_VERB = (
    r"(?:became|came|drove|fell|froze|gave|grew|held|kept|lay|led|made|meant|rose|shrank|stood|took|went|ran|leads)"
)
_VERB = rf"(?:{_AUXILIARY}|{_FINITE_VERB}|{_PAST_TENSE_VERB})"
_ADVERBS = r"(?:(?:also|then|thus|therefore|hence|so|in turn|thereby|consequently|even|instead|still|only|\w+ly)\s+)*"

_FIND_VERB = re.compile(rf"\b{_VERB}\b", re.IGNORECASE)
_STARTS_WITH_VERB = re.compile(rf"{_ADVERBS}{_VERB}\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|no|nor|neither|cannot)\b|n['’]t\b", re.IGNORECASE)

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
_NOT_PARTICIPLES = word_set(
    """
    during including regarding concerning following according depending owing considering excluding being having
    warming cooling spring evening morning string something anything nothing everything
    """
)
_CONDITION = r"(?:if|when|by|without|with|after|before|under|during|in|as|at|for|once)\b"
_DETERMINER = re.compile(r"(?:the|this|these|that|those|a|an|more|less|most|global|its|their)\b", re.IGNORECASE)
"""Pattern of a determiner. The subject of a clause often begins with one, the next item of a list rarely does."""
_MAX_WORDS_TO_VERB = 4
"""Maximum number of words between an "and" without a comma and the verb of the clause that it begins."""
_PRONOUN = re.compile(r"(?:it|they)\s+", re.IGNORECASE)
_MAX_CLAUSE_LENGTH = 1000
"""Maximum number of characters on each side of a conjunction that are examined for the beginning of a clause."""
_MIN_WORDS = 2
"""Minimum number of words of a statement that is split off."""


def split_facts(text: str) -> tuple[str, ...]:
    """Split a text into simple statements in the order of the text. Each statement is a sentence.

    Example:
        "The ocean absorbs carbon dioxide and releases heat." gives "The ocean absorbs carbon dioxide." and "The ocean
        releases heat."
    """
    results: list[str] = []
    subject = ""
    for sentence in split_sentences(" ".join(text.split())):
        # Remove a link to the previous sentence, and replace a pronoun by that sentence's subject.
        link = _LINK.match(sentence)
        plain_sentence = sentence[link.end() :] if link and link[0].rstrip().endswith(",") else sentence
        pronoun = _PRONOUN.match(plain_sentence)
        if pronoun and subject and _STARTS_WITH_VERB.match(plain_sentence, pronoun.end()):
            plain_sentence = f"{subject} {plain_sentence[pronoun.end() :]}"
        statements, subject = _split_sentence(plain_sentence)
        results += statements
    return tuple(dict.fromkeys(results))


def _split_sentence(sentence: str) -> tuple[list[str], str]:
    """Return the statements of a sentence, and the subject of its first clause (empty if it has none)."""
    clauses = _split_clauses(sentence.rstrip(" .!?"))
    if not clauses:
        return [], ""
    subject = _find_subject(clauses[0])
    statements = clauses[:1]
    for preceding_clause, clause in pairwise(clauses):
        statement = _complete_statement(clause, subject, preceding_clause)
        if statement is None:
            # A clause without a subject stays with the previous clause.
            statements[-1] = f"{statements[-1]}{'' if clause.startswith(',') else ','} {clause.lstrip(', ')}"
        else:
            statements.append(statement)
    long_enough = [text for text in statements if len(text.split()) >= _MIN_WORDS or len(statements) == 1]
    stripped_statements = [text.strip(" ,;") for text in long_enough]
    return [f"{text[:1].upper()}{text[1:]}." for text in stripped_statements], subject


def _split_clauses(sentence: str) -> list[str]:
    """Split a sentence before each clause that has a verb of its own."""
    clauses, start = [], 0
    for match in _CLAUSE.finditer(sentence):
        preceding_text = sentence[max(start, match.start() - _MAX_CLAUSE_LENGTH) : match.start()]
        following_text = sentence[match.end() : match.end() + _MAX_CLAUSE_LENGTH]
        # Parts between semicolons are statements even without a verb that the rules know.
        is_split = ";" in match[0] and min(len(preceding_text.split()), len(following_text.split())) >= _MIN_WORDS
        if not is_split and not (
            _FIND_VERB.search(preceding_text) and _begins_clause(preceding_text, following_text, "," in match[0])
        ):
            continue
        clauses.append(sentence[start : match.start()])
        start = match.end()
    return [part.strip(" ,;") for part in (*clauses, sentence[start:]) if part.strip(" ,;")]


def _begins_clause(preceding_text: str, following_text: str, has_comma: bool) -> bool:
    """Return whether ``following_text`` begins with a clause; ``has_comma`` is whether a comma precedes it."""
    participle = _PARTICIPLE.match(following_text)
    if participle:
        return (
            participle["word"] not in _NOT_PARTICIPLES
            and len(following_text.split()) > 2
            and re.match(rf"{_CONDITION}[^,]*$", preceding_text, re.IGNORECASE) is None
        )
    link = _LINK.match(following_text)
    text = following_text[link.end() :] if link else following_text
    if re.match(r"(?:(?:in|of|from|at|by)\s+)?which\b", text):
        return _FIND_VERB.search(text) is not None
    if _STARTS_WITH_VERB.match(text):
        # Two verbs of one subject; not split after a negation, whose scope is unknown.
        return not _NEGATION.search(preceding_text)
    verb = _FIND_VERB.search(text)
    if verb is None:
        return False
    subject = text[: verb.start()]
    # Without a comma "and" mostly joins two nouns; a new clause has its own verb soon after.
    if re.match(r"and\b", following_text) and not has_comma and len(subject.split()) > _MAX_WORDS_TO_VERB:
        return False
    # A subject without a further comma precedes the verb; otherwise this is the end of a list ("a, b, and c, doing").
    return bool(subject.strip()) and "," not in subject


def _complete_statement(clause: str, subject: str, preceding_clause: str) -> str | None:
    """Return a clause as a complete statement with a subject; None if no subject can be found."""
    participle = _PARTICIPLE.match(clause)
    if participle:
        if not subject:
            return None
        last_word = subject.split(" of ")[0].split()[-1].lower()
        is_plural = last_word.endswith("s") and not last_word.endswith(("ss", "us", "is", "'s", "’s", "s'", "mars"))
        return f"{subject} {'are' if is_plural else 'is'} {clause[participle.start('word') :]}"
    link = _LINK.match(clause)
    text = clause[link.end() :] if link else clause
    relative = re.match(r"(?:(?P<preposition>in|of|from|at|by)\s+)?which\b\s*", text)
    if relative:
        antecedent = _find_antecedent(preceding_clause)
        if relative["preposition"] or not antecedent or not _STARTS_WITH_VERB.match(text, relative.end()):
            return None
        return f"{antecedent} {text[relative.end() :]}"
    if _STARTS_WITH_VERB.match(text):
        return f"{subject} {text}" if subject else None
    pronoun = _PRONOUN.match(text)
    return f"{subject} {text[pronoun.end() :]}" if pronoun and subject else text


def _find_subject(clause: str) -> str:
    """Return the subject of a clause: the words before its first verb, without a leading condition; "" if none."""
    if not re.match(_CONDITION, clause, re.IGNORECASE):
        return _extract_subject(clause)
    # A condition ends at a comma that a determined subject and its verb follow; otherwise there is no subject.
    for match in re.finditer(r",\s+", clause):
        subject = _extract_subject(clause[match.end() :].split(", ")[0])
        if subject and _DETERMINER.match(subject):
            return subject
    return ""


def _extract_subject(clause: str) -> str:
    verb = _FIND_VERB.search(clause)
    if verb is None:
        return ""
    subject = clause[: verb.start()].rstrip(" ,")
    subject = re.sub(r"\s+(?:also|then|thus|therefore|not|\w+ly)$", "", subject).split(", ")[0]
    return subject if 0 < len(subject.split()) <= 12 else ""


def _find_antecedent(clause: str) -> str:
    """Return the antecedent of a following "which": the words after the last verb or preposition except "of"."""
    words = clause.rstrip(" ,").split()
    noun: list[str] = []
    for word in reversed(words):
        lower_word = word.strip(",;").lower()
        if noun and (word.endswith((",", ";")) or _FIND_VERB.fullmatch(lower_word) or lower_word in _STOP_WORDS):
            break
        noun.insert(0, word)
    return " ".join(noun) if len(noun) < len(words) and len(noun) <= 8 else ""


_STOP_WORDS = word_set(
    """
    in on at by from to into with within during through for and or as than that which between among over under after
    before increasing decreasing causing producing affecting impacting
    """
)


FactStatus = Literal["supported", "contradicted", "open", "irrelevant"]

MIN_RELEVANCE = 0.3
"""Minimum cosine similarity of a statement to the concatenated question and reference for it to count as relevant; see
docs/results/entailment.md."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Statement of an answer with its relation to the reference, or of a reference with its relation to the answer."""

    text: str
    confirms: float
    """Probability that the other text confirms the statement."""
    contradicts: float
    """Probability that the other text contradicts the statement."""
    relevance: float
    """Cosine similarity to the concatenated question and reference; 1 for statements of the reference."""
    status: FactStatus
    """Most probable relation to the other text, or ``irrelevant`` if the relevance is below :data:`MIN_RELEVANCE`."""


@dataclass(frozen=True, slots=True)
class FactScores:
    """Agreement between the facts in an answer and the facts in its reference."""

    precision: float
    """Mean of P(confirmed) over the answer's facts, with 0 for irrelevant facts, times 1 - mean P(contradicted)."""
    recall: float
    """Mean of P(confirmed by the answer) over the reference's facts."""
    f1: float
    contradicted: float
    """Mean of P(contradicted by the reference) over the answer's facts."""
    irrelevant: float
    """Proportion of the answer's facts that are irrelevant to the question and reference."""
    answer_facts: tuple[Fact, ...]
    reference_facts: tuple[Fact, ...]


class FactMetric:
    """Metric of the precision, recall and F1 of an answer's facts.

    Every statement of the answer is compared with the reference, and every statement of the reference with the answer.
    It is compared with each sentence of the other text and with the complete text; the comparison with the lowest
    probability of "leaves open" counts. Let ``c`` and ``d`` be the probabilities that the other text confirms and
    contradicts a statement, and let ``r`` be 1 if the statement is relevant, else 0::

        precision = (mean over the answer's facts of r c) (1 - mean over the answer's facts of d)
        recall    = mean over the reference's facts of c
        F1        = 2 precision recall / (precision + recall), 0 if both are 0

    A contradicted fact thus counts twice: it is not confirmed, and it reduces the weight of the confirmed facts. An
    empty answer scores 0.

    Notes:
        Only scores of the same entailment scorer can be compared. A statement that is true but not in the reference
        counts as unsupported.
    """

    def __init__(self, scorer: RelationScorer, encoder: Encoder) -> None:
        """Initialise the metric; no model is called yet.

        Raises:
            InputError: The scorer does not distinguish contradicted from undecided statements.
        """
        if not isinstance(scorer, RelationScorer):
            raise InputError(
                "Facts need a scorer that recognises contradictions: one with relations(), not only score()."
            )
        self._scorer = scorer
        self._encoder = encoder

    def score(self, items: Sequence[AnswerItem]) -> list[FactScores | None]:
        """Return the scores of each item, in order; None for an item if the scorer failed for one of its statements.

        Scorer and encoder are called once with the statements of all items.

        Raises:
            InputError: A reference answer is empty.
        """
        if any(not item.reference.strip() for item in items):
            raise InputError("Facts need a reference answer for every question: at least one has none.")
        answer_facts = [split_facts(item.answer) for item in items]
        # An empty answer confirms no fact of the reference, without a request.
        reference_facts = [split_facts(item.reference) for item in items]
        pairs = []
        for item, statements, reference_statements in zip(items, answer_facts, reference_facts, strict=True):
            pairs += [(item.reference, fact) for fact in statements]
            pairs += [(item.answer, fact) for fact in reference_statements if item.answer.strip()]
        relations = iter(self._find_relations(pairs))
        relevance = iter(self._compute_relevance(items, answer_facts))
        results: list[FactScores | None] = []
        for item, statements, reference_statements in zip(items, answer_facts, reference_facts, strict=True):
            answer = [_build_fact(text, next(relations), next(relevance)) for text in statements]
            no_relation = Relations(0.0, 0.0, 1.0)
            reference = [
                _build_fact(text, next(relations) if item.answer.strip() else no_relation, 1.0)
                for text in reference_statements
            ]
            results.append(_score_facts(answer, reference))
        return results

    def _find_relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return the relation of each text to its statement, or None if a request failed.

        The relation is that of the text's sentence, or of the complete text, with the lowest probability of "leaves
        open".
        """
        parts_by_pair = [list(dict.fromkeys([premise, *split_sentences(premise)])) for premise, _ in pairs]
        part_pairs = [
            (part, fact) for text_parts, (_, fact) in zip(parts_by_pair, pairs, strict=True) for part in text_parts
        ]
        relations = iter(self._scorer.relations(part_pairs))
        results: list[Relations | None] = []
        for text_parts in parts_by_pair:
            candidates = [next(relations) for _ in text_parts]
            valid_relations = [candidate for candidate in candidates if candidate is not None]
            # The part that leaves the statement least open is the one about it.
            best_relation = min(valid_relations, key=lambda candidate: candidate.leaves_open, default=None)
            results.append(best_relation if len(valid_relations) == len(candidates) else None)
        return results

    def _compute_relevance(self, items: Sequence[AnswerItem], answer_facts: Sequence[Sequence[str]]) -> list[float]:
        """Return the cosine similarity of each fact to its item's concatenated question and reference, item by item."""
        texts = [f"{item.question} {item.reference}" for item in items]
        facts = [fact for item_facts in answer_facts for fact in item_facts]
        if not facts:
            return []
        vectors = self._encoder.encode([*texts, *facts]).astype(np.float64)
        item_indices = np.repeat(np.arange(len(items)), [len(item_facts) for item_facts in answer_facts])
        return [float(cosine) for cosine in np.sum(vectors[item_indices] * vectors[len(items) :], axis=1)]


def _build_fact(text: str, relations: Relations | None, relevance: float) -> Fact | None:
    if relations is None:
        return None
    statuses: tuple[FactStatus, ...] = ("supported", "contradicted", "open")
    status: FactStatus = statuses[int(np.argmax(relations))] if relevance >= MIN_RELEVANCE else "irrelevant"
    return Fact(text, relations.confirms, relations.contradicts, relevance, status)


def _score_facts(answer_facts: Sequence[Fact | None], reference_facts: Sequence[Fact | None]) -> FactScores | None:
    answer = [fact for fact in answer_facts if fact is not None]
    reference = [fact for fact in reference_facts if fact is not None]
    if len(answer) < len(answer_facts) or len(reference) < len(reference_facts):
        return None

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values)) if values else 0.0

    mean_contradiction = mean([fact.contradicts for fact in answer])
    mean_support = mean([fact.confirms if fact.status != "irrelevant" else 0.0 for fact in answer])
    precision, recall = mean_support * (1 - mean_contradiction), mean([fact.confirms for fact in reference])
    total = precision + recall
    return FactScores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / total if total > 0 else 0.0,
        contradicted=mean_contradiction,
        irrelevant=mean([fact.status == "irrelevant" for fact in answer]),
        answer_facts=tuple(answer),
        reference_facts=tuple(reference),
    )


def _register(name: str, label: str, field: str, *, is_tested: bool = False) -> None:
    @metric(name, label, needs="facts", source=scorer_name, tested=is_tested)
    def _(batch: Batch) -> list[float | None]:
        comparer = batch.scorer.facts
        assert comparer is not None
        results = batch.compute_once("facts", lambda: comparer.score(batch.items))
        return [None if result is None else getattr(result, field) for result in results]


_register("fact_precision", "fact precision", "precision")
_register("fact_recall", "fact recall", "recall")
_register("fact_f1", "fact F1", "f1", is_tested=True)
