"""What a person says of a long answer: ratings, verdicts on criteria, which of two is better; as one text.

The things to be rated are the options of an item, its answer is one line for each that was rated: ``4 | accuracy``,
``met | Criterion: Names the gas``. So ratings are stored, compared, undone and adjudicated as other labels are.
"""

from collections.abc import Mapping, Sequence
from typing import get_args

from climassay.errors import InputError
from climassay.questions.types.longform.rubric import CriterionVerdict

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
