"""The optional parts of climassay: what each extra is for, which packages it brings, and what to say without it."""

import re
from collections.abc import Mapping
from importlib import metadata
from types import MappingProxyType
from typing import NamedTuple

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
    try:
        lines = metadata.requires("climassay") or []
    except metadata.PackageNotFoundError:
        return None
    found: dict[str, list[Requirement]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is not None:
            name, versions, marker = match.groups()
            extra = _EXTRA.search(marker or "")
            found.setdefault(extra.group(1) if extra else "", []).append(Requirement(name, versions.strip(" ()")))
    return found


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
