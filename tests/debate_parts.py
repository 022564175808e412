"""What tests of fact-checking put around a scripted model: collections of a few passages, and a driver of steps."""

from types import SimpleNamespace

from climassay.corpus import Hit, Passage
from climassay.factcheck import DebateResources
from climassay.factcheck.debate.batcher import RequestBatcher
from climassay.factcheck.debate.rounds import debate
from climassay.factcheck.debate.scheduler import DebateScheduler
from word_encoder import WordEncoder


class Shelf:
    """A group of one collection, searched by shared words."""

    def __init__(self, name, *texts, documents=(), encoder=None):
        pairs = [(one, "d") if isinstance(one, str) else one for one in texts]
        self.passages = [
            Passage(f"{name}-{place}", text, document, f"Title of {document}", f"{document}.md", place)
            for place, (text, document) in enumerate(pairs)
        ]
        self.encoder = encoder or WordEncoder()
        self.documents = list(documents)
        settings = SimpleNamespace(encoder=self.encoder.name)
        self.collections = (SimpleNamespace(settings=settings, documents=lambda: self.documents),)
        self.searches = []
        """Queries, number of passages and lowest similarity of each call."""

    def search_many(self, queries, *, k, min_cosine=None):
        self.searches.append((list(queries), k, min_cosine))
        cosines = self.encoder.encode(queries) @ self.encoder.encode([one.text for one in self.passages]).T
        return [self._hits(row, k, min_cosine) for row in cosines]

    def _hits(self, cosines, k, min_cosine):
        order = sorted(range(len(cosines)), key=lambda place: (-cosines[place], place))
        limit = -1.0 if min_cosine in (None, "measured") else min_cosine
        near = [place for place in order if cosines[place] >= limit][:k]
        return [
            Hit(self.passages[place], rank, float(cosines[place]), float(cosines[place]))
            for rank, place in enumerate(near, start=1)
        ]


def company_of(model, *shelves, **others):
    """Models and collections of a debate: one model for all who are not named in ``others``."""
    first = next(iter(shelves), None)
    collections = {shelf.passages[0].id.rpartition("-")[0]: shelf for shelf in shelves}
    return DebateResources({model.name: model, **others}, collections, {}, first.encoder if first else WordEncoder())


def drive(steps, answer):
    """The result of steps whose asks are answered one by one, and the batches that they asked for."""
    return drive_batches(steps, lambda asks: [answer(ask) for ask in asks])


def drive_batches(steps, answer):
    """The result of steps whose asks are answered batch by batch, and these batches."""
    batches = []
    given = None
    try:
        while True:
            asks = next(steps) if given is None else steps.send(given)
            batches.append(asks)
            given = answer(asks)
    except StopIteration as end:
        return end.value, batches


def debates(table, company, claims, at_once=16):
    """Transcripts of claims debated side by side, without records."""
    exchange = RequestBatcher(company.models, company.collections)
    return DebateScheduler([debate(claim, table) for claim in claims], exchange, at_once).run()
