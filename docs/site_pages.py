"""Pages of the site that are made from the code: the reference of every package, and of every command.

MkDocs calls :func:`on_files` before it reads the pages (``hooks`` in ``mkdocs.yml``). Nothing is written into ``docs``.
"""

import importlib
import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

log = logging.getLogger("mkdocs.hooks")

ROOMS = (
    "models",
    "corpus",
    "records",
    "questions",
    "grounding",
    "evaluation",
    "metrics",
    "generation",
    "tuning",
    "learning",
    "judging",
    "factcheck",
    "confidence",
    "statistics",
    "prompts",
    "reporting",
    "integrations",
    "distributed",
    "primer",
)
"""Packages with a page each; those that are not there have none."""
MADE = ("index", "commands", "climassay")

TOP = "climassay"


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Leave pages of the navigation out whose file is not there (a part of the tree was built alone)."""
    there = {path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).rglob("*.md")}
    config.nav = _pruned(config.nav or [], there | {f"reference/{name}.md" for name in (*_rooms(), *MADE)})
    return config


def _pruned(entries: list[Any], there: set[str]) -> list[Any]:
    kept: list[Any] = []
    for entry in entries:
        name, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            kept.append({name: _pruned(value, there)})
        elif value in there:
            kept.append(entry)
        else:
            log.info("The page %s of the navigation is not there.", value)
    return kept


def _rooms() -> list[str]:
    return [name for name in ROOMS if importlib.util.find_spec(f"{TOP}.{name}")]


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the generated pages."""
    from mkdocs.structure.files import File

    rooms = _rooms()
    pages = {"reference/commands.md": "\n".join(_commands())}
    pages |= {f"reference/{name}.md": _room(f"{TOP}.{name}") for name in rooms}
    pages["reference/climassay.md"] = _room(TOP)
    pages["reference/index.md"] = _index(rooms)
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def _public(module: Any) -> list[str]:
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return [name for name in names if not name.startswith("_") and _shown(module, name)]


def _shown(module: Any, name: str) -> bool:
    """Whether it is a class or function of the package itself, with a docstring; what it imports is shown elsewhere."""
    value = getattr(module, name)
    return (
        callable(value)
        and f"{getattr(value, '__module__', None)}.".startswith(f"{module.__name__}.")
        and bool(value.__doc__)
    )


def _room(name: str) -> str:
    module = importlib.import_module(name)
    lines = [f"# {name}", "", (module.__doc__ or "").strip(), ""]
    for public in _public(module):
        value = getattr(module, public)
        room = f"{TOP}.{value.__module__.split('.')[1]}"
        if name == TOP and room.removeprefix(f"{TOP}.") in ROOMS and public in _public(importlib.import_module(room)):
            place = f"{value.__module__}.{value.__qualname__}"
            lines += [f"## {public}", "", f"[`{place}`][{place}]", ""]
            continue
        lines += [f"::: {value.__module__}.{value.__qualname__}", "    options:", "      show_root_heading: true"]
        lines += ["      show_root_toc_entry: true", ""]
    return "\n".join(lines)


def _index(rooms: list[str]) -> str:
    lines = ["# Reference", "", "Made from the docstrings: the public names of every package.", ""]
    lines += ["| package | contents |", "|---|---|"]
    lines.append(f"| [`{TOP}`](climassay.md) | {_first_sentence(importlib.import_module(TOP))} |")
    for name in rooms:
        lines.append(f"| [`{TOP}.{name}`]({name}.md) | {_first_sentence(importlib.import_module(f'{TOP}.{name}'))} |")
    lines += ["", "Every command with its options: [commands](commands.md).", ""]
    return "\n".join(lines)


def _first_sentence(module: Any) -> str:
    return " ".join((module.__doc__ or "").strip().split("\n\n")[0].split())


def _commands() -> Iterator[str]:
    from climassay.cli.main import app

    yield "# Commands"
    yield ""
    yield "What `climassay COMMAND --help` prints. Every command has `--json`."
    yield from _command(app, ())


def _command(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    from rich.console import Console

    from climassay.cli.main import app

    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        app.help_print(list(path), console=console)
    if path:
        yield ""
        yield f"{'#' * min(len(path) + 1, 3)} climassay {' '.join(path)}"
    yield ""
    yield "```text"
    yield "\n".join(line.rstrip() for line in capture.get().strip().splitlines())
    yield "```"
    for name, subcommand in command.resolved_commands().items():
        if not name.startswith("-"):
            yield from _command(subcommand, (*path, name))
