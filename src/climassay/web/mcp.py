"""Tools for assistants over the Model Context Protocol: search, cited answers, checks, and levels of confidence.

No tool changes documents, collections, labels or published checks. Requests to models and their answers are recorded,
as for every command.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Annotated, Self, TypeVar

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from climassay import __version__
from climassay.api import claims, documents
from climassay.confidence.tagging.opened import open_tagger, rank_levels
from climassay.corpus.collection import survey_collections
from climassay.corpus.documents import Passage
from climassay.errors import ClimassayError, InputError
from climassay.factcheck.results.page import list_notices
from climassay.factcheck.transcript import cited_numbers
from climassay.grounding.citations import AnswerSentence
from climassay.grounding.text_check_result import list_problems
from climassay.learning import reweight
from climassay.models.contract import Generator
from climassay.models.provider import is_served
from climassay.session import Session

T = TypeVar("T")
PROGRESS_SECONDS = 10.0
"""Time between progress notifications in seconds; many clients give up on a tool that is silent for 60 seconds."""
INSTRUCTIONS = """\
Evidence on climate from the user's own collections of documents. Quote and cite what the tools return: every source has
a citation to show to the user. If a tool finds nothing relevant, say so instead of answering from memory. A verdict or
an answer comes from a language model that read the passages: pass its warnings on.
"""


class Citation(BaseModel):
    """Passage of a document that can be cited."""

    number: int | None = Field(None, description="Number by which sentences cite the passage.")
    citation: str = Field(description="Document, section and pages, to be shown to the user.")
    text: str
    passage: str = Field(description="Id of the passage.")
    document: str = Field(description="Title of the document.")
    first_page: int | None = None
    last_page: int | None = None
    url: str | None = None
    licence: str | None = None

    @classmethod
    def of(cls, passage: Passage, number: int | None = None) -> Self:
        """Return the citation of a passage."""
        passage_fields = {
            name: getattr(passage, name) for name in cls.model_fields if name not in ("number", "passage")
        }
        return cls(number=number, passage=passage.id, **passage_fields)


class CollectionSize(BaseModel):
    """Collection and its size."""

    name: str
    documents: int
    passages: int


class Library(BaseModel):
    """Collections of documents that can be used."""

    collections: list[CollectionSize]
    damaged: list[str] = Field(description="Why other collections cannot be read, a sentence each.")


class Sentence(BaseModel):
    """Sentence with the numbers of the sources that it cites."""

    text: str
    citations: list[int]
    in_house: bool = Field(description="Whether it is the model's own knowledge, which no passage supports.")


class SearchHits(BaseModel):
    """Passages found by a search, best first; empty if no passage is relevant."""

    passages: list[Citation]


class Answer(BaseModel):
    """Answer to a question, with its sources."""

    enough_information: bool = Field(description="Whether the collections hold the answer.")
    text: str
    sentences: list[Sentence]
    sources: list[Citation]
    model: str


class Opinion(BaseModel):
    """Verdict of one advocate, who argues from one collection."""

    advocate: str
    verdict: str | None


class Verdict(BaseModel):
    """Result of a debate about a claim."""

    outcome: str = Field(description="'verdict', or why there is none.")
    verdict: str | None
    explanation: list[Sentence]
    evidence: str | None
    agreement: str | None
    confidence: str | None
    opinions: list[Opinion] = Field(description="Opinions of the last round.")
    warnings: list[str]
    sources: list[Citation] = Field(description="Passages that the explanation cites or quotes.")


class SentenceEvidence(BaseModel):
    """Words of a passage, shown beside a sentence of a text."""

    relation: str = Field(description="contradicts, supports or nearest.")
    quotation: str
    citation: str


class CheckedSentence(BaseModel):
    """Sentence of a text, with a citation of and a quotation from the most similar passage."""

    text: str
    status: str = Field(description="supported, contradicted, similar, unsupported or no claim.")
    marked: bool = Field(description="Whether a person should check it.")
    problems: list[str]
    evidence: list[SentenceEvidence] = Field(description="The quotation that decides first, then the nearest one.")


class CheckedText(BaseModel):
    """Text that was checked sentence by sentence."""

    sentences: list[CheckedSentence]
    notes: list[str] = Field(description="What the marks mean.")


class Level(BaseModel):
    """Probability of one level of confidence."""

    level: str
    as_in_reports: float = Field(description="If levels are as frequent as in IPCC reports.")
    equally_frequent: float = Field(description="If all levels are equally frequent.")


class Levels(BaseModel):
    """Probabilities of the levels of confidence with which an IPCC report would make a statement.

    They are a hint from the statement's wording, not an assessment of the evidence.
    """

    levels: list[Level]
    accuracy: str = Field(description="Share of right answers on statements that were not trained on.")


Collections = Annotated[list[str], Field(default=[], description="Names of collections; all of them if empty.")]


def create_server(session: Session, model: Generator | str, collections: Sequence[str] = ()) -> MCPServer:
    """Create an MCP server whose tools use an open session.

    Args:
        session: Session of the workspace.
        model: Model that answers questions, debates claims and judges sentences.
        collections: Collections that assistants may use; all collections of the workspace if empty.

    Raises:
        InputError: A collection does not exist.
    """
    server = MCPServer("climassay", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    # A model on this machine answers one request at a time; its server decides how many a served model answers.
    model_lock = nullcontext() if isinstance(model, str) and is_served(model) else threading.Lock()
    allowed_names = tuple(collections)
    if allowed_names:
        session.collections(allowed_names)
    _ = session.records  # opened before tools ask for it in several threads
    open_bundled_tagger = cache(lambda: open_tagger(encoder=session.encoder))

    def choose_collections(names: Sequence[str]) -> tuple[str, ...]:
        """Return the named collections, or all collections if none is named.

        Raises:
            InputError: A named collection does not exist or may not be used, or there is no collection.
        """
        available_names = allowed_names or tuple(summary.name for summary in survey_collections(session.workspace)[0])
        if unknown_names := [name for name in names if name not in available_names]:
            raise InputError(
                f"There is no collection {unknown_names[0]!r}: there are {', '.join(available_names) or 'none'}."
            )
        if not available_names:
            raise InputError("There is no collection yet: the user makes one with `climassay corpus add NAME FILES`.")
        return tuple(names) or available_names

    def tool(title: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
        return server.tool(title=title, annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False))

    @tool("List collections")
    def list_collections() -> Library:
        """List the user's collections of documents, which the other tools search."""
        summaries, collection_errors = survey_collections(session.workspace)
        sizes = [
            CollectionSize(name=summary.name, documents=summary.documents, passages=summary.passages)
            for summary in summaries
            if not allowed_names or summary.name in allowed_names
        ]
        return Library(collections=sizes, damaged=[str(error) for error in collection_errors])

    @tool("Search documents")
    async def search(
        context: Context,
        query: Annotated[str, Field(min_length=1, max_length=2000, description="Question or statement.")],
        collections: Collections,
        limit: Annotated[int, Field(ge=1, le=20, description="Maximum number of passages.")] = 6,
    ) -> SearchHits:
        """Find passages about a question in the user's documents, with citations, without using a language model."""

        def find_passages() -> SearchHits:
            hits = documents.search(choose_collections(collections), query, k=limit, workspace=session)
            return SearchHits(passages=[Citation.of(hit.passage, hit.rank) for hit in hits])

        return await _run_in_thread(context, find_passages)

    @tool("Answer from documents")
    async def ask(
        context: Context, question: Annotated[str, Field(min_length=1, max_length=1000)], collections: Collections
    ) -> Answer:
        """Have a language model answer a question from the user's documents, with a citation for each sentence."""

        def answer_question() -> Answer:
            with model_lock:
                answer = documents.ask(question, choose_collections(collections), model=model, workspace=session)
            _raise_failure(answer.error)
            cited_source_numbers = cited_numbers(answer.sentences)
            return Answer(
                enough_information=answer.enough_information,
                text=answer.text,
                sentences=_sentences(answer.sentences),
                sources=[
                    Citation.of(entry.passage, entry.number)
                    for entry in answer.sources
                    if entry.number in cited_source_numbers
                ],
                model=answer.model,
            )

        return await _run_in_thread(context, answer_question)

    @tool("Check a claim")
    async def check(
        context: Context,
        claim: Annotated[str, Field(min_length=1, max_length=2000, description="One sentence or a few.")],
        collections: Collections,
    ) -> Verdict:
        """Check a claim about climate in a debate between advocates, one for each collection. This takes minutes."""

        def check_claim() -> Verdict:
            with model_lock:
                result = claims.check_claim(claim, choose_collections(collections), model=model, workspace=session)
            verdict, levels = result.verdict, result.verdict.levels
            _raise_failure(verdict.error if verdict.outcome == "failed" else None)
            cited_source_numbers = cited_numbers(verdict.explanation, verdict.quotations)
            return Verdict(
                outcome=verdict.outcome,
                verdict=verdict.label,
                explanation=_sentences(verdict.explanation),
                evidence=None if levels is None else levels.evidence,
                agreement=None if levels is None else levels.agreement,
                confidence=None if levels is None else levels.confidence,
                opinions=[
                    Opinion(advocate=opinion.advocate, verdict=opinion.verdict)
                    for opinion in (result.rounds[-1].opinions if result.rounds else ())
                ],
                warnings=list(list_notices(result)),
                sources=[
                    Citation.of(entry.passage, entry.number)
                    for entry in result.sources
                    if entry.number in cited_source_numbers
                ],
            )

        return await _run_in_thread(context, check_claim)

    @tool("Check a text")
    async def check_text(
        context: Context,
        text: Annotated[str, Field(min_length=1, max_length=20_000, description="Text of a few paragraphs.")],
        collections: Collections,
        judge: Annotated[
            bool, Field(description="Have the language model read each sentence; slower, and needed for 'supported'.")
        ] = False,
    ) -> CheckedText:
        """Compare each sentence of a text with the user's documents, and mark wrong figures, names and references."""

        def check_sentences() -> CheckedText:
            with model_lock if judge else nullcontext():
                result = documents.check_text(
                    text, choose_collections(collections), judge=model if judge else None, workspace=session
                )
            sentences = [
                CheckedSentence(
                    text=sentence.text,
                    status=sentence.status,
                    marked=sentence.marked,
                    problems=list_problems(sentence),
                    evidence=[
                        SentenceEvidence(
                            relation=evidence.relation, quotation=evidence.quotation, citation=evidence.citation
                        )
                        for evidence in sentence.evidence
                    ],
                )
                for sentence in result.sentences
            ]
            return CheckedText(sentences=sentences, notes=list(result.notes()))

        return await _run_in_thread(context, check_sentences)

    @tool("Level of confidence")
    async def level_of_confidence(
        context: Context,
        statement: Annotated[str, Field(min_length=1, max_length=1000, description="One statement.")],
        surrounding_text: Annotated[str, Field(max_length=4000, description="The sentences around it.")] = "",
    ) -> Levels:
        """Estimate the level of confidence (very low to very high) with which an IPCC report would make a statement."""

        def estimate_level() -> Levels:
            opened_tagger = open_bundled_tagger()
            tagger, class_shares = opened_tagger.tagger, opened_tagger.tagger.shares
            probabilities = tagger.predict_proba([(statement, surrounding_text)])[0]
            equal_probabilities = dict(rank_levels(reweight(probabilities, class_shares).tolist(), tagger.levels))
            return Levels(
                levels=[
                    Level(level=level, as_in_reports=share, equally_frequent=equal_probabilities[level])
                    for level, share in rank_levels(probabilities.tolist(), tagger.levels)
                ],
                accuracy=f"As in reports: {opened_tagger.accuracy}. Equally frequent: {opened_tagger.equal_accuracy}.",
            )

        return await _run_in_thread(context, estimate_level)

    return server


def _sentences(sentences: Iterable[AnswerSentence]) -> list[Sentence]:
    return [
        Sentence(text=sentence.text, citations=list(sentence.citations), in_house=sentence.in_house)
        for sentence in sentences
    ]


def _raise_failure(error: str | None) -> None:
    """Raise ToolError if a model call failed, so that the assistant does not mistake the message for an answer."""
    if error is not None:
        raise ToolError(f"The model gave no answer: {error}")


async def _run_in_thread(context: Context, function: Callable[[], T]) -> T:
    """Run a function in a thread and send progress notifications to the client until it returns.

    Raises:
        ToolError: The function raised an error of climassay, whose message is passed on.
    """
    error: Exception | None = None

    async def notify() -> None:
        seconds = 0.0
        while True:
            await context.report_progress(seconds, message="Still working.")
            await anyio.sleep(PROGRESS_SECONDS)
            seconds += PROGRESS_SECONDS

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notify)
        try:
            result = await anyio.to_thread.run_sync(function, abandon_on_cancel=True)
        except (ClimassayError, ToolError) as known_error:
            error = known_error
        tasks.cancel_scope.cancel()
    if error is not None:
        raise ToolError(str(error))
    return result
