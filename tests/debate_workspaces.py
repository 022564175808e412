"""Workspaces with a small collection, and a small random model, for tests of the commands of fact-checking."""

import json
import sqlite3
from pathlib import Path

from climassay.workspace import Workspace
from debate_tables import make_collection, paragraph
from tiny_models import save_tiny

CLAIM = "The Sun, and not carbon dioxide, has caused the warming since 1950."
QUICK = ("-k", "1", "--excerpt-words", "30", "--text-tokens", "8", "--rounds", "1", "--split", "whole")
"""Options of a debate that takes a model few tokens."""


def make_workspace(folder: Path) -> Path:
    """A workspace with the collection ``book`` of two passages of the primer."""
    beginnings = ("The Sun delivers about 1361", "From 1750 to 2019 the effective forcing by CO2")
    found = [paragraph("physical_climate", beginning) for beginning in beginnings]
    make_collection(Workspace.open(folder), "book", *found, title="Principles of Physical Climate")
    return folder


def make_model(folder: Path) -> str:
    """The name of a random model whose context holds the prompts of a debate."""
    folder.mkdir()
    save_tiny(folder)
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"max_position_embeddings": 8192}))
    return f"local:{folder}"


def stored(workspace: Path, table: str) -> int:
    """Rows of a table of the records; 0 while there are none."""
    file = workspace / "records.sqlite"
    if not file.exists():
        return 0
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as records:
            return int(records.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.OperationalError:  # the tables are being made
        return 0
