"""``climassay reproduce ppairs``: Tables 4.1 to 4.4 of the thesis on PPairS, with a model of yours.

The thesis splits comparisons at random, which is a data leak. Its evaluation is repeated for the rows that are compared
with its figures. Each table also has rows of the same methods on articles or claims that no probe has seen.

Maiya (2024), Aligning Language Model Evaluators with Human Judgement, MRes thesis, University of Cambridge.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from climassay import judging
from climassay.confidence.vocabulary import LEVELS
from climassay.errors import InputError
from climassay.io import find_column, parse_rows, read_bytes
from climassay.models import Generator, OpenWeights
from climassay.reporting import counted
from climassay.reporting.paper_tables import (
    PaperRow,
    PaperTable,
    PartEstimate,
    Reproduction,
    ReproductionEstimate,
    model_label,
)
from climassay.reporting.results import as_json_data
from climassay.reproduction.recipe import CHARACTERS_PER_TOKEN, Recipe, name_of
from climassay.session import Session
from climassay.statistics import Estimate, Interval

if TYPE_CHECKING:
    from climassay.confidence.tagging.labelled import LabelledItem
    from climassay.judging.judges import JudgeScore

ASPECTS: Mapping[str, str] = {"CH": "coherence", "CON": "consistency", "FLU": "fluency", "RE": "relevance"}
"""Names of aspects by their abbreviation in Tables 4.1 and 4.2."""
N_ARTICLES: Mapping[str, int] = {"Newsroom": 60, "SummEval": 100}
N_CLAIMS: Mapping[str, int] = {"Climate": 100, "Health": 100, "Energy": 11}
"""Number of claims in the thesis by domain."""
MAX_CLAIMS = 100
"""Maximum number of claims per domain, as in the thesis's code."""
MIN_CLAIMS = 10
"""Minimum number of claims of a domain on which a probe is trained and tested."""
N_TRAINING = 100
"""Number of labelled items on which a probe is trained, and number of anchors (appendices A.2, C.4 and C.6)."""
N_PER_CYCLE = 75
"""Number of statements per assessment cycle that the thesis tags: 100 minus the 25 for training."""
CONTEXT_SENTENCES = 5
CYCLES: Mapping[str, str] = {"AR3": "Third", "AR4": "Fourth", "AR5": "Fifth", "AR6": "Sixth"}
VERDICTS = judging.parse_levels(
    "inaccurate|incorrect|unsupported|flawed reasoning|reasoning,misleading|lacks context|context|imprecise|"
    "correct but|correct but...,accurate|correct|mostly accurate|mostly correct"
)
"""Verdicts of Science Feedback, grouped into three levels (appendix B)."""
_INSERTION_SYSTEMS: Mapping[judging.InsertMode, str] = {
    "printed": "PPairS_insert, as printed",
    "three-way": "PPairS_insert, every level reachable",
}
_LAST_LAYER = (-1,)
_BASELINES = ('always "not greater"', "always the most frequent level", "the longer text")
"""Names of the baselines, which follow the other rows of their group."""


