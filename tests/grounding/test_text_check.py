"""Texts checked sentence by sentence: status, evidence, differences, judges, and words that are too sure."""

import json

import pytest

from climassay.confidence.overstatement import overstatement
from climassay.corpus.documents import Passage
from climassay.errors import InputError
from climassay.grounding.text_check import (
    SupportJudge,
    check_sentences,
    differing_figures,
    foreign_names,
    opposed_words,
    other_places,
)
from climassay.metrics.entailment_head import bundled_entailment
from command_line import run_command
from scripted_model import ScriptedModel

SEA = "Global mean sea level rose by about 0.20 m from 1901 to 2018. Thermal expansion is likely to go on."
ICE = "Arctic sea ice in September has decreased by some 40 per cent since 1979, while deserts expanded."
PASSAGES = {
    number: Passage(f"p-{number}", text, "p", "A book", "book.md", number)
    for number, text in enumerate((SEA, ICE), start=1)
}


def checked(text, **options):
    scorer = bundled_entailment()
    return check_sentences(
        text, None, scorer=scorer, encoder=scorer.head.encoder, passages=PASSAGES, overstated=overstatement, **options
    )


@pytest.mark.parametrize(
    ("text", "status", "said", "source"),
    [
        ("From 1901 to 2018 the global mean sea level rose by about 0.20 m [1].", "supported", None, None),
        ("From 1901 to 2018 the global mean sea level rose by about 0.90 m [1].", "contradicted", "0.90 m", "0.20 m"),
        ("From 1901 to 2018 the global mean sea level fell by about 0.20 m [1].", "contradicted", "fell", "rose"),
        (
            "Arctic sea ice in September has increased by 40 per cent since 1979.",
            "contradicted",
            "increased",
            "decreased",
        ),
        ("Antarctic sea ice in September has decreased by 40 per cent since 1979.", "contradicted", "antarctic", None),
        ("Mozart wrote many operas for the court of Vienna.", "unsupported", None, None),
        ("How much has the sea risen?", "no claim", None, None),
        ("I hope this answer helps you.", "no claim", None, None),
        ("# Sea level and its causes today", "no claim", None, None),
    ],
)
def test_a_sentence_gets_its_status_and_what_differs(text, status, said, source):
    [found] = checked(text)
    assert found.status == status, found
    assert found.marked == (status in ("contradicted", "unsupported"))
    if said:
        [one] = [each for each in found.differing if each.said == said]
        assert one.source == source or (source is None and one.source)


def test_the_evidence_is_quoted_as_it_stands_in_the_passage():
    [found] = checked("Sea level rose by 0.20 m from 1901 to 2018.")
    assert found.evidence.passage == "p-1"
    assert found.evidence.quotation in SEA


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
    assert (overstatement(sentence, source) is not None) == too_sure


@pytest.mark.parametrize(
    ("sentence", "source", "opposed"),
    [
        ("Rainfall rises in winter.", "Rainfall falls in winter.", True),
        ("Rainfall climbs in winter.", "Rainfall rises in winter.", False),
        ("Rainfall did not fall in winter.", "Rainfall rose in winter.", False),
        ("Rainfall did not rise in winter.", "Rainfall rose in winter.", True),
        ("Nights have warmed more than days.", "Nights have warmed more than days over land.", False),
        ("Emissions rise.", "Volcanoes cool.", False),
    ],
)
def test_words_in_whose_place_a_source_has_the_contrary(sentence, source, opposed):
    assert bool(opposed_words(sentence, source)) == opposed


def test_names_and_places_that_the_source_does_not_have():
    assert foreign_names("Models of Greenland and Norway agree.", ["Greenland melts."]) == ("Norway",)
    assert [one.said for one in other_places("The tropics dry.", "The subtropics dry.")] == ["tropics"]
    assert not other_places("The tropics dry.", "Rainfall decreases.")


