"""What lies in a workspace: the records, the collections, trained files, and what a killed process left."""

import json
import os
import sqlite3
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.doctor import Finding
from climassay.doctor.machine import folder_finding
from climassay.errors import ClimassayError
from climassay.workspace import DATABASE_VARIABLE, WORKSPACE_VARIABLE, Workspace

if TYPE_CHECKING:
    from climassay.corpus import Collection

AREA = "workspace"
INTEGRITY_SECONDS = 1.0
"""How long SQLite may look through a database; a larger one is looked at only in part."""
MANY_PASSAGES = 300_000
"""Above so many it would take too long to look for documents whose adding was interrupted."""
CONNECT_SECONDS = "2"
_LARGEST_HEADER = 100 << 20


def examine_workspace(folder: Path | None) -> Iterator[Finding]:
    """The workspace and everything in it; nothing is made and nothing is changed."""
    root = Path(folder or os.environ.get(WORKSPACE_VARIABLE) or ".climassay").expanduser().absolute()
    if not root.exists():
        yield _not_made(root)
    elif not root.is_dir():
        advice = "Name another folder with --workspace."
        yield Finding(AREA, "folder", "broken", f"{root} is a file", advice, needed=True)
        return
    else:
        yield folder_finding(AREA, "folder", root, "Change its owner or permissions, or name another --workspace.")
    place = Workspace(root)
    if os.environ.get(DATABASE_VARIABLE) or place.has_records:
        yield _records(place)
    yield from _collections(place)
    yield from _trained(root)
    yield from _others(root)


def _not_made(root: Path) -> Finding:
    above = next(parent for parent in root.parents if parent.exists())
    if os.access(above, os.W_OK):
        return Finding(AREA, "folder", "ok", f"{root} is not there yet; the first command makes it")
    advice = "Name another folder with --workspace."
    return Finding(AREA, "folder", "broken", f"{root} cannot be made: {above} is read-only", advice, needed=True)


def _records(place: Workspace) -> Finding:
    """The records database: whole, of a version that is read here, and reachable."""
    if not os.environ.get(DATABASE_VARIABLE):
        damage = _damage(place.root / "records.sqlite")
        if damage:
            advice = "Restore it from a copy, or move it away: a new one is made."
            return Finding(AREA, "records", "broken", damage, advice, needed=True)
    from climassay.records.database import Database

    try:
        database = Database(_impatient(place.records_url), make=False)
    except ClimassayError as error:
        advice = "See the sentence; climassay records runs says the same."
        return Finding(AREA, "records", "broken", str(error), advice, needed=True)
    try:
        version = database.stored_version()
        said = "empty; tables are made by the first command" if version is None else f"schema version {version}"
        return Finding(AREA, "records", "ok", f"{database.shown_url}, {said}", needed=True)
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
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        return "" if "interrupted" in str(error) else f"{file.name} cannot be opened ({error})"
    except sqlite3.DatabaseError as error:
        return f"{file.name} is damaged ({error})"
    finally:
        connection.close()
    return "" if found is None or found[0] == "ok" else f"{file.name} is damaged ({found[0]})"


def _collections(place: Workspace) -> Iterator[Finding]:
    if not place.collections.is_dir() or not any(place.collections.glob("*.lance")):
        yield Finding(AREA, "collections", "ok", "none yet; climassay corpus add NAME FILES makes one")
        return
    from climassay.corpus import Collection
    from climassay.corpus.collection_storage import CollectionStore

    try:
        names = CollectionStore.at(place).names()
    except (ClimassayError, OSError, RuntimeError, ValueError) as error:
        yield Finding(AREA, "collections", "broken", f"{place.collections} cannot be listed ({error})", needed=True)
        return
    for name in names:
        label = f"collection {name}"
        try:
            collection = Collection.open(place, name)
            yield _collection(label, collection)
        except ClimassayError as error:
            yield Finding(AREA, label, "broken", str(error), f"climassay corpus remove {name}, and add it again.")
        except (OSError, RuntimeError, ValueError) as error:
            advice = f"Delete {name}.lance in {place.collections}, and add its documents again."
            yield Finding(AREA, label, "broken", f"it cannot be read ({_first_line(error)})", advice)


def _collection(label: str, collection: "Collection") -> Finding:
    made_with, count = collection.settings, len(collection)
    said = f"{count:,} passages, {made_with.encoder}"
    here = _fingerprint_here(made_with.encoder)
    if here is None:
        return Finding(AREA, label, "ok", f"{said} (not looked at: it comes from a hub, or is not here)")
    if here != made_with.encoder_fingerprint:
        said += " with other weights or settings than the one of this name here"
        advice = "Remove the collection and add its documents again, or install the encoder it was made with."
        return Finding(AREA, label, "broken", said, advice)
    if count <= MANY_PASSAGES and (incomplete := collection.summary().incomplete):
        advice = f"climassay corpus add {collection.name} FILES goes on where it stopped."
        return Finding(AREA, label, "warning", f"{said}; {incomplete} documents were not added to their end", advice)
    return Finding(AREA, label, "ok", said)


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
        yield Finding(AREA, file.relative_to(root).as_posix(), "broken", reason, advice)
    if len(files) > len(broken):
        yield Finding(AREA, "trained files", "ok", f"{len(files) - len(broken)} can be read")


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


def _others(root: Path) -> Iterator[Finding]:
    from climassay.models.servers import find_price

    try:
        find_price("openai:none", root)
    except ClimassayError as error:
        yield Finding(AREA, "prices", "broken", str(error), "Mend the file, or take it away.")
    left = [file for pattern in (".*.tmp", ".*.new", "*/.*.tmp", "*/.*.new") for file in root.glob(pattern)]
    if left:
        size = sum(file.stat().st_size for file in left if file.is_file())
        said = f"{len(left)} half-written files of stopped commands, {size / 1e6:.1f} MB"
        advice = f"Delete them while no command runs: {left[0]} ..."
        yield Finding(AREA, "left over", "warning", said, advice)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
