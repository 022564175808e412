"""The main job on the bundled models and primer: index, ask, evaluate, debate a claim, report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from climassay import primer
from climassay.evaluation import (
    McqEvaluation,
    Scoring,
    Sources,
    evaluate_mcq,
    mcq_report_sections,
    open_pool,
    parse_setting,
)
from climassay.factcheck import (
    Company,
    DebateSettings,
    Transcript,
    advocates_from_names,
    factcheck_page,
    make_claim,
    open_checker,
)
from climassay.factcheck.page_words import DEMONSTRATION
from climassay.grounding import GroundedAnswer, answer_card, answer_question, open_collections, written
from climassay.records import RecordedModel, Records
from climassay.reporting import Case, Cases, Prose, Report, Section
from climassay.reporting.html import write_page
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.corpus.collection_adding import AddProgress
    from climassay.models.contract import Encoder, Generator

QUESTION = "What is radiative forcing?"
OFF_TOPIC = "How long should I boil an egg?"
COLLECTION = "primer-source"
CONTRARIAN = "primer-contrarian"
CLAIM = "Carbon dioxide makes up only 0.04 per cent of the air, so it cannot change the climate."
PASSAGE_SIZE = 1000
PASSAGE_OVERLAP = 100
PASSAGES = 2
"""Smaller and fewer passages than the defaults: the demo is to end within minutes on two cores."""

SCORINGS: tuple[Scoring, ...] = ("likelihood", "text")
"""A model of 135M parameters cannot handle option letters; the texts show what it knows."""

Step = Callable[[str, int], Callable[[int], None]]
"""Called with a step's name and size; gives the function that is told of its progress."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo did."""

    documents: int
    passages: int
    answers: tuple[GroundedAnswer, ...]
    evaluation: McqEvaluation
    factcheck: Transcript
    report: Path


def run_demo(workspace: Workspace, output: Path, model: "Generator", encoder: "Encoder", on_step: Step) -> DemoResult:
    """Index the primer's books, ask two questions, evaluate the gold questions, debate a claim, write the report.

    Args:
        workspace: Where collection and records are kept; what is there already is used.
        output: HTML file to write; the page of the debate lies beside it.
        model: An option scorer.
        encoder: For the collection.
        on_step: Shows progress.
    """
    documents, passages = _index(workspace, COLLECTION, primer.SOURCE_BOOKS, encoder, on_step)
    _index(workspace, CONTRARIAN, primer.CONTRARIAN_BOOKS, encoder, on_step)
    group = open_collections(workspace, (COLLECTION,), encoder=encoder)
    pamphlet = open_collections(workspace, (CONTRARIAN,), encoder=encoder)
    with Records(workspace.records_url) as store:
        tell = on_step("Asking", 2)
        answers = []
        with store.run(command="demo", config={"questions": [QUESTION, OFF_TOPIC], "model": model.name}) as run:
            recorded = RecordedModel(model, store, run)
            for question in (QUESTION, OFF_TOPIC):
                answers.append(answer_question(question, group, recorded, k=3))
                tell(1)
        questions = primer.gold_questions()
        sources = Sources(lambda _: group, open_pool)
        settings = [parse_setting(name, sources, k=PASSAGES) for name in ("default", f"rag:{COLLECTION}")]
        evaluation = evaluate_mcq(
            questions,
            model,
            settings,
            store,
            scorings=SCORINGS,
            on_progress=on_step("Evaluating", len(questions.of_kind("mcq")) * len(settings) * len(SCORINGS)),
        )
        company = Company({model.name: model}, {COLLECTION: group, CONTRARIAN: pamphlet}, encoder=encoder)
        factcheck = _debate(company, store, on_step)
    page = output.with_name("factcheck.html")
    report = _report(answers, evaluation, factcheck, page.name, documents, passages).write(output)
    write_page(factcheck_page(factcheck), page)
    return DemoResult(documents, passages, tuple(answers), evaluation, factcheck, report)


def _debate(company: Company, store: Records, on_step: Step) -> Transcript:
    """The books against a pamphlet that argues its own stance; the mediator is neutral."""
    tell = on_step("Debating a claim", 1)
    settings = DebateSettings(
        advocates=advocates_from_names([COLLECTION], adversaries=[CONTRARIAN]),
        split="none",
        rounds=2,
        text_tokens=40,
    )
    with open_checker(settings, company, store, command="demo", config={"claim": CLAIM}) as checker:
        [transcript] = checker.check([make_claim(CLAIM)], force=True)
        checker.keep([transcript])
    tell(1)
    return transcript


def _index(workspace: Workspace, name: str, books: Sequence[str], encoder: "Encoder", on_step: Step) -> tuple[int, int]:
    from climassay.corpus import Collection, read, split_passages

    documents = [document for book in books for document in read(primer.book_path(book)).documents]
    collection = Collection.create(workspace, name, encoder, passage_size=PASSAGE_SIZE, passage_overlap=PASSAGE_OVERLAP)
    expected = sum(len(split_passages(document, size=PASSAGE_SIZE, overlap=PASSAGE_OVERLAP)) for document in documents)
    tell = on_step(f"Indexing {name}", expected)
    done = 0

    def on_progress(progress: "AddProgress") -> None:
        nonlocal done
        tell(progress.passages_done - done)
        done = progress.passages_done

    collection.add(documents, on_progress=on_progress)
    tell(expected - done)
    return len(collection.documents()), len(collection)


def _debate_section(factcheck: Transcript, page: str) -> Section:
    opinions = [
        (f"{opinion.advocate}, round {opinion.round}", opinion.verdict or "failed")
        for held in factcheck.rounds
        for opinion in held.opinions
    ]
    verdict = factcheck.verdict
    case = Case(
        factcheck.claim.text,
        (*opinions, ("Verdict", verdict.label or verdict.outcome)),
        " ".join(written(sentence) for sentence in verdict.explanation),
        page,
    )
    return Section(
        "A claim, debated",
        (
            Prose(
                "Two advocates, one with the books and one with a pamphlet of contrarian arguments, and a mediator who "
                f"favours neither. {DEMONSTRATION}"
            ),
            Cases("Claims", (case,)),
        ),
    )


def _report(
    answers: list[GroundedAnswer],
    evaluation: McqEvaluation,
    factcheck: Transcript,
    page: str,
    documents: int,
    passages: int,
) -> Report:
    return Report(
        title="climassay: can I trust what this model says about climate?",
        lead=f"{evaluation.model} answers from {documents} books ({passages} passages) and takes "
        f"{evaluation.n} multiple-choice questions on them, without and with retrieval.",
        sections=(
            Section(
                "Cited answers",
                (
                    Prose(
                        "Every sentence names the passages it rests on or is marked as in-house knowledge. Where no "
                        "passage is relevant the model is not asked at all."
                    ),
                    *(answer_card(answer) for answer in answers),
                ),
            ),
            *mcq_report_sections(
                evaluation.scores,
                "Multiple choice",
                "likelihood: the model sees the lettered options, and its most probable letter counts. text: it sees "
                "the question only, and the option whose words it finds most probable counts. Its distractors are "
                "common misconceptions, so a model that has only read much and understood little scores below chance.",
            ),
            _debate_section(factcheck, page),
        ),
        facts=(
            ("Run", evaluation.run),
            ("Model fingerprint", evaluation.fingerprint),
            ("Number format", evaluation.dtype),
            ("Questions (SHA-256)", evaluation.questions_sha256),
        ),
    )
