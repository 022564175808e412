"""What is particular to a kind of question stands in its folder; elsewhere, code asks the type for its properties."""

import ast
from collections import Counter
from pathlib import Path

import climassay
from climassay.questions import KINDS

SOURCE = Path(climassay.__file__).parent
ALLOWED = {
    "cli/evaluate.py": 1,  # name of a command
    "evaluation/paper_scores.py": 12,  # numbers of questions in the ClimaQA paper
    "evaluation/tables.py": 2,  # name of a table
    "generation/validation/readers.py": 1,  # name of a feature
    "integrations/inspect/_registry.py": 3,  # names of tasks
    "integrations/inspect/tasks.py": 3,  # kinds of the tasks, each with its own scorers
    "metrics/registry.py": 1,  # name of a module
    "reproduction/climaqa.py": 9,  # kinds in the published tables of the ClimaQA paper
}
"""Number of string literals that equal a kind, by file; lower a number if you can, and never raise it."""


def test_kinds_are_named_in_their_folders_only():
    counts = Counter(
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(SOURCE / "questions" / "types")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in KINDS
    )
    assert counts - Counter(ALLOWED) == Counter()
