"""Every tutorial and how-to page is followed from its first line to its last, in a folder of its own.

In ``make test`` a tiny network with random weights takes the place of the bundled language model: what the pages say
about commands, files and Python is what is tested, and it does not hang on what the model answers. ``make docs-check``
follows the tutorials with the bundled model itself (the tests marked slow), and compares what it prints as well.
"""

import os

import pytest

from debate_workspaces import make_model
from documentation import ROOT, WIDTH, Reader, blocks, missing_lines, page_name

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
HOW_TO = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def tiny_in_place_of_the_bundled_model(tiny, monkeypatch):
    from climassay.models.local.model import LocalModel

    class Tiny(LocalModel):
        def __init__(self, name, **options):
            super().__init__(tiny if name == "local:smollm2" else name, **options)

    monkeypatch.setattr("climassay.models.local.model.LocalModel", Tiny)
    monkeypatch.setattr("climassay.models.provider._load_info", lambda file: None)


@pytest.fixture
def reader(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", WIDTH)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("CLIMASSAY_WORKSPACE", raising=False)
    return Reader(tmp_path)


def follow(reader, page):
    """Follow a page; what it shows must be what is printed, digits aside, except where it says that this varies."""
    found = blocks(page)
    followed = 0
    for block, step, printed in reader.follow(page):
        followed += 1
        after = found[found.index(block) + 1 :]
        shown = step.shown if step else ()
        if step is None and after and after[0].language == "text":
            shown, block = tuple(after[0].text.splitlines()), after[0]
        if not block.varies:
            missing = missing_lines(shown, printed)
            assert not missing, f"{block.place} shows what was not printed:\n{missing}\nPrinted:\n{printed}"
    return followed


@pytest.mark.parametrize("page", [*TUTORIALS, *HOW_TO], ids=page_name)
@pytest.mark.usefixtures("tiny_in_place_of_the_bundled_model")
def test_a_page_can_be_followed(page, reader):
    wanted = [block for block in blocks(page) if block.language in ("console", "python") and not block.why_not_run]
    assert (follow(reader, page) > 0) == bool([block for block in wanted if not block.file])


@pytest.mark.usefixtures("tiny_in_place_of_the_bundled_model")
def test_the_python_of_the_readme_runs(reader):
    [block] = [one for one in blocks(ROOT / "README.md") if one.language == "python"]
    assert reader.run_python(block).strip()


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=page_name)
def test_a_tutorial_can_be_followed_with_the_bundled_model(page, reader):
    assert "CLIMASSAY_WORKSPACE" not in os.environ
    follow(reader, page)
