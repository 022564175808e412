"""``climassay corpus`` as a user meets it: what it prints, where, and with which exit code."""

import io
import json
import re

import pytest

from command_line import done, json_of, refused
from pdf_building import build_pdf, column


@pytest.fixture
def corpus(tmp_path, monkeypatch, climassay):
    """Runs a command in a workspace of its own; gives exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "100")

    return lambda *arguments: climassay("corpus", *map(str, arguments), "--workspace", str(tmp_path / "w"))


def test_what_was_left_out_is_said(corpus, tmp_path):
    page = tmp_path / "ice.html"
    page.write_text(
        "<nav>Home</nav><p>Ice melts.<sup>1</sup></p><h2>References</h2><p>Li, X. Ice. Nature 3, 5 (2019).</p>"
    )
    out = done(corpus("add", "ice", page))
    assert all(words in out for words in ("left out", "1 reference", "1 navigation block", "1 note mark"))
    [parts] = json_of(corpus("add", "ice", page, "--json"))["omitted_parts"].values()
    assert {part["kind"]: part["count"] for part in parts} == {"references": 1, "navigation blocks": 1, "note marks": 1}


def test_from_files_to_cited_passages(corpus, tmp_path):
    out = done(corpus("add", "books", "primer:physical_climate", "primer:aerosols_clouds"))
    assert "added     Principles of Physical Climate" in out
    assert "books: 2 documents added" in out

    code, out, _ = corpus("add", "books", "primer:physical_climate")
    assert (code, "0 documents added with 0 new passages, 1 already there" in out) == (0, True)

    out = done(corpus("search", "books", "Why does ozone oxidation in cloud water limit itself?", "-k", 2))
    assert out.startswith("1. ")
    assert "cosine 0." in out

    code, out, _ = corpus("search", "books", "What limits ozone oxidation?", "--json", "-k", 3)
    found = json.loads(out)
    assert (code, len(found["hits"]), found["mode"]) == (0, 3, "hybrid")
    first = found["hits"][0]
    assert first["rank"] == 1
    assert first["citation"].startswith(first["passage"]["document"])

    out = done(corpus("show", "books", first["passage"]["id"]))
    assert first["passage"]["text"] in out
    assert json_of(corpus("show", "books", first["passage"]["id"], "--json"))["text"] == first["passage"]["text"]

    code, out, _ = corpus("show", "books")
    assert (code, "Principles of Physical Climate" in out, "local:minilm" in out) == (0, True, True)
    documents = json_of(corpus("show", "books", "--json"))["documents"]
    assert [document["passages"] for document in documents] == [document["expected"] for document in documents]

    (summary,) = json_of(corpus("list", "--json"))
    assert (summary["name"], summary["documents"], summary["incomplete"]) == ("books", 2, 0)
    assert "books" in corpus("list")[1]

    out = done(corpus("evaluate", "books", "primer:aerosols_clouds", "-k", 1, "-k", 10))
    assert all(word in out for word in ("recall@1", "recall@10", "MRR@10", "hybrid", "dense", "bm25", "n = 60"))
    report = json_of(corpus("evaluate", "books", "primer", "--mode", "bm25", "-k", 1, "--json"))
    assert report["n"] == 120
    report = json_of(corpus("evaluate", "books", "primer:aerosols_clouds", "--mode", "bm25", "--json"))
    assert (report["n"], [scores["mode"] for scores in report["modes"]]) == (60, ["bm25"])

    compacted = json_of(corpus("compact", "books", "--json"))
    assert 0 < compacted["bytes_after"] <= compacted["bytes_before"]
    assert corpus("compact", "books")[1].startswith("Compacted books: ")
    code, out, _ = corpus("remove", "books", "Principles of Physical Climate")
    assert (code, out.startswith("Removed Principles of Physical Climate")) == (0, True)
    assert corpus("remove", "books", "--yes")[0] == 0
    assert json_of(corpus("list", "--json")) == []


def test_nothing_relevant_is_said(corpus):
    corpus("add", "books", "primer:contrarian_pamphlet")
    code, out, err = corpus("search", "books", "How long do I boil an egg?")
    assert (code, out) == (0, "")
    assert "Nothing relevant in books" in err
    assert "--all" in err
    assert len(corpus("search", "books", "How long do I boil an egg?", "--all", "-k", 1)[1].splitlines()) > 2
    found = json_of(corpus("search", "books", "How long do I boil an egg?", "--json"))
    assert found["hits"] == []
    assert found["min_cosine"] == "measured"


def test_what_was_skipped_is_listed_and_does_not_stop_the_rest(corpus, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (tmp_path / "good.md").write_text("# Ice\n\nIce melts when it gains more heat than it loses.\n")
    out = done(corpus("add", "mix", tmp_path / "empty.txt", tmp_path / "broken.pdf", tmp_path / "good.md", "none.pdf"))
    for name in ("empty.txt", "broken.pdf", "none.pdf"):
        assert re.search(rf"^skipped .*{re.escape(name)}", out, re.MULTILINE)
        assert f"{name}: {name}" not in out
    assert "1 document added with 1 new passage, 0 already there, 3 skipped" in out


def test_a_file_of_which_a_page_was_left_out_is_not_skipped(corpus, tmp_path):
    text = "Sea level rose by about three millimetres a year in the last two decades."
    (tmp_path / "half.pdf").write_bytes(build_pdf([column(text, 50, 700, 480), []], image_pages=[1]))
    out = done(corpus("add", "half", tmp_path / "half.pdf"))
    assert "in part   half.pdf: There are only images on 1 of 2 pages: page 2." in out
    assert "0 already there, 0 skipped" in out


def test_a_changed_file_is_told_and_can_replace_the_old_one(corpus, tmp_path):
    file = tmp_path / "note.md"
    file.write_text("# Note\n\nSea level rose by three millimetres a year.\n")
    corpus("add", "notes", file)
    file.write_text("# Note\n\nSea level rose by four millimetres a year.\n")
    code, out, _ = corpus("add", "notes", file)
    assert (code, "also keeps another version of Note" in out) == (0, True)
    file.write_text("# Note\n\nSea level rose by five millimetres a year.\n")
    code, out, _ = corpus("add", "notes", file, "--replace")
    assert out.count("replaced  Note") == 2
    assert len(json_of(corpus("show", "notes", "--json"))["documents"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("search", "none", "ice"), "There is no collection 'none'"),
        (("add", "a", "primer:cooking"), "no book 'cooking'"),
        (("add", "a", "primer:physical_climate", "--column", "text"), "is not FIELD=COLUMN"),
        (("add", "a", "primer:physical_climate", "-c", "url=x", "-c", "url=y"), "two columns for url"),
        (("add", "a", "primer:physical_climate", "--encoder", "minilm"), "names no encoder"),
        (("add", "a", "primer:physical_climate", "--passage-size", "20"), "too small"),
    ],
)
def test_bad_input_is_one_sentence(corpus, arguments, words):
    assert words in refused(corpus(*arguments))


def test_questions_on_a_collection_without_their_books(corpus):
    corpus("add", "other", "primer:contrarian_pamphlet")
    code, _, err = corpus("evaluate", "other", "primer:physical_climate")
    assert (code, "none of the 60 gold passages" in err) == (2, True)
    code, _, err = corpus("evaluate", "other", "primer:cooking")
    assert (code, "no questions on 'cooking'" in err) == (2, True)
    code, _, err = corpus("search", "other", "ice", "--mode", "fuzzy")
    assert (code, "no search mode 'fuzzy'" in err) == (2, True)


def test_a_collection_is_only_removed_when_meant(corpus, monkeypatch):
    corpus("add", "books", "primer:contrarian_pamphlet")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert corpus("remove", "books")[0] != 0
    code, out, err = corpus("remove", "books", "--json")
    assert (code, out, "needs --yes" in err) == (2, "", True)
    assert len(json_of(corpus("list", "--json"))) == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert corpus("remove", "books")[0] == 0
    assert json_of(corpus("list", "--json")) == []


def test_files_are_kept_unless_not_wanted_and_documents_get_other_titles(corpus, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(f"# Summary\n\nThe ocean takes up heat, as report {name} says.\n")
    done(corpus("add", "reports", tmp_path / "one.md", "--no-originals"))
    assert json_of(corpus("show", "reports", "--json"))["originals"] == {"documents": [], "bytes": 0}
    done(corpus("add", "reports", tmp_path / "one.md", tmp_path / "two.md"))
    out = done(corpus("show", "reports"))
    assert "2 of 2" in out
    assert "Summary (one.md)" in out
    assert "Summary (two.md)" in out
    details = ("--title", "The First Report", "--author", "A. Writer", "--date", "2021-05", "--json")
    edited = json_of(corpus("edit", "reports", "one.md", *details))["edited"]
    assert (edited["title"], edited["author"], edited["date"]) == ("The First Report", "A. Writer", "2021-05")
    assert "--title, --author or --date" in refused(corpus("edit", "reports", "one.md"))
    assert "looks like 2023-03" in refused(corpus("edit", "reports", "one.md", "--date", "May"))
    out = done(corpus("show", "reports"))
    assert "The First Report" in out
    assert "Summary (" not in out
    assert done(corpus("search", "reports", "What does report one say?", "--all")).startswith(
        "1. A. Writer, The First Report"
    )
    refused(corpus("edit", "reports", "Summary of Nothing", "--title", "Title"))
