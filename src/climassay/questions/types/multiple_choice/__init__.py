"""Questions with lettered options, one of which is correct."""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import LETTERS, Content, Lengths, QuestionType, option_letter

if TYPE_CHECKING:
    from climassay.questions.types import Question

DISTRACTORS = 3
OPTIONS = DISTRACTORS + 1
OPTION_MARK = re.compile(r"^\s*\(?([A-Za-z])\s*[).:]\s*")
_LABEL = re.compile(r"\(?([A-Da-d1-4])[.):]\s+(?=\S)")


# What stands around a letter, and what is said of it; cases are ignored.
_OPEN = r"[\s*_`\"'“‘«„(\[{<>$#•（［【「-]{0,20}"
_CLOSE = r"[*_`\"'“”’»)\]}>$）］】」]"
_MARK = r"\s*[.,:;!。，：；！]"
_WHOLE = r"(?![^\W_]|_\w|['’–-]\w)"
"""The letter is no beginning of a word, as in "C_4" or "c-axis"."""
_NO_ARTICLE = (
    r"(?!a[^\S\n]+(?!\([^()]*\)\W*\Z)[^\w\n.,;:–—-]*(?!(?:is|are|and|or|nor|but|because|since|as|would|seems)\b)\w)"
)
_IS = (
    r"(?:is|was|(?:would|must|should|will|has\s+to)\s+be|est|es|ist)\b"
    r"(?:\s+(?:most\s+)?(?:likely|probably|clearly|therefore)\b)?"
)
_RIGHT = (
    r"\s+(?:is|are|would\s+be|seems)(?:\s+(?:both|all|the|an?|most|clearly|only|single|probably|likely|best|correct|right))*"
    r"\s+(?:correct|right|best|better|true|answer)\b"
)
_OTHER_VERB = (
    rf"(?!{_CLOSE}{{0,6}}(?!{_RIGHT})\s+(?:is|isn|are|was|can|cannot|could|does|doesn|would|seems|has|ignores|fails|confuses"
    r"|describes|contradicts)\b)"
)
_REASON = r"\s+(?:because|since|as)\b"
_END = rf"(?:{_CLOSE}|{_MARK}|\s*\n|\s*\Z|\s+[-–—](?:\s|\Z)|—|\s+\([^()]*\)\W*\Z|{_REASON}|{_RIGHT})"
_NOUN = r"(?:the\s+)?(?:option|choice|answer|letter|text|statement|response)"
_REJECTED = r"(?![\s\S]*(?:\b(?:not|never|wrong|incorrect|false|exclud\w*|eliminat\w*|rule\w*)\b|n['’]t\b))"
"""Nothing in the text rejects an option."""
_SAYING = (
    r"(?<!wrong )(?<!incorrect )(?<!false )(?<!not )(?<![^\W_])(?:"
    r"(?:answer|option|choice|letter|correct|solution)(?:\s+(?:here|(?:to|of|among)\s+(?:this|the|these)(?:\s+question)?))?"
    rf"(?:[^\w\n]{{0,6}}[:=>\n–—]|\s+-\s|\s+{_IS})|it['’]s\b"
    rf"|(?:it|réponse|respuesta|antwort)\s+{_IS}|答案\s*[是为為：:])"
    rf"[\s:=–—-]{{0,9}}{_OPEN}(?:{_NOUN}\b[\s:]{{0,9}}{_OPEN})?"
)
"""Before a letter that is said to be the answer: "The answer would be", "**Answer:**", "<answer>"."""


def letter_pattern(options: int) -> str:
    """A regular expression that finds the letter that an answer chooses; ignore the case.

    At most one of its groups takes part in a match; where none does, the answer leaves several letters open. The first
    of these that is found counts: a letter in a box; one that the answer begins with ("c) ...", "Option **C**", "C is
    correct"); one that is said to be the answer ("the answer would be", "Answer:"); one that is called correct; and,
    where nothing is rejected, one that is chosen, named as an option, or the only one written as a label, "(c)". An
    article "A" is no letter, and thoughts before ``</think>`` are passed over.
    """
    last = option_letter(options - 1)
    letter = f"[a-{last}ａ-{chr(ord(last) + 0xFEE0)}]"
    other = rf"{_OPEN}{_NO_ARTICLE}{letter}{_WHOLE}"
    several = (
        rf"{letter}{_WHOLE}{_CLOSE}{{0,6}}(?:\s*[/&+]|\s*,\s*(?:and\s|or\s)?(?!{other}{_CLOSE}{{0,6}}\s+is\b)"
        rf"|\s+(?:and|or|nor)\s)\s*(?:{_NOUN}\s+)?{other}"
    )
    one = rf"(?:{several}|{_NO_ARTICLE}({letter}){_WHOLE}{_OTHER_VERB})"
    label = r"(?<!\w){}(?:(?<=\(.)\)|(?<=[.,:;] .)\)|(?<=\*\*.)\.?\*\*)"
    unlabelled = rf"(?:(?!{label.format(letter)})[\s\S])*"
    ways = (
        rf"[\s\S]*?\\boxed\s*\{{\s*(?:\\text\w*\{{)?{_OPEN}{one}",
        rf"{_OPEN}(?:{_NOUN}[^\S\n]+{_OPEN})?(?:{several}|{_NO_ARTICLE}({letter}){_WHOLE}{_OTHER_VERB}{_END})",
        rf"[\s\S]*?{_SAYING}{one}",
        rf"[\s\S]*?(?<![^\W_])(?<!['’]){one}{_CLOSE}{{0,6}}{_RIGHT}",
        rf"{_REJECTED}[\s\S]*?\b(?:choose|chose|pick|select|say|go\s+with)\s+(?:{_NOUN}\s+)?{_OPEN}{one}",
        rf"{_REJECTED}[\s\S]*?\b(?:option|choice|answer)\s+{_OPEN}{one}{_CLOSE}{{0,6}}(?:{_MARK}|\s*\n|\s*\Z|{_REASON})",
        rf"{_REJECTED}{unlabelled}{label.format(f'(?P<labelled>{letter})')}"
        rf"(?![\s\S]*{label.format(f'(?!(?P=labelled)){letter}')})",
    )
    return rf"\A(?:[\s\S]*</think>)?(?![\s\S]*</think>)(?!\s*<think>)(?:{'|'.join(ways)})"


