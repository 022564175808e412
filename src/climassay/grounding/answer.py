"""A question answered from the passages of one or several collections.

1. Passages are retrieved; several collections are searched as one (:class:`CollectionGroup`). Where no passage is
   relevant the answer is "not enough information", and no model is asked.
2. The model writes a few sentences, each with the numbers of the passages it rests on.
3. Its citations are made honest (:mod:`climassay.grounding.citations`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from climassay.corpus.collection import Collection
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.relevance import RELEVANCE, Threshold, heading_share
from climassay.corpus.search import (
    CANDIDATES,
    DEFAULT_DENSE_WEIGHT,
    DENSE_WEIGHT,
    RRF_CONSTANT,
    SearchMode,
    add_headings,
    weighted_sum,
)
from climassay.errors import InputError, NoAnswerError
from climassay.grounding.citations import AnswerSentence, ground_text, sentences_so_far, written
from climassay.models.contract import (
    Encoder,
    GenerationRequest,
    Generator,
    Sampling,
    StreamingGenerator,
    Usage,
    number_format,
)
from climassay.models.encoders import CachedEncoder
from climassay.prompts import ProfileSettings, Prompt, load_prompt, profile_of
from climassay.reporting import AnswerCard, Report, Section, Table
from climassay.reporting.results import Result
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class CollectionGroup:
    """One or several collections; each may have an encoder of its own."""

    collections: tuple[Collection, ...]

    @property
    def encoder(self) -> Encoder:
        """The first collection's encoder; what else has to be compared is compared with it."""
        return self.collections[0].encoder

    def search(
        self, query: str, *, k: int, min_cosine: Threshold = "measured", mode: SearchMode = "hybrid"
    ) -> list[Hit]:
        """Find the passages that are relevant to a query, best first; none if nothing is.

        Args:
            query: A question, a statement or a few words.
            k: Maximum number of passages, over all collections.
            min_cosine: By default each collection decides by what was measured for its encoder
                (:mod:`climassay.corpus.relevance`); a number leaves out passages less similar than that.
            mode: See :meth:`climassay.corpus.Collection.search_many`.
        """
        return self.search_many([query], k=k, min_cosine=min_cosine, mode=mode)[0]

    def search_many(
        self, queries: Sequence[str], *, k: int, min_cosine: Threshold = None, mode: SearchMode = "hybrid"
    ) -> list[list[Hit]]:
        """The best passages for many queries.

        Passages of several collections are ranked together, so that a collection has a place for each passage that is
        better than those of the others, and none for being asked. ``hybrid`` divides cosines and BM25 scores by their
        greatest ones over all collections; where encoders differ, what a cosine has beyond the threshold of its encoder
        stands for it (:data:`~climassay.corpus.relevance.RELEVANCE`). ``rrf`` fuses the ranks.

        Args:
            queries: Texts to search for.
            k: Passages a query, over all collections.
            min_cosine: Leave out passages less similar than this, or those that are not relevant (``"measured"``); None
                keeps all.
            mode: See :meth:`climassay.corpus.Collection.search_many`.
        """
        several = len(self.collections) > 1
        depth = max(CANDIDATES, k) if several else k
        results = [one.search_many(queries, k=depth, min_cosine=min_cosine, mode=mode) for one in self.collections]
        if not several:
            return results[0]
        if mode == "rrf":
            return [_fuse(lists, k) for lists in zip(*results, strict=True)]
        by_words = [one.search_many(queries, k=depth, mode="bm25") for one in self.collections if mode == "hybrid"]
        return [
            self._together(
                query, [hits[number] for hits in results], [hit for hits in by_words for hit in hits[number]], k, mode
            )
            for number, query in enumerate(queries)
        ]

    def _together(
        self, query: str, rankings: Sequence[Sequence[Hit]], by_words: Sequence[Hit], k: int, mode: SearchMode
    ) -> list[Hit]:
        """The best hits of all collections for one query; a passage that several hold appears once."""
        hits = {hit.passage.id: hit for ranking in rankings for hit in ranking}
        if mode == "bm25":
            scores = {item: hit.score for item, hit in hits.items()}
        else:
            encoders = [collection.settings.encoder for collection in self.collections]
            rules = [RELEVANCE.get(name) if len(set(encoders)) > 1 else None for name in encoders]
            floors = [0.0 if rule is None else rule.min_cosine for rule in rules]
            near = {
                hit.passage.id: ((hit.cosine or 0.0) - floor) / (1 - floor)
                for ranking, floor in zip(rankings, floors, strict=True)
                for hit in ranking
            }
            words = {hit.passage.id: hit.score for hit in by_words if hit.passage.id in hits}
            weights = [DENSE_WEIGHT.get(name, DEFAULT_DENSE_WEIGHT) for name in encoders]
            shares = {item: heading_share(query, hit.passage.headings) for item, hit in hits.items()}
            scores = (
                near
                if mode == "dense"
                else add_headings(weighted_sum(near, words, sum(weights) / len(weights)), shares)
            )
        best = sorted(scores, key=lambda item: (-scores[item], -(hits[item].cosine or 0.0), item))[:k]
        return [replace(hits[item], rank=rank, score=scores[item]) for rank, item in enumerate(best, start=1)]

    def document_words(self) -> list[str]:
        """Title, file name, report and date of every document, in one line each."""
        return [" ".join(filter(None, (one.title, one.source, one.report, one.date))) for one in self.documents()]

    def documents(self) -> list[StoredDocument]:
        """The documents of all collections."""
        return [one for collection in self.collections for one in collection.documents()]

    def document_passages(self, document: str) -> list[Passage]:
        """All passages of a document of one of the collections, in its order.

        Raises:
            InputError: No collection, or several, have a document of that id, title or source.
        """
        holders = [
            collection
            for collection in self.collections
            if any(document in (one.id, one.title, one.source) for one in collection.documents())
        ]
        if len(holders) != 1:
            names = ", ".join(collection.name for collection in self.collections)
            count = "none has" if not holders else f"{len(holders)} have"
            raise InputError(f"In the collections {names}, {count} a document {document!r}.")
        return holders[0].document_passages(document)