@dataclass(frozen=True, kw_only=True)
class PpairsRecipe(Recipe):
    """Data with which the tables are reproduced."""

    published_file = Path(__file__).with_suffix(".toml")
    summaries: Mapping[str, str]
    """Files of rated summaries by data set: ``Newsroom``, ``SummEval``."""
    claims: Mapping[str, str]
    """Files of claims with Science Feedback's verdicts by domain: ``Climate``, ``Health``, ``Energy``. A file with a
    column ``topic`` or ``field`` may be named for several domains."""
    statements: str
    """File of statements with their levels of confidence; empty if there is none."""
    paragraphs: str
    """File of the reports' paragraphs, used to recover the contexts of ClimateX's statements; empty if there is no such
    file."""

    def run(self, models: Sequence[Generator | str], session: Session) -> Reproduction:
        """Compare and tag items with each model, and return the published tables with our rows."""
        from climassay.judging.judges import open_weights

        tables = self.select_tables()
        parts = [
            part
            for model in models
            for part in self._run_model(open_weights(session.model(model), "This reproduction"), tables, session)
        ]
        remarks = dict.fromkeys((*self.note_omissions(), *(remark for part in parts for remark in part.remarks)))
        return Reproduction(
            tuple(_add_our_rows(table, parts) for table in tables.values()),
            tuple(run for part in parts for run in part.runs),
            tuple(remarks),
        )

    def _run_model(self, model: OpenWeights, numbers: Collection[str], session: Session) -> "Iterator[_Part]":
        if {"4.1", "4.2"} & set(numbers):
            for name, file in self.summaries.items():
                yield self._compare_summaries(name, file, model, session)
        if "4.3" in numbers:
            yield from self._compare_claims(model, session)
        if "4.4" in numbers:
            yield self._tag_statements(model, session)

    def estimate(self, models: Sequence[Generator | str], session: Session) -> ReproductionEstimate:  # noqa: ARG002
        """Estimate the number of forward passes and tokens without loading a model; local models cost nothing."""
        numbers = self.select_tables()
        parts: list[PartEstimate] = []
        if {"4.1", "4.2"} & set(numbers):
            for name, file in self.summaries.items():
                parts += [
                    _estimate_part(f"{name}, {aspect}", self._read_summaries(name, file, aspect).items)
                    for aspect in ASPECTS.values()
                ]
        if "4.3" in numbers:
            parts += [_estimate_part(f"claims, {domain}", self._read_claims(domain).items) for domain in self.claims]
        if "4.4" in numbers:
            items, training, *_ = self._read_statements()
            length = sum(len(item.item.window(CONTEXT_SENTENCES)) for item in items) / max(1, len(items))
            # A binary search among four levels makes at most three steps with ten anchors each, in both orders.
            calls = 2 * (4 * len(training) + 30 * len(items))
            parts.append(PartEstimate("statements", calls, _estimate_tokens(2 * length * calls), 0, 0.0))
        parts = [replace(part, part=f"{name_of(model)}, {part.part}") for model in models for part in parts]
        note = "Prompts that share an article or a text are computed once, so that the work is several times less."
        return ReproductionEstimate(tuple(parts), (note,))

    def find_missing_input(self, number: str) -> str | None:
        """Return the options that name the data of a table; None if one of them is given."""
        has_data = {"4.3": self.claims, "4.4": self.statements}.get(number, self.summaries)
        return None if has_data else _OPTIONS[number]

    def _compare_summaries(self, name: str, file: str, model: OpenWeights, session: Session) -> "_Part":
        tables = {aspect: self._read_summaries(name, file, aspect) for aspect in ASPECTS.values()}
        tasks = [judging.JudgeTask(judging.quality("text", aspect), table.items) for aspect, table in tables.items()]
        settings = judging.BenchmarkSettings(
            train_items=N_TRAINING, seed=self.seed, as_published=True, probe=judging.ProbeSettings((_LAST_LAYER,))
        )
        methods = ("direct", "pairs", "ppairs")
        benchmark = judging.benchmark_judges(
            tasks, settings, methods, file=file, model=model, workspace=session
        ).benchmark
        part = _Part(model_label(model.name), (benchmark.run,))
        headings = {aspect: heading for heading, aspect in ASPECTS.items()}
        for result in benchmark.results:
            column = f"{name} {headings[result.scores.quality]}"
            _add_scores(part, result, column, ("4.1", "4.2"), "articles")
        n_articles = len({item.group for item in tasks[0].items})
        if n_articles != N_ARTICLES[name]:
            part.add_reason([f"{name} {heading}" for heading in ASPECTS], f"ours is on {n_articles} articles, the "
                            f"thesis on {N_ARTICLES[name]}.", ("4.1", "4.2"))  # fmt: skip
        part.remarks += [f"{name}, {aspect}: {note}" for aspect, table in tables.items() for note in table.notes]
        if name == "Newsroom":
            part.remarks.append("Newsroom CON: the ratings are those of informativeness, as in the thesis.")
        return part

    def _read_summaries(self, name: str, file: str, aspect: str) -> judging.ItemTable:
        """Read the summaries with their ratings of an aspect, for the first ``limit`` articles.

        Raises:
            InputError: The file cannot be read, or its columns are not those of a published file.
        """
        label = aspect
        if (name, aspect) == ("Newsroom", "consistency"):
            path = Path(file)
            names = next(iter(parse_rows(path, read_bytes(path))), {})
            # In the thesis's own conversion of Newsroom, the column of informativeness is named consistency.
            label = aspect if aspect in names and "informativeness" not in names else "informativeness"
        columns = judging.published_columns(file, label)
        if columns is None:
            raise InputError(f"{file} is not a table of {name}: its columns are not those that the authors publish.")
        table = judging.read_items(file, columns)
        articles = set(list(dict.fromkeys(item.group for item in table.items))[: self.limit])
        return replace(table, items=tuple(item for item in table.items if item.group in articles))

    def _compare_claims(self, model: OpenWeights, session: Session) -> "list[_Part]":
        tables = {domain: self._read_claims(domain) for domain in self.claims}
        items = {domain: table.items for domain, table in tables.items()}
        quality = judging.quality("claims")
        parts = []
        for domain, claims in items.items():
            settings = judging.BenchmarkSettings(
                train_items=N_TRAINING, seed=self.seed, as_published=True, probe=judging.ProbeSettings((_LAST_LAYER,))
            )
            task = judging.JudgeTask(quality, claims)
            methods = ("direct", "zero-shot") if domain == "Energy" else ("direct", "zero-shot", "ppairs")
            benchmark = judging.benchmark_judges(
                [task], settings, methods, file=self.claims[domain], model=model, workspace=session
            ).benchmark
            part = _Part(model_label(model.name), (benchmark.run,))
            for result in benchmark.results:
                _add_scores(part, result, domain, ("4.3",), "claims")
            if len(claims) == MAX_CLAIMS:
                part.remarks.append(f"{domain}: the first {MAX_CLAIMS} claims of the file, as in the thesis.")
            if len(claims) == self.limit:
                part.remarks.append(f"{domain}: {self.limit} claims, drawn as evenly over the verdicts as possible.")
            if len(claims) != N_CLAIMS[domain]:
                reason = f"ours is on {counted(len(claims), 'claim')}, the thesis on {N_CLAIMS[domain]}."
                part.add_reason([domain], reason, ("4.3",))
            part.remarks += [f"{domain}: {note}" for note in tables[domain].notes]
            parts.append(part)
        if "Energy" in items:
            extractor = judging.StateExtractor(
                model, judging.QualityRequests(quality, session.options.prompts), _LAST_LAYER, session.activations
            )
            for source in [domain for domain in items if domain != "Energy"]:
                figure = judging.score_transfer(items[source], items["Energy"], extractor, seed=self.seed)
                part = _Part(model_label(model.name), ())
                part.add("4.3", f"PPairS, Energy by transfer from {source}", "Energy", figure)
                parts.append(part)
        return parts

    def _read_claims(self, domain: str) -> judging.ItemTable:
        """Read the first 100 claims of a file, with labels from 0 (inaccurate) to 2 (accurate).

        If there are more than ``limit`` claims, that many are drawn as evenly over the labels as possible, because a
        few claims of one label cannot train a probe. If the file has a column of topics, only the claims of the domain
        are read, so that one file can contain all domains, as the thesis's own file does.

        Raises:
            InputError: The file has no column of claims or verdicts, no verdict of Science Feedback, or too few claims
                of the domain.
        """
        file = self.claims[domain]
        path = Path(file)
        columns = list(next(iter(parse_rows(path, read_bytes(path))), {}))
        claim_column = next((name for name in ("claim", "statement", "text") if name in columns), None)
        verdict_column = next((name for name in columns if "verdict" in name.lower()), None)
        if claim_column is None or verdict_column is None:
            raise InputError(f"{file} needs a column of claims (claim) and one of verdicts (verdict).")
        topic_column = find_column(columns, "topic", "field")
        table = judging.read_items(
            file, judging.ItemColumns(claim_column, group=topic_column, label=verdict_column, levels=VERDICTS)
        )
        items = [
            replace(item, group="")
            for item in table.items
            if topic_column is None or item.group.casefold() == domain.casefold()
        ]
        if not items:
            raise InputError(f"{file} has no claim with the {topic_column} {domain}.")
        claims = _draw_evenly(items[:MAX_CLAIMS], self.limit)
        if domain != "Energy" and len(claims) < MIN_CLAIMS:
            raise InputError(
                f"Table 4.3 needs at least {MIN_CLAIMS} claims on {domain} to train and test a probe, not "
                f"{len(claims)}: raise --limit, or name more claims."
            )
        return replace(table, items=tuple(claims))

    def _read_statements(self) -> "_Statements":
        """Read the statements, and draw the test statements, the training statements and the anchors.

        Raises:
            InputError: The file cannot be read, or has no assessment cycles.
        """
        from climassay.confidence.tagging import read_labelled
        from climassay.confidence.tagging.insertion import sample_balanced, sample_latest_anchors
        from climassay.learning import sample

        table = read_labelled(Path(self.statements), Path(self.paragraphs) if self.paragraphs else None)
        labelled_items = table.items
        training_items = sample_balanced(labelled_items, N_TRAINING, by="cycle", seed=self.seed)
        anchors = sample_latest_anchors(labelled_items, training_items, N_TRAINING, seed=self.seed)
        training_texts = {item.item.text for item in (*training_items, *anchors)}
        limit = min(N_PER_CYCLE, self.limit or N_PER_CYCLE)
        test_statements: list[LabelledItem] = []
        for cycle in sorted({item.cycle for item in labelled_items}):
            pool = [item for item in labelled_items if item.cycle == cycle and item.item.text not in training_texts]
            test_statements += sample(pool, limit, self.seed)
        return _Statements(test_statements, training_items, anchors, table.notes)

    def _tag_statements(self, model: OpenWeights, session: Session) -> "_Part":
        import numpy as np

        from climassay.confidence.tagging.insertion import train_insertion
        from climassay.learning import evaluate

        items, training_items, anchors, notes = self._read_statements()
        config = {"file": self.statements, "model": model.name, "items": len(items), "limit": self.limit}
        with (
            session.run("reproduce ppairs", config, {"seed": self.seed}) as run,
            session.progress.task("Comparing training statements") as training_task,
            session.progress.task("Inserting statements") as tagging_task,
        ):
            tagger = train_insertion(
                training_items, model, layers=_LAST_LAYER, context=CONTEXT_SENTENCES, anchors=anchors, mode="printed",
                store=session.activations, seed=self.seed, on_progress=training_task.advance,
            )  # fmt: skip
            part = _Part(model_label(model.name), (run.id,), remarks=[*notes])
            levels = [LEVELS.index(item.tag) for item in items]
            constants: dict[str, float] = {}
            for mode, system in _INSERTION_SYSTEMS.items():
                tags = replace(tagger, mode=mode).predict(
                    [item.item for item in items], on_progress=tagging_task.advance
                )
                for cycle, column in (*CYCLES.items(), ("", "Overall")):
                    indices = [index for index, item in enumerate(items) if cycle in ("", item.cycle)]
                    if not indices:
                        continue
                    answers = np.eye(len(LEVELS))[[LEVELS.index(tags[index]) for index in indices]]
                    truth = [levels[index] for index in indices]
                    scores = evaluate(truth, answers, LEVELS, seed=self.seed)
                    part.add("4.4", system, column, scores.accuracy)
                    constants[column] = scores.constant.value
            for column, constant in constants.items():
                part.add("4.4", "always the most frequent level", column, constant)
            rows = [{"system": system, **as_json_data(scores)} for (_, system), scores in part.rows["4.4"].items()]
            run.save_results("scores", rows)
        accuracy = tagger.trained.accuracy
        interval = f"{accuracy.low:.3f}, {accuracy.high:.3f}"
        part.remarks.append(
            f"Table 4.4: the probe ordered {accuracy.value:.3f} [{interval}] of {accuracy.n} pairs of training "
            "statements with different levels, held out by item; the thesis prints .727 for three outcomes."
        )
        missing_cycles = [column for cycle, column in CYCLES.items() if cycle not in {item.cycle for item in items}]
        if missing_cycles:
            part.add_reason(
                ["Overall"], f"no statement of ours is of the cycles {', '.join(missing_cycles)}.", ("4.4",)
            )
        return part


