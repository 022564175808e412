"""Experiments built in tests: outcomes drawn by a seed, with known shares of right answers."""

import random
from dataclasses import replace

from climassay.evaluation import Cell, CellRecord, Experiment, Outcome
from climassay.questions import Question

LEVELS = ("base", "reasoning", "hypothetical")


def question(kind, number, level=None, document=None):
    """A question with made-up words; the correct option of a multiple-choice question moves with its number."""
    options = tuple(f"option {letter} of question {number}" for letter in "ABCD") if kind == "mcq" else ()
    correct = number % 4 if kind == "mcq" else None
    answer = {"freeform": f"Because of reason {number}.", "cloze": f"term{number}"}.get(kind)
    return Question(
        id=f"{kind}-{number}",
        kind=kind,
        question=f"What about {kind} number {number}?"
        if kind != "cloze"
        else f"Statement {number} has a <MASK> in it.",
        answer=options[correct] if options else answer,
        level=level,
        options=options,
        correct=correct,
        context=f"The text behind questions {number // 2}.",
        document=document or ("first book" if number % 3 else "second book"),
    )


def questions_of(mcq=12, freeform=9, cloze=6):
    """Questions of every kind; levels take turns."""
    return (
        *(question("mcq", number, LEVELS[number % 3]) for number in range(mcq)),
        *(question("freeform", number, LEVELS[number % 3]) for number in range(freeform)),
        *(question("cloze", number) for number in range(cloze)),
    )


def outcome(cell, asked, scores, **more):
    """One outcome; by default its answer is right where its first score is above a half."""
    return Outcome(cell, asked.id, asked.level, more.pop("answer", "an answer"), scores, **more)


def drawn_outcome(cell, asked, skill, generator):
    """An outcome of a model that is right with probability ``skill``, and as sure as it is right."""
    right = generator.random() < skill
    if cell.task == "mcq":
        chosen = asked.correct if right else (asked.correct + 1) % 4
        sure = min(0.99, max(0.26, skill + generator.uniform(-0.2, 0.2)))
        return outcome(
            cell, asked, {"accuracy": float(right)}, answer=asked.options[chosen], chosen=chosen, probability=sure
        )
    if cell.task == "cloze":
        scores = {"exact_match": float(right), "phrase_similarity": 0.9 if right else generator.uniform(0.3, 0.7)}
        return outcome(cell, asked, scores, answer=asked.answer if right else "other")
    truth = generator.uniform(0.6, 0.95) if right else generator.uniform(0.1, 0.5)
    scores = {
        "bleu_char": generator.uniform(0.2, 0.6),
        "bert_score": generator.uniform(0.85, 0.95),
        "factual_accuracy": truth,
        "supported": float(truth > 0.5),
        "fact_f1": truth / 2,
    }
    return outcome(cell, asked, scores, answer=f"An answer to {asked.id}.")


def record(cell, **more):
    given = {
        "setting": {"name": cell.setting},
        "prompt": cell.task,
        "prompt_sha256": "0" * 64,
        "n_requested": 1,
        "failed": 0,
    }
    return CellRecord(cell, f"local:{cell.model}", f"fingerprint of {cell.model}", **(given | more))


def experiment(skills=None, *, questions=None, benchmark="primer", seed=0):
    """A whole matrix."""
    skills = skills or {("small", "default"): 0.4, ("small", "rag-source"): 0.9, ("large", "default"): 0.7}
    asked = questions_of() if questions is None else tuple(questions)
    generator = random.Random(seed)
    cells, outcomes = [], []
    for (model, setting), skill in skills.items():
        for task in dict.fromkeys(one.kind for one in asked):
            cell = Cell(benchmark, model, setting, task)
            cells.append(record(cell))
            found = [drawn_outcome(cell, one, skill, generator) for one in asked if one.kind == task]
            if setting.startswith("rag"):
                found = [replace(one, passages=("p1", "p2")) for one in found]
            outcomes += found
    return Experiment(
        run="r00000001",
        name="test",
        config={"seed": seed},
        cells=tuple(cells),
        outcomes=tuple(outcomes),
        questions={benchmark: asked},
        passages={"p1": "A passage about aerosols.", "p2": "A passage about clouds."},
        metric_sources={"bert_score": "bundled encoder"},
    )
