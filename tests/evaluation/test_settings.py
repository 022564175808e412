"""What each setting puts beside a question."""

from dataclasses import replace

import pytest

from climassay.corpus import Hit, Passage
from climassay.errors import InputError
from climassay.evaluation import ExamplePool, PromptContext, SourceLoaders, make_setting, parse_spec
from climassay.evaluation.settings import RESERVED_TOKENS, SETTINGS, setting
from climassay.questions import Question


def question(number, kind="freeform", context=None):
    return Question(f"q{number}", kind, f"What is number {number}?", f"It is {number}.", context=context)


def passage(document, position, text):
    return Passage(f"{document}-{position}", text, document, f"Book {document}", f"{document}.md", position)


class Shelf:
    """A retriever whose best passage for a question is the one that the test says."""

    def __init__(self, passages, best=None):
        self.passages = passages
        self.best = best or {}
        self.asked = []

    def search_many(self, queries, *, k, min_cosine=None, mode="hybrid"):
        self.asked.append((k, min_cosine, mode))
        found = []
        for query in queries:
            first = self.best.get(query, self.passages[0].id)
            ranked = sorted(self.passages, key=lambda one: one.id != first)
            found.append([Hit(one, rank, 1 / rank) for rank, one in enumerate(ranked[:k], start=1)])
        return found

    def document_passages(self, document):
        return [one for one in self.passages if document in (one.document_id, one.document)]


class Reader:
    """A model that counts words as tokens."""

    name = "test:reader"

    def __init__(self, window):
        self.window = window

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]


def sources(shelf=None, pool=None):
    return SourceLoaders(lambda names: shelf, lambda name: pool)


NOTHING = sources()


def test_default_gives_nothing_and_context_the_source_text():
    assert make_setting(parse_spec("default"), NOTHING).prepare([question(1)], Reader(10)) == [PromptContext()]
    given = make_setting(parse_spec("context"), NOTHING).prepare([question(1, context="Source.")], Reader(10))
    assert given == [PromptContext(("Source.",))]
    with pytest.raises(InputError, match="1 of them lack it"):
        make_setting(parse_spec("context"), NOTHING).prepare([question(1)], Reader(10))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("rags", "no setting"),
        ("rag:", "name of a collection"),
        ("long-context:auto", "name of a collection"),
        ("default:x", "takes no argument"),
    ],
)
def test_unknown_and_incomplete_names_are_refused(text, word):
    with pytest.raises(InputError, match=word):
        parse_spec(text)


def test_names_become_specifications():
    rag = parse_spec("rag:a+b", passages=7)
    assert (rag.kind, rag.collections, rag.passages) == ("rag", ("a", "b"), 7)
    whole = parse_spec("long-context:My book@shelf")
    assert (whole.document, whole.collections) == ("My book", ("shelf",))
    assert parse_spec("long-context:@shelf").document == "auto"
    assert parse_spec("few-shot").pool == "primer"
    assert parse_spec("few-shot:own.jsonl", examples=2).examples == 2


def test_rag_hands_on_threshold_mode_and_number():
    shelf = Shelf([passage("a", 0, "One."), passage("a", 1, "Two.")])
    spec = replace(parse_spec("rag:shelf", passages=1), min_cosine=0.3, mode="dense")
    [given] = make_setting(spec, sources(shelf)).prepare([question(1)], Reader(10))
    assert given == PromptContext(("One.",), ("a-0",))
    assert shelf.asked == [(1, 0.3, "dense")]


