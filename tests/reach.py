"""What the quick tests must reach: every room of the source, and every command. A pytest plugin.

A room is reached where a quick test lies in its folder or, where there is none, in a file that imports from it; a
command where a quick test has run it to the end in its own process. A run of all quick tests (``make test``) fails
where something is not reached.
"""

from pathlib import Path
from typing import Any

import pytest

from faults.commands import walk
from groups import QUICK, TESTS, is_quick
from test_rooms import ROOMS, imported

REACHED = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Note the commands that run to their end."""
    config.stash[REACHED] = reached = set()
    if config.getoption("group") != QUICK:
        return
    from cyclopts import App

    call = App.__call__

    def note_command(app: Any, tokens: list[str]) -> Any:
        result = call(app, tokens)
        path, _, _ = app.parse_commands(tokens)
        reached.add(" ".join(("climassay", *path)))
        return result

    App.__call__ = note_command  # type: ignore[method-assign]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note the rooms of the tests that are about to be run."""
    for path in {item.path for item in session.items if is_quick(item)}:
        session.config.stash[REACHED].update(_rooms(path))


def _rooms(path: Path) -> set[str]:
    """The rooms that a file of tests reaches."""
    folders = set(path.relative_to(TESTS).parts[:1])
    modules = {module.split(".")[1] for module in imported(path)}
    return {room for room in ROOMS if room in (folders if (TESTS / room).is_dir() else modules)}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what the tests of another process have reached."""
    node.config.stash[REACHED].update(getattr(node, "workeroutput", {}).get("reached", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where all quick tests were run and something was not reached."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["reached"] = sorted(config.stash[REACHED])
    elif session.exitstatus == 0 and _all_quick(config) and (missing := _missing(config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        config.stash[REACHED].clear()
        print(f"\nNo quick test (tests/groups.py) reaches: {', '.join(missing)}")


def _all_quick(config: pytest.Config) -> bool:
    return config.getoption("group") == QUICK and config.args_source is pytest.Config.ArgsSource.TESTPATHS


def _missing(config: pytest.Config) -> list[str]:
    reached = config.stash[REACHED]
    commands = [f"climassay {name}" for name, _ in walk()]
    return [what for what in (*ROOMS, *commands) if what not in reached]
