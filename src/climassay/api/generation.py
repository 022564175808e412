"""From passages to questions: generated, screened and published."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.models import DEFAULT_MODEL
from climassay.reporting import Table
from climassay.reporting.results import Shown, listing
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.generation import Draft, Recipe
    from climassay.generation.dataset_results import GeneratedDataset, ScreenedDrafts
    from climassay.generation.pipeline import PipelineCounts, PipelineProgress
    from climassay.models.contract import Generator, Usage
    from climassay.questions import QuestionSet

PRIMER = "primer"


def generate(
    name: str,
    collections: str | Sequence[str] = (),
    *,
    mcq: int = 0,
    freeform: int = 0,
    cloze: int = 0,
    recipe: "Recipe | Path | None" = None,
    model: str = DEFAULT_MODEL,
    workspace: Place = None,
    on_progress: "PipelineProgress | None" = None,
) -> "GeneratedDataset":
    """Make questions from the passages of collections, screened; a longer dataset goes on from a shorter one.

    Args:
        name: Name of the dataset in the workspace.
        collections: Names of collections to write from.
        mcq: Accepted multiple-choice questions wanted.
        freeform: Questions with an answer in words wanted.
        cloze: Statements with a masked term wanted.
        recipe: Everything that can be said about a dataset, or its file; then the arguments above and the model say
            nothing, except the name.
        model: Name of the model that writes.
        workspace: Where collections, drafts and records lie.
        on_progress: Told after every batch; by default progress bars are shown.

    Returns:
        The accepted drafts in their order; ``draft.as_question()`` is the question. There may be fewer than wanted
        where too little of what the model writes is usable.

    Raises:
        InputError: Nothing is wanted, there is no such collection, or the dataset was begun with another recipe.
        ModelError: The model cannot be loaded.

    Example:
        >>> drafts = generate("short", "heat", cloze=1, workspace=folder)
        >>> "<MASK>" in drafts[0].as_question().question
        True
    """
    from climassay.generation import (
        CountSpec,
        DatasetStore,
        Recipe,
        WriterSpec,
        check_recipe,
        load_recipe,
        open_pipeline,
        run_pipeline,
    )
    from climassay.generation.dataset_results import GeneratedDataset

    if isinstance(recipe, Path):
        recipe = load_recipe(recipe)
    if recipe is None:
        counts = CountSpec(mcq=mcq, freeform=freeform, cloze=cloze)
        recipe = Recipe(name, one_or_several(collections), WriterSpec(model), counts)
    wanted = replace(recipe, name=name)
    check_recipe(wanted, name)
    with Session.opened(workspace) as session, ExitStack() as stack:
        options = session.options
        wanted = with_limits(wanted, session)
        store = DatasetStore(session.records)
        config = {"recipe": asdict(wanted), "prompts": options.prompts}
        run = stack.enter_context(session.run("generate run", config, {"recipe": wanted.seed}))
        with (
            open_pipeline(
                wanted,
                session.workspace,
                session.records,
                run,
                prompts=options.prompts,
                deadline=options.deadline,
                use_cache=not options.no_cache,
                **({} if session.pool is None else {"load": session.pool.load_model}),
            ) as parts,
            ExitStack() as shown,
        ):
            done = run_pipeline(wanted, parts, store, on_progress=on_progress or _told(session, wanted, shown))
        made = GeneratedDataset.of(store, name, pipeline=done, run=run.id)
        run.save_results("streams", made.streams())
        return made


def with_limits(recipe: "Recipe", session: Session) -> "Recipe":
    """A recipe whose writer has the limits that the session's options name."""
    options = session.options
    given = {
        "timeout": options.timeout,
        "max_tokens": options.max_output_tokens,
        "reasoning_effort": options.reasoning_effort,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(recipe, writer=replace(recipe.writer, **changes))


def _told(session: Session, recipe: "Recipe", stack: ExitStack) -> "PipelineProgress":
    """Shows a bar for each kind and level, what became of the drafts so far, and what they cost."""
    wanted = recipe.wanted()
    tasks = {
        stream: stack.enter_context(session.progress.task(stream.name, total=number))
        for stream, number in wanted.items()
    }

    def show(counts: "PipelineCounts", usage: "Usage") -> None:
        left = made = 0
        for stream, task in tasks.items():
            one, total = counts[stream], wanted[stream]
            made += one.accepted
            left += max(0, total - one.accepted)
            worst = ", ".join(f"{reason} {number}" for reason, number in one.rejected.most_common(2) if number)
            words = f"{stream.name}: {one.asked} drafts" + (f", {one.failed} failed" if one.failed else "")
            task.update(completed=min(total, one.accepted), description=f"{words}{'; out: ' + worst if worst else ''}")
        if usage.cost is not None and made:
            to_come = f"about ${usage.cost / made * left:.4f} to come"
            session.progress.say(f"${usage.cost:.4f} so far in this run, {to_come}")

    return show


def screen(
    drafts: "str | Path | Sequence[Draft]",
    *,
    without: Sequence[str] = (),
    only: Sequence[str] = (),
    language: str = "en",
    encoder: str | None = None,
    entailment: str | None = None,
    consistency: str | None = None,
    orders: int = 4,
    needed: float = 1.0,
    seed: int = 0,
    workspace: Place = None,
) -> "ScreenedDrafts":
    """Mark faulty questions by named checks, and show what each check stopped; nothing is removed.

    Args:
        drafts: Drafts (climassay generate), a question file with passages, or primer.
        without: Leave out a check by its name; repeat. See generate checks.
        only: Make this check and no other; repeat.
        language: Language in which the questions are to be: en, de, fr, es, pt, it or nl.
        encoder: Encoder for the check “off topic”, for example local:minilm.
        entailment: Scorer for the check “not entailed”: bundled, prompted:MODEL, supports:MODEL, nli:MODEL, FILE.
        consistency: Model that answers the questions again with their passages (small ones: multiple choice).
        orders: Option orders a question, for --consistency.
        needed: Least share of orders answered as marked, for --consistency.
        seed: Seed of option orders beyond the rotations.
        workspace: Where answers of models are kept.

    Raises:
        InputError: The drafts cannot be read, or there is no such check.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.dataset_results import ScreenedDrafts
    from climassay.generation.screening import answer_check
    from climassay.generation.screening import screen as screened
    from climassay.metrics import load_entailment
    from climassay.models.encoders import load_encoder

    name = "drafts"
    skipped: tuple[str, ...] = ()
    marked: Sequence[Draft]
    if isinstance(drafts, (str, Path)):
        name = str(drafts)
        marked, skipped = drafts_of(drafts)
    else:
        marked = drafts
    with Session.opened(workspace) as session:
        options = session.options

        def load(wanted: str, **others: Any) -> "Generator":
            return session.model(wanted, options=options.fitting(wanted), **others)

        marked = screened(
            marked,
            without=without,
            only=only or None,
            language=language,
            encoder=None if encoder is None else load_encoder(encoder),
            entailment=None if entailment is None else load_entailment(entailment, load=load),
        )
        if consistency is not None:
            from climassay.evaluation import TaskPrompts

            prompt = TaskPrompts.load(options.prompts).mcq
            model = session.model(consistency)
            config = {
                "model": model.name,
                "fingerprint": model.fingerprint,
                "orders": orders,
                "needed": needed,
                "prompts": {prompt.name: {"sha256": prompt.sha256, "origin": prompt.origin}},
            }
            with (
                session.run("generate screen", config, {"orders": seed}) as run,
                session.progress.task("Answering the questions") as task,
            ):
                asked = answer_check(
                    session.recorded(model, run), orders=orders, needed=needed, prompts=options.prompts, seed=seed
                )
                marked = asked.check(marked, on_progress=lambda count: task.advance(count))
    return ScreenedDrafts(name, tuple(marked), tuple(skipped))


def drafts_of(file: str | Path) -> "tuple[list[Draft], tuple[str, ...]]":
    """Drafts of a draft file or of any question file, and the rows that were left out.

    Raises:
        InputError: It is neither.
    """
    from climassay.generation import read_drafts
    from climassay.generation.draft import question_draft
    from climassay.questions import read_questions

    if str(file) != PRIMER and holds_drafts(Path(file)):
        return list(read_drafts(Path(file))), ()
    found: QuestionSet = read_questions(str(file))
    return [question_draft(question) for question in found.questions], found.skipped


def holds_drafts(path: Path) -> bool:
    """Whether the first line of a file is a draft rather than a question; one that cannot be read is none."""
    from climassay.io import parse_json, read_lines

    try:
        row = parse_json(next((line for line in read_lines(path) if line.strip()), "null"))
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and {"wording", "origin"} <= set(row)


def checks() -> Shown:
    """List the checks of the screening: name, kinds of questions, and what is faulty."""
    from climassay.generation.screening import CHECKS, MODEL_CHECKS

    found = [(one.name, list(one.kinds), one.words) for one in CHECKS.values()]
    found += [(name, ["mcq", "freeform", "cloze"], words) for name, words in MODEL_CHECKS.items()]
    records = [{"name": name, "kinds": kinds, "words": words} for name, kinds, words in found]
    return listing("Checks", records, {"name": "check", "kinds": "kinds", "words": "what is faulty"}, left=3)


def datasets(*, workspace: Place = None) -> Shown:
    """List the datasets of the workspace."""
    from climassay.generation import DatasetStore
    from climassay.records.queries import iso_time

    with Session.opened(workspace) as session:
        found = DatasetStore(session.records).list()
    records = [{**asdict(one), "made_at": iso_time(one.made_at)} for one in found]
    states = ("accepted", "rejected", "failed")
    rows = [(one.name, iso_time(one.made_at), *(str(one.states.get(state, 0)) for state in states)) for one in found]
    return Shown(records, (Table.of("Datasets", ("name", "begun", *states), rows, left=2),))
