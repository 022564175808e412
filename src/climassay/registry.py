"""What is found by its name and imported no sooner than it is used.

Public names of packages; packages that extras bring; and things that can be added from outside: metrics, providers,
readers, judges, checks, rules. A package names what it offers once, where type checkers and editors find it too::

    if TYPE_CHECKING:
        from climassay.corpus.collection import Collection as Collection

    export_lazily(__name__)
"""

import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from threading import RLock
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from climassay.errors import InputError


def export_lazily(
    package: str,
    *,
    check_arguments: bool = False,
) -> None:
    """Let a package, in its ``__init__``, offer every name that it imports ``as`` itself; they are its ``__all__``.

    A name that a module of the package has as well must be imported outside ``if TYPE_CHECKING``: importing a submodule
    sets an attribute of its name on the package, which would hide what is looked up only when it is used.

    Args:
        package: Its ``__name__``.
        check_arguments: Offer functions as :func:`climassay.arguments.checking_arguments` makes them.
    """
    module: Any = sys.modules[package]

    @cache
    def places() -> dict[str, str]:
        import ast

        tree = ast.parse(module.__loader__.get_source(package))
        results = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        return {one.name: str(node.module) for node in results for one in node.names if one.asname == one.name}

    def find(name: str) -> Any:
        if name == "__all__":
            return sorted(places())
        if name.startswith("__") or name not in places():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places()[name]), name)
        if not check_arguments or not inspect.isfunction(value):
            return value
        from climassay.arguments import checking_arguments

        return checking_arguments(value)

    module.__getattr__ = find
    module.__dir__ = lambda: sorted({*vars(module), *places()})


EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "local": "local models and the encoder of collections",
        "web": "climassay serve, the pages in a browser",
        "postgres": "records and labels in PostgreSQL",
        "topics": "climassay confidence topics",
        "ray": "long runs on several machines",
        "inspect": "the tasks for Inspect",
        "lm-eval": "the tasks for lm-evaluation-harness",
    }
)
"""What each extra is for; those for working on climassay itself are left out."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*])?\s*([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_IMPORTED_AS = {
    "argon2-cffi": "argon2",
    "huggingface-hub": "huggingface_hub",
    "python-multipart": "multipart",
    "umap-learn": "umap",
}
"""Names under which packages are imported, where that is not their own name."""
_BROUGHT_ALONG = {"local": ("huggingface-hub",), "web": ("starlette",)}
"""Packages that climassay imports and that come with those of an extra."""


class Requirement(NamedTuple):
    """A package that is asked for."""

    name: str
    versions: str
    """For example ``>=2.6``; empty where any will do."""


def requirements() -> dict[str, list[Requirement]] | None:
    """Packages by extra, under ``""`` those always needed; None where pip knows nothing of climassay."""
    from importlib import metadata

    try:
        lines = metadata.requires("climassay") or []
    except metadata.PackageNotFoundError:
        return None
    results: dict[str, list[Requirement]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is not None:
            name, versions, marker = match.groups()
            extra = _EXTRA.search(marker or "")
            results.setdefault(extra.group(1) if extra else "", []).append(Requirement(name, versions.strip(" ()")))
    return results


def extra_with(module: str) -> str | None:
    """The extra that brings a module, for example ``local`` for ``torch.nn``; None where none of them does."""
    wanted = module.partition(".")[0]
    known = requirements() or {}
    for extra in EXTRAS:
        names = [one.name.lower() for one in known.get(extra, ())] + list(_BROUGHT_ALONG.get(extra, ()))
        if wanted in {_IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}:
            return extra
    return None


def sentence_without(error: ModuleNotFoundError) -> str | None:
    """What to say when a module is missing that an extra brings; None where none of them does."""
    extra = extra_with(error.name or "")
    if extra is None:
        return None
    return f"This needs {(error.name or '').partition('.')[0]} ({EXTRAS[extra]}): pip install 'climassay[{extra}]'."


Thing = TypeVar("Thing")


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Named things of one sort: climassay's own first, then those that installed packages add.

    Modules of climassay are imported when the first name is looked up, and packages outside only for a name that is not
    climassay's own, or for a list of all names. A package adds things by an entry point of the registry's group that
    names a module, which adds them when it is imported::

        [project.entry-points."climassay.metrics"]
        mine = "my_package.metrics"

    Args:
        noun: What one thing is called, for messages.
        group: Name of the group of entry points; empty where nothing can be added from outside.
        modules: Modules of climassay that add its own things, in the order in which these are listed.
    """

    def __init__(self, noun: str, group: str = "", modules: Sequence[str] = ()) -> None:
        self.noun = noun
        self.group = group
        self._modules = tuple(modules)
        self._things: dict[str, Thing] = {}
        self._origins: dict[str, str] = {}
        self._own = False
        self._outside = bool(group)
        self._lock = RLock()

    def add(self, name: str, thing: Thing, module: str = "") -> None:
        """Add a thing.

        Args:
            name: By which it is found.
            thing: What is found.
            module: Module of climassay that adds it, where its place in lists is that of its module.

        Raises:
            InputError: There is another one of that name.
        """
        if name in self._things:
            raise InputError(f"There is a {self.noun} {name!r} already: give this one another name.")
        self._things[name] = thing
        self._origins[name] = module

    def find(self, name: str) -> Thing:
        """The thing of a name.

        Raises:
            InputError: There is none; the sentence names all that there are.
        """
        try:
            return self[name]
        except KeyError:
            raise InputError(f"There is no {self.noun} {name!r}: there are {', '.join(self)}.") from None

    def __getitem__(self, name: str) -> Thing:
        self._load_own()
        if name not in self._things:
            self._load_outside()
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        self._load_own()
        self._load_outside()
        return iter(tuple(self._things))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load_own(self) -> None:
        with self._lock:
            if self._own:
                return
            self._own = True  # now, for a module that adds things may look others up while it is imported
            for module in self._modules:
                import_module(module)
            places = {module: place for place, module in enumerate(self._modules)}
            ordered = sorted(self._things, key=lambda name: places.get(self._origins[name], len(places)))
            self._things = {name: self._things[name] for name in ordered}

    def _load_outside(self) -> None:
        with self._lock:
            if not self._outside:
                return
            self._outside = False
            from importlib.metadata import entry_points

            for point in sorted(entry_points(group=self.group), key=lambda point: point.name):
                try:
                    point.load()
                except Exception as error:  # whatever a package of somebody else raises must not stop the others
                    warnings.warn(
                        f"{point.value} adds no {self.noun} to climassay: {type(error).__name__}: {error}", stacklevel=2
                    )