_OPTIONS: Mapping[str, str] = {
    "4.1": "ratings of summaries with --newsroom or --summeval",
    "4.2": "ratings of summaries with --newsroom or --summeval",
    "4.3": "claims with --climate, --health or --energy",
    "4.4": "statements with --statements",
}
_DIFFERENCES: Mapping[str, tuple[str, ...]] = {
    "4.1": (
        "Our first group: as in the thesis, a random half of all ordered pairs trains the probe, which leaks, and "
        "ties count as not greater.",
        "Unseen articles: the probe learns from at most 100 summaries of other articles; ties are left out, so that a "
        "constant answer is right on half.",
    ),
    "4.2": (
        "Our first group: as in the thesis, orders by beam search over the held-out half of the pairs, which leaks.",
        "Unseen articles: all pairs of articles that the probe has not seen, ordered by fitted strengths.",
    ),
    "4.3": (
        "PairS reads the answers to PPairS's prompt, as in the thesis; each pair is asked in one order, in the "
        "thesis in both.",
        "Our first group: as in the thesis, pairs are split at random, which leaks, and ties count as not greater.",
        "Unseen claims: the probe has not seen the claims; ties are left out.",
    ),
    "4.4": (
        "As printed, the search never returns the second of four levels; the thesis's code takes the most frequent of "
        "three answers.",
        "The probe compares the training statements with each other, in the thesis with the anchors.",
    ),
}
"""Sentences on the differences between our procedure and the thesis's, by table."""


