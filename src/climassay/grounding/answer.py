"""Answers to questions from the passages of one or several collections.

1. Passages are retrieved; several collections are searched as one (:class:`CollectionGroup`). If no passage is
   relevant, the answer is "not enough information" and no model is called.
2. The model writes a few sentences with the numbers of the supporting passages.
3. The citations are verified (:mod:`climassay.grounding.citations`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from climassay.corpus.collection import Collection
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.relevance import RELEVANCE, Threshold, compute_heading_share
from climassay.corpus.search import (
    CANDIDATES,
    DEFAULT_DENSE_WEIGHT,
    DENSE_WEIGHT,
    RRF_CONSTANT,
    SearchMode,
    add_heading_shares,
    add_weighted_scores,
)
from climassay.errors import InputError, NoAnswerError
from climassay.grounding.citations import AnswerSentence, extract_complete_sentences, format_sentence, ground_text
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
from climassay.prompts import DEMONSTRATION, ProfileSettings, Prompt, load_prompt, profile_of
from climassay.reporting import AnswerCard, Report, Section, Table
from climassay.reporting.results import Result
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class CollectionGroup:
    """Group of collections that are searched together; their encoders may differ."""

    collections: tuple[Collection, ...]

    @property
    def encoder(self) -> Encoder:
        """Encoder of the first collection, used for all comparisons of texts outside searches."""
        return self.collections[0].encoder

    def search(
        self, query: str, *, k: int, min_cosine: Threshold = "measured", mode: SearchMode = "hybrid"
    ) -> list[Hit]:
        """Return the passages that are relevant to a query, best first; empty if there are none.

        Args:
            query: A question, a statement or a few words.
            k: Maximum number of passages over all collections.
            min_cosine: Minimum cosine of a passage; by default the threshold measured for each collection's encoder
                (:mod:`climassay.corpus.relevance`).
            mode: Search mode; see :meth:`climassay.corpus.Collection.search_many`.
        """
        return self.search_many([query], k=k, min_cosine=min_cosine, mode=mode)[0]

    def search_many(
        self, queries: Sequence[str], *, k: int, min_cosine: Threshold = None, mode: SearchMode = "hybrid"
    ) -> list[list[Hit]]:
        """Return the best passages for each query, best first.

        Passages of several collections are ranked together. The mode ``hybrid`` normalises cosines and BM25 scores by
        their maxima over all collections. If the encoders differ, each cosine is first rescaled so that its encoder's
        relevance threshold (:data:`~climassay.corpus.relevance.RELEVANCE`) becomes 0. The mode ``rrf`` fuses the ranks.

        Args:
            queries: Queries.
            k: Maximum number of passages per query over all collections.
            min_cosine: Minimum cosine of a passage; ``"measured"`` applies the threshold measured for the encoder, and
                None keeps all passages.
            mode: Search mode; see :meth:`climassay.corpus.Collection.search_many`.
        """
        is_single = len(self.collections) == 1
        depth = k if is_single else max(CANDIDATES, k)
        hits_by_collection = [
            collection.search_many(queries, k=depth, min_cosine=min_cosine, mode=mode)
            for collection in self.collections
        ]
        if is_single:
            return hits_by_collection[0]
        if mode == "rrf":
            return [_fuse_rankings(rankings, k) for rankings in zip(*hits_by_collection, strict=True)]
        bm25_hits = [
            collection.search_many(queries, k=depth, mode="bm25") for collection in self.collections if mode == "hybrid"
        ]
        return [
            self._rank_together(
                query,
                [hits[index] for hits in hits_by_collection],
                [hit for hits in bm25_hits for hit in hits[index]],
                k,
                mode,
            )
            for index, query in enumerate(queries)
        ]

    def _rank_together(
        self, query: str, rankings: Sequence[Sequence[Hit]], bm25_hits: Sequence[Hit], k: int, mode: SearchMode
    ) -> list[Hit]:
        """Return the best hits of all collections for a query, ranked together and without duplicate passages."""
        hits = {hit.passage.id: hit for ranking in rankings for hit in ranking}
        if mode == "bm25":
            scores = {passage_id: hit.score for passage_id, hit in hits.items()}
        else:
            encoders = [collection.settings.encoder for collection in self.collections]
            thresholds = [RELEVANCE.get(name) if len(set(encoders)) > 1 else None for name in encoders]
            min_cosines = [0.0 if threshold is None else threshold.min_cosine for threshold in thresholds]
            dense_scores = {
                hit.passage.id: ((hit.cosine or 0.0) - min_cosine) / (1 - min_cosine)
                for ranking, min_cosine in zip(rankings, min_cosines, strict=True)
                for hit in ranking
            }
            bm25_scores = {hit.passage.id: hit.score for hit in bm25_hits if hit.passage.id in hits}
            weights = [DENSE_WEIGHT.get(name, DEFAULT_DENSE_WEIGHT) for name in encoders]
            shares = {
                passage_id: compute_heading_share(query, hit.passage.headings) for passage_id, hit in hits.items()
            }
            scores = (
                dense_scores
                if mode == "dense"
                else add_heading_shares(
                    add_weighted_scores(dense_scores, bm25_scores, sum(weights) / len(weights)), shares
                )
            )
        return _rank_hits(hits, scores, k)

    def describe_documents(self) -> list[str]:
        """Return one line per document, with its title, file name, report and date."""
        return [
            " ".join(filter(None, (document.title, document.source, document.report, document.date)))
            for document in self.documents()
        ]

    def documents(self) -> list[StoredDocument]:
        """Return the documents of all collections."""
        return [document for collection in self.collections for document in collection.documents()]

    def document_passages(self, document: str) -> list[Passage]:
        """Return all passages of a document in reading order.

        Raises:
            InputError: No collection, or more than one, has a document with this id, title or source.
        """
        matching_collections = [
            collection
            for collection in self.collections
            if any(
                document in (stored_document.id, stored_document.title, stored_document.source)
                for stored_document in collection.documents()
            )
        ]
        if len(matching_collections) != 1:
            names = ", ".join(collection.name for collection in self.collections)
            count = "none has" if not matching_collections else f"{len(matching_collections)} have"
            raise InputError(f"In the collections {names}, {count} a document {document!r}.")
        return matching_collections[0].document_passages(document)


def _fuse_rankings(rankings: Sequence[Sequence[Hit]], k: int) -> list[Hit]:
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    for hit in (hit for ranking in rankings for hit in ranking):
        score = 1 / (RRF_CONSTANT + hit.rank)
        if score > scores.get(hit.passage.id, 0.0):  # several collections may hold a passage
            scores[hit.passage.id], hits[hit.passage.id] = score, hit
    return _rank_hits(hits, scores, k)


def _rank_hits(hits: Mapping[str, Hit], scores: Mapping[str, float], k: int) -> list[Hit]:
    """Return the ``k`` hits with the highest scores; ties are ordered by cosine similarity, then by passage id."""
    best_ids = sorted(
        scores, key=lambda passage_id: (-scores[passage_id], -(hits[passage_id].cosine or 0.0), passage_id)
    )[:k]
    return [
        replace(hits[passage_id], rank=rank, score=scores[passage_id])
        for rank, passage_id in enumerate(best_ids, start=1)
    ]


def open_collections(workspace: Workspace, names: Sequence[str], *, encoder: Encoder | None = None) -> CollectionGroup:
    """Open collections by name; an encoder that several collections share is loaded once and caches its vectors.

    Args:
        workspace: Workspace of the collections.
        names: Distinct names, at least one.
        encoder: Encoder of the collections, if it is already loaded.

    Raises:
        InputError: There is no name, a name occurs twice, or a collection does not exist.
    """
    if not names:
        raise InputError("Name at least one collection (--collection NAME).")
    if len(set(names)) < len(names):
        raise InputError(f"Name every collection only once, got {', '.join(names)}.")
    encoders = {encoder.name: CachedEncoder.wrap(encoder)} if encoder else {}
    collections = []
    for name in names:
        collection = Collection.open(workspace, name)
        encoder_name = collection.settings.encoder
        if encoder_name not in encoders:
            encoders[encoder_name] = CachedEncoder(collection.encoder)
        collections.append(Collection.open(workspace, name, encoders[encoder_name]))
    return CollectionGroup(tuple(collections))


NOT_ENOUGH = "not enough information"
_SENTENCE_START = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][^.!?\u2026\u3002\uff01\uff1f]*?[^\W\d_]\s")
"""Pattern of the end of a sentence followed by the first word of the next one."""


@dataclass(frozen=True, slots=True)
class Source:
    """Numbered passage in the model's prompt."""

    number: int
    """Number used in citations, starting at 1."""
    passage: Passage
    cosine: float | None
    """Cosine similarity to the question."""

    @property
    def citation(self) -> str:
        """Location of the passage, as shown to readers."""
        return self.passage.citation


