"""Search by words, by vectors and by both, against plain computations of the same."""

import numpy as np
import pytest

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document, read, split_passages
from climassay.corpus.collection_storage import PendingPassage, to_table
from climassay.corpus.search import CANDIDATES, SEARCH_MODES, Searcher, add_weighted_scores, fuse_rankings
from climassay.errors import InputError
from climassay.primer import book_path
from topic_encoder import book_group
from word_encoder import WordEncoder

QUERY = "Why does the stratosphere cool when carbon dioxide rises?"
QUERIES = (
    QUERY,
    "How do aerosols change the albedo of clouds?",
    "What limits the growth of an ice sheet?",
    "bread and butter",
)


@pytest.fixture(scope="module")
def encoder():
    return load_encoder()


@pytest.fixture(scope="module")
def collection(tmp_path_factory, encoder):
    made = Collection.create(tmp_path_factory.mktemp("c"), "books", encoder, passage_size=450, passage_overlap=0)
    made.add(read(book_path("physical_climate")).documents)
    assert len(made) > 2 * CANDIDATES
    return made


@pytest.fixture(scope="module")
def rows(collection):
    return collection._table.to_arrow().sort_by("id").to_pylist()


def lines(*texts: str) -> Document:
    return Document("d", "T", "t.txt", tuple(Block(text, chapter=str(n)) for n, text in enumerate(texts)))


def ids(hits):
    return [hit.passage.id for hit in hits]


def test_dense_search_is_exact(collection, encoder, rows):
    cosines = np.array([row["vector"] for row in rows]) @ encoder.encode([QUERY])[0]
    best = np.argsort(-cosines)[:10]
    hits = collection.search(QUERY, k=10, mode="dense")
    assert ids(hits) == [rows[row]["id"] for row in best]
    np.testing.assert_allclose([hit.score for hit in hits], cosines[best], atol=1e-5)
    assert all(hit.score == hit.cosine for hit in hits)
    assert [hit.rank for hit in hits] == list(range(1, 11))


@pytest.mark.parametrize("mode", ["dense", "hybrid", "rrf"])
def test_vectors_that_do_not_fit_into_memory_are_searched_on_disk(collection, encoder, mode):
    weight = collection._searcher.dense_weight
    on_disk = Searcher(collection._table, 384, dense_weight=weight, memory_budget=0)
    for query in QUERIES:
        (found,) = on_disk.search([query], lambda: encoder, k=8, mode=mode)
        expected = collection.search(query, k=8, mode=mode)
        assert ids(found) == ids(expected)
        np.testing.assert_allclose([hit.cosine for hit in found], [hit.cosine for hit in expected], atol=2e-6)


def test_bm25_finds_stems_not_only_words(tmp_path, encoder):
    made = Collection.create(tmp_path, "c", encoder)
    made.add([lines("Glaciers were melting fast.", "The café is warm.", "Nothing of the sort.")])
    assert ids(made.search("a glacier melts", mode="bm25")) == ["d-0"]
    assert ids(made.search("CAFE", mode="bm25")) == ["d-1"]
    assert made.search("the of and", mode="bm25") == []
    assert made.search("?!", mode="bm25") == []


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("NDC", "NDCs of all countries."),
        ("crises", "A crisis of water."),
        ("phenomenon", "Rare phenomena."),
        ("bio-energy", "Bioenergy needs land."),
        ("PM 2.5", "Fine PM₂.₅ particles."),
        ("CFC11 in the air", "Emissions of CFC-11 fell."),
        ("Erwaermung", "Die Erwärmung der Meere."),
        ("strasse", "Eine Straße."),
        ("rechauffement", "Le réchauffement."),
        ("Emission", "Emissionen sinken."),
        ("Emissionen", "Eine Emission."),
        ("Szenario", "Mehrere Szenarien."),
        ("Wald", "Die Wälder brennen."),
        ("Waelder", "Der Wald brennt."),
        ("Bäume", "Ein Baum wächst."),
        ("duerre", "Dürren nehmen zu."),
        ("sealevel", "The sea level rises."),
        ("f16", "An F-16 flies."),
    ],
)
def test_words_that_no_passage_has_are_found_in_another_spelling(tmp_path, query, text):
    made = Collection.create(tmp_path, "c", WordEncoder())
    made.add([lines("Ice melts at 2.5 degrees.", text)])
    assert ids(made.search(query, mode="bm25", k=1)) == ["d-1"]


def test_words_that_some_passage_has_keep_their_spelling(tmp_path):
    made = Collection.create(tmp_path, "c", WordEncoder())
    made.add([lines("The NDC of Chad.", "NDCs of all countries.", "Breads of the region.", "The rate of care.")])
    assert ids(made.search("NDC", mode="bm25")) == ["d-0"]
    for query in ("butter", "rat", "car"):
        assert made.search(query, mode="bm25") == []


