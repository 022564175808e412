"""``climassay validator``: train, apply, simulate and show validators of generated questions."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.judge_options import numbers
from climassay.cli.model_options import PromptsOption, ReachOptions
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    WorkspaceOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.cli.validator_output import (
    decision_counts,
    finish,
    head_data,
    show_simulation,
    threshold_table,
    trained_facts,
    words,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.generation import Subject
    from climassay.generation.validation import (
        LabelSet,
        SimulationItems,
        TrainedHead,
        TrainedModel,
    )
    from climassay.generation.validation.loading import LoadModel

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
EncoderOption = Annotated[str, typer.Option(help="Encoder of the features and of the clusters.")]


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
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation of features and probe.")] = 5,
    replace: Annotated[bool, typer.Option("--replace", help="Replace another training's adapter.")] = False,
    reach: ReachOptions = ReachOptions(),
    prompts: PromptsOption = None,
    field: FieldOption = None,
    html: Annotated[Path | None, typer.Option(help="Write a report with the reliability figure.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, splits and training.")] = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a validator on experts' labels, with its figures on passages that it was not trained on."""
    from climassay.generation.validation import read_label_set, save_head

    table, subject = read_label_set(labels), _subject(field)
    load = reach.loader(workspace, quiet=True)
    if method in (Method.features, Method.probe):
        _check_place(output)
        head = _train_head(
            table, method, model, encoder, layer, precision, folds, (prompts, load, subject), seed, as_json
        )
        save_head(head.head, output)
        data = {"validator": str(output), **head_data(head)}
        finish(table, head, data, head.head.threshold, html, as_json)
        return
    if method is Method.adapter:
        tuned = _train_adapter(
            table, model, output, preset, epochs, hold_out, precision, prompts, subject, seed, replace, as_json
        )
    else:
        tuned = _train_api(
            table, model, output, epochs, hold_out, precision, prompts, subject, (reach.base_url, load), seed, as_json
        )
    from climassay.generation.validation.fine_tuning import described

    data = {**described(tuned), "file": str(output), "refusal": tuned.refusal}
    finish(table, tuned, data, tuned.facts.threshold, html, as_json)


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

    given = list(read_drafts(drafts))
    load = reach.loader(workspace, quiet=True)
    judge = load_validator(validator, load=load, prompts=prompts, subject=_subject(field), store=_store())
    with progress_bar(as_json) as progress:
        task = progress.add_task(f"Asking {judge.name}", total=sum(draft.usable for draft in given))
        decided = validate(given, judge, threshold, on_judged=lambda count: progress.advance(task, count))
    if output is not None:
        write_drafts(output, decided)
    counts = decision_counts(given, decided)
    if as_json:
        rows = [
            {"id": draft.id, "accepted": draft.decisions[-1].accepted, "probability": draft.decisions[-1].score}
            for before, draft in zip(given, decided, strict=True)
            if len(draft.decisions) > len(before.decisions)
        ]
        print_json({"validator": judge.name, "counts": counts, "decisions": rows})
        return
    from climassay.reporting import Table, as_rich

    shown = Table.of(f"Decisions of {judge.name}", ("decision", "questions"), [(k, str(v)) for k, v in counts.items()])
    stdout_console().print(as_rich(shown))
    if output is not None:
        stderr_console().print(f"Written to {output}.", highlight=False)


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
    html: Annotated[Path | None, typer.Option(help="Write figures and tables as a self-contained report.")] = None,
    reach: ReachOptions = ReachOptions(),
    prompts: PromptsOption = None,
    field: FieldOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Of splits and choices.")] = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play active learning through on labels that are known: precision over label count, strategy by strategy."""
    from climassay.generation.validation import (
        SimulationSettings,
        read_label_set,
        simulate,
        simulation_report,
        summarise,
    )

    names: Any = tuple(name.strip() for name in strategies.split(","))
    settings = SimulationSettings(names, splits, test_share, start, batch, seed=seed)
    table = read_label_set(labels)
    with progress_bar(as_json) as progress:
        items = _items(table, encoder, zero_shot, (reach.loader(workspace, quiet=True), prompts, _subject(field)))
        task = progress.add_task("Playing splits through", total=splits)
        results = simulate(items, settings, store=store, on_split=lambda count: progress.advance(task, count))
    summary = summarise(items, results, seed=seed)
    if html is not None:
        write_text(html, simulation_report(summary, settings, table.drafts).to_html())
    if as_json:
        print_json({"file": str(labels), "sha256": table.sha256, "settings": settings, "summary": summary})
        return
    show_simulation(summary, settings, html)


@app.command()
def show(
    validator: Annotated[Path, typer.Argument(help="A trained validator: its file, adapter folder or state file.")],
    as_json: JsonOption = False,
) -> None:
    """What a trained validator is: its data, figures and threshold; nothing is loaded but its description."""
    facts, threshold = trained_facts(validator)
    if as_json:
        print_json({"validator": str(validator), **facts, "threshold": threshold})
        return
    from climassay.reporting import Table, as_rich

    rows = [(name.replace("_", " "), words(value)) for name, value in facts.items()]
    stdout_console().print(as_rich(Table.of(str(validator), ("", ""), rows, left=2)))
    if threshold is not None:
        stdout_console().print(as_rich(threshold_table(threshold)))


