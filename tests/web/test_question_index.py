"""Pages of questions are found by the database: the same questions as by hand, without reading the whole run."""

from dataclasses import replace
from itertools import product

import pytest
import sqlalchemy as sa

from climassay.evaluation import Prediction
from climassay.evaluation.report import is_wrong
from climassay.records import tables
from climassay.records.queries import require_run, run_details
from climassay.web.app_state import ResultCache
from climassay.web.results.question_index import QuestionFilter, QuestionIndex
from climassay.web.results.stored_run import StoredRun
from experiments import experiment, question
from html_pages import Page
from stored_runs import store_experiment, store_mcq


@pytest.fixture(params=["experiment", "mcq"])
def run(place, request):
    return (store_experiment if request.param == "experiment" else store_mcq)(place.records)


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
        wanted = QuestionFilter(
            **dict(zip(("benchmark", "kind", "level", "model", "wrong", "text"), values, strict=True))
        )
        expected = by_hand(stored, wanted)
        assert index.count(wanted) == len(expected), wanted
        assert index.numbers(wanted, 1000) == expected, wanted
        assert index.numbers(wanted, 3, offset=2) == expected[2:5]
    assert index.choices()["model"] == list(dict.fromkeys(one.cell.model for one in stored.experiment.outcomes))


def test_a_run_whose_results_have_changed_is_indexed_anew(place):
    run = store_experiment(place.records)
    assert len(QuestionIndex(place, require_run(place.database, run))) == 27
    gone = tables.results.delete().where(tables.results.c.name == "outcomes", tables.results.c.position >= 5)
    place.database.write(lambda connection: connection.execute(gone))
    found = QuestionIndex(place, require_run(place.database, run))
    assert len(found) == len(StoredRun(run_details(place.database, run)).questions) < 27


def numbers_where(stored, fits):
    """Numbers of the questions whose answers by (model, setting) fit."""
    found = []
    for number, key in enumerate(stored.questions):
        said = {(one.cell.model, one.cell.setting): one for one in stored.outcomes[key]}
        if fits(said, key):
            found.append(number)
    return found


def test_questions_that_one_answers_right_and_another_wrong(place):
    run, second = store_experiment(place.records), store_experiment(place.records, experiment(seed=5))
    index, stored = QuestionIndex(place, require_run(place.database, run)), StoredRun(run_details(place.database, run))
    other = StoredRun(run_details(place.database, second))
    there = QuestionIndex(place, require_run(place.database, second))
    columns = index.columns()
    assert [column[1:] for column in columns] == list(
        dict.fromkeys((one.cell.model, one.cell.setting) for one in stored.experiment.outcomes)
    )
    for right, fails in product(columns, [*columns, *there.columns()]):

        def fits(said, key, right=right, fails=fails):
            beside = {(one.cell.model, one.cell.setting): one for one in other.outcomes[key]}
            good, bad = said.get(right[1:]), (said if fails.run == run else beside).get(fails[1:])
            return good is not None and bad is not None and not is_wrong(good) and is_wrong(bad)

        found = index.numbers(QuestionFilter(right=right, fails=fails), 1000)
        assert found == numbers_where(stored, fits)
    assert any(index.count(QuestionFilter(right=columns[0], fails=one)) for one in there.columns())


def test_invalid_answers_and_most_wrong_ones_first(place):
    run = store_experiment(place.records)
    index, stored = QuestionIndex(place, require_run(place.database, run)), StoredRun(run_details(place.database, run))
    invalid = numbers_where(stored, lambda said, _: any(one.error or one.violations for one in said.values()))
    assert index.numbers(QuestionFilter(invalid=True), 1000) == invalid
    wrong = [sum(map(is_wrong, stored.outcomes[key])) for key in stored.questions]
    expected = sorted(range(len(wrong)), key=lambda number: (-wrong[number], number))
    assert index.numbers(QuestionFilter(), 1000, order="wrong") == expected


