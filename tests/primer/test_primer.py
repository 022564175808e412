"""The bundled primer keeps to its own rules: books, gold questions and claims."""

import datetime
import json
import re
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from climassay import primer
from climassay.questions import LETTERS, Question, read_questions

KINDS = {
    **dict.fromkeys(primer.SOURCE_BOOKS, "source"),
    **dict.fromkeys(primer.HELD_OUT_BOOKS, "held-out"),
    **dict.fromkeys(primer.CONTRARIAN_BOOKS, "contrarian"),
}
PREFIXES = {"physical_climate": "phys", "aerosols_clouds": "aero"}
LEVELS = {
    ("mcq", "base"): 10,
    ("mcq", "reasoning"): 10,
    ("mcq", "hypothetical"): 10,
    ("freeform", "base"): 5,
    ("freeform", "reasoning"): 5,
    ("freeform", "hypothetical"): 5,
    ("cloze", "base"): 15,
}
QUESTION_KEYS = ["id", "kind", "level", "question", "options", "answer", "document", "section", "passage"]
SOURCE_TALK = re.compile(
    r"(?<!-)\b(?:passages?|texts?|authors?|chapters?|sections?|books?|paragraphs?|excerpts?|according to the above)\b",
    re.IGNORECASE,
)
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
def book_text(book: str) -> str:
    return primer.book_path(book).read_text(encoding="utf-8")


@cache
def front_matter(book: str) -> dict[str, object]:
    head = re.match(r"---\n(.*?)\n---\n", book_text(book), re.DOTALL)
    assert head, f"{book} has no front matter"
    return yaml.safe_load(head.group(1))


@cache
def body(book: str) -> str:
    return book_text(book).split("\n---\n", 1)[1]


@cache
def outline(book: str) -> dict[str, dict[str, list[str]]]:
    """Chapter -> section -> paragraphs."""
    chapters: dict[str, dict[str, list[str]]] = {}
    chapter = section = ""
    for line in body(book).splitlines():
        if line.startswith("## "):
            chapter, section = line[3:], ""
            assert chapter not in chapters
            chapters[chapter] = {}
        elif line.startswith("### "):
            section = line[4:]
            assert section not in chapters[chapter]
            chapters[chapter][section] = []
        elif line.strip() and not line.startswith("# "):
            assert chapter, f"{book}: text before the first chapter"
            chapters[chapter].setdefault(section, []).append(line)
    return chapters


@cache
def sections(book: str) -> dict[str, list[str]]:
    return {name: paragraphs for chapter in outline(book).values() for name, paragraphs in chapter.items() if name}


def paragraphs(book: str) -> list[str]:
    return [paragraph for chapter in outline(book).values() for group in chapter.values() for paragraph in group]


@cache
def raw(path: Path) -> tuple[dict[str, object], ...]:
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def question_path(source: str) -> Path:
    return next(path for path in primer.question_paths() if path.stem == source)


@cache
def questions(source: str, kind: str | None = None) -> tuple[Question, ...]:
    found = read_questions(question_path(source)).questions
    return tuple(question for question in found if kind in (None, question.kind))


def all_questions(kind: str | None = None) -> tuple[Question, ...]:
    return tuple(question for source in primer.SOURCE_BOOKS for question in questions(source, kind))


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?=\s+[^\W\da-z_]|\s+\d|$)", text.strip()))


def shingles(text: str, length: int = 12) -> set[tuple[str, ...]]:
    tokens = [token for word in text.casefold().split() if (token := word.strip(".,;:!?()[]'\""))]
    return {tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1)}


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right)


def content_words(text: str) -> frozenset[str]:
    return frozenset(words(text)) - STOP_WORDS


def answer_letters(source: str) -> str:
    return "".join(LETTERS[question.correct or 0] for question in questions(source, "mcq"))


# Books


def test_every_book_has_one_kind_and_a_file() -> None:
    assert set(KINDS) == set(primer.book_names())
    assert len(primer.book_names()) == 4
    files = {path.stem for path in primer.book_path(primer.book_names()[0]).parent.glob("*.md")}
    assert files == set(primer.book_names())


