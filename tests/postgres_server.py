"""A real PostgreSQL for tests, started once a test process where its programs are installed.

``postgres_url``   a fresh, empty database for each test
``database_url``   the same test on SQLite and on PostgreSQL
"""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

from required_programs import missing

SPEED = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
"""Nothing has to outlive a crash of the machine."""


@dataclass
class PostgresServer:
    """A running server that listens on a socket in its own folder only; ``tester`` may do everything."""

    folder: Path
    control: Callable[..., None]
    """Run pg_ctl for this server with some arguments."""
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def url(self, database: str, password: str | None = None) -> str:
        """SQLAlchemy URL of a database; any password is taken."""
        user = "tester" if password is None else f"tester:{password}"
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def restart(self) -> None:
        """End all connections and start again; a crash would lose what is not on the disk (:data:`SPEED`)."""
        self.control("-m", "fast", "restart")

    def execute(self, statement: str) -> None:
        """Run one statement outside any transaction."""
        import psycopg

        with psycopg.connect(host=str(self.folder), user="tester", dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)


def find_program(name):
    places = [os.environ.get("PATH", ""), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    return shutil.which(name, path=os.pathsep.join(places))


@contextmanager
def running_postgres():
    """Start a server; it runs as the user postgres where we are root, which PostgreSQL refuses to be."""
    if find_spec("psycopg") is None:
        raise LookupError("psycopg is not installed (the extra postgres brings it)")
    initdb, pg_ctl = find_program("initdb"), find_program("pg_ctl")
    if initdb is None or pg_ctl is None:
        raise LookupError("PostgreSQL's programs initdb and pg_ctl are not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    owner = {}
    if os.getuid() == 0:
        try:
            shutil.chown(folder, "postgres")
        except LookupError:
            folder.rmdir()
            raise LookupError("PostgreSQL does not run as root, and there is no user postgres") from None
        owner = {"user": "postgres", "group": "postgres", "extra_groups": []}

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, **owner)
        assert done.returncode == 0, done.stdout + done.stderr

    data = folder / "data"
    run(initdb, "-D", str(data), "-U", "tester", "--auth=trust", "--encoding=UTF8", "--no-sync")
    options = f"-c listen_addresses='' {SPEED} -k {folder}"

    def control(*arguments: str) -> None:
        run(pg_ctl, "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), *arguments)

    control("start")
    try:
        yield PostgresServer(folder, control)
    finally:
        run(pg_ctl, "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server():
    """The server of this test process."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_postgres())
        except LookupError as error:
            missing("postgres", str(error))
        yield server


@pytest.fixture
def postgres_database(postgres_server):
    """Name of a database that only this test has."""
    name = f"test_{next(postgres_server.numbers)}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    yield name
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres_url(postgres_server, postgres_database):
    """URL of an empty database on PostgreSQL."""
    return postgres_server.url(postgres_database)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request, tmp_path):
    """URL of an empty database, on SQLite and on PostgreSQL in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'records.sqlite'}"
    return request.getfixturevalue("postgres_url")
