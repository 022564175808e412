"""Judging long answers: criteria of a rubric that they meet, and ratings of their adequacy in eight dimensions.

Every verdict and rating comes with the judge's reason and a quotation, which is searched for in the answer. Ratings of
presentation (how an answer reads) and of epistemics (what it is worth as knowledge) are never mixed: models differ in
epistemics and hardly in presentation.

The judge answers in JSON, one request per answer for the rubric and one for the ratings. The bundled model is no better
than chance as a judge (docs/results/long_answers.md).

References:
    Bulian et al. (2023), Assessing Large Language Models on Climate Information, arXiv 2310.02932, section 3 (the eight
    dimensions and their issues, here in our words).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from climassay.corpus.sentences import locate_quotation
from climassay.metrics.factual_accuracy import JudgeFailure, JudgeRequest, ask_json
from climassay.metrics.registry import METRICS, LongAnswer, Metric, Scorer
from climassay.models.contract import Generator, object_schema
from climassay.prompts import load_prompt
from climassay.questions import TYPES, Criterion
from climassay.questions.types.longform import CriterionVerdict

CREDITS: Mapping[CriterionVerdict, float] = {"met": 1.0, "partly met": 0.5, "not met": 0.0, "contradicted": 0.0}
"""Proportion of a criterion's weight that each verdict earns."""
Group = Literal["presentation", "epistemics"]
LOWEST, HIGHEST = 1, 5
_RATINGS = tuple(map(str, range(LOWEST, HIGHEST + 1)))
_MAX_TOKENS = 220
"""Maximum number of tokens of a verdict or rating, with its quotation and reason."""
_MAX_CHARACTERS = 500
"""Maximum number of characters of a quotation or a reason."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """Dimension of adequacy in which long answers are rated from 1 to 5."""

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
GROUP_OF: Mapping[str, Group] = {dimension.name: dimension.group for dimension in DIMENSIONS}


_Part: TypeAlias = Criterion | Dimension


@dataclass(frozen=True, slots=True)
class CriterionJudgement:
    """Judgement of an answer by one criterion of a rubric."""

    verdict: CriterionVerdict
    reason: str = ""
    quotation: str = ""
    quoted: bool = True
    """Whether the quotation occurs in the answer or is empty."""


@dataclass(frozen=True, slots=True)
class DimensionRating:
    """Rating of an answer in one dimension of adequacy."""

    dimension: str
    rating: float
    """Rating from 1 (not usable) to 5 (no fault)."""
    reason: str = ""
    issues: tuple[str, ...] = ()
    quotation: str = ""
    quoted: bool = True


@dataclass(frozen=True, slots=True)
class LongAnswerAssessment:
    """Assessment of a long answer by rubric and dimensions."""

    criteria: tuple[CriterionJudgement, ...] = ()
    """Judgements of the criteria in the order of the rubric; empty without a rubric or if the judge failed."""
    ratings: tuple[DimensionRating, ...] = ()
    """Ratings in the order of :data:`DIMENSIONS`; empty if the judge failed."""
    errors: tuple[str, ...] = ()
    """Errors of the judge, each as a sentence."""


class LongAnswerGrader:
    """Judge that assesses long answers by rubrics and dimensions with a language model."""

    def __init__(
        self,
        model: Generator,
        *,
        seed: int = 0,
        temperature: float = 0.0,
        reverse: bool = False,
    ) -> None:
        """Initialise the judge; the model is not called yet.

        Args:
            model: Model that judges.
            seed: Random seed of every request.
            temperature: Sampling temperature.
            reverse: Whether criteria and dimensions are presented in reverse order, which should not change the
                results.
        """
        self.model = model
        self._seed, self._temperature, self._reverse = seed, temperature, reverse
        self._rubric, self._adequacy = load_prompt("rubric"), load_prompt("adequacy")

    def assess(
        self, items: Sequence[LongAnswer], dimensions: Sequence[Dimension] = DIMENSIONS
    ) -> list[LongAnswerAssessment]:
        """Assess each answer by its rubric and by dimensions, in order, with a single call of the model.

        An empty answer meets no criterion and gets the lowest ratings, without a request.
        """
        tasks: list[tuple[LongAnswer, Sequence[_Part]]] = []
        for item in items:
            if item.answer.strip():
                tasks += [(item, parts) for parts in (item.rubric, dimensions) if parts]
        replies = iter(self._ask(tasks))
        assessments = []
        for item in items:
            if not item.answer.strip():
                criteria = tuple(CriterionJudgement("not met") for _ in item.rubric)
                ratings = tuple(DimensionRating(dimension.name, LOWEST) for dimension in dimensions)
                assessments.append(LongAnswerAssessment(criteria, ratings))
                continue
            assessment = LongAnswerAssessment()
            for field, parts in (("criteria", item.rubric), ("ratings", dimensions)):
                if parts:
                    reply = next(replies)
                    if isinstance(reply, JudgeFailure):
                        assessment = replace(assessment, errors=(*assessment.errors, reply.error))
                    else:
                        assessment = replace(assessment, **{field: reply})
            assessments.append(assessment)
        return assessments

    def _ask(self, tasks: Sequence[tuple[LongAnswer, Sequence[_Part]]]) -> list[Any]:
        requests = []
        for item, parts in tasks:
            numbered_parts = list(enumerate(parts, start=1))
            if self._reverse:
                numbered_parts.reverse()
            values = {name: getattr(item, name) for name in ("question", "audience", "reference", "answer")}
            if isinstance(parts[0], Criterion):
                rendered_prompt = self._rubric.render(**values, criteria=numbered_parts)
            else:
                rendered_prompt = self._adequacy.render(
                    **values, dimensions=[dimension for _, dimension in numbered_parts]
                )
            schema = object_schema({_name_field(number, part): _make_schema(part) for number, part in numbered_parts})
            parse = partial(_parse_judgements, answer=item.answer, parts=parts)
            requests.append(JudgeRequest(rendered_prompt, schema, parse, _MAX_TOKENS * len(parts)))
        return ask_json(requests, self.model, seed=self._seed, temperature=self._temperature)


def assess_with_scorer(
    scorer: Scorer, kind: str, items: Sequence[LongAnswer | None]
) -> list[LongAnswerAssessment | None]:
    """Assess long answers with a scorer's judge; return None for items that are None, and for all without a judge."""
    if scorer.judge is None or not TYPES[kind].is_judged:
        return [None] * len(items)
    assessments = iter(LongAnswerGrader(scorer.judge).assess([item for item in items if item is not None]))
    return [None if item is None else next(assessments) for item in items]


