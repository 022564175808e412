"""``climassay generate validate``: train, evaluate, apply, simulate and show validators of generated questions."""

from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.learning_options import (
    EncoderOption,
    FoldsOption,
    HtmlOption,
    SeedOption,
    activation_store,
    card,
    check_model_path,
    counting,
    note,
    numbers,
    show,
)
from climassay.cli.model_options import PromptsOption, ReachOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, progress_bar, write_text
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.generation import Subject
    from climassay.generation.validation import LabelSet, Reader, Training
    from climassay.generation.validation.validators import LoadModel

app = typer.Typer(no_args_is_help=True, help="Models that learn from experts which questions are valid.")


class Method(StrEnum):
    """How a validator learns."""

    features = "features"
    probe = "probe"
    adapter = "adapter"
    api = "api"


LabelsArgument = Annotated[
    Path,
    typer.Argument(help="Drafts with expert decisions, a question table with Validation or valid, or pira_qa.csv."),
]
ValidatorArgument = Annotated[
    str, typer.Argument(help="prompted:MODEL, adapter:FOLDER, api:STATE.json, a trained file, or mcq=...,freeform=...")
]
FieldOption = Annotated[
    str | None, typer.Option(help="The science, as prompts of models name it; by default climate science.")
]


@app.callback()
def group() -> None:
    """Models that learn from experts which questions are valid."""


