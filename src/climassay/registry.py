"""Things that are found by name and can be added from outside: metrics, providers, readers, judges, checks, rules."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from threading import RLock
from typing import Generic, TypeVar

from climassay.errors import InputError

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
            for point in sorted(entry_points(group=self.group), key=lambda point: point.name):
                try:
                    point.load()
                except Exception as error:  # whatever a package of somebody else raises must not stop the others
                    warnings.warn(
                        f"{point.value} adds no {self.noun} to climassay: {type(error).__name__}: {error}", stacklevel=2
                    )
