"""Items of the annotation queue for rating long answers and for writing rubrics.

An item for rating is a draft of a long question. Its passages are the answer or the two answers to compare, and its
options are the rated dimensions and criteria (:mod:`climassay.questions.types.longform`). An item for writing a rubric
has the only option ``Rubric``. The draft's answer is the initial rubric, or empty; the answer in a label is the written
rubric. The first passage is the reference answer, and the second the source text of the question. The queue treats both
like all other items; two different rubrics are a conflict.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import cast

import numpy as np
from numpy.typing import NDArray

from climassay.evaluation import Better, BlindAnswer, PreferredAnswer, RatedAnswer, alpha_estimate
from climassay.generation.annotation.labels import AnnotationItem, Label, is_rating, is_rubric
from climassay.generation.dataset_store import StoredDraft
from climassay.generation.draft import Draft, Origin, SourcePassage, Wording, draft_id
from climassay.metrics.long_answers import DIMENSIONS
from climassay.metrics.registry import LongAnswer
from climassay.models import Encoder
from climassay.questions import RUBRIC_KIND, Criterion, Question
from climassay.questions.types.longform import (
    BETTER,
    CRITERION,
    RUBRIC,
    CriterionVerdict,
    format_rubric,
    parse_ratings,
    possible_ratings,
    read_rubric,
)
from climassay.statistics import Estimate, Interval, ResampledEstimate, mean_estimate


def rating_drafts(answers: Sequence[BlindAnswer], *, pairs: int = 0, seed: int = 0) -> list[StoredDraft]:
    """Return items to rate: single answers, or pairs of answers to compare.

    A single answer is rated by its question's criteria and by the eight dimensions.

    Args:
        answers: Answers to rate. Items name neither their model nor their setting.
        pairs: Maximum number of pairs, drawn at random from answers to the same question; 0 for single answers.
        seed: Seed of the draw, and of the order within each pair.
    """
    if not pairs:
        dimensions = tuple(dimension.name for dimension in DIMENSIONS)
        return [
            _rating_item(
                answer,
                (answer.answer,),
                (*(f"{CRITERION}{criterion.text}" for criterion in answer.question.rubric), *dimensions),
            )
            for answer in answers
        ]
    generator = np.random.default_rng(seed)
    candidates = [
        (first_answer, second_answer) for first_answer, second_answer in combinations(answers, 2)
        if first_answer.question.id == second_answer.question.id and first_answer.answer != second_answer.answer
    ]  # fmt: skip
    chosen_pairs = [candidates[int(index)] for index in generator.permutation(len(candidates))[:pairs]]
    swaps = generator.integers(0, 2, len(chosen_pairs)).astype(bool).tolist()
    ordered_pairs = [pair[::-1] if swap else pair for pair, swap in zip(chosen_pairs, swaps, strict=True)]
    return [
        _rating_item(first_answer, (first_answer.answer, second_answer.answer), (BETTER,), second_answer.id)
        for first_answer, second_answer in ordered_pairs
    ]


def _rating_item(answer: BlindAnswer, texts: tuple[str, ...], options: tuple[str, ...], *id_parts: str) -> StoredDraft:
    item_id = draft_id("rating", answer.id, *id_parts)
    passages = tuple(
        # The citation has the audience of the answer.
        SourcePassage(f"{item_id}-{number}", text, item_id, f"Answer {number}", citation=answer.question.audience)
        for number, text in enumerate(texts, start=1)
    )
    wording = Wording(answer.question.question, options=options)
    draft = Draft(item_id, RUBRIC_KIND, "base", wording, passages, Origin("", "", (), 0))
    return StoredDraft(draft, answer.question.id, 0)


def collect_ratings(items: Iterable[AnnotationItem]) -> tuple[list[RatedAnswer], list[PreferredAnswer]]:
    """Return the rated answers with their ratings, and the compared pairs with the annotators' preferences.

    An adjudication replaces all other labels of an item. Items without ratings are omitted.
    """
    rated_answers, preferences = [], []
    for item in items:
        options, draft = item.draft.wording.options, item.draft
        if not is_rating(draft.wording):
            continue
        adjudications = [label for label in item.labels if label.adjudicates][-1:]
        label_ratings = [
            parse_ratings(label.wording.answer, options)
            for label in adjudications or item.labels
            if label.accepted and label.wording is not None
        ]
        question, audience = draft.wording.question, draft.main.citation
        if BETTER in options:
            first, second = (passage.text for passage in draft.passages)
            choices = [cast(Better, values[BETTER]) for values in label_ratings]
            preferences += [PreferredAnswer(question, audience, first, second, choice) for choice in choices]
            continue
        criteria = [option for option in options if option.startswith(CRITERION)]
        ratings = {
            option: tuple(float(values[option]) for values in label_ratings if option in values)
            for option in options
            if option not in criteria
        }
        verdicts = {
            index: tuple(cast(CriterionVerdict, values[option]) for values in label_ratings if option in values)
            for index, option in enumerate(criteria)
        }
        rubric = tuple(Criterion(option.removeprefix(CRITERION)) for option in criteria)
        answer = LongAnswer(question, draft.main.text, rubric, audience)
        if label_ratings:
            ratings = {name: values for name, values in ratings.items() if values}
            verdicts = {index: values for index, values in verdicts.items() if values}
            rated_answers.append(RatedAnswer(answer, question, ratings, verdicts))
    return rated_answers, preferences


def rating_agreement(items: Iterable[AnnotationItem]) -> dict[str, ResampledEstimate]:
    """Return Krippendorff's alpha of the annotators' ratings, before any adjudication, by dimension.

    Ratings of dimensions are treated as interval-scaled; ratings of ``criteria`` (all criteria together) and
    preferences as nominal. Dimensions for which no item has two ratings are omitted.
    """
    ratings_by_name: dict[str, list[tuple[str, dict[str, float]]]] = {}
    for item in items:
        options = item.draft.wording.options
        for option in options if is_rating(item.draft.wording) else ():
            ratings = {}
            for label in item.labels:
                if label.accepted and label.wording is not None and not label.adjudicates:
                    label_ratings = parse_ratings(label.wording.answer, options)
                    if option in label_ratings:
                        ratings[label.annotator] = float(possible_ratings(option).index(label_ratings[option]))
            name = "criteria" if option.startswith(CRITERION) else option.lower()
            ratings_by_name.setdefault(name, []).append((item.draft.id, ratings))
    results = {}
    dimensions = {dimension.name for dimension in DIMENSIONS}
    for name, item_ratings in ratings_by_name.items():
        annotators = sorted({annotator for _, ratings in item_ratings for annotator in ratings})
        rows = [[ratings.get(annotator) for _, ratings in item_ratings] for annotator in annotators]
        n_items = sum(len(ratings) > 1 for _, ratings in item_ratings)
        groups = [draft for draft, _ in item_ratings]
        if n_items and (estimate := alpha_estimate(rows, groups, 0, nominal=name not in dimensions)):
            results[name] = replace(estimate, n=n_items)
    return results


MIN_CRITERION_COSINE = 0.5
"""Minimum cosine similarity, by the bundled encoder, at which two criteria count as having the same meaning; see
benchmarks/rubric_matching.py."""


def rubric_drafts(questions: Iterable[Question]) -> list[StoredDraft]:
    """Return items for rubric writers: each question with its audience, reference answer and source text, if any.

    Args:
        questions: Long-form questions. Rubric writers start from the question's rubric, if it has one.
    """
    results = []
    for question in questions:
        item_id = draft_id("rubric", question.id, question.question)
        source = (question.document or "", question.section or "")
        # The document id is the question's id, and the citation of the reference answer is the audience.
        passages = [
            SourcePassage(f"{item_id}-answer", question.answer, question.id, *source, citation=question.audience)
        ]
        if question.context:
            passages.append(SourcePassage(f"{item_id}-text", question.context, question.id, *source))
        wording = Wording(question.question, format_rubric(question.rubric), options=(RUBRIC,))
        draft = Draft(item_id, RUBRIC_KIND, "base", wording, tuple(passages), Origin("", "", (), 0))
        results.append(StoredDraft(draft, question.id, 0))
    return results


def get_rubric(label: Label, item: AnnotationItem) -> tuple[Criterion, ...]:
    """Return the rubric that a label accepts: the edited rubric if there is one, else the initial rubric.

    Empty if the label rejects the item.
    """
    return read_rubric((label.wording or item.draft.wording).answer) if label.accepted else ()


def finished_rubrics(items: Iterable[AnnotationItem]) -> list[Question]:
    """Return the questions whose rubrics are settled, in the order of their ids.

    The rubric comes from the last adjudication or, if there is none, from the annotators, who all agree on it.
    """
    results = []
    for item in items:
        if not is_rubric(item.draft.wording) or item.state != "settled":
            continue
        adjudications = [label for label in item.labels if label.adjudicates]
        rubric = get_rubric((adjudications or [*item.labels])[-1], item)
        # As :func:`rubric_drafts` made them; the citation of the reference answer is the audience.
        answer_passage, *text_passages = item.draft.passages
        question = Question(
            answer_passage.document_id,
            RUBRIC_KIND,
            item.draft.wording.question,
            answer_passage.text,
            context=text_passages[0].text if text_passages else None,
            document=answer_passage.document or None,
            section=answer_passage.section or None,
            audience=answer_passage.citation,
            rubric=rubric,
        )
        results += [question] if rubric else []
    return sorted(results, key=lambda question: question.id)


@dataclass(frozen=True, slots=True)
class RubricAgreement:
    """Agreement of the rubrics that different annotators wrote for the same questions, before any adjudication.

    Criteria are matched one to one by an encoder. A match means only that the criteria have the same subject, since
    encoders hardly distinguish negations or numbers. A chance-corrected coefficient would require the criteria that no
    annotator lists, which are unknown. Instead, ``floor`` estimates the proportion of criteria that match by chance.
    All 95% intervals resample questions.
    """

    questions: int
    """Number of questions with rubrics by two annotators or more."""
    shared: Estimate
    """Proportion of the criteria of two annotators' rubrics that match (Dice coefficient), averaged over questions."""
    floor: float | None
    """Mean Dice coefficient between two halves of the same rubric; None if all rubrics have only one criterion."""
    matched: int
    """Number of pairs of criteria that match."""
    levels: ResampledEstimate | None
    """Krippendorff's nominal alpha of the matched criteria's levels; None if all are equal or nothing matches."""
    weights: ResampledEstimate | None
    """Krippendorff's interval alpha of the matched criteria's weights, each divided by its rubric's mean weight."""