@app.command()
@grouped
def train(
    labels: LabelsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File (features, probe, api) or folder (adapter).")],
    method: Annotated[Method, typer.Option(help="What learns.")] = Method.features,
    model: Annotated[
        str, typer.Option("--model", "-m", help="For probe and adapter a local: model, for api a model of the server.")
    ] = "local:smollm2",
    precision: Annotated[
        float | None, typer.Option(help="Wanted share of valid questions among those kept, for example 0.95.")
    ] = None,
    encoder: EncoderOption = "local:minilm",
    layer: Annotated[str | None, typer.Option(help="Layers of the probe, side by side as 16,-1.")] = None,
    preset: Annotated[str, typer.Option(help="Tuning preset of the adapter.")] = "smollm2-cpu-finetune",
    epochs: Annotated[int | None, typer.Option(min=1, help="Of adapter and api (paper: 3).")] = None,
    hold_out: Annotated[float, typer.Option(help="Share of the labels that adapter and api are measured on.")] = 0.25,
    folds: FoldsOption = 5,
    replace: Annotated[bool, typer.Option("--replace", help="Replace another training's adapter.")] = False,
    reach: ReachOptions = ReachOptions(),
    prompts: PromptsOption = None,
    field: FieldOption = None,
    html: HtmlOption = None,
    seed: SeedOption = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a validator on experts' labels, with its figures on passages that it was not trained on."""
    from climassay.generation.validation import read_label_set, train_validator, validation_prompt
    from climassay.generation.validation.labels import threshold_table

    table, subject = read_label_set(labels), _subject(field)
    load = reach.loader(workspace, quiet=True)
    tuning: dict[str, Any] = {
        "prompt": validation_prompt(prompts),
        "subject": subject,
        "hold_out": hold_out,
        "precision": precision,
        "seed": seed,
    }
    trained: Training[Any]
    with progress_bar(as_json) as progress:
        if method is Method.adapter:
            from climassay.generation.validation.finetuned_validator import train_adapter
            from climassay.tuning import find_preset

            config = find_preset(preset).config.with_values({"epochs": epochs, "seed": seed})
            task = progress.add_task(f"Training {model}", total=None)
            tuning["on_progress"] = lambda now: progress.update(task, completed=now.step, total=now.steps)
            trained = train_adapter(table, model, output, config, replace_other=replace, **tuning)
        elif method is Method.api:
            from climassay.generation.validation.finetuned_validator import train_api

            if output.is_dir():
                raise InputError(f"{output} is a folder: name the file that keeps how far the fine-tuning has come.")
            base_url, model = _server(model, reach.base_url)
            task = progress.add_task("Fine-tuning job", total=None)
            tuning["on_status"] = lambda now: progress.update(task, description=f"Fine-tuning job is {now.status}")
            at_server: Any = partial(load, base_url=base_url)
            trained = train_api(table, model, output, at_server, base_url=base_url, epochs=epochs or 3, **tuning)
        else:
            check_model_path(output)
            layers = numbers(layer, "--layer") if layer else ()
            reader = open_reader(
                method.value, model=model, encoder=encoder, layers=layers, load=load, prompts=prompts, subject=subject
            )
            reading = progress.add_task("Reading questions", total=len(table.drafts))
            fitting = progress.add_task("Cross-validating", total=folds)
            trained = train_validator(
                table,
                reader,
                precision=precision,
                folds=folds,
                seed=seed,
                on_read=lambda count: progress.advance(reading, count),
                on_fold=lambda count: progress.advance(fitting, count),
            )
            trained.validator.save(output)
    threshold = trained.learned.threshold
    if html is not None:
        from climassay.generation.validation import reason_figure
        from climassay.learning.evaluation import reliability_plot
        from climassay.reporting import Report, Section

        reasons = reason_figure([(table.name, table.drafts)])
        figure = reliability_plot(
            "Do the probabilities mean what they say?", [("P(valid)", trained.scores.calibration)]
        )
        sections = [Section("Figures", (*trained.scores.tables(), figure))]
        sections += [] if reasons is None else [Section("Why questions were rejected", (reasons,))]
        lead = f"A validator trained on {table.name}, measured on passages that it was not trained on."
        write_text(html, Report("Validator", lead, tuple(sections)).to_html())
    if as_json:
        print_json({"validator": str(output), **trained.facts()})
    else:
        show([*trained.scores.tables(), *([threshold_table(threshold)] if threshold else [])])
        _tell_skipped(table)
    note(f"No threshold: {trained.refusal}" if trained.refusal is not None else "")


@app.command()
@grouped
def evaluate(
    validator: ValidatorArgument,
    labels: LabelsArgument,
    reach: ReachOptions = ReachOptions(),
    prompts: PromptsOption = None,
    field: FieldOption = None,
    seed: SeedOption = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a validator on labelled questions, without those that it was trained on."""
    from climassay.generation.validation import ByKind, load_validator, read_label_set

    table = read_label_set(labels)
    load = reach.loader(workspace, quiet=True)
    judge = load_validator(validator, load=load, prompts=prompts, subject=_subject(field), store=activation_store())
    learned = [
        getattr(one, "learned", None) for one in (judge.validators.values() if isinstance(judge, ByKind) else [judge])
    ]
    seen = {name for one in learned if one is not None for name in one.provenance.trained_on}
    fresh = [one for one in table.drafts if one.draft.id not in seen]
    if not fresh:
        raise InputError(f"{judge.name} was trained on all questions of {labels}: measure it on others.")
    with counting(f"Asking {judge.name}", len(fresh), quiet=as_json) as advance:
        scores = judge.score(fresh, seed=seed, on_judged=advance)
    trained_on = len(table.drafts) - len(fresh)
    if as_json:
        source = {"validator": judge.name, "file": str(labels), "sha256": table.sha256, "trained_on": trained_on}
        print_json({**source, **asdict(scores)})
        return
    show(scores.tables())
    _tell_skipped(table)
    note(f"{trained_on} questions left out: it was trained on them." if trained_on else "")


@app.command()
@grouped
def apply(
    validator: ValidatorArgument,
    drafts: Annotated[Path, typer.Argument(help="Drafts of climassay (JSON Lines).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the drafts with the decisions.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Least P(valid) that is kept; by default the validator's own, else 0.5.")
    ] = None,
    reach: ReachOptions = ReachOptions(),
    prompts: PromptsOption = None,
    field: FieldOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide on drafts; those that were rejected before stay as they are."""
    from climassay.generation import read_drafts, write_drafts
    from climassay.generation.validation import load_validator, validate
    from climassay.reporting import Table

    given = list(read_drafts(drafts))
    load = reach.loader(workspace, quiet=True)
    judge = load_validator(validator, load=load, prompts=prompts, subject=_subject(field), store=activation_store())
    with counting(f"Asking {judge.name}", sum(draft.usable for draft in given), quiet=as_json) as advance:
        decided = validate(given, judge, threshold, on_judged=advance)
    if output is not None:
        write_drafts(output, decided)
    new = [draft for old, draft in zip(given, decided, strict=True) if len(draft.decisions) > len(old.decisions)]
    words = [draft.decisions[-1].accepted for draft in new]
    counts = {
        "kept": words.count(True),
        "rejected": words.count(False),
        "not judged": words.count(None) + sum(draft.usable for draft in given) - len(new),
        "rejected or failed before": sum(not draft.usable for draft in given),
    }
    if as_json:
        rows = [
            {"id": draft.id, "accepted": draft.decisions[-1].accepted, "probability": draft.decisions[-1].score}
            for draft in new
        ]
        print_json({"validator": judge.name, "counts": counts, "decisions": rows})
        return
    show([Table.of(f"Decisions of {judge.name}", ("decision", "questions"), [(k, str(v)) for k, v in counts.items()])])
    note(f"Written to {output}." if output else "")


@app.command(name="simulate")
@grouped
def simulate_command(
    labels: LabelsArgument,
    strategies: Annotated[
        str, typer.Option(help="Which to compare, between commas: random,paper,margin,diverse.")
    ] = "random,paper,margin,diverse",
    splits: Annotated[int, typer.Option(min=2, help="Random splits into training and test passages.")] = 100,
    start: Annotated[int, typer.Option(min=2, help="Labels before the first choice.")] = 20,
    batch: Annotated[int, typer.Option(min=1, help="Labels a round.")] = 10,
    test_share: Annotated[float, typer.Option(help="Share of the questions that is measured on.")] = 0.25,
    zero_shot: Annotated[
        str | None, typer.Option(help="Model whose untrained verdicts are shown beside, for example local:smollm2.")
    ] = None,
    encoder: EncoderOption = "local:minilm",
    store: Annotated[
        Path | None, typer.Option(help="Keep finished splits here, so that the same command goes on.")
    ] = None,
    html: HtmlOption = None,
    reach: ReachOptions = ReachOptions(),
    prompts: PromptsOption = None,
    field: FieldOption = None,
    seed: SeedOption = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play active learning through on labels that are known: precision over label count, strategy by strategy."""
    from climassay.generation.validation import TextReader, load_validator, read_label_set
    from climassay.generation.validation.active_learning import (
        SimulationItems,
        SimulationSettings,
        simulate,
        simulation_report,
        simulation_tables,
        summarise,
    )
    from climassay.models.encoders.loading import load_encoder

    names: Any = tuple(name.strip() for name in strategies.split(","))
    settings = SimulationSettings(names, splits, test_share, start, batch, seed=seed)
    table = read_label_set(labels)
    asked = None
    if zero_shot is not None:
        load = reach.loader(workspace, quiet=True)
        asked = load_validator(f"prompted:{zero_shot}", load=load, prompts=prompts, subject=_subject(field))
    items = SimulationItems.read(table, TextReader(load_encoder(encoder)), zero_shot=asked)
    with counting("Playing splits through", splits, quiet=as_json) as advance:
        results = simulate(items, settings, store=store, on_split=advance)
    summary = summarise(items, results, seed=seed)
    if html is not None:
        write_text(html, simulation_report(summary, settings, table.drafts).to_html())
    if as_json:
        print_json({"file": str(labels), "sha256": table.sha256, "settings": settings, "summary": summary})
        return
    show(simulation_tables(summary, settings))
    note(f"Report written to {html}." if html else "")


@app.command(name="show")
def show_command(
    validator: Annotated[Path, typer.Argument(help="A trained validator: its file, adapter folder or state file.")],
    as_json: JsonOption = False,
) -> None:
    """What a trained validator is: its data, figures and threshold; nothing is loaded but its description."""
    from climassay.generation.validation import read_learned
    from climassay.generation.validation.labels import threshold_table
    from climassay.reporting import Table

    learned = read_learned(validator)
    source = card(learned.provenance)
    facts = {**source.pop("settings"), **source}
    if as_json:
        print_json({"validator": str(validator), **facts, "threshold": learned.threshold})
        return
    rows = [(name.replace("_", " "), _words(value)) for name, value in facts.items() if value not in ("", (), None)]
    threshold = [] if learned.threshold is None else [threshold_table(learned.threshold)]
    show([Table.of(str(validator), ("", ""), rows, left=2), *threshold])


def open_reader(
    method: str,
    *,
    model: str,
    encoder: str,
    layers: tuple[int, ...] = (),
    load: "LoadModel | None" = None,
    prompts: Path | None = None,
    subject: "Subject | None" = None,
) -> "Reader":
    """What a validator that is to be trained with ``features`` or as a ``probe`` reads of drafts.

    Raises:
        InputError: The model does not show its states.
    """
    from climassay.generation import Subject
    from climassay.generation.validation import StateReader, TextReader, validation_prompt

    if method == Method.features:
        from climassay.models.encoders.loading import load_encoder

        return TextReader(load_encoder(encoder))
    from climassay.models import OpenWeights, load_model

    loaded = (load or load_model)(model)
    if not isinstance(loaded, OpenWeights):
        raise InputError(f"A probe reads hidden states: use a local: model, not {model}.")
    return StateReader(loaded, validation_prompt(prompts), layers, activation_store(), subject or Subject())


def _server(model: str, base_url: str | None) -> tuple[str | None, str]:
    """Address and name of a model for a fine-tuning job."""
    from climassay.models.servers import OPENAI, find_server, is_served

    provider, _, name = model.partition(":")
    if not is_served(model):
        raise InputError(f"A fine-tuning job needs a server's model: write openai:NAME, not {model}.")
    if provider == OPENAI:
        return base_url, model
    # Found again by its address, to which the provider's key is bound.
    return find_server(provider, base_url).base_url, f"{OPENAI}:{name}"


def _subject(field: str | None) -> "Subject":
    from climassay.generation import Subject

    return Subject() if field is None else Subject(field=field)


def _tell_skipped(table: "LabelSet") -> None:
    if table.skipped:
        note(f"{len(table.skipped)} labelled rows left out, the first: {table.skipped[0]}.")


def _words(value: Any) -> str:
    """A value as a reader wants it."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
