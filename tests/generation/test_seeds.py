"""Seed passages: every section and book is visited, nothing repeats too early, and every process agrees."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus import Collection
from climassay.generation.passages import SeedSampler, stratified_order
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
    return SeedSampler(group, suitable=fault)


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
