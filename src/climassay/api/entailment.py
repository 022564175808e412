"""What a passage does to a statement: scorers of it applied, measured on labelled pairs, and trained."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.api.learned import card, check_model_path, comparison_table
from climassay.reporting import Report, Section, Table
from climassay.reporting.results import Result, Shown
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.metrics.entailment import RelationScorer
    from climassay.metrics.entailment_head import EntailmentScores, LabelledPair

ALL_FIGURES = 90
"""Columns of a screen that holds all figures of a scorer side by side."""


@dataclass(frozen=True)
class ScoredEntailment(Result):
    """Scorers of what a passage does to a statement, side by side."""

    data: dict[str, Any]
    scores: "tuple[EntailmentScores, ...]"
    told: tuple[str, ...] = ()
    file: str = ""
    before: tuple[Table, ...] = ()
    """Tables that come before the scores."""

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        return self.data

    def tables(self) -> list[Table]:
        """Accuracies in two and three classes, and how well pairs are ranked."""
        return [*self.before, *self._scores()]

    def terminal_tables(self, width: int) -> list[Table]:
        """The same in parts, with scorers on lines of their own: a file's name may be longer than all figures."""
        from climassay.reporting.tables import split_columns

        columns = 4 if width >= ALL_FIGURES else 2
        return [*self.before, *(part for table in self._scores() for part in split_columns(table, 1, columns))]

    def notes(self) -> tuple[str, ...]:
        """What was left out, or was trained on."""
        return self.told

    def report(self) -> Report:
        """The scores on a page."""
        about = f"How well scorers tell what a passage does to a statement, on labelled pairs of {self.file}."
        lead = " ".join((about, *self.told))
        return Report("Entailment scorers", lead, (Section("Scores", tuple(self._scores())),))

    def _scores(self) -> list[Table]:
        if not self.scores:
            return []
        two = comparison_table([(one.scorer, one.two_class) for one in self.scores], "SUPPORTS or REFUTES")
        three = comparison_table([(one.scorer, one.three_class) for one in self.scores], "Three relations")
        rows = []
        for one in self.scores:
            auroc = one.two_class.auroc
            assert auroc is not None
            rows.append(
                (
                    one.scorer,
                    "{:.3f} [{:.3f}, {:.3f}]".format(auroc.value, *auroc.interval),
                    f"{one.support_auroc:.3f}",
                    f"{one.calibration.expected_calibration_error:.3f}",
                    str(one.three_class.failed),
                )
            )
        columns = ("model", "AUROC", "AUROC of\nsupport", "calibration\nerror", "failed")
        words = "AUROC: supporting pairs above refuting ones; of support: above all others. 0.5 is chance."
        ranking = Table.of("Ranking", columns, rows, note=words)
        return [replace(table, grouped=1) for table in (two, three, ranking)]


def train_entailment(
    labels: Path,
    output: Path,
    *,
    hold_out: int = 0,
    encoder: str = "local:minilm",
    folds: int = 5,
    seed: int = 0,
    workspace: Place = None,
) -> ScoredEntailment:
    """Train an entailment head on labelled pairs; its file is a scorer's name.

    Args:
        labels: Labelled pairs: Climate-FEVER's JSONL, or a table with premise, statement and label.
        output: File to save the head in.
        hold_out: Number of items kept out of training, in whole groups, to be measured on.
        encoder: Encoder whose vectors are read, or none.
        folds: Number of cross-validation folds.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session loads the encoder.

    Raises:
        InputError: The pairs cannot be read, or the head cannot be written.
    """
    from climassay.metrics import entailment_head
    from climassay.metrics.entailment_head import read_pairs

    check_model_path(output)
    with Session.opened(workspace) as session:
        table, vectors = read_pairs(labels), session.encoder(encoder)
        lesson, held_out = entailment_head.split_pairs(table.pairs, hold_out, vectors, seed=seed)
        with session.progress.task("Trying settings") as task:
            trained = entailment_head.train_entailment(
                table, lesson, vectors, folds=folds, seed=seed, on_fit=task.advance
            )
        trained.head.save(output)
        scores = []
        if held_out:
            scorer = entailment_head.HeadEntailment(trained.head, vectors)
            scores.append(_scores(session, output.name, scorer, held_out, seed))
    facts = card(trained.head.provenance)
    data = {
        "model": str(output),
        "provenance": facts,
        "choices": [{**asdict(choice), "merit": choice.merit} for choice in trained.choices],
        "held_out": asdict(scores[0]) if scores else None,
    }
    rows = [
        (
            f"{one.regularisation:g}",
            f"{one.synthetic_share:.0%}",
            "yes" if one.vectors else "no",
            f"{one.two_class_auroc:.3f}",
            f"{one.turned_auroc:.3f}",
        )
        for one in trained.choices
    ]
    columns = ("C", "made by rule", "vectors", "AUROC, labelled pairs", "AUROC, pairs made by rule")
    words = "On statements not fitted on; the setting with the highest mean of the two is taken."
    settings = Table.of("Settings by cross-validation", columns, rows, note=words)
    told = (
        f"Trained on {facts['items']} pairs of {facts['groups']} statements and {facts['settings']['turned']} made by"
        f" rule. Saved as {output}."
    )
    return ScoredEntailment(data, tuple(scores), (told,), labels.name, (settings,))


