"""``climassay reproduce climaqa``: Tables 3 and 5 to 7 of ClimaQA, and the data of its Figures 5 and 6.

Manivannan et al. (2025), ICLR, arXiv 2410.16701. The published figures are those of
:mod:`climassay.evaluation.paper_scores`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from climassay import evaluation
from climassay.api.benchmarks import make_model_specs, run_plan
from climassay.evaluation.evaluation_result import Evaluation
from climassay.evaluation.experiment_file import MetricSpec, check_plan
from climassay.evaluation.paper_scores import (
    CLIMAQA_SUBSETS,
    Dataset,
    has_published_questions,
    published_scores,
)
from climassay.evaluation.settings import SettingSpec, TaskPrompts, example_values, make_setting
from climassay.metrics.registry import METRICS
from climassay.models import Generator
from climassay.models.provider import is_served, model_price
from climassay.models.saved_model_encoder import PREFIX as SAVED_MODEL_PREFIX
from climassay.questions import Kind
from climassay.reporting import Axis, Dot, DotPlot, Table, counted
from climassay.reporting.paper_tables import (
    PaperRow,
    PaperTable,
    PartEstimate,
    Reproduction,
    ReproductionEstimate,
    scale_estimate,
)
from climassay.reporting.tables import skipped_note
from climassay.reproduction.recipe import CHARACTERS_PER_TOKEN, Recipe, name_of
from climassay.session import Session

if TYPE_CHECKING:
    from climassay.evaluation import ExperimentPlan, ModelSpec, Scoring

SILVER_SAMPLE = 200
"""Number of questions per task that the paper samples from the silver set (appendix A.2.2)."""
_PASSAGES = 4
"""Number of retrieved passages in the authors' prompts."""
_EXAMPLES = 5
"""Number of examples in the authors' few-shot prompts."""
_PAPER_ENCODER = "Universal Sentence Encoder"
_PAPER_BERT_MODEL = "roberta-large"
_PAPER_SCORER = "gpt-4o-mini"
_N_SAMPLED_PROMPTS = 8
"""Number of sampled prompts per task and setting; the number of tokens is estimated from their mean length."""
_SUFFIXES: Mapping[str, str] = {
    "default": "",
    "few-shot": "-fs",
    "rag-source": "-rag-source",
    "rag-held-out": "-rag-held-out",
    "continued-pretraining": "-cp-held-out",
    "fine-tuned": "-ft-silver",
    "long-context-source": "-long-cxt-source",
    "long-context-held-out": "-long-cxt-held-out",
}
"""Suffix that the paper's tables append to a model's name in each setting."""
_LEVELS: Mapping[str, str] = {"base": "Base", "reasoning": "Reason", "hypothetical": "Hypo", "overall": "Overall"}
_CHOICE_COLUMNS: Mapping[str, tuple[str, str]] = {
    **{heading: ("accuracy", level) for level, heading in _LEVELS.items()},
    "EM": ("exact_match", "overall"),
    "PS": ("phrase_similarity", "overall"),
}
"""Metric and level by column of Tables 3 and 6."""
_FREEFORM_COLUMNS: Mapping[str, tuple[str, str]] = {
    f"{short} {heading[0]}": (metric, level)
    for short, metric in (("BLEU", "bleu_char"), ("BERT", "bert_score"), ("FA", "factual_accuracy"))
    for level, heading in _LEVELS.items()
}
"""Metric and level by column of Tables 5 and 7."""


@dataclass(frozen=True, slots=True)
class _TableSpec:
    dataset: Dataset
    tasks: tuple[Kind, ...]
    columns: Mapping[str, tuple[str, str]]
    title: str
    section: str


_TABLES: Mapping[str, _TableSpec] = {
    "3": _TableSpec("gold", ("mcq", "cloze"), _CHOICE_COLUMNS, "multiple choice and cloze, gold", "section 5"),
    "5": _TableSpec("gold", ("freeform",), _FREEFORM_COLUMNS, "freeform answers, gold", "appendix A.2.1"),
    "6": _TableSpec("silver", ("mcq", "cloze"), _CHOICE_COLUMNS, "multiple choice and cloze, silver", "appendix A.2.2"),
    "7": _TableSpec("silver", ("freeform",), _FREEFORM_COLUMNS, "freeform answers, silver", "appendix A.2.2"),
}