@books
def test_front_matter(book: str) -> None:
    head = front_matter(book)
    assert list(head) == ["title", "authors", "edition", "date", "licence", "kind"]
    assert isinstance(head["edition"], int)
    assert head["edition"] >= 1
    assert isinstance(head["date"], datetime.date)
    assert head["licence"] == "Apache-2.0"
    assert head["kind"] == KINDS[book]
    assert re.findall(r"^# (.+)$", body(book), re.MULTILINE) == [head["title"]]


@books
def test_chapters_are_numbered_and_long_enough(book: str) -> None:
    chapters = outline(book)
    numbers = [re.fullmatch(r"Chapter (\d+): \S.*", name) for name in chapters]
    assert [match and int(match.group(1)) for match in numbers] == list(range(1, len(chapters) + 1))
    assert len(chapters) == 1 if KINDS[book] == "contrarian" else len(chapters) >= 6
    for name, groups in chapters.items():
        size = sum(len(paragraph.split()) for group in groups.values() for paragraph in group)
        assert size >= 600, f"{book}, {name}: {size} words"
        assert len([section for section in groups if section]) >= 3, f"{book}, {name}: too few sections"
        assert all(groups.values()), f"{book}, {name}: empty section"


@books
def test_section_headings_are_unique(book: str) -> None:
    names = [name for chapter in outline(book).values() for name in chapter if name]
    assert len(names) == len(set(names))


@books
def test_running_text_is_plain_prose_in_one_style(book: str) -> None:
    for text in paragraphs(book):
        assert text == text.strip()
        assert "  " not in text
        assert not re.search(r"[*_#|`$\\]|\]\(|https?:|^[-+>] |^\d+\. ", text), text[:80]
        assert "%" not in text, f"write per cent: {text[:80]}"
        assert not re.search(r"\bpercent\b", text), text[:80]
        assert not re.search(r"\S°C|°\s+C\b|\d[KW]\b", text), f"a space between number and unit: {text[:80]}"
        assert not re.search(r"(?:^|[\s(])-\d", text), f"a minus sign, not a hyphen: {text[:80]}"
        assert "\u00b5" not in text, f"Greek mu, not the micro sign: {text[:80]}"
        assert not re.search(r"sulph", text, re.IGNORECASE), text[:80]
        assert not re.search(r"[\u2080-\u2089]|\bm-2\b", text), text[:80]
        assert text.endswith((".", "?")), text[-80:]
        assert not re.search(r"\b(?:language models?|benchmarks?|prompts?|climassay)\b", text, re.IGNORECASE), text[:80]


def test_books_share_no_run_of_twelve_words() -> None:
    runs = {book: set().union(*(shingles(paragraph) for paragraph in paragraphs(book))) for book in primer.book_names()}
    for left, right in combinations(runs, 2):
        shared = runs[left] & runs[right]
        assert not shared, f"{left} and {right}: {' '.join(next(iter(shared)))}"


@books
def test_no_book_repeats_itself(book: str) -> None:
    seen: set[tuple[str, ...]] = set()
    for paragraph in paragraphs(book):
        runs = shingles(paragraph)
        assert not runs & seen, " ".join(next(iter(runs & seen)))
        seen |= runs


def test_pamphlet_is_labelled_throughout() -> None:
    (book,) = primer.CONTRARIAN_BOOKS
    head = front_matter(book)
    assert head["kind"] == "contrarian"
    assert "contrarian" in str(head["title"]).casefold()
    assert "misleading" in str(head["title"]).casefold()
    first = paragraphs(book)[0]
    assert "contrarian" in first
    assert "conflict with the scientific evidence" in first
    assert "not endorsed" in first
    names = list(sections(book))
    assert len(names) >= 10
    assert all(name.startswith("Contrarian claim: ") for name in names), names


def test_only_the_pamphlet_is_contrarian() -> None:
    for book in primer.book_names():
        if book not in primer.CONTRARIAN_BOOKS:
            assert "contrarian" not in book_text(book).casefold()


# Questions


def test_question_files_are_those_of_the_source_books() -> None:
    assert [path.stem for path in primer.question_paths()] == list(primer.SOURCE_BOOKS)
    assert len(all_questions()) == 120


