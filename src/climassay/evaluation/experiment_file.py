"""Experiment files: models x settings x tasks x benchmarks, in TOML.

    name = "my first matrix"
    benchmarks = ["primer"]                # question files, or primer; or tables [[benchmark]] with a name and files
    tasks = ["mcq", "freeform", "cloze"]
    settings = ["default", "rag:books"]    # short names; or tables [[setting]] with more fields

    [[model]]
    name = "local:smollm2"

``climassay evaluate init FILE`` writes a file with every entry explained.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import Field

from climassay.errors import InputError
from climassay.evaluation.settings import AdapterTraining, SettingSpec, parse_spec
from climassay.evaluation.tasks import Scoring
from climassay.metrics.registry import METRICS, metrics_for
from climassay.models.options import FileModel
from climassay.questions import KINDS, Kind
from climassay.settings import commented_table, is_table_list, load_toml, parse_table, settings

T = TypeVar("T")


@settings
class BenchmarkSpec:
    """A benchmark: the questions of one or several files."""

    name: str
    files: tuple[str, ...]
    """Question files, ``primer`` or ``hub:OWNER/NAME``; paths are relative to the folder of the experiment file."""
    published: str = ""
    """Published results of the ClimaQA paper to compare with: ``gold`` or ``silver``; empty for none."""


@settings
class ModelSpec(FileModel):
    """A model of an experiment."""

    name: str
    """Name of the model: local:HUB_ID_OR_FOLDER or openai:MODEL."""
    label: Annotated[str, Field(examples=["smollm2"])] = ""
    """Name of the model in tables; by default the part of its name after the colon."""
    scoring: Annotated[Scoring | None, Field(examples=["text"])] = None
    """Scoring of the model's multiple-choice answers; by default, the experiment's ``scoring``."""
    max_output_tokens: Annotated[int | None, Field(ge=1, examples=[2000])] = None
    """Maximum number of tokens of each answer, not counting reasoning tokens."""

    @property
    def display_name(self) -> str:
        """Name of the model in tables."""
        return self.label or self.name.partition(":")[2] or self.name


@settings
class MetricSpec:
    """Metrics of an experiment, and the models that compute them."""

    names: Annotated[tuple[str, ...], Field(examples=[("accuracy", "bert_score", "exact_match")])] = ()
    """Names of the metrics to compute and compare. Default: all are computed, one or two per task compared."""
    encoder: str = "local:minilm"
    """Encoder of phrase similarity, BERTScore and the relevance of facts."""
    bert_model: Annotated[str, Field(examples=["roberta-large"])] = ""
    """Hub id or folder of the model of BERTScore; by default the encoder. The paper uses roberta-large."""
    entailment: Annotated[str, Field(examples=["supports:openai:NAME"])] = ""
    """Scorer of factual accuracy and facts: prompted:MODEL, supports:MODEL or nli:MODEL. Without a scorer, these
    metrics are left out."""
    facts: bool = True
    """Whether answers are also compared with their references statement by statement."""
    window: int = 4
    """Number of words on each side of the gap that phrase similarity compares."""
    temperature: float = 5.0
    """Temperature of factual accuracy, which smooths the scores."""
    judge: Annotated[ModelSpec | None, Field(examples=["openai:NAME"])] = None
    """Strong model that grades freeform and long answers, with reasons: its name, or the label of a model in this
    file."""
    collections: Annotated[tuple[str, ...], Field(examples=[("books",)])] = ()
    """Collections against which the sentences and references of long answers are checked."""
    side_by_side: bool = False
    """Whether the judge also compares the long answers of every two models and settings, in both orders."""
    trained_judge: Annotated[str, Field(examples=["accuracy.safetensors"])] = ""
    """File of a trained judge (climassay judge train) that compares long answers side by side, in addition to the judge
    or instead of it."""


@settings
class HarnessSpec:
    """Tasks of lm-evaluation-harness that every model of an experiment answers."""

    tasks: Annotated[tuple[str, ...], Field(examples=[("ClimateEval",)])] = ()
    """Names of tasks, groups or tags of the harness, or YAML files of tasks."""
    include_path: Annotated[tuple[str, ...], Field(examples=[("ClimateEval",)])] = ()
    """Folders with further tasks."""
    num_fewshot: Annotated[tuple[int, ...], Field(examples=[(0, 5)])] = ()
    """Numbers of examples per prompt to compare; by default each task decides."""
    chat_template: bool = False
    """Whether the model's chat template is applied to the prompts."""
    max_gen_toks: Annotated[int, Field(ge=1, examples=[512])] = 256
    """Maximum number of tokens of an answer, for tasks that set no maximum."""

    @property
    def settings(self) -> tuple[tuple[str, int | None], ...]:
        """Label and number of examples of each setting; the number is None if each task decides."""
        suffix = ", chat" if self.chat_template else ""
        return tuple((f"{n}-shot{suffix}", n) for n in self.num_fewshot) or ((f"default{suffix}", None),)


