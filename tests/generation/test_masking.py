from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from climassay import primer
from climassay.errors import InputError
from climassay.generation import Choice, Decision, PromptedMasker, StatisticsMasker, Subject, Wording, mask, open_masker
from climassay.generation.terms import candidates, read_glossary
from climassay.questions import GAP
from generated_drafts import draft, rejected
from scripted_model import ScriptedModel


def terms(statement):
    return [word.term for word in candidates(statement)]


@given(st.text(max_size=80))
def test_a_candidate_is_a_word_of_the_statement_that_stands_there_once(statement):
    # The gap's own word would be found in the gap.
    assume("MASK" not in statement)
    for word in candidates(statement):
        assert statement[word.start : word.end] == word.term
        masked = replace(draft(1, "cloze"), wording=Wording(statement, word.term)).as_question()
        assert masked.question.count("<MASK>") == statement.count("<MASK>") + 1
        assert word.term not in terms(masked.question)


@pytest.mark.parametrize(
    ("statement", "term"),
    [("Fine PM2.5 is dust.", "PM2.5"), ("SSP5-8.5 is hot.", "SSP5-8.5"), ("El Nin\u0303o is here.", "Nin\u0303o")],
)
def test_decimals_and_accents_are_part_of_their_word(statement, term):
    assert term in terms(statement)


def test_a_glossary_changes_the_choice():
    statement = "The window lets infrared radiation escape from the stratosphere."
    [plain] = StatisticsMasker().choose([statement])
    [listed] = StatisticsMasker(["atmospheric window"]).choose([statement])
    assert dict(listed.ranked)["window"] > dict(plain.ranked)["window"]


def test_the_rarest_noun_is_masked_and_words_of_any_report_come_last():
    statement = "Rapidly changing albedo is a process of the cryosphere."
    [choice] = StatisticsMasker().choose([statement])
    ranked = [term for term, _ in choice.ranked]
    assert set(ranked[:2]) == {"albedo", "cryosphere"}
    assert ranked.index("process") >= 2


def test_terms_of_the_primer_are_found_more_often_than_by_chance():
    statements = [
        (question.question.replace(GAP, question.answer), question.answer)
        for question in primer.gold_questions().of_kind("cloze")
    ]
    chosen = StatisticsMasker().choose([statement for statement, _ in statements])
    right = sum(choice.term == term for choice, (_, term) in zip(chosen, statements, strict=True))
    chance = sum(1 / len(candidates(statement)) for statement, _ in statements)
    assert right > 4 * chance


class Fixed:
    name = "fixed"

    def __init__(self, choice):
        self.choice = choice
        self.asked = []

    def choose(self, statements):
        self.asked += statements
        return [self.choice for _ in statements]


def test_mask_writes_the_term_and_who_chose_it():
    open_cloze = replace(draft(1, "cloze"), wording=Wording("The albedo of ice is high."))
    made = mask([open_cloze], Fixed(Choice.of([("ice", 0.2), ("albedo", 0.8)])))[0]
    assert made.wording == Wording("The albedo of ice is high.", "albedo")
    decision = made.decisions[-1]
    assert (decision.step, decision.by, decision.accepted, decision.score) == ("mask", "fixed", True, 0.8)
    assert decision.replaced == open_cloze.wording
    assert made.as_question().question == "The <MASK> of ice is high."


def test_what_is_not_to_be_masked_passes_through():
    bare = Wording("The albedo of ice is high.")
    cloze = replace(draft(1, "cloze"), wording=bare)
    passing = [
        draft(2, "mcq"),
        rejected(cloze),
        replace(cloze, error="cut off"),
        draft(3, "cloze").with_decisions(Decision("expert", "ada", accepted=True)),
    ]
    masker = Fixed(None)
    after = mask([*passing, cloze], masker)
    assert after[:4] == passing
    assert masker.asked == [bare.question]
    assert (after[4].rejection.reason, after[4].wording) == ("no term to mask", bare)
    failed = mask([cloze], Fixed(Choice.failed("The server hung up.")))[0]
    assert failed.usable
    assert (failed.decisions[-1].accepted, failed.decisions[-1].detail) == (None, "The server hung up.")


def scorer():
    """Likes long words."""

    def choose(prompt, options):
        return RuntimeError("No.") if "broken" in prompt else [len(option) - 20.0 for option in options]

    return ScriptedModel(choose)


def test_the_prompted_masker_chooses_the_most_probable_word():
    statement = "The glow is incandescence."
    model = scorer()
    [choice] = PromptedMasker(model, subject=Subject(field="botany")).choose([statement])
    assert [term for term, _ in choice.ranked] == ["incandescence", "glow"]
    [(prompt, options)] = model.options
    assert options == (" glow", " incandescence")
    assert statement in prompt
    assert "botany" in prompt


def test_the_prompted_masker_passes_failures_on():
    chosen = PromptedMasker(scorer()).choose(["It is.", "The broken glow fades.", "The glow fades."])
    assert chosen[0] is None
    assert chosen[1].error == "No."
    assert chosen[2].error is None


class Talker:
    """A model that gives no log-probabilities."""

    name = "talker"


def test_the_prompted_masker_by_name():
    masker = open_masker("prompted:local:smollm2", load=lambda _: scorer())
    assert masker.choose(["The glow is incandescence."])[0].term == "incandescence"
    with pytest.raises(InputError, match="talker gives no log-probabilities"):
        open_masker("prompted:local:talker", load=lambda _: Talker())
    with pytest.raises(InputError, match="nonsense"):
        open_masker("prompted:nonsense")


def test_maskers_by_name(tmp_path):
    glossary = tmp_path / "terms.txt"
    glossary.write_text("# ours\n\nlapse rate\n")
    assert read_glossary(glossary) == ("lapse rate",)
    assert open_masker(glossary=read_glossary(glossary)).name == "statistics"
    for name, word in (("prompted", "name one"), ("tarot", "no masker 'tarot'"), (str(glossary), "no masker")):
        with pytest.raises(InputError, match=word):
            open_masker(name)
    glossary.write_text("# nothing\n")
    with pytest.raises(InputError, match="no term"):
        read_glossary(glossary)
    with pytest.raises(InputError, match="cannot be read"):
        read_glossary(tmp_path / "none.txt")