@sources
def test_every_row_is_read_and_answered_as_written(source: str) -> None:
    found = read_questions(question_path(source))
    rows = raw(question_path(source))
    assert found.skipped == ()
    assert len(found.questions) == len(rows) == 60
    for row, question in zip(rows, found.questions, strict=True):
        assert [key for key in QUESTION_KEYS if key in row] == list(row)
        assert row["id"] == question.id
        assert row["passage"] == question.context
        if row["kind"] == "mcq":
            assert row["options"][LETTERS.index(row["answer"])] == question.answer
            assert question.correct is not None
            assert question.options[question.correct] == question.answer
        else:
            assert row["answer"] == question.answer
            assert "options" not in row


@sources
def test_kinds_and_levels(source: str) -> None:
    assert Counter((question.kind, question.level) for question in questions(source)) == LEVELS


def test_ids_are_unique_and_regular() -> None:
    ids = [row["id"] for path in primer.question_paths() for row in raw(path)]
    expected = [
        f"{PREFIXES[source]}-{kind}-{number:02d}"
        for source in primer.SOURCE_BOOKS
        for kind, count in (("mcq", 30), ("freeform", 15), ("cloze", 15))
        for number in range(1, count + 1)
    ]
    assert sorted(ids) == sorted(expected)
    assert len(set(ids)) == 120


@sources
def test_passage_stands_verbatim_in_one_paragraph_of_its_section(source: str) -> None:
    for question in questions(source):
        assert question.document == source, question.id
        assert question.section in sections(source), f"{question.id}: no section {question.section!r}"
        passage = question.context or ""
        homes = [text for text in sections(source)[question.section] if passage in text]
        assert len(homes) == 1, f"{question.id}: passage in {len(homes)} paragraphs"
        assert 150 <= len(passage) <= 900, f"{question.id}: {len(passage)} characters"
        before, _, after = homes[0].partition(passage)
        assert passage.endswith("."), f"{question.id}: passage ends inside a sentence"
        assert after == "" or after.startswith(" "), question.id
        assert before == "" or before.endswith((". ", "? ")), f"{question.id}: passage starts inside a sentence"


@sources
def test_every_chapter_is_asked_about(source: str) -> None:
    home = {section: chapter for chapter, groups in outline(source).items() for section in groups}
    count = Counter(home[question.section] for question in questions(source) if question.section)
    assert set(count) == set(outline(source))
    assert min(count.values()) >= 3, count


def test_options_are_four_and_distinct() -> None:
    for question in all_questions("mcq"):
        assert len(question.options) == 4, question.id
        assert len({" ".join(words(option)) for option in question.options}) == 4, question.id
        for option in question.options:
            assert not re.search(r"\b(?:all|none|both|any) of (?:the|these)\b", option, re.IGNORECASE), question.id
            assert not option.endswith("."), question.id


def test_correct_letters_are_balanced() -> None:
    each = [answer_letters(source) for source in primer.SOURCE_BOOKS]
    for letters in (*each, "".join(each)):
        counts = [letters.count(letter) for letter in "abcd"]
        assert sum(counts) == len(letters)
        assert max(counts) - min(counts) <= 3, counts


@sources
def test_correct_letters_follow_no_cycle(source: str) -> None:
    letters = answer_letters(source)
    for lag in range(1, 9):
        pairs = list(zip(letters, letters[lag:], strict=False))
        same = sum(left == right for left, right in pairs)
        assert same <= 0.5 * len(pairs), f"letters repeat with period {lag}: {letters}"


@sources
def test_length_does_not_give_the_answer_away(source: str) -> None:
    mcq = questions(source, "mcq")
    longest = shortest = 0.0
    for question in mcq:
        lengths = [len(option) for option in question.options]
        own = len(question.answer)
        longest += (own == max(lengths)) / lengths.count(max(lengths))
        shortest += (own == min(lengths)) / lengths.count(min(lengths))
        assert max(lengths) <= 1.6 * min(lengths) or max(lengths) < 30, f"{question.id}: uneven options {lengths}"
    assert longest <= 0.4 * len(mcq), f"the correct option is the longest in {longest:.1f} of {len(mcq)}"
    assert shortest <= 0.4 * len(mcq), f"the correct option is the shortest in {shortest:.1f} of {len(mcq)}"


@sources
def test_echo_of_the_stem_does_not_give_the_answer_away(source: str) -> None:
    mcq = questions(source, "mcq")
    score = 0.0
    for question in mcq:
        echo = [len(content_words(option) & content_words(question.question)) for option in question.options]
        best = [index for index, value in enumerate(echo) if value == max(echo)]
        score += (question.correct in best) / len(best)
    assert score <= 0.42 * len(mcq), f"the option that repeats the stem most is right in {score:.1f} of {len(mcq)}"


