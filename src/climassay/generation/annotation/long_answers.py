"""Long answers that people rate and long questions whose rubrics they write, as items of the queue.

An item to be rated is a draft of a long question whose passages are the answers, one or two to be compared, and whose
options are what is rated (:mod:`climassay.questions.types.longform`). An item whose rubric is written has one
option, ``Rubric``; its answer is a rubric to begin with, or nothing, a label's answer is the rubric that somebody
wrote, its first passage is the reference answer, its second the text that the question rests on. Queue, overlap,
skipping, taking back, conflicts and adjudication are those of all items; two rubrics that differ in anything are a
conflict.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import cast

import numpy as np
from numpy.typing import NDArray

from climassay.evaluation import Better, BlindAnswer, Preferred, RatedAnswer, alpha_estimate
from climassay.generation.annotation.labels import Item, Label, is_rating, is_rubric
from climassay.generation.dataset_store import StoredDraft
from climassay.generation.draft import Draft, Origin, SourcePassage, Wording, draft_id
from climassay.metrics.long_answers import DIMENSIONS
from climassay.metrics.registry import LongAnswer
from climassay.models import Encoder
from climassay.questions import Criterion, Question
from climassay.questions.types.longform import (
    BETTER,
    CRITERION,
    RUBRIC,
    CriterionVerdict,
    choices,
    read_rubric,
    read_written,
    written_rubric,
)
from climassay.statistics import Estimate, Interval, ResampledEstimate, mean_estimate


def rating_drafts(answers: Sequence[BlindAnswer], *, pairs: int = 0, seed: int = 0) -> list[StoredDraft]:
    """Items for people: each answer with the criteria of its question and the eight dimensions, or pairs of answers.

    Args:
        answers: Nothing of them but question, audience, criteria and text goes into an item.
        pairs: At most so many pairs of answers to one question, in an order drawn by the seed, in place of the answers.
        seed: Seed of the draws.
    """
    if not pairs:
        dimensions = tuple(one.name for one in DIMENSIONS)
        return [
            _item(one, (one.answer,), (*(f"{CRITERION}{each.text}" for each in one.question.rubric), *dimensions))
            for one in answers
        ]
    draw = np.random.default_rng(seed)
    every = [
        (one, other) for one, other in combinations(answers, 2)
        if one.question.id == other.question.id and one.answer != other.answer
    ]  # fmt: skip
    chosen = [every[int(place)] for place in draw.permutation(len(every))[:pairs]]
    turned = draw.integers(0, 2, len(chosen)).astype(bool).tolist()
    shown = [(other, one) if turn else (one, other) for (one, other), turn in zip(chosen, turned, strict=True)]
    return [_item(one, (one.answer, other.answer), (BETTER,), other.id) for one, other in shown]


def _item(one: BlindAnswer, texts: tuple[str, ...], options: tuple[str, ...], *more: str) -> StoredDraft:
    id_ = draft_id("rating", one.id, *more)
    passages = tuple(
        # The place says for whom the answer is.
        SourcePassage(f"{id_}-{number}", text, id_, f"Answer {number}", citation=one.question.audience)
        for number, text in enumerate(texts, start=1)
    )
    wording = Wording(one.question.question, options=options)
    draft = Draft(id_, "longform", "base", wording, passages, Origin("", "", (), 0))
    return StoredDraft(draft, one.question.id, 0)


def ratings_of(items: Iterable[Item]) -> tuple[list[RatedAnswer], list[Preferred]]:
    """Answers with what people said of them, and pairs with whom they prefer; what nobody rated is left out.

    Where an adjudicator has decided, their word stands alone.
    """
    rated, preferred = [], []
    for item in items:
        options, draft = item.draft.wording.options, item.draft
        if not is_rating(draft.wording):
            continue
        decided = [one for one in item.labels if one.adjudicates][-1:]
        said = [
            read_written(one.wording.answer, options)
            for one in decided or item.labels
            if one.accepted and one.wording is not None
        ]
        question, audience = draft.wording.question, draft.main.citation
        if BETTER in options:
            first, second = (one.text for one in draft.passages)
            preferred += [Preferred(question, audience, first, second, cast(Better, one[BETTER])) for one in said]
            continue
        names = [option for option in options if not option.startswith(CRITERION)]
        criteria = [option for option in options if option.startswith(CRITERION)]
        rubric = tuple(Criterion(option.removeprefix(CRITERION)) for option in criteria)
        ratings = {name: tuple(float(one[name]) for one in said if name in one) for name in names}
        verdicts = {
            place: tuple(cast(CriterionVerdict, one[option]) for one in said if option in one)
            for place, option in enumerate(criteria)
        }
        answer = LongAnswer(question, draft.main.text, rubric, audience)
        if said:
            given = {name: values for name, values in ratings.items() if values}
            kept = {place: values for place, values in verdicts.items() if values}
            rated.append(RatedAnswer(answer, question, given, kept))
    return rated, preferred


def rating_agreement(items: Iterable[Item]) -> dict[str, ResampledEstimate]:
    """Krippendorff's alpha among people before any adjudication, by what is rated.

    Ratings are taken on the interval scale; criteria, all of them together, and preferences on the nominal one. What no
    two people have rated is missing.
    """
    rated: dict[str, list[tuple[str, dict[str, float]]]] = {}
    for item in items:
        options = item.draft.wording.options
        for option in options if is_rating(item.draft.wording) else ():
            said = {
                one.annotator: float(choices(option).index(own[option]))
                for one in item.labels
                if one.accepted and one.wording is not None and not one.adjudicates
                if option in (own := read_written(one.wording.answer, options))
            }
            name = "criteria" if option.startswith(CRITERION) else option.lower()
            rated.setdefault(name, []).append((item.draft.id, said))
    results = {}
    for name, units in rated.items():
        people = sorted({one for _, said in units for one in said})
        rows = [[said.get(one) for _, said in units] for one in people]
        several = sum(len(said) > 1 for _, said in units)
        scale = name in {one.name for one in DIMENSIONS}
        if several and (value := alpha_estimate(rows, [id_ for id_, _ in units], 0, nominal=not scale)):
            results[name] = replace(value, n=several)
    return results


SAME_CRITERION = 0.5
"""Least cosine, by the bundled encoder, of two criteria that say the same: see benchmarks/rubric_matching.py."""


def rubric_drafts(questions: Iterable[Question]) -> list[StoredDraft]:
    """Items for people who write rubrics: each question with its audience, reference answer and text, if it has them.

    Args:
        questions: Long-form questions; a rubric that one has is what its writers begin with.
    """
    results = []
    for question in questions:
        id_ = draft_id("rubric", question.id, question.question)
        source = (question.document or "", question.section or "")
        # The id of the document is the question's, and the place of the reference answer says for whom answers are.
        passages = [SourcePassage(f"{id_}-answer", question.answer, question.id, *source, citation=question.audience)]
        if question.context:
            passages.append(SourcePassage(f"{id_}-text", question.context, question.id, *source))
        wording = Wording(question.question, written_rubric(question.rubric), options=(RUBRIC,))
        draft = Draft(id_, "longform", "base", wording, tuple(passages), Origin("", "", (), 0))
        results.append(StoredDraft(draft, question.id, 0))
    return results


def rubric_of(label: Label, item: Item) -> tuple[Criterion, ...]:
    """The rubric of a label: its own words, or those to begin with where it accepts them; none where it rejects."""
    return read_rubric((label.wording or item.draft.wording).answer) if label.accepted else ()


def finished_rubrics(items: Iterable[Item]) -> list[Question]:
    """The questions whose rubric is decided, each with that rubric, in the order of their ids.

    Without overlap the rubric of the one who wrote it; with it the adjudicator's, or the one that all wrote alike.
    """
    results = []
    for item in items:
        if not is_rubric(item.draft.wording) or item.state != "settled":
            continue
        rubric = rubric_of(([one for one in item.labels if one.adjudicates] or [*item.labels])[-1], item)
        answer, *texts = item.draft.passages
        question = Question(
            answer.document_id,
            "longform",
            item.draft.wording.question,
            answer.text,
            context=texts[0].text if texts else None,
            document=answer.document or None,
            section=answer.section or None,
            audience=answer.citation,
            rubric=rubric,
        )
        results += [question] if rubric else []
    return sorted(results, key=lambda one: one.id)


@dataclass(frozen=True, slots=True)
class RubricAgreement:
    """How far the rubrics agree that several people wrote for the same questions, before any adjudication.

    Criteria are matched by meaning, one to one; an encoder sees neither a negation nor another figure, so that a match
    is about what a criterion speaks of. Who leaves out the same things is not counted, because nobody lists them:
    there is no coefficient corrected for chance, and what is matched where nothing is shared stands beside the share
    instead. All intervals are by resampling questions, at 95%.
    """

    questions: int
    """With rubrics by two people or more."""
    shared: Estimate
    """Criteria of two people that the other has as well, among all criteria of both (Dice), as mean over questions."""
    floor: float | None
    """The same between the two halves of each rubric, which share nothing; None where all have one criterion."""
    matched: int
    """Pairs of criteria that were matched."""
    levels: ResampledEstimate | None
    """Krippendorff's nominal alpha of must and should, over matched pairs; None where all are the same, or none is."""
    weights: ResampledEstimate | None
    """Krippendorff's alpha of weights on the interval scale, each in units of its rubric's mean; None as above."""


