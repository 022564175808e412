"""Screening: named, switchable checks that mark faulty drafts and remove none.

Families of checks lie in a file each: form, language, references, options, clues, statements, support, and those that
ask a model; beside them the fault of a seed passage, near-duplicates across a set, self-consistency, and the table of
what each check stopped. ClimaQA, section 4.2 and appendix A.4.1.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.generation.screening.catalogue import CHECKS, check_names, screen
    from climassay.generation.screening.check import Check
    from climassay.generation.screening.consistency import SelfConsistency
    from climassay.generation.screening.language import LANGUAGES, other_language
    from climassay.generation.screening.model_checks import MODEL_CHECKS
    from climassay.generation.screening.near_duplicates import DuplicateFinder
    from climassay.generation.screening.passages import passage_fault
    from climassay.generation.screening.question_drafts import example_draft, question_draft
    from climassay.generation.screening.statements import TERM_CHECKS
    from climassay.generation.screening.verification import REPLACED, Verification, answer_check
    from climassay.generation.screening.yields import CheckCount, check_counts, table

_PLACES = {
    "catalogue": ("CHECKS", "check_names", "screen"),
    "check": ("Check",),
    "consistency": ("SelfConsistency",),
    "language": ("LANGUAGES", "other_language"),
    "model_checks": ("MODEL_CHECKS",),
    "near_duplicates": ("DuplicateFinder",),
    "passages": ("passage_fault",),
    "question_drafts": ("example_draft", "question_draft"),
    "statements": ("TERM_CHECKS",),
    "verification": ("REPLACED", "Verification", "answer_check"),
    "yields": ("CheckCount", "check_counts", "table"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "CHECKS",
    "LANGUAGES",
    "MODEL_CHECKS",
    "REPLACED",
    "TERM_CHECKS",
    "Check",
    "CheckCount",
    "DuplicateFinder",
    "SelfConsistency",
    "Verification",
    "answer_check",
    "check_counts",
    "check_names",
    "example_draft",
    "other_language",
    "passage_fault",
    "question_draft",
    "screen",
    "table",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