def test_correct_option_is_no_copy_of_the_passage() -> None:
    for question in all_questions("mcq"):
        assert not shingles(question.answer, 6) & shingles(question.context or "", 6), question.id


def test_freeform_answers_are_one_or_two_sentences() -> None:
    for question in all_questions("freeform"):
        assert question.answer.endswith("."), question.id
        assert 1 <= sentences(question.answer) <= 2, f"{question.id}: {sentences(question.answer)} sentences"


def test_freeform_and_mcq_stems_are_questions() -> None:
    for question in all_questions():
        assert question.question.endswith("." if question.kind == "cloze" else "?"), question.id
        if question.level == "hypothetical":
            assert question.question.startswith("Suppose "), question.id


def test_cloze() -> None:
    for question in all_questions("cloze"):
        sentence = question.question
        assert sentence.count("<MASK>") == 1, question.id
        assert len(re.findall(r"<[^>]*>|_{3,}", sentence)) == 1, question.id
        assert sentences(sentence) == 1, question.id
        term = question.answer.casefold()
        assert re.fullmatch(r"[^\W\d_]+", question.answer), f"{question.id}: {question.answer!r} is not one word"
        assert term in words(question.context or ""), f"{question.id}: {question.answer!r} not in the passage"
        assert term not in sentence.casefold(), f"{question.id}: {question.answer!r} stands in the sentence"
        filled = sentence.replace("<MASK>", question.answer)
        assert not shingles(filled) & shingles(question.context or ""), f"{question.id}: copied from the passage"
    terms = [question.answer.casefold() for question in all_questions("cloze")]
    assert len(terms) == len(set(terms))


def test_no_two_questions_are_nearly_the_same() -> None:
    bags = [(question.id, content_words(question.question)) for question in all_questions()]
    for (left, first), (right, second) in combinations(bags, 2):
        assert jaccard(first, second) < 0.4, f"{left} and {right} ask nearly the same"


def test_questions_stand_on_their_own() -> None:
    for question in all_questions():
        for text in (question.question, question.answer, *question.options):
            assert not SOURCE_TALK.search(text), f"{question.id}: {text}"
            assert "%" not in text, question.id
            assert not re.search(r"\S°C|(?:^|[\s(])-\d", text), question.id
        assert not re.match(r"(?:This|These|That|Those|It|They)\b", question.question), question.id


# Claims


def test_claims() -> None:
    claims = primer.claims()
    assert [claim.id for claim in claims] == [f"claim-{number:02d}" for number in range(1, 41)]
    assert len(primer.VERDICTS) == len(set(primer.VERDICTS)) == 12
    assert {claim.verdict for claim in claims} == set(primer.VERDICTS)
    assert max(Counter(claim.verdict for claim in claims).values()) <= 6
    trusted = {*primer.SOURCE_BOOKS, *primer.HELD_OUT_BOOKS}
    for claim in claims:
        assert claim.document is None or claim.document in trusted, claim.id
        assert 1 <= sentences(claim.claim) <= 2, claim.id
        assert 1 <= sentences(claim.reason) <= 3, claim.id
        assert claim.reason.endswith("."), claim.id
        assert len(claim.reason.split()) >= 20, claim.id
        for text in (claim.claim, claim.reason):
            assert "%" not in text, claim.id
            assert not re.search(r"\S°C|(?:^|[\s(])-\d", text), claim.id
        assert not re.search(r"\b(?:incorrect|inaccurate|misleading|unsupported|imprecise)\b", claim.claim), claim.id
    assert sum(claim.document is not None for claim in claims) >= 30


def test_no_two_claims_are_nearly_the_same() -> None:
    bags = [(claim.id, content_words(claim.claim)) for claim in primer.claims()]
    for (left, first), (right, second) in combinations(bags, 2):
        assert jaccard(first, second) < 0.4, f"{left} and {right} claim nearly the same"


def test_claims_are_not_copied_from_the_pamphlet() -> None:
    (pamphlet,) = primer.CONTRARIAN_BOOKS
    runs = set().union(*(shingles(paragraph, 8) for paragraph in paragraphs(pamphlet)))
    for claim in primer.claims():
        assert not shingles(claim.claim, 8) & runs, claim.id