def rubric_agreement(items: Iterable[Item], encoder: Encoder) -> RubricAgreement | None:
    """How far people's rubrics agree, criteria matched by their meaning; None where no question has two of them."""
    rubrics: dict[str, list[tuple[str, tuple[Criterion, ...]]]] = {}
    for item in items:
        said = [(one.annotator, rubric_of(one, item)) for one in item.labels if not one.adjudicates]
        said = [(name, rubric) for name, rubric in said if rubric]
        if is_rubric(item.draft.wording) and len(said) > 1:
            rubrics[item.draft.id] = said
    if not rubrics:
        return None
    texts = list(dict.fromkeys(c.text for said in rubrics.values() for _, rubric in said for c in rubric))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))

    def matches(first: Sequence[Criterion], second: Sequence[Criterion]) -> list[tuple[int, int]]:
        similarity = np.array([vectors[c.text] for c in first]) @ np.array([vectors[c.text] for c in second]).T
        return matched_criteria(similarity)

    shared, groups = [], []
    levels: list[tuple[float, float]] = []
    weights: list[tuple[float, float]] = []
    for name, said in rubrics.items():
        shares = []
        for (_, first), (_, second) in combinations(said, 2):
            pairs = matches(first, second)
            shares.append(2 * len(pairs) / (len(first) + len(second)))
            means = [sum(c.weight for c in one) / len(one) for one in (first, second)]
            groups += [name] * len(pairs)
            levels += [(float(first[a].level == "must"), float(second[b].level == "must")) for a, b in pairs]
            weights += [(first[a].weight / means[0], second[b].weight / means[1]) for a, b in pairs]
        shared.append(float(np.mean(shares)))
    halves = [(rubric[::2], rubric[1::2]) for said in rubrics.values() for _, rubric in said if len(rubric) > 1]
    floor = [2 * len(matches(first, second)) / (len(first) + len(second)) for first, second in halves]

    def alpha(pairs: list[tuple[float, float]], nominal: bool) -> ResampledEstimate | None:
        varied = len({value for pair in pairs for value in pair}) > 1
        return alpha_estimate([*zip(*pairs, strict=True)], groups, 0, nominal=nominal) if varied else None

    share = mean_estimate(shared, seed=0)
    if len(shared) == 1:  # one question says nothing of others
        share = replace(share, interval=Interval(0.0, 1.0))
    return RubricAgreement(
        len(rubrics),
        share,
        float(np.mean(floor)) if floor else None,
        len(groups),
        alpha(levels, nominal=True),
        alpha(weights, nominal=False),
    )


def matched_criteria(similarity: NDArray[np.floating], threshold: float = SAME_CRITERION) -> list[tuple[int, int]]:
    """Places of criteria that say the same, each at most once: the pairs above the threshold with the greatest sum.

    Args:
        similarity: Cosine of each criterion of one rubric with each of another, shape [first, second].
        threshold: Least cosine of a pair.

    Example:
        >>> matched_criteria(np.array([[0.9, 0.7], [0.8, 0.2]]))
        [(0, 1), (1, 0)]
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.where(similarity >= threshold, similarity, 0.0), maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(a, b) for a, b in pairs if similarity[a, b] >= threshold]
