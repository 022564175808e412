"""The quickstart: six steps from a document to a scored model, each offered, each skippable.

What was done is seen from what lies in the workspace, so that an interrupted quickstart goes on where it stopped, and
one whose steps were done by their own commands finds them done.
"""

import shlex
import textwrap
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

from climassay.api.benchmarks import run_plan
from climassay.api.claims import check_claim
from climassay.api.documents import add_documents, ask
from climassay.api.generation import generate
from climassay.corpus.collection import survey_collections
from climassay.demo import CLAIM, PASSAGE_OVERLAP, PASSAGE_SIZE, QUESTION, SHORT_DEBATE
from climassay.errors import InputError, NoAnswerError
from climassay.evaluation import load_plan
from climassay.factcheck import DebateSettings, advocates_from_names
from climassay.factcheck.results.page import DEMONSTRATION, ENDING
from climassay.generation import DatasetStore, Draft, load_recipe, publish_dataset
from climassay.generation.annotation import ANNOTATION_REASONS, AnnotationStore, Item
from climassay.grounding import written
from climassay.io import write_file
from climassay.models import DEFAULT_MODEL, Generator
from climassay.models.provider import is_served
from climassay.progress import Progress
from climassay.prompts import profile_of
from climassay.questions import option_letter
from climassay.records.queries import RunDetails, list_runs, run_details
from climassay.reporting import as_markdown, counted
from climassay.reporting.results import Result
from climassay.session import Session
from climassay.workspace import Workspace

NAME = "quickstart"
"""Name of the collection, the dataset and the experiment."""

State = Literal["done", "found", "skipped", "failed"]


class Dialog(Protocol):
    """The one whom the quickstart leads."""

    @property
    def patient(self) -> bool:
        """Whether a question may be put again after an answer that is of no use."""

    def say(self, text: str) -> None:
        """Tell something."""

    def answer(self, question: str, offer: str) -> str | None:
        """The answer to a question, ``offer`` where it is taken; None to skip."""


@dataclass(frozen=True)
class QuickstartContext:
    """What the steps work with.

    Attributes:
        workspace: Where everything lies; what is there already is used.
        model_name: Of the model that answers, debates, writes and is evaluated.
        labels_by: Name under which questions are annotated.
        progress: Shows how far long work is.
    """

    workspace: Workspace
    model_name: str
    labels_by: str
    progress: Progress = field(default_factory=Progress)

    @cached_property
    def session(self) -> Session:
        """What is open in the workspace: records, encoders and the model, once a step needs them."""
        return Session(self.workspace, progress=self.progress)

    @property
    def model(self) -> Generator:
        """The model, loaded when a step first needs it.

        Raises:
            InputError: Its name is not understood.
            ModelError: It cannot be loaded.
        """
        return self.session.model(self.model_name)

    @property
    def folder(self) -> Path:
        """Where the quickstart writes files; made by the step that first writes one."""
        return self.workspace.root / NAME

    def runs(self, *commands: str) -> Iterator[RunDetails]:
        """Finished runs of a command in this workspace, the newest first; it may have had other names before."""
        if not self.workspace.has_records:
            return
        database = self.session.records.database
        for one in reversed(list_runs(database)):
            if one.command in commands and one.status == "done":
                yield run_details(database, one.id)

    def close(self) -> None:
        """Close what was opened."""
        if "session" in self.__dict__:
            self.session.close()


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a new user learns."""

    name: str
    title: str
    asks: str
    """The question put to the user."""
    offer: Callable[[QuickstartContext], str]
    """What is taken where the user just presses Enter."""
    command: Callable[[QuickstartContext, str], str]
    """The command that does this step alone, with the user's answer."""
    found: Callable[[QuickstartContext], str | None]
    """What is there of an earlier time, in words; None where the step is still to be done."""
    work: Callable[[QuickstartContext, str, Dialog], str]
    """Does it with the user's answer; what came out, in words. What is wrong with the answer is an InputError."""
    needs: Callable[[QuickstartContext], bool] = field(default=lambda _context: True)
    """Whether what the step builds upon is there."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step."""

    step: str
    state: State
    said: str
    command: str
    """That does it alone."""


PASSAGE_CHARACTERS = 700
YES, NO = ("y", "yes"), ("n", "no")
OTHER = "other"


