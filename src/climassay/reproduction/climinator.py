"""``climassay reproduce climinator``: Tables 1 to 5 of Leippold et al. (2024), arXiv 2401.12566v1.

The systems of the paper are four debates: *Climinator* has an advocate for each of four sources, *Climinator+* also one
that argues from the model's own knowledge, *Climinator (A)* also an adversarial one, and *Climinator (B)* only the
IPCC's advocate and the adversarial one. A single advocate's row is its opinion after the first round.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from climassay import factcheck
from climassay.api.claims import check_claims
from climassay.errors import InputError
from climassay.factcheck.configuration import AdvocateSettings, DebateSettings
from climassay.factcheck.results.analysis import FOLLOW_UP, MEDIATOR, round_outcome, verdict_of
from climassay.factcheck.results.scoring import RowScores, VerdictMetrics, score_verdicts
from climassay.factcheck.scales import CLIMATE_FEEDBACK, Scale
from climassay.factcheck.session_debates import estimate_debates
from climassay.factcheck.transcript import Transcript
from climassay.io import parse_rows, read_bytes
from climassay.models import Generator
from climassay.prompts import DEMONSTRATION
from climassay.reporting import counted
from climassay.reporting.paper_tables import (
    PaperRow,
    PartEstimate,
    Reproduction,
    ReproductionEstimate,
    model_label,
    scale_estimate,
)
from climassay.reporting.tables import skipped_note
from climassay.reproduction.recipe import Recipe, name_of
from climassay.session import Session
from climassay.statistics import Estimate

SOURCES: Mapping[str, tuple[str, float, str]] = {
    "IPCC": ("--ipcc", 1.0, "the Sixth Assessment Report"),
    "WMO": ("--wmo", 1.0, "reports of the WMO"),
    "AbsCC": ("--abstracts", 0.5, "290,000 abstracts of climate papers"),
    "S1000": ("--scientists", 1.0, "190,000 abstracts of 1000 climate scientists"),
}
"""Advocates of the system Climinator by name: command-line option, weight, and the paper's source documents."""
ADVERSARY = "NIPCC"
_ADVERSARY_OPTION = "--contrarian"
_STANCE = "present climate change is mostly natural, and nothing to worry about"
_PLAIN_ADVOCATE = "GPT-4"
"""Name of the advocate without documents in the paper's tables."""
ROUNDS = 2
"""Maximum number of rounds of a debate; every debate in the paper ended within two rounds."""
_CLASS_COUNTS = (7, 5, 2)
_NEI = "NEI"
_NO_VERDICT = "no verdict"
_ROUND_SCALE = Scale(
    "outcomes of a round",
    ("incorrect", FOLLOW_UP, "correct"),
    {"incorrect": "is wrong", FOLLOW_UP: "needs further questions", "correct": "is right"},
    frozenset({"correct"}),
)
"""Scale for Table 4 of the Climinator paper, where the first round can also end with a request for another round."""


@dataclass(frozen=True, slots=True)
class _Debates:
    """Debates of one system on all claims of a file."""

    system: str
    claims: factcheck.ClaimTable
    transcripts: Mapping[str, Transcript]
    """Transcripts by claim id."""
    run: str

    @property
    def texts(self) -> list[str]:
        return [claim.text for claim in self.claims.claims]

    def verdicts(self, party: str, number: int | None = None) -> list[str | None]:
        """Return a party's verdict on each claim after round ``number``, by default after the last round."""
        return [verdict_of(self.transcripts[claim.id], party, number) for claim in self.claims.claims]

    def outcomes(self, number: int) -> list[str | None]:
        """Return the outcome of round ``number`` for each claim."""
        return [round_outcome(self.transcripts[claim.id], number) for claim in self.claims.claims]

    def score(self, predicted: Sequence[str | None], classes: int, seed: int) -> RowScores:
        """Score the predicted verdicts on all claims against the published ones."""
        truth = self.claims.verdicts
        return score_verdicts(truth, predicted, CLIMATE_FEEDBACK, classes=classes, claims=self.texts, seed=seed).rows