def climaqa_tables() -> dict[str, PaperTable]:
    """Return the published tables of ClimaQA by number."""
    tables = {}
    for number, spec in _TABLES.items():
        rows: dict[str, dict[str, float]] = {}
        counts: dict[str, int] = {}
        column_by_score = {score: column for column, score in spec.columns.items()}
        for score in published_scores(spec.dataset):
            if (column := column_by_score.get((score.metric, score.level))) is not None:
                system = f"{score.model}{_SUFFIXES[score.setting]}"
                factor = 100.0 if score.metric in ("accuracy", "exact_match") else 1.0
                rows.setdefault(system, {})[column] = factor * score.value
                counts |= {} if score.n is None else {column: score.n}
        decimals = {
            column: 3 if metric in ("bleu_char", "bert_score") else 2 for column, (metric, _) in spec.columns.items()
        }
        tables[number] = PaperTable(
            "ClimaQA",
            number,
            spec.title,
            f"Manivannan et al. (2025), arXiv 2410.16701, {spec.section}, Table {number}",
            tuple(spec.columns),
            tuple(PaperRow(system, scores) for system, scores in rows.items()),
            decimals=decimals,
            published_n=counts,
        )
    return tables


@dataclass(frozen=True, kw_only=True)
class ClimaqaRecipe(Recipe):
    """Questions, settings and metrics with which the tables are reproduced."""

    files: Mapping[Dataset, tuple[str, ...]]
    """Question files by dataset; an empty tuple stands for the authors' files on the hub."""
    books: Mapping[str, tuple[str, ...]]
    """Collections from which the settings ``rag-source`` and ``rag-held-out`` retrieve, by setting."""
    adapters: Mapping[str, str]
    """Adapters of the settings ``fine-tuned`` and ``continued-pretraining``, by setting; empty for no adapter.
    ``{model}`` in a name is replaced by the model's label."""
    examples: str
    """Question file of the few-shot examples; ``primer`` stands for the bundled questions."""
    metrics: MetricSpec
    scoring: "Scoring"

    def published_tables(self) -> dict[str, PaperTable]:
        """Return the published tables by number."""
        return climaqa_tables()

    def find_missing_input(self, number: str) -> str | None:  # noqa: ARG002
        """Return None, because all tables can be reproduced with the authors' files."""
        return None

    def estimate(self, models: Sequence[Generator | str], session: Session) -> ReproductionEstimate:
        """Estimate calls, tokens and cost without calling a model."""
        self.select_tables()
        specs = tuple(evaluation.ModelSpec(name_of(model)) for model in models)
        plans = self._make_plans(specs)
        remarks = _remark_on_scorer(self.metrics.entailment) if any("freeform" in plan.tasks for plan in plans) else ()
        return ReproductionEstimate(tuple(part for plan in plans for part in _estimate_plan(plan, session)), remarks)

    def run(self, models: Sequence[Generator | str], session: Session) -> Reproduction:
        """Evaluate the models and return the published tables with a row for each model and setting."""
        tables = self.select_tables()
        specs, loaded_models = make_model_specs(models, session)
        plans = {cast("Dataset", plan.benchmarks[0].name): plan for plan in self._make_plans(specs)}
        evaluations = {
            dataset: run_plan(plan, loaded=loaded_models, workspace=session) for dataset, plan in plans.items()
        }
        results = [
            self._add_our_rows(table, evaluations[_TABLES[number].dataset], plans[_TABLES[number].dataset])
            for number, table in tables.items()
        ]
        remarks = [
            note
            for result in evaluations.values()
            for name, reasons in result.skipped.items()
            for note in skipped_note(reasons, f"row of {name}")
        ]
        return Reproduction(
            tuple(results),
            tuple(result.experiment.run for result in evaluations.values()),
            tuple(remarks),
            tuple(_plot_levels(results)),
            _count_by_book(plans.get("gold"), self.books["rag-source"], session),
            tuple(_collect_facts(tables, [*evaluations.values()])),
        )

    def _make_plans(self, models: "tuple[ModelSpec, ...]") -> "list[ExperimentPlan]":
        """Return the plan of an experiment for each dataset that the tables need."""
        plans = []
        for dataset, files in self.files.items():
            numbers = [number for number in self.numbers or _TABLES if _TABLES[number].dataset == dataset]
            tasks = tuple(task for number in numbers for task in _TABLES[number].tasks)
            if not tasks:
                continue
            limit = self.limit
            if dataset == "silver":
                limit = SILVER_SAMPLE if limit is None else min(limit, SILVER_SAMPLE)
            plan = evaluation.ExperimentPlan(
                name=f"ClimaQA {dataset}",
                benchmarks=(evaluation.BenchmarkSpec(dataset, files or (CLIMAQA_SUBSETS[dataset],)),),
                models=models,
                settings=self._make_settings(dataset),
                tasks=tasks,
                scoring=self.scoring,
                limit=limit,
                seed=self.seed,
                metrics=self.metrics,
            )
            check_plan(plan, "The reproduction")
            plans.append(plan)
        return plans

    def _make_settings(self, dataset: Dataset) -> tuple[SettingSpec, ...]:
        """Return a dataset's settings: only the default for silver; retrieval and adapters only if they are named."""
        default = evaluation.parse_spec("default")
        if dataset == "silver":
            return (default,)
        few_shot = evaluation.parse_spec(f"few-shot:{self.examples}", examples=_EXAMPLES, seed=self.seed)
        retrieval_settings = [
            replace(evaluation.parse_spec(f"rag:{'+'.join(names)}", passages=_PASSAGES), label=label, mode="dense")
            for label, names in self.books.items()
            if names
        ]
        tuned_settings = [
            replace(evaluation.parse_spec(f"{label}:{name}"), label=label)
            for label, name in self.adapters.items()
            if name
        ]
        return (default, replace(few_shot, label="few-shot"), *retrieval_settings, *tuned_settings)

    def _add_our_rows(self, table: PaperTable, result: Evaluation, plan: "ExperimentPlan") -> PaperTable:
        """Return a table with our scores, the majority-class baseline, and notes on what differs from the paper."""
        spec = _TABLES[table.number]
        column_by_score = {score: column for column, score in spec.columns.items()}
        rows: dict[str, dict[str, Any]] = {}
        for score in result.scores.scores:
            if (
                column := column_by_score.get((score.metric, score.level))
            ) is not None and score.cell.task in spec.tasks:
                system = f"{score.cell.model}{_SUFFIXES[score.cell.setting]}"
                is_percent = score.metric in ("accuracy", "exact_match")
                rows.setdefault(system, {})[column] = scale_estimate(score.estimate) if is_percent else score.estimate
        constants = {
            column_by_score[constant.metric, constant.level]: 100.0 * constant.value
            for constant in result.scores.constants
            if (constant.metric, constant.level) in column_by_score
        }
        our_rows = [PaperRow(system, scores) for system, scores in rows.items()]
        if constants:
            our_rows.append(PaperRow("best constant answer", constants))
        dataset = spec.dataset
        questions = result.experiment.questions[dataset]
        same_questions = has_published_questions(dataset, questions, plan.benchmarks[0].files) or (
            plan.limit is not None and _is_sampled_from_paper(plan, dataset)
        )
        our_columns = {column for row in our_rows for column in row.scores}
        not_comparable = {
            column: reason for column, reason in _explain_metrics(spec, plan).items() if column in our_columns
        }
        if not same_questions:
            reason = "our questions are not those of the paper."
            not_comparable = dict.fromkeys((column for column in table.columns if column in our_columns), reason)
        return replace(
            table,
            ours=tuple(our_rows),
            differences=tuple(self._describe_differences(result, plan, spec)),
            not_comparable=not_comparable,
        )

    def _describe_differences(self, result: Evaluation, plan: "ExperimentPlan", spec: _TableSpec) -> Iterator[str]:
        """Yield a sentence for each difference between our procedure and that of the published rows."""
        yield "Ours: one greedy answer to climassay's own wording of the prompts; the authors average three runs."
        if "mcq" in spec.tasks:
            yield (
                "The choice is the most likely letter; the authors count a first token that is no letter as wrong."
                if plan.scoring == "likelihood"
                else "The choice is read from the generated text; the authors take its first token."
            )
        if spec.dataset == "gold":
            yield f"Few-shot examples are drawn from {self.examples}; the authors use five fixed ones per task."
            for label, names in self.books.items():
                if names:
                    yield f"{label}: the {_PASSAGES} nearest passages of {', '.join(names)}."
                else:
                    option = "--source" if label == "rag-source" else "--held-out"
                    yield f"No row of ours has the setting {label}: name a collection of the books with {option}."
            for label, name in self.adapters.items():
                if name:
                    yield f"{label}: with the adapter {name}; appendix A.3 describes the authors' training."
        elif plan.limit == SILVER_SAMPLE:
            yield f"Ours: {SILVER_SAMPLE} questions per task, drawn by our seed; the paper's draw is not published."
        if plan.limit is not None and (spec.dataset == "gold" or plan.limit < SILVER_SAMPLE):
            yield f"Ours: a sample of at most {plan.limit} questions per task."
        if "freeform" in spec.tasks:
            yield from _remark_on_scorer(plan.metrics.entailment)
        n_failed = sum(count.failed for count in result.scores.counts if count.cell.task in spec.tasks)
        if n_failed:
            yield f"{counted(n_failed, 'answer')} of ours failed and count as wrong."