@dataclass(frozen=True, slots=True)
class GroundedAnswer(Result):
    """Answer to a question, with its citations and sources."""

    rests_on_calls = False

    question: str
    enough_information: bool
    sentences: tuple[AnswerSentence, ...]
    sources: tuple[Source, ...]
    model: str
    fingerprint: str
    removed_citations: int = 0
    """Number of citations that were removed because no source has their number."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    """Reason why the model gave no answer; None if it gave one."""
    dtype: str = ""
    """Floating-point format of a local model's weights; empty if unknown."""
    truncated: bool = False
    """Whether the model reached the token limit before the end of the answer."""
    demonstration: bool = False
    """Whether the answer was written by a very small model that serves only for demonstrations."""

    @property
    def text(self) -> str:
        """Answer as one paragraph, with citations and with marks on sentences from in-house knowledge."""
        if self.error is not None:
            return f"No answer: {self.error}"
        if not self.enough_information:
            return "Not enough information."
        return " ".join(format_sentence(sentence) for sentence in self.sentences)

    def failure(self) -> NoAnswerError | None:
        """Return an error if the model gave no answer; otherwise None."""
        return None if self.error is None else NoAnswerError(f"The model gave no answer: {self.error}")

    def to_dict(self) -> dict[str, Any]:
        """Return the answer, its text and the citation of every source as JSON-serialisable values."""
        data = asdict(self)
        data["text"] = self.text
        for source, entry in zip(self.sources, data["sources"], strict=True):
            entry["citation"] = source.citation
        return data

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per sentence, with its citations."""
        citations_by_number = {source.number: source.citation for source in self.sources}
        return [
            {
                "sentence": sentence.text,
                "citations": [citations_by_number[number] for number in sentence.citations],
                "in-house": sentence.in_house,
            }
            for sentence in self.sentences
        ]

    def tables(self) -> tuple[Table, ...]:
        """Return the table of sources."""
        rows = [
            (str(source.number), source.citation, "" if source.cosine is None else f"{source.cosine:.2f}")
            for source in self.sources
        ]
        return (Table.of("Sources", ("number", "passage", "similarity"), rows, left_columns=2),)

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """Return no tables, because :meth:`lines` lists the sources."""
        return ()

    def lines(self) -> "Iterator[Text]":
        """Yield the lines of the answer, its sources and notes; nothing if the model gave no answer."""
        from rich.text import Text

        if self.error is not None:
            return
        yield Text(self.text)
        if not self.enough_information:
            reason = "the model found no answer in the passages" if self.sources else "no passage is relevant"
            yield Text(f"({reason})", style="dim")
        if self.sources:
            yield Text()
        for source in self.sources:
            similarity = "" if source.cosine is None else f"  ({source.cosine:.2f})"
            yield Text(f"[{source.number}] {source.citation}{similarity}", style="dim")
        for note in list_notes(self):
            yield Text(note, style="bold" if note == DEMONSTRATION else "dim")

    def report(self) -> Report:
        """Return a report with the answer and its sources."""
        return build_report(self)


def answer_question(
    question: str,
    collections: "CollectionGroup",
    model: Generator,
    *,
    k: int = 4,
    min_cosine: float | None = None,
    sentences: int = 3,
    prompt: Prompt | None = None,
    profile: ProfileSettings | None = None,
    on_progress: Callable[[GroundedAnswer], None] | None = None,
) -> GroundedAnswer:
    """Answer a question from the passages of one or several collections.

    Args:
        question: Question in plain language.
        collections: Collections to search.
        model: Model that writes the answer.
        k: Maximum number of passages in the prompt.
        min_cosine: Minimum cosine of a relevant passage; by default the threshold measured for the collection's encoder
            (:mod:`climassay.corpus.relevance`).
        sentences: Maximum number of sentences requested.
        prompt: Template with ``question``, ``sources`` (``number``, ``citation``, ``text``), ``sentences`` and
            ``brief`` (whether the model is small).
        profile: Settings of the prompt; by default chosen by the size of the model.
        on_progress: Callback that receives the unfinished answer: first with its sources, before the model is called;
            then, if the model streams, with its complete sentences. Each answer replaces the previous one; after a
            failed attempt, the sentences are empty again. The sentences have valid citations, but are not yet compared
            with the sources.

    Raises:
        InputError: The question is empty.
    """
    if not question.strip():
        raise InputError("The question is empty.")
    hits = collections.search(question, k=k, min_cosine="measured" if min_cosine is None else min_cosine)
    sources = tuple(Source(number, hit.passage, hit.cosine) for number, hit in enumerate(hits, start=1))
    answer = GroundedAnswer(
        question, bool(sources), (), sources, model.name, model.fingerprint, dtype=number_format(model)
    )
    if not sources:
        return answer
    prompt_profile = profile_of(model, profile)
    rendered_prompt = (prompt or load_prompt("ask")).render(
        question=question,
        sentences=sentences,
        brief=prompt_profile.name == "small",
        sources=[
            {"number": source.number, "citation": source.citation, "text": source.passage.text} for source in sources
        ],
    )
    request = GenerationRequest(
        rendered_prompt.messages,
        Sampling(max_tokens=prompt_profile.sentence_tokens * sentences),
        assistant_prefix=rendered_prompt.assistant_prefix,
    )
    n_started, preview = 0, answer

    def update_preview(_index: int, text: str) -> None:
        nonlocal n_started, preview
        # Checked when a sentence starts, not at every token.
        n_previous, n_started = n_started, len(_SENTENCE_START.findall(text))
        if n_started != n_previous and on_progress is not None:
            complete_sentences = () if _is_refusal(text) else extract_complete_sentences(text, sources)
            if complete_sentences != preview.sentences:
                preview = replace(answer, sentences=complete_sentences)
                on_progress(preview)

    if on_progress is not None:
        on_progress(answer)
    if on_progress is not None and isinstance(model, StreamingGenerator):
        completion = model.generate_stream([request], on_text=update_preview)[0]
    else:
        completion = model.generate([request])[0]
    answer = replace(
        answer, usage=completion.usage, error=completion.error, demonstration=profile_of(model).name == "small"
    )
    if completion.error is not None:
        return answer
    is_refused, truncated = _is_refusal(completion.text), completion.finish_reason == "length"
    answer_sentences: tuple[AnswerSentence, ...] = ()
    n_removed = 0
    if not is_refused:
        answer_sentences, n_removed = ground_text(
            completion.text,
            truncated=truncated,
            sources=sources,
            encoder=collections.encoder,
            context=question,
            documents=lambda: collections.describe_documents(),
        )
    return replace(
        answer,
        enough_information=not is_refused,
        sentences=answer_sentences,
        removed_citations=n_removed,
        truncated=truncated and not is_refused,
        error=None
        if answer_sentences or is_refused
        else "it wrote no sentence that can be used (empty, or caught in a loop).",
    )


def _is_refusal(text: str) -> bool:
    return bool(re.match(rf"[\W_]*{NOT_ENOUGH}\b", text, re.IGNORECASE))


def note_truncation(truncated: bool) -> str:
    """Return a note that the answer was truncated; empty if it is complete."""
    advice = "ask a narrower question, or allow more sentences (on the command line: --sentences)"
    return f"The answer was cut off at the model's token limit: {advice}." if truncated else ""


def note_removed_citations(n_removed: int) -> str:
    """Return a note on the number of removed citations; empty if it is 0."""
    if n_removed == 1:
        return "1 citation of a passage that does not exist was removed."
    return f"{n_removed} citations of passages that do not exist were removed." if n_removed else ""


def note_unchecked_references(references: Iterable[str]) -> str:
    """Return a note on references to works that are not in the collections; empty if there are none."""
    reference_list = ", ".join(dict.fromkeys(references))
    return f"Not checked, because no document here is the work: {reference_list}." if reference_list else ""


def list_notes(answer: GroundedAnswer) -> list[str]:
    """Return notes that a reader should know before relying on an answer."""
    notes = [DEMONSTRATION] if answer.demonstration else []
    n_attributed = sum(sentence.origin == "attributed" for sentence in answer.sentences)
    if n_attributed:
        notes.append(
            f"Sentences whose passages were found by comparison, not named by the model: {n_attributed} of "
            f"{len(answer.sentences)}."
        )
    notes += [note_truncation(answer.truncated), note_removed_citations(answer.removed_citations)]
    notes.append(
        note_unchecked_references(
            reference for sentence in answer.sentences for reference in sentence.unchecked_references
        )
    )
    return [note for note in notes if note]


def build_card(answer: GroundedAnswer) -> AnswerCard:
    """Return a report block with an answer and its sources."""
    sentences = (
        tuple((sentence.text, sentence.citations, sentence.in_house) for sentence in answer.sentences)
        if answer.sentences
        else ((answer.text, (), False),)
    )
    notes = list_notes(answer) if answer.sources else ["No passage is relevant, so the model was not asked."]
    foreign_numbers = [number for sentence in answer.sentences for number in sentence.foreign_numbers]
    if foreign_numbers:
        notes.append(f"Numbers that the cited passages do not have: {', '.join(foreign_numbers)}.")
    sources = tuple((source.number, source.citation, source.passage.text) for source in answer.sources)
    return AnswerCard(answer.question, sentences, sources, " ".join(notes))


def build_report(answer: GroundedAnswer) -> Report:
    """Return a report with a single answer."""
    return Report(
        title="A cited answer",
        lead=f"Written by {answer.model} from the passages below; unfold a source to read it.",
        sections=(Section("Answer", (build_card(answer),)),),
        facts=(("Model fingerprint", answer.fingerprint), ("Number format", answer.dtype or "-")),
    )
