"""Which passages are relevant to a query: by their words, their headings, and their similarity."""

import pytest

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document, RelevanceRule
from climassay.corpus.relevance import QueryWords, compute_heading_share
from topic_encoder import TopicEncoder

# Passages of many subjects, as in a report: the vector of such a text is near to no single word.
TEXTS = {
    "finance": "Limiting warming needs net-zero emissions of CO₂ by mid-century. Cities plan transport, schools get "
    "funds, and ministries of finance publish budgets each spring.",
    "reef": "Fishers of the island sell their catch in the morning. Coral reefs lose most of their cover at 2 °C, "
    "while hotels, harbours and roads are insured by the state.",
    "frost": "Roads were built in the north after the war. Thawing permafrost released 3 Mt of methane (CH4), and "
    "wages rose. The museum opened in May.",
    "net": "The fishing net was mended by the harbour. Prices rose and fell, votes were counted, and the ferry was "
    "late on most days of the month. The thermometer showed zero when the first snow of the winter fell.",
    "fire": "The mayor spoke of pensions. Wildfires burned for three weeks near the border, and the railway stood "
    "still; the library lent books to the evacuated families.",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    collection = Collection.create(tmp_path_factory.mktemp("c"), "report", load_encoder())
    collection.add(Document(name, name, f"{name}.md", (Block(text),)) for name, text in TEXTS.items())
    collection.add(
        [Document("sea", "sea", "sea.md", (Block("Tide gauges tell.", headings=("4.2 Vertical land motion",)),))]
    )
    return collection


def found(collection, query, **options):
    return [hit.passage.document for hit in collection.search(query, min_cosine="measured", **options)]


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("coral reefs", "reef"),
        ("coral reef", "reef"),
        ("CORAL REEFS?", "reef"),
        ("net zero", "finance"),
        ("net-zero", "finance"),
        ("net‑zero", "finance"),
        ("What is net zero?", "finance"),
        ("What does net zero mean?", "finance"),
        ("permafrost", "frost"),
        ("permafrost thaw", "frost"),
        ("impacts of permafrost", "frost"),
        ("How does methane affect people?", "frost"),
        ("CH₄", "frost"),
        ("wildfire", "fire"),
        ("tell me about wildfires", "fire"),
        ("vertical land motion", "sea"),
    ],
)
def test_words_that_one_types_are_found_first_whatever_their_cosine(report, query, document):
    assert found(report, query)[0] == document


@pytest.mark.parametrize(
    "query",
    [
        "football",
        "Gulf Stream",
        "net income",  # of two words, one is nowhere
        "fishing zero",  # both are in one passage, far apart
        "coral methane",  # both are there, in two passages
        "land price",
        "What is quantum computing?",
        "asdfgh",
        "?!",
    ],
)
def test_what_is_not_there_is_not_found(report, query):
    assert found(report, query) == []
    assert report.search(query, min_cosine=None) != []


def test_all_that_is_relevant_is_found_and_nothing_else(report):
    assert set(found(report, "zero", k=10)) == {"finance", "net"}
    assert found(report, "zero", k=1) == found(report, "zero", k=10)[:1]


def test_a_sentence_is_held_to_its_cosine(report):
    assert found(report, "The permafrost, wildfires, museums and pensions of Mars are governed by unicorns.") == []


def test_words_alone_decide_where_only_words_are_searched(report):
    assert set(found(report, "net income", mode="bm25")) == {"finance", "net"}


def test_a_number_is_a_plain_threshold(report):
    assert report.search("net zero", min_cosine=0.9) == []


def test_without_a_rule_everything_is_relevant(tmp_path):
    collection = Collection.create(tmp_path, "c", TopicEncoder())
    collection.add(Document(name, name, f"{name}.md", (Block(text),)) for name, text in TEXTS.items())
    assert collection.relevance is None
    assert len(found(collection, "football")) == len(TEXTS)


def test_short_queries_and_sentences_have_limits_of_their_own():
    rule = RelevanceRule(0.4, 0.5)
    assert rule.min_cosine_for("ocean heat") == 0.5
    assert rule.min_cosine_for("How much heat does the ocean take up?") == 0.4


def test_the_best_titled_passage_comes_first(tmp_path):
    collection = Collection.create(tmp_path, "c", load_encoder())
    text = "Glaciers of the Alps lose mass. Alpine glaciers and ice shrink, as glaciers do."
    collection.add(
        Document(name, name, f"{name}.md", (Block(words, headings=headings),))
        for name, words, headings in [
            ("dwelling", text, ("Results",)),
            ("partly", "Rivers run lower.", ("3.1 Glaciers and rivers of the Alps",)),
            ("titled", "Rivers run lower in late summer.", ("3 Mountains", "3.2 Glaciers")),
        ]
    )
    assert [hit.passage.document for hit in collection.search("glaciers", k=2)] == ["titled", "dwelling"]
    assert collection.search("glaciers of Mars", k=1)[0].passage.document == "dwelling"


@pytest.mark.parametrize(
    ("query", "headings", "share"),
    [
        ("Glaciers", ("3.2 Glaciers",), 1.0),
        ("glacier", ("Results", "Glaciers and rivers"), 0.5),
        ("ice sheets", ("Ice",), 0.0),
        ("Future change", ("2 Future changes",), 1.0),
        ("2030", ("Targets for 2030",), 0.5),
        ("the", ("The",), 0.0),
        ("ice", (), 0.0),
    ],
)
def test_share_of_a_heading(query, headings, share):
    assert compute_heading_share(query, headings) == pytest.approx(share)


def test_words_of_content_are_those_that_tell_what_is_asked_about():
    assert set(QueryWords("What does the report say about net-zero CO₂?").spelling_by_stem) == {"net", "zero", "co2"}
    assert set(QueryWords("What does it mean?").spelling_by_stem) == {"mean"}
    assert not QueryWords("what is it").is_short
    assert not QueryWords("permafrost thaw methane emissions arctic rivers").is_short