def _fuse(rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    """Best hits of several rankings by reciprocal rank; equals by similarity, then by id."""
    scores: dict[str, float] = {}
    found: dict[str, Hit] = {}
    for hit in (hit for hits in rankings for hit in hits):
        score = 1 / (RRF_CONSTANT + hit.rank)
        if score > scores.get(hit.passage.id, 0.0):  # several collections may hold a passage
            scores[hit.passage.id], found[hit.passage.id] = score, hit
    best = sorted(scores, key=lambda item: (-scores[item], -(found[item].cosine or 0.0), item))[:k]
    return [replace(found[item], rank=rank, score=scores[item]) for rank, item in enumerate(best, start=1)]


def open_collections(workspace: Workspace, names: Sequence[str], *, encoder: Encoder | None = None) -> CollectionGroup:
    """Open collections by name.

    Encoders are loaded once, however many collections share them, and encode a text once.

    Args:
        workspace: Where they are.
        names: One or more; each once.
        encoder: The encoder of all of them, where it is loaded already.

    Raises:
        InputError: No name, a name twice, or no such collection.
    """
    if not names:
        raise InputError("Name at least one collection (--collection NAME).")
    if len(set(names)) < len(names):
        raise InputError(f"Name every collection only once, got {', '.join(names)}.")
    encoders = {encoder.name: CachedEncoder.of(encoder)} if encoder else {}
    opened = []
    for name in names:
        collection = Collection.open(workspace, name)
        made_with = collection.settings.encoder
        if made_with not in encoders:
            encoders[made_with] = CachedEncoder(collection.encoder)
        opened.append(Collection.open(workspace, name, encoders[made_with]))
    return CollectionGroup(tuple(opened))


NOT_ENOUGH = "not enough information"
_BEGUN = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][^.!?\u2026\u3002\uff01\uff1f]*?[^\W\d_]\s")
"""The end of a sentence and a first word behind it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that was put before the model."""

    number: int
    """From 1; what citations name."""
    passage: Passage
    cosine: float | None
    """Similarity to the question."""

    @property
    def citation(self) -> str:
        """Where the passage stands, in words."""
        return self.passage.citation


