"""Contexts: hand-worked cosines, several documents, and no text shown twice."""

import pytest

from climassay.errors import InputError
from climassay.generation.passages import ContextFinder, SeedSampler
from topic_encoder import book_group

SEED = "The albedo of a cloud is bright."
BOOKS = {
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
def group(tmp_path_factory):
    return book_group(tmp_path_factory.mktemp("contexts"), BOOKS)


@pytest.fixture(scope="module")
def seed(group):
    sampler = SeedSampler(group)
    [found] = [
        passage for passage in (sampler.passage("s", "id-Main", number) for number in range(3)) if passage.text == SEED
    ]
    return found


def found(group, seed, **options):
    [passages] = ContextFinder(group, **options).find([seed])
    return passages


def test_the_main_passage_leads_and_the_nearest_follow_with_their_cosines(group, seed):
    main, *others = found(group, seed, most=3, threshold=0.4)
    assert (main.text, main.similarity, main.document, main.licence) == (SEED, None, "Main", "CC0")
    # The topics (albedo, cloud) of the seed, the same twice, and (cloud, ocean): 1, 1 and 1/2. The passage of cosine
    # 1/sqrt(2) is of a document that has a nearer one.
    assert [passage.similarity for passage in others] == pytest.approx([1.0, 1.0, 0.5], abs=1e-5)
    assert {passage.document for passage in others} >= {"Second", "Third"}


def test_other_documents_come_before_more_of_the_same(group, seed):
    documents = [passage.document for passage in found(group, seed, most=2, threshold=0.4)[1:]]
    assert sorted(documents) == ["Second", "Third"]


def test_the_same_document_fills_up(group, seed):
    documents = [passage.document for passage in found(group, seed, most=9, threshold=0.4)[1:]]
    assert "Main" in documents
    assert "Main" not in [p.document for p in found(group, seed, most=9, threshold=0.4, other_documents=True)[1:]]


def test_neighbours_that_share_sentences_are_left_out(tmp_path):
    shared = "This very sentence of more than twelve words about albedo stands in both of the two passages."
    books = {"Book": {"A": [f"Albedo first. {shared}"], "B": [f"{shared} Albedo last."], "C": ["Albedo alone."]}}
    overlapping = book_group(tmp_path, books)
    sampler = SeedSampler(overlapping)
    passages = [sampler.passage("s", "id-Book", number) for number in range(3)]
    for shown in ContextFinder(overlapping, most=2, threshold=0.5).find(passages):
        assert len(shown) == 2
        assert {"Albedo alone."} < {passage.text for passage in shown}


def test_the_threshold_holds_in_every_mode(group, seed):
    for mode in ("dense", "hybrid", "rrf", "bm25"):
        for passage in found(group, seed, most=9, threshold=0.6, mode=mode)[1:]:
            assert passage.similarity >= 0.6


def test_unsuitable_passages_are_not_shown(group, seed):
    passages = found(
        group, seed, most=9, threshold=0.0, suitable=lambda passage: "deep" if "deep" in passage.text else None
    )
    assert passages
    assert not any("deep" in passage.text for passage in passages)
    assert any("deep" in passage.text for passage in found(group, seed, most=9, threshold=0.0))


def test_none_wanted_and_none_given(group, seed):
    assert [p.text for p in found(group, seed, most=0)] == [SEED]
    assert ContextFinder(group).find([]) == []
    with pytest.raises(InputError, match="0 or more"):
        ContextFinder(group, most=-1)
