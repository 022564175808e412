"""The pipeline with scripted parts: what is tested is planning, counting, storing and going on, not the parts."""

import contextlib
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.generation import (
    CountSpec,
    DatasetStore,
    Decision,
    Draft,
    Origin,
    Recipe,
    SourcePassage,
    Wording,
    WriterSpec,
    run_pipeline,
)
from climassay.generation.pipeline import Pipeline, StreamCounts
from climassay.generation.recipe import StopSpec, Stream
from climassay.models import Usage
from climassay.records import Records

ORIGIN = Origin("local:writer", "f" * 64, (), 0)


class Workshop:
    """Parts that write one question per seed passage and decide by rules that a test gives."""

    def __init__(self, books=("a", "b"), passages=1000):
        self.books = books
        self.passages = passages
        self.written: list[str] = []
        self.seen: dict[str, str] = {}
        self.cost = 0.0
        self.fails = lambda _assignment: False
        self.faulty = lambda _draft: None
        self.invalid = lambda _draft: False
        self.repeated = lambda draft: draft.wording.question
        self.die_after: int | None = None

    def seed(self, stream, book, number):
        if not self.passages:
            return None
        return Passage(
            f"{book}-{number % self.passages}", f"{stream} {book} {number}", book, book.upper(), book, number
        )

    def contexts(self, seeds):
        return [(SourcePassage.of(passage),) for passage in seeds]

    def write(self, assignments):
        if self.die_after is not None and len(self.written) >= self.die_after:
            raise KeyboardInterrupt
        self.cost += 0.01 * len(assignments)
        return [self._one(assignment) for assignment in assignments]

    def _one(self, assignment):
        self.written.append(assignment.id)
        words = Wording(assignment.passages[0].text, "An answer.")
        error = "The request failed." if self.fails(assignment) else None
        return Draft(assignment.id, assignment.kind, "base", words, assignment.passages, ORIGIN, error=error)

    def evolve(self, drafts, level, _seeds):
        return [
            replace(
                draft,
                level=level,
                wording=replace(draft.wording, question=f"Suppose. {draft.wording.question}"),
                origin=replace(draft.origin, evolved_from=draft.wording),
            )
            for draft in drafts
        ]

    def screen(self, drafts):
        found = []
        for draft in drafts:
            fault = self.faulty(draft)
            found.append(draft.with_decisions(Decision("screen", fault or "screen", fault is None, fault or "")))
        return found

    def validate(self, drafts):
        return [draft.with_decisions(Decision("validate", "v", not self.invalid(draft), "invalid")) for draft in drafts]

    def repeats(self, draft):
        earlier = self.seen.setdefault(self.repeated(draft), draft.id)
        return None if earlier == draft.id else earlier

    def remember(self, drafts):
        for draft in drafts:
            self.repeats(draft)

    def parts(self):
        usage = lambda: Usage(cost=self.cost)  # noqa: E731
        return Pipeline(
            lambda: self.books,
            self.seed,
            self.contexts,
            self.write,
            self.evolve,
            self.screen,
            (self.validate,),
            self.repeats,
            self.remember,
            usage,
        )


def recipe(counts=None, **changes) -> Recipe:
    return Recipe("d", ("books",), WriterSpec("local:writer"), counts or CountSpec(cloze=6), **{"batch": 4, **changes})


@pytest.fixture
def store(tmp_path):
    with Records(f"sqlite:///{tmp_path / 'r.sqlite'}") as records:
        yield DatasetStore(records)


def test_the_pipeline_makes_what_is_wanted_and_balances_the_books(store):
    report = run_pipeline(
        recipe(CountSpec(mcq=8, freeform=6, cloze=4, base=2, reasoning=1, hypothetical=1)), Workshop().parts(), store
    )
    assert report.complete
    assert not report.ended
    assert {stream.name: report.counts[stream].accepted for stream in report.counts} == {
        "mcq/base": 4, "mcq/reasoning": 2, "mcq/hypothetical": 2, "freeform/base": 3, "freeform/reasoning": 2,
        "freeform/hypothetical": 1, "cloze/base": 4,
    }  # fmt: skip
    for stream in report.counts:
        books = Counter(one.book for one in store.stored_drafts("d") if one.stream == stream)
        assert max(books.values()) - min(books.values(), default=0) <= 1


def test_levels_above_base_are_evolved_from_a_base_question_and_screened_twice(store):
    shop = Workshop()
    run_pipeline(recipe(CountSpec(mcq=2, base=0, reasoning=1)), shop.parts(), store)
    for draft in store.drafts("d"):
        assert draft.level == "reasoning"
        assert draft.wording.question == f"Suppose. {draft.origin.evolved_from.question}"
        assert [decision.step for decision in draft.decisions] == ["screen", "screen", "validate"]


