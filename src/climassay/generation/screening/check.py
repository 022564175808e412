"""Checks of a draft, their registry, and the words of texts in the form in which checks compare them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from climassay.generation.draft import Draft
from climassay.generation.terms import word_set
from climassay.questions import Kind, kinds_where
from climassay.registry import Registry

QUESTION_KINDS = kinds_where(lambda question_type: not question_type.is_statement)
"""Kinds whose text is a question rather than a statement."""
CHOICE_KINDS = kinds_where(lambda question_type: question_type.has_lettered_options)
"""Kinds in which each question has its own options."""
GAP_KINDS = kinds_where(lambda question_type: question_type.has_gap)
"""Kinds whose text is a statement with a masked term."""

CheckFunction = Callable[[Draft], str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """Fault that drafts can have, with the function that detects it."""

    name: str
    """Name of the fault, which is both ``by`` and ``reason`` in the check's decisions."""
    kinds: tuple[Kind, ...]
    """Kinds of questions that can have the fault."""
    description: str
    """Description of the fault in one sentence."""
    examine: CheckFunction
    """Function that describes the fault of a draft in one sentence, or returns None; called only for ``kinds``."""

    def find_fault(self, draft: Draft) -> str | None:
        """Describe the fault of a draft in one sentence, or return None if there is none or its kind is not checked."""
        return self.examine(draft) if draft.kind in self.kinds else None


_MODULES = ("question_checks", "option_checks", "statement_checks", "support_checks", "catalogue")

CHECKS: Registry[Check] = Registry(
    "check", "climassay.checks", tuple(f"climassay.generation.screening.{name}" for name in _MODULES)
)
"""Registry of all checks that need no model, in the order in which they are run and listed."""


def check(name: str, kinds: Sequence[Kind], description: str) -> Callable[[CheckFunction], CheckFunction]:
    """Return a decorator that registers a function as a check; see :attr:`Check.examine` for its signature.

    Example:
        >>> @check("shouting", ["mcq", "freeform"], "The question is in capital letters.")
        ... def shouting(draft):
        ...     return "All letters are capitals." if draft.wording.question.isupper() else None
    """

    def add(function: CheckFunction) -> CheckFunction:
        CHECKS.add(name, Check(name, tuple(kinds), description, function), function.__module__)
        return function

    return add


def correct_answer(draft: Draft) -> str:
    """Return the text of the option marked as correct or, if no option is marked, the answer."""
    wording = draft.wording
    if wording.correct is not None and 0 <= wording.correct < len(wording.options):
        return wording.options[wording.correct]
    return wording.answer


_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")


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
"""English function words, which do not count as content words."""


def words(text: str) -> list[str]:
    """Return the words and integers of a text in lower case, in order; ``3.5`` gives ``3`` and ``5``."""
    return [word.lower() for word in _WORD.findall(text)]


def stem(word: str) -> str:
    """Return the stem of an English word; for example, *warming* and *warmed* have the same stem.

    A suffix is removed only if at least four letters remain. Words with digits are unchanged.
    """
    if any(letter.isdigit() for letter in word):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            return word[: -len(suffix)]
    return word


def content_words(text: str) -> list[str]:
    """Return the stems of a text's words in order, excluding function words, numbers and single letters."""
    return [
        stem(word) for word in words(text) if word not in FUNCTION_WORDS and not word[0].isdigit() and len(word) > 1
    ]
