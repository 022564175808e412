"""The main jobs in one call each, for notebooks and short scripts; ``import climassay`` offers them.

Each call takes the names that the command line takes, opens what they name, keeps every answer in the records of the
workspace, and gives back the record that the room itself works with. Whoever wants more turns to the rooms: they take
opened models and collections, and many more settings.

A model is a name, which is loaded for the call, or a loaded model, which stays open. A workspace is an opened one, a
folder, or by default the one of the command line.
"""

from climassay.calls.answers import add_documents, ask, check_claim
from climassay.calls.benchmarks import Evaluation, evaluate, generate, run_plan
from climassay.calls.judges import rank, train_judge
from climassay.factcheck.fallacies import find_fallacies

__all__ = [
    "Evaluation",
    "add_documents",
    "ask",
    "check_claim",
    "evaluate",
    "find_fallacies",
    "generate",
    "rank",
    "run_plan",
    "train_judge",
]
