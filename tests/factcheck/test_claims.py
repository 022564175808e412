"""Tables of claims: which column is what, dates as people write them, and one sentence for what does not fit."""

import datetime

import pytest

from climassay.corpus import Passage, StoredDocument
from climassay.errors import InputError
from climassay.factcheck import Claim, ClaimColumns, make_claim, read_claims
from climassay.factcheck.claims import dating_warning, find_years, iso_date, latest_editions, parse_year, subject_year


def written(tmp_path, text, name="claims.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


TABLE = 'Claim,Verdict,Source,Date\nThe Sun did it.,incorrect,A blog,15-May-23\n"Ice, too,  melts.",,,2019\n'


def test_columns_are_known_by_their_names_in_any_case(tmp_path):
    table = read_claims(written(tmp_path, TABLE), ClaimColumns(verdict="Verdict"))
    assert table.claims == (
        make_claim("The Sun did it.", source="A blog", date="2023-05-15"),
        make_claim("Ice, too, melts.", date="2019"),
    )
    assert table.verdicts == ("incorrect", None)
    assert table.skipped == ()


def test_rows_without_a_claim_are_left_out_and_named(tmp_path):
    table = read_claims(written(tmp_path, "claim,verdict\nOne.,a\n  ,b\nThree.,c\n"), ClaimColumns(verdict="verdict"))
    assert [claim.text for claim in table.claims] == ["One.", "Three."]
    assert table.verdicts == ("a", "c")
    assert table.skipped == ("row 2 has no claim",)


def test_a_column_that_the_first_row_leaves_out_is_there(tmp_path):
    lines = '{"claim": "One."}\n{"claim": "Two.", "verdict": "correct"}\n'
    table = read_claims(written(tmp_path, lines, "claims.jsonl"), ClaimColumns(verdict="verdict"))
    assert table.verdicts == (None, "correct")


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("", ClaimColumns(), "has no rows"),
        ("claim\n", ClaimColumns(), "has no rows"),
        (
            "assertion,verdict\nIt is.,a\n",
            ClaimColumns(),
            "no column of claims: name one of assertion, verdict with --claim",
        ),
        ("assertion\nIt is.,a,b\n", ClaimColumns(), "no column of claims: name one of assertion with --claim"),
        ("claim\nIt is.\n", ClaimColumns(claim="claims"), r"no column 'claims' \(--claim\): it has claim"),
        ("claim\nIt is.\n", ClaimColumns(verdict="truth"), r"no column 'truth' \(--truth\): it has claim"),
        ("claim\nIt is.\n", ClaimColumns(source="by"), r"no column 'by' \(--source\)"),
        ("claim\nIt is.,more\n", ClaimColumns(date="when"), r"no column 'when' \(--date\): it has claim"),
        ("claim,x\n,1\n  ,2\n", ClaimColumns(), "No row of .* has a claim in the column claim"),
        ('{"claim": ', ClaimColumns(), "is not valid JSON"),
    ],
    ids=[
        "empty", "header only", "no claims", "more cells than names", "claim", "truth", "source", "date", "blank",
        "JSON",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_in_one_sentence(tmp_path, text, columns, words):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=words) as raised:
        read_claims(path, columns)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("15-May-23", "2023-05-15"), ("1-June-19", "2019-06-01"), ("2023-05-15", "2023-05-15"),
        ("2023-05-15T10:30:00Z", "2023-05-15"), ("2023-05-15 00:00:00", "2023-05-15"), ("15 May 2023", "2023-05-15"),
        ("2 Jun 2020", "2020-06-02"), ("May 15, 2023", "2023-05-15"), ("15.05.2023", "2023-05-15"),
        ("15/05/2023", "2023-05-15"), ("2023", "2023"), ("2023-05", "2023-05"), ("May 2023", "2023"),
        ("spring 1998", "1998"), ("31-Feb-23", "31-Feb-23"), ("last week", "last week"), ("12345", "12345"), ("", ""),
    ],
)  # fmt: skip
def test_dates_are_understood_as_people_write_them(text, date):
    assert iso_date(text) == date


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
    assert find_years(text) == years


@pytest.mark.parametrize(
    ("text", "date", "year"),
    [
        ("Sea ice reached a record low in 2012, lower than in 2007.", "15-May-23", 2012),
        ("Sea ice reached a record low.", "2019-03-01", 2019), ("Sea ice reached a record low.", "", None),
        ("By 2100 the sea rises by a metre.", "2019", 2019), ("By 2100 the sea rises by a metre.", "", None),
        ("Compared with 1990, emissions halve by 2035.", "2021", 2021),
        ("Compared with 1990, emissions halve by 2035.", "", 1990), ("Warming has stopped since 1998.", "2017", 2017),
        ("In 1950 there were 10,000 polar bears, today there are 39,000.", "2020", 2020),
        ("Warming has stopped since 1998.", "", 1998), ("2025 was cold.", "", None), ("2023 was hot.", "", 2023),
        ("The last 2000 years were colder.", "2018", 2018),
    ],
)  # fmt: skip
def test_the_subject_of_a_claim_is_in_the_past_of_the_claim(text, date, year):
    assert subject_year(claim(text, date), today=TODAY) == year


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("2023-05-15", 2023), ("15-May-23", 2023), ("3-Jan-95", 1995), ("May 2021", 2021), ("2nd edition 2019", 2019),
        ("1990, revised 2005", 2005), ("3rd edition", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_dates_are_read_as_sources_write_them(date, year):
    assert parse_year(date) == year


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
