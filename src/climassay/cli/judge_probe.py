"""``climassay judge train`` and ``judge ablate``: make a probe, and see whether the model uses what it reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from climassay.cli.judge_benchmark import label_column, probe_settings, with_layers
from climassay.cli.judge_options import ModelSetup, QualityOptions, TableOptions, opened, tell_skipped
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.judging.causal import Ablation, Scope
    from climassay.judging.training import ProbeMethod, TrainedProbe


@grouped
def train(
    file: Annotated[
        Path, typer.Argument(help="Labelled items: CSV, TSV, JSON, JSONL or Parquet, also .gz; or primer:claims.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The probe's file, for example probe.safetensors.")],
    table: TableOptions,
    asked: QualityOptions,
    method: Annotated[
        str, typer.Option(help="ppairs, ppairs-length, principal, pointwise or pointwise-length.")
    ] = "ppairs",
    layer: Annotated[
        list[str] | None,
        typer.Option(
            help="Layer to read (-1: last), several side by side as 16,-1; repeat to have the best chosen by "
            "cross-validation.  [default: four of the upper half]"
        ),
    ] = None,
    pairs_per_item: Annotated[
        int | None, typer.Option(min=1, help="Compare each item with so many others instead of all of its group.")
    ] = None,
    ties: Annotated[str, typer.Option(help="Pairs of equal labels: drop, keep or three-way.")] = "drop",
    regularisation: Annotated[
        float | None, typer.Option(help="Inverse penalty C; by default chosen by cross-validation.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of pairs, folds and bootstrap.")] = 0,
    html: Annotated[Path | None, typer.Option(help="Write the evidence as a self-contained HTML report.")] = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Train a probe on labelled items, with its accuracy and calibration on held-out ones."""
    from climassay.judging.asking import Questions
    from climassay.judging.judges import layers_of, open_weights
    from climassay.judging.probe import save_probe
    from climassay.judging.probing import Harvester
    from climassay.judging.report import training_report
    from climassay.judging.training import train_probe

    quality = asked.one()
    settings = probe_settings(layer, ties, regularisation, seed)
    read = table.read(file, label=label_column(table, asked, quality.name))
    if output.is_dir():
        raise InputError(f"{output} is a folder: give the probe a file's name, for example {output}/probe.safetensors.")
    if not output.parent.is_dir():
        raise InputError(f"The folder of {output} does not exist: make it first, or choose another place.")
    questions = Questions(quality, setup.prompts)
    config = {
        "file": str(file),
        "method": method,
        "model": setup.model,
        "layers": layer or "four of the upper half",
    }
    with (
        opened(setup, quiet=as_json) as bench,
        bench.records.run(command="judge train", config=config, seeds={"seed": seed}) as run,
        progress_bar(as_json) as progress,
    ):
        model = open_weights(bench.model, "Training a probe")
        settings = with_layers(settings, model)
        task = progress.add_task(f"Reading {setup.model}", total=None)
        trained = train_probe(
            read.items,
            Harvester(model, questions, layers_of(settings.layers), bench.activations, setup.token_budget),
            method=cast("ProbeMethod", method),
            settings=settings,
            pairs_per_item=pairs_per_item,
            seed=seed,
            on_progress=lambda done: progress.advance(task, done),
        )
        data = {"run": run.id, "probe": str(output), "quality": quality.name, **_training_data(trained)}
        run.save_results("probe", [data])
    save_probe(trained.probe, output)
    if html:
        write_text(html, training_report(trained, file.name).to_html())
    if as_json:
        print_json(data)
        return
    tell_skipped(read)
    _show_training(trained, output)


def _training_data(trained: "TrainedProbe") -> dict[str, Any]:
    from dataclasses import asdict

    source = trained.probe.provenance
    return {
        "accuracy_held_out": asdict(trained.accuracy),
        "longer": asdict(trained.longer),
        "versus_longer": {**asdict(trained.versus_longer.difference), "p_value": trained.versus_longer.p_value},
        "calibration": None if trained.calibration is None else asdict(trained.calibration),
        "tie_band": trained.probe.tie_band,
        "scale": trained.probe.scale,
        "regularisation_path": None if trained.path is None else trained.path._asdict(),
        "explained_variance": list(trained.picture.explained),
        "n_items": trained.n_items,
        "n_groups": trained.n_groups,
        "n_pairs": trained.n_pairs,
        "failed": trained.failed,
        **asdict(trained.cost),
        "provenance": asdict(source),
    }


