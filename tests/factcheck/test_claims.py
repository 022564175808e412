"""Tables of claims: which column is what, dates as people write them, and one sentence for what does not fit."""

import datetime
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.factcheck.claims import ClaimColumns, iso_date, make_claim, read_claims
from climassay.primer import claims_path


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
    assert table.judged
    assert table.skipped == ()


def test_no_verdicts_are_read_unless_their_column_is_named(tmp_path):
    table = read_claims(written(tmp_path, TABLE))
    assert table.verdicts == (None, None)
    assert not table.judged


def test_columns_may_be_named(tmp_path):
    text = "text,said,by,when,rating\nnot this,The Sun did it.,Somebody,2 June 2020,Incorrect\n"
    columns = ClaimColumns("said", "rating", "by", "when")
    [claim] = read_claims(written(tmp_path, text), columns).claims
    assert (claim.text, claim.source, claim.date) == ("The Sun did it.", "Somebody", "2020-06-02")
    assert read_claims(written(tmp_path, text)).claims[0].text == "not this"


@pytest.mark.parametrize(
    ("header", "wanted"), [("text,statement,claim", "c"), ("text,statement", "b"), ("x,text", "b")]
)
def test_the_most_telling_column_of_several_is_taken(tmp_path, header, wanted):
    assert read_claims(written(tmp_path, f"{header}\na,b,c\n")).claims[0].text == wanted


def test_the_same_table_in_any_form(tmp_path):
    rows = [{"claim": "The Sun did it.", "date": "2023"}, {"claim": "Ice melts.", "date": None}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    files = [
        written(tmp_path, "claim,date\nThe Sun did it.,2023\nIce melts.,\n"),
        written(tmp_path, "claim\tdate\nThe Sun did it.\t2023\nIce melts.\t\n", "claims.tsv"),
        written(tmp_path, lines, "claims.jsonl"),
        written(tmp_path, json.dumps(rows), "claims.json"),
        tmp_path / "claims.parquet",
        tmp_path / "claims.jsonl.gz",
    ]
    pq.write_table(pa.Table.from_pylist(rows), files[4])
    files[5].write_bytes(gzip.compress(lines.encode()))
    tables = [read_claims(file) for file in files]
    assert tables[0].claims == (make_claim("The Sun did it.", date="2023"), make_claim("Ice melts."))
    assert all(table == tables[0] for table in tables)


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
        ("claim\nIt is.\n", ClaimColumns(claim="Claim"), r"no column 'Claim' \(--claim\): it has claim"),
        ("claim\nIt is.\n", ClaimColumns(verdict="truth"), r"no column 'truth' \(--truth\): it has claim"),
        ("claim\nIt is.\n", ClaimColumns(source="by"), r"no column 'by' \(--source\)"),
        ("claim\nIt is.,more\n", ClaimColumns(date="when"), r"no column 'when' \(--date\): it has claim"),
        ("claim,x\n,1\n  ,2\n", ClaimColumns(), "No row of .* has a claim in the column claim"),
        ('{"claim": ', ClaimColumns(), "is not valid JSON"),
    ],
    ids=[
        "empty",
        "header only",
        "no claims",
        "more cells than names",
        "claim",
        "truth",
        "source",
        "date",
        "blank",
        "JSON",
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(tmp_path, text, columns, words):
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=words) as raised:
        read_claims(path, columns)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("content", [None, b"\x1f\x8b broken", b"claim\n\xff\n"], ids=["missing", "gzip", "encoding"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    path = tmp_path / "claims.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"claims\.csv"):
        read_claims(path)


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=12), min_size=1, max_size=5))
def test_every_row_becomes_a_claim_or_is_named(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("claims") / "claims.jsonl"
    path.write_text("".join(json.dumps({"claim": text}) + "\n" for text in texts), encoding="utf-8")
    if not any(text.strip() for text in texts):
        with pytest.raises(InputError, match="No row of"):
            read_claims(path)
        return
    table = read_claims(path)
    assert [claim.text for claim in table.claims] == [" ".join(text.split()) for text in texts if text.strip()]
    assert len(table.claims) + len(table.skipped) == len(texts)


def test_the_claims_of_the_primer_can_be_read():
    table = read_claims(claims_path(), ClaimColumns(verdict="verdict"))
    assert len(table.claims) == 40
    assert table.judged
    assert len({claim.id for claim in table.claims}) == len(table.claims)


# ------------------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("15-May-23", "2023-05-15"),
        ("1-June-19", "2019-06-01"),
        ("2023-05-15", "2023-05-15"),
        ("2023-05-15T10:30:00Z", "2023-05-15"),
        ("2023-05-15 00:00:00", "2023-05-15"),
        ("15 May 2023", "2023-05-15"),
        ("2 Jun 2020", "2020-06-02"),
        ("May 15, 2023", "2023-05-15"),
        ("15.05.2023", "2023-05-15"),
        ("15/05/2023", "2023-05-15"),
        ("2023", "2023"),
        ("2023-05", "2023-05"),
        ("May 2023", "2023"),
        ("spring 1998", "1998"),
        ("31-Feb-23", "31-Feb-23"),
        ("last week", "last week"),
        ("12345", "12345"),
        ("", ""),
    ],
)
def test_dates_are_understood_as_people_write_them(text, date):
    assert iso_date(text) == date


@given(
    st.dates(datetime.date(1970, 1, 1), datetime.date(2068, 12, 31)),
    st.sampled_from(["%d-%b-%y", "%d %B %Y", "%d.%m.%Y"]),
)
def test_any_date_survives_its_spelling(day, form):
    assert iso_date(day.strftime(form)) == day.isoformat()


@given(st.text(max_size=30))
def test_what_is_understood_stays_as_it_is(text):
    assert iso_date(iso_date(text)) == iso_date(text)
