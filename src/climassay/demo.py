"""Demonstration of climassay on the bundled model and books, within a minute and a half.

Every step works with a model of 135 million parameters: rules that find words, the sources of an answer, a passage that
helps to choose an option, and a probe on hidden states. Steps state what such a model cannot do.
"""

import json
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import primer
from climassay.api.benchmarks import evaluate_choices
from climassay.api.claims import check_claim
from climassay.api.documents import add_documents, ask
from climassay.grounding import build_card, format_sentence
from climassay.io import write_file
from climassay.models import DEFAULT_MODEL
from climassay.models.contract import number_format
from climassay.progress import Progress
from climassay.prompts import ProfileSettings
from climassay.questions import CHOICE_KIND, GAP, GAP_KIND, option_letter
from climassay.reporting import Case, Cases, Prose, Report, Section, Table
from climassay.reporting.html import Block
from climassay.session import Session
from climassay.workspace import Workspace

if TYPE_CHECKING:
    from climassay.factcheck import AdvocateOpinion
    from climassay.models import Generator

QUESTION = "What is radiative forcing?"
OFF_TOPIC = "How long should I boil an egg?"
COLLECTION = "primer-source"
CONTRARIAN = "primer-contrarian"
CLAIM = "Carbon dioxide makes up only 0.04 per cent of the air, so it cannot change the climate."
PASSAGE_SIZE = 1000
PASSAGE_OVERLAP = 100
N_PASSAGES = 2
"""Number of passages per prompt; they are fewer and smaller than by default, so that prompts are short."""
MAX_EXCERPT_WORDS = 60
MAX_TEXT_TOKENS = 60
"""Maximum number of tokens of each text in a debate; a round takes about half a minute on a laptop."""
N_LABELS = 26
"""Number of labelled statements on which the judge is trained."""
QUALITY = "states something about the climate that evidence could confirm or refute"
LABELS = ("not checkable", "checkable")
"""Names of the statements' labels, from low to high."""
SERVER_OPTIONS = "--model openai:NAME --base-url URL"
_COMMAND_LABEL = "The same with yours"

Say = Callable[[str], None]
"""Callback that receives each line of output."""


@dataclass(frozen=True, slots=True)
class DemoStep:
    """Step of the demo, with its result as lines, blocks and data."""

    title: str
    lines: tuple[str, ...]
    """Result as lines for a terminal."""
    blocks: tuple[Block, ...]
    """Result as blocks for the report."""
    data: dict[str, Any]
    """Result as JSON-serialisable values."""
    command: str
    """Equivalent command for the user's own model or documents. NAME and URL are placeholders."""


@dataclass(frozen=True)
class _Demo:
    """State that the steps of the demo share: workspace, model and output."""

    workspace: Workspace
    output: Path
    model_name: str
    progress: Progress

    @cached_property
    def session(self) -> Session:
        """Session in the demo's workspace."""
        return Session(self.workspace, progress=self.progress)

    @property
    def model(self) -> "Generator":
        """Model of the demo. It is loaded when a step first needs it, so that the first output appears at once."""
        return self.session.model(self.model_name)

    def quoted_path(self, name: str = "") -> str:
        """Return the path of a file in the workspace, or of the workspace, quoted for a shell.

        A path inside the current folder is relative to that folder.
        """
        path, current_folder = self.workspace.root / name, Path.cwd()
        return shlex.quote(str(path.relative_to(current_folder) if path.is_relative_to(current_folder) else path))


def run_demo(
    workspace: Workspace, output: Path, *, model: str = DEFAULT_MODEL, say: Say, progress: Progress
) -> tuple[DemoStep, ...]:
    """Run all steps of the demo, print their results with ``say``, and write the report to ``output``.

    Raises:
        InputError: The report cannot be written.
        ModelError: The model cannot be loaded.
    """
    demo = _Demo(workspace, output, model, progress)
    steps = []
    with demo.session:
        for index, (title, run_step) in enumerate(_STEPS, start=1):
            say(f"\n{index}/{len(_STEPS)}  {title}")
            step = run_step(demo, title)
            for line in (*step.lines, f"{_COMMAND_LABEL}: {step.command}"):
                say(f"  {line}")
            steps.append(step)
        sections = tuple(
            Section(step.title, (*step.blocks, Prose(f"{_COMMAND_LABEL}:", step.command))) for step in steps
        )
        report = Report(
            title="climassay: can I trust what this model says about climate?",
            lead=f"What climassay does, shown with {demo.model.name}, which runs on any laptop. It knows next to "
            "nothing about climate: look at how answers are grounded, scored and checked, and use a larger model for "
            "answers that you can rely on.",
            sections=sections,
            facts=(("Model fingerprint", demo.model.fingerprint), ("Number format", number_format(demo.model))),
        )
        report.write(output)
    return tuple(steps)


