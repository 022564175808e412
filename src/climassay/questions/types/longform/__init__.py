"""Questions answered in paragraphs with references and scored by a rubric.

Rubrics and ratings by people are stored as text, like other labels. The options of an item are the criteria to rate;
its answer has one line for each rating: ``4 | accuracy``, ``met | Criterion: Names the gas``.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from climassay.errors import InputError
from climassay.questions.types import Content, Criterion, CriterionLevel, QuestionType

if TYPE_CHECKING:
    from climassay.questions.types import Question

CriterionVerdict = Literal["met", "partly met", "not met", "contradicted"]
RUBRIC = "Rubric"
"""The only option of an annotation item whose answer is a rubric; see :func:`format_rubric`."""
MAX_CRITERIA = 50
_BULLET = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s+")
_LEVEL = re.compile(r"^(?:\[(must|should)\]|\((must|should)\)|(must|should):)\s*", re.IGNORECASE)
_WEIGHT = re.compile(r"\s*[\[(](?:weight:?\s*|x\s*)?(\d+(?:\.\d+)?)(?:\s*(?:points?|pts?))?[\])]\s*$", re.IGNORECASE)


def read_rubric(value: object) -> tuple[Criterion, ...]:
    """Parse the criteria of a rubric.

    Args:
        value: One of

            - a list, or its JSON, of texts or of mappings with the keys ``text`` (or ``criterion``), ``weight``,
              ``level`` and ``source``;
            - a text with one criterion per line, for example ``- [must] Names the gas (weight 2)``;
            - None, for no criteria.

    Raises:
        InputError: A criterion has no text, an unknown level, or a weight that is not positive.

    Example:
        >>> read_rubric("1. must: Names CO2 (2 points)")
        (Criterion(text='Names CO2', weight=2.0, level='must', source=''),)
    """
    entries = value
    if isinstance(entries, str):
        text = entries.strip()
        try:
            entries = json.loads(text) if text.startswith(("[", "{")) and not _LEVEL.match(text) else None
        except ValueError:
            entries = None
        if entries is None:
            entries = [line for line in text.splitlines() if line.strip()]
    if isinstance(entries, Mapping):
        entries = entries.get("criteria", [entries])
    if entries is None:
        return ()
    if not isinstance(entries, list | tuple):
        raise InputError(f"the rubric is {str(value)[:40]!r} instead of a list of criteria")
    if len(entries) > MAX_CRITERIA:
        raise InputError(f"the rubric has {len(entries)} criteria, more than {MAX_CRITERIA}")
    return tuple(_parse_criterion(entry, number) for number, entry in enumerate(entries, start=1))


def format_rubric(criteria: Iterable[Criterion]) -> str:
    """Serialise criteria to JSON that :func:`read_rubric` parses; without criteria the result is empty."""
    rows = [asdict(criterion) for criterion in criteria]
    return json.dumps(rows, ensure_ascii=False) if rows else ""


def _parse_criterion(value: Any, number: int) -> Criterion:
    entry: Mapping[str, Any] = value if isinstance(value, Mapping) else {"text": str(value)}
    text = _BULLET.sub("", " ".join(str(entry.get("text") or entry.get("criterion") or "").split()))
    level, weight = entry.get("level"), entry.get("weight")
    if not isinstance(value, Mapping):
        if match := _LEVEL.match(text):
            level, text = next(filter(None, match.groups())), text[match.end() :]
        if match := _WEIGHT.search(text):
            weight, text = match[1], text[: match.start()]
    if not text:
        raise InputError(f"criterion {number} of the rubric has no text")
    level_name = str(level or "must").lower()
    if level_name not in get_args(CriterionLevel):
        raise InputError(f"criterion {number} of the rubric is {level_name!r} instead of must or should")
    try:
        weight_value = 1.0 if weight in (None, "") else float(weight)
    except (TypeError, ValueError):
        weight_value = 0.0
    if not 0 < weight_value < float("inf"):
        raise InputError(f"criterion {number} of the rubric has the weight {weight!r}: it must be a number above 0")
    return Criterion(
        text,
        weight_value,
        "must" if level_name == "must" else "should",
        " ".join(str(entry.get("source") or "").split()),
    )


CRITERION = "Criterion: "
"""Prefix of an annotation item's option that is a criterion to rate; the text of the criterion follows."""
BETTER = "Better answer"
"""Option of an annotation item that compares two answers."""
RATINGS = ("1", "2", "3", "4", "5")
PREFERENCES = ("first", "tie", "second")
_MAX_DIFFERENCE = 1
"""Maximum difference between two ratings on the scale from 1 to 5 that counts as agreement."""