@dataclass(frozen=True, slots=True)
class GroundedAnswer(Result):
    """What was answered, from what, and how sure the ground is."""

    rests_on_calls = False

    question: str
    enough_information: bool
    sentences: tuple[AnswerSentence, ...]
    sources: tuple[Source, ...]
    model: str
    fingerprint: str
    removed_citations: int = 0
    """Citations of passages that do not exist, taken out of the text."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    """Why the model gave no answer; None when it did."""
    dtype: str = ""
    """Number format that a local model computed in; empty where it is not known."""
    cut: bool = False
    """Whether the model reached its limit of tokens before it was done."""

    @property
    def text(self) -> str:
        """The answer with its citations and marks, as one paragraph."""
        if self.error is not None:
            return f"No answer: {self.error}"
        if not self.enough_information:
            return "Not enough information."
        return " ".join(written(sentence) for sentence in self.sentences)

    def failure(self) -> NoAnswerError | None:
        """The model gave no answer."""
        return None if self.error is None else NoAnswerError(f"The model gave no answer: {self.error}")

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON can write it, with its whole text and the citation of every source."""
        data = asdict(self)
        data["text"] = self.text
        for source, entry in zip(self.sources, data["sources"], strict=True):
            entry["citation"] = source.citation
        return data

    def rows(self) -> list[dict[str, Any]]:
        """A row per sentence, with the citations that it rests on."""
        cited = {source.number: source.citation for source in self.sources}
        return [
            {"sentence": one.text, "citations": [cited[number] for number in one.citations], "in-house": one.in_house}
            for one in self.sentences
        ]

    def tables(self) -> tuple[Table, ...]:
        """The sources."""
        rows = [
            (str(one.number), one.citation, "" if one.cosine is None else f"{one.cosine:.2f}") for one in self.sources
        ]
        return (Table.of("Sources", ("number", "passage", "similarity"), rows, left=2),)

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """None: the lines name the sources."""
        return ()

    def lines(self) -> "Iterator[Text]":
        """The answer, its sources, and what was taken out of it; nothing where the model gave none."""
        from rich.text import Text

        if self.error is not None:
            return
        yield Text(self.text)
        if not self.enough_information:
            reason = "the passages found do not answer it" if self.sources else "no passage is relevant"
            yield Text(f"({reason}; nothing was made up)", style="dim")
        if self.sources:
            yield Text()
        for source in self.sources:
            similarity = "" if source.cosine is None else f"  ({source.cosine:.2f})"
            yield Text(f"[{source.number}] {source.citation}{similarity}", style="dim")
        unchecked = unchecked_note(one for sentence in self.sentences for one in sentence.unchecked_references)
        for note in filter(None, (cut_note(self.cut), removed_note(self.removed_citations), unchecked)):
            yield Text(note, style="dim")

    def report(self) -> Report:
        """A page with the answer and the passages that it rests on."""
        return answer_report(self)


