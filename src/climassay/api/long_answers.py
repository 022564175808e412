"""Judges of long answers, judged by people's ratings; and answers given to people to rate, without names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.models import DEFAULT_MODEL, Generator
from climassay.reporting.results import Shown, as_json_data
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.evaluation.judge_check import JudgeCheck


def check_judge(
    file: Path,
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
        file: Table of answers with people's ratings, for example one of :func:`blind_answers`, filled in.
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

    from climassay.evaluation.judge_check import check_judge as checked
    from climassay.evaluation.judge_check import read_ratings

    items = read_ratings(file, labels or {}, question=question, answer=answer, group=group, scale=scale)
    groups = list(dict.fromkeys(item.group for item in items))
    kept = {groups[int(place)] for place in np.random.default_rng(seed).permutation(len(groups))[:limit]}
    items = [item for item in items if item.group in kept]
    with Session.opened(workspace) as session:
        judge = session.model(model)
        config = {"file": file.name, "model": judge.name, "answers": len(items), "pairs": pairs}
        with (
            session.run("evaluate judge-check", config, {"seed": seed}) as run,
            session.progress.task("Judging", None) as task,
        ):
            done = checked(
                items,
                session.recorded(judge, run),
                pairs=pairs,
                seed=seed,
                on_step=lambda what: task.update(description=f"{what[0].upper()}{what[1:]}"),
            )
            done = replace(done, judge=judge.name)
            run.save_results("judge_check", [as_json_data(done.to_dict())])
    return done


def blind_answers(run: str, *, seed: int = 0, workspace: Place = None) -> Shown:
    """Long answers of an experiment for people to rate, who cannot tell which model wrote what.

    Args:
        run: Its run.
        seed: Seed of the order.
        workspace: Where the records lie.

    Returns:
        Rows with question, audience, answer and an empty column for each of the eight dimensions; saved as CSV or a
        workbook and filled in, :func:`check_judge` reads them.

    Raises:
        InputError: There is no such run, or it has no long answer.
    """
    from climassay.evaluation import load_experiment
    from climassay.evaluation.judge_check import blind_rows
    from climassay.reporting import Table

    with Session.opened(workspace) as session:
        rows = blind_rows(load_experiment(session.records, run), seed=seed)
    headings = list(rows[0])
    table = Table.of("Answers to rate from 1 to 5", headings, [list(row.values()) for row in rows], left=len(headings))
    return Shown(rows, (table,), noted=(f"{len(rows)} answers; fill in the empty columns with 1 to 5.",))