def possible_ratings(option: str) -> tuple[str, ...]:
    """Return the ratings that an option can get: 1 to 5, verdicts on a criterion, or preferences."""
    if option == BETTER:
        return PREFERENCES
    return get_args(CriterionVerdict) if option.startswith(CRITERION) else RATINGS


def format_ratings(ratings: Mapping[str, str]) -> str:
    """Serialise a mapping of options to ratings to a text with one rating per line."""
    return "\n".join(f"{choice} | {option}" for option, choice in ratings.items())


def parse_ratings(text: str, options: Sequence[str]) -> dict[str, str]:
    """Parse the text of :func:`format_ratings`, and return the ratings by option, in the order of ``options``.

    Raises:
        InputError: A line is not a rating of one of the options, or there is no rating.
    """
    ratings: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        choice, _, option = (part.strip() for part in line.partition("|"))
        if option not in options or choice not in possible_ratings(option):
            example = f"{possible_ratings(options[0])[0]} | {options[0]}"
            raise InputError(f"{line.strip()!r} is not a rating: write, for example, {example}.")
        ratings[option] = choice
    if not ratings:
        raise InputError("Rate the answer in at least one respect, or skip it.")
    return {option: ratings[option] for option in options if option in ratings}


def ratings_agree(texts: Sequence[str], options: Sequence[str]) -> bool:
    """Return whether raters agree on all options.

    Ratings from 1 to 5 may differ by one point; verdicts and preferences must be equal. Missing ratings are ignored.

    Args:
        texts: Ratings of each rater, as texts of :func:`format_ratings`.
        options: Rated options.
    """
    ratings_by_rater = [parse_ratings(text, options) for text in texts]
    for option in options:
        ranks = [possible_ratings(option).index(ratings[option]) for ratings in ratings_by_rater if option in ratings]
        max_difference = _MAX_DIFFERENCE if possible_ratings(option) == RATINGS else 0
        if ranks and max(ranks) - min(ranks) > max_difference:
            return False
    return True


class LongForm(QuestionType):
    """Question type answered in paragraphs, with optional rubric, audience and reference answer."""

    name = "longform"
    title = "Long answer"
    plural = "long-answer questions"
    has_reference = False
    is_judged = True
    has_levels = False
    max_tokens = 700
    text_fields = MappingProxyType({"question": 2000, "answer": 6000})
    metrics = (
        "rubric_score", "rubric_must", "rubric_uncontradicted", "presentation", "epistemics",
        "points_supported", "references_found",
    )  # fmt: skip

    def row_fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the audience and the rubric of a row, whose column is ``rubric`` or ``criteria``.

        Raises:
            InputError: A criterion is invalid.
        """
        audience = " ".join(str(row.get("audience") or "").split())
        return {"audience": audience, "rubric": read_rubric(row.get("rubric") or row.get("criteria"))}

    def prompt_values(self, question: "Question") -> dict[str, Any]:
        """Return the audience for whom the answer should be written."""
        return {"audience": question.audience}

    def validate_edit(self, content: Content) -> Content:
        """Validate what an expert entered: question and answer, ratings of the options, or a rubric.

        Raises:
            InputError: Question or answer is missing, or the ratings or the rubric are invalid.
        """
        if not content.options:
            return super().validate_edit(content)
        if content.options == (RUBRIC,):
            try:
                rubric = read_rubric(content.answer)
            except InputError as error:
                raise InputError(f"The rubric cannot be accepted: {error}.") from None
            if not rubric:
                raise InputError("Write at least one criterion, or skip the question.")
            return Content(content.question, format_rubric(rubric), content.options)
        ratings = parse_ratings(content.answer, content.options)
        return Content(content.question, format_ratings(ratings), content.options)


TYPE = LongForm()
