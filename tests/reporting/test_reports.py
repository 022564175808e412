import csv
import io
import re

from climassay.reporting import (
    AnswerCard,
    AnsweredQuestion,
    AnswerRow,
    AnswerTables,
    Dot,
    DotPlot,
    Facts,
    Option,
    Prose,
    Report,
    Section,
    SourceText,
    Table,
    as_csv,
    as_markdown,
)
from html_pages import Elements

TABLE = Table.of(
    "Accuracy <b>",
    ["setting", "n", "accuracy"],
    [("default", "60", "40.0"), ("rag:a|b", "60", "55.0")],
    note="A note & more.",
    strong=[1],
)


def test_csv_and_markdown_carry_every_cell():
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows == [["setting", "n", "accuracy"], ["default", "60", "40.0"], ["rag:a|b", "60", "55.0"]]
    lines = as_markdown(TABLE).splitlines()
    assert lines[3] == "| --- | ---: | ---: |"
    assert lines[5] == "| rag:a\\|b | 60 | 55.0 |"
    assert lines[-1] == "A note & more."


def report():
    card = AnswerCard(
        "Why <script>alert(1)</script>?",
        (("Because.", (1,), False), ("I think so.", (), True)),
        ((1, "Book, p. 3", "Some <i>passage</i>."),),
    )
    dots = (Dot("default", "default", 0.4, 0.3, 0.5, 0.25), Dot("rag", "rag", 0.6, 0.5, 0.7, 0.25))
    return Report(
        "A title",
        "A lead.",
        (
            Section("Answers", (Prose("Text."), card, card)),
            Section("Scores", (DotPlot("Overall", dots), TABLE, Facts((("seed", "0"),)))),
        ),
        (("Run", "r1"),),
    )


def test_report_is_self_contained_and_escapes_what_it_shows():
    page = report().to_html()
    parsed = Elements(page)
    assert not {"script", "link", "iframe", "img"} & set(parsed.tags)
    assert not any(name in attributes for _, attributes, _ in parsed.found for name in ("src", "action"))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"url\(|@import|https?://", page)
    parsed.check()
    assert all(link.startswith("#") for link in parsed.links)


def test_report_is_written_whole(tmp_path):
    target = report().write(tmp_path / "deep" / "report.html")
    assert target.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert list(target.parent.iterdir()) == [target]


MCQ = AnsweredQuestion(
    "q1",
    "mcq",
    "base",
    "primer",
    "Which <gas>?",
    "CO2",
    ("accuracy",),
    (
        AnswerRow("small", "default", "b) CH4", ("0",), wrong=True, remarks=("probability 0.40",)),
        AnswerRow("small", "rag", "a) CO2", ("1",), wrong=False, sources=(0, 1)),
        AnswerRow("large", "rag", "no <answer> in 60 s", ("0",), wrong=True, failed=True),
    ),
    (Option("a", "CO2", True), Option("b", "CH4", False)),
    source=1,
)
CLOZE = AnsweredQuestion(
    "q2",
    "cloze",
    "",
    "primer",
    "A <MASK>.",
    "word",
    ("exact match",),
    (AnswerRow("small", "default", "", ("1",), False),),
)
BLOCK = AnswerTables("All", (MCQ, CLOZE), (SourceText("p1", "One & only passage."), SourceText("p2", "Another.")))


def page(block=BLOCK):
    return Report("T", "L", (Section("S", (block,)),)).to_html()


def test_every_question_is_folded_and_says_what_a_filter_needs():
    items = [attrs for attrs in Elements(page()).of("details") if attrs.get("class") == "item"]
    assert [(one["data-kind"], one["data-level"], one["data-wrong"]) for one in items] == [
        ("mcq", "base", "2"),
        ("cloze", "", "0"),
    ]
    assert all("open" not in one for one in items)


def test_texts_are_stored_once_and_linked():
    text = page()
    assert text.count("One &amp; only passage.") == 1
    targets = {attrs["id"] for attrs in Elements(text).of("li") if "id" in attrs}
    links = {attrs["href"][1:] for attrs in Elements(text).of("a") if "-t" in attrs["href"]}
    assert links == targets
    assert len(targets) == 2


def test_what_models_wrote_stays_text():
    text = page()
    assert "Which &lt;gas&gt;?" in text
    assert "failed: no &lt;answer&gt; in 60 s" in text
    assert "(empty)" in text