def _is_sampled_from_paper(plan: "ExperimentPlan", dataset: Dataset) -> bool:
    """Return whether a sample was drawn from the complete dataset of the paper."""
    complete = evaluation.read_benchmark(plan.benchmarks[0], replace(plan, limit=None))
    return has_published_questions(dataset, complete.questions)


def _explain_metrics(spec: _TableSpec, plan: "ExperimentPlan") -> dict[str, str]:
    """Return the reason why our scores of a column are computed differently from the paper's, by column."""
    metrics = plan.metrics
    bert_model = metrics.bert_model or metrics.encoder
    reasons = {}
    if not metrics.encoder.startswith(SAVED_MODEL_PREFIX):
        reasons["phrase_similarity"] = f"with the encoder {metrics.encoder}; the paper's is the {_PAPER_ENCODER}."
    if bert_model.rpartition("/")[2] != _PAPER_BERT_MODEL:
        reasons["bert_score"] = f"with the vectors of {bert_model}; the paper's are those of {_PAPER_BERT_MODEL}."
    if _PAPER_SCORER not in metrics.entailment:
        reasons["factual_accuracy"] = f"scored by {metrics.entailment}; the paper's scorer is {_PAPER_SCORER}."
    return {column: reasons[metric] for column, (metric, _) in spec.columns.items() if metric in reasons}


