"""``climassay evaluate plan``, ``contamination`` and ``compare``: before and around an experiment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from climassay.cli.output import JsonOption, WorkspaceOption, print_json, stdout_console
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from climassay.evaluation.comparing import Favour, ModelMeans
    from climassay.evaluation.contamination import LabelledText
    from climassay.evaluation.planning import Assumptions
    from climassay.reporting import Table

DEFAULT_POINTS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0)
DEFAULT_ACCURACY = 0.8
DEFAULT_DEVIATION = 0.25
ANCHORS = ("accuracy", "factual_accuracy")
PUBLISHED = "published"


def plan(
    points: Annotated[
        list[float] | None,
        typer.Option("--points", "-d", help="Difference to be seen, in hundredths (per cent points); repeat."),
    ] = None,
    metric: Annotated[str, typer.Option(help="Metric, for example accuracy or factual_accuracy.")] = "accuracy",
    accuracy: Annotated[float | None, typer.Option(help="Share right of the first system.  [default: 0.8]")] = None,
    discordance: Annotated[
        float | None,
        typer.Option(help="Share of questions exactly one of two systems gets right; default: unrelated systems."),
    ] = None,
    deviation: Annotated[
        float | None, typer.Option(help="Standard deviation of scores (metrics that are means).  [default: 0.25]")
    ] = None,
    correlation: Annotated[
        float | None, typer.Option(help="Correlation of two systems' scores over questions.  [default: 0.5]")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Estimate all this from an experiment.")] = None,
    power: Annotated[float, typer.Option(help="Probability of seeing the difference.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Two-sided level of significance.")] = 0.05,
    tests: Annotated[int, typer.Option(min=1, help="Tests to correct for: the level is divided by it.")] = 1,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """How many questions are needed to see a difference between two systems."""
    from climassay.evaluation.planning import plan as make_plan
    from climassay.evaluation.planning import plan_table

    given = {"accuracy": accuracy, "discordance": discordance, "deviation": deviation, "correlation": correlation}
    assumptions = _assumptions(
        metric, {name: value for name, value in given.items() if value is not None}, run, workspace
    )
    differences = [point / 100 for point in points or DEFAULT_POINTS]
    made = make_plan(differences, assumptions, metric=metric, power=power, alpha=alpha / tests)
    if as_json:
        print_json(made)
    else:
        _show([plan_table(made)])


def _assumptions(metric: str, given: dict[str, float], run: str | None, workspace: Path | None) -> "Assumptions":
    from climassay.cli.evaluate_table import load_run
    from climassay.evaluation.planning import assume_binary, assume_from_run, assume_mean
    from climassay.metrics.registry import METRICS

    METRICS.find(metric)
    if run is not None:
        if given:
            raise InputError(f"With --run, --{next(iter(given))} is estimated from the run: leave it out.")
        return assume_from_run(load_run(run, workspace), metric)
    fitting = ("accuracy", "discordance") if METRICS[metric].binary else ("deviation", "correlation")
    strange = [name for name in given if name not in fitting]
    if strange:
        raise InputError(f"--{strange[0]} says nothing about {metric}: it takes --{' and --'.join(fitting)}.")
    if METRICS[metric].binary:
        return assume_binary(given.get("accuracy", DEFAULT_ACCURACY), given.get("discordance"))
    return assume_mean(given.get("deviation", DEFAULT_DEVIATION), given.get("correlation", 0.5))


def contamination(
    questions: Annotated[str, typer.Argument(help="Test questions: a file, or 'primer'.")],
    against: Annotated[
        list[str], typer.Option(help="Collection, file or folder of training or retrieval texts; repeat.")
    ],
    n: Annotated[int, typer.Option("-n", help="Words that make a question touched.")] = 8,
    worst: Annotated[int, typer.Option(min=0, help="Questions with the longest runs to list.")] = 10,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """How many test questions share runs of words with texts that a model has read."""
    from climassay.evaluation.contamination import contamination as compare_words
    from climassay.evaluation.contamination import contamination_tables
    from climassay.primer import named_questions

    asked = named_questions(questions).questions
    reports = [compare_words(asked, read_texts(name, workspace), n, against=name) for name in against]
    if as_json:
        print_json(
            [
                {
                    "against": one.against,
                    "n": one.n,
                    "texts": one.texts,
                    "words": one.words,
                    "questions": len(one.overlaps),
                    "touched": [overlap.question.id for overlap in one.touched()],
                    "worst": [
                        {"question": o.question.id, "level": o.question.level, "covered": o.covered, "run": o.run}
                        for o in one.worst(worst)
                    ],
                }
                for one in reports
            ]
        )
    else:
        _show([table for one in reports for table in contamination_tables(one, worst)])


def read_texts(name: str, workspace: Path | None) -> "Iterator[str | LabelledText]":
    """Texts of a question file, of other files and folders, or of a collection.

    Raises:
        InputError: There is no such file or collection, or nothing in it can be read.
    """
    path = Path(name)
    if not path.exists():
        return _collection_texts(name, workspace)
    questions = None if path.is_dir() else _question_texts(path)
    return _file_texts(path) if questions is None else iter(questions)


def _collection_texts(name: str, workspace: Path | None) -> "Iterator[str | LabelledText]":
    from climassay.corpus import Collection
    from climassay.workspace import Workspace

    try:
        collection = Collection.open(Workspace.open(workspace), name)
    except InputError as error:
        raise InputError(f"{name} is neither a file or folder nor a collection: {error}") from None
    return (text for batch in collection.texts() for text in batch)


def _question_texts(path: Path) -> "list[str | LabelledText] | None":
    """Everything a file of questions says, or None where it is no such file."""
    from climassay.evaluation.contamination import LabelledText
    from climassay.questions import read_questions

    try:
        asked = read_questions(path).questions
    except InputError:
        return None
    return [
        LabelledText(f"{path.name}, {one.id}", text)
        for one in asked
        for text in (
            one.question.replace("<MASK>", one.answer),
            *(one.options or (one.answer,)),
            *((one.context,) if one.context else ()),
        )
    ]


def _file_texts(path: Path) -> "Iterator[str | LabelledText]":
    from climassay.corpus import read_all
    from climassay.evaluation.contamination import LabelledText

    read = 0
    reasons = []
    for result in read_all([path]):
        reasons += [skipped.reason for skipped in result.skipped]
        for document in result.documents:
            for block in document.blocks:
                read += 1
                yield LabelledText(document.title, block.text)
    if not read:
        raise InputError(f"There is no text in {path}{': ' + reasons[0] if reasons else '.'}")


def compare(
    first: Annotated[
        str, typer.Argument(help="Run (RUN:BENCHMARK where it has several), or published:gold, published:silver.")
    ],
    second: Annotated[str, typer.Argument(help="The same, for example the silver set's run.")],
    setting: Annotated[str, typer.Option(help="Setting in which models are compared.")] = "default",
    generator: Annotated[
        str | None, typer.Option(help="Model that wrote the questions: check whether metrics favour it.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap samples of the rank correlations.")] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Whether two benchmarks, such as gold and silver, rank the same models alike."""
    from climassay.evaluation.comparing import agreement_table, favour_table, means_table, rank_agreement

    sides = [_means(name, setting, workspace) for name in (first, second)]
    found = rank_agreement(*sides, resamples=resamples, seed=seed)
    favours = [] if generator is None else _favours(sides, generator, seed)
    if as_json:
        print_json({"agreement": found, "favour": [{"of": side.name, "metrics": ones} for side, ones in favours]})
        return
    tables = [agreement_table(found, *sides), means_table(found, *sides)]
    _show([*tables, *(favour_table(ones, side) for side, ones in favours)])


def _means(name: str, setting: str, workspace: Path | None) -> "ModelMeans":
    from climassay.cli.evaluate_table import load_run
    from climassay.evaluation.comparing import Dataset, experiment_means, published_means

    run, _, part = name.partition(":")
    if run != PUBLISHED:
        return experiment_means(load_run(run, workspace), setting, part or None)
    if part in get_args(Dataset):
        return published_means(cast("Dataset", part), setting)
    raise InputError(f"The published results are published:gold and published:silver, not {name!r}.")


def _favours(sides: "Sequence[ModelMeans]", generator: str, seed: int) -> "list[tuple[ModelMeans, list[Favour]]]":
    """One entry a benchmark and anchor for which there are enough models."""
    from climassay.evaluation.comparing import generator_favour

    found, reasons = [], []
    for side in sides:
        for anchor in ANCHORS:
            try:
                found.append((side, generator_favour(side, generator, anchor, seed=seed)))
            except InputError as error:
                reasons.append(error)
    if not found:
        raise reasons[0]
    return found


def _show(tables: "Sequence[Table]") -> None:
    from climassay.reporting import as_rich

    console = stdout_console()
    for table in tables:
        console.print(as_rich(table))
