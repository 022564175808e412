"""Checks of a draft, their registry, and the words of texts as checks compare them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from climassay.generation.draft import Draft
from climassay.questions import TYPES, Kind, QuestionType
from climassay.registry import Registry


def kinds_where(is_included: Callable[[QuestionType], bool]) -> tuple[Kind, ...]:
    """Return the kinds of questions whose type meets a condition."""
    return tuple(kind for kind, question_type in TYPES.items() if is_included(question_type))


QUESTION_KINDS = kinds_where(lambda question_type: not question_type.is_statement)
"""Kinds that ask a question."""
CHOICE_KINDS = kinds_where(lambda question_type: question_type.has_options and not question_type.fixed_options)
"""Kinds whose questions have options of their own."""
GAP_KINDS = kinds_where(lambda question_type: question_type.has_gap)
"""Kinds of statements with a masked term."""

CheckFunction = Callable[[Draft], str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """A named fault of drafts, and the function that detects it."""

    name: str
    """Name of the fault; ``by`` and ``reason`` of the check's decisions."""
    kinds: tuple[Kind, ...]
    """Kinds of questions that can have the fault."""
    description: str
    """Description of the fault in one sentence."""
    examine: CheckFunction
    """Function that returns one sentence on the fault in a written draft of these kinds, or None."""

    def fault(self, draft: Draft) -> str | None:
        """Return one sentence on the fault in a draft, or None; None also for a draft of another kind."""
        return self.examine(draft) if draft.kind in self.kinds else None


_MODULES = ("question_checks", "option_checks", "statement_checks", "support_checks", "catalogue")

CHECKS: Registry[Check] = Registry(
    "check",
    "climassay.checks",
    tuple(f"climassay.generation.screening.{name}" for name in _MODULES),
)
"""Registry of all checks that need no model, in the order of the catalogue."""


def check(name: str, kinds: Sequence[Kind], description: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check; see :class:`Check` for its argument and result.

    Example:
        >>> @check("shouting", ["mcq", "freeform"], "The question is in capital letters.")
        ... def shouting(draft):
        ...     return "All letters are capitals." if draft.wording.question.isupper() else None
    """

    def add(function: CheckFunction) -> CheckFunction:
        CHECKS.add(name, Check(name, tuple(kinds), description, function), function.__module__)
        return function

    return add


def right_answer(draft: Draft) -> str:
    """Return the text of the marked option, or the answer if there is none."""
    wording = draft.wording
    if wording.correct is not None and 0 <= wording.correct < len(wording.options):
        return wording.options[wording.correct]
    return wording.answer


_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that are separated by white space."""
    return frozenset(text.split())


_SUFFIXES = sorted(
    word_set(
        """
        ications isations izations ication isation ization ations ating ation ities ments ively ingly fully ated ates
        ment ness ions ings edly ally ate ity ion ing ive ies ied est ers al ed er es ly e s y
        """
    ),
    key=lambda suffix: (-len(suffix), suffix),
)
FUNCTION_WORDS = word_set(
    """
    a about above across after again against all almost along already also although always am among an and another any
    are around as at away be because been before behind being below beneath between beyond both but by can cannot could
    did do does doing down due during each either else even ever every few for from further had has have having he hence
    her here hers him his how however i if in instead into is it its itself just least less like many may me might more
    most much must my neither never no nor not of off often on once one only onto or other others ought our out over
    own per perhaps quite rather same shall she should since so some still such than that the their theirs them
    themselves then there therefore these they this those though through throughout thus to together too toward towards
    under until up upon us very via was we were what when where whereas whether which while who whom whose why will with
    within without would yet you your
    """
)
"""English words without subject matter."""


def words(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case, in order; ``3.5`` gives two."""
    return [match.lower() for match in _WORD.findall(text)]


def stem(word: str) -> str:
    """Return a word without its English suffix, so that *warming* and *warmed* have the same stem.

    At least four letters remain; words with digits are unchanged.
    """
    if any(letter.isdigit() for letter in word):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            return word[: -len(suffix)]
    return word


def content_words(text: str) -> list[str]:
    """Return the stems of a text's words without function words and numbers, in order."""
    return [
        stem(word) for word in words(text) if word not in FUNCTION_WORDS and not word[0].isdigit() and len(word) > 1
    ]