class _Statements(NamedTuple):
    """Statements for Table 4.4. No test statement is among the training statements or the anchors."""

    test: "list[LabelledItem]"
    training: "list[LabelledItem]"
    anchors: "list[LabelledItem]"
    notes: tuple[str, ...]
    """Notes on the rows of the file that were read or left out."""


@dataclass(slots=True)
class _Part:
    """Scores of one model on one data set, for one or more tables."""

    model: str
    runs: tuple[str, ...]
    rows: dict[str, dict[tuple[str, str], dict[str, float | Estimate]]] = field(default_factory=dict)
    """Scores by table, by subset of the pairs and system, and by column."""
    remarks: list[str] = field(default_factory=list)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    """Reason why a column's scores cannot be compared with the published ones, by table and column."""

    def add(
        self, table: str, system: str, column: str, score: "JudgeScore | Estimate | float", subset: str = ""
    ) -> None:
        """Add a score to the rows; a score without a value or an interval is ignored.

        Rows of a ``subset``, such as pairs of unseen articles, form a group of their own.
        """
        if not isinstance(score, float | Estimate):
            if score.value is None or score.low is None or score.high is None:
                return
            score = Estimate(score.value, Interval(score.low, score.high), score.n)
        self.rows.setdefault(table, {}).setdefault((subset, system), {})[column] = score

    def add_reason(self, columns: Sequence[str], reason: str, tables: Sequence[str]) -> None:
        """Mark columns of tables as not comparable with the published scores, and record the reason."""
        for table in tables:
            self.reasons.setdefault(table, {}).update(dict.fromkeys(columns, reason))


