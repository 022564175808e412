"""Variables, parameters, functions and attributes are named by nouns and verbs that say what they hold or do."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import climassay

SOURCE = Path(climassay.__file__).parent
_VAGUE_WORDS = """
one ones place places asked asking given saying said telling told tells wanted kept taken shown made seen whole least
most others other_one ahead within waiting company interview exhibit bench manner desk standing lesson twins turned
clues crew held speaks heard bears found looked come comes goes gone beside apart
"""
VAGUE = frozenset(_VAGUE_WORDS.split())
"""Participles, pronouns and adverbs that do not say what the value is; singular nouns of a collection are better."""
ALLOWED = {"corpus": 1, "learning": 1, "models": 2}
"""Largest number of bindings with such a name in each package; lower a number when you rename, and never raise it."""


def bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_names_say_what_they_hold():
    counts: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        vague = [name for name in bound_names(ast.parse(path.read_text("utf-8"))) if name.strip("_") in VAGUE]
        counts[package] += len(vague)
        places.setdefault(package, []).extend(f"{path.relative_to(SOURCE)}: {name}" for name in vague)
    exceeded = {package: places[package] for package, count in counts.items() if count > ALLOWED.get(package, 0)}
    assert not exceeded
