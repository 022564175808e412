"""Searching for evidence: excerpts, reranking, several collections, and latest editions."""

from dataclasses import replace

import pytest

from climassay import load_encoder
from climassay.corpus import Block, Collection, Document
from climassay.factcheck.claims import latest_editions
from climassay.factcheck.debate.batcher import RERANK_FACTOR, search_all
from climassay.factcheck.debate.requests import SearchRequest
from climassay.grounding import CollectionGroup
from debate_parts import Shelf

ICE = "Arctic ice melts. Penguins live elsewhere. The weather was fine."
SEA = "The sea rises. Ice on land melts and fills it."
COW = "Cows graze. Grass grows."


def found_in(asks, *shelves, latest=lambda name: frozenset()):
    collections = {shelf.passages[0].id.rpartition("-")[0]: shelf for shelf in shelves}
    return search_all(asks, collections, latest)


def ids(found):
    return [one.passage.id for one in found]


def test_answers_stand_in_the_order_of_the_searches_and_each_kind_is_searched_once():
    first, second = Shelf("a", ICE, SEA), Shelf("b", COW, ICE)
    asks = [
        SearchRequest(("b",), "cows graze", 1),
        SearchRequest(("a",), "the sea rises", 1),
        SearchRequest(("a",), "arctic ice melts", 1),
        SearchRequest(("a",), "arctic ice melts", 2),
        SearchRequest(("a",), "arctic ice melts", 2, min_cosine=0.99),
    ]
    found = found_in(asks, first, second)
    assert [ids(some) for some in found] == [["b-0"], ["a-1"], ["a-0"], ["a-0", "a-1"], []]
    assert [one.collection for some in found[:3] for one in some] == ["b", "a", "a"]
    assert [(queries, k) for queries, k, _ in first.searches] == [
        (["the sea rises", "arctic ice melts"], 1), (["arctic ice melts"], 2), (["arctic ice melts"], 2),
    ]  # fmt: skip


def test_passages_are_cut_to_the_sentences_nearest_to_the_query():
    asks = [
        SearchRequest(("a",), "ice melts", 1, excerpt_words=3),
        SearchRequest(("a",), "penguins live", 1, excerpt_words=6),
    ]
    [[first], [second]] = found_in(asks, Shelf("a", ICE))
    assert first.excerpt == "Arctic ice melts."
    assert second.excerpt == "Arctic ice melts. Penguins live elsewhere."
    assert first.passage.text == ICE


def test_reranking_takes_the_best_of_four_times_as_many_by_their_nearest_sentences():
    far = "Ice melts here. " + " ".join(f"Unrelated word{place} stands." for place in range(40))
    near = [f"ice word{place} more{place}" for place in range(6)]
    shelf = Shelf("a", *near, far)
    [plain] = found_in([SearchRequest(("a",), "ice melts here", 2)], shelf)
    assert "a-6" not in ids(plain)
    [ranked] = found_in([SearchRequest(("a",), "ice melts here", 2, rerank=True)], shelf)
    assert ids(ranked)[0] == "a-6"
    assert ranked[0].excerpt.startswith("Ice melts here. Unrelated")
    assert shelf.searches[-1][1] == 2 * RERANK_FACTOR == 8


def test_several_collections_take_turns():
    first, second = Shelf("a", ICE, COW, "Arctic ice melts."), Shelf("b", SEA, "Arctic ice.")
    [some] = found_in([SearchRequest(("a", "b"), "arctic ice melts", 4)], first, second)
    assert ids(some) == ["a-2", "b-1", "a-0", "b-0"]
    [turned] = found_in([SearchRequest(("b", "a"), "arctic ice melts", 4)], first, second)
    assert ids(turned) == ["b-1", "a-2", "b-0", "a-0"]
    [fewer] = found_in([SearchRequest(("a", "b"), "arctic ice melts", 2)], first, second)
    assert fewer == some[:2]


def test_a_passage_of_two_collections_takes_one_place():
    first, second = Shelf("a", ICE, SEA), Shelf("b", COW, SEA)
    second.passages[1] = replace(second.passages[1], id=first.passages[1].id)
    [some] = found_in([SearchRequest(("a", "b"), "arctic ice sea", 4)], first, second)
    assert sorted(ids(some)) == ["a-0", "a-1", "b-0"]


def test_what_was_measured_decides_where_no_threshold_is_named():
    shelf = Shelf("a", ICE)
    found_in([SearchRequest(("a",), "ice", 1), SearchRequest(("a",), "ice", 1, min_cosine=0.1)], shelf)
    assert [limit for _, _, limit in shelf.searches] == ["measured", 0.1]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Two editions of a report and a book, in a real collection."""
    collection = Collection.create(tmp_path_factory.mktemp("workspace"), "reports", load_encoder())
    for name, title, date, text in [
        ("old", "Report on Sea Level 2014", "2014", "Sea level rises by 3.2 mm each year."),
        ("new", "Report on Sea Level 2021", "2021", "Sea level rises by 3.7 mm each year."),
        ("book", "The Sea", None, "Sea level differs from place to place."),
    ]:
        collection.add([Document(name, title, f"{name}.md", (Block(text),), date=date)])
    return collection


def test_latest_only_leaves_out_what_has_a_later_edition(reports):
    group = {"reports": CollectionGroup((reports,))}

    def documents(latest_only):
        ask = SearchRequest(("reports",), "How fast does sea level rise?", 3, min_cosine=0.0, latest_only=latest_only)
        [some] = search_all([ask], group, lambda _: latest_editions(reports.documents()))
        return {one.passage.document_id for one in some}

    assert documents(False) == {"old", "new", "book"}
    assert documents(True) == {"new", "book"}