_SYSTEMS: Mapping[str, str] = {"direct": "Direct-Scoring", "pairs": "PairS", "zero-shot": "PairS", "ppairs": "PPairS"}
"""Name of each method in the tables of the thesis."""
_LEAKY_SUFFIX = " (leaky)"
"""Suffix of the system's name in rows where the probe is evaluated with leakage, as in the thesis."""


def _add_scores(part: _Part, result: judging.JudgeResult, column: str, tables: tuple[str, ...], item_noun: str) -> None:
    """Add the scores of a method evaluated as in the thesis and on unseen items, and the scores of the baselines."""
    scores, system = result.scores, _SYSTEMS[result.scores.method]
    leaky_suffix = _LEAKY_SUFFIX if result.scores.method == "ppairs" else ""
    unseen = f"unseen {item_noun}"
    differing = f"{unseen}, pairs that differ"
    length_baseline = scores.baselines["longer"]
    if scores.as_published is not None:
        part.add(tables[0], system + leaky_suffix, column, scores.as_published.accuracy)
        part.add(tables[0], _BASELINES[0], column, scores.as_published.constant)
    part.add(tables[0], system, column, scores.agreement.accuracy_differing, differing)
    part.add(tables[0], "the longer text", column, length_baseline.accuracy_differing, differing)
    if len(tables) > 1:
        if scores.as_published is not None:
            part.add(tables[1], system + leaky_suffix, column, scores.as_published.spearman)
        part.add(tables[1], system, column, scores.agreement.spearman, unseen)
        part.add(tables[1], "the longer text", column, length_baseline.spearman, unseen)
    if scores.failed:
        part.remarks.append(f"{column}, {system}: {scores.failed} comparisons failed.")