def _find_confidence(_demo: _Demo, title: str) -> DemoStep:
    """Find statements with a level of confidence, and words outside the IPCC's calibrated vocabulary, in two books."""
    from climassay.confidence.extraction import extract
    from climassay.confidence.linting import check, read_draft
    from climassay.confidence.linting.presentation import format_findings
    from climassay.corpus import read

    books = [primer.book_path(name) for name in primer.SOURCE_BOOKS]
    statements = extract([document for book in books for document in read(book).documents])
    drafts = [replace(read_draft(book), name=book.name) for book in books]
    checked_drafts = [check(draft) for draft in drafts]
    findings = [line for draft in checked_drafts for line in format_findings(draft)]
    results = [
        f"{statement.tag} confidence: {statement.sentence} [{statement.document}, {statement.headings[-1]}]"
        for statement in statements
    ]
    return DemoStep(
        title,
        (*results, *findings),
        (
            Prose("No model is asked: rules find the words."),
            Table.of(
                "Statements with a level of confidence",
                ("confidence", "statement"),
                [
                    (statement.tag or "-", f"{statement.sentence} [{statement.document}, {statement.headings[-1]}]")
                    for statement in statements
                ],
                left_columns=2,
            ),
            Table.of(
                "Words outside the IPCC's calibrated vocabulary",
                ("file", "paragraph", "what to change"),
                [
                    (draft.draft.name, str(finding.location.paragraph), finding.message)
                    for draft in checked_drafts
                    for finding in draft.findings
                ],
                left_columns=3,
            ),
        ),
        {
            "statements": [{"tag": statement.tag, "text": statement.sentence} for statement in statements],
            "findings": findings,
        },
        "climassay confidence extract report.pdf -o review.html; climassay confidence lint draft.md",
    )


def _answer_questions(demo: _Demo, title: str) -> DemoStep:
    """Ask a question that the books answer, and a question that they do not answer."""
    documents = passages = 0
    for name, books in ((COLLECTION, primer.SOURCE_BOOKS), (CONTRARIAN, primer.CONTRARIAN_BOOKS)):
        files = [f"primer:{book}" for book in books]
        size, overlap = PASSAGE_SIZE, PASSAGE_OVERLAP
        report = add_documents(name, files, workspace=demo.session, passage_size=size, passage_overlap=overlap)
        if name == COLLECTION:
            documents_in_collection = (*report.added, *report.already_there)
            documents, passages = (
                len(documents_in_collection),
                sum(document.passages for document in documents_in_collection),
            )
    answers = [
        ask(question, COLLECTION, model=demo.model, workspace=demo.session, passages=3, sentences=2)
        for question in (QUESTION, OFF_TOPIC)
    ]
    lines = [f"{documents} books in {passages} passages."]
    for answer in answers:
        sources = [f"  [{source.number}] {source.citation}" for source in answer.sources]
        lines += [f"{answer.question}", f"  {answer.text}", *sources]
    return DemoStep(
        title,
        tuple(lines),
        (
            Prose(
                f"From {documents} books in {passages} passages. Every sentence names the passages cited for it or is "
                "marked as not from the sources; if no passage is relevant, no model is asked. A model this small "
                "writes clumsily."
            ),
            *map(build_card, answers),
        ),
        {
            "documents": documents,
            "passages": passages,
            "answers": [{"question": answer.question, "text": answer.text} for answer in answers],
        },
        f'climassay ask "{QUESTION}" -c {COLLECTION} -w {demo.quoted_path()} {SERVER_OPTIONS}',
    )


def term_questions() -> list[dict[str, Any]]:
    """Convert the primer's 30 cloze statements to multiple-choice rows of a question file, with four options each.

    The wrong options are the missing words of the next three statements of the same book, cyclically. The correct
    letter cycles through a, b, c and d, so that always giving the same letter is correct at most 8 times.
    """
    cloze = primer.gold_questions().of_kind(GAP_KIND)
    rows = []
    for question_index, question in enumerate(cloze):
        book = [statement.answer for statement in cloze if statement.document == question.document]
        index = book.index(question.answer)
        options = [book[(index + step) % len(book)] for step in (1, 2, 3)]
        options.insert(question_index % 4, question.answer)
        rows.append(
            {
                "id": question.id,
                "kind": CHOICE_KIND,
                "question": f"Which word is missing? {question.question.replace(GAP, '____')}",
                "options": options,
                "answer": option_letter(question_index % 4),
                "passage": question.context,
                "document": question.document,
                "section": question.section,
            }
        )
    return rows


