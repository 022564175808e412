"""Optional packages by extra, and registries of metrics, providers, readers, judges, checks and rules."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from threading import RLock
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from climassay.errors import InputError

EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        "local": "local models and the encoder of collections",
        "web": "climassay serve, the pages in a browser",
        "mcp": "climassay mcp, the tools for assistants",
        "postgres": "records and labels in PostgreSQL",
        "topics": "climassay confidence topics",
        "use": "phrase similarity with the Universal Sentence Encoder",
        "ray": "long runs on several machines",
        "inspect": "the tasks for Inspect",
        "lm-eval": "the tasks for lm-evaluation-harness",
    }
)
"""Purpose of each extra that users may install; extras for developers are not listed."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*])?\s*([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_MODULE_NAMES = {
    "argon2-cffi": "argon2",
    "huggingface-hub": "huggingface_hub",
    "python-multipart": "multipart",
    "umap-learn": "umap",
}
"""Module name by distribution, for distributions whose module has another name."""
_INDIRECT_REQUIREMENTS = {"local": ("huggingface-hub",), "web": ("starlette",)}
"""Distributions by extra that climassay imports directly, but the extra requires only indirectly."""


class Requirement(NamedTuple):
    """Required distribution, with the versions that are accepted."""

    name: str
    versions: str
    """Version specifier such as ``>=2.6``; empty if any version is accepted."""


def requirements() -> dict[str, list[Requirement]] | None:
    """Return climassay's requirements by extra. The key ``""`` has the requirements without an extra.

    Returns:
        None if climassay is not an installed distribution.
    """
    from importlib import metadata

    try:
        lines = metadata.requires("climassay") or []
    except metadata.PackageNotFoundError:
        return None
    by_extra: dict[str, list[Requirement]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is not None:
            name, versions, marker = match.groups()
            extra = _EXTRA.search(marker or "")
            by_extra.setdefault(extra.group(1) if extra else "", []).append(Requirement(name, versions.strip(" ()")))
    return by_extra


def find_extra(module: str) -> str | None:
    """Return the name of the extra that installs a module, such as ``local`` for ``torch.nn``; None if none does."""
    package = module.partition(".")[0]
    by_extra = requirements() or {}
    for extra in EXTRAS:
        names = [requirement.name.lower() for requirement in by_extra.get(extra, ())]
        names += _INDIRECT_REQUIREMENTS.get(extra, ())
        if package in {_MODULE_NAMES.get(name, name.replace("-", "_")) for name in names}:
            return extra
    return None


def missing_extra_message(error: ModuleNotFoundError) -> str | None:
    """Return a sentence that names the extra to install for a missing module; None if no extra installs the module."""
    extra = find_extra(error.name or "")
    if extra is None:
        return None
    return f"This needs {(error.name or '').partition('.')[0]} ({EXTRAS[extra]}): pip install 'climassay[{extra}]'."


T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Registry of entries by name: first climassay's own entries, then those of other installed packages.

    Climassay's own modules are imported at the first lookup. Entry points of other packages are loaded only if all
    names are listed, or if a name is looked up that climassay itself does not have. To add entries, another package
    declares an entry point in the registry's group. It names a module, which adds the entries when it is imported::

        [project.entry-points."climassay.metrics"]
        mine = "my_package.metrics"

    Args:
        noun: Noun for an entry, for error messages.
        group: Group of entry points; empty if other packages cannot add entries.
        modules: Names of the modules of climassay that add its own entries, in the order in which entries are listed.
    """

    def __init__(self, noun: str, group: str = "", modules: Sequence[str] = ()) -> None:
        self.noun = noun
        self.group = group
        self._modules = tuple(modules)
        self._entries: dict[str, T] = {}
        self._origins: dict[str, str] = {}
        self._are_modules_loaded = False
        self._are_entry_points_loaded = not group
        self._lock = RLock()

    def add(self, name: str, entry: T, module: str = "") -> None:
        """Add an entry.

        Args:
            name: Name to look the entry up by.
            entry: The entry.
            module: Name of the module that adds the entry, which determines its place in the list of entries.

        Raises:
            InputError: There is already an entry with that name.
        """
        if name in self._entries:
            raise InputError(f"There is a {self.noun} {name!r} already: give this one another name.")
        self._entries[name] = entry
        self._origins[name] = module

    def find(self, name: str) -> T:
        """Return the entry with the given name.

        Raises:
            InputError: The entry does not exist; the message lists all names.
        """
        try:
            return self[name]
        except KeyError:
            raise InputError(f"There is no {self.noun} {name!r}: there are {', '.join(self)}.") from None

    def __getitem__(self, name: str) -> T:
        self._load_modules()
        if name not in self._entries:
            self._load_entry_points()
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._load_modules()
        self._load_entry_points()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load_modules(self) -> None:
        with self._lock:
            if self._are_modules_loaded:
                return
            self._are_modules_loaded = True  # first, since a module that adds entries may look others up on import
            for module in self._modules:
                import_module(module)
            ranks = {module: rank for rank, module in enumerate(self._modules)}
            names = sorted(self._entries, key=lambda name: ranks.get(self._origins[name], len(ranks)))
            self._entries = {name: self._entries[name] for name in names}

    def _load_entry_points(self) -> None:
        with self._lock:
            if self._are_entry_points_loaded:
                return
            self._are_entry_points_loaded = True
            from importlib.metadata import entry_points

            for entry_point in sorted(entry_points(group=self.group), key=lambda entry_point: entry_point.name):
                try:
                    entry_point.load()
                except Exception as error:  # an error of another package must not keep the rest from loading
                    warnings.warn(
                        f"{entry_point.value} adds no {self.noun} to climassay: {type(error).__name__}: {error}",
                        stacklevel=2,
                    )