@dataclass(frozen=True, slots=True)
class ClimateClaims:
    """Files of the claims from which the tables are reproduced; None for a file that the user does not have."""

    feedback: Path | None
    """Claims of Climate Feedback with verdicts, for Tables 1, 3 and 4."""
    myths: Path | None
    """Claims of Skeptical Science with verdicts, for Table 2."""
    report: Path | None
    """Claims from a contrarian report, without verdicts, for Table 5."""
    truth: str | None
    """Column of the verdicts; by default the only column that contains nothing but verdicts of Climate Feedback."""

    def read(self, table: str) -> factcheck.ClaimTable | None:
        """Read the claims for a table of the paper; return None if the user has no file for it.

        Raises:
            InputError: The file cannot be read, or has no column of verdicts.
        """
        file = {"2": self.myths, "5": self.report}.get(table, self.feedback)
        if file is None:
            return None
        if table == "5":
            return factcheck.ClaimTable.load(file)
        claims = factcheck.ClaimTable.load(
            file, factcheck.ClaimColumns(verdict=self.truth or _find_verdict_column(file))
        )
        CLIMATE_FEEDBACK.comparable_counts(verdict for verdict in claims.verdicts if verdict is not None)
        return claims

    def option(self, table: str) -> str:
        """Return the command-line option that names the file for a table of the paper."""
        return {"2": "--myths", "5": "--report-claims"}.get(table, "--claims")


def _find_verdict_column(file: Path) -> str:
    """Return the only column of a file that contains nothing but verdicts of Climate Feedback."""
    cells: dict[str, list[str]] = {}
    for row in parse_rows(file, read_bytes(file)):
        for name, value in row.items():
            if name is not None and value not in (None, ""):
                cells.setdefault(name, []).append(str(value))
    columns = [name for name, values in cells.items() if all(CLIMATE_FEEDBACK.match(value, 2) for value in values)]
    if len(columns) != 1:
        names = f"the columns {', '.join(columns)} hold" if columns else "no column holds only"
        raise InputError(f"{file}: {names} verdicts of Climate Feedback: name the column with --truth.")
    return columns[0]


