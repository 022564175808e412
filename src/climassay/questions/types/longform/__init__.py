"""Questions that are answered at length, with references, and scored against a rubric of criteria that can be checked.

Rubrics that people write and ratings that they give are both one text. Things to be rated are the options of an item;
the answer has one line for each that was rated: ``4 | accuracy``, ``met | Criterion: Names the gas``. So ratings are
stored, compared, undone and adjudicated as other labels are.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, get_args

from climassay.errors import InputError
from climassay.questions.types import Content, Criterion, CriterionLevel, Lengths, QuestionType

if TYPE_CHECKING:
    from climassay.questions.types import Question

CriterionVerdict = Literal["met", "partly met", "not met", "contradicted"]
RUBRIC = "Rubric"
"""The one option of an item whose rubric people write: their answer is the rubric, as :func:`written_rubric` has it."""
MOST_CRITERIA = 50
_BULLET = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s+")
_LEVEL = re.compile(r"^(?:\[(must|should)\]|\((must|should)\)|(must|should):)\s*", re.IGNORECASE)
_WEIGHT = re.compile(r"\s*[\[(](?:weight:?\s*|x\s*)?(\d+(?:\.\d+)?)(?:\s*(?:points?|pts?))?[\])]\s*$", re.IGNORECASE)


def read_rubric(value: object) -> tuple[Criterion, ...]:
    """The criteria that a file gives.

    Args:
        value: A list of texts or of tables (``text`` or ``criterion``, ``weight``, ``level``, ``source``), also written
            as JSON; or a text of one criterion per line, ``- [must] Names the gas (weight 2)``. Nothing gives none.

    Raises:
        InputError: A criterion has no text, no known level, or no positive weight.

    Example:
        >>> read_rubric("1. must: Names CO2 (2 points)")
        (Criterion(text='Names CO2', weight=2.0, level='must', source=''),)
    """
    given = value
    if isinstance(given, str):
        text = given.strip()
        try:
            given = json.loads(text) if text.startswith(("[", "{")) and not _LEVEL.match(text) else None
        except ValueError:
            given = None
        if given is None:
            given = [line for line in text.splitlines() if line.strip()]
    if isinstance(given, Mapping):
        given = given.get("criteria", [given])
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise InputError(f"the rubric is {str(value)[:40]!r} instead of a list of criteria")
    if len(given) > MOST_CRITERIA:
        raise InputError(f"the rubric has {len(given)} criteria, more than {MOST_CRITERIA}")
    return tuple(_criterion(one, place) for place, one in enumerate(given, start=1))


def written_rubric(criteria: Iterable[Criterion]) -> str:
    """Criteria as the text that is stored, which :func:`read_rubric` reads; nothing where there are none."""
    rows = [asdict(one) for one in criteria]
    return json.dumps(rows, ensure_ascii=False) if rows else ""


def _criterion(given: Any, place: int) -> Criterion:
    entry: Mapping[str, Any] = given if isinstance(given, Mapping) else {"text": str(given)}
    text = _BULLET.sub("", " ".join(str(entry.get("text") or entry.get("criterion") or "").split()))
    level, weight = entry.get("level"), entry.get("weight")
    if not isinstance(given, Mapping):
        if match := _LEVEL.match(text):
            level, text = next(filter(None, match.groups())), text[match.end() :]
        if match := _WEIGHT.search(text):
            weight, text = match[1], text[: match.start()]
    if not text:
        raise InputError(f"criterion {place} of the rubric has no text")
    named = str(level or "must").lower()
    if named not in get_args(CriterionLevel):
        raise InputError(f"criterion {place} of the rubric is {named!r} instead of must or should")
    try:
        number = 1.0 if weight in (None, "") else float(weight)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise InputError(f"criterion {place} of the rubric has the weight {weight!r}: it must be a number above 0")
    return Criterion(
        text, number, "must" if named == "must" else "should", " ".join(str(entry.get("source") or "").split())
    )


CRITERION = "Criterion: "
"""How the option of a criterion begins; behind it stands its text."""
BETTER = "Better answer"
"""The option by which two answers are compared."""
RATINGS = ("1", "2", "3", "4", "5")
PREFERENCES = ("first", "tie", "second")
_APART = 1
"""Steps by which two people may differ and still agree."""


def choices(option: str) -> tuple[str, ...]:
    """What may be said of an option: 1 to 5 of a dimension, a verdict on a criterion, or which answer is better."""
    if option == BETTER:
        return PREFERENCES
    return get_args(CriterionVerdict) if option.startswith(CRITERION) else RATINGS


def written_ratings(ratings: Mapping[str, str]) -> str:
    """Ratings by option as the text that is stored."""
    return "\n".join(f"{choice} | {option}" for option, choice in ratings.items())


def read_written(text: str, options: Sequence[str]) -> dict[str, str]:
    """Ratings by option, in the order of the options, from :func:`written_ratings`.

    Raises:
        InputError: A line is no rating of an option, or nothing is rated.
    """
    said: dict[str, str] = {}
    for line in filter(str.strip, text.splitlines()):
        choice, _, option = (part.strip() for part in line.partition("|"))
        if option not in options or choice not in choices(option):
            raise InputError(
                f"{line.strip()!r} is not a rating: write, for example, {choices(options[0])[0]} | {options[0]}."
            )
        said[option] = choice
    if not said:
        raise InputError("Rate the answer in at least one respect, or skip it.")
    return {option: said[option] for option in options if option in said}


def ratings_agree(texts: Sequence[str], options: Sequence[str]) -> bool:
    """Whether people agree: nowhere two of them more than one step of five apart, and verdicts and preferences alike.

    What somebody left out contradicts nobody.
    """
    read = [read_written(text, options) for text in texts]
    for option in options:
        said = [choices(option).index(one[option]) for one in read if option in one]
        steps = _APART if choices(option) == RATINGS else 0
        if said and max(said) - min(said) > steps:
            return False
    return True


class LongForm(QuestionType):
    """A question that is answered in paragraphs; it may have a rubric, an audience and a reference answer."""

    name = "longform"
    title = "Long answer"
    answered = False
    judged = True
    levels = False
    tokens = 700
    metrics = (
        "rubric_score", "rubric_must", "rubric_uncontradicted", "presentation", "epistemics",
        "points_supported", "references_found",
    )  # fmt: skip

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Audience and rubric of a row (``rubric`` or ``criteria``).

        Raises:
            InputError: A criterion cannot be read.
        """
        audience = " ".join(str(row.get("audience") or "").split())
        return {"audience": audience, "rubric": read_rubric(row.get("rubric") or row.get("criteria"))}

    def values(self, question: "Question") -> dict[str, Any]:
        """For whom the answer is."""
        return {"audience": question.audience}

    def edited(self, content: Content) -> Content:
        """An expert's words, checked: ratings of an item's options, or the rubric of a question where one is asked for.

        Raises:
            InputError: Question or answer is missing, or what was said is no rating or no rubric.
        """
        if not content.options:
            return super().edited(content)
        if content.options == (RUBRIC,):
            try:
                rubric = read_rubric(content.answer)
            except InputError as error:
                raise InputError(f"The rubric cannot be accepted: {error}.") from None
            if not rubric:
                raise InputError("Write at least one criterion, or skip the question.")
            return Content(content.question, written_rubric(rubric), content.options)
        ratings = read_written(content.answer, content.options)
        return Content(content.question, written_ratings(ratings), content.options)

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """Question and reference answer, which has room for a paragraph."""
        return {"question": bounds.question, "answer": 3 * bounds.answer}


TYPE = LongForm()
