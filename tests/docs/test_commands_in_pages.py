"""Commands, imports and figures that pages show exist as they are written there; notebooks are whole."""

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest

from documentation import (
    ROOT,
    SHELLS,
    Reader,
    blocks,
    calls,
    fault,
    inline_calls,
    names_imported,
    page_name,
    pages,
    steps,
)

NEEDS_MODELS_OR_DATA = ("README.md", "docs/confidence.md")
"""Pages whose Python is not run and not marked; its imports are looked up all the same."""
GUIDES = [page for page in pages() if page.parent.name not in ("tutorials", "how-to")]
"""The pages that are not followed step by step (test_tutorials.py)."""


@pytest.mark.core
@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_the_commands_shown_exist_with_their_options(page):
    faults = []
    for block in blocks(page):
        if block.language in SHELLS:
            for step in steps(block):
                for words in calls(step.command):
                    faults += [f"{block.place}: {said}" for said in [fault(words, whole=True)] if said]
    assert not faults, "\n".join(faults)


@pytest.mark.core
@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_the_commands_named_in_sentences_exist(page):
    faults = [f"{page_name(page)}: {said}" for words in inline_calls(page) if (said := fault(words, whole=False))]
    assert not faults, "\n".join(faults)


def commands(command, path=()):
    below = {name: sub for name, sub in command.resolved_commands().items() if not name.startswith("-")}
    if path and not below:
        yield " ".join(path)
    for name, sub in below.items():
        yield from commands(sub, (*path, name))


@pytest.mark.core
def test_a_reader_finds_every_command():
    from climassay.cli.main import app

    text = " ".join(" ".join(page.read_text(encoding="utf-8").split()) for page in pages())
    assert [name for name in commands(app) if name not in text] == []


@pytest.mark.core
@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_the_names_that_python_blocks_import_exist(page):
    faults = []
    for block in blocks(page):
        if block.language == "python":
            for module, name in names_imported(block.text):
                loaded = importlib.import_module(module)
                if name is not None and not hasattr(loaded, name):
                    faults.append(f"{block.place}: {module} has no {name}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "page", [page for page in GUIDES if page_name(page) not in NEEDS_MODELS_OR_DATA], ids=page_name
)
def test_python_that_needs_nothing_runs(page, tmp_path):
    for block in blocks(page):
        if block.language == "python" and block.why_not_run is None:
            Reader(tmp_path).run_python(block)


def test_some_python_of_the_guides_is_run():
    assert any(block.language == "python" and not block.why_not_run for block in blocks(ROOT / "docs" / "verdicts.md"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("evaluate mcq primer --model local:smollm2 --limit 6", None),
        ("evaluate mcq primer --modell local:smollm2", "--model"),
        ("evaluate mcq primer --limit six", "--limit"),
        ("evaluate mcqs primer", "mcq"),
        ("corpus search books", "QUERY"),
        ("evaluate", "no command"),
        ("--verson", "--verson"),
    ],
)
def test_what_does_not_exist_is_found(line, said):
    found = fault(line.split(), whole=True)
    assert found is None if said is None else said in found


EXPLANATIONS = sorted((ROOT / "docs" / "explanation").glob("*.md"))
PUBLISHED = ROOT.parent / "shared" / "reference"
FIGURE = re.compile(r"(?<![\w.])\d*\.\d+(?:e-\d+)?%?(?![\w.]*\d)|(?<![\w.,-])\d+%")
NAME = re.compile(r"[a-z]+-?\d+\.\d+-?\w*|arXiv \d+\.\d+|[A-Z]\.\d[.\d]*", re.IGNORECASE)


def figures(text):
    """Decimal numbers and percentages, without a leading zero; names such as llama3.1-8b are none."""
    text = re.sub(r"\]\([^)]*\)", "]", NAME.sub(" ", text))
    return {found.lstrip("0").rstrip("%") for found in FIGURE.findall(text)}


def measured():
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "results").glob("*.md")]
    return set().union(*(figures(page.read_text(encoding="utf-8")) for page in pages))


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published figures are not here")
@pytest.mark.parametrize("page", EXPLANATIONS, ids=page_name)
def test_every_figure_has_a_source(page):
    published = set().union(*(figures(Path(file).read_text(encoding="utf-8")) for file in PUBLISHED.glob("*.md")))
    unknown = figures(page.read_text(encoding="utf-8")) - published - measured()
    assert not unknown, f"{page_name(page)}: {sorted(unknown)}"


def test_a_figure_is_found_whatever_stands_around_it():
    assert figures("**.408** [.334, .477], 0.5 and +35.4 (25%); llama3.1-8b, arXiv 2401.12566, A.3.1") == {
        ".408", ".334", ".477", ".5", "35.4", "25",
    }  # fmt: skip


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 100_000


def cells(path, kind):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_cell_was_run_in_order_without_an_error(path):
    code = cells(path, "code")
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert len(outputs) > len(code) / 2
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.core
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_code_imports_what_there_is(path):
    whole = "\n\n".join(source(cell) for cell in cells(path, "code"))
    for module, name in names_imported(whole):
        assert name is None or hasattr(importlib.import_module(module), name), f"{module}.{name}"


@pytest.mark.core
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_commands_named_in_notebooks_exist(path, tmp_path):
    page = tmp_path / "notebook.md"
    page.write_text("\n\n".join(source(cell) for cell in cells(path, "markdown")), encoding="utf-8")
    assert [said for words in inline_calls(page) if (said := fault(words, whole=False))] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_no_place_of_the_machine_is_told(path):
    text = path.read_text(encoding="utf-8")
    assert not [word for word in ("/tmp/", "/home/", "/root/", "site-packages") if word in text]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_names_of_the_package_are_public(path):
    import climassay

    whole = "\n".join(source(cell) for cell in cells(path, "code"))
    used = {word.split(".")[1].split("(")[0] for word in whole.split() if word.startswith("climassay.") and "(" in word}
    assert used <= {*climassay.__all__, "Workspace", "Collection"}


@pytest.mark.core
def test_the_licence_of_each_dependency_is_listed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        requirement
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in ("docs", "dev")
        for requirement in requirements
    ]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in [*project["dependencies"], *extras]}
    listed = set(re.findall(r"[\w-]+", (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")))
    assert sorted(names - listed) == []