@dataclass(frozen=True, kw_only=True)
class CliminatorRecipe(Recipe):
    """Claims, collections and debate settings with which the tables are reproduced."""

    published_file = Path(__file__).with_suffix(".toml")
    claims: ClimateClaims
    collections: Mapping[str, str]
    """Collections by advocate, for those advocates of :data:`SOURCES` and :data:`ADVERSARY` that have one."""
    settings: DebateSettings
    """Settings of the debates; each table replaces their advocates, scale and context prefix."""

    def estimate(self, models: Sequence[Generator | str], session: Session) -> ReproductionEstimate:
        """Estimate calls, tokens and cost of the first round of each debate without calling a model."""
        parts = []
        for model in models:
            label = model_label(name_of(model))
            for table, system in self._list_debates(self.select_tables()):
                claims = self._load_claims(table).claims
                settings = self._make_settings(table, system, model)
                loaded_model = None if isinstance(model, str) else model
                debate_estimate = estimate_debates(claims, settings, model=loaded_model, timed=False, workspace=session)
                counts = debate_estimate.requests, debate_estimate.prompt_tokens, debate_estimate.completion_tokens
                parts.append(PartEstimate(f"{label}, {system}, {_name_claims(table)}", *counts, debate_estimate.cost))
        remark = "The first round of each debate; further rounds come on top, and equal requests are asked once."
        return ReproductionEstimate(tuple(parts), (remark,))

    def run(self, models: Sequence[Generator | str], session: Session) -> Reproduction:
        """Debate the claims and return the published tables with a row for each model and system."""
        tables = self.select_tables()
        rows: dict[str, list[PaperRow]] = {number: [] for number in tables}
        runs, n_failed_by_file, is_demonstration = [], Counter[str](), False
        skip_reasons: dict[str, tuple[str, ...]] = {}
        facts: dict[str, str] = {}
        for model in models:
            debates: dict[tuple[str, str], _Debates] = {}
            for table, system in self._list_debates(tables):
                claims = self._load_claims(table)
                result = check_claims(
                    claims,
                    settings=self._make_settings(table, system, model),
                    model=None if isinstance(model, str) else model,
                    workspace=session,
                    force=True,
                )
                transcripts = {transcript.claim.id: transcript for transcript in result.transcripts}
                debates[_name_claims(table), system] = _Debates(system, claims, transcripts, result.run)
                runs.append(result.run)
                facts |= {name: value for name, value in result.facts if name.startswith("Model ")}
                is_demonstration |= result.analysis.demonstration
                skip_reasons[_name_claims(table)] = claims.skipped
                n_failed_by_file[_name_claims(table)] += sum(
                    item.verdict.outcome == "failed" for item in result.transcripts
                )
            for number in tables:
                by_system = {system: item for (file, system), item in debates.items() if file == _name_claims(number)}
                label = model_label(name_of(model))
                rows[number] += self._make_rows(number, by_system, f" ({label})")
        paper_tables = [
            replace(
                table, ours=tuple(rows[number]), differences=tuple(self._describe_differences(number, n_failed_by_file))
            )
            for number, table in tables.items()
        ]
        remarks = [note for name, reasons in skip_reasons.items() for note in skipped_note(reasons, f"row of {name}")]
        if any(row.n == 0 for row in rows.get("1", ())):
            remarks.append("Rows without scores in Table 1: all of the system's verdicts are “not enough information”.")
        if is_demonstration:
            remarks.append(DEMONSTRATION)
        remarks = [*self.note_omissions(), *remarks]
        return Reproduction(
            tuple(paper_tables), tuple(dict.fromkeys(runs)), tuple(remarks), facts=tuple(sorted(facts.items()))
        )

    # -------------------------------------------------------------------------------------------------- which debates

    def find_missing_input(self, table: str) -> str | None:
        """Return a description of the first input missing for a table; None if the table can be reproduced."""
        if self.claims.read(table) is None:
            return f"a file of claims ({self.claims.option(table)})"
        if not self._list_sources():
            return f"a collection of at least one source, for example {SOURCES['IPCC'][0]} NAME"
        if table in "345" and ADVERSARY not in self.collections:
            return f"a collection of a contrarian report ({_ADVERSARY_OPTION})"
        return None

    def _list_sources(self) -> list[str]:
        return [name for name in SOURCES if name in self.collections]

    def _list_debates(self, tables: Iterable[str]) -> list[tuple[str, str]]:
        """Return (table, system) for each distinct combination of a file of claims and a system."""
        systems_by_table = {
            "1": ("Climinator", "Climinator+"),
            "2": ("Climinator", "Climinator+"),
            "3": ("Climinator", "Climinator (A)", "Climinator (B)"),
            "4": ("Climinator", "Climinator (A)", "Climinator (B)"),
            "5": ("Climinator (A)",),
        }
        debates: dict[tuple[str, str], tuple[str, str]] = {}
        for table in tables:
            for system in systems_by_table[table]:
                if system != "Climinator (B)" or "IPCC" in self.collections:
                    debates.setdefault((_name_claims(table), system), (table, system))
        return list(debates.values())

    def _load_claims(self, table: str) -> factcheck.ClaimTable:
        claims = self.claims.read(table)
        assert claims is not None
        return claims.sample(self.limit, self.seed)

    def _make_settings(self, table: str, system: str, model: Generator | str) -> DebateSettings:
        names = ["IPCC"] if system == "Climinator (B)" else self._list_sources()
        advocates = [
            AdvocateSettings(name, collections=(self.collections[name],), weight=SOURCES[name][1]) for name in names
        ]
        if system == "Climinator+":
            advocates.append(AdvocateSettings(_PLAIN_ADVOCATE, "plain"))
        elif system != "Climinator":
            adversary = AdvocateSettings(
                ADVERSARY, "adversarial", collections=(self.collections[ADVERSARY],), stance=_STANCE
            )
            advocates.append(adversary)
        return replace(
            self.settings,
            advocates=tuple(advocates),
            model=name_of(model),
            scale=CLIMATE_FEEDBACK.name,
            context_prefix=table == "2",
            seed=self.seed,
        )

    # ---------------------------------------------------------------------------------------------------------- rows

    def _make_rows(self, table: str, debates: Mapping[str, _Debates], suffix: str) -> Iterator[PaperRow]:
        if table in "12":
            score_rows = self._make_class_rows if table == "1" else self._make_myth_rows
            yield from score_rows(debates, suffix)
        elif table == "4":
            yield from self._make_round_rows(debates, suffix)
        else:
            yield from self._make_count_rows(table, debates, suffix)

    def _iterate_verdicts(self, debates: Mapping[str, _Debates]) -> Iterator[tuple[str, _Debates, list[str | None]]]:
        """Yield the rows of Tables 1 and 2 as tuples of a name, the debates, and the verdict on each claim."""
        for system, item in debates.items():
            if system in ("Climinator", "Climinator+"):
                yield system, item, item.verdicts(MEDIATOR)
        extended_debates = debates["Climinator+"]
        for name in self._list_sources():
            yield name, extended_debates, extended_debates.verdicts(name, 1)
        yield "no documents, as GPT-4", extended_debates, extended_debates.verdicts(_PLAIN_ADVOCATE, 1)

    def _make_class_rows(self, debates: Mapping[str, _Debates], suffix: str) -> Iterator[PaperRow]:
        for classes in _CLASS_COUNTS:
            scores = {
                system: item.score(verdicts, classes, self.seed)
                for system, item, verdicts in self._iterate_verdicts(debates)
            }
            for nei_treatment in ("without", "with"):
                group = f"{classes} classes, {nei_treatment} NEI"
                baseline_metrics: VerdictMetrics | None = None
                for system, row_scores in scores.items():
                    scores_of_row = row_scores.without_nei if nei_treatment == "without" else row_scores.figures
                    if scores_of_row is None:  # not enough information on all claims
                        yield PaperRow(f"{system}{suffix}", {}, group, 0)
                    else:
                        baseline_metrics = baseline_metrics or scores_of_row
                        yield PaperRow(f"{system}{suffix}", _to_percentages(scores_of_row), group, scores_of_row.n)
                if baseline_metrics is not None:
                    yield PaperRow(
                        f"always “{baseline_metrics.constant}”",
                        _to_baseline_percentages(baseline_metrics),
                        group,
                        baseline_metrics.n,
                    )

    def _make_myth_rows(self, debates: Mapping[str, _Debates], suffix: str) -> Iterator[PaperRow]:
        baseline_figures = None
        for system, item, verdicts in self._iterate_verdicts(debates):
            scores = item.score(verdicts, 2, self.seed)
            row: dict[str, float | Estimate] = {"Acc. with NEI": scale_estimate(scores.figures.accuracy)}
            if scores.without_nei is not None:
                row["Acc. without NEI"] = scale_estimate(scores.without_nei.accuracy)
            row["claims without NEI"] = 0.0 if scores.without_nei is None else float(scores.without_nei.n)
            baseline_figures = baseline_figures or scores.figures
            yield PaperRow(f"{system}{suffix}", row, n=scores.figures.n)
        if baseline_figures is not None:
            accuracy = {"Acc. with NEI": scale_estimate(baseline_figures.constant_accuracy)}
            yield PaperRow(f"always “{baseline_figures.constant}”", accuracy, n=baseline_figures.n)

    def _make_round_rows(self, debates: Mapping[str, _Debates], suffix: str) -> Iterator[PaperRow]:
        """Yield the rows of Table 4, in which "follow-up" and "not enough information" are additional classes."""
        predictions: list[tuple[str, _Debates, list[str | None]]] = []
        for system, item in debates.items():
            if system == "Climinator":
                predictions.append((system, item, item.verdicts(MEDIATOR)))
            elif system != "Climinator+":
                predictions.append((f"{system}, round 1", item, item.outcomes(1)))
                predictions.append((f"{system}, round 2", item, item.verdicts(MEDIATOR)))
        adversarial = debates["Climinator (A)"]
        predictions.append((ADVERSARY, adversarial, adversarial.verdicts(ADVERSARY, 1)))
        for system, item, verdicts in predictions:
            truth = item.claims.verdicts
            yield PaperRow(f"{system}{suffix}", score_outcomes(truth, verdicts, item.texts, self.seed), n=len(verdicts))
        baseline = adversarial.score(adversarial.verdicts(MEDIATOR), 2, self.seed).figures
        yield PaperRow(f"always “{baseline.constant}”", _to_baseline_percentages(baseline), n=baseline.n)

    def _make_count_rows(self, table: str, debates: Mapping[str, _Debates], suffix: str) -> Iterator[PaperRow]:
        """Yield the rows of Tables 3 and 5, which count the verdicts of each class by system and round."""
        classes = 2 if table == "3" else len(CLIMATE_FEEDBACK.labels)
        adversarial = debates["Climinator (A)"]
        columns = {ADVERSARY: adversarial.verdicts(ADVERSARY, 1)}
        if table == "3":
            columns["Climinator"] = debates["Climinator"].verdicts(MEDIATOR)
        for system, item in debates.items():
            if system in ("Climinator (A)", "Climinator (B)"):
                prefix = f"{system.removeprefix('Climinator ')} " if table == "3" else ""
                columns[f"{prefix}round 1"] = item.outcomes(1)
                columns[f"{prefix}round 2"] = item.verdicts(MEDIATOR)
        counts = {
            column: Counter(_count_label(verdict, classes) for verdict in verdicts)
            for column, verdicts in columns.items()
        }
        for label in (*CLIMATE_FEEDBACK.classes(classes), FOLLOW_UP, _NEI, _NO_VERDICT):
            row = {column: float(count[label]) for column, count in counts.items()}
            if label != _NO_VERDICT or any(row.values()):
                yield PaperRow(f"{label}{suffix}", row)

    # --------------------------------------------------------------------------------------------------- differences

    def _describe_differences(self, table: str, n_failed_by_file: Mapping[str, int]) -> Iterator[str]:
        """Yield a sentence for each difference between our procedure and that of the published rows."""
        claims = self._load_claims(table)
        n_published = {"1": 170, "2": 163, "3": 170, "4": 170, "5": 81}[table]
        count = counted(len(claims.claims), "claim")
        yield f"Ours: {count} of the named file; the paper has {n_published}."
        n_distinct = len({claim.id for claim in claims.claims})
        if n_distinct < len(claims.claims):
            n_repeated = len(claims.claims) - n_distinct
            yield (
                f"{counted(n_repeated, 'claim')} repeated; each counts, as in the paper. Intervals: bootstrap over the "
                f"{n_distinct} distinct claims."
            )
        missing_sources = [
            f"{name} ({SOURCES[name][2]}, {SOURCES[name][0]})" for name in SOURCES if name not in self.collections
        ]
        if missing_sources:
            yield f"Our debates have no advocate for {', '.join(missing_sources)}."
        yield "Ours: climassay's own wording of the prompts; each advocate reads the documents of the named collection."
        if table in "1345":
            yield "Advocates alone: their opinion after the first round."
        if table in "345":
            yield "Round 1: follow-up if the mediator asks further questions; round 2 ends every debate."
        if table == "4":
            yield "Recall counts a class that is never true, such as follow-up, as 1: so do the paper's figures."
        if n_failed_by_file[_name_claims(table)]:
            yield f"{counted(n_failed_by_file[_name_claims(table)], 'debate')} failed and count as wrong."