@settings
class InspectSpec:
    """Inspect tasks that every model of an experiment answers."""

    tasks: Annotated[tuple[str, ...], Field(examples=[("tasks.py@topics",)])] = ()
    """Inspect tasks: FILE.py@NAME, FILE.py for all tasks in a file, or PACKAGE/NAME for a task from a package."""
    task_args: Annotated[Mapping[str, Any], Field(examples=[{"split": "test"}])] = field(default_factory=dict)
    """Arguments of the tasks by name."""
    epochs: Annotated[int | None, Field(ge=1, examples=[3])] = None
    """Number of times that each sample is run; by default each task decides."""
    grader: Annotated[ModelSpec | None, Field(examples=["openai:NAME"])] = None
    """Model that grades answers if a task needs it: a name, or the label of a model in this file. Default: the
    evaluated model."""
    max_tokens: Annotated[int | None, Field(ge=1, examples=[512])] = None
    """Maximum number of tokens of an answer, for tasks that set no maximum."""
    log_dir: Annotated[str, Field(examples=["logs"])] = ""
    """Folder for Inspect's own logs (inspect view); by default no logs are written."""


@settings
class ExperimentPlan:
    """Plan of an experiment, as parsed from an experiment file."""

    name: str
    benchmarks: tuple[BenchmarkSpec, ...]
    models: tuple[ModelSpec, ...]
    settings: tuple[SettingSpec, ...]
    tasks: tuple[Kind, ...] = KINDS
    scoring: Scoring = "likelihood"
    """Way of scoring multiple-choice answers: likelihood (of the letters), letter (generated), or text, text-sum,
    text-per-token, text-per-byte or text-pmi (likelihood of the options' texts)."""
    scorings: Annotated[tuple[Scoring, ...], Field(examples=[("text", "text-pmi")])] = ()
    """Ways of scoring multiple-choice answers to compare, instead of scoring."""
    permutations: Annotated[int, Field(ge=1, examples=[4])] = 1
    """Number of option orders per question; with more than one, position bias is measured."""
    limit: Annotated[int | None, Field(ge=1, examples=[50])] = None
    """Maximum number of questions per task and benchmark, drawn at random."""
    seed: int = 0
    generator: Annotated[str, Field(examples=["gpt-3.5-turbo"])] = ""
    """Label of the model that wrote the questions, to test whether metrics favour it."""
    metrics: MetricSpec = field(default_factory=MetricSpec)
    lm_eval: HarnessSpec = field(default_factory=HarnessSpec)
    """Tasks of lm-evaluation-harness to run in addition to the benchmarks."""
    inspect: InspectSpec = field(default_factory=InspectSpec)
    """Inspect tasks to run in addition to the benchmarks."""
    folder: Path = Path()
    """Folder that contains the files with relative names."""

    def find_scorings(self, model: ModelSpec) -> tuple[Scoring, ...]:
        """Return the ways of scoring a model's multiple-choice answers: the model's own if set, else the plan's."""
        return (model.scoring,) if model.scoring else self.scorings or (self.scoring,)


def load_plan(path: Path) -> ExperimentPlan:
    """Load the plan of an experiment from a TOML file.

    Raises:
        InputError: The file is missing or not TOML, or an entry is unknown or invalid.
    """
    return parse_plan(load_toml(path), where=str(path), folder=path.absolute().parent)