def annotate_items(store: AnnotationStore, dataset: str, annotator: str, count: int, dialog: Dialog) -> tuple[int, int]:
    """Put items before the user until so many are labelled, or nothing is left.

    Returns:
        Accepted and rejected items of this call.

    Raises:
        InputError: There is no such dataset, or an answer is of no use and may not be asked for again.
    """
    said = [0, 0]
    while sum(said) < count and (item := store.next(dataset, annotator)) is not None:
        dialog.say(_shown(item))
        verdict = _verdict(dialog)
        if verdict is None:
            store.skip(dataset, item.draft.id, annotator)
            continue
        reasons, remark = ((), "") if verdict else _reason(dialog)
        key = uuid.uuid4().hex
        store.label(dataset, item.draft.id, annotator, accepted=verdict, reasons=reasons, remark=remark, key=key)
        said[0 if verdict else 1] += 1
    return said[0], said[1]


def _shown(item: Item) -> str:
    """An item as text: the question, what is said to be right, and the passage that it was written from."""
    draft, wording = item.draft, item.draft.wording
    asked, answered = ("Statement", "Masked term") if draft.kind == "cloze" else ("Question", "Answer")
    answers = [f"{answered}: {wording.answer}"]
    if draft.kind == "mcq":
        answers = [
            f"  {option_letter(place)}. {text}{'   <- marked as right' if place == wording.correct else ''}"
            for place, text in enumerate(wording.options)
        ]
    passage = textwrap.shorten(draft.main.text, PASSAGE_CHARACTERS, placeholder=" ...")
    source = f"Passage ({draft.main.document}):"
    return "\n".join([f"{asked}: {wording.question}", *answers, "", source, textwrap.fill(passage, 96)])


def _verdict(dialog: Dialog) -> bool | None:
    while True:
        said = dialog.answer("Is it right and fit for a benchmark? y or n", YES[0])
        word = None if said is None else said.strip().lower()
        if word is None or word in YES or word in NO:
            return None if word is None else word in YES
        _refuse(dialog, "Answer y or n.")


def _reason(dialog: Dialog) -> tuple[tuple[str, ...], str]:
    for reason in ANNOTATION_REASONS:
        dialog.say(f"  {reason.key}  {reason.words}")
    by_key = {reason.key: reason.name for reason in ANNOTATION_REASONS}
    while True:
        said = dialog.answer("Why not? A number, or the reason in your own words", "4")
        name = by_key.get((said or "").strip())
        if name == OTHER:
            said = dialog.answer("In words", "")
        if name is not None and name != OTHER:
            return (name,), ""
        if said and said.strip() not in by_key:
            return (OTHER,), said.strip()
        _refuse(dialog, "A rejected question needs a reason.")


def _refuse(dialog: Dialog, sentence: str) -> None:
    if not dialog.patient:
        raise InputError(sentence)
    dialog.say(sentence)


DOCUMENTS = "primer:physical_climate"
PASSAGES = 3
ROUNDS = 2
"""Rounds of a debate where the model is behind a server; a local model holds a single short one."""


def has_collection(context: QuickstartContext) -> bool:
    """Whether the quickstart's collection holds a document."""
    return _documents_found(context) is not None


def _documents_found(context: QuickstartContext) -> str | None:
    if not context.workspace.collections.is_dir():
        return None
    # A damaged collection beside it is none of its business.
    readable, _ = survey_collections(context.workspace)
    one = next((one for one in readable if one.name == NAME), None)
    if one is None or not one.documents or one.incomplete:
        return None
    return f"{counted(one.documents, 'document')} in {counted(one.passages, 'passage')}, in the collection {NAME}."


def _add(context: QuickstartContext, answer: str, _dialog: Dialog) -> str:
    try:
        files = shlex.split(answer)
    except ValueError:
        files = [answer]
    size, overlap = PASSAGE_SIZE, PASSAGE_OVERLAP
    report = add_documents(NAME, files, workspace=context.session, passage_size=size, passage_overlap=overlap)
    kept = (*report.added, *report.already_there)
    if not kept:
        raise InputError(f"There is no text in it: {report.skipped[0].reason}")
    lines = [f"{one.title}: {counted(one.passages, 'passage')}" for one in kept]
    return "\n".join([*lines, *(f"left out: {one.reason}" for one in report.skipped)])


def _asked(context: QuickstartContext) -> str | None:
    for run in context.runs("ask"):
        answers = run.results.get("answer", [])
        if run.config.get("collections") == [NAME] and answers and not answers[0]["error"]:
            return f"{answers[0]['question']}\n{answers[0]['text']}"
    return None