@pytest.mark.parametrize("query", ["t-test", "don't melt", "réchauffement", "rechauffement"])
def test_words_with_accents_or_apostrophes_are_relevant_where_they_occur(tmp_path, encoder, query):
    made = Collection.create(tmp_path, "c", encoder)
    others = ("Forests store carbon.", "Rivers flood in spring.", "Coal is burned.", "Cities grow.")
    made.add([lines("A t-test of trends: they don’t melt, selon le réchauffement.", *others)])
    assert ids(made.search(query, min_cosine="measured"))[:1] == ["d-0"]


def test_bm25_needs_no_encoder(tmp_path, encoder):
    class Absent:
        name, fingerprint, width = "local:absent", "f" * 64, 384

        def encode(self, texts, **_):
            raise AssertionError("the encoder was used")

    made = Collection.create(tmp_path, "c", Absent())
    rows = [PendingPassage(passage, 1) for passage in split_passages(lines("Ice melts."))]
    made._table.add(to_table(rows, encoder.encode(["Ice melts."]), made._table.schema))
    assert ids(Collection.open(tmp_path, "c").search("ice", mode="bm25")) == ["d-0"]


def test_passages_outside_the_text_index_are_found(tmp_path, encoder):
    """As after a kill between storing and indexing."""
    made = Collection.create(tmp_path, "c", encoder)
    made.add([lines("Ice melts in the sun.")])
    late = split_passages(Document("late", "L", "l.txt", (Block("Ice breaks in the swell."),)))
    made._table.add(to_table([PendingPassage(late[0], 1)], encoder.encode([late[0].text]), made._table.schema))
    assert made._table.index_stats("text_idx").num_unindexed_rows == 1
    for mode in SEARCH_MODES:
        assert set(ids(made.search("ice", mode=mode))) == {"d-0", "late-0"}


def test_a_lost_text_index_is_made_anew(tmp_path, encoder):
    made = Collection.create(tmp_path, "c", encoder)
    made.add([lines("Ice melts.")])
    made._table.drop_index("text_idx")
    assert ids(made.search("ice", mode="bm25")) == ["d-0"]


def test_rrf_is_the_sum_of_reciprocal_ranks(collection):
    by_rank = {}
    for mode in ("dense", "bm25"):
        for hit in collection.search(QUERY, k=CANDIDATES, mode=mode):
            by_rank[hit.passage.id] = by_rank.get(hit.passage.id, 0) + 1 / (60 + hit.rank)
    expected = sorted(by_rank, key=lambda item: (-by_rank[item], item))[:8]
    hits = collection.search(QUERY, k=8, mode="rrf")
    assert ids(hits) == expected
    assert [hit.score for hit in hits] == pytest.approx([by_rank[item] for item in expected])


def test_fusion_by_hand():
    assert fuse_rankings(["a", "b"], ["b", "c"]) == {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "c": 1 / 62}
    assert list(fuse_rankings(["b", "a"], ["a", "b"])) == ["a", "b"]
    assert fuse_rankings([], []) == {}


def test_weighted_sum_by_hand():
    cosines, words = {"a": 0.8, "b": 0.4, "c": -0.2}, {"b": 10.0, "c": 5.0}
    assert add_weighted_scores(cosines, words, 0.25) == {"b": 0.25 * 0.5 + 0.75, "c": 0.375, "a": 0.25}
    assert add_weighted_scores({"a": 0.5}, {}, 0.3) == {"a": 0.3}
    assert add_weighted_scores({"a": -0.5, "b": -0.1}, {"b": 2.0}, 0.3) == {"b": 0.7, "a": 0.0}


def test_hybrid_is_the_weighted_sum_of_true_cosines_and_bm25(collection, encoder, rows):
    vector = encoder.encode([QUERY])[0]
    cosines = {row["id"]: float(np.dot(row["vector"], vector)) for row in rows}
    words = {hit.passage.id: hit.score for hit in collection.search(QUERY, k=CANDIDATES, mode="bm25")}
    near = ids(collection.search(QUERY, k=CANDIDATES, mode="dense"))
    weight = collection._searcher.dense_weight
    scores = {
        item: weight * cosines[item] / max(cosines.values()) + (1 - weight) * words.get(item, 0.0) / max(words.values())
        for item in {*near, *words}
    }
    hits = collection.search(QUERY, k=8)
    assert ids(hits) == sorted(scores, key=lambda item: (-scores[item], item))[:8]
    assert [hit.score for hit in hits] == pytest.approx(sorted(scores.values())[:-9:-1], abs=1e-5)
    assert [hit.cosine for hit in hits] == pytest.approx([cosines[item] for item in ids(hits)], abs=1e-5)


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_many_queries_at_once_are_as_one_by_one(collection, mode):
    together = collection.search_many(QUERIES, k=5, mode=mode)
    assert together == [collection.search(query, k=5, mode=mode) for query in QUERIES]
    assert together == collection.search_many(QUERIES, k=5, mode=mode)
    assert collection.search_many([], mode=mode) == []


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_a_threshold_leaves_out_what_is_less_similar_and_nothing_else(collection, mode):
    everything = collection.search(QUERY, k=40, mode=mode, min_cosine=-1)
    limit = sorted(hit.cosine for hit in everything)[20]
    kept = collection.search(QUERY, k=40, mode=mode, min_cosine=limit)
    expected = [hit.passage.id for hit in everything if hit.cosine >= limit]
    assert [hit.passage.id for hit in kept][: len(expected)] == expected
    assert all(hit.cosine >= limit for hit in kept)
    assert [hit.rank for hit in kept] == list(range(1, len(kept) + 1))