def test_examples_are_of_the_kind_of_the_question_and_the_same_for_all():
    gaps = (question(30, "cloze"), question(31, "cloze"))
    pool = ExamplePool("pool", (*(question(n) for n in range(10, 20)), *gaps))
    setting = make_setting(parse_spec("few-shot:pool", examples=2, seed=3), sources(pool=pool))
    first, second, gap = setting.prepare([question(1), question(2), question(3, "cloze")], Reader(10))
    assert first.examples == second.examples
    assert {one.kind for one in first.examples} == {"freeform"}
    assert {one.kind for one in gap.examples} == {"cloze"}
    again = setting.prepare([question(1)], Reader(10))[0]
    assert again.examples == first.examples
    other = make_setting(parse_spec("few-shot:pool", examples=2, seed=4), sources(pool=pool)).prepare(
        [question(1)], Reader(10)
    )
    assert other[0].examples != first.examples


def test_examples_never_come_from_the_test():
    asked = [question(n, context=f"Text {n}.") for n in range(5)]
    same_text = replace(question(50), context="text 2")
    reworded = replace(question(1), id="other id", question="what IS number 1 ?")
    usable = question(60)
    pool = ExamplePool("pool", (same_text, reworded, usable))
    assert pool.draw("freeform", 1, seed=0, test=asked) == (usable,)
    with pytest.raises(InputError, match="2 examples are needed for freeform, but the pool pool has 1"):
        pool.draw("freeform", 2, seed=0, test=asked)


BOOK = [passage("a", n, " ".join([f"w{n}"] * 100)) for n in range(6)]


def test_a_document_that_fits_goes_in_whole():
    shelf = Shelf([*BOOK, passage("b", 0, "Other.")])
    setting = make_setting(parse_spec("long-context:Book a@shelf"), sources(shelf))
    [given] = setting.prepare([question(1)], Reader(RESERVED_TOKENS + 600))
    assert given.passage_ids == tuple(one.id for one in BOOK)
    assert given.passages == ("\n\n".join(one.text for one in BOOK),)
    assert given.note == ""


def test_a_document_is_cut_around_the_best_passage_and_says_so():
    shelf = Shelf([*BOOK, passage("b", 0, "Other.")], best={question(1).question: "a-3"})
    setting = make_setting(parse_spec("long-context:auto@shelf"), sources(shelf))
    [given] = setting.prepare([question(1)], Reader(RESERVED_TOKENS + 350))
    assert given.passage_ids == ("a-2", "a-3", "a-4")
    assert given.note == "Book a: passages 3 to 5 of 6 fit the window"


def test_a_named_document_is_cut_around_its_own_best_passage():
    shelf = Shelf([passage("b", 0, "Other."), *BOOK], best={question(1).question: "b-0"})
    [given] = make_setting(parse_spec("long-context:a@shelf"), sources(shelf)).prepare(
        [question(1)], Reader(RESERVED_TOKENS + 250)
    )
    assert given.passage_ids == ("a-0", "a-1")


@pytest.mark.parametrize(("window", "word"), [(RESERVED_TOKENS, "512 tokens"), (RESERVED_TOKENS + 50, "has 100")])
def test_windows_that_hold_nothing_are_refused(window, word):
    setting = make_setting(parse_spec("long-context:auto@shelf"), sources(Shelf(BOOK)))
    with pytest.raises(InputError, match=word):
        setting.prepare([question(1)], Reader(window))


def test_a_window_larger_than_the_model_is_refused():
    spec = replace(parse_spec("long-context:auto@shelf"), window=9999)
    with pytest.raises(InputError, match="2000"):
        make_setting(spec, sources(Shelf(BOOK))).prepare([question(1)], Reader(2000))


def test_a_setting_can_be_added_by_name(monkeypatch):
    parse_spec("default")
    monkeypatch.setattr(SETTINGS, "_entries", dict(SETTINGS._entries))

    @setting("hint", parse_argument=lambda rest: {"document": rest})
    def hint(spec, loaders):
        return lambda questions, model: [PromptContext((spec.document,)) for _ in questions]

    added = make_setting(parse_spec("hint:Think first."), NOTHING)
    assert added.prepare([question(1)], Reader(9000)) == [PromptContext(("Think first.",))]
    assert "hint" in SETTINGS
