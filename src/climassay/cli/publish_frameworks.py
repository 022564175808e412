"""A published dataset and its tasks for other frameworks in one folder, under one card."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.folder_files import write_file

_CARD = "README.md"
_HUB_TASKS = "eval.yaml"
_SUFFIX = "_prompts"
"""Ends the names of the configurations that hold prompts: the plain names are the dataset's."""


@dataclass(frozen=True, slots=True)
class FrameworkNotes:
    """What the dataset's card says of the tasks."""

    text: str
    """Sections of Markdown."""
    configs: tuple[Mapping[str, Any], ...]
    """Configurations of the prompts, under names of their own."""


def take_over(folder: Path) -> FrameworkNotes:
    """Make room for the dataset's card where a benchmark was just written, and keep what its own card says.

    ``load_dataset(folder, "mcq")`` is to give the questions, so the prompts that Inspect reads from a hub are named
    ``mcq_prompts``, in ``eval.yaml`` as well.
    """
    import yaml

    _, head, body = (folder / _CARD).read_text(encoding="utf-8").split("---\n", 2)
    configs = tuple({**one, "config_name": one["config_name"] + _SUFFIX} for one in yaml.safe_load(head)["configs"])
    hub = folder / _HUB_TASKS
    if hub.is_file():
        data = yaml.safe_load(hub.read_text(encoding="utf-8"))
        for task in data["tasks"]:
            task["config"] += _SUFFIX
        write_file(hub, yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120).encode())
    return FrameworkNotes(_sections(body), configs)


def _sections(body: str) -> str:
    """The list of files and the sections on frameworks, one heading lower."""
    parts = {part.partition("\n")[0]: part.partition("\n")[2] for part in body.split("\n## ")[1:]}
    listed = "\n".join(line for line in parts.pop("Files", "").split("\n") if line.startswith(("- ", "  ")))
    lower = "\n".join(f"### {heading}\n{text.rstrip()}\n" for heading, text in parts.items())
    return f"## Tasks for other frameworks\n\n{listed}\n\n{lower}"