def answer_question(
    question: str,
    collections: "CollectionGroup",
    model: Generator,
    *,
    k: int = 4,
    min_cosine: float | None = None,
    sentences: int = 3,
    prompt: Prompt | None = None,
    sampling: Sampling | None = None,
    profile: ProfileSettings | None = None,
    on_progress: Callable[[GroundedAnswer], None] | None = None,
) -> GroundedAnswer:
    """Answer a question from the passages of one or several collections.

    Args:
        question: In plain language.
        collections: Where to look.
        model: Who writes.
        k: Number of passages shown to the model.
        min_cosine: Similarity to the question below which a passage is not relevant; by default decided by what was
            measured for the collection's encoder (:mod:`climassay.corpus.relevance`).
        sentences: At most so many are asked for.
        prompt: Template with ``question``, ``sources`` (``number``, ``citation``, ``text``), ``sentences`` and
            ``brief`` (whether the model is a small one).
        sampling: How the model writes; greedy with room for the sentences by default.
        profile: How the model is asked; by default its size decides.
        on_progress: Called with the answer as far as there is one: with its sources before the model is asked, and,
            where the model streams, with the sentences that are complete. Each replaces the one before; a try that
            fails takes its sentences back. They carry the citations that exist, and no mark yet: what no source bears
            is found out at the end.

    Raises:
        InputError: The question is empty.
    """
    if not question.strip():
        raise InputError("The question is empty.")
    hits = collections.search(question, k=k, min_cosine="measured" if min_cosine is None else min_cosine)
    sources = tuple(Source(number, hit.passage, hit.cosine) for number, hit in enumerate(hits, start=1))
    told = GroundedAnswer(
        question, bool(sources), (), sources, model.name, model.fingerprint, dtype=number_format(model)
    )
    if not sources:
        return told
    manner = profile_of(model, profile)
    rendered = (prompt or load_prompt("ask")).render(
        question=question,
        sentences=sentences,
        brief=manner.brief,
        sources=[{"number": s.number, "citation": s.citation, "text": s.passage.text} for s in sources],
    )
    request = GenerationRequest(
        rendered.messages,
        sampling or Sampling(max_tokens=manner.sentence_tokens * sentences),
        assistant_prefix=rendered.assistant_prefix,
    )
    begun, preview = 0, told

    def show(_index: int, text: str) -> None:
        nonlocal begun, preview
        # Looked at when a sentence has begun, not at every token.
        before, begun = begun, len(_BEGUN.findall(text))
        if begun != before and on_progress is not None:
            complete = () if _is_refusal(text) else sentences_so_far(text, sources)
            if complete != preview.sentences:
                preview = replace(told, sentences=complete)
                on_progress(preview)

    if on_progress is not None:
        on_progress(told)
    if on_progress is not None and isinstance(model, StreamingGenerator):
        completion = model.generate_stream([request], on_text=show)[0]
    else:
        completion = model.generate([request])[0]
    told = replace(told, usage=completion.usage, error=completion.error)
    if completion.error is not None:
        return told
    refused, cut = _is_refusal(completion.text), completion.finish_reason == "length"
    results: tuple[AnswerSentence, ...] = ()
    removed = 0
    if not refused:
        results, removed = ground_text(
            completion.text,
            cut=cut,
            sources=sources,
            encoder=collections.encoder,
            given=question,
            documents=lambda: collections.document_words(),
        )
    return replace(
        told,
        enough_information=not refused,
        sentences=results,
        removed_citations=removed,
        cut=cut and not refused,
        error=None if results or refused else "it wrote no sentence that can be used (empty, or caught in a loop).",
    )


def _is_refusal(text: str) -> bool:
    return bool(re.match(rf"[\W_]*{NOT_ENOUGH}\b", text, re.IGNORECASE))


def cut_note(cut: bool) -> str:
    """What is said of an answer that was cut off; empty where it was not."""
    advice = "ask for more sentences, which gives it more room, or ask a narrower question"
    return f"The answer was cut off at the model's token limit, so that its end is missing: {advice}." if cut else ""


def removed_note(citations: int) -> str:
    """What is said of citations that were removed because their passages do not exist; empty where none was."""
    if citations == 1:
        return "1 citation of a passage that does not exist was removed."
    return f"{citations} citations of passages that do not exist were removed." if citations else ""


def unchecked_note(references: Iterable[str]) -> str:
    """What is said of references to works that no document at hand is; empty where there is none."""
    named = ", ".join(dict.fromkeys(references))
    return f"Not checked, because no document here is the work: {named}." if named else ""


def answer_card(answer: GroundedAnswer) -> AnswerCard:
    """The answer with its sources, ready for a report."""
    sentences = (
        tuple((sentence.text, sentence.citations, sentence.in_house) for sentence in answer.sentences)
        if answer.sentences
        else ((answer.text, (), False),)
    )
    notes = []
    if not answer.sources:
        notes.append("No passage is relevant, so the model was not asked.")
    attributed = sum(sentence.origin == "attributed" for sentence in answer.sentences)
    if attributed:
        notes.append(f"{attributed} of {len(answer.sentences)} citations were found by comparing sentence and passage.")
    foreign = [number for sentence in answer.sentences for number in sentence.foreign_numbers]
    if foreign:
        notes.append(f"Numbers that the cited passages do not have: {', '.join(foreign)}.")
    notes += [cut_note(answer.cut), removed_note(answer.removed_citations)]
    notes.append(unchecked_note(one for sentence in answer.sentences for one in sentence.unchecked_references))
    sources = tuple((source.number, source.citation, source.passage.text) for source in answer.sources)
    return AnswerCard(answer.question, sentences, sources, " ".join(filter(None, notes)))


def answer_report(answer: GroundedAnswer) -> Report:
    """A page with one answer."""
    return Report(
        title="A cited answer",
        lead=f"Written by {answer.model} from the passages below; unfold a source to read it.",
        sections=(Section("Answer", (answer_card(answer),)),),
        facts=(("Model fingerprint", answer.fingerprint), ("Number format", answer.dtype or "-")),
    )