def _name_claims(table: str) -> str:
    """Return a short name for the claims used by a table. Tables with the same claims share debates."""
    return {"2": "Skeptical Science", "5": "contrarian report"}.get(table, "Climate Feedback")


def _to_percentages(scores: VerdictMetrics) -> dict[str, Estimate]:
    estimates = (scores.precision, scores.recall, scores.f1, scores.accuracy)
    return dict(zip(("Prec.", "Rec.", "F1", "Acc."), map(scale_estimate, estimates), strict=True))


def _to_baseline_percentages(scores: VerdictMetrics) -> dict[str, Estimate]:
    estimates = (
        scores.constant_precision, scores.constant_recall, scores.constant_f1, scores.constant_accuracy,
    )  # fmt: skip
    return dict(zip(("Prec.", "Rec.", "F1", "Acc."), map(scale_estimate, estimates), strict=True))


def score_outcomes(
    truth: Sequence[str | None],
    predicted: Sequence[str | None],
    claims: Sequence[str] | None = None,
    seed: int = 0,
) -> dict[str, float | Estimate]:
    """Return the scores of Table 4 in per cent, by column.

    Verdicts are collapsed to two classes. "Follow-up" and "not enough information" are additional classes if they
    occur.

    Args:
        truth: Published verdicts.
        predicted: Outcome of a round for each claim (:func:`~climassay.factcheck.results.analysis.round_outcome`).
        claims: Text of each claim, so that repeated claims are resampled together.
        seed: Seed of the bootstrap.

    Notes:
        A class that is predicted but never true has a precision and F1 of 0 but a recall of 1, unlike in Table 1. Only
        with this rule do verdicts with the counts of Table 3 reproduce the published scores of Climinator (B) in round
        1 and of the NIPCC. Recall has no interval, because the classes differ between resamples.
    """
    predicted_sides = [
        verdict if verdict in (None, FOLLOW_UP) else CLIMATE_FEEDBACK.collapse(verdict, 2) for verdict in predicted
    ]
    true_sides = [None if verdict is None else CLIMATE_FEEDBACK.match(verdict, 2) for verdict in truth]
    rows = score_verdicts(true_sides, predicted_sides, _ROUND_SCALE, claims=claims, seed=seed).rows
    true_classes = {
        name for name, counts in zip(rows.confusion.truth, rows.confusion.counts, strict=True) if sum(counts)
    }
    n_never_true = sum(name not in true_classes for name in rows.figures.averaged)
    recall = 100 * (rows.figures.recall.value + n_never_true / len(rows.figures.averaged))
    return {**_to_percentages(rows.figures), "Rec.": recall}


def _count_label(verdict: str | None, classes: int) -> str:
    if verdict is None:
        return _NO_VERDICT
    if verdict == FOLLOW_UP:
        return FOLLOW_UP
    return _NEI if verdict == CLIMATE_FEEDBACK.nei else CLIMATE_FEEDBACK.collapse(verdict, classes)
