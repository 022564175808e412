"""Recognition of the option that a free answer chooses.

An answer is normalised (``answer_text``), split into words of some classes (``answer_words.toml``, in about thirty
languages), and each letter of an option gets a role from the words around it: stated as the answer, rejected, or only
mentioned. The last statement counts. An answer that leaves several letters open, takes its statement back or
contradicts itself chooses nothing: an unread answer can be asked about, a wrong letter is never noticed.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from climassay.questions.types.multiple_choice.answer_text import (
    bare_text,
    is_variable,
    label_options,
    normalise_answer,
    option_marked_correct,
    repeated_option,
    replace_boxes,
    replace_json,
)
from climassay.questions.types.multiple_choice.answer_words import WORD_CHARACTER, WordClass, folded_word, lexicon

MAX_RUN = 16
"""Maximum number of words between a letter and the word that makes it the answer."""
MAX_WORDS_AROUND_LABEL = 40
"""Maximum number of words of an answer whose only label, "(c)", is taken for its choice."""
MIN_LINE = 3
"""Minimum number of words and marks from one label of a list to the next."""
MAX_NESTING = 3
"""Maximum depth of answers within answers (a box in a tag in a JSON text)."""


W = WordClass
_OPENING = frozenset("\"'“‘«„([{<‹「『〈《【*_`$‚•▪●")
_QUOTES = frozenset("\"'”’»)]}>›」』〉》】*_`$“‘")
_MARKS = frozenset(".,:;!…。،।；")
_SENTENCE_ENDS = frozenset(".!?。！？।;\n")
_LATIN = {
    **dict(zip("АВСЕНІЈКМОРЅТХУасеіјорѕхуԁһ", "ABCEHIJKMOPSTXYaceijopsxydh", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True)),
    **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊ", "abcdefghij", strict=True)),
}
"""Cyrillic, Greek and small capital letters that look like a Latin one."""
_PLURALS = frozenset((noun, verb) for noun in ("options", "answers", "choices") for verb in ("are", "were", "being"))
"""Words after which a letter is one of several."""
_VOWELS = frozenset("aeiouy")
"""Letters that are also words in some language ("a", Italian "e" and "i", Portuguese "o", Spanish "y")."""


class Token(NamedTuple):
    """A word, a mark or a line break, with its classes; letters of options have their index."""

    text: str
    classes: WordClass
    letter: int | None
    start: int
    end: int


class Mention(NamedTuple):
    """Adjacent letters of options, with the positions of their first and last token."""

    first: int
    last: int
    letters: tuple[int, ...]


class StatedLetter(NamedTuple):
    """Letter stated as the answer; None if several are stated at once."""

    letter: int | None
    explicit: bool
    """False if an option is only called correct ("C is correct") or is the last line, which overrules no letter."""
    position: int
    end: int


def chosen_option(text: str, options: int, texts: Sequence[str] = ()) -> int | None:
    """Return the index of the option that an answer chooses, or None if it chooses none or leaves several open.

    The last statement of an answer counts. An answer without a letter chooses the option whose text it repeats.

    Args:
        text: A model's answer; thoughts before ``</think>`` are passed over.
        options: Number of options, lettered from ``a``.
        texts: Texts of the options in the order shown, if they are known. A letter before the text of another option
            is a contradiction, and chooses nothing.

    Example:
        ``"Answer: A. Wait, no. Answer: (B)"`` gives 1, ``"A or B"`` gives None.
    """
    return _read(text, options, texts, MAX_NESTING)


def _read(text: str, options: int, texts: Sequence[str], depth: int) -> int | None:
    text = normalise_answer(replace_json(text))
    text = replace_boxes(text, lambda content: _read(content, options, (), depth - 1) if depth else None)
    marked, text = option_marked_correct(text, options)
    reader = _Reader(text, options, texts)
    chosen = reader.choice()
    if marked is not None:
        return marked if chosen in (marked, None) else None
    if chosen is None and texts and not reader.mentions:
        repeated = repeated_option(text, texts)
        if repeated is not None:
            return repeated
        return _Reader(label_options(text, texts), options).choice(accepts_only_label=False)
    if chosen is None:
        return None
    return None if reader.contradicted(chosen, texts) else chosen


class _Reader:
    """One normalised answer with its words, its letters, and what is stated of them."""

    def __init__(self, text: str, options: int, texts: Sequence[str] = ()) -> None:
        self.text = text
        self.texts = texts
        self.tokens = tuple(self._tokenise(text, options))
        self.mentions = tuple(self._group())
        self.rejected: list[tuple[int, int]] = []
        """Letters with the positions of their tokens."""

    def choice(self, accepts_only_label: bool = True) -> int | None:
        """Return the letter of the last statement, unless it is taken back or contradicted.

        An answer without a statement chooses the only letter that it writes as a label, if this is accepted.
        """
        statements = [statement for mention in self.mentions if (statement := self._statement(mention))]
        if not statements:
            return self._only_label() if accepts_only_label else None
        last = statements[-1]
        explicit = [statement for statement in statements if statement.explicit]
        if not last.explicit and explicit and explicit[-1].letter != last.letter:
            stated, position = explicit[-1].end, last.position
            between = (
                *self.tokens[stated : min(stated + 8, position)],
                *self.tokens[max(stated, position - 12) : position],
            )
            if self._alone_last():
                between = tuple(token for token in self.tokens[stated:position] if token.classes & W.RETRACT)
            if not any(token.classes & (W.NOT | W.RETRACT | W.BUT) or token.text == "?" for token in between):
                return None
        called_correct = {statement.letter for statement in statements if not statement.explicit}
        if last.letter is None or (not explicit and len(called_correct) > 1):
            return None
        if any(letter == last.letter and position > last.position for letter, position in self.rejected):
            return None
        rest = self.tokens[last.end + 1 :]
        retracted = any(token.classes & W.RETRACT for token in rest) or any(
            self._answers_no(position) for position in range(last.end + 1, len(self.tokens))
        )
        return None if retracted or self._unsaid(rest) else last.letter

    def contradicted(self, letter: int, texts: Sequence[str]) -> bool | None:
        """Return whether another option's text follows the letter's last mention; None if no option's text does."""
        for mention in reversed(self.mentions):
            if mention.letters == (letter,):
                following = bare_text(
                    self.text[self.tokens[mention.last].end :].lstrip(" \t)].:,-–—*\"'(").split("\n")[0]
                )
                wordings = [bare_text(unicodedata.normalize("NFKC", option)) for option in texts]
                begun = [
                    index
                    for index, wording in enumerate(wordings)
                    if wording and re.match(rf"{re.escape(wording)}(?!\w)", following)
                ]
                if begun:
                    longest = max(begun, key=lambda index: len(wordings[index]))
                    return wordings[longest] != wordings[letter]
                return None
        return None

    # Words and letters

    @staticmethod
    def _tokenise(text: str, options: int) -> Iterator[Token]:
        classes, pattern = lexicon()
        for match in pattern.finditer(text):
            word = match[0]
            letter = None
            if len(word) == 1 and word.isalpha():
                latin = _LATIN.get(word, word).casefold()
                code = ord(latin) - 97
                before = text[match.start() - 1] if match.start() else ""
                if 0 <= code < options and before not in ("°", "º", "\\") and not is_variable(text, *match.span()):
                    letter = code
            word_class = classes.get(folded_word(word), W(0))
            if "'" in word or "’" in word:
                word_class |= W.NOT if folded_word(word).endswith("n't") or folded_word(word).startswith("n'") else W(0)
                if not word_class and re.fullmatch(
                    r"(?:it|that|here|what|answer|option|c|qu|d)'\w+", folded_word(word)
                ):
                    word_class = W.IT | W.LINK
            if folded_word(word) == "wait" and not re.search(
                r"(?:\A|[.!?,;:…—–\n(-])\s*\Z", text[: match.start()][-4:]
            ):
                word_class &= ~W.RETRACT
            if folded_word(word) == "also" and text[: match.start()].rstrip(" ")[-1:] not in (
                "",
                ".",
                "\n",
                "!",
                "?",
                ";",
            ):
                word_class &= ~W.SO  # the English word, not the German one
            yield Token(word, word_class, letter, match.start(), match.end())

    def _group(self) -> Iterator[Mention]:
        """Yield the letters of options; letters joined by "and", "or", a comma or a slash are one mention."""
        position = 0
        while position < len(self.tokens):
            if self.tokens[position].letter is None or self._is_word(position):
                position += 1
                continue
            first = last = position
            letters = [self.tokens[position].letter or 0]
            while (following := self._joined(last)) is not None:
                last = following
                letters.append(self.tokens[last].letter or 0)
            yield Mention(first, last, tuple(dict.fromkeys(letters)) if last > first else (letters[0],))
            position = last + 1

    def _joined(self, position: int) -> int | None:
        """Return the position of the next letter of the same list, or None."""
        following = self._skip(position + 1, _QUOTES)
        commas = 0
        joins = 0
        while following < len(self.tokens) and following < position + 8:
            token = self.tokens[following]
            if token.letter is not None and joins and not self._is_word(following):
                if commas == joins and self._class(self._skip(following + 1, _QUOTES)) & (W.LINK | W.MATCH):
                    return None if self._text(self._skip(following + 1, _QUOTES)) not in (":", "=") else following
                return following
            if token.classes & W.AND and token.text != ";":
                joins += 1
                commas += token.text in (",", "、", "،")
            elif token.classes & W.NOT or not (
                token.classes & (W.OPTION | W.DOUBT) or token.text in _OPENING | {"the"}
            ):
                return None
            following += 1
        return None

    def _is_word(self, position: int) -> bool:
        """Return whether a single letter is a word ("a decrease", "I think") or part of one ("a.m.", "vitamin C")."""
        token = self.tokens[position]
        following = position + 1
        letter = _LATIN.get(token.text, token.text)
        is_vowel = letter.casefold() in _VOWELS
        after = self._text(following)
        glued = following < len(self.tokens) and self.tokens[following].start == token.end
        if after == "." and glued and following + 1 < len(self.tokens):
            successor = self.tokens[following + 1]
            is_single = len(successor.text) == 1 and successor.text.isalpha()
            if is_single and successor.text.isupper() == letter.isupper() and self._text(following + 2) == ".":
                return True  # "B.A.", "a. m."
            if successor.start == self.tokens[following].end and successor.text[:1].isalpha() and letter.islower():
                return True
        if after in ("'", "’") and glued and self._text(following + 2) != after and not self._opened(position):
            return True
        if letter == "I" and (after == "," or re.search(r"\bII[.):]", self.text)):
            return True
        before = self.tokens[position - 1] if position else None
        if before is not None and before.text == "." and before.end == token.start and letter.islower():
            return True
        if not is_vowel:
            return False
        if following >= len(self.tokens) or not re.match(rf"{WORD_CHARACTER}", after):
            # "A (relatively) small share": what follows in brackets must be the end.
            if after == "(":
                rest = self.text[self.tokens[following].start :]
                return not re.fullmatch(r"\([^()]*\)\W*", rest.split("\n")[0])
            return after in ("“", "„", "«") or (after == '"' and not self._opened(position))
        if self.tokens[following].letter is not None and not self._class(following) & W.AND:
            return True
        classes = self._class(following)
        return not (
            classes & (W.LINK | W.NOT | W.BECAUSE | W.AND | W.BUT)
            or (classes & W.MATCH and letter.isupper())
            or (
                folded_word(after) in ("best", "most", "only", "therefore")
                and self._class(following + 1) & (W.MATCH | W.LINK)
            )
            or classes & W.CLOSE
            or (self._opened(position) and after in _QUOTES)
        ) or (classes & W.BECAUSE == W.BECAUSE and folded_word(after) in ("given", "due", "which", "for"))

    def _opened(self, position: int) -> bool:
        return position > 0 and self.tokens[position - 1].text in _OPENING

    def _class(self, position: int) -> WordClass:
        return self.tokens[position].classes if 0 <= position < len(self.tokens) else W(0)

    def _text(self, position: int) -> str:
        return self.tokens[position].text if 0 <= position < len(self.tokens) else ""

    def _skip(self, position: int, marks: frozenset[str]) -> int:
        while position < len(self.tokens) and self.tokens[position].text in marks:
            position += 1
        return position

    # Statements

    def _statement(self, mention: Mention) -> StatedLetter | None:
        """Return what is stated by a mention, or None; note a letter that is rejected."""
        before, start = self._before(mention.first)
        after, negated = self._after(mention.last)
        closed = self._closed(mention)
        clause = self._clause(start)
        letter = mention.letters[0] if len(mention.letters) == 1 else None
        run = [folded_word(token.text) for token in self.tokens[start : mention.first]]
        if any(pair in _PLURALS for pair in pairwise(run)):
            letter = None
        if self._heads_section(mention) or self._heads_part(mention):
            return None
        excluded = bool(clause & W.EXCLUDE) or bool(before & W.EXCLUDE)
        corrects = bool(before & W.BUT) and closed and any(position < mention.first for _, position in self.rejected)
        if not corrects and ((clause | before) & (W.NOT | W.BAD) or excluded or negated):
            for rejected in mention.letters:
                self.rejected.append((rejected, mention.first))
            return None
        if (clause | before) & (W.IF | W.DOUBT) or self._is_question(mention):
            return None
        explicit = closed and (
            bool(before & W.NOUN)
            or bool(before & W.CHOOSE)
            or bool(before & W.GOOD and before & (W.LINK | W.OPTION))
            or bool(before & W.OPTION and before & W.LINK)
            or bool(before & (W.IT | W.MATCH) and before & (W.LINK | W.MATCH))
            or bool(before & W.SO)
            or corrects
            or self._leads(mention)
        )
        called_correct = (
            bool(after & (W.GOOD | W.NOUN) and after & W.LINK)
            or bool(after & W.MATCH)
            or self._alone(mention)
            or self._praised(mention)
        )
        if not (explicit or called_correct) or (self._labels(mention) and self._begins_list(mention)):
            return None
        return StatedLetter(letter, explicit, mention.first, mention.last)

    def _praised(self, mention: Mention) -> bool:
        """Return whether a verb after a letter says that the option fits best ("C best describes")."""
        adverb = self._skip(mention.last + 1, _QUOTES)
        if self._class(adverb) & W.LINK:
            following = [folded_word(self._text(adverb + offset)) for offset in (1, 2)]
            return following in (["the", "most"], ["the", "best"])
        verb = self._text(adverb + 1)
        return (
            folded_word(self._text(adverb)) in ("best", "correctly", "accurately")
            and verb.endswith("s")
            and len(verb) > 3
        )

    def _before(self, position: int) -> tuple[WordClass, int]:
        """Return the classes of the words of a statement before a letter, and where these words begin."""
        classes = W(0)
        run = W.NOUN | W.OPTION | W.GOOD | W.LINK | W.IT | W.CHOOSE | W.MATCH | W.SO | W.FILL
        index = position - 1
        while index >= 0 and index > position - MAX_RUN:
            token = self.tokens[index]
            if token.text == "\n":
                previous = index
                while previous >= 0 and (self._text(previous) == "\n" or self._text(previous) in _QUOTES):
                    previous -= 1
                if classes & (W.NOUN | W.GOOD | W.CHOOSE) or not (
                    self._text(previous) in (":", "=") or self._class(previous) & (W.LINK | W.NOUN | W.GOOD)
                ):
                    break
                # A heading, as "Answer" or "Final answer:" is; a sentence before the letter is none.
                index = previous
                continue
            if token.letter is not None and not self._is_word(index):
                break
            if token.text == ",":
                if not self._class(index - 1) & (W.SO | W.LEAD):
                    break
            elif self._answers_no(index):
                break
            elif token.classes & (W.NOT | W.BUT | W.BAD):
                classes |= token.classes & (W.NOT | W.BUT | W.BAD)
                break
            elif token.classes & run:
                classes |= token.classes
            elif folded_word(token.text) in ("each", "every", "any"):
                return classes & ~W.OPTION, index + 1
            elif token.letter is not None:
                pass  # an article
            elif not (token.text in _OPENING | _QUOTES | {"-", "–", "—", "~", "#", "|"} or self._is_symbol(token)):
                break
            index -= 1
        return classes, index + 1

    def _after(self, position: int) -> tuple[WordClass, bool]:
        """Return the classes of the words of a statement after a letter, and whether they negate it."""
        classes = W(0)
        run = W.NOUN | W.OPTION | W.GOOD | W.LINK | W.FILL | W.MATCH
        index = self._skip(position + 1, _QUOTES)
        limit = index + MAX_RUN // 2
        while index < min(limit, len(self.tokens)):
            token = self.tokens[index]
            if token.text in (":", "=", "=>", "->", "→", "\n") or token.letter is not None:
                break
            if token.classes & (W.NOT | W.BAD):
                return W(0), True
            if not (token.classes & run or token.text in (_OPENING | _QUOTES) - {"("}):
                if index == self._skip(position + 1, _QUOTES) and token.classes & W.OBJECT:
                    return W(0), True
                break
            # "C is correct", not "C correct is".
            is_open = classes & (W.LINK | W.OPTION) or self._ends_clause(index)
            classes |= token.classes if is_open else token.classes & ~(W.GOOD | W.NOUN)
            index += 1
        return classes, False

    def _ends_clause(self, position: int) -> bool:
        """Return whether an adjective and its verb end a clause, as in German "dass D richtig ist"."""
        is_verb = self._class(position) & W.GOOD and self._class(position + 1) & W.LINK
        return bool(is_verb) and self._text(position + 2) in ("", "\n", *_MARKS)

    def _closed(self, mention: Mention) -> bool:
        """Return whether a letter is followed by what may follow an answer, and by no other word."""
        position = mention.last + 1
        following = self._skip(position, _QUOTES)
        if following >= len(self.tokens):
            return True
        token = self.tokens[following]
        if following > position and token.text not in ("\n", *_MARKS) and not self._bracketed(mention):
            return bool(token.classes & (W.BECAUSE | W.AND | W.BUT)) or token.text in "(-–—" or following > position
        if token.text in ("\n", "(", "?", "-", "–", "—", "%", *_MARKS) or self._is_symbol(token):
            return not (token.text in "-–" and token.end < len(self.text) and self.text[token.end].isalnum())
        if self._bracketed(mention):
            is_verb = token.classes & W.LINK and not token.classes & W.CLOSE
            return not is_verb or bool(self._after(mention.last)[0] & W.GOOD)
        if token.classes & (W.CLOSE | W.BECAUSE | W.AND | W.BUT | W.NOT):
            return True
        after, _ = self._after(mention.last)
        return bool(after & (W.GOOD | W.NOUN) and after & (W.LINK | W.OPTION))

    def _bracketed(self, mention: Mention) -> bool:
        return self._text(mention.last + 1) in (")", "]", "}", "】", "」")

    def _clause(self, start: int) -> WordClass:
        """Return the word classes before a statement in its sentence that change its meaning."""
        classes = W(0)
        same_clause = True
        for index in range(start - 1, max(-1, start - 40), -1):
            token = self.tokens[index]
            if (
                token.text in _SENTENCE_ENDS
                or token.classes & W.BUT
                or self._answers_no(index)
                or (token.classes & W.SO and token.text.isalpha())
            ):
                break
            if token.text in (",", ":", "，") or token.letter is not None:
                goes_on = token.letter is not None or folded_word(self._text(index + 1)) == "then"
                same_clause = same_clause and goes_on
                if token.text == ":":
                    same_clause = not classes
            classes |= token.classes & (W.DOUBT if not same_clause else W.DOUBT | W.IF | W.NOT | W.BAD | W.EXCLUDE)
        return classes

    def _answers_no(self, position: int) -> bool:
        """Return whether a word is a "No" that answers a question and negates nothing after it."""
        begins = position == 0 or self._text(position - 1) in _SENTENCE_ENDS
        return (
            begins
            and folded_word(self._text(position)) in ("no", "nein", "non")
            and self._text(position + 1) in ",:-–—"
        )

    def _is_question(self, mention: Mention) -> bool:
        """Return whether a letter is asked about; the last word of an answer ("B?") states it all the same."""
        following = self._skip(mention.last + 1, _QUOTES)
        limit = min(following + 12, len(self.tokens))
        while following < limit and self.tokens[following].text not in _SENTENCE_ENDS:
            following += 1
        if self._text(following) != "?":
            return False
        first = mention.first
        while first > 0 and self.tokens[first - 1].text not in _SENTENCE_ENDS:
            first -= 1
        asks = self._class(first) & W.LINK and self.tokens[first].letter is None
        return bool(asks) or any(self._is_content(token) for token in self.tokens[following + 1 :])

    @staticmethod
    def _is_content(token: Token) -> bool:
        return token.text[:1].isalnum()

    @staticmethod
    def _is_symbol(token: Token) -> bool:
        return len(token.text) == 1 and unicodedata.category(token.text) in ("So", "Sk", "Sm")

    def _alone(self, mention: Mention) -> bool:
        """Return whether the letter is all of the last line."""
        first, last = mention.first, mention.last
        while first > 0 and not self._is_content(self.tokens[first - 1]) and self._text(first - 1) != "\n":
            first -= 1
        while last + 1 < len(self.tokens) and not self._is_content(self.tokens[last + 1]):
            last += 1
        is_long = len(self.tokens) > MAX_WORDS_AROUND_LABEL and self._text(mention.first).islower()
        is_last = last + 1 == len(self.tokens) and self._text(first - 1) in ("", "\n")
        return is_last and (not is_long or self._bracketed(mention))

    def _alone_last(self) -> bool:
        return bool(self.mentions) and self._alone(self.mentions[-1])

    def _leads(self, mention: Mention) -> bool:
        """Return whether an answer begins with a letter, and is no list of the options."""
        opening = self.tokens[: mention.first]
        if any(self._is_content(token) and not token.classes & (W.LEAD | W.OPTION | W.SO) for token in opening):
            return False
        if any(token.text == "?" for token in opening):
            return False
        line = self.text[self.tokens[mention.first].start :].split("\n")[0]
        if self._text(mention.last + 1) in (")", ".") and len(line.split()) > MAX_WORDS_AROUND_LABEL:
            # Rather part (a) of a solution, unless it is the option with its text.
            return len(mention.letters) == 1 and self.contradicted(mention.letters[0], self.texts) is False
        if self.texts and len(mention.letters) == 1 and self.contradicted(mention.letters[0], self.texts) is False:
            return True
        return not self._begins_list(mention) and not self._repeats(mention)

    def _begins_list(self, mention: Mention) -> bool:
        """Return whether a letter is the first label of a list of options."""
        line_end = self._text(self._skip(mention.last + 1, _QUOTES)) in ("\n", "")
        for other in self.mentions:
            if other.first <= mention.last or not self._labels(other):
                continue
            if len(mention.letters) > 1:
                return False
            next_line = self.tokens[mention.last : other.first]
            if sum(token.text == "\n" for token in next_line) == 1 and len(next_line) > MIN_LINE and not line_end:
                return True
            begins_list = mention.letters[0] == 0 or other.letters[0] == mention.letters[0] + 1
            explained = any(
                token.classes & (W.BAD | W.BECAUSE)
                or folded_word(token.text) in ("explanation", "reason", "reasoning", "why")
                for token in self.tokens[mention.last : other.first]
            )
            if begins_list and not (explained or line_end):
                return True
        return False

    def _heads_section(self, mention: Mention) -> bool:
        """Return whether "Option A:" begins a line within a longer answer."""
        option = mention.first - 1
        while option >= 0 and self._text(option) in _OPENING:
            option -= 1
        heading = self._class(option) & W.OPTION and self._text(self._skip(mention.last + 1, _QUOTES)) == ":"
        return bool(heading) and option > 0 and self._text(option - 1) == "\n"

    def _heads_part(self, mention: Mention) -> bool:
        """Return whether a small letter heads a part of a long solution ("a) Lap winding")."""
        begins_line = self._text(mention.first - 1) == "\n" and self._text(mention.last + 1) == ")"
        is_long = len(self.tokens) > MAX_WORDS_AROUND_LABEL and self._text(mention.first).islower()
        return begins_line and is_long and self._text(mention.last + 2) not in ("", "\n")

    def _labels(self, mention: Mention) -> bool:
        """Return whether a letter is a label at the beginning of a line or clause."""
        before = mention.first - 1
        while before >= 0 and self._text(before) in _OPENING | {"-", "–"}:
            before -= 1
        after = self._text(mention.last + 1)
        return (before < 0 or self._text(before) in {"\n", ".", ";", ",", "!"}) and after in (")", ".", ":", "]", "-")

    def _repeats(self, mention: Mention) -> bool:
        """Return whether a bare letter is repeated in its line, as degenerate answers do ("B B B")."""
        following = self._skip(mention.last + 1, _QUOTES)
        return following < len(self.tokens) and self.tokens[following].letter is not None

    def _unsaid(self, rest: Sequence[Token]) -> bool:
        """Return whether what follows a statement denies it, as "A? No." and "A, but this is not right" do."""
        words = [token for token in rest if self._is_content(token)]
        if len(words) == 1:
            return bool(words[0].classes & W.NOT)
        objected = False
        for token in rest:
            if token.text in _SENTENCE_ENDS or (objected and token.letter is not None):
                break
            if objected and token.classes & (W.NOT | W.BAD):
                return True
            objected = objected or bool(token.classes & W.BUT)
        return False

    def _brackets_label(self, mention: Mention) -> bool:
        """Return whether a letter is written as a label, "(c)" or "c)", that names no panel, figure or the like."""
        before = self._text(mention.first - 1)
        if self._text(mention.last + 1) != ")" or before not in ("(", "", "\n", ",", ":", ";", "."):
            return False
        if before == "(":
            named = self._class(mention.first - 2) & W.LABELLED
            return not named and self._text(mention.last + 2) in ("", "\n", *_MARKS)
        return True

    def _only_label(self) -> int | None:
        """Return the only letter written as a label, if nothing in the answer is rejected or doubted."""
        unclear = W.NOT | W.BAD | W.EXCLUDE | W.DOUBT | W.IF | W.RETRACT
        words = sum(self._is_content(token) for token in self.tokens)
        if words > MAX_WORDS_AROUND_LABEL or any(token.classes & unclear for token in self.tokens):
            return None
        letters: set[int] = set()
        for mention in self.mentions:
            bracketed = self._brackets_label(mention)
            named = self._class(mention.first - 1) & W.OPTION and self._closed(mention)
            if bracketed or named:
                letters.update(mention.letters)
        unlabelled_letters = {letter for mention in self.mentions for letter in mention.letters} - letters
        return letters.pop() if len(letters) == 1 and not unlabelled_letters else None
