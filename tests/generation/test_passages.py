"""Seed passages: every section and book is visited, nothing repeats too early, and every process agrees."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus import Collection
from climassay.errors import InputError
from climassay.generation import ContextFinder, SeedSampler
from climassay.generation.passages import stratified_order
from climassay.grounding import CollectionGroup
from topic_encoder import TopicEncoder, book_group

GIANT = {"Giant": [f"Fact {number} of the giant section." for number in range(30)]}
SMALL = {f"Small {number}": [f"The fact of small section {number}."] for number in range(10)}
BOOKS = {
    "Alpha": GIANT | SMALL,
    "Beta": {"Only": ["One fact of beta.", "Another fact of beta."]},
    "Empty": {"References": ["References 1.", "References 2."]},
}


def fault(passage) -> str | None:
    return "references" if passage.text.startswith("References") else None


@pytest.fixture(scope="module")
def group(tmp_path_factory) -> CollectionGroup:
    return book_group(tmp_path_factory.mktemp("seeds"), BOOKS)


@pytest.fixture(scope="module")
def sampler(group) -> SeedSampler:
    return SeedSampler(group, find_fault=fault)


def drawn(sampler, stream, book, numbers):
    return [sampler.passage(stream, book, number).id for number in numbers]


def test_books_without_a_suitable_passage_are_none(sampler):
    assert sampler.books == ("id-Alpha", "id-Beta")
    assert sampler.passage("mcq/base", "id-Empty", 0) is None
    assert sampler.passage("mcq/base", "no such book", 0) is None


def test_rounds_use_every_passage_once_and_in_another_order(sampler):
    first, second = (drawn(sampler, "mcq/base", "id-Alpha", range(start, start + 40)) for start in (0, 40))
    assert len(set(first)) == 40
    assert set(first) == set(second)
    assert first != second


@pytest.mark.process
def test_another_process_draws_the_same(group, sampler, tmp_path):
    script = tmp_path / "draw.py"
    script.write_text(
        "import sys\n"
        "from climassay.generation.passages import stratified_order\n"
        "print(*stratified_order([(str(n), (str(n % 5),)) for n in range(30)], 'key'))\n",
        encoding="utf-8",
    )
    environment = {"PYTHONHASHSEED": "12345", "PYTHONPATH": str(Path(sys.modules["climassay"].__file__).parents[1])}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    here = stratified_order([(str(number), (str(number % 5),)) for number in range(30)], "key")
    assert tuple(done.stdout.split()) == here


def test_a_document_of_two_collections_counts_once(tmp_path):
    first = book_group(tmp_path, BOOKS, "first")
    second = book_group(tmp_path, {"Beta": BOOKS["Beta"], "Gamma": {"G": ["A fact of gamma."]}}, "second")
    both = SeedSampler(CollectionGroup((*first.collections, *second.collections)))
    assert both.books == ("id-Alpha", "id-Beta", "id-Empty", "id-Gamma")
    assert len({both.passage("s", "id-Beta", number).id for number in range(6)}) == 2


def test_unfinished_documents_wait(group, tmp_path, monkeypatch):
    collection = Collection.create(tmp_path, "cut", TopicEncoder(), passage_size=200, passage_overlap=0)
    whole = group.collections[0].documents()
    monkeypatch.setattr(collection, "documents", lambda: [_unfinished(document) for document in whole])
    assert SeedSampler(CollectionGroup((collection,))).books == ()


def _unfinished(document):
    from dataclasses import replace

    return replace(document, expected=document.passages + 1)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.text())
def test_any_order_is_a_fair_permutation(sections, key):
    places = [(str(number), (str(section),)) for number, section in enumerate(sections)]
    order = stratified_order(places, key)
    section_of = dict(places)
    assert sorted(order) == sorted(section_of)
    left, seen = Counter(section_of.values()), Counter()
    for item in order:
        section = section_of[item]
        # No section gets a further turn while another one that still has passages is behind.
        assert seen[section] <= min(seen[other] for other in left if left[other])
        seen[section] += 1
        left[section] -= 1


SEED = "The albedo of a cloud is bright."
TOPICS = {
    "Main": {
        "Seed": [SEED],
        "Near": ["Albedo and cloud together decide how much comes back."],
        "Copy": [
            "It is known that the albedo of a cloud is bright and that is a fact seen by eyes of many people here."
        ],
    },
    "Second": {
        "Same": ["It is known that the albedo of a cloud is bright and that is a fact seen by eyes of many people."],
        "Half": ["Nothing reflects like albedo."],
    },
    "Third": {"Off": ["The ocean is deep."], "Part": ["A cloud, and the ocean below it."]},
}


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    return book_group(tmp_path_factory.mktemp("contexts"), TOPICS)


@pytest.fixture(scope="module")
def seed(topics):
    sampler = SeedSampler(topics)
    [found] = [
        passage for passage in (sampler.passage("s", "id-Main", number) for number in range(3)) if passage.text == SEED
    ]
    return found


def found(topics, seed, **options):
    [passages] = ContextFinder(topics, **options).find([seed])
    return passages


def test_the_main_passage_leads_and_the_nearest_follow_with_their_cosines(topics, seed):
    main, *others = found(topics, seed, max_passages=3, threshold=0.4)
    assert (main.text, main.similarity, main.document, main.licence) == (SEED, None, "Main", "CC0")
    # The topics (albedo, cloud) of the seed, the same twice, and (cloud, ocean): 1, 1 and 1/2. The passage of cosine
    # 1/sqrt(2) is of a document that has a nearer one.
    assert [passage.similarity for passage in others] == pytest.approx([1.0, 1.0, 0.5], abs=1e-5)
    assert {passage.document for passage in others} >= {"Second", "Third"}


def test_the_same_document_fills_up(topics, seed):
    documents = [passage.document for passage in found(topics, seed, max_passages=9, threshold=0.4)[1:]]
    assert "Main" in documents
    assert "Main" not in [
        p.document for p in found(topics, seed, max_passages=9, threshold=0.4, other_documents=True)[1:]
    ]


def test_neighbours_that_share_sentences_are_left_out(tmp_path):
    shared = "This very sentence of more than twelve words about albedo stands in both of the two passages."
    books = {"Book": {"A": [f"Albedo first. {shared}"], "B": [f"{shared} Albedo last."], "C": ["Albedo alone."]}}
    overlapping = book_group(tmp_path, books)
    sampler = SeedSampler(overlapping)
    passages = [sampler.passage("s", "id-Book", number) for number in range(3)]
    for shown in ContextFinder(overlapping, max_passages=2, threshold=0.5).find(passages):
        assert len(shown) == 2
        assert {"Albedo alone."} < {passage.text for passage in shown}


def test_the_threshold_holds_in_every_mode(topics, seed):
    for mode in ("dense", "hybrid", "rrf", "bm25"):
        for passage in found(topics, seed, max_passages=9, threshold=0.6, mode=mode)[1:]:
            assert passage.similarity >= 0.6


def test_unsuitable_passages_are_not_shown(topics, seed):
    passages = found(
        topics,
        seed,
        max_passages=9,
        threshold=0.0,
        find_fault=lambda passage: "deep" if "deep" in passage.text else None,
    )
    assert passages
    assert not any("deep" in passage.text for passage in passages)
    assert any("deep" in passage.text for passage in found(topics, seed, max_passages=9, threshold=0.0))


def test_none_wanted_and_none_given(topics, seed):
    assert [p.text for p in found(topics, seed, max_passages=0)] == [SEED]
    assert ContextFinder(topics).find([]) == []
    with pytest.raises(InputError, match="0 or more"):
        ContextFinder(topics, max_passages=-1)