def _remark_on_scorer(entailment: str) -> tuple[str, ...]:
    if entailment:
        return ()
    return ("Factual accuracy is left out: name a scorer with --entailment, as supports:openai:gpt-4o-mini.",)


def _collect_facts(tables: Iterable[str], results: Sequence[Evaluation]) -> Iterator[tuple[str, str]]:
    """Yield (label, text) for each model's fingerprint, each model's dtype, and each metric's implementation."""
    record_by_model = {record.model: record for result in results for record in result.experiment.cells}
    for name, record in record_by_model.items():
        yield f"Model {name}", ", ".join(filter(None, (record.fingerprint, record.dtype)))
    sources = {metric: source for result in results for metric, source in result.experiment.metric_sources.items()}
    for metric in dict.fromkeys(metric for number in tables for metric, _ in _TABLES[number].columns.values()):
        if metric in sources:
            yield METRICS[metric].label, sources[metric]


def _plot_levels(tables: Sequence[PaperTable]) -> Iterator[DotPlot]:
    """Yield a plot for each metric of all systems' scores by level in the default setting, as in Figure 5."""
    for table in tables:
        spec = _TABLES[table.number]
        for metric in dict.fromkeys(name for name, _ in spec.columns.values()):
            columns = [column for column, (name, _) in spec.columns.items() if name == metric]
            if spec.dataset == "gold" and len(columns) > 1:
                dots = tuple(_make_level_dots(table, columns))
                bounds = [bound for dot in dots for bound in (dot.low, dot.high)]
                label = METRICS[metric].label
                note = "Published systems without intervals, ours with 95% intervals."
                yield DotPlot(
                    f"Figure 5: {label} by level, default setting", dots, label, note, Axis.over(label, (0.0, *bounds))
                )


