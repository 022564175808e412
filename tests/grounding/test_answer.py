"""Answers from several collections."""

import pytest

from climassay.corpus import Hit, Passage
from climassay.errors import InputError
from climassay.grounding import IN_HOUSE_MARK, answer_question, build_card
from climassay.models import Completion
from climassay.prompts import DEMONSTRATION
from scripted_model import USAGE, ScriptedModel
from word_encoder import WordEncoder

OCEAN = "The ocean takes up most of the excess heat. Warm water expands and the sea level rises."
CLOUD = "Low clouds reflect sunlight. High thin clouds trap infrared radiation."


class Shelf:
    """Two passages, found when a query shares a word with them."""

    encoder = WordEncoder()

    def __init__(self):
        self.passages = [
            Passage("o-0", OCEAN, "o", "Ocean book", "ocean.md", 0, headings=("Heat",), first_page=3, last_page=4),
            Passage("c-0", CLOUD, "c", "Cloud book", "cloud.md", 0, url="https://example.org/cloud"),
        ]

    def search(self, query, *, k, min_cosine=None):
        vectors = self.encoder.encode([query, *[p.text for p in self.passages]])
        cosines = vectors[1:] @ vectors[0]
        found = sorted(zip(cosines, self.passages, strict=True), key=lambda pair: -pair[0])
        limit = 0.05 if min_cosine == "measured" else min_cosine
        kept = [(c, p) for c, p in found if c >= limit][:k]
        return [Hit(p, n, float(c), float(c)) for n, (c, p) in enumerate(kept, start=1)]


def scripted(text, finish="stop", error=None):
    return ScriptedModel(write=lambda *_: RuntimeError(error) if error else Completion(text, finish, USAGE))


def answered(text, question="Why does the ocean and sea level rise with low clouds?", **options):
    return answer_question(question, Shelf(), scripted(text, **options))


def test_citations_exist_or_are_removed_and_counted():
    answer = answered("Water expands when it warms [1][7]. Clouds reflect sunlight [2, 9].")
    assert [sentence.citations for sentence in answer.sentences] == [(1,), (2,)]
    assert answer.removed_citations == 2
    assert "[7]" not in answer.text
    assert "[9]" not in answer.text
    numbers = {source.number for source in answer.sources}
    assert all(number in numbers for sentence in answer.sentences for number in sentence.citations)


def test_citation_behind_the_full_stop_belongs_to_its_sentence():
    answer = answered("Water expands. [1] Clouds reflect sunlight. [2]")
    assert [(s.text, s.citations) for s in answer.sentences] == [
        ("Water expands.", (1,)),
        ("Clouds reflect sunlight.", (2,)),
    ]


def test_uncited_sentences_are_attributed_or_marked():
    answer = answered("Low clouds reflect sunlight. Penguins enjoy skating on weekends.")
    first, second = answer.sentences
    cloud = next(source.number for source in answer.sources if source.passage.id == "c-0")
    assert (first.origin, first.citations, first.in_house) == ("attributed", (cloud,), False)
    assert first.support == pytest.approx(1.0, abs=1e-5)
    assert (second.origin, second.citations, second.in_house) == ("none", (), True)
    assert answer.text.endswith(f"{IN_HOUSE_MARK}.")


def test_numbers_that_no_cited_passage_has_are_named_and_never_attributed():
    answer = answered("Clouds reflect 30 per cent of sunlight [2]. The ocean takes up most of the 93 excess heat.")
    first, second = answer.sentences
    assert first.foreign_numbers == ("30 per cent",)
    assert "30 per cent not in the cited passage" in answer.text
    assert second.origin == "none"
    assert second.in_house
    assert second.foreign_numbers == ()


def test_the_models_own_mark_is_kept_out_of_the_text_but_honoured():
    answer = answered("Low clouds reflect sunlight (In-house knowledge).")
    (sentence,) = answer.sentences
    assert sentence.text == "Low clouds reflect sunlight."
    assert sentence.in_house
    assert answer.text == f"Low clouds reflect sunlight {IN_HOUSE_MARK}."


def test_nothing_relevant_means_no_model_is_asked():
    model = scripted("I would make something up.")
    answer = answer_question("Boil eggs?", Shelf(), model)
    assert not answer.enough_information
    assert answer.text == "Not enough information."
    assert model.texts == []


