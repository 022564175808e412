"""Every command and every import that a page shows exists as it is written there."""

import importlib

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
        ("evaluate mcq primer --modell local:smollm2", "No such option"),
        ("evaluate mcq primer --limit six", "Invalid value"),
        ("evaluate mcqs primer", "No such command"),
        ("corpus search books", "Missing argument"),
        ("evaluate", "no command"),
        ("--verson", "has no --verson"),
    ],
)
def test_what_does_not_exist_is_found(line, said):
    found = fault(line.split(), whole=True)
    assert found is None if said is None else said in found