def _make_level_dots(table: PaperTable, columns: Sequence[str]) -> Iterator[Dot]:
    suffixes = tuple(suffix for suffix in _SUFFIXES.values() if suffix)
    for origin, rows in (("", table.published), (" (ours)", table.ours)):
        for row in rows:
            if row.system.endswith(suffixes) or row.system == "best constant answer":
                continue
            for column in columns[:-1]:
                if (score := row.scores.get(column)) is not None:
                    value = score if isinstance(score, float | int) else score.value
                    interval = None if isinstance(score, float | int) else score.interval
                    yield Dot(f"{row.system}{origin}", column, value, *(interval or (value, value)))


def _count_by_book(gold: "ExperimentPlan | None", collections: Sequence[str], session: Session) -> tuple[Table, ...]:
    """Return the number of gold questions per book as a table (Figure 6); empty without questions or collections.

    The book is the one with the passage that is most similar to the question's source text.
    """
    if gold is None or not collections:
        return ()
    questions = evaluation.read_benchmark(gold.benchmarks[0], gold).questions
    contexts = [question.context for question in questions if question.context]
    hit_lists = session.collections(collections).search_many(contexts, k=1, mode="dense")
    books = Counter(hits[0].passage.document if hits else "no book" for hits in hit_lists)
    note = "Figure 6 of ClimaQA, which prints no numbers: the book with the passage nearest to each question's text."
    if n_without_text := len(questions) - len(contexts):
        note += f" {counted(n_without_text, 'question')} left out, because they have no text."
    rows = [(book, str(count)) for book, count in books.most_common()]
    return (Table.of("Gold questions by book", ("book", "questions"), rows, note=note),)


# ------------------------------------------------------------------------------------------------------------ estimate


def _estimate_plan(plan: "ExperimentPlan", session: Session) -> Iterator[PartEstimate]:
    """Yield an estimate for each model, setting and task, extrapolated from the lengths of a few prompts."""
    benchmark = plan.benchmarks[0]
    question_set = evaluation.read_benchmark(benchmark, plan)
    loaders = evaluation.make_source_loaders(session.workspace)
    prompts = TaskPrompts.load(session.options.prompts)
    settings = [make_setting(spec, loaders) for spec in plan.settings]
    for model in plan.models:
        price = model_price(model.name, session.options, session.workspace.root)
        for setting in settings:
            for task in plan.tasks:
                questions = question_set.of_kind(task)
                sample = questions[:: max(1, len(questions) // _N_SAMPLED_PROMPTS)]
                if not sample:
                    continue
                lengths = []
                for question, context in zip(sample, setting.prepare(sample, cast(Generator, None)), strict=True):
                    examples = [example_values(example) for example in context.examples]
                    rendered_prompt = prompts.render(question, context.passages, examples)
                    lengths.append(sum(len(message.content) for message in rendered_prompt.messages))
                prompt_tokens = round(len(questions) * sum(lengths) / len(lengths) / CHARACTERS_PER_TOKEN)
                is_generated = not sample[0].type.has_options or plan.scoring == "letter"
                completion_tokens = len(questions) * (sample[0].type.max_tokens if is_generated else 1)
                cost = 0.0 if not is_served(model.name) else None
                yield PartEstimate(
                    f"{model.display_name}, {benchmark.name}, {setting.name}, {task}",
                    len(questions),
                    prompt_tokens,
                    completion_tokens,
                    cost if price is None else price.cost(prompt_tokens, completion_tokens),
                )