def _evaluate_retrieval(demo: _Demo, title: str) -> DemoStep:
    """Evaluate multiple-choice answers without and with the passage that contains the correct word."""
    from climassay.evaluation import mcq_report_sections
    from climassay.evaluation.scores import OVERALL

    file, names = _write_rows(demo, "terms.jsonl", term_questions()), ("default", "context")
    result = evaluate_choices(str(file), models=demo.model, settings=names, scorings=["text"], workspace=demo.session)
    scores = result.data["scores"]
    rows = [row for row in scores.accuracy if row.level == OVERALL]
    lines = [
        f"{row.setting}: {_format_percent(row.accuracy.value)} right, 95% interval "
        f"{_format_percent(row.accuracy.interval.low)} to {_format_percent(row.accuracy.interval.high)}, "
        f"n = {row.accuracy.n}"
        for row in rows
        if row.accuracy is not None
    ]
    lines.append(f"always the same letter: {_format_percent(rows[0].baseline)}")
    sentences = (
        "Which of four words is missing in a statement, by the likelihood of the words; the wrong ones are missing in "
        "the next three statements of the same book. Do not expect this model to know or to reason: on questions whose "
        "wrong answers are written to mislead, it is at or below chance (climassay evaluate mcq primer)."
    )
    [section] = mcq_report_sections(scores, title, sentences)
    options = " ".join(f"--setting {name}" for name in (*names, f"rag:{COLLECTION}"))
    return DemoStep(
        title,
        (*lines, sentences),
        section.blocks,
        {"accuracy": scores.accuracy, "paired": scores.paired},
        f"climassay evaluate mcq {demo.quoted_path(file.name)} {options} --scoring letter -w {demo.quoted_path()} "
        f"{SERVER_OPTIONS}",
    )


def labelled_statements() -> list[dict[str, Any]]:
    """Return the primer's climate texts that are not checkable, each followed by a checkable text of equal length.

    Lengths are in words, and final punctuation is removed, so that neither length nor punctuation predicts the label.
    """
    from climassay.factcheck.claims import load_examples

    texts = [example for example in load_examples() if example.topic == "climate"]
    available_texts = [text for text in texts if text.kind == "checkable"]
    rows = []
    for text in texts:
        n_words = len(text.text.split())
        partner = next((text for text in available_texts if len(text.text.split()) == n_words), None)
        if text.kind == "not checkable" and partner is not None:
            available_texts.remove(partner)
            rows += [{**asdict(example), "text": example.text.rstrip(".?!")} for example in (text, partner)]
    return rows


def _evaluate_judge(demo: _Demo, title: str) -> DemoStep:
    """Cross-validate a probe on the model's hidden states for statements, and compare it with two baselines."""
    from climassay.judging import (
        BenchmarkSettings,
        ItemColumns,
        JudgeTask,
        ProbeSettings,
        benchmark_judges,
        parse_levels,
        quality,
        read_items,
    )
    from climassay.judging.judges import layer_choices

    file = _write_rows(demo, "statements.jsonl", labelled_statements())
    levels = ",".join(LABELS)
    items = read_items(file, ItemColumns(id="id", label="kind", levels=parse_levels(levels))).items
    tasks = [JudgeTask(quality("own", sentence=QUALITY), items)]
    # One layer, two thirds up, to take seconds; the command chooses among four layers by cross-validation.
    settings = BenchmarkSettings(N_LABELS, probe=ProbeSettings(layer_choices(demo.model, ())[1:2]))
    result = benchmark_judges(tasks, settings, ["pointwise"], model=demo.model, workspace=demo.session)
    scores = result.benchmark.results[0].scores
    accuracy, baseline = scores.agreement.accuracy_differing, scores.baselines["longer"].accuracy_differing
    sentences = (
        f"Which of two texts {QUALITY}: learnt from {N_LABELS} labels, asked of pairs that the judge has not seen, in "
        "three folds. The texts that do are as long as those that do not. Do not expect so few labels to teach a model "
        "this small which of two claims is right: there it stays at chance (climassay judge benchmark primer:claims)."
    )
    return DemoStep(
        title,
        (
            f"the judge: {_format_percent(accuracy.value)} right, 95% interval {_format_percent(accuracy.low)} to "
            f"{_format_percent(accuracy.high)}, n = {accuracy.n} pairs of {scores.n_items} texts",
            f'"the longer text": {_format_percent(baseline.value)}; a constant answer: 50.0%',
            sentences,
        ),
        (Prose(sentences), result.tables()[0]),
        {"judge": {"accuracy": accuracy, "longer": baseline, "labels": N_LABELS}},
        f'climassay judge benchmark {demo.quoted_path(file.name)} --quality "{QUALITY}" --item id --label kind '
        f'--levels "{levels}" --method pointwise --train-items {N_LABELS} -w {demo.quoted_path()} '
        "--model local:FOLDER_OR_HUB_ID",
    )


