import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus.collection_documents import StoredDocument
from climassay.corpus.documents import Passage
from climassay.factcheck.claims import dating_warning, latest_editions, passage_year, subject_year, year_of, years_named
from climassay.factcheck.transcript import Claim

TODAY = datetime.date(2024, 6, 1)


def claim(text, date=""):
    return Claim(text, date=date)


def passage(date=None, edition=None):
    return Passage("p-0", "Text.", "p", "Report", "r.pdf", 0, date=date, edition=edition)


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("In 2019 it was 1.1 °C.", (2019,)),
        ("From 1998-2012, 1979–2000 and 2010–19", (1998, 2012, 1979, 2000, 2010, 2019)),
        ("since the 1990s, post-2000, mid-1980s", (1990, 2000, 1980)),
        ("by 2100 and in 2050", (2100, 2050)),
        ("2000 people, 2015 m, 1,990 scientists, 2000 years ago, 1850 ppb, $2000, 1998.5", ()),
        ("SSP1-2000 A1900 12345 1066", ()),
    ],
)
def test_years_are_told_from_other_numbers(text, years):
    assert years_named(text) == years


@pytest.mark.parametrize(
    ("text", "date", "year"),
    [
        ("Sea ice reached a record low in 2012, lower than in 2007.", "15-May-23", 2012),
        ("Sea ice reached a record low.", "2019-03-01", 2019),
        ("Sea ice reached a record low.", "", None),
        ("By 2100 the sea rises by a metre.", "2019", 2019),
        ("By 2100 the sea rises by a metre.", "", None),
        ("Compared with 1990, emissions halve by 2035.", "2021", 2021),
        ("Compared with 1990, emissions halve by 2035.", "", 1990),
        ("Warming has stopped since 1998.", "2017", 2017),
        ("In 1950 there were 10,000 polar bears, today there are 39,000.", "2020", 2020),
        ("Warming has stopped since 1998.", "", 1998),
        ("2025 was cold.", "", None),
        ("2023 was hot.", "", 2023),
        ("The last 2000 years were colder.", "2018", 2018),
    ],
)
def test_the_subject_of_a_claim_is_in_the_past_of_the_claim(text, date, year):
    assert subject_year(claim(text, date), today=TODAY) == year


@given(st.integers(1800, 2100), st.integers(1990, 2030))
def test_evidence_need_never_know_what_came_after_the_claim(year, made):
    assert subject_year(claim(f"It was hot in {year}.", str(made)), today=TODAY) == min(year, made)


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("2023-05-15", 2023),
        ("15-May-23", 2023),
        ("3-Jan-95", 1995),
        ("May 2021", 2021),
        ("2nd edition 2019", 2019),
        ("1990, revised 2005", 2005),
        ("3rd edition", None),
        ("", None),
        (None, None),
    ],
)
def test_dates_are_read_as_sources_write_them(date, year):
    assert year_of(date) == year


def test_the_year_of_a_passage_is_of_its_date_else_its_edition():
    assert passage_year(passage("2021-08-09", "2nd edition 2019")) == 2021
    assert passage_year(passage(None, "2nd edition 2019")) == 2019
    assert passage_year(passage()) is None


def test_a_warning_is_given_only_when_all_dated_evidence_is_older():
    about = claim("Sea ice reached a record low in 2023.", "2024")
    old, older, new = passage("2021"), passage("2018-10"), passage(edition="2023 update")
    assert dating_warning(about, [old, older, passage()]) == (
        "All dated evidence is older than what the claim is about (2023): the newest is from 2021."
    )
    assert dating_warning(about, [older, older]).endswith("it is from 2018.")
    assert dating_warning(about, [old, new]) is None
    assert dating_warning(about, [passage()]) is None
    assert dating_warning(about, []) is None
    assert dating_warning(claim("Ice floats."), [older], today=TODAY) is None


def test_a_projection_is_no_reason_to_warn_of_evidence_of_its_own_time():
    projection = claim("By 2100 the sea rises by two metres.", "2019")
    assert dating_warning(projection, [passage("2019")]) is None
    assert dating_warning(projection, [passage("2014")]) is not None


def document(name, title, date=None, edition=None, report=None):
    return StoredDocument(name, title, f"{name}.pdf", 1, 1, report=report, date=date, edition=edition)


def test_only_the_latest_edition_of_each_work_is_kept():
    documents = [
        document("sr14", "Climate Change 2014: Synthesis Report", "2014-11-02", report="AR5"),
        document("sr23", "Climate Change 2023: Synthesis Report", "2023-03-20", report="AR6"),
        document("book2", "A First Course in Climate, 2nd edition", edition="2nd edition 2010"),
        document("book3", "A First Course in Climate, Third Edition", edition="3rd edition 2018"),
        document("spm1", "Summary for Policymakers", "2021", report="AR6 WG1"),
        document("spm2", "Summary for Policymakers", "2022", report="AR6 WG2"),
        document("undated", "Climate Change 2007: Synthesis Report", report="AR4"),
        document("alone", "State of the Climate", "1999"),
    ]
    kept = latest_editions(documents)
    assert kept == {"sr23", "book3", "spm1", "spm2", "undated", "alone"}


def test_editions_are_ordered_by_date_then_number_and_equals_all_stay():
    numbered = [document("a", "Atlas", edition="9"), document("b", "Atlas", edition="10th")]
    assert latest_editions(numbered) == {"b"}
    same_year = [document("a", "Atlas", "2020-03-01"), document("b", "Atlas", "2020-11-30")]
    assert latest_editions(same_year) == {"b"}
    parts = [document("a", "Atlas", "2020"), document("b", "Atlas", "2020")]
    assert latest_editions(parts) == {"a", "b"}
    assert latest_editions([]) == frozenset()


@given(st.lists(st.tuples(st.sampled_from("AB"), st.one_of(st.none(), st.integers(1990, 2024))), max_size=8))
def test_no_work_disappears_and_undated_documents_stay(rows):
    documents = [document(str(n), title, str(year) if year else None) for n, (title, year) in enumerate(rows)]
    kept = latest_editions(documents)
    assert {rows[int(name)][0] for name in kept} == {title for title, _ in rows}
    for title, year in rows:
        newest = max((y for t, y in rows if t == title and y), default=None)
        names = {str(n) for n, row in enumerate(rows) if row == (title, year)}
        assert names <= kept if year in (None, newest) else not names & kept
