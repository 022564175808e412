"""Tables with many intervals fit a window of 1280 pixels, and nothing in them is cut off."""

import pytest

from browser import WIDE, inside
from climassay.reporting import Report, Section, Table


@pytest.mark.browser
@pytest.mark.parametrize("shown", ["61.1 [52.0, 69.4]", "0.473 [0.311, 0.520]", "100.0 [100.0, 100.0]"])
def test_twelve_columns_of_intervals_fit(shown, chromium):
    headings = ("model", "setting", *(f"MCQ Reason\n{number}" for number in range(12)))
    rows = [
        ("Llama-3.3-70B-Instruct-Turbo", "rag-source", *[shown] * 12),
        ("smollm2", "default", *["0.0 [0.0, 9.9]"] * 12),
    ]
    table = Table.of("Accuracy", headings, rows, left=2)
    browser, loop = chromium
    with inside(loop):
        page = browser.new_page(viewport=WIDE)
        page.set_content(Report("R", "lead", (Section("S", (table,)),)).to_html())
        assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.scroll'))") == 0
        cut = "[...document.querySelectorAll('td, th')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        assert page.evaluate(cut) == 0
        page.close()