def _add_our_rows(table: PaperTable, parts: "Sequence[_Part]") -> PaperTable:
    """Return a table with our rows, in each group the baselines last, and notes on differences."""
    rows: dict[tuple[str, str], dict[str, float | Estimate]] = {}
    for part in parts:
        for (subset, system), scores in part.rows.get(table.number, {}).items():
            rows.setdefault((", ".join(filter(None, (part.model, subset))), system), {}).update(scores)
    reasons = {column: reason for part in parts for column, reason in part.reasons.get(table.number, {}).items()}
    return replace(
        table,
        ours=tuple(
            PaperRow(system, rows[group, system], group)
            for group, system in sorted(rows, key=lambda row: row[1] in _BASELINES)
        ),
        differences=("Ours: climassay's own wording of the prompts.", *_DIFFERENCES[table.number]),
        not_comparable=reasons,
    )


def _draw_evenly(items: Sequence[judging.Item], limit: int | None) -> list[judging.Item]:
    """Return ``limit`` items in their order, as many of each label as possible; all if there are not more."""
    n_by_label: Counter[float | None] = Counter()
    keys = []
    for index, item in enumerate(items):
        keys.append((n_by_label[item.label], index))
        n_by_label[item.label] += 1
    return [items[index] for index in sorted(index for _, index in sorted(keys)[:limit])]


def _estimate_part(name: str, items: Sequence[judging.Item]) -> PartEstimate:
    """Estimate the requests and prompt tokens of direct scoring, PairS and PPairS for items."""
    groups: dict[str, list[judging.Item]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    calls, characters = len(items), 0.0
    for group_items in groups.values():
        length = sum(len(item.text) for item in group_items) / len(group_items)
        n_pairs = len(group_items) * (len(group_items) - 1)
        calls += 2 * n_pairs
        characters += 2 * n_pairs * (len(group_items[0].context) + 2 * length)
    return PartEstimate(name, calls, _estimate_tokens(characters), 0, 0.0)


def _estimate_tokens(characters: float) -> int:
    return round(characters / CHARACTERS_PER_TOKEN)
