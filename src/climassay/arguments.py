"""Public functions that say in one sentence which argument is of a type that they have no use for."""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

from climassay.errors import InputError

_PLAIN: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "str": (str, "a string"),
    "Path": ((str, PathLike), "a path"),
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "bool": (Integral, "True or False"),
    "Any": (object, "anything"),
    "Mapping": (Mapping, "a dictionary"),
    "None": (type(None), "None"),
    "NoneType": (type(None), "None"),
}
_MANY = ("Sequence", "Iterable", "tuple", "list")
_BUILTIN = (str, bytes, PathLike, Real, list, tuple, dict, set, type(None))


@cache
def checking_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which takes a string for a path and refuses arguments of a type that it has no use for.

    What an annotation names beside Python's own types is compared by its name, so that nothing is imported for it.

    Raises:
        InputError: When called with such an argument; the sentence names it and says what is wanted.

    Example:
        >>> def lines(file: Path) -> int:
        ...     return len(file.read_text().splitlines())
        >>> checking_arguments(lines)(["a.txt"])
        Traceback (most recent call last):
        climassay.errors.InputError: lines: file must be a path, not a list of str.
    """
    signature = inspect.signature(function)
    types = {name: list(_types(one.annotation)) for name, one in signature.parameters.items()}

    @wraps(function)
    def checking(*args: Any, **options: Any) -> Any:
        try:
            bound = signature.bind(*args, **options)
        except TypeError:
            return function(*args, **options)  # Python names the function in what it says
        for name, value in bound.arguments.items():
            if signature.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                continue
            taken = [one for one in types[name] if _fits(one, value)]
            if not taken:
                wanted = " or ".join(dict.fromkeys(map(_described, types[name])))
                raise InputError(f"{function.__name__}: {name} must be {wanted}, not {_described_value(value)}.")
            bound.arguments[name] = _with_paths(taken, value)
        return function(*bound.args, **bound.kwargs)

    return checking


def _types(annotation: Any) -> Iterator[ast.expr]:
    """The alternatives of an annotation, as written in the source or as evaluated."""
    if not isinstance(annotation, ast.expr):
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        annotation = ast.parse("Any" if annotation is inspect.Parameter.empty else text, mode="eval").body
    name, inside = _parts(annotation)
    if isinstance(annotation, ast.BinOp):
        inside = [annotation.left, annotation.right]
    elif name not in ("Union", "Optional"):
        yield annotation
        return
    for one in inside + [ast.Constant(None)] * (name == "Optional"):
        yield from _types(one)


def _parts(node: ast.expr) -> tuple[str, list[ast.expr]]:
    """Last part of a type's name, and what stands in brackets after it."""
    if not isinstance(node, ast.Subscript):
        return ast.unparse(node).rsplit(".", 1)[-1], []
    inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return _parts(node.value)[0], [one for one in inside if ast.unparse(one) != "..."]


def _fits(node: ast.expr, value: Any) -> bool:
    name, inside = _parts(node)
    if name == "Literal":
        return value in [ast.literal_eval(one) for one in inside]
    if name == "Callable":
        return callable(value)
    if name in _PLAIN:
        return isinstance(value, _PLAIN[name][0]) or (
            name == "bool" and type(value).__name__ in ("bool", "bool_")
        )  # NumPy's
    if name in _MANY:
        if not isinstance(value, Iterable) or isinstance(value, (str, bytes, PathLike, Mapping)):
            return False
        items = value if isinstance(value, (list, tuple)) and inside else ()
        return all(any(_fits(one, item) for kind in inside for one in _types(kind)) for item in items)
    # A class of ours, a protocol, or the name of a choice of strings, which the function checks itself.
    return not isinstance(value, _BUILTIN) or any(one.__name__ in (name, "str") for one in type(value).__mro__)


def _with_paths(taken: list[ast.expr], value: Any) -> Any:
    """The value, with its strings made paths where nothing else is wanted of them."""
    names = {_parts(one)[0] for one in taken}
    if isinstance(value, str):
        return Path(value) if names == {"Path"} else value
    if isinstance(value, (list, tuple)) and names & set(_MANY):
        inside = [one for many in taken for kind in _parts(many)[1] for one in _types(kind)]
        return type(value)(_with_paths([one for one in inside if _fits(one, item)], item) for item in value)
    return value


def _described(node: ast.expr) -> str:
    name, inside = _parts(node)
    if name == "Literal":
        return " or ".join(map(ast.unparse, inside))
    if name in _MANY:
        return f"several, each {' or '.join(_described(one) for kind in inside for one in _types(kind))}"
    return _PLAIN[name][1] if name in _PLAIN else "a function" if name == "Callable" else f"{_article(name)} {name}"


def _described_value(value: Any) -> str:
    if value is None or isinstance(value, (str, Real)):
        return repr(value)[:80]
    name = type(value).__name__
    holds = {type(one).__name__ for one in value} if isinstance(value, (list, tuple)) else ()
    return f"{_article(name)} {name}" + (f" of {' and '.join(sorted(holds))}" if holds else "")


def _article(name: str) -> str:
    return "an" if name[0].lower() in "aeiou" else "a"
