"""The pages of results in a real browser: sorting, filtering, drilling down, on a phone, without scripts."""

import pytest

from browser import sideways
from experiments import experiment, questions_of
from stored_runs import store_experiment

SKILLS = {
    (model, setting): 0.35 + 0.1 * place + 0.15 * number
    for place, model in enumerate(("SmolLM2-135M", "SmolLM2-360M", "gpt-4o-mini"))
    for number, setting in enumerate(("default", "few-shot", "rag-source"))
}


@pytest.fixture
def experiment_run(running_server):
    given = experiment(SKILLS, questions=questions_of(60, 45, 30))
    return store_experiment(running_server.place.records, given, name="primer-matrix", asked=("What about mcq?",))


def column(page, title, place):
    """Cells of a column of the table with that caption, as they stand, hidden rows left out."""
    rows = page.locator("table", has=page.locator("caption", has_text=title)).locator("tbody tr:not([hidden])")
    return [row.locator("td").nth(place).inner_text() for row in rows.all()]


def test_tables_sort_by_value_and_filter(visit, experiment_run):
    page = visit("annotator")
    page.goto(f"/results/{experiment_run}?show=tables")
    page.get_by_role("heading", name="Experiment primer-matrix").wait_for()
    title = "Multiple choice and cloze, primer"
    before = column(page, title, 5)
    table = page.locator("table", has=page.locator("caption", has_text=title))
    button = table.get_by_role("button", name="MCQ Overall n=60")
    button.press("Enter")
    shown = column(page, title, 5)
    assert sorted(before) == sorted(shown)
    values = [float(text.split()[0]) for text in shown]
    assert values == sorted(values, reverse=True)
    assert shown != before
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("MCQ Overall")
    button.press("Enter")
    values = [float(text.split()[0]) for text in column(page, title, 5)]
    assert values == sorted(values)
    button.press("Enter")
    assert column(page, title, 5) == before
    assert table.locator("th[aria-sort]").count() == 0
    tests = page.locator(".result-table", has=page.locator("caption", has_text="Settings compared"))
    tests.get_by_label("Filter rows").fill("gpt-4o-mini")
    models = column(page, "Settings compared on the same questions, primer", 0)
    assert set(models) == {"gpt-4o-mini"}
    assert f"{len(models)} of " in tests.locator("output").inner_text()
    # P-values: "<0.001" comes before every other.
    tests.get_by_label("Filter rows").fill("")
    heading = tests.get_by_role("button", name="p (Holm)", exact=True)
    heading.click()
    heading.click()
    adjusted = column(page, "Settings compared on the same questions, primer", 8)
    numbers = [float(text.lstrip("<")) - 1e-9 * text.startswith("<") for text in adjusted]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 3


def test_words_of_figures_are_as_large_on_a_phone(visit, experiment_run):
    page = visit("annotator", phone=True)
    page.goto(f"/results/{experiment_run}?show=figures")
    # In CSS pixels as drawn: a view box that is scaled down makes them smaller than their style says.
    sizes = page.locator("figure svg text").evaluate_all(
        "all => all.map(one => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)"
    )
    assert len(sizes) > 50
    assert min(sizes) >= 11
    assert page.locator("figure polyline").count() == 0
    page.locator("figure", has_text="Reliability").first.get_by_text("All values").click()
    assert page.locator("figure details[open] tbody tr").count() > 5
    assert sideways(page) == 0
