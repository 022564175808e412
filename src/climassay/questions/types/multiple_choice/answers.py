"""Recognition of the option that a free answer chooses.

An answer is normalised (``answer_text``) and split into words, which have classes (``answer_words.toml``, in about
thirty languages). The words around the letter of an option decide whether the letter is stated as the answer, rejected,
or only mentioned. The last statement counts. An answer that leaves several letters open, retracts its statement or
contradicts itself chooses nothing, because a missing choice is noticed and a wrong one is not.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from climassay.questions.types.multiple_choice.answer_text import (
    find_marked_option,
    find_repeated_option,
    is_variable,
    label_options,
    normalise_answer,
    replace_boxes,
    replace_json,
    strip_markup,
)
from climassay.questions.types.multiple_choice.answer_words import WORD_CHARACTER, WordClass, fold_word, load_lexicon

MAX_STATEMENT_WORDS = 16
"""Maximum number of words between the letter of an option and a word that states it as the answer, such as "answer" in
"The answer is most likely B"."""
MAX_WORDS_AROUND_LABEL = 40
"""Maximum number of words in an answer whose only label, such as "(c)", counts as its choice."""
MIN_LABEL_DISTANCE = 3
"""Minimum number of words and punctuation marks between two labels of a list."""
MAX_NESTING = 3
"""Maximum depth of boxes within boxes."""
_REJECTIONS = WordClass.NEGATION | WordClass.WRONG
_DOUBTS = _REJECTIONS | WordClass.EXCLUSION_VERB | WordClass.CONDITION | WordClass.DOUBT
_OPENING_CHARACTERS = frozenset("\"'“‘«„([{<‹「『〈《【*_`$‚•▪●")
_QUOTES = frozenset("\"'”’»)]}>›」』〉》】*_`$“‘")
_PUNCTUATION = frozenset(".,:;!…。،।；")
_SENTENCE_ENDS = frozenset(".!?。！？।;\n")
_LOOKALIKES = {
    **dict(zip("АВСЕНІЈКМОРЅТХУасеіјорѕхуԁһ", "ABCEHIJKMOPSTXYaceijopsxydh", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True)),
    **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊ", "abcdefghij", strict=True)),
}
"""Cyrillic, Greek and small capital letters, with the Latin letters that they look like."""
_PLURAL_PHRASES = frozenset(
    (noun, verb) for noun in ("options", "answers", "choices") for verb in ("are", "were", "being")
)
"""Pairs of words after which a letter is only one of several answers."""
_VOWELS = frozenset("aeiouy")
"""Letters that may be words ("a", Italian "e" and "i", Portuguese "o", Spanish "y") rather than name an option."""


class Token(NamedTuple):
    """A word, a punctuation mark or a line break in an answer."""

    text: str
    classes: WordClass
    letter: int | None
    """Index of the option if the token is the letter of one; else None."""
    start: int
    end: int


class Mention(NamedTuple):
    """One letter of an option, or several letters that are joined, as in "A or B"."""

    first: int
    """Index of the first token."""
    last: int
    """Index of the last token."""
    letters: tuple[int, ...]
    """Indices of the options."""


class Statement(NamedTuple):
    """Statement that a letter is the answer."""

    letter: int | None
    """Index of the option; None if several letters are stated at once."""
    is_explicit: bool
    """Whether the letter is stated as the answer, rather than called correct ("C is correct") or alone in the last
    line. An explicit statement is overruled only by a later explicit statement."""
    first: int
    """Index of the first token."""
    last: int
    """Index of the last token."""


def find_chosen_option(text: str, options: int, texts: Sequence[str] = ()) -> int | None:
    """Return the index of the option that an answer chooses; None if it chooses none or leaves several open.

    The last statement of an answer counts. An answer without a letter chooses the option whose text it repeats.

    Args:
        text: Answer of a model; thoughts in it, as before ``</think>``, are ignored.
        options: Number of options, lettered from ``a``.
        texts: Texts of the options in the order of the prompt; empty if unknown. If the text of another option follows
            the chosen letter, the answer contradicts itself and chooses nothing.

    Example:
        ``"Answer: A. Wait, no. Answer: (B)"`` gives 1, ``"A or B"`` gives None.
    """
    return _choose(text, options, texts, MAX_NESTING)


def _choose(text: str, options: int, texts: Sequence[str], depth: int) -> int | None:
    text = normalise_answer(replace_json(text))
    text = replace_boxes(text, lambda content: _choose(content, options, (), depth - 1) if depth else None)
    marked_option, text = find_marked_option(text, options)
    finder = _ChoiceFinder(text, options, texts)
    choice = finder.find_choice()
    if marked_option is not None:
        return marked_option if choice in (marked_option, None) else None
    if choice is None and texts and not finder.mentions:
        repeated_option = find_repeated_option(text, texts)
        if repeated_option is not None:
            return repeated_option
        return _ChoiceFinder(label_options(text, texts), options).find_choice(accepts_only_label=False)
    return None if choice is None or finder.is_contradicted(choice, texts) else choice


class _ChoiceFinder:
    """Finds the option that a normalised answer chooses."""

    def __init__(self, text: str, options: int, texts: Sequence[str] = ()) -> None:
        self.text = text
        self.texts = texts
        self.tokens = tuple(self._tokenise(text, options))
        self.mentions = tuple(self._group_letters())
        self.rejected: list[tuple[int, int]] = []
        """Rejected letters, each with the index of its token."""

    def find_choice(self, accepts_only_label: bool = True) -> int | None:
        """Return the letter (0 for A) of the last statement; None if the answer retracts or contradicts it.

        With ``accepts_only_label``, an answer without a statement chooses the only letter that it writes as a label.
        """
        statements = [statement for mention in self.mentions if (statement := self._find_statement(mention))]
        if not statements:
            return self._find_only_label() if accepts_only_label else None
        last_statement = statements[-1]
        explicit_statements = [statement for statement in statements if statement.is_explicit]
        if (
            not last_statement.is_explicit
            and explicit_statements
            and explicit_statements[-1].letter != last_statement.letter
        ):
            start, end = explicit_statements[-1].last, last_statement.first
            tokens_between = (*self.tokens[start : min(start + 8, end)], *self.tokens[max(start, end - 12) : end])
            if self._ends_alone():
                tokens_between = tuple(
                    token for token in self.tokens[start:end] if token.classes & WordClass.RETRACTION
                )
            if not any(
                token.classes & (WordClass.NEGATION | WordClass.RETRACTION | WordClass.CONTRAST) or token.text == "?"
                for token in tokens_between
            ):
                return None
        implicit_letters = {statement.letter for statement in statements if not statement.is_explicit}
        if last_statement.letter is None or (not explicit_statements and len(implicit_letters) > 1):
            return None
        if any(
            letter == last_statement.letter and position > last_statement.first for letter, position in self.rejected
        ):
            return None
        tokens_after = self.tokens[last_statement.last + 1 :]
        is_retracted = any(token.classes & WordClass.RETRACTION for token in tokens_after) or any(
            self._answers_no(position) for position in range(last_statement.last + 1, len(self.tokens))
        )
        return None if is_retracted or self._is_denied(tokens_after) else last_statement.letter

    def is_contradicted(self, letter: int, texts: Sequence[str]) -> bool | None:
        """Return whether the text of another option follows the last mention of a letter.

        None if the letter is not mentioned alone, or if the text of no option follows it.
        """
        mention = next((mention for mention in reversed(self.mentions) if mention.letters == (letter,)), None)
        if mention is None:
            return None
        following_text = strip_markup(
            self.text[self.tokens[mention.last].end :].lstrip(" \t)].:,-–—*\"'(").split("\n")[0]
        )
        wordings = [strip_markup(unicodedata.normalize("NFKC", option)) for option in texts]
        following_wordings = [
            wording for wording in wordings if wording and re.match(rf"{re.escape(wording)}(?!\w)", following_text)
        ]
        return max(following_wordings, key=len) != wordings[letter] if following_wordings else None

    # Words and letters

    @staticmethod
    def _tokenise(text: str, options: int) -> Iterator[Token]:
        classes, pattern = load_lexicon()
        for match in pattern.finditer(text):
            word = match[0]
            letter = None
            if len(word) == 1 and word.isalpha():
                latin = _LOOKALIKES.get(word, word).casefold()
                code = ord(latin) - 97
                preceding_character = text[match.start() - 1] if match.start() else ""
                if (
                    0 <= code < options
                    and preceding_character not in ("°", "º", "\\")
                    and not is_variable(text, *match.span())
                ):
                    letter = code
            word_class = classes.get(fold_word(word), WordClass(0))
            if "'" in word or "’" in word:
                if fold_word(word).endswith("n't") or fold_word(word).startswith("n'"):
                    word_class |= WordClass.NEGATION
                if not word_class and re.fullmatch(r"(?:it|that|here|what|answer|option|c|qu|d)'\w+", fold_word(word)):
                    word_class = WordClass.PRONOUN | WordClass.COPULA
            if fold_word(word) == "wait" and not re.search(r"(?:\A|[.!?,;:…—–\n(-])\s*\Z", text[: match.start()][-4:]):
                word_class &= ~WordClass.RETRACTION
            if fold_word(word) == "also" and text[: match.start()].rstrip(" ")[-1:] not in {"", *".\n!?;"}:
                word_class &= ~WordClass.CONCLUSION  # the English word, not the German one
            yield Token(word, word_class, letter, match.start(), match.end())

    def _group_letters(self) -> Iterator[Mention]:
        """Yield all mentions of options; letters joined by "and", "or", a comma or a slash form one mention."""
        position = 0
        while position < len(self.tokens):
            if self.tokens[position].letter is None or self._is_word(position):
                position += 1
                continue
            first = last = position
            letters = [self.tokens[position].letter or 0]
            while (next_letter := self._find_joined(last)) is not None:
                last = next_letter
                letters.append(self.tokens[last].letter or 0)
            yield Mention(first, last, tuple(dict.fromkeys(letters)) if last > first else (letters[0],))
            position = last + 1

    def _find_joined(self, position: int) -> int | None:
        """Return the index of the next token that is a letter joined to the letter at ``position``, or None."""
        index = self._skip(position + 1, _QUOTES)
        n_commas = 0
        n_joins = 0
        while index < len(self.tokens) and index < position + 8:
            token = self.tokens[index]
            if token.letter is not None and n_joins and not self._is_word(index):
                next_index = self._skip(index + 1, _QUOTES)
                is_verb = self._class_at(next_index) & (WordClass.COPULA | WordClass.MATCH_VERB)
                if n_commas == n_joins and is_verb and self._text_at(next_index) not in (":", "="):
                    return None
                return index
            if token.classes & WordClass.CONJUNCTION and token.text != ";":
                n_joins += 1
                n_commas += token.text in (",", "、", "،")
            elif token.classes & WordClass.NEGATION or not (
                token.classes & (WordClass.OPTION_NOUN | WordClass.DOUBT) or token.text in _OPENING_CHARACTERS | {"the"}
            ):
                return None
            index += 1
        return None

    def _is_word(self, position: int) -> bool:
        """Return whether a letter is a word ("a decrease", "I think") or part of one ("a.m.", "vitamin C")."""
        token = self.tokens[position]
        next_index = position + 1
        letter = _LOOKALIKES.get(token.text, token.text)
        is_vowel = letter.casefold() in _VOWELS
        text_after = self._text_at(next_index)
        is_adjacent = next_index < len(self.tokens) and self.tokens[next_index].start == token.end
        if text_after == "." and is_adjacent and next_index + 1 < len(self.tokens):
            successor = self.tokens[next_index + 1]
            is_single = len(successor.text) == 1 and successor.text.isalpha()
            if is_single and successor.text.isupper() == letter.isupper() and self._text_at(next_index + 2) == ".":
                return True  # "B.A.", "a. m."
            if successor.start == self.tokens[next_index].end and successor.text[:1].isalpha() and letter.islower():
                return True
        if (
            text_after in ("'", "’")
            and is_adjacent
            and self._text_at(next_index + 2) != text_after
            and not self._follows_opening(position)
        ):
            return True
        if letter == "I" and (text_after == "," or re.search(r"\bII[.):]", self.text)):
            return True
        token_before = self.tokens[position - 1] if position else None
        if (
            token_before is not None
            and token_before.text == "."
            and token_before.end == token.start
            and letter.islower()
        ):
            return True
        if not is_vowel:
            return False
        if next_index >= len(self.tokens) or not re.match(rf"{WORD_CHARACTER}", text_after):
            # "A (relatively) small share": what follows in brackets must be the end.
            if text_after == "(":
                text_in_brackets = self.text[self.tokens[next_index].start :]
                return not re.fullmatch(r"\([^()]*\)\W*", text_in_brackets.split("\n")[0])
            return text_after in ("“", "„", "«") or (text_after == '"' and not self._follows_opening(position))
        if self.tokens[next_index].letter is not None and not self._class_at(next_index) & WordClass.CONJUNCTION:
            return True
        classes = self._class_at(next_index)
        return not (
            classes
            & (WordClass.COPULA | WordClass.NEGATION | WordClass.REASON | WordClass.CONJUNCTION | WordClass.CONTRAST)
            or (classes & WordClass.MATCH_VERB and letter.isupper())
            or (
                fold_word(text_after) in ("best", "most", "only", "therefore")
                and self._class_at(next_index + 1) & (WordClass.MATCH_VERB | WordClass.COPULA)
            )
            or classes & WordClass.CLOSING
            or (self._follows_opening(position) and text_after in _QUOTES)
        ) or (
            classes & WordClass.REASON == WordClass.REASON and fold_word(text_after) in ("given", "due", "which", "for")
        )

    def _follows_opening(self, position: int) -> bool:
        return position > 0 and self.tokens[position - 1].text in _OPENING_CHARACTERS

    def _class_at(self, position: int) -> WordClass:
        return self.tokens[position].classes if 0 <= position < len(self.tokens) else WordClass(0)

    def _text_at(self, position: int) -> str:
        return self.tokens[position].text if 0 <= position < len(self.tokens) else ""

    def _skip(self, position: int, characters: frozenset[str]) -> int:
        while position < len(self.tokens) and self.tokens[position].text in characters:
            position += 1
        return position

    # Statements

    def _find_statement(self, mention: Mention) -> Statement | None:
        """Return the statement that a mention makes, or None; rejected letters are added to ``self.rejected``."""
        classes_before, start = self._classes_before(mention.first)
        classes_after, is_negated = self._classes_after(mention.last)
        is_closed = self._is_closed(mention)
        clause_classes = self._clause_classes(start)
        letter = mention.letters[0] if len(mention.letters) == 1 else None
        words_before = [fold_word(token.text) for token in self.tokens[start : mention.first]]
        if any(pair in _PLURAL_PHRASES for pair in pairwise(words_before)):
            letter = None
        if self._heads_section(mention) or self._heads_part(mention):
            return None
        is_excluded = bool(clause_classes & WordClass.EXCLUSION_VERB) or bool(classes_before & WordClass.EXCLUSION_VERB)
        is_correction = (
            bool(classes_before & WordClass.CONTRAST)
            and is_closed
            and any(position < mention.first for _, position in self.rejected)
        )
        if not is_correction and ((clause_classes | classes_before) & _REJECTIONS or is_excluded or is_negated):
            for rejected_letter in mention.letters:
                self.rejected.append((rejected_letter, mention.first))
            return None
        if (clause_classes | classes_before) & (WordClass.CONDITION | WordClass.DOUBT) or self._is_question(mention):
            return None
        is_explicit = is_closed and (
            bool(classes_before & WordClass.ANSWER_NOUN)
            or bool(classes_before & WordClass.CHOICE_VERB)
            or bool(classes_before & WordClass.CORRECT and classes_before & (WordClass.COPULA | WordClass.OPTION_NOUN))
            or bool(classes_before & WordClass.OPTION_NOUN and classes_before & WordClass.COPULA)
            or bool(
                classes_before & (WordClass.PRONOUN | WordClass.MATCH_VERB)
                and classes_before & (WordClass.COPULA | WordClass.MATCH_VERB)
            )
            or bool(classes_before & WordClass.CONCLUSION)
            or is_correction
            or self._begins_answer(mention)
        )
        is_called_correct = (
            bool(classes_after & (WordClass.CORRECT | WordClass.ANSWER_NOUN) and classes_after & WordClass.COPULA)
            or bool(classes_after & WordClass.MATCH_VERB)
            or self._is_alone(mention)
            or self._is_praised(mention)
        )
        if not (is_explicit or is_called_correct) or (self._is_label(mention) and self._begins_list(mention)):
            return None
        return Statement(letter, is_explicit, mention.first, mention.last)

    def _is_praised(self, mention: Mention) -> bool:
        """Return whether the words after a letter say that the option fits best, as in "C best describes"."""
        adverb = self._skip(mention.last + 1, _QUOTES)
        if self._class_at(adverb) & WordClass.COPULA:
            next_words = [fold_word(self._text_at(adverb + offset)) for offset in (1, 2)]
            return next_words in (["the", "most"], ["the", "best"])
        verb = self._text_at(adverb + 1)
        return (
            fold_word(self._text_at(adverb)) in ("best", "correctly", "accurately")
            and verb.endswith("s")
            and len(verb) > 3
        )

    def _classes_before(self, position: int) -> tuple[WordClass, int]:
        """Return the classes of the words of a statement before a letter, and the index of the first such word."""
        classes = WordClass(0)
        statement_classes = (
            WordClass.ANSWER_NOUN
            | WordClass.OPTION_NOUN
            | WordClass.CORRECT
            | WordClass.COPULA
            | WordClass.PRONOUN
            | WordClass.CHOICE_VERB
            | WordClass.MATCH_VERB
            | WordClass.CONCLUSION
            | WordClass.FILLER
        )
        index = position - 1
        while index >= 0 and index > position - MAX_STATEMENT_WORDS:
            token = self.tokens[index]
            if token.text == "\n":
                previous_index = index
                while previous_index >= 0 and (
                    self._text_at(previous_index) == "\n" or self._text_at(previous_index) in _QUOTES
                ):
                    previous_index -= 1
                if classes & (WordClass.ANSWER_NOUN | WordClass.CORRECT | WordClass.CHOICE_VERB) or not (
                    self._text_at(previous_index) in (":", "=")
                    or self._class_at(previous_index) & (WordClass.COPULA | WordClass.ANSWER_NOUN | WordClass.CORRECT)
                ):
                    break
                # A heading, as "Answer" or "Final answer:" is; a sentence before the letter is none.
                index = previous_index
                continue
            if token.letter is not None and not self._is_word(index):
                break
            if token.text == ",":
                if not self._class_at(index - 1) & (WordClass.CONCLUSION | WordClass.OPENER):
                    break
            elif self._answers_no(index):
                break
            elif token.classes & (_REJECTIONS | WordClass.CONTRAST):
                classes |= token.classes & (_REJECTIONS | WordClass.CONTRAST)
                break
            elif token.classes & statement_classes:
                classes |= token.classes
            elif fold_word(token.text) in ("each", "every", "any"):
                return classes & ~WordClass.OPTION_NOUN, index + 1
            elif token.letter is not None:
                pass  # an article
            elif not (
                token.text in _OPENING_CHARACTERS | _QUOTES | {"-", "–", "—", "~", "#", "|"} or self._is_symbol(token)
            ):
                break
            index -= 1
        return classes, index + 1

    def _classes_after(self, position: int) -> tuple[WordClass, bool]:
        """Return the classes of the words of a statement after a letter, and whether they negate the statement."""
        classes = WordClass(0)
        statement_classes = (
            WordClass.ANSWER_NOUN
            | WordClass.OPTION_NOUN
            | WordClass.CORRECT
            | WordClass.COPULA
            | WordClass.FILLER
            | WordClass.MATCH_VERB
        )
        index = self._skip(position + 1, _QUOTES)
        limit = index + MAX_STATEMENT_WORDS // 2
        while index < min(limit, len(self.tokens)):
            token = self.tokens[index]
            if token.text in (":", "=", "=>", "->", "→", "\n") or token.letter is not None:
                break
            if token.classes & _REJECTIONS:
                return WordClass(0), True
            if not (token.classes & statement_classes or token.text in (_OPENING_CHARACTERS | _QUOTES) - {"("}):
                if index == self._skip(position + 1, _QUOTES) and token.classes & WordClass.OBJECTION_VERB:
                    return WordClass(0), True
                break
            # "C is correct", not "C correct is".
            is_open = classes & (WordClass.COPULA | WordClass.OPTION_NOUN) or self._ends_clause(index)
            classes |= token.classes if is_open else token.classes & ~(WordClass.CORRECT | WordClass.ANSWER_NOUN)
            index += 1
        return classes, False

    def _ends_clause(self, position: int) -> bool:
        """Return whether an adjective followed by its verb ends a clause, as in German "dass D richtig ist"."""
        is_verb = self._class_at(position) & WordClass.CORRECT and self._class_at(position + 1) & WordClass.COPULA
        return bool(is_verb) and self._text_at(position + 2) in ("", "\n", *_PUNCTUATION)

    def _is_closed(self, mention: Mention) -> bool:
        """Return whether a statement about the correct option can end with the mentioned letter.

        This is so if the letter is followed by the end of the text, by punctuation, by a conjunction, or by words that
        complete the statement, such as "is correct".
        """
        position = mention.last + 1
        next_index = self._skip(position, _QUOTES)
        if next_index >= len(self.tokens):
            return True
        token = self.tokens[next_index]
        if next_index > position and token.text not in ("\n", *_PUNCTUATION) and not self._precedes_bracket(mention):
            return (
                bool(token.classes & (WordClass.REASON | WordClass.CONJUNCTION | WordClass.CONTRAST))
                or token.text in "(-–—"
                or next_index > position
            )
        if token.text in ("\n", "(", "?", "-", "–", "—", "%", *_PUNCTUATION) or self._is_symbol(token):
            return not (token.text in "-–" and token.end < len(self.text) and self.text[token.end].isalnum())
        if self._precedes_bracket(mention):
            is_verb = token.classes & WordClass.COPULA and not token.classes & WordClass.CLOSING
            return not is_verb or bool(self._classes_after(mention.last)[0] & WordClass.CORRECT)
        if token.classes & (
            WordClass.CLOSING | WordClass.REASON | WordClass.CONJUNCTION | WordClass.CONTRAST | WordClass.NEGATION
        ):
            return True
        classes_after, _ = self._classes_after(mention.last)
        return bool(
            classes_after & (WordClass.CORRECT | WordClass.ANSWER_NOUN)
            and classes_after & (WordClass.COPULA | WordClass.OPTION_NOUN)
        )

    def _precedes_bracket(self, mention: Mention) -> bool:
        return self._text_at(mention.last + 1) in (")", "]", "}", "】", "」")

    def _clause_classes(self, start: int) -> WordClass:
        """Return the classes of earlier words in the sentence of a statement that change its meaning."""
        classes = WordClass(0)
        is_same_clause = True
        for index in range(start - 1, max(-1, start - 40), -1):
            token = self.tokens[index]
            if (
                token.text in _SENTENCE_ENDS
                or token.classes & WordClass.CONTRAST
                or self._answers_no(index)
                or (token.classes & WordClass.CONCLUSION and token.text.isalpha())
            ):
                break
            if token.text in (",", ":", "，") or token.letter is not None:
                continues = token.letter is not None or fold_word(self._text_at(index + 1)) == "then"
                is_same_clause = is_same_clause and continues
                if token.text == ":":
                    is_same_clause = not classes
            classes |= token.classes & (_DOUBTS if is_same_clause else WordClass.DOUBT)
        return classes

    def _answers_no(self, position: int) -> bool:
        """Return whether a word is a "No" that answers a question without negating the text after it."""
        begins_sentence = position == 0 or self._text_at(position - 1) in _SENTENCE_ENDS
        return (
            begins_sentence
            and fold_word(self._text_at(position)) in ("no", "nein", "non")
            and self._text_at(position + 1) in ",:-–—"
        )

    def _is_question(self, mention: Mention) -> bool:
        """Return whether a letter is part of a question; a question at the end of an answer ("B?") does not count."""
        end = self._skip(mention.last + 1, _QUOTES)
        limit = min(end + 12, len(self.tokens))
        while end < limit and self.tokens[end].text not in _SENTENCE_ENDS:
            end += 1
        if self._text_at(end) != "?":
            return False
        start = mention.first
        while start > 0 and self.tokens[start - 1].text not in _SENTENCE_ENDS:
            start -= 1
        begins_with_verb = self._class_at(start) & WordClass.COPULA and self.tokens[start].letter is None
        return bool(begins_with_verb) or any(self._is_content(token) for token in self.tokens[end + 1 :])

    @staticmethod
    def _is_content(token: Token) -> bool:
        return token.text[:1].isalnum()

    @staticmethod
    def _is_symbol(token: Token) -> bool:
        return len(token.text) == 1 and unicodedata.category(token.text) in ("So", "Sk", "Sm")

    def _is_alone(self, mention: Mention) -> bool:
        """Return whether a letter is the only content of the last line."""
        first, last = mention.first, mention.last
        while first > 0 and not self._is_content(self.tokens[first - 1]) and self._text_at(first - 1) != "\n":
            first -= 1
        while last + 1 < len(self.tokens) and not self._is_content(self.tokens[last + 1]):
            last += 1
        is_long = len(self.tokens) > MAX_WORDS_AROUND_LABEL and self._text_at(mention.first).islower()
        is_last = last + 1 == len(self.tokens) and self._text_at(first - 1) in ("", "\n")
        return is_last and (not is_long or self._precedes_bracket(mention))

    def _ends_alone(self) -> bool:
        return bool(self.mentions) and self._is_alone(self.mentions[-1])

    def _begins_answer(self, mention: Mention) -> bool:
        """Return whether an answer begins with a letter and is not a list of the options."""
        preceding_tokens = self.tokens[: mention.first]
        if any(
            self._is_content(token)
            and not token.classes & (WordClass.OPENER | WordClass.OPTION_NOUN | WordClass.CONCLUSION)
            for token in preceding_tokens
        ):
            return False
        if any(token.text == "?" for token in preceding_tokens):
            return False
        line = self.text[self.tokens[mention.first].start :].split("\n")[0]
        if self._text_at(mention.last + 1) in (")", ".") and len(line.split()) > MAX_WORDS_AROUND_LABEL:
            # Rather part (a) of a solution, unless it is the option with its text.
            return len(mention.letters) == 1 and self.is_contradicted(mention.letters[0], self.texts) is False
        if self.texts and len(mention.letters) == 1 and self.is_contradicted(mention.letters[0], self.texts) is False:
            return True
        return not self._begins_list(mention) and not self._is_repeated(mention)

    def _begins_list(self, mention: Mention) -> bool:
        """Return whether a letter is the first label of a list of options."""
        ends_line = self._text_at(self._skip(mention.last + 1, _QUOTES)) in ("\n", "")
        for later_mention in self.mentions:
            if later_mention.first <= mention.last or not self._is_label(later_mention):
                continue
            if len(mention.letters) > 1:
                return False
            next_line = self.tokens[mention.last : later_mention.first]
            if (
                sum(token.text == "\n" for token in next_line) == 1
                and len(next_line) > MIN_LABEL_DISTANCE
                and not ends_line
            ):
                return True
            begins_list = mention.letters[0] == 0 or later_mention.letters[0] == mention.letters[0] + 1
            is_explained = any(
                token.classes & (WordClass.WRONG | WordClass.REASON)
                or fold_word(token.text) in ("explanation", "reason", "reasoning", "why")
                for token in self.tokens[mention.last : later_mention.first]
            )
            if begins_list and not (is_explained or ends_line):
                return True
        return False

    def _heads_section(self, mention: Mention) -> bool:
        """Return whether a letter is part of a heading such as "Option A:" within a longer answer."""
        word_index = mention.first - 1
        while word_index >= 0 and self._text_at(word_index) in _OPENING_CHARACTERS:
            word_index -= 1
        is_heading = (
            self._class_at(word_index) & WordClass.OPTION_NOUN
            and self._text_at(self._skip(mention.last + 1, _QUOTES)) == ":"
        )
        return bool(is_heading) and word_index > 0 and self._text_at(word_index - 1) == "\n"

    def _heads_part(self, mention: Mention) -> bool:
        """Return whether a lower-case letter labels a part of a long solution, as in "a) Lap winding"."""
        begins_line = self._text_at(mention.first - 1) == "\n" and self._text_at(mention.last + 1) == ")"
        is_long = len(self.tokens) > MAX_WORDS_AROUND_LABEL and self._text_at(mention.first).islower()
        return begins_line and is_long and self._text_at(mention.last + 2) not in ("", "\n")

    def _is_label(self, mention: Mention) -> bool:
        """Return whether a letter is a label at the beginning of a line or clause."""
        previous_index = mention.first - 1
        while previous_index >= 0 and self._text_at(previous_index) in _OPENING_CHARACTERS | {"-", "–"}:
            previous_index -= 1
        text_after = self._text_at(mention.last + 1)
        begins_clause = previous_index < 0 or self._text_at(previous_index) in {"\n", ".", ";", ",", "!"}
        return begins_clause and text_after in {")", ".", ":", "]", "-"}

    def _is_repeated(self, mention: Mention) -> bool:
        """Return whether another letter follows immediately, as in degenerate answers ("B B B")."""
        next_index = self._skip(mention.last + 1, _QUOTES)
        return next_index < len(self.tokens) and self.tokens[next_index].letter is not None

    def _is_denied(self, tokens_after: Sequence[Token]) -> bool:
        """Return whether the text after a statement denies it, as in "A? No." and "A, but this is not right"."""
        content_tokens = [token for token in tokens_after if self._is_content(token)]
        if len(content_tokens) == 1:
            return bool(content_tokens[0].classes & WordClass.NEGATION)
        has_objection = False
        for token in tokens_after:
            if token.text in _SENTENCE_ENDS or (has_objection and token.letter is not None):
                break
            if has_objection and token.classes & _REJECTIONS:
                return True
            has_objection = has_objection or bool(token.classes & WordClass.CONTRAST)
        return False

    def _is_bracketed_label(self, mention: Mention) -> bool:
        """Return whether a letter is written as a label, "(c)" or "c)", and is not the label of a figure or panel."""
        text_before = self._text_at(mention.first - 1)
        if self._text_at(mention.last + 1) != ")" or text_before not in ("(", "", "\n", ",", ":", ";", "."):
            return False
        if text_before == "(":
            is_named = self._class_at(mention.first - 2) & WordClass.LABELLED_NOUN
            return not is_named and self._text_at(mention.last + 2) in ("", "\n", *_PUNCTUATION)
        return True

    def _find_only_label(self) -> int | None:
        """Return the only labelled letter in an answer; None if others are mentioned or any letter is doubted."""
        doubts = _DOUBTS | WordClass.RETRACTION
        n_words = sum(self._is_content(token) for token in self.tokens)
        if n_words > MAX_WORDS_AROUND_LABEL or any(token.classes & doubts for token in self.tokens):
            return None
        letters: set[int] = set()
        for mention in self.mentions:
            is_bracketed = self._is_bracketed_label(mention)
            is_named = self._class_at(mention.first - 1) & WordClass.OPTION_NOUN and self._is_closed(mention)
            if is_bracketed or is_named:
                letters.update(mention.letters)
        unlabelled_letters = {letter for mention in self.mentions for letter in mention.letters} - letters
        return letters.pop() if len(letters) == 1 and not unlabelled_letters else None
