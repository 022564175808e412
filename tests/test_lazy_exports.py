"""Public names of packages are imported when they are used."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import climassay

SOURCE = Path(climassay.__file__).parent
PACKAGES = sorted(
    ".".join(("climassay", *stub.relative_to(SOURCE).parts[:-1])) for stub in SOURCE.rglob("__init__.pyi")
)
HEAVY = ["torch", "transformers", "lancedb", "onnxruntime", "sklearn", "rich", "nltk", "sacrebleu"]


def run_python(code: str) -> None:
    """Run code in a process of its own: modules that other tests imported would hide the imports."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_an_object_even_if_a_module_has_the_same_name(name):
    package = import_module(name)
    for path in sorted(Path(package.__file__).parent.glob("*.py")):
        import_module(f"{name}.{path.stem}" if path.stem != "__init__" else name)
    assert package.__all__
    assert set(package.__all__) <= set(dir(package))
    for public_name in package.__all__:
        assert type(getattr(package, public_name)).__name__ != "module", public_name
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


def test_importing_the_package_imports_no_other_module_of_it():
    run_python(
        "import sys, climassay\n"
        "assert [name for name in sys.modules if name.startswith('climassay')] == ['climassay']\n"
        "assert not {'numpy', 'torch', 'sqlalchemy', 'lancedb', 'pydantic'} & set(sys.modules)\n"
        "from climassay import Workspace, load_model, ask, ClimassayError\n"
        "assert not {'torch', 'transformers', 'lancedb', 'onnxruntime', 'sklearn'} & set(sys.modules)\n"
    )


def test_a_star_import_brings_the_public_names():
    run_python("from climassay.records import *\nassert Records.__module__ == 'climassay.records.store'\n")


@pytest.mark.parametrize("package", ["evaluation", "metrics"])
def test_public_names_of_a_package_cost_no_heavy_import(package):
    run_python(
        f"import sys; from climassay import {package} as package\n"
        "assert not {'sqlalchemy', 'torch', 'lancedb', 'rich'} & set(sys.modules)\n"
        "values = [getattr(package, name) for name in package.__all__]\n"
        f"assert not set({HEAVY}) & set(sys.modules), set({HEAVY}) & set(sys.modules)\n"
    )
