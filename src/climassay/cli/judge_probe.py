"""``climassay judge train`` and ``judge ablate``: make a probe, and see whether the model uses what it reads."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from climassay.cli.judge_options import (
    LABELLED,
    ModelSetup,
    PairsOption,
    QualityOptions,
    RegularisationOption,
    TableOptions,
    TiesOption,
    label_column,
    opened,
    probe_settings,
    tell_skipped,
)
from climassay.cli.learning_options import (
    HtmlOption,
    LayerOption,
    OutputOption,
    SeedOption,
    card,
    check_model_path,
    counting,
    note,
    show,
)
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, print_json, write_text
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.judging.candidates import ProbeMethod
    from climassay.judging.causal import Scope


@grouped
def train(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help=LABELLED)],
    output: OutputOption,
    table: TableOptions,
    asked: QualityOptions,
    method: Annotated[
        str, typer.Option(help="ppairs, ppairs-length, principal, pointwise or pointwise-length.")
    ] = "ppairs",
    layer: LayerOption = None,
    pairs_per_item: PairsOption = None,
    ties: TiesOption = "drop",
    regularisation: RegularisationOption = None,
    seed: SeedOption = 0,
    html: HtmlOption = None,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Train a probe on labelled items, with its figures on held-out ones; without --layer, four layers are tried."""
    from climassay.judging.judges import Harvester, layer_choices, layers_of, open_weights
    from climassay.judging.probe import save_probe
    from climassay.judging.prompts import Questions
    from climassay.judging.report import evidence_table, training_report
    from climassay.judging.training import train_probe

    quality = asked.one()
    settings = probe_settings(layer, ties, regularisation, seed)
    read = table.read(labels, label=label_column(table, asked, quality.name))
    check_model_path(output)
    config = {"file": str(labels), "method": method, "model": setup.model, "layers": layer or "four of the upper half"}
    with (
        opened(setup, quiet=as_json) as resources,
        resources.records.run(command="judge train", config=config, seeds={"seed": seed}) as run,
        counting(f"Reading {setup.model}", quiet=as_json) as advance,
    ):
        model = open_weights(resources.model, "Training a probe")
        settings = replace(settings, layers=layer_choices(model, settings.layers))
        questions, layers = Questions(quality, setup.prompts), layers_of(settings.layers)
        trained = train_probe(
            read.items,
            Harvester(model, questions, layers, resources.activations, setup.token_budget),
            method=cast("ProbeMethod", method),
            settings=settings,
            pairs_per_item=pairs_per_item,
            seed=seed,
            on_progress=advance,
        )
        known, cost = trained.calibration, trained.cost
        data: dict[str, Any] = {
            "run": run.id,
            "probe": str(output),
            "quality": quality.name,
            "accuracy_held_out": asdict(trained.accuracy),
            "longer": asdict(trained.longer),
            "versus_longer": {**asdict(trained.versus_longer.difference), "p_value": trained.versus_longer.p_value},
            "calibration": None if known is None else asdict(known),
            "tie_band": trained.probe.tie_band,
            "scale": trained.probe.scale,
            "regularisation_path": None if trained.path is None else trained.path._asdict(),
            "explained_variance": list(trained.picture.explained),
            "n_items": trained.n_items,
            "n_groups": trained.n_groups,
            "n_pairs": trained.n_pairs,
            "failed": trained.failed,
            **asdict(cost),
            "provenance": card(trained.probe.provenance),
        }
        run.save_results("probe", [data])
    save_probe(trained.probe, output)
    if html:
        write_text(html, training_report(trained, labels.name).to_html())
    if as_json:
        print_json(data)
        return
    tell_skipped(read)
    show([evidence_table(trained)])
    if known is not None:
        note(
            f"Brier score {known.brier:.3f} (constant {known.brier_constant:.3f}), calibration error "
            f"{known.expected_calibration_error:.3f}."
        )
    note(
        f"Trained on {trained.n_items} items ({trained.n_pairs} pairs, {trained.failed} requests failed): "
        f"{cost.stored} requests from disk, {cost.computed} computed. Saved as {output}."
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
    pairs_per_item: PairsOption = None,
    seed: SeedOption = 0,
    setup: ModelSetup = ModelSetup(),
    as_json: JsonOption = False,
) -> None:
    """Take a probe's direction out of the model and report how its own zero-shot preference changes."""
    import numpy as np

    from climassay.judging.candidates import pairs_within
    from climassay.judging.causal import ablate as run_ablation
    from climassay.judging.judges import Harvester, probe_judge
    from climassay.judging.probe import load_probe
    from climassay.judging.prompts import Questions
    from climassay.judging.report import ablation_table
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
        opened(setup, quiet=as_json, dtype=known.provenance.dtype) as resources,
        resources.records.run(command="judge ablate", config=config, seeds={"seed": seed}) as run,
        counting(f"Asking {setup.model}", 2 * len(pairs) * (2 + controls), quiet=as_json) as advance,
    ):
        if not isinstance(resources.model, LocalModel):
            raise InputError(f"A direction can be taken out of a local: model only, not out of {resources.model.name}.")
        layers = known.provenance.layers
        harvester = Harvester(resources.model, questions, layers, resources.activations, setup.token_budget)
        found = run_ablation(
            resources.model,
            questions,
            known,
            probe_judge(known, harvester),
            read.items,
            pairs,
            scope=cast("Scope", scope),
            controls=controls,
            seed=seed,
            on_progress=advance,
        )
        data = {"run": run.id, **asdict(found)}
        run.save_results("ablation", [data])
    if as_json:
        print_json(data)
        return
    tell_skipped(read)
    show([ablation_table(found)])
