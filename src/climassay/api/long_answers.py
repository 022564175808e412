"""Judges of long answers, judged by people's ratings; and answers given to people to rate, without names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL, Generator
from climassay.reporting.results import Shown, as_json_data
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.evaluation.judge_check import JudgeCheck


def check_judge(
    file: Path | str,
    *,
    model: Generator | str = DEFAULT_MODEL,
    labels: Mapping[str, str] | None = None,
    question: str = "question",
    answer: str = "answer",
    group: str | None = None,
    scale: tuple[float, float] = (1, 5),
    limit: int | None = None,
    pairs: int = 100,
    seed: int = 0,
    workspace: Place = None,
) -> "JudgeCheck":
    """Whether a judge of long answers agrees with people, with itself, and is not moved by order, length or tone.

    Args:
        file: Table of answers with people's ratings, for example one of :func:`blind_answers`, filled in; or the name
            of a dataset of answers that people rated in the browser.
        model: The judge.
        labels: Dimension of adequacy by column; by default the columns that are called as the dimensions are.
        question: Column of the question, or of the source that the answers are about.
        answer: Column of the answer.
        group: Column that tells which answers belong together; by default the question.
        scale: Lowest and highest rating of the file.
        limit: Maximum number of groups, drawn by the seed.
        pairs: Maximum number of pairs of answers compared in both orders.
        seed: Seed of draws and resampling.
        workspace: Where the judge's answers are kept.

    Raises:
        InputError: The file cannot be read, lacks a column, or has a rating that is none.
        ModelError: The judge cannot be loaded.
    """
    import numpy as np

    from climassay.evaluation.judge_check import Preferred, read_ratings
    from climassay.evaluation.judge_check import check_judge as checked
    from climassay.generation.annotation import AnnotationStore
    from climassay.generation.annotation.long_answers import ratings_of

    with Session.opened(workspace) as session:
        preferred: list[Preferred] = []
        if isinstance(file, Path):
            items = read_ratings(file, labels or {}, question=question, answer=answer, group=group, scale=scale)
        else:
            items, preferred = ratings_of(AnnotationStore(session.records).items(file))
            if not items and not preferred:
                raise InputError(
                    f"Nobody has rated an answer of the dataset {file} yet: people do so with climassay serve."
                )
        groups = list(dict.fromkeys([*(item.group for item in items), *(pair.question for pair in preferred)]))
        kept = {groups[int(place)] for place in np.random.default_rng(seed).permutation(len(groups))[:limit]}
        items = [item for item in items if item.group in kept]
        preferred = [pair for pair in preferred if pair.question in kept]
        judge = session.model(model)
        name = file.name if isinstance(file, Path) else file
        config = {"file": name, "model": judge.name, "answers": len(items), "pairs": pairs}
        with (
            session.run("evaluate judge-check", config, {"seed": seed}) as run,
            session.progress.task("Judging", None) as task,
        ):
            done = checked(
                items,
                session.recorded(judge, run),
                preferred=preferred,
                pairs=pairs,
                seed=seed,
                on_step=lambda what: task.update(description=f"{what[0].upper()}{what[1:]}"),
            )
            done = replace(done, judge=judge.name)
            run.save_results("judge_check", [as_json_data(done.to_dict())])
    return done


def blind_answers(
    run: str,
    *,
    dataset: str | None = None,
    pairs: int = 0,
    overlap: int = 2,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Give out the long answers of an experiment for people to rate, without saying which model wrote what.

    Args:
        run: Id of a run of climassay evaluate run; see climassay records runs.
        dataset: Name of a new dataset; people rate its answers in the browser (climassay serve).
        pairs: With --dataset: maximum number of pairs to compare, in place of single answers.
        overlap: With --dataset: people who rate each answer.
        seed: Seed of the order.
        workspace: Where the records lie.

    Returns:
        Rows with question, audience, answer and an empty column for each of the eight dimensions; saved as CSV or a
        workbook and filled in, :func:`check_judge` reads them.

    Raises:
        InputError: There is no such run, it has no long answer, or the dataset was begun with something else.
    """
    from climassay.api.annotation import open_dataset
    from climassay.evaluation import load_experiment
    from climassay.evaluation.judge_check import blind_answers as answers_of
    from climassay.evaluation.judge_check import blind_rows
    from climassay.generation.annotation.long_answers import rating_drafts
    from climassay.generation.dataset_store import DatasetStore
    from climassay.reporting import Table

    with Session.opened(workspace) as session:
        experiment = load_experiment(session.records, run)
        rows = blind_rows(experiment, seed=seed)
        if dataset is not None:
            drafts = rating_drafts(answers_of(experiment, seed=seed), pairs=pairs, seed=seed)
            if not drafts:
                raise InputError(f"The experiment {run} has no two answers to one question that could be compared.")
            store = DatasetStore(session.records)
            store.begin(dataset, {"ratings": experiment.run, "pairs": pairs, "seed": seed})
            there = {one.id for one in store.drafts(dataset)}
            store.save(dataset, [one for one in drafts if one.draft.id not in there])
            return open_dataset(dataset, overlap=overlap, workspace=session)
    headings = list(rows[0])
    table = Table.of("Answers to rate from 1 to 5", headings, [list(row.values()) for row in rows], left=len(headings))
    return Shown(rows, (table,), noted=(f"{len(rows)} answers; fill in the empty columns with 1 to 5.",))