def _write_rows(demo: _Demo, name: str, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON lines to a file in the workspace, which the displayed commands use; return its path."""
    file = demo.workspace.root / name
    write_file(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def _format_percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"


def _check_claim(demo: _Demo, title: str) -> DemoStep:
    """Check a claim in one round of debate between the books and a contrarian pamphlet, with a neutral mediator."""
    from climassay.factcheck import DebateSettings, advocates_from_names
    from climassay.factcheck.results.page import OUTCOME
    from climassay.prompts import DEMONSTRATION

    advocates = advocates_from_names([COLLECTION], adversaries=[CONTRARIAN])
    settings = DebateSettings(
        tuple(replace(advocate, passages=N_PASSAGES, excerpt_words=MAX_EXCERPT_WORDS) for advocate in advocates),
        split="whole",
        rounds=1,
        profile=ProfileSettings(text_tokens=MAX_TEXT_TOKENS),
    )
    transcript = check_claim(CLAIM, settings=settings, model=demo.model, workspace=demo.session, force=True)
    page = transcript.save(demo.output.with_name("factcheck.html"))
    verdict = transcript.verdict
    has_verdict = verdict.outcome == "verdict"
    heading, result = ("Verdict", verdict.label or "") if has_verdict else ("Result", OUTCOME[verdict.outcome].lower())
    opinions = transcript.rounds[-1].opinions
    views = tuple((opinion.advocate, _describe_opinion(opinion)) for opinion in opinions)
    # The explanation of a verdict that is withheld rests on no passage and is no reason.
    reason = " ".join(format_sentence(sentence) for sentence in verdict.explanation) if has_verdict else ""
    sentences = (
        "A verdict needs a quotation that is in its passage, or a citation by the model; quotations that are in no "
        "passage are removed. A larger model, for example one behind a server, quotes its passages and gives verdicts."
    )
    return DemoStep(
        title,
        (
            f"Claim: {CLAIM}",
            *(f"{name}: {view}" for name, view in views),
            f"{heading}: {result}",
            sentences,
            DEMONSTRATION,
            f"The page: {page}",
        ),
        (
            Prose(f"One advocate with the books, one with a pamphlet of contrarian arguments. {sentences}"),
            Prose(DEMONSTRATION),
            Cases("Claims", (Case(CLAIM, (*views, (heading, result)), reason, page.name),)),
        ),
        {
            "claim": CLAIM,
            "verdict": verdict.label,
            "removed_quotations": sum(opinion.removed_quotations for opinion in opinions),
        },
        f'climassay check "{CLAIM}" -c {COLLECTION} --adversary {CONTRARIAN} -w {demo.quoted_path()} {SERVER_OPTIONS}',
    )


def _describe_opinion(opinion: "AdvocateOpinion") -> str:
    """Return an advocate's verdict, the number of its quotations that were removed, and the verdict withheld."""
    n_quotations = len(opinion.quotations) + opinion.removed_quotations
    description = opinion.verdict or f"no opinion ({opinion.error})"
    if opinion.withheld:
        description += f", although it would say \u201c{opinion.withheld}\u201d"
    if n_quotations:
        description += f"; quotations in no passage: {opinion.removed_quotations} of {n_quotations}"
    return description


_STEPS: tuple[tuple[str, Callable[[_Demo, str], DemoStep]], ...] = (
    ("The IPCC's confidence levels, found in two books", _find_confidence),
    ("A cited answer, and an honest no", _answer_questions),
    ("What the right passage is worth", _evaluate_retrieval),
    (f"A judge trained on {N_LABELS} labels", _evaluate_judge),
    ("A claim, checked", _check_claim),
)