@pytest.mark.parametrize(
    ("sentence", "differing"),
    [
        ("The sea rose by 0.2 m from 1901 to 2018.", []),
        # Another passage has 2 m, for something else.
        ("The sea rose by about 2 m from 1901 to 2018.", [("2 m", "0.20 m")]),
        ("The sea rose by 0.20 m from 1951 to 2018.", [("1951", "1901")]),
        # Both figures stand in the sentence, each of another ice sheet.
        ("Greenland lost 4900 Gt of ice, Antarctica 2700 Gt.", []),
        ("Greenland lost 2700 Gt of ice, Antarctica 4900 Gt.", [("2700 Gt", "4900 Gt")]),
        # A length of another thing is no other value of this one.
        ("Glaciers creep by 12 m.", [("12 m", "")]),
        # A sentence with all of them outweighs figures of another that has more of the words close by.
        ("The sea rose by 0.2 m between 1971 and 2015 (high confidence).", []),
        ("The sea rose by 0.2 m between 1980 and 2015 (high confidence).", [("1980", "2006"), ("2015", "2018")]),
        # It may be the same figure, rounded.
        ("Sunlight of about 340 W m-2 arrives.", []),
    ],
)
def test_figures_are_compared_with_those_of_the_same_thing(sentence, differing):
    sources = [
        ("The sea rose by about 0.20 m from 1901 to 2018.", 1.6),
        ("Under very high emissions a rise of nearly 2 m by 2100 cannot be ruled out.", 0.7),
        (
            "They agree that Greenland lost about 4900 Gt of ice and Antarctica about 2700 Gt between 1992 and 2020.",
            1.2,
        ),
        ("The sea level increased by 0.20 [0.15 to 0.25] m between 1971 and 2015.", 0.8),
        ("Losses of ice made the sea rise between 2006 and 2018 (high confidence).", 1.5),
        ("The sunlight that arrives is 342 W m-2.", 1.2),
        ("The planet spreads it over a sphere, about 340 W m-2.", 0.5),
    ]
    assert [(one.said, one.source) for one in differing_figures(sentence, sources)] == differing


def test_a_sentence_with_all_figures_does_not_bear_a_quantity_of_another_thing():
    source = "Of the heat from 1971 to 2018, about 91 per cent went into the ocean, about 5 per cent into the land."
    [found] = differing_figures("Of the heat from 1971 to 2018, about 5 per cent went into the ocean.", [(source, 1.6)])
    assert (found.said, found.source) == ("5 per cent", "91 per cent")


def test_a_figure_of_another_thing_is_shown_with_the_sentence_that_speaks_against_it():
    passages = {1: PASSAGES[1], 3: Passage("p-3", "A rise of 0.90 m by 2100 is possible.", "p", "A book", "book.md", 3)}
    scorer = bundled_entailment()
    text = "Global mean sea level rose by about 0.90 m from 1901 to 2018."
    [found] = check_sentences(text, None, scorer=scorer, encoder=scorer.head.encoder, passages=passages)
    assert (found.status, found.evidence.passage) == ("contradicted", "p-1")
    assert "0.20 m" in found.evidence.quotation


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
    assert found.status == "supported"


def judge(**answer):
    given = {"reasoning": "It says so.", "relation": "supports", "passage": 1, "quotation": "", **answer}
    return SupportJudge(ScriptedModel(write=lambda _, schema: json.dumps(given)))


def test_a_judge_decides_where_its_quotation_stands_in_a_passage():
    text = "The sea has been rising for more than a hundred years."
    words = "Global mean sea level rose by about 0.20 m"
    [found] = checked(text, judge=judge(quotation=words))
    assert (found.status, found.evidence.quotation, found.reason) == ("supported", words, "It says so.")
    [found] = checked(text, judge=judge(relation="contradicts", passage=2, quotation=words))
    assert (found.status, found.evidence.passage) == ("contradicted", "p-1")
    [found] = checked(text, judge=judge(quotation="The sea has risen by far"))
    assert found.status == "unsupported"
    assert not found.judgement.quoted


def test_a_judge_that_fails_leaves_the_word_to_the_scorer():
    text = "Sea level rose by 0.20 m from 1901 to 2018."
    for write in (lambda *_: ValueError("down"), lambda *_: "{}"):
        [found] = checked(text, judge=SupportJudge(ScriptedModel(write=write)))
        assert found.judgement.error
        assert found.status == checked(text)[0].status == "supported"


def test_what_cannot_be_checked_is_said():
    with pytest.raises(InputError, match="empty"):
        checked(" ")
    with pytest.raises(InputError, match="characters"):
        checked("a" * 300_000)
    with pytest.raises(InputError, match="collection"):
        check_sentences("It warms.", None, scorer=bundled_entailment())


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
    assert "<b>level" not in html
    code, out, err = run_command(monkeypatch, capsys, "check-text", tmp_path / "none.md", "-c", "book", "-w", workspace)
    assert (code, out) == (2, "")
    assert "none.md" in err
