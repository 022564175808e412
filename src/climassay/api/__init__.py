"""The public verbs: what ``import climassay`` offers, and what commands and pages call.

Each takes the names that the command line takes, opens what they name in a :class:`~climassay.session.Session`, keeps
every answer in the records of its workspace, and gives back a :class:`~climassay.reporting.results.Result` or the
record that the room itself works with. Whoever wants more turns to the rooms: they take opened models and collections,
and many more settings.

A model is a name, which is loaded for the session, or a loaded model, which stays open. A workspace is a session, an
opened workspace, its folder, or by default the one of the command line.
"""

from climassay.api.benchmarks import Evaluation, evaluate, evaluate_lm_eval, run_plan
from climassay.api.claims import check_claim, check_claims, score_verdicts
from climassay.api.confidence import extract_confidence, lint_confidence
from climassay.api.documents import add_documents, ask, evaluate_search, search
from climassay.api.generation import generate, screen
from climassay.api.judges import insert, rank, train_judge
from climassay.api.publishing import publish
from climassay.api.scores import score_answers
from climassay.api.tuning import finetune, pretrain
from climassay.factcheck.fallacies import find_fallacies

__all__ = [
    "Evaluation",
    "add_documents",
    "ask",
    "check_claim",
    "check_claims",
    "evaluate",
    "evaluate_lm_eval",
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
    "run_plan",
    "score_answers",
    "score_verdicts",
    "screen",
    "search",
    "train_judge",
]