def _check_place(output: Path) -> None:
    if output.is_dir() or not output.parent.is_dir():
        raise InputError(f"{output} is no place for a file: give the validator a name in a folder that exists.")


def _subject(field: str | None) -> "Subject":
    from climassay.generation import Subject

    return Subject() if field is None else Subject(field=field)


def _store() -> Any:
    from climassay.learning.activation_store import ActivationStore
    from climassay.workspace import cache_folder

    return ActivationStore(cache_folder() / "activations")


def _train_head(
    table: "LabelSet",
    method: Method,
    model: str,
    encoder: str,
    layer: str | None,
    precision: float | None,
    folds: int,
    setup: "tuple[Path | None, LoadModel, Subject]",
    seed: int,
    quiet: bool,
) -> "TrainedHead":
    from climassay.generation.validation import train_features, train_probe
    from climassay.generation.validation.prompting import validation_prompt

    prompts, load, subject = setup
    with progress_bar(quiet) as progress:
        reading = progress.add_task("Reading questions", total=len(table.drafts))
        fitting = progress.add_task("Cross-validating", total=folds)
        options: dict[str, Any] = {
            "precision": precision,
            "folds": folds,
            "seed": seed,
            "on_read": lambda count: progress.advance(reading, count),
            "on_fold": lambda count: progress.advance(fitting, count),
        }
        if method is Method.features:
            from climassay.models.encoder import load_encoder

            return train_features(table, load_encoder(encoder), **options)
        from climassay.models import OpenWeights

        loaded = load(model)
        if not isinstance(loaded, OpenWeights):
            raise InputError(f"A probe reads hidden states: use a local: model, not {model}.")
        layers = numbers(layer, "--layer") if layer else ()
        options |= {"prompt": validation_prompt(prompts), "subject": subject, "store": _store()}
        return train_probe(table, loaded, layers=layers, **options)


def _train_adapter(
    table: "LabelSet",
    model: str,
    folder: Path,
    preset: str,
    epochs: int | None,
    hold_out: float,
    precision: float | None,
    prompts: Path | None,
    subject: "Subject",
    seed: int,
    replace: bool,
    quiet: bool,
) -> "TrainedModel":
    from climassay.generation.validation import train_adapter
    from climassay.generation.validation.prompting import validation_prompt
    from climassay.tuning import find_preset

    config = find_preset(preset).config.with_values({"epochs": epochs, "seed": seed})
    with progress_bar(quiet) as progress:
        task = progress.add_task(f"Training {model}", total=None)
        return train_adapter(
            table,
            model,
            folder,
            config,
            prompt=validation_prompt(prompts),
            subject=subject,
            hold_out=hold_out,
            precision=precision,
            seed=seed,
            replace_other=replace,
            on_progress=lambda now: progress.update(task, completed=now.step, total=now.steps),
        )


def _train_api(
    table: "LabelSet",
    model: str,
    state: Path,
    epochs: int | None,
    hold_out: float,
    precision: float | None,
    prompts: Path | None,
    subject: "Subject",
    server: "tuple[str | None, LoadModel]",
    seed: int,
    quiet: bool,
) -> "TrainedModel":
    from climassay.generation.validation import train_api
    from climassay.generation.validation.prompting import validation_prompt
    from climassay.models.servers import OPENAI, find_server, is_served

    if state.is_dir():
        raise InputError(f"{state} is a folder: name the file that keeps how far the fine-tuning has come.")
    base_url, load = server
    provider, _, name = model.partition(":")
    if not is_served(model):
        raise InputError(f"A fine-tuning job needs a server's model: write openai:NAME, not {model}.")
    if provider != OPENAI:
        # Found again by its address, to which the provider's key is bound.
        base_url, model = find_server(provider, base_url).base_url, f"{OPENAI}:{name}"
    at_server: Any = partial(load, base_url=base_url)
    with progress_bar(quiet) as progress:
        task = progress.add_task("Fine-tuning job", total=None)
        return train_api(
            table,
            model,
            state,
            at_server,
            prompt=validation_prompt(prompts),
            subject=subject,
            hold_out=hold_out,
            precision=precision,
            seed=seed,
            base_url=base_url,
            epochs=epochs or 3,
            on_status=lambda now: progress.update(task, description=f"Fine-tuning job is {now.status}"),
        )


def _items(
    table: "LabelSet", encoder: str, zero_shot: str | None, setup: "tuple[LoadModel, Path | None, Subject]"
) -> "SimulationItems":
    import numpy as np

    from climassay.generation.validation import SimulationItems, draft_vectors, load_validator
    from climassay.generation.validation.labels import labels_array, source_groups
    from climassay.generation.validation.reading import TextReader
    from climassay.models.encoder import load_encoder

    load, prompts, subject = setup
    vectors, drafts = load_encoder(encoder), [one.draft for one in table.drafts]
    judged = None
    if zero_shot is not None:
        asked = load_validator(f"prompted:{zero_shot}", load=load, prompts=prompts, subject=subject)
        given = asked.judge(drafts)
        # What could not be judged is as likely as not.
        judged = np.array([0.5 if value is None else value for value in given], dtype=np.float64)
    return SimulationItems(
        table.name,
        TextReader(vectors).read(drafts).blocks,
        draft_vectors(drafts, vectors),
        labels_array(table.drafts),
        source_groups(drafts),
        judged,
    )
