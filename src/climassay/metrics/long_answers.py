"""What a judge says of long answers: which criteria of a rubric they meet, and how adequate they are in eight respects.

Every verdict and rating comes with the judge's reason and a quotation, which is looked up in the answer. How an answer
reads (presentational adequacy) and what it is worth as knowledge (epistemological adequacy) are never mixed: models
differ in the second and hardly in the first.

A strong judge answers in JSON, one request per answer for the rubric and one for the ratings. A very small one, whose
reasons say nothing, is read from the probabilities of its verdicts and ratings, one request each; docs/results shows
that such a judge is at chance.

References:
    Bulian et al. (2023), Assessing Large Language Models on Climate Information, arXiv 2310.02932, section 3 (the eight
    dimensions and their issues, here in our words).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

import numpy as np

from climassay.corpus.documents import locate_quotation
from climassay.errors import InputError
from climassay.metrics.entailment import prompted_shares
from climassay.metrics.factual_accuracy import JudgeFailure, JudgeRequest, ask_json
from climassay.metrics.registry import METRICS, LongAnswer, Metric, Scorer
from climassay.models.contract import Generator, OptionScorer, object_schema
from climassay.prompts import Prompt, load_prompt, profile_of
from climassay.questions import TYPES, Criterion
from climassay.questions.types.longform import CriterionVerdict

CREDITS: Mapping[CriterionVerdict, float] = {"met": 1.0, "partly met": 0.5, "not met": 0.0, "contradicted": 0.0}
"""Share of a criterion's weight that each verdict earns."""
Group = Literal["presentation", "epistemics"]
LOWEST, HIGHEST = 1, 5
_RATINGS = tuple(map(str, range(LOWEST, HIGHEST + 1)))
_TOKENS = 220
"""Room for one verdict or rating with its quotation and reason."""
_WORDS = 700
"""Maximum number of words of question and answer that a very small judge reads."""
_LONGEST = 500
"""Characters of a quotation or a reason."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One respect in which answers are rated from 1 to 5."""

    name: str
    group: Group
    meaning: str
    issues: tuple[str, ...] = ()


DIMENSIONS: tuple[Dimension, ...] = (
    Dimension(
        "style", "presentation", "Is the style right for the reader, and the length right for the question?",
        ("too informal", "too long", "too short"),
    ),
    Dimension(
        "clarity", "presentation", "Can the reader follow it at one reading?",
        ("sentences too long", "too technical", "numbers or formulas hard to follow"),
    ),
    Dimension(
        "language", "presentation", "Is the language correct?",
        ("incomplete sentence", "spelling", "punctuation", "grammar"),
    ),
    Dimension(
        "tone", "presentation", "Is the tone neutral and does it inform without persuading?",
        ("biased", "tries to persuade", "negative"),
    ),
    Dimension(
        "accuracy", "epistemics", "Is what it says right?",
        ("incorrect", "out of context", "contradicts itself", "anecdotal", "terms used wrongly"),
    ),
    Dimension(
        "specificity", "epistemics", "Does it say what was asked, precisely and nothing beside the point?",
        ("vague", "irrelevant parts"),
    ),
    Dimension(
        "completeness", "epistemics", "Does it say all that matters for the question?",
        ("leaves out a main part", "leaves out the region", "leaves out the time", "leaves out relevant science"),
    ),
    Dimension(
        "uncertainty", "epistemics", "Does it say how certain each statement is, no more and no less than is known?",
        ("degree of certainty missing", "consensus not stated", "contrary evidence not named"),
    ),
)  # fmt: skip
"""The eight dimensions of adequacy."""
GROUP_OF: Mapping[str, Group] = {one.name: one.group for one in DIMENSIONS}


@dataclass(frozen=True, slots=True)
class CriterionJudgement:
    """What a judge says of one criterion of a rubric."""

    verdict: CriterionVerdict
    reason: str = ""
    quotation: str = ""
    quoted: bool = True
    """Whether the quotation appears in the answer; True where nothing is quoted."""


@dataclass(frozen=True, slots=True)
class DimensionRating:
    """What a judge says of one dimension of adequacy."""

    dimension: str
    rating: float
    """From 1 (not usable) to 5 (no fault); between whole numbers where it is a mean over a judge's probabilities."""
    reason: str = ""
    issues: tuple[str, ...] = ()
    quotation: str = ""
    quoted: bool = True


@dataclass(frozen=True, slots=True)
class LongAnswerAssessment:
    """What a judge says of one long answer."""

    criteria: tuple[CriterionJudgement, ...] = ()
    """In the order of the rubric; empty without a rubric, and where the judge failed."""
    ratings: tuple[DimensionRating, ...] = ()
    """In the order of :data:`DIMENSIONS`; empty where the judge failed."""
    errors: tuple[str, ...] = ()
    """Why the judge failed, a sentence each."""


