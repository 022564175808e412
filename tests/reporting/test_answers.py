import re
from html.parser import HTMLParser

from climassay.reporting import (
    AnsweredQuestion,
    AnswerRow,
    AnswerTables,
    Option,
    Report,
    Section,
    SourceText,
)

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


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "input", "circle", "line"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, tag):
        return [attrs for name, attrs in self.found if name == tag]


def test_every_question_is_folded_and_says_what_a_filter_needs():
    items = [attrs for attrs in Tags(page()).of("details") if attrs.get("class") == "item"]
    assert [(one["data-kind"], one["data-level"], one["data-wrong"]) for one in items] == [
        ("mcq", "base", "2"),
        ("cloze", "", "0"),
    ]
    assert all("open" not in one for one in items)


def test_texts_are_stored_once_and_linked():
    text = page()
    assert text.count("One &amp; only passage.") == 1
    targets = {attrs["id"] for attrs in Tags(text).of("li") if "id" in attrs}
    links = {attrs["href"][1:] for attrs in Tags(text).of("a") if "-t" in attrs["href"]}
    assert links == targets
    assert len(targets) == 2


def test_what_models_wrote_stays_text():
    text = page()
    assert "Which &lt;gas&gt;?" in text
    assert "failed: no &lt;answer&gt; in 60 s" in text
    assert "(empty)" in text


def test_the_page_asks_nobody():
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page())
