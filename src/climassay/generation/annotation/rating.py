"""Long answers as items that people rate, and what they said as labels of a judge's check.

An item of this kind is a draft of a long question whose passages are the answers, one or two to be compared, and whose
options are what is rated (:mod:`climassay.questions.types.longform.ratings`). Queue, overlap, skipping, taking back,
conflicts and adjudication are those of all items.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import cast

import numpy as np

from climassay.evaluation import Better, BlindAnswer, Preferred, RatedAnswer, alpha_estimate
from climassay.generation.annotation.labels import Item, is_rating
from climassay.generation.dataset_store import StoredDraft
from climassay.generation.draft import Draft, Origin, SourcePassage, Wording, draft_id
from climassay.metrics.long_answers import DIMENSIONS
from climassay.metrics.registry import LongAnswer
from climassay.questions import Criterion
from climassay.questions.types.longform.ratings import BETTER, CRITERION, choices, read_written
from climassay.questions.types.longform.rubric import CriterionVerdict
from climassay.statistics import Estimate


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
        SourcePassage(f"{id_}-{number}", text, id_, f"Answer {number}", place=one.question.audience)
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
        question, audience = draft.wording.question, draft.main.place
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


def rating_agreement(items: Iterable[Item], *, seed: int = 0) -> dict[str, Estimate]:
    """Krippendorff's alpha among people before any adjudication, by what is rated.

    Ratings are taken on the interval scale; criteria, all of them together, and preferences on the nominal one. What no
    two people have rated is missing.

    Args:
        items: All of a dataset.
        seed: Seed of the resampling of items.
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
    found = {}
    for name, units in rated.items():
        people = sorted({one for _, said in units for one in said})
        rows = [[said.get(one) for _, said in units] for one in people]
        several = sum(len(said) > 1 for _, said in units)
        scale = name in {one.name for one in DIMENSIONS}
        if several and (value := alpha_estimate(rows, [id_ for id_, _ in units], seed, nominal=not scale)):
            found[name] = Estimate(value.value, value.interval, several)
    return found