class Marker:
    """A judge of long answers."""

    def __init__(
        self,
        model: Generator,
        *,
        seed: int = 0,
        temperature: float = 0.0,
        reverse: bool = False,
        overrides: Mapping[str, Prompt] | None = None,
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            model: A strong model, or a very small one that gives probabilities of options.
            seed: Part of every request's identity: another seed is another asking.
            temperature: 0 takes the most probable answer.
            reverse: Put criteria and dimensions in the opposite order, which should change nothing.
            overrides: Templates in place of ``rubric``, ``adequacy`` and their brief forms.

        Raises:
            InputError: A very small model that gives no probabilities.
        """
        self.model = model
        self._small = profile_of(model).scored
        if self._small and not isinstance(model, OptionScorer):
            raise InputError(f"{model.name} is too small to judge in words and gives no probabilities of its answers.")
        self._seed, self._temperature, self._reverse = seed, temperature, reverse
        suffix = "_brief" if self._small else ""
        given = overrides or {}
        self._rubric, self._adequacy = (
            given.get(n) or load_prompt(n) for n in (f"rubric{suffix}", f"adequacy{suffix}")
        )

    def assess(
        self, items: Sequence[LongAnswer], dimensions: Sequence[Dimension] = DIMENSIONS
    ) -> list[LongAnswerAssessment]:
        """Rubric and ratings of each answer, in order; an empty answer meets nothing and has the lowest ratings.

        All requests go to the judge in one call.
        """
        work: list[tuple[int, Sequence[Criterion] | Sequence[Dimension]]] = []
        for place, item in enumerate(items):
            if item.answer.strip():
                work += [(place, item.rubric)] * bool(item.rubric) + [(place, dimensions)] * bool(dimensions)
        results = [
            LongAnswerAssessment()
            if item.answer.strip()
            else LongAnswerAssessment(
                tuple(CriterionJudgement("not met") for _ in item.rubric),
                tuple(DimensionRating(one.name, LOWEST) for one in dimensions),
            )
            for item in items
        ]
        answers = self._weighed(items, work) if self._small else self._told(items, work)
        for (place, _), said in zip(work, answers, strict=True):
            before = results[place]
            if isinstance(said, JudgeFailure):
                results[place] = replace(before, errors=(*before.errors, said.error))
            elif isinstance(said[0], CriterionJudgement):
                results[place] = replace(before, criteria=cast("tuple[CriterionJudgement, ...]", said))
            else:
                results[place] = replace(before, ratings=cast("tuple[DimensionRating, ...]", said))
        return results

    def _told(self, items: Sequence[LongAnswer], work: Sequence[tuple[int, Sequence[Any]]]) -> list[Any]:
        requests = []
        for place, parts in work:
            item = items[place]
            shown = list(enumerate(parts, start=1))
            if self._reverse:
                shown.reverse()
            values = {one: getattr(item, one) for one in ("question", "audience", "reference", "answer")}
            if isinstance(parts[0], Criterion):
                rendered = self._rubric.render(**values, criteria=shown)
                fields = {f"criterion_{number}": _schema(one) for number, one in shown}
            else:
                rendered = self._adequacy.render(**values, dimensions=[one for _, one in shown])
                fields = {one.name: _schema(one) for _, one in shown}
            reader = _Reader(item.answer, tuple(parts))
            requests.append(JudgeRequest(rendered, object_schema(fields), reader, _TOKENS * len(parts)))
        return ask_json(requests, self.model, seed=self._seed, temperature=self._temperature)

    def _weighed(self, items: Sequence[LongAnswer], work: Sequence[tuple[int, Sequence[Any]]]) -> list[Any]:
        """Verdicts and ratings from probabilities; calibrated, because a small model likes some words anyway."""
        assert isinstance(self.model, OptionScorer)
        results: dict[tuple[int, int], tuple[float, ...] | None] = {}
        for kind, prompt, name, options in (
            (Criterion, self._rubric, "criterion", get_args(CriterionVerdict)),
            (Dimension, self._adequacy, "dimension", _RATINGS),
        ):
            asked = [
                (index, number)
                for index, (_, parts) in enumerate(work)
                for number, part in enumerate(parts)
                if isinstance(part, kind)
            ]
            pairs = []
            for index, number in asked:
                place, parts = work[index]
                part = parts[number]
                said = part.text if isinstance(part, Criterion) else part.meaning
                pairs.append((f"Question: {items[place].question}\n\nAnswer: {items[place].answer}", said))
            shares = prompted_shares(
                self.model, prompt, ("answer", name), tuple(f" {one}" for one in options), pairs,
                calibrated=True, words=_WORDS, encoder=None,
            )  # fmt: skip
            results.update(zip(asked, shares, strict=True))
        return [
            JudgeFailure("The judge's probabilities could not be read.")
            if any(results[index, number] is None for number in range(len(parts)))
            else tuple(_from_shares(part, results[index, number] or ()) for number, part in enumerate(parts))
            for index, (_, parts) in enumerate(work)
        ]


def assessed_answers(
    scorer: Scorer, kind: str, items: Sequence[LongAnswer | None]
) -> list[LongAnswerAssessment | None]:
    """What a scorer's judge says about every long answer; None without a judge, and for answers that failed (None)."""
    result: list[LongAnswerAssessment | None] = [None] * len(items)
    places = [place for place, item in enumerate(items) if item is not None]
    if scorer.judge is not None and TYPES[kind].judged:
        asked = [item for item in items if item is not None]
        for place, assessment in zip(places, Marker(scorer.judge).assess(asked), strict=True):
            result[place] = assessment
    return result


def _from_shares(part: Criterion | Dimension, shares: tuple[float, ...]) -> CriterionJudgement | DimensionRating:
    if isinstance(part, Criterion):
        return CriterionJudgement(get_args(CriterionVerdict)[int(np.argmax(shares))])
    return DimensionRating(part.name, float(np.dot(shares, range(LOWEST, HIGHEST + 1))))


def _schema(part: Criterion | Dimension) -> dict[str, Any]:
    """What a judge says of one criterion or dimension."""
    text = {"type": "string", "maxLength": _LONGEST}
    fields: dict[str, Any] = {"quotation": text, "reason": text}
    if isinstance(part, Criterion):
        return object_schema({**fields, "verdict": {"type": "string", "enum": [*CREDITS]}})
    if part.issues:
        issue = {"type": "string", "enum": list(part.issues)}
        fields["issues"] = {"type": "array", "items": issue, "minItems": 0, "maxItems": len(part.issues)}
    return object_schema({**fields, "rating": {"type": "string", "enum": [*_RATINGS]}})


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a judge's JSON about one answer; ValueError, KeyError or TypeError where it is not as asked for."""

    answer: str
    parts: tuple[Criterion | Dimension, ...]

    def __call__(self, data: Mapping[str, Any]) -> tuple[CriterionJudgement | DimensionRating, ...]:
        return tuple(self._read(data, number, part) for number, part in enumerate(self.parts, start=1))

    def _read(self, data: Mapping[str, Any], number: int, part: Criterion | Dimension) -> Any:
        given = data[f"criterion_{number}" if isinstance(part, Criterion) else part.name]
        quotation, reason = (" ".join(str(given[name]).split()) for name in ("quotation", "reason"))
        quoted = not quotation or locate_quotation(self.answer, quotation) is not None
        if isinstance(part, Criterion):
            if given["verdict"] not in CREDITS:
                raise ValueError(given["verdict"])
            return CriterionJudgement(given["verdict"], reason, quotation, quoted)
        issues = tuple(one for one in part.issues if one in given.get("issues", ()))
        return DimensionRating(
            part.name, _RATINGS.index(str(given["rating"])) + LOWEST, reason, issues, quotation, quoted
        )


def assessment_scores(assessment: LongAnswerAssessment, rubric: Sequence[Criterion]) -> dict[str, float]:
    """Scores of an assessed answer from 0 to 1, 1 being best, by the names of :data:`~climassay.metrics.METRICS`.

    ``rubric_score``
        Mean credit of the criteria (met 1, partly met a half), each by its weight.
    ``rubric_must``
        Share of the criteria at level "must" that are met, wholly.
    ``rubric_uncontradicted``
        1 where no criterion is contradicted, else 0.
    ``presentation``, ``epistemics``
        Mean rating of their four dimensions, 1 to 5 drawn to 0 to 1.

    What the judge failed to say is missing.
    """
    results: dict[str, float] = {}
    if rubric and len(assessment.criteria) == len(rubric):
        marked = list(zip(rubric, assessment.criteria, strict=True))
        total = sum(one.weight for one in rubric)
        results["rubric_score"] = sum(one.weight * CREDITS[said.verdict] for one, said in marked) / total
        needed = [said.verdict == "met" for one, said in marked if one.level == "must"]
        if needed:
            results["rubric_must"] = sum(needed) / len(needed)
        results["rubric_uncontradicted"] = float(all(said.verdict != "contradicted" for said in assessment.criteria))
    for group in get_args(Group):
        ratings = [one.rating for one in assessment.ratings if GROUP_OF.get(one.dimension) == group]
        if ratings:
            results[group] = (float(np.mean(ratings)) - LOWEST) / (HIGHEST - LOWEST)
    return results


def _judge(scorer: Scorer) -> str:
    return "" if scorer.judge is None else scorer.judge.name


for _name, _label, _more in (
    ("rubric_score", "rubric score", {"tested": True}),
    ("rubric_must", "share of musts met", {}),
    ("rubric_uncontradicted", "nothing contradicted", {"binary": True}),
    ("presentation", "presentation", {}),
    ("epistemics", "epistemics", {"tested": True}),
):
    METRICS.add(_name, Metric(_name, _label, needs="judge", source=_judge, **cast("Any", _more)), __name__)
# What collections say of an answer is found where they are: climassay.evaluation.long_answers.
METRICS.add("points_supported", Metric("points_supported", "points supported", tested=True), __name__)
METRICS.add("references_found", Metric("references_found", "references that exist"), __name__)
