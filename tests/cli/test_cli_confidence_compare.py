"""``climassay confidence compare``."""

import pytest

from command_line import done, json_of
from word_counts import WordCounts

OLD = "A.1 Glaciers in the Andes lost mass since 1970 (high confidence).\n\nA.2 Seas rise for ages (low confidence).\n"
NEW = "A.1 Glaciers in the Andes lost mass since 1970 (medium confidence).\n"


@pytest.fixture
def compare(monkeypatch, climassay, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda *_: WordCounts())
    (tmp_path / "old.md").write_text(OLD)
    (tmp_path / "new.md").write_text(NEW)

    def run(*args):
        return climassay("confidence compare", *args)

    return run


def test_table_and_page(compare, tmp_path):
    out = done(compare("old.md", "new.md", "-o", "pages/out.html"))
    assert "level changed" in out
    assert "dropped" in out
    assert "side by side" in (tmp_path / "pages" / "out.html").read_text()


def test_statements_of_extract_are_read(compare, climassay):
    climassay("confidence extract", "old.md", "--untagged", "-o", "old.jsonl")
    assert json_of(compare("old.jsonl", "old.md", "--json"))["counts"]["unchanged"] == 2


@pytest.mark.parametrize(
    "args",
    [
        ["old.md"],
        ["old.md", "none.md"],
        ["none.jsonl", "new.md"],
        ["old.md", "new.md", "--least-similar", "2"],
        ["old.md", "new.md", "--kind", "chapters"],
        ["old.md", "new.md", "-o", "old.md/x.csv"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_compared(compare, args):
    code, out, err = compare(*args)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
