"""The bundled primer keeps what evaluations rely on: sources, passages, balanced answers, and no copies."""

import re
from collections import Counter
from functools import cache
from itertools import combinations

import pytest
import yaml

from climassay import primer
from climassay.questions import LETTERS, PRIMER, Question, read_questions

KINDS = {
    **dict.fromkeys(primer.SOURCE_BOOKS, "source"),
    **dict.fromkeys(primer.HELD_OUT_BOOKS, "held-out"),
    **dict.fromkeys(primer.CONTRARIAN_BOOKS, "contrarian"),
}
LEVELS = {
    ("mcq", "base"): 10, ("mcq", "reasoning"): 10, ("mcq", "hypothetical"): 10, ("freeform", "base"): 5,
    ("freeform", "reasoning"): 5, ("freeform", "hypothetical"): 5, ("cloze", "base"): 15,
}  # fmt: skip
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at by for from with and or but as is are was were be been it its that which this than "
        "what why how does do did would should if suppose when while so not no about more less one two into over",
    )
)
books = pytest.mark.parametrize("book", primer.book_names())
sources = pytest.mark.parametrize("source", primer.SOURCE_BOOKS)


@cache
def book_parts(book: str) -> tuple[dict, str]:
    head, body = re.fullmatch(
        r"---\n(.*?)\n---\n(.*)", primer.book_path(book).read_text(encoding="utf-8"), re.DOTALL
    ).groups()
    return yaml.safe_load(head), body


@cache
def sections(book: str) -> dict[str, list[str]]:
    """Paragraphs of each section."""
    found: dict[str, list[str]] = {}
    for line in book_parts(book)[1].splitlines():
        if line.startswith("### "):
            found[line[4:]] = []
        elif line.strip() and not line.startswith("#"):
            found.setdefault(next(reversed(found), ""), []).append(line)
    return found


def paragraphs(book: str) -> list[str]:
    return [one for own in sections(book).values() for one in own]


@cache
def questions(source: str, kind: str | None = None) -> tuple[Question, ...]:
    path = next(path for path in primer.question_paths() if path.stem == source)
    return tuple(one for one in read_questions(path).questions if kind in (None, one.kind))


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def shingles(text: str, length: int = 12) -> set[tuple[str, ...]]:
    tokens = [token for word in text.casefold().split() if (token := word.strip(".,;:!?()[]'\""))]
    return {tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1)}


def content_words(text: str) -> frozenset[str]:
    return frozenset(words(text)) - STOP_WORDS


def assert_unlike(texts: dict[str, str]) -> None:
    bags = {name: content_words(text) for name, text in texts.items()}
    for left, right in combinations(bags, 2):
        assert len(bags[left] & bags[right]) < 0.4 * len(bags[left] | bags[right]), f"{left} and {right} are alike"


@books
def test_a_book_says_what_it_is(book: str) -> None:
    head, body = book_parts(book)
    assert (head["licence"], head["kind"]) == ("Apache-2.0", KINDS[book])
    assert re.findall(r"^# (.+)$", body, re.MULTILINE) == [head["title"]]
    assert all(sections(book).values())


def test_books_share_no_run_of_twelve_words_and_repeat_none() -> None:
    seen: set[tuple[str, ...]] = set()
    for book in primer.book_names():
        for paragraph in paragraphs(book):
            runs = shingles(paragraph)
            assert not runs & seen, " ".join(next(iter(runs & seen)))
            seen |= runs


def test_only_the_pamphlet_is_contrarian_and_labelled_throughout() -> None:
    (pamphlet,) = primer.CONTRARIAN_BOOKS
    title = book_parts(pamphlet)[0]["title"].casefold()
    assert "contrarian" in title
    assert "misleading" in title
    assert "conflict with the scientific evidence" in paragraphs(pamphlet)[0]
    assert all(name.startswith("Contrarian claim: ") for name in sections(pamphlet) if name)
    for book in set(primer.book_names()) - {pamphlet}:
        assert "contrarian" not in primer.book_path(book).read_text(encoding="utf-8").casefold()


