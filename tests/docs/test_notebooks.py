"""The notebooks are whole: valid, executed in order, small, and their code imports what there is."""

import importlib
import json

import pytest

from documentation import ROOT, names_imported

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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_code_imports_what_there_is(path):
    whole = "\n\n".join(source(cell) for cell in cells(path, "code"))
    for module, name in names_imported(whole):
        assert name is None or hasattr(importlib.import_module(module), name), f"{module}.{name}"


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
