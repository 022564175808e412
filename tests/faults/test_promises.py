"""What docs/reliability.md promises: each promise names tests, and the tests are there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def rows():
    """The rows of the tables under "Promises" below their headings: what is said, and the tests that hold it."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Promises\n")[1].split("\n## ")[0]
    lines = section.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [row for row in cells if not row[0].startswith(("promise", "what went wrong", "what could go wrong"))]


@pytest.mark.core
def test_every_promise_names_tests_that_exist():
    promises = rows()
    assert len(promises) >= 20
    for row in promises:
        named = NAMED.findall(row[-1])
        assert named, f"no test holds: {row[0]}"
        for file, test in named:
            text = (PAGE.parents[1] / file).read_text(encoding="utf-8")
            assert not test or f"def {test}(" in text, f"{file} has no {test}"


@pytest.mark.core
def test_every_test_of_faults_is_named():
    page = PAGE.read_text(encoding="utf-8")
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        assert f"tests/faults/{file.name}" in page, f"say in docs/reliability.md what {file.name} holds"
