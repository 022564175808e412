"""Where collections live: a workspace, a folder or an object store, and the LanceDB tables in it."""

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.corpus.collection_rows import CollectionSettings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")

_PRIMARY_KEY = b"lance-schema:unenforced-primary-key:position"
"""Where LanceDB notes in a column that it is the key."""

Location = Workspace | Path | str
"""A workspace, a folder, or an address that LanceDB understands, for example ``s3://bucket/collections``."""


def check_name(name: str) -> str:
    """Return a collection's name when it is one.

    Raises:
        InputError: It is empty, too long, or has other characters than letters, digits, ``_`` and ``-``.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a collection: use 1 to 63 letters, digits, hyphens and underscores, "
            "the first one a letter or digit."
        )
    return name


@dataclass(frozen=True, slots=True)
class CollectionStore:
    """The tables of one place."""

    address: str
    """Folder or URI."""
    folder: Path | None
    """The folder, where the place is one."""

    @classmethod
    def at(cls, location: Location) -> "CollectionStore":
        """The store of a location; nothing is made yet."""
        if isinstance(location, Workspace):
            location = location.collections_address
        if isinstance(location, str) and "://" in location:
            return cls(location.rstrip("/"), None)
        folder = Path(location).expanduser().absolute()
        return cls(str(folder), folder)

    def lock_file(self, name: str) -> Path | None:
        """File whose lock lets one process write to a collection; None on object storage."""
        return None if self.folder is None else self.folder / f".{name}.lock"

    def reading_file(self, name: str) -> Path | None:
        """File whose lock says that somebody reads a collection; None on object storage."""
        return None if self.folder is None else self.folder / f".{name}.reading"

    def bytes_of(self, name: str) -> int:
        """Size of a collection's files; 0 on object storage."""
        files = [] if self.folder is None else (self.folder / f"{name}.lance").rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file())

    def names(self) -> list[str]:
        """Names of all tables, in alphabetical order; what was interrupted before its first version is none yet."""
        if self.folder is not None:
            # As LanceDB lists them, without opening it.
            return sorted(path.stem for path in self.folder.glob("*.lance") if self._has_begun(path.stem))
        connection = self._connect()
        names: list[str] = []
        page = None
        while True:
            answer = connection.list_tables(page_token=page)
            names += answer.tables
            page = answer.page_token
            if not page:
                return sorted(names)

    def open(self, name: str) -> Any:
        """The LanceDB table of a collection.

        Raises:
            InputError: There is none of that name (the message names those that are there), or it is damaged.
        """
        check_name(name)
        if name not in (names := self.names()):
            known = f"there are {', '.join(names)}" if names else "there are none yet"
            raise InputError(
                f"There is no collection {name!r} in {self.address} ({known}): "
                f"make it with `climassay corpus add {name} FILES`."
            )
        return self._open_table(name)

    def create(self, name: str, settings: "CollectionSettings") -> Any:
        """Make the empty table of a collection, with its full-text index, or open the one that is there already."""
        from climassay.corpus.collection_damage import GuardedTable
        from climassay.corpus.collection_lock import write_lock
        from climassay.corpus.collection_rows import read_settings, table_schema
        from climassay.corpus.collection_text_index import create_text_index

        check_name(name)
        with write_lock(self.lock_file(name)):
            is_new = name not in self.names()
            if is_new:
                connection = GuardedTable(self._connect(), name, self.address, self.reading_file(name))
                table = connection.create_table(name, schema=table_schema(settings), exist_ok=True)
            else:
                table = self._open_table(name)
                read_settings(table.schema, name)
            # Also where an earlier call was interrupted after the step above.
            if _PRIMARY_KEY not in (table.schema.field("id").metadata or {}):
                table.set_unenforced_primary_key("id")
            if is_new:
                create_text_index(table)
            return table

    def drop(self, name: str) -> None:
        """Delete a collection with all that is in it.

        Raises:
            InputError: There is none of that name.
        """
        from climassay.corpus.collection_lock import write_lock

        self.open(name)
        with write_lock(self.lock_file(name)):
            self._connect().drop_table(name)

    def _has_begun(self, name: str) -> bool:
        # Damage takes versions or data, not both and every trace of them.
        assert self.folder is not None
        table = self.folder / f"{name}.lance"
        return any(file.is_file() for part in ("_versions", "data") for file in (table / part).glob("*"))

    def _open_table(self, name: str) -> Any:
        from climassay.corpus.collection_damage import GuardedTable, newest_version, raise_damage

        # Read first: what another process writes meanwhile is no damage.
        newest = 0 if self.folder is None else newest_version(self.folder / f"{name}.lance")
        connection = GuardedTable(self._connect(), name, self.address, self.reading_file(name))
        table = connection.open_table(name)
        if table.version < newest:
            # The library takes the newest manifest that it finds, and with an older one it gives fewer passages.
            raise_damage(ValueError(f"its version {newest} is missing"), name, self.address)
        return table

    def _connect(self) -> Any:
        import lancedb

        # Interval 0: what another process has written is seen by the next read.
        return lancedb.connect(self.address, read_consistency_interval=timedelta(0))
