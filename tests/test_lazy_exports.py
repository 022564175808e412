"""Public names of packages: imported when they are used, named once."""

import importlib
import sys

import pytest

from climassay.registry import export_lazily

PACKAGE = """
from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from offering.tools import hammer as hammer, saw as saw

export_lazily(__name__, earlier={"mallet": "hammer"})
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
    assert (offering.hammer, offering.mallet) == ("hammer", "hammer")
    assert "offering.tools" in sys.modules
    assert offering.__all__ == ["hammer", "saw"]
    assert {"hammer", "saw"} <= set(dir(offering))


@pytest.mark.parametrize("name", ["vice", "__wrapped__"])
def test_other_names_are_refused(offering, name):
    with pytest.raises(AttributeError, match=f"'offering' has no attribute '{name}'"):
        getattr(offering, name)


def test_a_module_that_is_not_imported_offers_nothing():
    with pytest.raises(KeyError):
        export_lazily("climassay.not_there")