@pytest.mark.parametrize("text", ["NOT ENOUGH INFORMATION", "Not enough information.", "**Not enough information**"])
def test_refusals_are_first_class(text):
    answer = answered(text)
    assert not answer.enough_information
    assert answer.sentences == ()
    assert answer.sources


def test_a_cut_sentence_is_dropped_and_repeats_are_told_once():
    answer = answered("Clouds reflect sunlight [2]. Clouds reflect sunlight [2]. The sea lev", finish="length")
    assert answer.truncated
    assert any("cut off" in str(line) for line in answer.lines())
    assert "cut off" in build_card(answer).note
    assert [sentence.text for sentence in answer.sentences] == ["Clouds reflect sunlight."]


@pytest.mark.parametrize(("parameters", "warned"), [(135_000_000, True), (70_000_000_000, False), (None, False)])
def test_the_answer_of_a_very_small_model_says_so_on_screen_and_in_the_report(parameters, warned):
    model = scripted("Low clouds reflect sunlight [2].")
    model.parameters = parameters
    answer = answer_question("Why does the ocean and sea level rise with low clouds?", Shelf(), model)
    assert (DEMONSTRATION in map(str, answer.lines())) == warned
    assert (DEMONSTRATION in build_card(answer).note) == warned
    assert answer.to_dict()["demonstration"] == warned


def test_citations_that_the_model_did_not_write_are_told_on_screen():
    answer = answered("Low clouds reflect sunlight. The ocean takes up most of the excess heat [1].")
    assert any("not named by the model: 1 of 2" in str(line) for line in answer.lines())


@pytest.mark.parametrize(
    "text", ["", "...", "The answer is that the answer is that the answer is that the answer is that."]
)
def test_an_unusable_answer_is_a_failure_not_a_refusal(text):
    answer = answered(text)
    assert answer.error is not None
    assert answer.sentences == ()


def test_failed_call_is_told_not_hidden():
    answer = answered("", error="The server did not answer within 60 s.")
    assert answer.error == "The server did not answer within 60 s."
    assert "No answer" in answer.text
    assert answer.sources


def test_empty_question_is_refused():
    with pytest.raises(InputError):
        answered("x", question="  ")


class Writing(ScriptedModel):
    """Writes texts letter by letter, each after the first as another try of the same request."""

    def __init__(self, *texts):
        super().__init__(write=lambda *_: texts[-1])
        self.tries = texts

    def generate_stream(self, requests, *, on_text, on_result=None):
        for text in self.tries:
            for end in range(len(text) + 1):
                on_text(0, text[:end])
        return self.generate(requests, on_result=on_result)


def previewed(*texts):
    """The answer, and its sentences as they were told, with their citations."""
    told = []
    model = Writing(*texts)
    question = "Why does the ocean and sea level rise with low clouds?"
    answer = answer_question(question, Shelf(), model, on_progress=told.append)
    assert answer == answered(texts[-1])
    assert all(one.sources == answer.sources for one in told)
    return answer, [[(sentence.text, sentence.citations) for sentence in one.sentences] for one in told]


def test_sentences_are_told_as_they_are_complete_with_the_citations_behind_them():
    text = "Water expands, by approx. 0.1 m. [1, 9] Clouds (low ones) reflect sunlight [2]. Penguins skate. They do."
    answer, told = previewed(text)
    sentences = [("Water expands, by approx. 0.1 m.", (1,)), ("Clouds (low ones) reflect sunlight.", (2,))]
    sentences.append(("Penguins skate.", ()))
    assert told == [sentences[:count] for count in range(4)]
    assert answer.sentences[-1].in_house
    assert answer.removed_citations == 1


def test_marks_come_with_the_whole_answer_only():
    told = []
    model = Writing("Clouds reflect 30 per cent of it [2]. Penguins skate. They do.")
    answer_question("Do low clouds reflect sunlight?", Shelf(), model, on_progress=told.append)
    assert not any(one.in_house or one.foreign_numbers for partial in told for one in partial.sentences)


def test_sentences_of_a_try_that_failed_are_taken_back():
    _, told = previewed("Penguins skate. They do.", "Water expands [1]. Clouds reflect sunlight [2].")
    assert told == [[], [("Penguins skate.", ())], [], [("Water expands.", (1,))]]


def test_an_answer_that_is_a_refusal_is_never_shown():
    _, told = previewed("Not enough information. The passages do not say why. They are silent.")
    assert told == [[]]