def test_repetitions_are_rejected_also_across_runs(store):
    shop = Workshop()
    shop.repeated = lambda draft: draft.main.id.split("-")[1]
    run_pipeline(recipe(CountSpec(cloze=4)), shop.parts(), store)
    again = Workshop()
    again.repeated = shop.repeated
    report = run_pipeline(recipe(CountSpec(cloze=9)), again.parts(), store)
    kept = [draft.main.id.split("-")[1] for draft in store.drafts("d") if draft.usable]
    assert len(kept) == len(set(kept)) >= 9
    assert report.counts[Stream("cloze", "base")].rejected["near-duplicate"] > 0


@given(die_after=st.integers(0, 30), fault=st.integers(2, 5))
def test_a_killed_pipeline_goes_on_as_if_it_had_never_stopped(tmp_path_factory, die_after, fault):
    def faulty(draft):
        return "figure" if int(draft.main.id.split("-")[1]) % fault == 0 else None

    plan = recipe(CountSpec(mcq=7, cloze=9, base=1, reasoning=1))

    def made(folder: Path, first_dies: int | None):
        with Records(f"sqlite:///{folder / 'r.sqlite'}") as records:
            store = DatasetStore(records)
            if first_dies is not None:
                shop = Workshop()
                shop.faulty, shop.die_after = faulty, first_dies
                with contextlib.suppress(KeyboardInterrupt):
                    run_pipeline(plan, shop.parts(), store)
            shop = Workshop()
            shop.faulty = faulty
            run_pipeline(plan, shop.parts(), store)
            return list(store.stored_drafts("d"))

    assert made(tmp_path_factory.mktemp("a"), die_after) == made(tmp_path_factory.mktemp("b"), None)


def test_a_longer_run_keeps_all_of_a_shorter_one(store):
    run_pipeline(recipe(CountSpec(cloze=4)), Workshop().parts(), store)
    first = list(store.stored_drafts("d"))
    shop = Workshop()
    run_pipeline(recipe(CountSpec(cloze=12)), shop.parts(), store)
    assert list(store.stored_drafts("d"))[: len(first)] == first
    assert len(shop.written) == 8


def test_failed_drafts_are_made_again_in_their_place(store):
    shop = Workshop()
    shop.fails = lambda assignment: assignment.passages[0].id.endswith("1")
    run_pipeline(recipe(), shop.parts(), store)
    failed = [one.draft.id for one in store.stored_drafts("d") if one.state == "failed"]
    assert failed
    order = [one.draft.id for one in store.stored_drafts("d")]
    again = Workshop()
    report = run_pipeline(recipe(), again.parts(), store)
    assert again.written == failed
    assert [one.draft.id for one in store.stored_drafts("d")] == order
    assert report.counts[Stream("cloze", "base")].failed == 0


def test_a_model_that_gives_nothing_ends_the_pipeline(store):
    shop = Workshop()
    shop.fails = lambda _assignment: True
    report = run_pipeline(recipe(), shop.parts(), store)
    assert len(shop.written) == 4
    assert (
        report.ended[Stream("cloze", "base")]
        == "all of a batch failed (4 drafts), the first because: The request failed."
    )
    shop.written.clear()
    run_pipeline(recipe(), shop.parts(), store)
    assert len(shop.written) == 4


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (StopSpec(drafts=10), "10 drafts written, the maximum"),
        (StopSpec(cost=0.10), "the budget of \\$0.1 is spent"),
        (StopSpec(min_yield=0.5, after=9), "only 0 of 12 drafts were accepted"),
    ],
    ids=["asked", "cost", "yield"],
)
def test_the_pipeline_stops_where_the_recipe_says(store, stop, said):
    shop = Workshop()
    shop.faulty = lambda _draft: "figure"
    report = run_pipeline(recipe(stop=stop), shop.parts(), store)
    assert not report.complete
    [reason] = report.ended.values()
    assert re.search(said, reason)
    assert len(shop.written) <= 12


def test_a_book_that_gives_nothing_is_not_asked_for_ever(store):
    shop = Workshop()
    shop.faulty = lambda draft: "figure" if draft.main.document_id == "a" else None
    report = run_pipeline(recipe(CountSpec(cloze=40)), shop.parts(), store)
    assert report.complete
    counts = report.counts[Stream("cloze", "base")]
    assert counts.book("b").accepted >= 40
    assert counts.book("a").next_number <= 10 + counts.drafts / 3


def test_books_without_a_fit_passage_end_the_stream(store):
    report = run_pipeline(recipe(), Workshop(passages=0).parts(), store)
    assert list(report.ended.values()) == ["no book has a passage fit to write from"]


def test_collections_without_books_are_refused(store):
    with pytest.raises(InputError, match="books have no passage that questions could be written from"):
        run_pipeline(recipe(), Workshop(books=()).parts(), store)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 40), st.integers(1, 64))
def test_no_more_is_asked_than_the_yield_makes_necessary(accepted, rejected, missing, most):
    counts = StreamCounts(drafts=accepted + rejected, accepted=accepted)
    needed = counts.estimate_drafts(missing, most)
    assert 1 <= needed <= most
    assert needed >= min(missing, most)
    if rejected == 0:
        assert needed == min(missing, most)
