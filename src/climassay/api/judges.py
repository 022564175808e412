"""Judges that order texts by a quality, and probes that learn a quality from labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import judging
from climassay.errors import InputError, NoAnswerError
from climassay.judging.settings import InsertMode, SortMethod
from climassay.models import DEFAULT_MODEL, Generator
from climassay.reporting import Report
from climassay.reporting.html import report_data
from climassay.reporting.results import AssembledResult
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.evaluation import Better, Comparer
    from climassay.judging.training import ProbeMethod
    from climassay.metrics.factual_accuracy import JudgeFailure


def rank(
    texts: "Sequence[str | judging.Item] | judging.ItemTable",
    quality: "judging.Quality | str | None" = None,
    *,
    probe: "judging.Probe | Path | str | None" = None,
    method: str | None = None,
    model: Generator | str = DEFAULT_MODEL,
    sort: SortMethod = "fitted",
    token_budget: int | None = None,
    workspace: Place = None,
    seed: int = 0,
) -> "judging.ItemRanking":
    """Rank the items of each group, best first, with only the comparisons that the sorting algorithm needs.

    Args:
        texts: Texts, or items with a context and a group, or a table of such items.
        quality: Quality to compare by: an aspect such as ``relevance``, ``claims`` (accuracy), ``confidence``, or a
            sentence that describes a quality of your own; by default the quality that the probe was trained for.
        probe: Trained probe (:func:`train_judge`), or its file.
        method: Method to use if no probe is given; by default ``zero-shot``, or ``pairs`` if the model does not expose
            its weights.
        model: Model that compares the texts; with a probe, the model whose hidden states the probe was trained on.
        sort: Sorting algorithm.
        token_budget: Maximum number of tokens in one forward pass.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        seed: Random seed for sampling, splits, folds and resampling.

    Raises:
        InputError: There are no texts, no quality is named, or the probe was trained on another model.
        ModelError: The model cannot be loaded.

    Example:
        >>> ranking = rank(["The sea level rises.", "Ice is a fruit."], "claims", workspace=folder)
        >>> [row.rank for row in ranking.ranked]
        [1, 2]
    """
    from climassay.judging.opened_judge import JudgeSpec, as_item_table

    judge, table = JudgeSpec(quality, probe, method, model, token_budget), as_item_table(texts)
    config = {"file": table.file, "items": len(table.items)}
    with judge.opened(workspace, "judge rank", config, {"sort": seed}) as comparer:
        result = judging.rank_items(
            table.items, comparer.method, sort=sort, seed=seed, on_progress=comparer.on_progress
        )
        comparer.check_answered(result.failed, result.comparisons)
        comparer.run.save_results("ranking", result.rows())
    notes = (*comparer.notes, *table.notes)
    result_fields: dict[str, Any] = {
        "quality": comparer.quality.name,
        "method": comparer.method.name,
        "file": Path(table.file).name,
    }
    return replace(result, run=comparer.run.id, messages=notes, **result_fields)


def insert(
    texts: "Sequence[str | judging.Item] | judging.ItemTable",
    anchors: "Sequence[judging.Item] | judging.ItemTable",
    levels: Sequence[str] = (),
    quality: "judging.Quality | str | None" = None,
    *,
    probe: "judging.Probe | Path | str | None" = None,
    method: str | None = None,
    model: Generator | str = DEFAULT_MODEL,
    samples: int = 10,
    mode: InsertMode = "band",
    token_budget: int | None = None,
    workspace: Place = None,
    seed: int = 0,
) -> "judging.InsertionResult":
    """Assign new items a label on an ordered scale by comparing them with labelled anchors.

    Args:
        texts: New texts or items, or a table of items; labels, if they have any, are used only to score the result.
        anchors: Labelled items, or a table of them; a label is an index into ``levels``.
        levels: Names of the labels, lowest first; by default the names in the anchors' table.
        quality: Quality to compare by: an aspect such as ``relevance``, ``claims`` (accuracy), ``confidence``, or a
            sentence that describes a quality of your own; by default the quality that the probe was trained for.
        probe: Trained probe (:func:`train_judge`), or its file.
        method: Method to use if no probe is given; by default ``zero-shot``, or ``pairs`` if the model does not expose
            its weights.
        model: Model that compares the texts; with a probe, the model whose hidden states the probe was trained on.
        samples: Number of anchors of each label with which an item is compared.
        mode: Rule by which an item and an anchor count as equal.
        token_budget: Maximum number of tokens in one forward pass.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        seed: Random seed for sampling, splits, folds and resampling.

    Raises:
        InputError: A label has no anchors, a text is among the anchors, or no quality is named.
        ModelError: The model cannot be loaded.
    """
    from climassay.judging.anchor_labelling import TIE_BAND
    from climassay.judging.opened_judge import JudgeSpec, as_item_table

    judge, table, anchor_table = (
        JudgeSpec(quality, probe, method, model, token_budget),
        as_item_table(texts),
        as_item_table(anchors),
    )
    config = {
        "file": table.file,
        "items": len(table.items),
        "anchors": anchor_table.file,
        "mode": mode,
        "samples": samples,
    }
    with judge.opened(workspace, "judge insert", config, {"anchors": seed}) as comparer:
        result = judging.insert_items(
            table.items,
            anchor_table.items,
            tuple(levels) or anchor_table.levels,
            comparer.method,
            samples=samples,
            mode=mode,
            tie_band=comparer.tie_band or TIE_BAND,
            seed=seed,
            on_progress=comparer.on_progress,
        )
        comparer.run.save_results("labels", result.labels())
    notes = (*comparer.notes, *anchor_table.notes, *table.notes)
    return replace(
        result,
        run=comparer.run.id,
        quality=comparer.quality.name,
        method=comparer.method.name,
        messages=notes,
    )


def evaluate_judge(
    items: "Sequence[judging.Item] | judging.ItemTable",
    quality: "judging.Quality | str | None" = None,
    *,
    probe: "judging.Probe | Path | str | None" = None,
    method: str | None = None,
    model: Generator | str = DEFAULT_MODEL,
    include_trained: bool = False,
    pairs_per_item: int | None = None,
    token_budget: int | None = None,
    workspace: Place = None,
    seed: int = 0,
) -> AssembledResult:
    """Score a judge on labelled items that it was not trained on, and compare it with two baselines.

    One baseline prefers the longer text, the other always gives the same answer.

    Args:
        items: Items with labels.
        quality: Quality to compare by: an aspect such as ``relevance``, ``claims`` (accuracy), ``confidence``, or a
            sentence that describes a quality of your own; by default the quality that the probe was trained for.
        probe: Trained probe (:func:`train_judge`), or its file.
        method: Method to use if no probe is given; by default ``zero-shot``, or ``pairs`` if the model does not expose
            its weights.
        model: Model that compares the texts; with a probe, the model whose hidden states the probe was trained on.
        include_trained: Whether items of the training data are scored as well.
        pairs_per_item: Number of other items with which each item is compared; by default all items of its group.
        token_budget: Maximum number of tokens in one forward pass.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        seed: Random seed for sampling, splits, folds and resampling.

    Raises:
        InputError: The probe was trained on all the items, or the judge cannot be opened.
    """
    from climassay.judging.benchmark import result_row
    from climassay.judging.opened_judge import JudgeSpec, as_item_table
    from climassay.judging.report import judge_sections, judge_tables

    judge, table = JudgeSpec(quality, probe, method, model, token_budget), as_item_table(items)
    provenance = None if judge.loaded_probe is None or include_trained else judge.loaded_probe.provenance
    unseen_items = [item for item in table.items if provenance is None or not provenance.was_trained_on(item.text)]
    with judge.opened(workspace, "judge evaluate", {"file": table.file}, {"seed": seed}) as comparer:
        if not unseen_items:
            name = probe if isinstance(probe, (str, Path)) else "The judge"
            raise InputError(f"{name} was trained on every item of {table.file}: give others, or --include-trained.")
        scores = judging.evaluate_judge(
            unseen_items,
            comparer.method,
            quality=comparer.quality.name,
            band=comparer.tie_band,
            pairs_per_item=pairs_per_item,
            seed=seed,
            on_progress=comparer.on_progress,
        )
        result = judging.JudgeResult(comparer.quality, scores, comparer.cost, table.skipped)
        row, n_omitted = result_row(result), len(table.items) - len(unseen_items)
        comparer.run.save_results("judges", [row])
        page = Report(
            f"{judge.model_name} as a judge of {Path(table.file).name}",
            f"{scores.n_items} labelled items, by {scores.method}.",
            tuple(judge_sections([result])),
        )
        comparer.run.save_results("report", [report_data(page)])
        data = {"run": comparer.run.id, "file": table.file, "model": judge.model_name, "left_out": n_omitted, **row}
    note = f"{n_omitted} items are left out: the probe was trained on them." if n_omitted else ""
    return AssembledResult(data, judge_tables([result]), noted=(*comparer.notes, *table.notes, *filter(None, [note])))


def compare_texts(
    first: str,
    second: str,
    quality: "judging.Quality | str | None" = None,
    *,
    probe: "judging.Probe | Path | str | None" = None,
    method: str | None = None,
    model: Generator | str = DEFAULT_MODEL,
    context: str = "",
    token_budget: int | None = None,
    workspace: Place = None,
) -> AssembledResult:
    """Estimate the probability that the first of two texts has more of a quality, averaged over both orders.

    Args:
        first: First text, in quotes.
        second: Second text, in quotes.
        quality: Quality to compare by: an aspect such as ``relevance``, ``claims`` (accuracy), ``confidence``, or a
            sentence that describes a quality of your own; by default the quality that the probe was trained for.
        probe: Trained probe (:func:`train_judge`), or its file.
        method: Method to use if no probe is given; by default ``zero-shot``, or ``pairs`` if the model does not expose
            its weights.
        model: Model that compares the texts; with a probe, the model whose hidden states the probe was trained on.
        context: Source text of both texts, such as the article that they summarise.
        token_budget: Maximum number of tokens in one forward pass.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A text is empty, or the judge cannot be opened.
        NoAnswerError: The model gave no answer.
    """
    import numpy as np

    from climassay.judging.item_tables import clean_text
    from climassay.judging.opened_judge import JudgeSpec
    from climassay.judging.preferences import CERTAIN_LOG_ODDS

    texts = [clean_text(text) for text in (first, second)]
    if not all(texts):
        raise InputError("One of the two texts is empty: there is nothing to compare.")
    items = [judging.Item(name, text, clean_text(context)) for name, text in zip("AB", texts, strict=True)]
    judge = JudgeSpec(quality, probe, method, model, token_budget)
    with judge.opened(workspace, "judge compare", {"texts": texts}) as comparer:
        result = comparer.method.compare(items, np.array([[0, 1]]))
        comparer.check_answered(int(result.failed[0]), 1)
        if result.failed[0]:
            raise NoAnswerError("The model gave no answer to the comparison.")
        log_odds, probability = float(result.log_odds[0]), float(result.probabilities[0])
        better = (
            "equal"
            if abs(log_odds) <= comparer.tie_band or f"{probability:.3f}" == "0.500"
            else "A"
            if log_odds > 0
            else "B"
        )
        data = {
            "run": comparer.run.id,
            "quality": comparer.quality.name,
            "method": comparer.method.name,
            "model": judge.model_name,
            "better": better,
            "probability_a": probability,
            "log_odds": log_odds,
        }
        comparer.run.save_results("comparison", [data])
    verdict = "Both have about as much of it" if better == "equal" else f"{better} has more of it"
    certainty = "without a probability" if abs(log_odds) == CERTAIN_LOG_ODDS else f"P(A) = {probability:.3f}"
    sentence = f"{comparer.quality.name}: {verdict} ({certainty}, {comparer.method.name})."
    return AssembledResult(data, printed_lines=(sentence,), noted=comparer.notes)


def train_judge(
    items: "Sequence[judging.Item] | judging.ItemTable",
    quality: "judging.Quality | str",
    *,
    model: Generator | str = DEFAULT_MODEL,
    method: "ProbeMethod" = "ppairs",
    settings: "judging.ProbeSettings | None" = None,
    pairs_per_item: int | None = None,
    output: Path | str | None = None,
    workspace: Place = None,
    token_budget: int | None = None,
    seed: int = 0,
) -> "judging.TrainedProbe":
    """Train a probe on labelled items and measure it on held-out items; without --layer, four layers are tried.

    Args:
        items: Items with numeric labels, where higher is better; only items of the same group are compared.
        quality: Quality to compare by: an aspect such as ``relevance``, ``claims`` (accuracy), ``confidence``, or a
            sentence that describes a quality of your own.
        model: Model with open weights, whose hidden states are the features.
        method: Kind of probe: ppairs, ppairs-length, principal, pointwise or pointwise-length.
        settings: Layers, tie band and penalty; by default they are chosen by cross-validation.
        pairs_per_item: Number of other items with which each item is compared; by default all items of its group.
        output: File to save the probe in.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        token_budget: Maximum number of tokens in one forward pass.
        seed: Random seed for sampling, splits, folds and resampling.

    Returns:
        The probe, with its accuracy on held-out items and the accuracy of always preferring the longer text.

    Raises:
        InputError: The items have no labels, too few labels or only equal labels, the model's hidden states cannot be
            read, or the file cannot be written.
        ModelError: The model cannot be loaded.

    Example:
        >>> from climassay import Item, primer
        >>> level = primer.VERDICTS.index  # from wrong to right
        >>> labelled = [Item(claim.id, claim.claim, label=level(claim.verdict)) for claim in primer.claims()[:16]]
        >>> trained = train_judge(labelled, "claims", workspace=folder)
        >>> trained.n_items, trained.n_pairs
        (16, 120)
    """
    from climassay.judging.judges import layer_choices, layers_of, open_weights
    from climassay.judging.opened_judge import as_item_table, find_quality
    from climassay.learning.model_file import check_model_path

    output = None if output is None else Path(output)
    if output is not None:
        check_model_path(output)
    table, probe_settings = as_item_table(items), settings or judging.ProbeSettings((), seed=seed)
    with Session.opened(workspace) as session:
        prompts = judging.QualityRequests(find_quality(quality), session.options.prompts)
        weights = open_weights(session.model(model), "Training a probe")
        layer_settings = replace(probe_settings, layers=layer_choices(weights, probe_settings.layers))
        extractor = judging.StateExtractor(
            weights, prompts, layers_of(layer_settings.layers), session.activations, token_budget
        )
        layers: object = [",".join(map(str, layer)) for layer in probe_settings.layers] or "four of the upper half"
        name = model if isinstance(model, str) else model.name
        config = {"file": table.file, "method": method, "model": name, "layers": layers}
        with (
            session.run("judge train", config, {"seed": seed}) as run,
            session.progress.task(f"Reading {weights.name}") as task,
        ):
            trained_probe = judging.train_probe(
                table.items,
                extractor,
                method=method,
                settings=layer_settings,
                pairs_per_item=pairs_per_item,
                seed=seed,
                on_progress=task.advance,
            )
            file_name, notes = "" if output is None else str(output), table.notes
            trained_probe = replace(trained_probe, run=run.id, file=table.file, output=file_name, messages=notes)
            run.save_results("probe", [trained_probe.to_dict()])
            run.save_results("report", [report_data(trained_probe.report())])
    if output is not None:
        trained_probe.probe.save(output)
    return trained_probe


def side_by_side_judge(session: Session, file: Path) -> "Comparer":
    """Return a function that compares long answers with a trained judge, using the question as context.

    The probe averages the two orders of a pair, so that each pair is compared only once; log-odds within its tie band
    are a tie. The judge uses the model with which it was trained.

    Raises:
        InputError: The file is not a judge, or its model cannot be loaded.
    """
    import numpy as np

    from climassay.judging.opened_judge import JudgeSpec
    from climassay.metrics.factual_accuracy import JudgeFailure

    judge = JudgeSpec(None, file, model=judging.load_probe(file).provenance.model or DEFAULT_MODEL)

    def compare(pairs: Sequence[tuple[str, str, str, str]]) -> "list[tuple[Better, str] | JudgeFailure]":
        indices: dict[tuple[str, str], int] = {}
        positions = np.array(
            [
                [indices.setdefault((question, answer), len(indices)) for answer in (first_answer, second_answer)]
                for question, _, first_answer, second_answer in pairs
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        items = [judging.Item(str(index), answer, question, question) for (question, answer), index in indices.items()]
        distinct_pairs, pair_indices = np.unique(np.sort(positions, axis=1), axis=0, return_inverse=True)
        with judge.opened(session, "evaluate side-by-side", {"answers": len(items)}) as comparer:
            result = comparer.method.compare(items, distinct_pairs)
        outcomes: list[tuple[Better, str] | JudgeFailure] = []
        for (first_index, second_index), pair in zip(positions, pair_indices.ravel(), strict=True):
            log_odds = float(result.log_odds[pair]) * (1 if first_index < second_index else -1)
            better: Better = (
                "tie"
                if abs(log_odds) <= comparer.tie_band or first_index == second_index
                else "first"
                if log_odds > 0
                else "second"
            )
            failure = JudgeFailure("The judge's model gave no answer.")
            outcomes.append(failure if result.failed[pair] else (better, f"Log-odds {log_odds:+.2f}."))
        return outcomes

    return compare
