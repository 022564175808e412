"""Public names of a package, each imported when it is first used, so that importing the package costs next to nothing.

A package names them once, where type checkers and editors find them too::

    if TYPE_CHECKING:
        from climassay.corpus.collection import Collection as Collection

    export_lazily(__name__)
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any


def export_lazily(package: str, *, earlier: Mapping[str, str] = MappingProxyType({})) -> None:
    """Let a package, in its ``__init__``, offer every name that it imports ``as`` itself; they are its ``__all__``.

    A name that a module of the package has as well must be imported outside ``if TYPE_CHECKING``: importing a submodule
    sets an attribute of its name on the package, which would hide what is looked up only when it is used.

    Args:
        package: Its ``__name__``.
        earlier: Names that answer for one version more, with those that they have now.
    """
    module: Any = sys.modules[package]

    @cache
    def places() -> dict[str, str]:
        import ast

        tree = ast.parse(module.__loader__.get_source(package))
        found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        return {one.name: str(node.module) for node in found for one in node.names if one.asname == one.name}

    def find(name: str) -> Any:
        name = earlier.get(name, name)
        if name == "__all__":
            return sorted(places())
        if name.startswith("__") or name not in places():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places()[name]), name)

    module.__getattr__ = find
    module.__dir__ = lambda: sorted({*vars(module), *places()})