def rubric_agreement(items: Iterable[AnnotationItem], encoder: Encoder) -> RubricAgreement | None:
    """Return the agreement of annotators' rubrics; None if no question has two rubrics."""
    rubrics_by_draft: dict[str, list[tuple[Criterion, ...]]] = {}
    for item in items:
        rubrics = [get_rubric(label, item) for label in item.labels if not label.adjudicates]
        rubrics = [rubric for rubric in rubrics if rubric]
        if is_rubric(item.draft.wording) and len(rubrics) > 1:
            rubrics_by_draft[item.draft.id] = rubrics
    if not rubrics_by_draft:
        return None
    all_rubrics = [rubric for rubrics in rubrics_by_draft.values() for rubric in rubrics]
    texts = list(dict.fromkeys(criterion.text for rubric in all_rubrics for criterion in rubric))
    vectors = dict(zip(texts, encoder.encode(texts), strict=True))

    def match(first_rubric: Sequence[Criterion], second_rubric: Sequence[Criterion]) -> list[tuple[int, int]]:
        first_vectors = np.array([vectors[criterion.text] for criterion in first_rubric])
        second_vectors = np.array([vectors[criterion.text] for criterion in second_rubric])
        return matched_criteria(first_vectors @ second_vectors.T)

    dice_by_question, groups = [], []
    level_pairs: list[tuple[float, float]] = []
    weight_pairs: list[tuple[float, float]] = []
    for draft, rubrics in rubrics_by_draft.items():
        dice_coefficients = []
        for first_rubric, second_rubric in combinations(rubrics, 2):
            pairs = match(first_rubric, second_rubric)
            dice_coefficients.append(2 * len(pairs) / (len(first_rubric) + len(second_rubric)))
            means = [
                sum(criterion.weight for criterion in rubric) / len(rubric) for rubric in (first_rubric, second_rubric)
            ]
            groups += [draft] * len(pairs)
            level_pairs += [
                (float(first_rubric[i].level == "must"), float(second_rubric[j].level == "must")) for i, j in pairs
            ]
            weight_pairs += [(first_rubric[i].weight / means[0], second_rubric[j].weight / means[1]) for i, j in pairs]
        dice_by_question.append(float(np.mean(dice_coefficients)))
    halves = [(rubric[::2], rubric[1::2]) for rubric in all_rubrics if len(rubric) > 1]
    dice_of_halves = [
        2 * len(match(first_rubric, second_rubric)) / (len(first_rubric) + len(second_rubric))
        for first_rubric, second_rubric in halves
    ]

    def alpha(pairs: list[tuple[float, float]], nominal: bool) -> ResampledEstimate | None:
        has_variation = len({value for pair in pairs for value in pair}) > 1
        return alpha_estimate([*zip(*pairs, strict=True)], groups, 0, nominal=nominal) if has_variation else None

    mean_dice = mean_estimate(dice_by_question, seed=0)
    if len(dice_by_question) == 1:  # a single question has no sampling distribution
        mean_dice = replace(mean_dice, interval=Interval(0.0, 1.0))
    return RubricAgreement(
        len(rubrics_by_draft),
        mean_dice,
        float(np.mean(dice_of_halves)) if halves else None,
        len(groups),
        alpha(level_pairs, nominal=True),
        alpha(weight_pairs, nominal=False),
    )


def matched_criteria(
    similarity: NDArray[np.floating], threshold: float = MIN_CRITERION_COSINE
) -> list[tuple[int, int]]:
    """Match the criteria of two rubrics one to one by maximum total cosine similarity, and return the index pairs.

    Args:
        similarity: Cosine similarities of the first rubric's criteria to the second rubric's, shape [first, second].
        threshold: Minimum cosine similarity of a pair.

    Example:
        >>> matched_criteria(np.array([[0.9, 0.7], [0.8, 0.2]]))
        [(0, 1), (1, 0)]
    """
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.where(similarity >= threshold, similarity, 0.0), maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if similarity[row, column] >= threshold]