def parse_plan(data: Mapping[str, Any], *, where: str, folder: Path) -> ExperimentPlan:
    """Parse the plan of an experiment from a TOML document.

    Args:
        data: Entries of the document, as in the example in the module's docstring.
        where: Name of the file, for error messages.
        folder: Folder that contains the files with relative names.

    Raises:
        InputError: An entry is unknown or invalid.
    """
    values = dict(data)
    tables = {name: values.pop(name, []) for name in ("benchmark", "model", "setting")}
    for name, entries in tables.items():
        if not is_table_list(entries):
            raise InputError(f"{where}: {name} is written as tables that begin with [[{name}]].")
    files = _parse_texts(values.pop("benchmarks", []), where, "benchmarks")
    names = _parse_texts(values.pop("settings", []), where, "settings")
    seed = values.get("seed", 0) if isinstance(values.get("seed", 0), int) else 0
    benchmarks = [BenchmarkSpec(Path(file).stem, (file,)) for file in files]
    benchmarks += [parse_table(BenchmarkSpec, entry, where, "[[benchmark]]") for entry in tables["benchmark"]]
    settings = [parse_spec(name, seed=seed) for name in names]
    settings += [_parse_setting(entry, where, seed) for entry in tables["setting"]]
    models = tuple(parse_table(ModelSpec, entry, where, "[[model]]") for entry in tables["model"])
    values |= {
        "benchmarks": tuple(benchmarks),
        "settings": tuple(settings or [parse_spec("default")]),
        "models": models,
        "metrics": _parse_with_model(MetricSpec, values.get("metrics", {}), "judge", models, where, "[metrics]"),
        "lm_eval": parse_table(HarnessSpec, values.get("lm_eval", {}), where, "[lm_eval]"),
        "inspect": _parse_with_model(InspectSpec, values.get("inspect", {}), "grader", models, where, "[inspect]"),
        "folder": folder,
    }
    labels = {"models": "model", "folder": "metrics", "settings": "settings (or setting)"}
    plan = parse_table(ExperimentPlan, {"name": Path(where).stem, **values}, where, "the file", file_names=labels)
    check_plan(plan, where)
    return plan


def check_plan(plan: ExperimentPlan, where: str) -> None:
    """Check that the entries of a plan are complete and consistent.

    Raises:
        InputError: The plan cannot be run; the message, which begins with ``where``, gives the reason.
    """
    if min(plan.lm_eval.num_fewshot, default=0) < 0:
        raise InputError(f"{where}: num_fewshot cannot be negative.")
    if not plan.benchmarks and not plan.lm_eval.tasks and not plan.inspect.tasks:
        raise InputError(f'{where}: name at least one question file, for example benchmarks = ["primer"].')
    if not plan.models:
        raise InputError(f"{where}: name at least one model in a table [[model]].")
    if not plan.tasks:
        raise InputError(f"{where}: name at least one task of {', '.join(KINDS)}.")
    if plan.metrics.side_by_side and plan.metrics.judge is None and not plan.metrics.trained_judge:
        raise InputError(f'{where}: side_by_side needs a judge, for example judge = "openai:NAME" in [metrics].')
    metrics = [METRICS.find(name) for name in plan.metrics.names]
    for task in plan.tasks if metrics else ():
        if not any(metric.scores(task) for metric in metrics):
            applicable_metrics = ", ".join(metric.name for metric in metrics_for(task))
            raise InputError(f"{where}: none of the metrics named scores {task} questions: {applicable_metrics} do.")
    for metric in metrics:
        if metric.needs == "judge" and plan.metrics.judge is None:
            raise InputError(f"{where}: the metric {metric.name} needs a judge: name a strong model.")
        if metric.needs in ("entailment", "facts") and not plan.metrics.entailment:
            raise InputError(
                f'{where}: the metric {metric.name} needs a scorer, for example entailment = "supports:openai:NAME" in '
                "[metrics]."
            )
        if metric.needs == "facts" and not plan.metrics.facts:
            raise InputError(f"{where}: the metric {metric.name} needs facts = true.")
    for entry, labels in (
        ("benchmark", [benchmark.name for benchmark in plan.benchmarks]),
        ("model", [model.display_name for model in plan.models]),
        ("setting", [setting.label for setting in plan.settings]),
        ("task", [str(task) for task in plan.tasks]),
    ):
        duplicates = {label for label in labels if labels.count(label) > 1}
        if duplicates:
            raise InputError(
                f"{where}: two entries are called {entry} {min(duplicates)!r}: give one of them another label."
            )