def test_nothing_relevant_is_a_possible_answer(collection):
    assert collection.relevance is not None
    assert collection.search(QUERY, min_cosine="measured")
    assert collection.search("How long do I boil an egg so that the yolk stays soft?", min_cosine="measured") == []


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_equals_are_ordered_by_id(tmp_path, encoder, mode):
    made = Collection.create(tmp_path, "c", encoder)
    names = ["q", "c", "x", "a", "m"]
    made.add([Document(name, name, f"{name}.txt", (Block("Ice melts in the sun."),)) for name in names])
    assert ids(made.search("melting ice", k=3, mode=mode)) == ["a-0", "c-0", "m-0"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": " \n"}, "query is empty"),
        ({"query": "ice", "k": 0}, "0 hits"),
        ({"query": "ice", "k": 100_000}, "100000 hits"),
        ({"query": "ice", "mode": "fuzzy"}, "no search mode 'fuzzy'"),
        ({"query": "ice", "min_cosine": 1.5}, "cannot be 1.5"),
    ],
)
def test_nonsense_is_told(collection, arguments, words):
    with pytest.raises(InputError, match=words):
        collection.search(**arguments)


@pytest.mark.parametrize("query", ["NOT (a AND", '"unclosed', "a:b^2~", "x' OR 1=1 --", "\x00", "😀 ice", "w " * 5000])
@pytest.mark.parametrize("mode", ["hybrid", "bm25"])
def test_any_text_is_a_query(collection, query, mode):
    assert len(collection.search(query, k=3, mode=mode)) <= 3


def test_one_query_for_search_many_is_told(collection):
    with pytest.raises(InputError, match="use search for one"):
        collection.search_many("ice")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    subjects = {"ice": ("albedo", "glacier"), "sky": ("cloud", "aerosol"), "sea": ("ocean", "carbon")}
    books = {
        title: {"Facts": [f"Fact {n} about {topic} and albedo {'albedo ' * n}." for topic in topics for n in range(4)]}
        for title, topics in subjects.items()
    }
    return book_group(tmp_path_factory.mktemp("shelf"), books).collections[0]


@pytest.mark.parametrize("mode", SEARCH_MODES)
@pytest.mark.parametrize("budget", [1 << 30, 0], ids=["in-memory", "on-disk"])
def test_a_search_in_one_document_is_a_search_without_the_others(shelf, mode, budget):
    searcher = Searcher(shelf._table, shelf.settings.width, dense_weight=0.3, memory_budget=budget)
    query = "albedo of a cloud"
    everything = searcher.search([query], lambda: shelf.encoder, k=100, mode=mode)[0]
    assert {hit.passage.document_id for hit in everything} == {"id-ice", "id-sky", "id-sea"}
    for document in ("id-ice", "id-sky", "id-sea"):
        where = f"document_id = '{document}'"
        (found,) = searcher.search([query], lambda: shelf.encoder, k=100, mode=mode, where=where)
        expected = [hit for hit in everything if hit.passage.document_id == document]
        assert sorted(ids(found)) == sorted(ids(expected))
        if mode in ("dense", "bm25"):
            # Both measures of a passage are what they were; only fused ones are relative to the others found.
            assert [(hit.passage.id, hit.score) for hit in found] == [(hit.passage.id, hit.score) for hit in expected]


def test_a_search_in_one_report(tmp_path):
    made = Collection.create(tmp_path, "reports", load_encoder())
    blocks = (Block("The albedo of sea ice is higher than that of open water."),)
    made.add(Document(f"d{report}", "T", "t.txt", blocks, report=report) for report in ("first", "sec'ond"))
    for report in ("first", "sec'ond"):
        assert [hit.passage.report for hit in made.search_many(["albedo of ice"], report=report)[0]] == [report]
    assert made.search_many(["albedo of ice"], report="first", document="dsec'ond") == [[]]


def test_the_index_is_looked_at_once_for_each_version_of_a_collection(shelf):
    looked = []
    searcher = Searcher(shelf._table, shelf.settings.width, index_words=lambda: looked.append(shelf.version))
    for _ in range(3):
        searcher.search(["albedo of a cloud", "ice"], lambda: shelf.encoder, k=3)
    assert len(looked) == 1
    shelf.add([lines("A late cloud.")])
    assert ids(searcher.search(["late"], lambda: shelf.encoder, k=1, mode="bm25")[0]) == ["d-0"]
    assert len(looked) == 2