@sources
def test_every_question_rests_on_a_passage_of_its_section(source: str) -> None:
    assert Counter((one.kind, one.level) for one in questions(source)) == LEVELS
    for question in questions(source):
        assert question.document == source, question.id
        homes = [text for text in sections(source)[question.section] if question.context in text]
        assert len(homes) == 1, f"{question.id}: passage in {len(homes)} paragraphs"


def test_the_bundled_questions_are_opened_by_their_name() -> None:
    gold = primer.gold_questions()
    assert gold == read_questions(PRIMER)
    assert gold.skipped == ()
    assert gold.questions == tuple(one for source in primer.SOURCE_BOOKS for one in questions(source))
    assert len({question.id for question in gold.questions}) == 120


@sources
def test_neither_letter_nor_length_nor_echo_gives_the_answer_away(source: str) -> None:
    mcq = questions(source, "mcq")
    letters = "".join(LETTERS[question.correct] for question in mcq)
    counts = [letters.count(letter) for letter in "abcd"]
    assert sum(counts) == len(letters)
    assert max(counts) - min(counts) <= 3, counts
    for lag in range(1, 9):
        same = sum(left == right for left, right in zip(letters, letters[lag:], strict=False))
        assert same <= 0.5 * (len(letters) - lag), f"letters repeat with period {lag}: {letters}"
    longest = shortest = echoed = 0.0
    for question in mcq:
        assert len({" ".join(words(option)) for option in question.options}) == 4, question.id
        assert not shingles(question.answer, 6) & shingles(question.context, 6), f"{question.id} is copied"
        lengths = [len(option) for option in question.options]
        longest += (len(question.answer) == max(lengths)) / lengths.count(max(lengths))
        shortest += (len(question.answer) == min(lengths)) / lengths.count(min(lengths))
        echo = [len(content_words(option) & content_words(question.question)) for option in question.options]
        echoed += (echo[question.correct] == max(echo)) / echo.count(max(echo))
    assert longest <= 0.4 * len(mcq), f"the correct option is the longest in {longest:.1f} of {len(mcq)}"
    assert shortest <= 0.4 * len(mcq), f"the correct option is the shortest in {shortest:.1f} of {len(mcq)}"
    assert echoed <= 0.42 * len(mcq), f"the option that repeats the stem most is right in {echoed:.1f} of {len(mcq)}"


def test_cloze_terms_are_words_of_the_passage_that_the_statement_does_not_repeat() -> None:
    cloze = primer.gold_questions().of_kind("cloze")
    for question in cloze:
        term = question.answer.casefold()
        assert question.question.count("<MASK>") == 1, question.id
        assert re.fullmatch(r"[^\W\d_]+", term), f"{question.id}: {term!r} is not one word"
        assert term in words(question.context), f"{question.id}: {term!r} not in the passage"
        assert term not in question.question.casefold(), f"{question.id}: {term!r} stands in the sentence"
    assert len({question.answer.casefold() for question in cloze}) == len(cloze)


def test_no_two_questions_are_nearly_the_same() -> None:
    assert_unlike({one.id: one.question for one in primer.gold_questions().questions})


def test_claims_cover_the_verdicts_and_rest_on_trusted_books() -> None:
    claims = primer.claims()
    assert len({claim.id for claim in claims}) == len(claims) == 40
    assert {claim.verdict for claim in claims} == set(primer.VERDICTS)
    assert {claim.document for claim in claims} <= {None, *primer.SOURCE_BOOKS, *primer.HELD_OUT_BOOKS}
    assert_unlike({claim.id: claim.claim for claim in claims})
    (pamphlet,) = primer.CONTRARIAN_BOOKS
    runs = set().union(*(shingles(paragraph, 8) for paragraph in paragraphs(pamphlet)))
    assert not any(shingles(claim.claim, 8) & runs for claim in claims)
