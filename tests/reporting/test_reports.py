import csv
import io
import re
from html.parser import HTMLParser

from climassay.reporting import (
    AnswerCard,
    Dot,
    DotPlot,
    Facts,
    Prose,
    Report,
    Section,
    Table,
    as_csv,
    as_markdown,
)

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


class Collector(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.external, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a":
            self.links.append(values["href"])
        self.external += [values[name] for name in ("src", "action") if name in values]
        if tag in ("script", "link", "iframe", "img"):
            self.external.append(tag)


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
    parsed = Collector()
    parsed.feed(page)
    assert parsed.external == []
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"url\(|@import|https?://", page)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert {link.removeprefix("#") for link in parsed.links} <= set(parsed.ids)


def test_report_is_written_whole(tmp_path):
    target = report().write(tmp_path / "deep" / "report.html")
    assert target.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert list(target.parent.iterdir()) == [target]
