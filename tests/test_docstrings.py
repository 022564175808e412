"""Docstrings say what a caller must know: which errors a function raises itself, and the shapes of its arrays.

The sources are parsed, not imported: what is checked is what a reader sees.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import climassay

SOURCES = Path(climassay.__file__).parent
FAMILY = {"ClimassayError", "InputError", "DocumentError", "ModelError", "MissingExtraError", "RecordsError"}
ELSEWHERE = re.compile(r"\b(?:as|see|as in) :(?:func|meth|class):", re.IGNORECASE)
"""Words that send the reader to the docstring that says it."""
SHAPE = re.compile(r"\bshapes?\b|\[[a-z0-9][a-z0-9 ,*+/()]*\]", re.IGNORECASE)
ARRAYS = re.compile(r"\b(?:NDArray|ndarray|ArrayLike|FloatArray|IntArray|Tensor)\b")


class Public(NamedTuple):
    """A public class, function or method."""

    where: str
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def docstring(self) -> str:
        return " ".join((ast.get_docstring(self.node) or "").split())

    @property
    def is_function(self) -> bool:
        return not isinstance(self.node, ast.ClassDef)


def publics(module: ast.Module, where: str) -> Iterator[Public]:
    """Everything public that stands in a module, methods of public classes included; overloads are left out."""

    def below(node: ast.AST, name: str) -> Iterator[Public]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if child.name.startswith("_") or "overload" in map(ast.unparse, child.decorator_list):
                continue
            yield Public(f"{where}:{name}{child.name}", child)
            if isinstance(child, ast.ClassDef):
                yield from below(child, f"{name}{child.name}.")

    yield from below(module, "")


def errors_raised(node: ast.AST) -> set[str]:
    """Names of the family that a function raises in its own body, not in functions inside it."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(child, ast.Raise) and child.exc is not None:
            raised = child.exc.func if isinstance(child.exc, ast.Call) else child.exc
            found |= {raised.id} & FAMILY if isinstance(raised, ast.Name) else set()
        found |= errors_raised(child)
    return found


def is_shown_to_users(public: Public) -> bool:
    """Whether the docstring is a command's help or belongs to a web handler: it is written for users, not callers."""
    assert not isinstance(public.node, ast.ClassDef)
    if public.where.startswith("web/"):
        return any(re.match(r"\w*router\.\w+\(", ast.unparse(one)) for one in public.node.decorator_list)
    arguments = public.node.args
    annotations = [ast.unparse(one.annotation) for one in (*arguments.args, *arguments.kwonlyargs) if one.annotation]
    return public.where.startswith("cli/") and any(re.search(r"Option|Argument", one) for one in annotations)


def handles_arrays(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether numpy arrays or tensors stand in a function's signature."""
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    annotations = [one.annotation for one in arguments] + [node.returns]
    return any(ARRAYS.search(ast.unparse(one)) for one in annotations if one is not None)


def without_errors(public: Public) -> bool:
    said = "Raises:" in public.docstring or ELSEWHERE.search(public.docstring)
    return public.is_function and not said and bool(errors_raised(public.node)) and not is_shown_to_users(public)


def without_shapes(public: Public) -> bool:
    said = SHAPE.search(public.docstring) or ELSEWHERE.search(public.docstring)
    return public.is_function and not said and handles_arrays(public.node)


@pytest.fixture(scope="module")
def everything():
    files = {file.relative_to(SOURCES).as_posix(): file.read_text(encoding="utf-8") for file in SOURCES.rglob("*.py")}
    found = [public for where in sorted(files) for public in publics(ast.parse(files[where]), where)]
    assert len(found) > 2000
    return found


def test_functions_that_raise_errors_of_the_family_say_so(everything):
    assert [public.where for public in everything if without_errors(public)] == []


def test_functions_of_arrays_give_their_shapes(everything):
    assert [public.where for public in everything if without_shapes(public)] == []
