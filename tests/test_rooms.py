"""The rooms of ARCHITECTURE.md, held: who may import whom."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import climassay

SOURCE = Path(climassay.__file__).parent
ARCHITECTURE = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")

FLOW = (
    ("__version__", "claim_identity", "errors", "redaction", "terminal"),
    ("registry", "workspace", "progress"),
    ("io",),
    ("settings", "statistics"),
    ("questions",),
    ("primer", "models"),
    ("reporting", "prompts", "records", "distributed"),
    ("corpus", "learning"),
    ("metrics", "tuning"),
    ("grounding",),
    ("session",),
    ("judging", "evaluation"),
    ("confidence", "factcheck", "generation"),
    ("integrations",),
    ("api",),
    ("demo", "reproduction"),
    ("doctor", "web"),
    ("cli",),
)
"""Rooms from the lowest to the highest; a room imports from those before its own place only."""
DOMAINS = ("judging", "evaluation", "confidence", "factcheck", "generation", "integrations")
HEIGHT = {room: height for height, rooms in enumerate(FLOW) for room in rooms}
ROOMS = sorted({path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")} - {"__init__"})


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Modules of climassay that a file imports, anywhere in it."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "climassay":
            yield from (f"climassay.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("climassay."):
            yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("climassay."))


def files_of(room: str) -> list[Path]:
    folder = SOURCE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{room}.py"]


def is_package(module: str) -> bool:
    return (SOURCE.parent / Path(*module.split("."))).is_dir()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_lower_ones_only(room):
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in files_of(room)
        for module in imported(path)
        if (other := module.split(".")[1]) != room and not HEIGHT[other] < HEIGHT[room]
    ]
    assert not wrong


@pytest.mark.parametrize("room", DOMAINS)
def test_a_domain_takes_public_names_of_another(room):
    wrong = [
        f"{path.relative_to(SOURCE)} imports {module}"
        for path in files_of(room)
        for module in imported(path)
        if module.split(".")[1] in DOMAINS and module.split(".")[1] != room and not is_package(module)
    ]
    assert not wrong


def test_every_room_is_in_the_architecture():
    missing = [room for room in ROOMS if f"`{room}`" not in ARCHITECTURE]
    assert not missing
