"""climassay: measure whether a language model can be trusted on climate.

The names that matter in a notebook; the rooms (``climassay.corpus``, ``climassay.evaluation`` ...) have many more::

    import climassay

    climassay.add_documents("books", ["report.pdf"])
    print(climassay.ask("How much has the sea level risen?", "books").text)
    print(climassay.check_claim("Volcanoes emit more CO2 than people.", "books").verdict.label)
    result = climassay.evaluate("primer", settings=["default", "rag:books"])

Each is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.api import (
        Evaluation,
        add_documents,
        ask,
        check_claim,
        check_claims,
        evaluate,
        evaluate_search,
        extract_confidence,
        find_fallacies,
        finetune,
        generate,
        insert,
        lint_confidence,
        pretrain,
        publish,
        rank,
        score_answers,
        score_verdicts,
        screen,
        search,
        train_judge,
    )
    from climassay.confidence.tagging import load_tagger
    from climassay.corpus import Collection
    from climassay.errors import ClimassayError
    from climassay.judging import Item
    from climassay.models import load_model
    from climassay.models.encoders.loading import load_encoder
    from climassay.questions import read_questions
    from climassay.session import ModelOptions, Session
    from climassay.workspace import Workspace

__version__ = "0.1.0.dev0"

_PLACES = {
    "api": (
        "Evaluation",
        "add_documents",
        "ask",
        "check_claim",
        "check_claims",
        "evaluate",
        "evaluate_search",
        "extract_confidence",
        "find_fallacies",
        "finetune",
        "generate",
        "insert",
        "lint_confidence",
        "pretrain",
        "publish",
        "rank",
        "score_answers",
        "score_verdicts",
        "screen",
        "search",
        "train_judge",
    ),
    "confidence.tagging": ("load_tagger",),
    "corpus": ("Collection",),
    "errors": ("ClimassayError",),
    "judging": ("Item",),
    "models": ("load_model",),
    "models.encoders.loading": ("load_encoder",),
    "questions": ("read_questions",),
    "session": ("ModelOptions", "Session"),
    "workspace": ("Workspace",),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "ClimassayError",
    "Collection",
    "Evaluation",
    "Item",
    "ModelOptions",
    "Session",
    "Workspace",
    "__version__",
    "add_documents",
    "ask",
    "check_claim",
    "check_claims",
    "evaluate",
    "evaluate_search",
    "extract_confidence",
    "find_fallacies",
    "finetune",
    "generate",
    "insert",
    "lint_confidence",
    "load_encoder",
    "load_model",
    "load_tagger",
    "pretrain",
    "publish",
    "rank",
    "read_questions",
    "score_answers",
    "score_verdicts",
    "screen",
    "search",
    "train_judge",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import climassay`` costs next to nothing."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names, so that a notebook completes them before they are imported."""
    return sorted({*globals(), *__all__})
