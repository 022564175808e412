"""A workspace with a small book, and tours through all commands that ask a model, one for each manner of server."""

import json
import shutil

import pytest

from providers.knowing_model import FACTS
from providers.manners import MANNERS
from providers.touring import Tour, told


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    """A workspace with the collection ``book``: a passage for each fact."""
    folder = tmp_path_factory.mktemp("providers")
    for number, fact in enumerate(FACTS, start=1):
        text = f"---\ntitle: Climate Notes {number}\n---\n# Climate Notes {number}\n\n{fact.passage}\n"
        (folder / f"notes{number}.md").write_text(text, encoding="utf-8")
    files = sorted(map(str, folder.glob("notes*.md")))
    code, _, err = told("corpus", "add", "book", *files, "--workspace", str(folder / "w"), "--json")
    assert code == 0, err
    return folder / "w"


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    """A folder with what the commands read: questions of three kinds, texts to be judged, answers to be scored."""
    folder = tmp_path_factory.mktemp("given")
    questions = []
    for number, fact in enumerate(FACTS):
        options = [*fact.wrong[: number % 4], fact.right, *fact.wrong[number % 4 :]]
        mcq = {"question": fact.question, "options": options, "answer": fact.right}
        cloze = {"question": fact.statement.replace(fact.term, "<MASK>", 1), "answer": fact.term}
        freeform = {"question": fact.question, "answer": fact.answer}
        questions += [
            {"id": f"{kind}{number}", "kind": kind, **row}
            for kind, row in (("mcq", mcq), ("freeform", freeform), ("cloze", cloze))
        ]
    items = [{"text": f"This is number {number}.", "score": number} for number in (2, 4, 1, 3)]
    answers = [{"question": one.question, "reference": one.statement, "answer": one.answer} for one in FACTS]
    for name, rows in (("questions", questions), ("items", items), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tours(book, given, tmp_path_factory):
    """The tour of a manner by its name; made when first asked for."""
    made = {}

    def tour(name):
        if name not in made:
            place = tmp_path_factory.mktemp("tour")
            shutil.copytree(book, place / "w")
            made[name] = Tour(MANNERS[name](), place, given)
        return made[name]

    yield tour
    for one in made.values():
        one.close()


USUAL, *OTHERS = MANNERS
"""The manner that the quick tests see, and the others."""


@pytest.fixture(params=[USUAL, *(pytest.param(name, marks=pytest.mark.faults) for name in OTHERS)])
def tour(tours, request):
    return tours(request.param)
