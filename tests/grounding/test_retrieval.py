"""Several collections searched as one."""

import numpy as np
import pytest

from climassay.corpus import Block, Collection, Document, RelevanceRule
from climassay.corpus.search import SEARCH_MODES
from climassay.grounding import CollectionGroup, open_collections
from climassay.workspace import Workspace

WORDS = ("ice", "ocean", "heat", "glacier", "melt", "bread", "oven", "yeast", "sea", "rise")


class WordEncoder:
    """Each word a dimension; what has none of the words has one of its own."""

    width = len(WORDS) + 1

    def __init__(self, name="local:minilm"):
        self.name, self.fingerprint = name, name.ljust(64, "0")

    def encode(self, texts, *, role="passage", on_progress=None):
        rows = np.array([[float(word in text.lower()) for word in WORDS] + [0.2] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def collection(workspace, name, texts, encoder):
    made = Collection.create(workspace, name, encoder)
    made.add([Document(f"{name}{n}", f"{name} {n}", f"{name}{n}.md", (Block(text),)) for n, text in enumerate(texts)])
    return made


CLIMATE = ("The ocean takes up heat.", "A glacier is ice that may melt.", "The sea will rise as the ice melts.")
BAKING = ("Bread needs yeast.", "Heat the oven before the bread.", "Ice cream is cold.")


def found(group, query, k=3, **options):
    return [hit.passage.text for hit in group.search(query, k=k, **options)]


@pytest.fixture
def workspace(tmp_path):
    return Workspace.open(tmp_path)


def test_a_collection_has_a_place_only_for_a_relevant_passage(workspace):
    encoder = WordEncoder()
    climate, baking = (collection(workspace, *one, encoder) for one in (("climate", CLIMATE), ("baking", BAKING)))
    for order in ((climate, baking), (baking, climate)):
        group = CollectionGroup(order)
        assert found(group, "Will the glacier melt and the sea rise?", 2) == [CLIMATE[2], CLIMATE[1]]
        assert found(group, "How does the oven heat the bread?", 1) == [BAKING[1]]
        assert found(group, "What is a stock option?") == []


def test_passages_of_several_collections_rank_as_those_of_one(workspace):
    encoder = WordEncoder()
    whole = CollectionGroup((collection(workspace, "all", (*CLIMATE, *BAKING), encoder),))
    parts = CollectionGroup(
        (collection(workspace, "climate", CLIMATE, encoder), collection(workspace, "baking", BAKING, encoder))
    )
    for query in ("ocean heat", "sea rise melt", "bread yeast", "oven"):
        for mode in ("hybrid", "dense"):
            one, several = (group.search_many([query], k=2, mode=mode)[0] for group in (whole, parts))
            assert several[0].passage.text == one[0].passage.text
            assert [hit.rank for hit in several] == [1, 2]


def test_a_passage_that_two_collections_hold_stands_once(workspace):
    encoder = WordEncoder()
    made = [Collection.create(workspace, name, encoder) for name in ("one", "two")]
    for one in made:
        one.add([Document("same", "Same", "same.md", (Block(CLIMATE[0]),))])
    group = CollectionGroup(tuple(made))
    assert found(group, "ocean heat") == [CLIMATE[0]]
    for mode in SEARCH_MODES:
        assert [hit.passage.text for hit in group.search_many(["ocean heat"], k=3, mode=mode)[0]] == [CLIMATE[0]]


def test_cosines_of_different_encoders_count_from_their_thresholds(workspace, monkeypatch):
    strict = WordEncoder("local:strict")
    rules = {"local:minilm": RelevanceRule(0.1, 0.1), "local:strict": RelevanceRule(0.9, 0.9)}
    monkeypatch.setattr("climassay.grounding.answer.RELEVANCE", rules)
    monkeypatch.setattr("climassay.corpus.collection.RELEVANCE", rules)
    low = collection(workspace, "low", ("The ocean takes up heat.",), WordEncoder())
    high = collection(workspace, "high", ("The ocean takes up heat from bread.",), strict)
    group = CollectionGroup((high, low))
    query = "warm ocean water stores heat below"  # too many words for words to decide
    assert found(group, query) == ["The ocean takes up heat."]
    assert len(found(group, query, min_cosine=0.0)) == 2
    assert len(found(group, "ocean heat")) == 2


def test_a_text_is_encoded_once_however_often_it_is_looked_for(workspace):
    class Counting(WordEncoder):
        encoded = ()

        def encode(self, texts, *, role="passage", on_progress=None):
            self.encoded += tuple(texts)
            return super().encode(texts, role=role)

    encoder = Counting()
    for name, texts in (("climate", CLIMATE), ("baking", BAKING)):
        collection(workspace, name, texts, encoder)
    encoder.encoded = ()
    group = open_collections(workspace, ["climate", "baking"], encoder=encoder)
    for _ in range(3):
        group.search_many(["ice", "bread"], k=2)
        group.encoder.encode([*CLIMATE, "ice"])
    assert sorted(encoder.encoded) == sorted(["ice", "bread", *CLIMATE, "ice"])  # as a query and as a passage