def _ask(context: QuickstartContext, answer: str, _dialog: Dialog) -> str:
    result = ask(answer, NAME, model=context.model, workspace=context.session, passages=PASSAGES)
    _raise_failure(result)
    sources = [f"[{source.number}] {source.citation}" for source in result.sources]
    return "\n".join([result.text, *sources])


def _raise_failure(result: Result) -> None:
    if (failure := result.failure()) is not None:
        raise failure


def _checked(context: QuickstartContext) -> str | None:
    for run in context.runs("check", "factcheck"):
        transcripts = run.results.get("transcript", [])
        sides = [name for advocate in run.config.get("advocates", []) for name in advocate["collections"]]
        if NAME in sides and transcripts and transcripts[0]["verdict"]["outcome"] != "failed":
            verdict = transcripts[0]["verdict"]
            return f"{transcripts[0]['claim']['text']}\nVerdict: {verdict['label'] or verdict['outcome']}"
    return None


def debate_settings(context: QuickstartContext) -> DebateSettings:
    """A short debate of the documents with the model's own memory."""
    advocates = advocates_from_names([NAME], plain=True)
    if is_served(context.model_name):
        return DebateSettings(advocates=advocates, model=context.model_name, split="none", rounds=ROUNDS)
    return DebateSettings(advocates=advocates, model=context.model_name, split="none", rounds=1, profile=SHORT_DEBATE)


def _check(context: QuickstartContext, answer: str, _dialog: Dialog) -> str:
    settings = debate_settings(context)
    transcript = check_claim(answer, settings=settings, model=context.model, workspace=context.session, force=True)
    page = transcript.save(context.folder / "factcheck.html")
    verdict = transcript.verdict
    _raise_failure(transcript)
    opinions = [
        f"{opinion.advocate}, round {opinion.round}: {opinion.verdict or 'no opinion'}"
        for held in transcript.rounds
        for opinion in held.opinions
    ]
    reason = " ".join(written(sentence) for sentence in verdict.explanation)
    told = [DEMONSTRATION] if transcript.demonstration else []
    result = f"Verdict: {verdict.label}." if verdict.outcome == "verdict" else ENDING[verdict.outcome]
    return "\n".join([*opinions, f"{result} {reason}".strip(), *told, f"The page: {page}"])


def _check_command(context: QuickstartContext, answer: str) -> str:
    rounds = f"--rounds {ROUNDS}"
    if not is_served(context.model_name):
        short = SHORT_DEBATE
        rounds = f"--rounds 1 --passages {short.passages} --excerpt-words {short.excerpt_words}"
        rounds += f" --text-tokens {short.text_tokens}"
    who = f"--collection {NAME} --plain --force --split none"
    return f"climassay check {shlex.quote(answer)} {who} {rounds}{_model_option(context)}"


def _model_option(context: QuickstartContext) -> str:
    return "" if context.model_name == DEFAULT_MODEL else f" --model {context.model_name}"


QUESTIONS = 10
LOCAL_QUESTIONS = 4
"""Offered to a model on this machine, which writes slowly."""
MOST_QUESTIONS = 200
DRAFTS_A_QUESTION = 5
"""At most so many drafts are written for each question wanted: a small model's are mostly of no use."""
MOST_REASONS = 3
"""Reasons told for which drafts did not pass."""
LABELS = 2

_RECIPE = """\
# Made by climassay quickstart. climassay generate init FILE writes one with every entry explained.
name = "{name}"
collections = ["{name}"]
batch = 16

[writer]
model = "{model}"
{writer}
[counts]
{counts}

[contexts]
most = 0                    # the main passage alone

[screening]
consistency = ""            # nobody answers the questions again

[stop]
asked = {asked}
"""
_EXPERIMENT = """\
# Made by climassay quickstart. climassay evaluate init FILE writes one with every entry explained.
name = "{name}"
tasks = ["mcq", "cloze"]
scoring = "{scoring}"
settings = ["default"]

[[benchmark]]
name = "{name}"
files = [{files}]

[[model]]
name = "{model}"

[[setting]]
use = "rag:{name}"
passages = 1
"""


def _recipe_file(context: QuickstartContext) -> Path:
    return context.folder / "recipe.toml"