def _name_field(number: int, part: _Part) -> str:
    return f"criterion_{number}" if isinstance(part, Criterion) else part.name


def _make_schema(part: _Part) -> dict[str, Any]:
    """Return the JSON schema of the judgement of a criterion or the rating of a dimension."""
    text = {"type": "string", "maxLength": _MAX_CHARACTERS}
    fields: dict[str, Any] = {"quotation": text, "reason": text}
    if isinstance(part, Criterion):
        return object_schema({**fields, "verdict": {"type": "string", "enum": [*CREDITS]}})
    if part.issues:
        issue = {"type": "string", "enum": list(part.issues)}
        fields["issues"] = {"type": "array", "items": issue, "minItems": 0, "maxItems": len(part.issues)}
    return object_schema({**fields, "rating": {"type": "string", "enum": [*_RATINGS]}})


def _parse_judgements(
    data: Mapping[str, Any], *, answer: str, parts: Sequence[_Part]
) -> tuple[CriterionJudgement | DimensionRating, ...]:
    """Convert a judge's JSON on an answer; raise ValueError, KeyError or TypeError if it does not match the schema."""
    judgements: list[CriterionJudgement | DimensionRating] = []
    for number, part in enumerate(parts, start=1):
        entry = data[_name_field(number, part)]
        quotation, reason = (" ".join(str(entry[name]).split()) for name in ("quotation", "reason"))
        is_quoted = not quotation or locate_quotation(answer, quotation) is not None
        if isinstance(part, Criterion):
            if entry["verdict"] not in CREDITS:
                raise ValueError(entry["verdict"])
            judgements.append(CriterionJudgement(entry["verdict"], reason, quotation, is_quoted))
        else:
            issues = tuple(issue for issue in part.issues if issue in entry.get("issues", ()))
            rating = _RATINGS.index(str(entry["rating"])) + LOWEST
            judgements.append(DimensionRating(part.name, rating, reason, issues, quotation, is_quoted))
    return tuple(judgements)


def assessment_scores(assessment: LongAnswerAssessment, rubric: Sequence[Criterion]) -> dict[str, float]:
    """Return the scores of an assessment, from 0 to 1 (best), by name in :data:`~climassay.metrics.METRICS`.

    ``rubric_score``
        Weighted mean of the criteria's credits: 1 if met, one half if partly met.
    ``rubric_must``
        Proportion of the criteria at level "must" that are fully met.
    ``rubric_uncontradicted``
        1 if no criterion is contradicted, else 0.
    ``presentation``, ``epistemics``
        Mean rating of the group's four dimensions, rescaled to the range 0 to 1.

    A score is missing if the judge failed on the criteria or ratings on which it is based.
    """
    results: dict[str, float] = {}
    if rubric and len(assessment.criteria) == len(rubric):
        verdicts = [judgement.verdict for judgement in assessment.criteria]
        total = sum(criterion.weight for criterion in rubric)
        earned_weight = sum(c.weight * CREDITS[verdict] for c, verdict in zip(rubric, verdicts, strict=True))
        results["rubric_score"] = earned_weight / total
        is_must_met = [verdict == "met" for c, verdict in zip(rubric, verdicts, strict=True) if c.level == "must"]
        if is_must_met:
            results["rubric_must"] = sum(is_must_met) / len(is_must_met)
        results["rubric_uncontradicted"] = float("contradicted" not in verdicts)
    for group in get_args(Group):
        ratings = [rating.rating for rating in assessment.ratings if GROUP_OF.get(rating.dimension) == group]
        if ratings:
            results[group] = (float(np.mean(ratings)) - LOWEST) / (HIGHEST - LOWEST)
    return results


def _judge_name(scorer: Scorer) -> str:
    return "" if scorer.judge is None else scorer.judge.name


for _name, _label, _fields in (
    ("rubric_score", "rubric score", {"tested": True}),
    ("rubric_must", "share of musts met", {}),
    ("rubric_uncontradicted", "nothing contradicted", {"binary": True}),
    ("presentation", "presentation", {}),
    ("epistemics", "epistemics", {"tested": True}),
):
    METRICS.add(_name, Metric(_name, _label, needs="judge", source=_judge_name, **cast("Any", _fields)), __name__)
# climassay.evaluation.long_answers computes the scores that need collections.
METRICS.add("points_supported", Metric("points_supported", "points supported", tested=True), __name__)
METRICS.add("references_found", Metric("references_found", "references that exist"), __name__)
