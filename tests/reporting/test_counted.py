"""Numbers with their nouns, as messages and pages print them."""

import re
from pathlib import Path

import pytest

import climassay
from climassay.reporting import counted


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 claims"), (1, "1 claim"), (2, "2 claims"), (1200, "1,200 claims")], ids=str
)
def test_a_noun_is_singular_for_one_only(number, words):
    assert counted(number, "claim") == words


def test_no_text_leaves_the_plural_to_the_reader():
    files = [path for path in Path(climassay.__file__).parent.rglob("*") if path.suffix in {".py", ".j2"}]
    assert len(files) > 300
    undecided = re.compile(r"[}\d] [a-z-]+\(s\)")
    assert [path.name for path in files if undecided.search(path.read_text(encoding="utf-8"))] == []
