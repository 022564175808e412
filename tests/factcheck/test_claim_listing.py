"""The claims of a document, as a model lists them: sentences by their numbers, figures that hold, rows to strike."""

import json

import pytest

from climassay import list_claims
from climassay.corpus import Block, Document
from climassay.errors import NoAnswerError
from climassay.factcheck.claim_listing import ClaimLister, claim_passages
from climassay.factcheck.claims import ClaimTable
from command_line import done
from scripted_model import ScriptedModel

TEXT = (
    "There has been no increase in the frequency of drought in the modern era. "
    "It is caused by the Sun, which delivers 1361 watts per square metre. We hope that readers enjoy this. "
    "Rising CO2 lets plants use water more efficiently."
)


def passages(text=TEXT):
    document = Document("d", "Climate Reconsidered", "report.pdf", (Block(text, page=7, chapter="Key findings"),))
    return claim_passages([document])


def listed(answer, text=TEXT):
    """The claims of a passage and the lister, for the answer of a model."""
    model = ScriptedModel(write=lambda _, schema: answer if isinstance(answer, Exception) else json.dumps(answer))
    lister = ClaimLister(model)
    return lister.list_claims(passages(text)), lister


def claim(sentences, words):
    return {"sentences": sentences, "claim": words}


def test_a_claim_has_the_sentences_that_make_it_with_page_and_section():
    claims, lister = listed(
        {"claims": [claim([1], "Droughts have not become more frequent."), claim([4], "CO2 saves plants water.")]}
    )
    assert [one.claim for one in claims] == ["Droughts have not become more frequent.", "CO2 saves plants water."]
    assert claims[0].sentences == "There has been no increase in the frequency of drought in the modern era."
    assert (claims[0].document, claims[0].page, claims[0].section) == ("Climate Reconsidered", 7, "Key findings")
    assert (lister.n_failed, lister.n_rejected, lister.n_repeated) == (0, 0, 0)
    [prompt] = lister.model.texts
    assert "1. There has been no increase" in prompt
    assert "4. Rising CO2" in prompt


@pytest.mark.parametrize(
    ("words", "is_quoted"),
    [
        ("The Sun delivers 1361 watts per square metre.", False),
        ("The Sun delivers 1316 watts per square metre.", True),
        ("The Sun, which causes droughts, has delivered more since 1950.", True),
        ("The Sun is the cause of it. " * 11, True),  # cut by the schema
    ],
)
def test_a_figure_that_the_sentences_lack_is_never_part_of_a_claim(words, is_quoted):
    [only], _ = listed({"claims": [claim([2], words)]})
    assert only.is_quoted == is_quoted
    assert only.claim == (only.sentences if is_quoted else words)


@pytest.mark.parametrize("sentences", [[], [0], [9], [-1], [1, 2, 3, 4]])
def test_a_claim_that_no_sentence_makes_is_left_out_and_counted(sentences):
    claims, lister = listed({"claims": [claim(sentences, "It was the Sun."), claim([1, 99], "No more droughts.")]})
    assert [one.claim for one in claims] == ["No more droughts."]
    assert lister.n_rejected == 1


def test_a_heading_is_no_claim():
    claims, lister = listed({"claims": [claim([1], "Climate reconsidered"), claim([1], "No more droughts.")]})
    assert [one.claim for one in claims] == ["No more droughts."]
    assert lister.n_rejected == 1


def test_sentences_that_make_a_claim_together_are_joined_in_the_order_of_the_text():
    [only], _ = listed({"claims": [claim([4, 1, 4], "Drought is not more frequent, and plants need less water.")]})
    assert only.sentences.startswith("There has been no increase")
    assert only.sentences.endswith("more efficiently.")


def test_a_claim_that_is_made_twice_is_listed_once():
    claims, lister = listed({"claims": [claim([1], "No more droughts."), claim([1], "no more  droughts.")]})
    assert len(claims) == 1
    assert lister.n_repeated == 1


@pytest.mark.parametrize(
    "answer", [RuntimeError("no luck"), {"parts": []}, {"claims": [{"claim": "x"}]}, {"claims": None}, []]
)
def test_an_unusable_answer_is_counted_and_leaves_no_claim(answer):
    claims, lister = listed(answer)
    assert claims == []
    assert lister.n_failed == 1
    assert lister.error


def test_what_is_no_claim_about_climate_is_struck_beforehand(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(TEXT)
    answer = {
        "claims": [
            claim([3], "We hope that readers enjoy this."),
            claim([1], "Droughts have not become more frequent in the modern era."),
            claim([3], "Bolivia won the football match against Peru in May."),
        ]
    }
    model = ScriptedModel(write=lambda _, schema: json.dumps(answer))
    result = list_claims(page, model=model, workspace=tmp_path / "w")
    assert [row["strike"] for row in result.rows()] == ["not checkable", "", "not about climate"]
    assert any("2 claims struck beforehand" in note for note in result.notes())


def test_struck_rows_are_not_checked(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(f"<html><body><h1>Climate Reconsidered</h1><p>{TEXT}</p></body></html>")
    answer = {"claims": [claim([1], "No more droughts."), claim([4], "CO2 saves plants water.")]}
    model = ScriptedModel(write=lambda _, schema: json.dumps(answer))
    result = list_claims(page, model=model, workspace=tmp_path / "w")
    assert "2 claims in 1 passage" in next(iter(result.notes()))
    file = result.save(tmp_path / "claims.csv")
    first, *rest = file.read_text().splitlines()
    assert first.startswith("strike,claim,sentences,source,page,section")
    file.write_text("\n".join([first, f"x{rest[0]}", *rest[1:]]) + "\n")
    table = ClaimTable.load(file)
    assert [one.text for one in table.claims] == ["CO2 saves plants water."]
    assert table.claims[0].source
    assert table.skipped == ("row 1 is struck",)


def test_a_document_without_a_single_answer_is_a_failure(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(TEXT)
    result = list_claims(page, model=ScriptedModel(write=lambda *_: RuntimeError("no luck")), workspace=tmp_path / "w")
    assert isinstance(result.failure(), NoAnswerError)
    assert any("1 passage without a usable answer (no luck)" in note for note in result.notes())


def test_the_command_lists_the_claims_of_a_document(tmp_path, monkeypatch, climassay):
    (tmp_path / "page.md").write_text(TEXT)
    answer = json.dumps({"claims": [claim([1], "Droughts have not become more frequent in the modern era.")]})
    model = ScriptedModel(write=lambda _, schema: answer)
    monkeypatch.setattr("climassay.models.provider.load_model", lambda *_, **__: model)
    given = ("factcheck claims", tmp_path / "page.md", "--model", "local:scripted", "-w", tmp_path / "w", "--json")
    assert "Droughts have not become more frequent" in done(climassay(*given))