def _show_training(trained: "TrainedProbe", output: Path) -> None:
    from climassay.judging.report import evidence_table
    from climassay.reporting import as_rich

    stdout_console().print(as_rich(evidence_table(trained)))
    known, cost = trained.calibration, trained.cost
    note = stderr_console()
    if known is not None:
        note.print(
            f"Brier score {known.brier:.3f} (constant {known.brier_constant:.3f}), calibration error "
            f"{known.expected_calibration_error:.3f}.",
            highlight=False,
        )
    note.print(
        f"Trained on {trained.n_items} items ({trained.n_pairs} pairs, {trained.failed} requests failed): "
        f"{cost.stored} requests from disk, {cost.computed} computed. Saved as {output}.",
        highlight=False,
    )


@grouped
def ablate(
    probe: Annotated[Path, typer.Argument(help="A probe that climassay judge train made.")],
    file: Annotated[Path, typer.Argument(help="Items, labelled or not: CSV, TSV, JSON, JSONL or Parquet, also .gz.")],
    table: TableOptions,
    asked: QualityOptions,
    scope: Annotated[
        str, typer.Option(help="Where the direction is taken out: probed layer, onward from it, or all layers.")
    ] = "onward",
    controls: Annotated[int, typer.Option(min=0, help="Random directions to compare with.")] = 10,
    pairs_per_item: Annotated[
        int | None, typer.Option(min=1, help="Compare each item with so many others instead of all of its group.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of random directions, pairs and bootstrap.")] = 0,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Take a probe's direction out of the model and report how its own zero-shot preference changes."""
    import numpy as np

    from climassay.judging.asking import Questions
    from climassay.judging.causal import ablate as run_ablation
    from climassay.judging.folds import pairs_within
    from climassay.judging.judges import probe_judge
    from climassay.judging.probe import load_probe
    from climassay.judging.probing import Harvester
    from climassay.judging.training import quality_of
    from climassay.models.local.model import LocalModel

    if scope not in ("probed", "onward", "all"):
        raise InputError(f"--scope is probed, onward or all, not {scope!r}.")
    known = load_probe(probe)
    questions = Questions(asked.one() if asked.given else quality_of(known.provenance), setup.prompts)
    read = table.read(file, label=table.label, label_optional=True)
    groups = [item.group for item in read.items]
    pairs = pairs_within(groups, np.arange(len(groups)), pairs_per_item, np.random.default_rng(seed))
    config = {"probe": str(probe), "file": str(file), "model": setup.model, "scope": scope, "controls": controls}
    with (
        opened(setup, quiet=as_json, dtype=known.provenance.dtype) as bench,
        bench.records.run(command="judge ablate", config=config, seeds={"seed": seed}) as run,
        progress_bar(as_json) as progress,
    ):
        if not isinstance(bench.model, LocalModel):
            raise InputError(f"A direction can be taken out of a local: model only, not out of {bench.model.name}.")
        layers = known.provenance.layers
        harvester = Harvester(bench.model, questions, layers, bench.activations, setup.token_budget)
        task = progress.add_task(f"Asking {setup.model}", total=2 * len(pairs) * (2 + controls))
        found = run_ablation(
            bench.model,
            questions,
            known,
            probe_judge(known, harvester),
            read.items,
            pairs,
            scope=cast("Scope", scope),
            controls=controls,
            seed=seed,
            on_progress=lambda done: progress.advance(task, done),
        )
        data = {"run": run.id, **_ablation_data(found)}
        run.save_results("ablation", [data])
    if as_json:
        print_json(data)
        return
    tell_skipped(read)
    _show_ablation(found)


def _ablation_data(found: "Ablation") -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(found)


def _show_ablation(found: "Ablation") -> None:
    from climassay.judging.report import ablation_table
    from climassay.reporting import as_rich

    stdout_console().print(as_rich(ablation_table(found)))
