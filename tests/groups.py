"""How the tests are divided: quick ones, and groups of those that take longer. A pytest plugin.

A test without a group is quick, and so is one of a group that is marked ``core`` as well. ``make test`` runs the quick
ones, ``make test-GROUP`` a group, ``make test-all`` everything; pytest itself takes ``--group NAME``.

The group of a test is the nearest of: a marker of the test, a marker of its file (``pytestmark``), one that a fixture
brings, the one of its folder. Where a test needs nothing of a group but takes more than two seconds of a processor, it
belongs to the group whose subject it tests at length.
"""

import os
import re
from pathlib import Path

import pytest

GROUPS = {
    "process": "processes beside that of the tests: killed, working at once, or started to look at them from outside",
    "browser": "pages in a browser",
    "cluster": "a Ray cluster",
    "model": "a bundled model, or the computing and training of networks",
    "postgres": "a PostgreSQL server; the pages on it, where $CLIMASSAY_TEST_DATABASE is postgresql",
    "docs": "what the documentation shows, followed",
    "faults": "damage, attacks, load and servers of many manners: many inputs, one after the other",
}
FIXTURES = {"browser": {"chromium"}, "cluster": {"cluster"}, "postgres": {"postgres_server"}}
"""Fixtures that bring a group with them."""
NAMED = {
    "browser": "visit|chromium",
    "cluster": "cluster",
    "faults": "tour",
    "postgres": r"postgres_\w+|database_url|place_on|client_of|def \w+\([^)]*\bplace",
}
"""What a file calls that needs them."""
if os.environ.get("CLIMASSAY_TEST_DATABASE") == "postgresql":
    FIXTURES["postgres"].add("place_on")
FOLDERS = {"docs": "docs", "faults": "faults"}
QUICK = "quick"
TESTS = Path(__file__).parent

_OF_FILE = re.compile(r"^pytestmark = pytest\.mark\.(\w+)$", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make ``--group`` known."""
    parser.addoption("--group", choices=(QUICK, *GROUPS), help="run the quick tests, or those of one group")


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for group, what in GROUPS.items():
        config.addinivalue_line("markers", f"{group}: {what}")
    config.addinivalue_line("markers", "core: a test of a group that is run with the quick ones too")


def _by_folder(path: Path) -> str | None:
    return FOLDERS.get(path.relative_to(TESTS).parts[0])


def group_of(item: pytest.Item) -> str | None:
    """The group of a test; None for a test without one."""
    markers = [marker.name for marker in item.iter_markers() if marker.name in GROUPS]
    needed = set(getattr(item, "fixturenames", ()))
    by_fixture = [group for group, names in FIXTURES.items() if needed & names]
    return next(iter([*markers, *by_fixture]), _by_folder(item.path))


def is_quick(item: pytest.Item) -> bool:
    """Whether ``make test`` runs a test."""
    return group_of(item) is None or item.get_closest_marker("core") is not None


def may_hold(path: Path, group: str) -> bool:
    """Whether a file may hold tests of a group, or quick ones, as its text says before it is imported."""
    text = path.read_text(encoding="utf-8")
    named = _OF_FILE.search(text)
    own = named[1] if named else _by_folder(path)
    if own == "slow":
        return False
    if group == QUICK:
        return own not in GROUPS or "mark.core" in text
    words = rf"mark\.{group}|{NAMED[group]}" if group in NAMED else rf"mark\.{group}"
    return own == group or re.search(rf"\b({words})\b", text) is not None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of the group: what they import may take longer than all that is asked for."""
    wanted = config.getoption("group")
    leave = wanted is not None and collection_path.match("test_*.py") and not may_hold(collection_path, wanted)
    return True if leave else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the group that is asked for."""
    wanted = config.getoption("group")
    if wanted is None:
        return
    kept, left = [], []
    for item in items:
        (kept if (is_quick(item) if wanted == QUICK else group_of(item) == wanted) else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept
