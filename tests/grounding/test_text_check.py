"""Texts checked sentence by sentence: status, evidence, judges, and words that are too sure."""

import json
from pathlib import Path

import pytest

from climassay import load_encoder
from climassay.confidence.overstatement import describe_overstatement
from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.grounding.support_judge import SupportJudge
from climassay.grounding.text_check import check_sentences
from command_line import run_command
from scripted_model import ScriptedModel

SEA = "Global mean sea level rose by about 0.20 m from 1901 to 2018. Thermal expansion is likely to go on."
ICE = "Arctic sea ice in September has decreased by some 40 per cent since 1979, while deserts expanded."
PASSAGES = {
    number: Passage(f"p-{number}", text, "p", "A book", "book.md", number)
    for number, text in enumerate((SEA, ICE), start=1)
}


def checked(text, **options):
    return check_sentences(
        text, None, encoder=load_encoder(), passages=PASSAGES, find_overstatement=describe_overstatement, **options
    )


@pytest.mark.parametrize(
    ("text", "status", "said", "source"),
    [
        ("From 1901 to 2018 the global mean sea level rose by about 0.20 m [1].", "similar", None, None),
        ("From 1901 to 2018 the global mean sea level rose by about 0.90 m [1].", "contradicted", "0.90 m", "0.20 m"),
        (
            "From 1901 to 2018 the global mean sea level fell by about 0.20 m [1].",
            "contradicted",
            "fell 0.20 m",
            "rose 0.20 m",
        ),
        (
            "Arctic sea ice in September has increased by 40 per cent since 1979.",
            "contradicted",
            "increased 40 per cent",
            "decreased 40 per cent",
        ),
        ("Arctic sea ice in September has increased since 1979.", "similar", "increased", "decreased"),
        ("Antarctic sea ice in September has decreased by 40 per cent since 1979.", "similar", "antarctic", None),
        ("Mozart wrote many operas for the court of Vienna.", "unsupported", None, None),
        ("How much has the sea risen?", "no claim", None, None),
        ("I hope this answer helps you.", "no claim", None, None),
        ("# Sea level and its causes today", "no claim", None, None),
    ],
)
def test_a_sentence_gets_its_status_and_what_differs(text, status, said, source):
    [found] = checked(text)
    assert found.status == status, found
    assert found.marked == (status in ("contradicted", "unsupported") or said is not None)
    if said:
        [one] = [each for each in found.differing if each.text == said]
        assert one.source == source or (source is None and one.source)


def test_the_evidence_is_quoted_as_it_stands_in_the_passage():
    [found] = checked("Sea level rose by 0.20 m from 1901 to 2018.")
    assert [(one.passage, one.relation) for one in found.evidence] == [("p-1", "nearest")]
    assert found.evidence[0].quotation in SEA


def test_paragraphs_references_and_certainty_are_told():
    found = checked("Thermal expansion is certain to go on.\n\nSea level rose by 0.20 m from 1901 to 2018 [9].")
    assert [one.paragraph for one in found] == [0, 1]
    assert "certain" in found[0].overstated
    assert [one.status for one in found[1].wrong_references] == ["invented"]
    assert all(one.marked for one in found)


@pytest.mark.parametrize(
    ("sentence", "source", "too_sure"),
    [
        ("It will certainly melt.", "It may melt.", True),
        ("It will very likely melt.", "It will likely melt.", True),
        ("It will likely melt.", "It will very likely melt.", False),
        ("It melts (high confidence).", "It melts (medium confidence).", True),
        ("It melts (medium confidence).", "It melts (high confidence).", False),
        ("It melts (very likely).", "It melts.", True),
        ("A certain region melts.", "A region melts.", False),
        ("It is not certain that it melts.", "It may melt.", False),
        ("It melts.", "It may melt.", False),
    ],
)
def test_a_sentence_that_is_surer_than_its_source(sentence, source, too_sure):
    assert (describe_overstatement(sentence, source) is not None) == too_sure


def test_a_figure_of_another_thing_is_shown_with_the_sentence_that_speaks_against_it():
    passages = {1: PASSAGES[1], 3: Passage("p-3", "A rise of 0.90 m by 2100 is possible.", "p", "A book", "book.md", 3)}
    text = "Global mean sea level rose by about 0.90 m from 1901 to 2018."
    [found] = check_sentences(text, None, encoder=load_encoder(), passages=passages)
    assert (found.status, found.evidence[0].passage) == ("contradicted", "p-1")
    assert "0.20 m" in found.evidence[0].quotation


@pytest.mark.parametrize(
    ("text", "nearest", "refuting"),
    [
        (
            "Satellite records show that the extent of Arctic sea ice in September has increased since 1979.",
            "Satellite records show the extent of Arctic sea ice in September since 1979.",
            "The extent of Arctic sea ice in September has decreased.",
        ),
        (
            "Solar activity has caused the warming that was observed since 1950.",
            "Solar activity and the warming that was observed since 1950 have been studied.",
            "Solar activity has not caused the warming since 1950.",
        ),
        (
            "Global mean sea level rose by 0.90 m between 1901 and 2018, as tide gauges show.",
            "Tide gauges show global mean sea level between 1901 and 2018.",
            "Global mean sea level rose by 0.20 m between 1901 and 2018.",
        ),
    ],
)
@pytest.mark.parametrize("same_passage", [True, False])
def test_the_sentence_that_refutes_comes_before_the_nearest_one(text, nearest, refuting, same_passage):
    texts = [f"{nearest} {refuting}"] if same_passage else [nearest, refuting]
    passages = {
        number: Passage(f"p-{number}", words, "p", "A book", "book.md", number) for number, words in enumerate(texts, 1)
    }
    [found] = check_sentences(text, None, encoder=load_encoder(), passages=passages)
    assert found.marked
    assert [one.relation for one in found.evidence][:1] == ["contradicts"]
    assert refuting in found.evidence[0].quotation
    assert any(nearest in one.quotation for one in found.evidence)
    agreeing = {**passages, 9: Passage("p-9", text, "p", "A book", "book.md", 9)}
    [found] = check_sentences(text, None, encoder=load_encoder(), passages=agreeing)
    assert [one.relation for one in found.evidence] == ["nearest"], found


@pytest.mark.parametrize(
    "text",
    [
        "Smith (2019) showed that sea level rose by 0.20 m from 1901 to 2018.",
        "According to Smith (2019), sea level rose by 0.20 m from 1901 to 2018.",
        "As Smith et al. 2019 say, sea level rose by 0.20 m from 1901 to 2018.",
        "A 2019 study says that sea level rose by 0.20 m from 1901 to 2018.",
    ],
)
def test_the_year_of_a_work_is_no_figure(text):
    [found] = checked(text)
    assert not found.differing, found
    assert found.status == "similar"


def judge(**answer):
    given = {"reasoning": "It says so.", "relation": "supports", "passage": 1, "quotation": "", **answer}
    return SupportJudge(ScriptedModel(write=lambda _, schema: json.dumps(given)))


WORDS = "Global mean sea level rose by about 0.20 m"


def test_only_a_judge_that_quotes_a_passage_makes_a_sentence_supported():
    text = "The sea has been rising for more than a hundred years."
    [alone] = checked(text)
    assert alone.status == "similar"
    assert not alone.marked
    [found] = checked(text, judge=judge(quotation=WORDS))
    assert (found.status, found.evidence[0].quotation, found.reason) == ("supported", WORDS, "It says so.")
    [found] = checked(text, judge=judge(relation="contradicts", passage=2, quotation=WORDS))
    assert (found.status, found.evidence[0].passage, found.evidence[0].relation) == (
        "contradicted", "p-1", "contradicts"
    )  # fmt: skip
    for invented in ("The sea has risen by far", "", " ", "...", "sea level"):
        [found] = checked(text, judge=judge(quotation=invented))
        assert found.status == "similar"
        assert not found.judgement.quoted
    [found] = checked(text, judge=judge(relation="settles nothing"))
    assert found.status == "unsupported"


def test_a_figure_that_differs_is_never_supported_whatever_the_judge_says():
    text = "From 1901 to 2018 the global mean sea level rose by about 0.90 m."
    [found] = checked(text, judge=judge(quotation=WORDS))
    assert (found.status, found.marked) == ("similar", True)
    assert found.differing[0] == ("0.90 m", "0.20 m")
    [found] = checked(text, judge=judge(relation="settles nothing"))
    assert found.status == "contradicted"


def test_a_sentence_on_which_the_judge_fails_stays_unread():
    text = "Sea level rose by 0.20 m from 1901 to 2018."
    for write in (lambda *_: ValueError("down"), lambda *_: "{}", lambda *_: "[]", lambda *_: '{"relation": 3}'):
        [found] = checked(text, judge=SupportJudge(ScriptedModel(write=write)))
        assert found.judgement.error
        assert found.status == "similar"


CASES = Path(__file__).parents[3] / "shared" / "data" / "cases" / "documents"


@pytest.mark.skipif(not CASES.is_dir(), reason="the cases from the field are not here")
@pytest.mark.parametrize(
    ("source", "claims", "right"),
    [
        ("klima_de.md", "de1.md", {0, 4}),
        ("names_source.md", "names_claims.md", set()),
        ("opposites_source.md", "opposites_claims.md", {7}),
    ],
)
def test_false_sentences_from_the_field_are_marked_and_right_ones_are_not(source, claims, right):
    passages = {1: Passage("p", (CASES / source).read_text(encoding="utf-8"), "p", "A report", "report.md", 1)}
    found = check_sentences(
        (CASES / claims).read_text(encoding="utf-8"), None, encoder=load_encoder(), passages=passages
    )
    assert {index for index, one in enumerate(found) if not one.marked} == right
    assert not any(one.status == "supported" for one in found)


def test_abbreviations_and_dates_end_no_german_sentence():
    text = "Die Kosten lagen am 4. November 2016 bei 20,7 Mio. Euro bzw. 1,2 Mrd. Kronen. Sie sanken am 5. Dezember."
    assert [one.text for one in checked(text)] == [text[:78].strip(), text[78:].strip()]


def test_what_cannot_be_checked_is_said():
    with pytest.raises(InputError, match="empty"):
        checked(" ")
    with pytest.raises(InputError, match="characters"):
        checked("a" * 300_000)
    with pytest.raises(InputError, match="collection"):
        check_sentences("It warms.", None)


@pytest.fixture
def workspace(tmp_path, monkeypatch, capsys):
    code, *_ = run_command(
        monkeypatch, capsys, "corpus", "add", "book", "primer:physical_climate", "-w", tmp_path / "w"
    )
    assert code == 0
    return tmp_path / "w"


def test_the_command_prints_and_saves_a_check(workspace, tmp_path, monkeypatch, capsys):
    file, page = tmp_path / "answer.md", tmp_path / "answer.html"
    file.write_text(
        "# Sea <b>level</b>\n\nGlobal mean sea level rose by about 0.90 m from 1901 to 2018 [7].\n\n[1] A book"
    )
    arguments = ("check-text", file, "-c", "book", "-w", workspace, "--json", "-o", page)
    code, out, err = run_command(monkeypatch, capsys, *arguments)
    assert code == 0, err
    data = json.loads(out)
    assert data["counts"]["contradicted"] == data["marked"] == 1
    assert data["references"] == {"invented": 1}
    html = page.read_text(encoding="utf-8")
    assert "0.20 m" in html
    # A rate that was measured on other texts would be taken for this text's score.
    assert "89%" not in html + err
    assert "<b>level" not in html
    code, out, err = run_command(monkeypatch, capsys, "check-text", tmp_path / "none.md", "-c", "book", "-w", workspace)
    assert (code, out) == (2, "")
    assert "none.md" in err
