"""Adding to a collection with an encoder that works on several chunks at once and finishes them in another order."""

import pytest

from climassay.corpus import collection as collection_adding
from climassay.corpus.collection import open_or_create
from climassay.corpus.documents import Block, Document
from climassay.models.contract import StreamingEncoder
from climassay.models.encoders import load_encoder


class BackwardsEncoder:
    """Takes some chunks ahead and gives the last of them first."""

    def __init__(self, ahead):
        self._encoder = load_encoder()
        self._ahead = ahead
        self.name, self.fingerprint, self.width = self._encoder.name, self._encoder.fingerprint, self._encoder.width

    def encode(self, texts, *, role="passage", on_progress=None):
        return self._encoder.encode(texts, role=role, on_progress=on_progress)

    def encode_stream(self, chunks, *, on_progress=None):
        held = []
        for number, texts in enumerate(chunks):
            held.append((number, texts))
            if len(held) == self._ahead:
                yield from self._given(held, on_progress)
        yield from self._given(held, on_progress)

    def _given(self, held, on_progress):
        while held:
            number, texts = held.pop()
            yield number, self.encode(texts, on_progress=on_progress)


def documents():
    said = "Station {} saw the glacier retreat by {} metres, more than in any of the hundred years before this one."
    return [
        Document(f"d{n}", f"Report {n}", f"r{n}.txt", tuple(Block(said.format(n, m), chapter=f"{m}") for m in range(9)))
        for n in range(3)
    ]


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_chunks_may_come_in_any_order(ahead, tmp_path, monkeypatch):
    monkeypatch.setattr(collection_adding, "CHUNK", 4)
    made = {"passage_size": 120, "passage_overlap": 0}
    alone = open_or_create(tmp_path / "alone", "ice", **made)
    alone.add(documents())
    encoder, told = BackwardsEncoder(ahead), []
    assert isinstance(encoder, StreamingEncoder)
    streamed = open_or_create(tmp_path / "streamed", "ice", **made, load=lambda _: encoder)
    report = streamed.add(documents(), on_progress=told.append)
    assert report.passages == len(streamed) == len(alone) == 27
    assert told[-1].passages_done == 27
    assert streamed.search("glacier retreat at station 2", k=5) == alone.search("glacier retreat at station 2", k=5)


def test_chunks_that_came_are_kept_when_the_encoder_fails_later(tmp_path, monkeypatch):
    monkeypatch.setattr(collection_adding, "CHUNK", 4)

    class Failing(BackwardsEncoder):
        def _given(self, held, on_progress):
            if any(number >= 2 for number, _ in held):
                raise RuntimeError("No worker is left.")
            yield from super()._given(held, on_progress)

    made = {"passage_size": 120, "passage_overlap": 0}
    failing = open_or_create(tmp_path, "ice", **made, load=lambda _: Failing(1))
    with pytest.raises(RuntimeError, match="No worker"):
        failing.add(documents())
    again = open_or_create(tmp_path, "ice", **made)
    assert len(again) == 8
    assert again.add(documents()).passages == 19
