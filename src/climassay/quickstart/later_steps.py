"""The second half: questions from the documents, what a person says of them, and how a model answers them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.errors import InputError
from climassay.io import write_file
from climassay.models.profiles import profile_of
from climassay.models.servers import is_served
from climassay.quickstart.first_steps import has_collection
from climassay.quickstart.step import NAME, Room, Step, Talk

if TYPE_CHECKING:
    from climassay.generation import Draft, Recipe
    from climassay.generation.line_counts import LineCounts
    from climassay.models.contract import Usage

QUESTIONS = 10
LOCAL_QUESTIONS = 4
"""Offered to a model on this machine, which writes slowly."""
MOST_QUESTIONS = 200
DRAFTS_A_QUESTION = 5
"""At most so many drafts are written for each question wanted: a small model's are mostly of no use."""
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


def _recipe_file(room: Room) -> Path:
    return room.folder / "recipe.toml"


def _write_recipe(room: Room, count: int) -> "Recipe":
    """The recipe in a file of its own, so that the command that is told does the same."""
    from climassay.generation import load_recipe

    small = profile_of(room.model).name == "small"
    # A very small model writes usable statements at times, and a usable choice of options hardly ever.
    counts = {"cloze": count} if small else {"mcq": count - count // 2, "cloze": count // 2}
    text = _RECIPE.format(
        name=NAME,
        model=room.model_name,
        writer="brief = true                # short prompts, for very small models\nmax_tokens = 60\n" if small else "",
        counts="\n".join(f"{kind} = {number}" for kind, number in counts.items() if number),
        asked=DRAFTS_A_QUESTION * count,
    )
    write_file(_recipe_file(room), text.encode())
    return load_recipe(_recipe_file(room))


def _drafts(room: Room) -> "list[Draft]":
    """The drafts of the quickstart's dataset, with what was said about them; none where there is no dataset."""
    from climassay.generation import DatasetStore

    if not room.workspace.has_records:
        return []
    store = DatasetStore(room.session.records)
    return list(store.drafts(NAME)) if NAME in store else []


def _has_questions(room: Room) -> bool:
    return any(draft.usable for draft in _drafts(room))


def _questions_found(room: Room) -> str | None:
    from climassay.generation import load_recipe

    if not _recipe_file(room).is_file():
        return None
    recipe, drafts = load_recipe(_recipe_file(room)), _drafts(room)
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


def _generate(room: Room, answer: str, talk: Talk) -> str:
    from climassay.api import generate

    recipe = _write_recipe(room, _number(answer))
    most = sum(recipe.stop.asked or 0 for _ in recipe.wanted())
    tell = talk.progress(f"Writing and checking, at most {most} drafts", most)
    told = 0

    def on_round(counts: "LineCounts", _usage: "Usage") -> None:
        nonlocal told
        asked = sum(counts[stream].asked for stream in recipe.wanted())
        tell(asked - told)
        told = asked

    drafts = generate(NAME, recipe=recipe, workspace=room.session, on_round=on_round)
    if not drafts:
        return f"None of {told} drafts passed the checks: write them with a larger model (--model)."
    lines = [f"{draft.as_question().question}   [{draft.wording.answer}]" for draft in drafts]
    return "\n".join([f"{len(drafts)} of {told} drafts passed the checks:", *lines])


def _annotated(room: Room) -> str | None:
    from climassay.generation.annotation import AnnotationStore

    store = AnnotationStore(room.session.records)
    labels = store.labels(NAME)
    left = store.progress(NAME, room.labels_by).left_for_me
    if len(labels) < LABELS and (left or not labels):
        return None
    return f"{len(labels)} labels, {sum(label.accepted for label in labels)} of them for valid."


def _annotate(room: Room, answer: str, talk: Talk) -> str:
    from climassay.generation.annotation import AnnotationStore
    from climassay.quickstart.annotating import annotate

    store = AnnotationStore(room.session.records)
    accepted, rejected = annotate(store, NAME, room.labels_by, _number(answer), talk)
    return f"Labelled {accepted + rejected}: {accepted} valid, {rejected} not. The labels are {room.labels_by}'s."


def _evaluated(room: Room) -> str | None:
    for run in room.runs("evaluate run"):
        if run.config.get("experiment", {}).get("name") == NAME and run.results.get("outcomes"):
            return f"{len(run.results['outcomes'])} answers in the run {run.summary.id}; {room.folder / 'report.html'}"
    return None


def _publish(room: Room) -> list[str]:
    """Publish the questions that stand; the files of each kind, relative to the quickstart's folder."""
    from climassay.generation import publish_dataset

    folder = room.folder / "benchmark"
    publish_dataset(_drafts(room), folder, name=NAME, force=True)
    return [file.relative_to(room.folder).as_posix() for file in sorted(folder.glob("jsonl/*/*.jsonl"))]


def _write_experiment(room: Room, files: Sequence[str]) -> Path:
    small = profile_of(room.model).name == "small"
    file = room.folder / "experiment.toml"
    text = _EXPERIMENT.format(
        name=NAME,
        scoring="text" if small else "letter" if is_served(room.model_name) else "likelihood",
        files=", ".join(f'"{one}"' for one in files),
        model=room.model_name,
    )
    write_file(file, text.encode())
    return file


def _evaluate(room: Room, _answer: str, talk: Talk) -> str:
    from climassay.api import run_plan
    from climassay.evaluation import load_plan
    from climassay.reporting import as_markdown

    plan = load_plan(_write_experiment(room, _publish(room)))
    tell = talk.progress("Asking and scoring", None)
    result = run_plan(plan, model=room.model, workspace=room.session, on_answers=tell)
    report = room.folder / "report.html"
    write_file(report, result.report.to_html().encode())
    tables = "\n".join(as_markdown(table) for table in result.tables[:1])
    return f"{tables}\nSo few questions say little: look at the intervals. The report: {report}"


LATER_STEPS = (
    Step(
        "questions",
        "Make questions: the model writes from the passages, and every draft is checked.",
        "How many",
        lambda room: str(QUESTIONS if is_served(room.model_name) else LOCAL_QUESTIONS),
        lambda room, _answer: f"climassay generate run {_recipe_file(room)}",
        _questions_found,
        _generate,
        has_collection,
    ),
    Step(
        "annotate",
        "Annotate: you say which questions are valid. Whole groups do so in the browser.",
        "How many to look at",
        lambda _room: str(LABELS),
        lambda _room, _answer: "climassay serve",
        _annotated,
        _annotate,
        _has_questions,
    ),
    Step(
        "evaluate",
        "Evaluate: the model answers the questions that stand, without and with the documents.",
        "Go ahead",
        lambda _room: "yes",
        lambda room, _answer: f"climassay evaluate run {room.folder / 'experiment.toml'}",
        _evaluated,
        _evaluate,
        _has_questions,
    ),
)