def _parse_setting(entry: Mapping[str, Any], file_name: str, seed: int) -> SettingSpec:
    """Parse a table ``[[setting]]``. Its entry ``use`` is a setting's short name, which provides the defaults."""
    values = dict(entry)
    use = values.pop("use", None)
    if not isinstance(use, str):
        raise InputError(f'{file_name}: [[setting]] needs an entry use, for example use = "rag:books".')
    default_spec = parse_spec(use, seed=seed)
    if "training" in values:
        values["training"] = parse_table(AdapterTraining, values["training"], file_name, "[setting.training]")
    defaults = {entry.name: getattr(default_spec, entry.name) for entry in fields(default_spec)}
    return parse_table(SettingSpec, {**defaults, **values}, file_name, f"[[setting]] {use}")


def _parse_with_model(
    kind: type[T], entries: object, name: str, models: Sequence[ModelSpec], file_name: str, header: str
) -> T:
    """Parse a table whose entry ``name`` specifies a model by its name, its label or a table like ``[[model]]``."""
    if not isinstance(entries, Mapping) or name not in entries:
        return parse_table(kind, entries, file_name, header)
    value = entries[name]
    if isinstance(value, Mapping):
        model = parse_table(ModelSpec, value, file_name, f"{header[:-1]}.{name}]")
    elif isinstance(value, str):
        model = next((model for model in models if value in (model.display_name, model.name)), ModelSpec(value))
    else:
        raise InputError(f'{file_name}: the {name} is a model, for example {name} = "openai:NAME", or a table.')
    return parse_table(kind, {**entries, name: model}, file_name, header)


def _parse_texts(value: object, file_name: str, name: str) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise InputError(f'{file_name}: {name} is a list of texts, for example {name} = ["primer"].')
    return tuple(cast("Sequence[str]", value))


_EXAMPLES = """\
# A benchmark of several files:
# [[benchmark]]
# name = "gold"
# files = ["mcq.csv", "freeform.csv", "cloze.csv"]

# Settings with more fields. use is the short name; label is the name in tables.
# [[setting]]
# use = "rag:books"                     # climassay corpus add books *.pdf
# label = "rag-source"
# passages = 3
# min_cosine = 0.3                      # or "measured": relevant passages only
# mode = "hybrid"                       # dense, bm25, rrf

# [[setting]]
# use = "few-shot:examples.jsonl"
# examples = 5

# [[setting]]
# use = "long-context:auto@books"
# window = 4096                         # tokens; the model's own window by default

# An adapter from climassay tune list, or else trained when first needed:
# [[setting]]
# use = "fine-tuned"
# label = "ft-silver"
# training = { questions = "silver.jsonl", search = false }

# [[setting]]
# use = "continued-pretraining"
# label = "cp-held-out"
# training = { collections = ["other-books"], validation = ["third-books"] }
"""
COMMENTED = "\n".join(
    (
        "# An experiment: every model in every setting on every task of every benchmark.\n"
        "# climassay evaluate run this-file.toml\n",
        """\
name = "my experiment"
benchmarks = ["primer"]                 # question files (climassay, ClimaQA or Pira tables), hub:OWNER/NAME, or primer
tasks = ["mcq", "freeform", "cloze"]
settings = ["default"]                  # default, few-shot:POOL, rag:COLLECTION, long-context:auto@COLLECTION, context
"""
        + commented_table(
            ExperimentPlan,
            exclude=("name", "benchmarks", "models", "settings", "tasks", "metrics", "lm_eval", "inspect", "folder"),
        ),
        commented_table(ModelSpec, "[[model]]", values={"name": "local:smollm2"}),
        _EXAMPLES,
        commented_table(MetricSpec, "[metrics]"),
        commented_table(HarnessSpec, "[lm_eval]"),
        commented_table(InspectSpec, "[inspect]"),
    )
)
"""Commented experiment file that ``climassay evaluate init`` writes."""
