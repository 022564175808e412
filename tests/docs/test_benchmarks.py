"""Benchmarks are run by hand: what they import from the package is there."""

import ast
from importlib import import_module
from importlib.util import find_spec

import pytest

from documentation import ROOT

FILES = sorted((ROOT / "benchmarks").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=[file.relative_to(ROOT / "benchmarks").as_posix() for file in FILES])
def test_a_benchmark_imports_names_that_exist(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "climassay":
            module = import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name) or find_spec(f"{node.module}.{name.name}"), (node.module, name.name)