def test_the_grid_is_sorted_by_any_column(place, client_of):
    run, second = store_experiment(place.records), store_experiment(place.records, experiment(seed=5))
    index, there = (QuestionIndex(place, require_run(place.database, one)) for one in (run, second))
    stored, other = (StoredRun(run_details(place.database, one)) for one in (run, second))
    keys = list(stored.questions)
    for column in (*index.columns(), *there.columns()):

        def score(number, column=column):
            said = (stored if column.run == run else other).outcomes[keys[number]]
            [one] = [one for one in said if (one.cell.model, one.cell.setting) == column[1:]]
            binary = [name for name in one.scores if name in ("accuracy", "exact_match")]
            return one.scores[binary[0]] if binary else None

        scored = [number for number in range(len(keys)) if score(number) is not None]
        for backwards in (False, True):
            found = index.numbers(QuestionFilter(), 1000, order=column, reverse=backwards)
            assert sorted(found) == list(range(len(keys)))
            sign = -1 if backwards else 1
            expected = sorted(scored, key=lambda number: (sign * score(number), number))
            assert [number for number in found if number in expected] == expected
    ids = [keys[number][1] for number in index.numbers(QuestionFilter(), 1000, order="question", reverse=True)]
    assert ids == sorted(ids, reverse=True)
    reader = client_of("annotator")
    address = f"/results/{run}/questions?kind=mcq&other={second}&order=3"
    page = Page(reader.get(address).text)
    [heading] = page.root.css("table.grid th[aria-sort]")
    assert heading.attributes["aria-sort"] == "ascending"
    marks = [row.css("td")[3].text() for row in page.root.css("table.grid tbody tr")]
    assert "wrong" in marks[0]
    assert "right" in marks[-1]
    [turned] = [link for link in page.links if "direction=down" in link and "order=3" in link]
    assert "right" in Page(reader.get(turned).text).root.css("table.grid tbody tr")[0].css("td")[3].text()


def test_option_orders_that_disagree(place):
    given = experiment()
    first = next(one for one in given.outcomes if one.cell.task == "mcq")

    def choice(question, permutation, chosen):
        return Prediction(question, "base", "default", "letter", permutation, (0, 1, 2, 3), chosen, chosen, True, 0)

    predictions = (
        choice(first.question, 0, 1),
        choice(first.question, 1, 2),
        choice("mcq-3", 0, 1),
        choice("mcq-3", 1, 1),
    )
    run = store_experiment(place.records, replace(given, predictions={first.cell: predictions}))
    index = QuestionIndex(place, require_run(place.database, run))
    [number] = index.numbers(QuestionFilter(unstable=True), 1000)
    assert index.key(number) == (first.cell.benchmark, first.question)


def test_what_was_chosen_in_each_option_order_is_shown(place, client_of):
    given = experiment({("small", "default"): 0.5}, questions=[question("mcq", 1), question("mcq", 11)])
    cell = given.cells[0].cell
    orders = [
        Prediction("mcq-1", None, "default", "letter", n, (0, 1, 2, 3), chosen, chosen, chosen == 1, 1)
        for n, chosen in enumerate((1, 1, 1, 3))
    ]
    # A question whose id begins alike has predictions of its own.
    alike = [replace(one, question="mcq-11", correct=False, chosen=None) for one in orders]
    shares = {"mcq-1": 0.75, "mcq-11": 0.0}
    outcomes = tuple(replace(one, scores={"accuracy": shares[one.question]}) for one in given.outcomes)
    run = store_experiment(place.records, replace(given, outcomes=outcomes, predictions={cell: (*alike, *orders)}))
    reader = client_of("annotator")
    marks = [one.text() for one in Page(reader.get(f"/results/{run}/questions").text).root.css("a.mark")]
    assert "75%" in marks[0]
    assert "wrong" in marks[1]
    text = Page(reader.get(f"/results/{run}/questions/mcq-1").text).root.text()
    assert "right in 3 of 4 option orders: b), b), b), d)" in text
    assert "0.75" in text
    none = Page(reader.get(f"/results/{run}/questions/mcq-11").text).root.text()
    assert "right in 0 of 4 option orders: none, none, none, none" in none


def test_pages_of_a_large_experiment_are_computed_once(place, client_of, monkeypatch):
    monkeypatch.setattr("climassay.web.results.question_index.MANY_ROWS", 10)
    monkeypatch.setattr("climassay.web.results.stored_run.MANY_ROWS", 10)
    runs = [store_experiment(place.records, experiment(seed=seed)) for seed in (1, 2)]
    reader = client_of("annotator")
    for path in ("questions", "results"):
        assert reader.get(f"/results/{runs[0]}/{path}").status_code == 200
    first = reader.get(f"/results/compare?runs={','.join(runs)}").text

    def refuse(*_):
        raise AssertionError("The whole run was read.")

    for module in ("question_index", "stored_run"):
        monkeypatch.setattr(f"climassay.web.results.{module}.run_details", refuse)
    place.computed = ResultCache()
    place.forget("results:")
    page = reader.get(f"/results/{runs[0]}?show=tables").text
    assert "Multiple choice and cloze, primer" in page
    assert "data-load" not in page
    asked = []
    listener = (place.database._engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    sa.event.listen(*listener)
    assert reader.get(f"/results/{runs[0]}/questions").status_code == 200
    sa.event.remove(*listener)
    assert asked
    assert not [statement for statement in asked if "indexed_answers" in statement and "GROUP BY" in statement], (
        "the columns were looked for in all rows"
    )
    assert reader.get(f"/results/compare?runs={','.join(runs)}").text.count("<td") == first.count("<td")