@cache
def _compiled(options: int) -> re.Pattern[str]:
    return re.compile(letter_pattern(options), re.IGNORECASE)


class MultipleChoice(QuestionType):
    """A question with two options or more."""

    name = "mcq"
    place = 0
    title = "Multiple choice"
    category = "multiple-choice"
    climaqa = True
    options = True
    tokens = 8
    """Room for ``The answer is (c)``."""

    def read(self, question: str, answer: str, options: Sequence[str]) -> Content:
        """The question with its options, and which of them the answer names by letter, ``letter) text`` or text.

        Raises:
            InputError: There are too few options or too many, two are the same, or the answer names none.
        """
        shown = tuple(options)
        if len(shown) < 2:
            raise InputError(f"a multiple-choice question needs at least two options, this one has {len(shown)}")
        if len(shown) > len(LETTERS):
            raise InputError(f"at most {len(LETTERS)} options can be lettered, this question has {len(shown)}")
        if any(not option for option in shown):
            raise InputError("an option is empty")
        doubled = [option for option, count in Counter(option.casefold() for option in shown).items() if count > 1]
        if doubled:
            raise InputError(f"the option {doubled[0]!r} appears twice")
        correct = _named(answer, shown)
        return Content(question, shown[correct], shown, correct)

    def choice(self, text: str, options: int) -> int | None:
        """Place of the option whose letter an answer gives, or None; see :func:`letter_pattern` for how it is found."""
        found = _compiled(options).match(text)
        letter = next(filter(None, found.groups()), "") if found else ""
        place = LETTERS.find(unicodedata.normalize("NFKC", letter).casefold()) if letter else -1
        return place if place >= 0 else None

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """The question and the correct option: nobody can then mark a wrong letter."""
        return {"question": bounds.question, "answer": bounds.option}

    def lists(self, bounds: Lengths) -> dict[str, tuple[int, int]]:
        """The distractors; where the correct option appears among them is decided by code."""
        return {"distractors": (DISTRACTORS, bounds.option)}

    def written(self, question: "Question") -> dict[str, Any]:
        """The question, its correct option, and the others.

        Raises:
            InputError: It has not four options, one of them correct.
        """
        if question.correct is None or len(question.options) != OPTIONS:
            raise InputError(
                f"The question {question.id} cannot be an example: it does not have four options, one of them correct."
            )
        distractors = [option for place, option in enumerate(question.options) if place != question.correct]
        right = question.options[question.correct]
        return {"question": question.question, "answer": right, "distractors": distractors}

    def worded(self, given: dict[str, Any], position: int, draw: random.Random) -> Content:
        """The correct option at its place, the distractors around it in an order that is drawn."""
        answer, *distractors = _without_labels([given["answer"], *given["distractors"]])
        draw.shuffle(distractors)
        return Content(given["question"], answer, (*distractors[:position], answer, *distractors[position:]), position)

    def support(self, content: Content) -> str:
        """The option that is marked as correct."""
        marked = content.correct is not None and 0 <= content.correct < len(content.options)
        return content.options[content.correct or 0] if marked else content.answer

    def shown(self, content: Content) -> tuple[str, ...]:
        """The question and its options."""
        return (content.question, *content.options)

    def edited(self, content: Content) -> Content:
        """A question whose options differ, with one of them marked.

        Raises:
            InputError: A text is empty, two options are the same, or none is marked.
        """
        options, correct = content.options, content.correct
        if not content.question:
            raise InputError("The edited question is empty.")
        if len(options) < 2 or not all(options):
            raise InputError("A multiple-choice question needs at least two options, none of them empty.")
        if len({" ".join(option.casefold().split()) for option in options}) < len(options):
            raise InputError("Two options of the edited question are the same.")
        if correct is None or not 0 <= correct < len(options):
            raise InputError(f"Mark one of the {len(options)} options as correct.")
        return Content(content.question, options[correct], options, correct)


def _named(answer: str, options: Sequence[str]) -> int:
    """Index of the option that an answer names."""
    texts = [option.casefold() for option in options]
    if answer.casefold() in texts:
        return texts.index(answer.casefold())
    bare = answer.strip("()[]. ").lower()
    if len(bare) == 1 and bare in LETTERS[: len(options)]:
        return LETTERS.index(bare)
    marked = OPTION_MARK.match(answer)
    if marked and marked[1].lower() in LETTERS[: len(options)]:
        return LETTERS.index(marked[1].lower())
    raise InputError(f"the answer {answer!r} does not name any of the {len(options)} options")


def _without_labels(options: list[str]) -> list[str]:
    """The options without the letters or numbers before them, where all have one and no two the same."""
    labels = [_LABEL.match(option) for option in options]
    results = [label for label in labels if label is not None]
    if len(results) < len(options) or len({label[1].lower() for label in results}) < len(options):
        return options
    return [option[label.end() :] for option, label in zip(options, results, strict=True)]


TYPE = MultipleChoice()