def _drafts(context: QuickstartContext) -> list[Draft]:
    """The drafts of the quickstart's dataset, with what was said about them; none where there is no dataset."""
    if not context.workspace.has_records:
        return []
    store = DatasetStore(context.session.records)
    return list(store.drafts(NAME)) if NAME in store else []


def _has_questions(context: QuickstartContext) -> bool:
    return any(draft.usable for draft in _drafts(context))


def _questions_found(context: QuickstartContext) -> str | None:
    if not _recipe_file(context).is_file():
        return None
    recipe, drafts = load_recipe(_recipe_file(context)), _drafts(context)
    for stream, wanted in recipe.wanted().items():
        own = [draft for draft in drafts if draft.kind == stream.kind]
        accepted = sum(draft.rejection is None or draft.rejection.step == "expert" for draft in own if not draft.error)
        if accepted < wanted and len(own) < (recipe.stop.asked or 0):
            return None
    return f"{sum(draft.usable for draft in drafts)} questions from {len(drafts)} drafts, in the dataset {NAME}."


def _number(answer: str) -> int:
    if not answer.strip().isdecimal() or not 1 <= int(answer) <= MOST_QUESTIONS:
        raise InputError(f"Say how many questions, from 1 to {MOST_QUESTIONS}, not {answer!r}.")
    return int(answer)


