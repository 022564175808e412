"""Public names of packages: imported when they are used, named once."""

import importlib
import subprocess
import sys

import pytest

PACKAGE = """
from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from offering.tools import hammer as hammer, saw as saw

export_lazily(__name__)
"""


@pytest.fixture
def offering(tmp_path, monkeypatch):
    (tmp_path / "offering").mkdir()
    (tmp_path / "offering" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "offering" / "tools.py").write_text("hammer, saw, vice = 'hammer', 'saw', 'vice'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("offering")
    for name in ("offering", "offering.tools"):
        sys.modules.pop(name, None)


def test_a_name_is_imported_when_it_is_used(offering):
    assert "offering.tools" not in sys.modules
    assert offering.hammer == "hammer"
    assert "offering.tools" in sys.modules
    assert offering.__all__ == ["hammer", "saw"]
    assert {"hammer", "saw"} <= set(dir(offering))


@pytest.mark.parametrize("name", ["vice", "__wrapped__"])
def test_other_names_are_refused(offering, name):
    with pytest.raises(AttributeError, match=f"'offering' has no attribute '{name}'"):
        getattr(offering, name)


@pytest.mark.parametrize("room", ["evaluation", "metrics"])
def test_public_names_of_a_room_hide_no_module_and_cost_no_heavy_import(room):
    code = (
        f"import sys; from climassay import {room} as room\n"
        "assert not {'sqlalchemy', 'torch', 'lancedb', 'rich'} & set(sys.modules)\n"
        "assert all(type(getattr(room, name)).__name__ != 'module' for name in room.__all__)\n"
        "heavy = {'torch', 'transformers', 'lancedb', 'onnxruntime', 'sklearn', 'rich', 'nltk', 'sacrebleu'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    # A process of its own: what other tests have imported would hide what this import costs.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
