"""Pages of questions are found by the database: the same questions as by hand, without reading the whole run."""

from itertools import product

import pytest

from climassay.evaluation.report import is_wrong
from climassay.records import tables
from climassay.records.queries import require_run, run_details
from climassay.web.results import questions as question_index
from climassay.web.results.questions import QuestionFilter, QuestionIndex
from climassay.web.results.stored_run import StoredRun
from experiments import experiment
from stored_runs import store_experiment, store_mcq


@pytest.fixture(params=["experiment", "mcq", "mcq without questions"])
def run(place, request):
    if request.param == "experiment":
        return store_experiment(place.records)
    return store_mcq(place.records, with_questions=request.param == "mcq")


def by_hand(stored, wanted):
    """Numbers of the questions that fit, by looking at all of them."""
    found = []
    for number, ((benchmark, _), one) in enumerate(stored.questions.items()):
        ours = [
            outcome
            for outcome in stored.outcomes[benchmark, one.id]
            if not wanted.model or outcome.cell.model == wanted.model
        ]
        plain = ((wanted.benchmark, benchmark), (wanted.kind, one.kind), (wanted.level, one.level))
        said = "\n".join((one.id, one.question, one.answer, *one.options, *(outcome.answer for outcome in ours)))
        if (
            all(not asked or asked == there for asked, there in plain)
            and ours
            and (not wanted.wrong or any(map(is_wrong, ours)))
            and wanted.text.lower() in said.lower()
        ):
            found.append(number)
    return found


def test_the_questions_that_fit_are_those_found_by_looking_at_all(place, run):
    index, stored = QuestionIndex(place, require_run(place.database, run)), StoredRun(run_details(place.database, run))
    benchmarks = {key[0] for key in stored.questions}
    models = {one.cell.model for some in stored.outcomes.values() for one in some}
    for values in product(
        ("", *benchmarks, "none"),
        ("", "mcq", "cloze"),
        ("", "base"),
        ("", *models),
        (False, True),
        ("", "C OF", "100%"),
    ):
        wanted = QuestionFilter(*values)
        expected = by_hand(stored, wanted)
        assert index.count(wanted) == len(expected), wanted
        assert index.numbers(wanted, 1000) == expected, wanted
        assert index.numbers(wanted, 3, skip=2) == expected[2:5]
        assert index.numbers(wanted, 3, after=4) == [number for number in expected if number > 4][:3]
    assert index.choices()["model"] == list(dict.fromkeys(one.cell.model for one in stored.experiment.outcomes))


def test_a_part_of_a_run_shows_what_the_whole_shows(place, run):
    index, stored = QuestionIndex(place, require_run(place.database, run)), StoredRun(run_details(place.database, run))
    for number, (key, asked) in enumerate(stored.questions.items()):
        part = index.part([number])
        assert part.questions == {key: asked}
        assert part.outcomes == {key: stored.outcomes[key]}
        given = {name for outcome in part.outcomes[key] for name in outcome.passages}
        assert part.experiment.passages.items() <= stored.experiment.passages.items()
        assert given & stored.experiment.passages.keys() <= part.experiment.passages.keys()
        assert index.number(key[1], key[0]) == number
        assert index.key(number) == key
    assert (index.key(-1), index.key(len(index)), index.number("none")) == (None, None, None)


def test_a_page_reads_its_own_rows_and_never_the_whole_run(place, client_of, monkeypatch):
    run = store_experiment(place.records)
    reader = client_of("annotator")
    assert reader.get(f"/results/{run}/questions").status_code == 200

    def refuse(*_):
        raise AssertionError("The whole run was read.")

    for module in ("questions", "stored_run"):
        monkeypatch.setattr(f"climassay.web.results.{module}.run_details", refuse)
    read = []
    loads = question_index.run_rows

    def counting(*given):
        rows = loads(*given)
        read.extend(row for some in rows.values() for row in some)
        return rows

    monkeypatch.setattr(question_index, "run_rows", counting)
    for path in ("?kind=mcq&text=option", "?model=large&wrong=true", "/mcq-1?benchmark=primer"):
        read.clear()
        assert reader.get(f"/results/{run}/questions{path}").status_code == 200
    assert 0 < len(read) < len(experiment().outcomes) / 2


def test_a_run_whose_results_have_changed_is_indexed_anew(place):
    run = store_experiment(place.records)
    assert len(QuestionIndex(place, require_run(place.database, run))) == 27
    gone = tables.results.delete().where(tables.results.c.name == "outcomes", tables.results.c.position >= 5)
    place.database.write(lambda connection: connection.execute(gone))
    found = QuestionIndex(place, require_run(place.database, run))
    assert len(found) == len(StoredRun(run_details(place.database, run)).questions) < 27