def _generate(context: QuickstartContext, answer: str, _dialog: Dialog) -> str:
    count, small, recipe = _number(answer), profile_of(context.model).name == "small", _recipe_file(context)
    # A very small model writes usable statements at times, and a usable choice of options hardly ever.
    counts = {"cloze": count} if small else {"mcq": count - count // 2, "cloze": count // 2}
    text = _RECIPE.format(
        name=NAME,
        model=context.model_name,
        writer="brief = true                # short prompts, for very small models\nmax_tokens = 60\n" if small else "",
        counts="\n".join(f"{kind} = {number}" for kind, number in counts.items() if number),
        asked=DRAFTS_A_QUESTION * count,
    )
    write_file(recipe, text)  # a file of its own, so that the command shown does the same
    drafts = generate(NAME, recipe=recipe, workspace=context.session)
    _raise_failure(drafts)
    all_drafts = _drafts(context)
    out = Counter((one.kind, one.rejection.reason) for one in all_drafts if one.rejection is not None)
    out.update((one.kind, "failed model call") for one in all_drafts if one.error)
    reasons = "; ".join(f"{kind}, {reason}: {count}" for (kind, reason), count in out.most_common(MOST_REASONS))
    told = counted(len(all_drafts), "draft")
    left_out = [f"Left out most often: {reasons}."] if reasons else []
    if not drafts:
        larger = " Write them with a larger model (--model)." if small else ""
        return "\n".join([f"None of {told} passed the checks.{larger}", *left_out])
    lines = [f"{draft.as_question().question}   [{draft.wording.answer}]" for draft in drafts]
    return "\n".join([f"{len(drafts)} of {told} passed the checks:", *lines, *left_out])


def _annotated(context: QuickstartContext) -> str | None:
    store = AnnotationStore(context.session.records)
    labels = store.labels(NAME)
    left = store.progress(NAME, context.labels_by).left_for_me
    if len(labels) < LABELS and (left or not labels):
        return None
    return f"{len(labels)} labels, {sum(label.accepted for label in labels)} of them for valid."


def _annotate(context: QuickstartContext, answer: str, dialog: Dialog) -> str:
    store = AnnotationStore(context.session.records)
    accepted, rejected = annotate_items(store, NAME, context.labels_by, _number(answer), dialog)
    return f"Labelled {accepted + rejected}: {accepted} valid, {rejected} not. The labels are {context.labels_by}'s."


def _evaluated(context: QuickstartContext) -> str | None:
    for run in context.runs("evaluate run"):
        answers = [one for one in run.results.get("outcomes", ()) if one["error"] is None]
        if run.config.get("experiment", {}).get("name") == NAME and answers:
            return f"{len(answers)} answers in the run {run.summary.id}; {context.folder / 'report.html'}"
    return None


def _evaluate(context: QuickstartContext, _answer: str, _dialog: Dialog) -> str:
    folder, experiment = context.folder / "benchmark", context.folder / "experiment.toml"
    publish_dataset(_drafts(context), folder, name=NAME, force=True)
    files = [file.relative_to(context.folder).as_posix() for file in sorted(folder.glob("jsonl/*/*.jsonl"))]
    small = profile_of(context.model).name == "small"
    text = _EXPERIMENT.format(
        name=NAME,
        scoring="text" if small else "letter" if is_served(context.model_name) else "likelihood",
        files=", ".join(f'"{one}"' for one in files),
        model=context.model_name,
    )
    write_file(experiment, text)
    result = run_plan(load_plan(experiment), model=context.model, workspace=context.session)
    outcomes = result.experiment.outcomes
    if all(one.error is not None for one in outcomes):
        raise NoAnswerError(f"No question was answered: {outcomes[0].error}")
    report = result.save(context.folder / "report.html")
    return (
        f"{as_markdown(result.tables()[0])}\nSo few questions say little: look at the intervals. The report: {report}"
    )


STEPS: tuple[Step, ...] = (
    Step(
        "documents",
        "Add documents: PDF, HTML, Markdown, text, EPUB or tables become a collection that can be searched.",
        "Files or folders",
        lambda _context: DOCUMENTS,
        lambda _context, answer: (
            f"climassay corpus add {NAME} {answer} --passage-size {PASSAGE_SIZE} --passage-overlap {PASSAGE_OVERLAP}"
        ),
        _documents_found,
        _add,
    ),
    Step(
        "ask",
        "Ask: the answer rests on passages of the documents and names them, or says that they do not hold it.",
        "Your question",
        lambda _context: QUESTION,
        lambda context, answer: (
            f"climassay ask {shlex.quote(answer)} --collection {NAME} --passages {PASSAGES}{_model_option(context)}"
        ),
        _asked,
        _ask,
        has_collection,
    ),
    Step(
        "check",
        "Check a claim: an advocate with the documents and one without debate it, and a mediator gives a verdict.",
        "A claim",
        lambda _context: CLAIM,
        _check_command,
        _checked,
        _check,
        has_collection,
    ),
    Step(
        "questions",
        "Make questions: the model writes from the passages, and every draft is checked.",
        "How many",
        lambda context: str(QUESTIONS if is_served(context.model_name) else LOCAL_QUESTIONS),
        lambda context, _answer: f"climassay generate run {_recipe_file(context)}",
        _questions_found,
        _generate,
        has_collection,
    ),
    Step(
        "annotate",
        "Annotate: you say which questions are valid. Whole groups do so in the browser.",
        "How many to look at",
        lambda _context: str(LABELS),
        lambda _context, _answer: "climassay serve",
        _annotated,
        _annotate,
        _has_questions,
    ),
    Step(
        "evaluate",
        "Evaluate: the model answers the questions that stand, without and with the documents.",
        "Go ahead",
        lambda _context: "yes",
        lambda context, _answer: f"climassay evaluate run {context.folder / 'experiment.toml'}",
        _evaluated,
        _evaluate,
        _has_questions,
    ),
)


def run_quickstart(context: QuickstartContext, dialog: Dialog, steps: Sequence[Step] = STEPS) -> tuple[Outcome, ...]:
    """Lead somebody through the steps.

    Returns:
        What became of each.

    Raises:
        InputError: An answer is of no use, where it may not be asked for again.
        ModelError: The model cannot be loaded.
    """
    return tuple(_led(step, f"{number}/{len(steps)}", context, dialog) for number, step in enumerate(steps, start=1))


def _led(step: Step, place: str, context: QuickstartContext, dialog: Dialog) -> Outcome:
    offer = step.offer(context)
    dialog.say(f"\n{place}  {step.title}")
    if not step.needs(context):
        said = "Left out: what it builds upon is not there."
        dialog.say(said)
        return Outcome(step.name, "skipped", said, step.command(context, offer))
    there = step.found(context)
    if there is not None:
        dialog.say(f"There already: {there}")
        return Outcome(step.name, "found", there, step.command(context, offer))
    while True:
        answer = dialog.answer(step.asks, offer)
        if answer is None:
            dialog.say(f"Skipped. Alone: {step.command(context, offer)}")
            return Outcome(step.name, "skipped", "Skipped.", step.command(context, offer))
        state: State = "done"
        try:
            said = step.work(context, answer, dialog)
        except InputError as error:
            if not dialog.patient:
                raise
            dialog.say(str(error))
            continue
        except NoAnswerError as error:
            state, said = "failed", str(error)
        command = step.command(context, answer)
        dialog.say(f"{said}\nAlone: {command}")
        return Outcome(step.name, state, said, command)