def evaluate_entailment(
    scorer: str,
    labels: Path,
    *,
    beside: Sequence[str] = (),
    include_trained: bool = False,
    limit: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> ScoredEntailment:
    """Score scorers on labelled pairs that none of them was trained on, beside the constant.

    Args:
        scorer: bundled, prompted:MODEL, supports:MODEL (the paper's judge), nli:MODEL, or a head's file.
        labels: Labelled pairs: Climate-FEVER's JSONL, or a table with premise, statement and label.
        beside: A further scorer of the same pairs; repeat.
        include_trained: Score on items of the training data too.
        limit: Number of items drawn at random; all by default.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session loads models.

    Raises:
        InputError: The pairs cannot be read, or there is no such scorer.
        ModelError: A model cannot be loaded.
    """
    from climassay.metrics.entailment_head import read_pairs, sample_statements, unseen_pairs
    from climassay.metrics.entailment_loading import load_entailment

    table = read_pairs(labels)
    with Session.opened(workspace) as session:
        opened = {name: load_entailment(name, load=session.load) for name in (scorer, *beside)}
        # One set of pairs for all scorers: what any of the heads was trained on is left out for every one of them.
        pairs = table.pairs
        for one in () if include_trained else opened.values():
            pairs = unseen_pairs(pairs, one)
        left_out = len(table.pairs) - len(pairs)
        pairs = sample_statements(pairs, limit, seed)
        found = tuple(_scores(session, name, one, pairs, seed) for name, one in opened.items())
    told = f"{left_out} pairs are left out: a head was trained on their statements."
    data = {
        "file": str(labels),
        "sha256": table.sha256,
        "left_out": left_out,
        "scorers": [asdict(one) for one in found],
    }
    return ScoredEntailment(data, found, (told,) if left_out else (), labels.name)


def apply_entailment(scorer: str, items: Path, *, workspace: Place = None) -> Shown:
    """Tell what each passage does to its statement: confirm it, contradict it, or leave it open.

    Args:
        scorer: bundled, prompted:MODEL, supports:MODEL (the paper's judge), nli:MODEL, or a head's file.
        items: Pairs: a table with premise and statement, or claim and evidences.
        workspace: Whose session loads models.

    Raises:
        InputError: The pairs cannot be read, or there is no such scorer.
        ModelError: A model cannot be loaded.
    """
    from climassay.metrics.entailment import RELATIONS
    from climassay.metrics.entailment_head import read_pairs, relation_probabilities
    from climassay.metrics.entailment_loading import load_entailment

    pairs = read_pairs(items, labelled=False).pairs
    with Session.opened(workspace) as session:
        asked = load_entailment(scorer, load=session.load)
        with session.progress.task(f"Asking {scorer}", len(pairs)) as task:
            found = relation_probabilities(pairs, asked, on_progress=task.advance).tolist()
    rows = [
        {
            "premise": pair.premise,
            "statement": pair.statement,
            "probabilities": None if row[0] != row[0] else dict(zip(RELATIONS, row, strict=True)),
        }
        for pair, row in zip(pairs, found, strict=True)
    ]
    cells = [
        (pair.premise, pair.statement, *(f"{share:.0%}" if share == share else "failed" for share in row))
        for pair, row in zip(pairs, found, strict=True)
    ]
    table = Table.of("What passages do to statements", ("premise", "statement", *RELATIONS), cells, left=2)
    return Shown({"scorer": scorer, "pairs": rows}, (table,), rows)


def _scores(
    session: Session, name: str, scorer: "RelationScorer", pairs: "Sequence[LabelledPair]", seed: int
) -> "EntailmentScores":
    from climassay.metrics.entailment_head import validate_entailment

    with session.progress.task(f"Asking {name}", len(pairs)) as task:
        found = validate_entailment(pairs, scorer, seed=seed, on_progress=task.advance)
    return replace(found, scorer=name)
