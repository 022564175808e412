"""Reading which option a free answer chooses.

An answer is normalised (characters, markup, special tokens), split into words of some classes (:data:`WORDS`, in about
thirty languages), and each letter of an option gets a role from the words around it: stated as the answer, rejected, or
only mentioned. The last statement counts. An answer that leaves several letters open, takes its statement back or
contradicts itself chooses nothing: an unread answer can be asked about, a wrong letter is never noticed.
"""

import ast
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Flag, auto
from functools import cache
from typing import Any, NamedTuple

MAX_RUN = 16
"""Maximum number of words between a letter and the word that makes it the answer."""
MAX_NESTING = 3
"""Maximum depth of answers within answers (a box in a tag in a JSON text)."""


class WordClass(Flag):
    """Function of a word around the letter of an option."""

    NOUN = auto()
    """An answer or solution."""
    OPTION = auto()
    """An option, choice or letter."""
    GOOD = auto()
    """Correct, right, best."""
    BAD = auto()
    """Wrong, excluded."""
    LINK = auto()
    """A form of "to be" and what has its place, also the colon."""
    IT = auto()
    """A pronoun that stands for the answer."""
    CHOOSE = auto()
    """A verb of choosing in the first person."""
    MATCH = auto()
    """A verb that says that an option fits or remains."""
    SO = auto()
    """Introduces a conclusion."""
    FILL = auto()
    """May stand within a statement without changing it."""
    LEAD = auto()
    """May open an answer before its letter."""
    NOT = auto()
    EXCLUDE = auto()
    """A verb of rejecting."""
    AND = auto()
    """Joins several letters."""
    BUT = auto()
    """Begins a clause that corrects the one before."""
    IF = auto()
    """Makes its clause hypothetical."""
    DOUBT = auto()
    """Makes its sentence somebody else's opinion, a possibility or the past."""
    BECAUSE = auto()
    """May follow a stated letter."""
    RETRACT = auto()
    """Takes back what was stated before."""


W = WordClass
WORDS: dict[WordClass, str] = {
    W.NOUN: """answer ans solution response conclusion key antwort antworten lösung réponse solution respuesta solución
        resposta solução gabarito risposta soluzione antwoord oplossing svar svaret rätt-svar løsning vastaus odpowiedź
        odpověď răspuns răspunsul válasz megoldás cevap yanıt ответ ответом відповідь απάντηση الإجابة الاجابة الجواب إجابة
        جواب תשובה התשובה پاسخ جواب उत्तर जवाब উত্তর jawaban jawabannya đáp trả-lời
        答案 正解 答え 答 解答 回答 解 정답 답 답은 คำตอบ""",
    W.OPTION: """option choice letter alternative statement text item selection opción letra inciso literal alternativa
        opção opcao escolha lettera opzione scelta auswahl wahl buchstabe auswahlmöglichkeit choix lettre proposition
        optie keuze alternativ alternativet vaihtoehto opcja wariant možnost varianta litera opció lehetőség seçenek şık
        şıkkı şıkkıdır seçeneği вариант варіант буква επιλογή الخيار خيار الحرف האפשרות אפשרות גזינה گزینه विकल्प বিকল্প
        pilihan opsi phương lựa-chọn 选项 選項 選択肢 项 項 보기 선택지 번 ตัวเลือก ข้อ""",
    W.GOOD: """correct right best better true accurate appropriate valid suitable proper richtig richtige richtigen korrekt
        korrekte beste zutreffend wahr correcte bonne juste exacte vraie correcta correcto verdadera mejor correta correto
        certa certo verdadeira melhor corretta corretto esatta giusta giusto migliore juist juiste goede correcte rätt
        rätta riktig riktige riktigt rigtig rigtige korrekta oikea oikein poprawna prawidłowa právilná správná správně
        corect corectă helyes doğru правильный правильная правильно верный верно верен правильна правильний вірна σωστή
        σωστό الصحيحة الصحيح صحيحة صحيح הנכונה נכונה הנכון נכון صحیح درست सही সঠিক benar tepat đúng
        正确 正確 正しい 正 最佳 맞습니다 옳습니다 맞는 옳은 ถูกต้อง ถูก""",
    W.BAD: """wrong incorrect false inaccurate implausible out eliminated excluded ruled untrue unlikely falsch unzutreffend
        fausse faux incorrecte incorrecta incorrecto falsa falso errada errado incorreta sbagliata sbagliato errata fout
        onjuist fel galt forkert feil väärä błędna niepoprawna nesprávná greșit gresit hibás helytelen yanlış неверный
        неправильный неверно неправильно хибна λάθος خاطئة خطأ خاطئ שגויה שגוי غلط نادرست गलत ভুল salah sai
        错误 錯誤 错 錯 間違い 誤り 誤 틀렸습니다 틀린 ผิด""",
    W.LINK: """is was are be being been it's that's seems appears would should must will has have 's ist lautet wäre sei heißt est
        serait es sería seria é è sarebbe são sono zou zijn är er on to jest brzmi je este e jest це это είναι هي هو
        היא הוא است हैं है হল হলো adalah ialah yaitu là คือ เป็น 是 为 為 应该是 應該是 应为 應為 は が 은 는 이 가
        : = => → ⇒ -> ➡""",
    W.IT: "it this that they it's that's es das ça c'est cela eso isso isto ciò het det dat",
    W.CHOOSE: """choose chose pick picked select selected say go going with opt vote guess think believe wähle nehme entscheide choisis
        opte sélectionne elijo escojo elegiría selecciono escolho seleciono scelgo seleziono kies väljer velger vælger
        valitsen wybieram volím aleg választom seçiyorum выбираю обираю επιλέγω أختار בוחר memilih pilih chọn
        选 选择 選 選択 選びます 選擇 选擇 선택 เลือก""",
    W.MATCH: """leaves leaving remains matches match fits describes corresponds represents captures reflects states
        consistent supported""",
    W.SO: """therefore thus hence so consequently accordingly => → ⇒ -> ➡ ∴ daher also somit folglich donc ainsi luego
        entonces portanto então logo quindi dunque perciò dus därför altså derfor siksi więc zatem tedy deci tehát
        dolayısıyla поэтому следовательно отже άρα إذن لذلك לכן بنابراین इसलिए অতএব jadi vậy
        因此 所以 故 因而 したがって よって 따라서 ดังนั้น""",
    W.FILL: """the an my our your final most very likely probably clearly definitely certainly obviously surely simply just
        only single here there one question questions of for among given following from option options choices answers both
        all us me i'd i'll i we he she am can do does these those above list passage response
        die der das den dem deine meine mein richtigste endgültige ich zur diese dieser frage le la les l' un une ma mon
        finale l'option l'alternative à cette question de el lo los las una mi por tanto lo-tanto o os as um uma minha a il
        lo gli mia finale al alla het de mijn dit op deze vraag det den mitt min mit slutliga endelige to moja ostateczna
        az a końcowa final doğrusu bu sorunun мой на этот вопрос окончательный это η το الصحيح هذا ה של את یک सबसे सही
        yang paling câu trả lời án phương lựa ที่ ของ 最终 最終 最 的 の に を と 我 我的 我们 我認為 我认为 都 应该 應該
        は が って 은 는 이 가 을 를 다음""",
    W.LEAD: """sure okay ok certainly yes well definitely probably likely alright great course absolutely here final
        klar gut bien sûr oui claro sí sim certo ja jah да конечно 好的 好 はい 네""",
    W.NOT: """not n't never no none neither nor cannot without except isn't wasn't can't don't doesn't won't aren't nicht
        kein keine keiner weder pas ni aucune aucun ninguna ninguno não nem nenhuma non né nessuna niet geen inte ingen
        ikke ei nie není ne nu nem değil не ни ні δεν όχι ليس ليست لا לא אין نیست نه नहीं নয় bukan tidak không
        不 不是 并非 並非 非 没有 沒有 没 沒 ではない ではありません じゃない でない 아닙니다 아니 아닌 ไม่ ไม่ใช่""",
    W.EXCLUDE: """exclude rule eliminate reject discard dismiss excludes rules eliminates rejects ruling eliminating
        excluding rejecting ausschließen éliminer exclure descartar descarto eliminar elimino excluir escludere
        排除 除外 제외""",
    W.AND: """and or nor vs versus und oder et ou y o u e ed en of och eller og ja tai i lub albo nebo și sau és vagy ve veya
        и или та або και ή و أو או یا और या ও বা dan atau và hoặc 和 或 与 與 及 と か や 과 와 또는 และ หรือ
        / & + , 、 ، ; ~""",
    W.BUT: """but however instead rather aber sondern jedoch mais pero sino mas ma però bensì maar men utan vaan ale lecz
        dar hanem ama а но але αλλά بل لكن אלא אבל بلکه लेकिन tetapi melainkan nhưng mà 但 但是 而是 しかし 하지만 แต่""",
    W.IF: """if unless suppose supposing assuming whether were wenn falls si sauf se als indien om hvis jos jeśli když dacă ha
        eğer если якщо αν إذا אם اگر यदि jika nếu 如果 若 もし 만약 ถ้า""",
    W.DOUBT: """could might may perhaps maybe possibly tempting tempted mistake mistakenly wrongly many some people students
        often common commonly distractor trap thought considered initially first guess-that könnte vielleicht viele manche
        dachte zuerst pourrait peut-être certains beaucoup podría quizás tal-vez muchos poderia talvez muitos potrebbe
        forse molti misschien kanske kanskje może возможно может 可能 也许 也許 かも かもしれません 아마""",
    W.BECAUSE: """because since as for which due given weil da denn parce car puisque porque pues ya pois perché poiché omdat
        want eftersom fordi ponieważ protože deoarece mert çünkü потому так тому γιατί لأن כי زیرا क्योंकि কারণ karena vì
        因为 因為 ので から 왜냐하면 because,""",
    W.RETRACT: """wait reconsider correction scratch oops mistake error moment moment, korrektur attends espera 等等 等一下
        待って 잠깐""",
}
_CLOSING_WORDS = frozenset(
    "です である だ 입니다 이다 예요 이에요 है हैं है। است şıkkıdır şıkkı dır ครับ ค่ะ यह च bulur 的 吧 呢 項 项 번".split()
)
"""Words that end a sentence after its letter, for example ``D です``."""
_UNSPACED = "\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD_CHARACTER = rf"(?:(?![{_UNSPACED}\u0964\u0965])[\w\u0900-\u0dff\u064b-\u065f\u0591-\u05c7])"
_OPENING = frozenset("\"'“‘«„([{<‹「『〈《【*_`$‚•▪●")
_QUOTES = frozenset("\"'”’»)]}>›」』〉》】*_`$“‘")
_MARKS = frozenset(".,:;!…。،।；")
_SENTENCE_ENDS = frozenset(".!?。！？।;\n")
_SENTENCE_MARKS = re.compile(r"[.!?。！？।]")
_LATIN = {
    **dict(zip("АВСЕНІЈКМОРЅТХУасеіјорѕхуԁһ", "ABCEHIJKMOPSTXYaceijopsxydh", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True)),
    **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊ", "abcdefghij", strict=True)),
}
"""Cyrillic, Greek and small capital letters that look like a Latin one."""
_SQUARED = {code: chr(65 + (code - base)) for base in (0x1F130, 0x1F150, 0x1F170) for code in range(base, base + 26)}
_SPECIAL = re.compile(
    r"<\|[^<>|\n]{1,40}\|>|</?s>|<(?:bos|eos|pad|unk|(?:start|end)_of_turn)>|\[/?INST\]|\[(?:BOS|EOS)\]", re.IGNORECASE
)
_ROLES = frozenset(("assistant", "model", "final", "ai", "bot", "assistantfinal"))
_OTHER_ROLES = frozenset(("user", "system", "human", "tool"))
_ROLE = re.compile(r"\A\s*(?:assistant|model|ai|bot)\s*[:\n]", re.IGNORECASE)
_NEXT_QUESTION = re.compile(
    r"\n\W{0,6}(?:question|q|user|human|frage|pregunta|pergunta|domanda|问题|問題|질문)\s*\d*\W{0,3}[:：]", re.IGNORECASE
)
_TAGS = re.compile(r"</?\s*(?:final[_ ]?)?(?:answer|final|choice|option|result|output)\s*>", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_LATEX = re.compile(r"\\(?:text|math)\w*\s*(?=\{)|\\[()\[\],;! ]|\\(?=[*_$])")
_EMPHASISED = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|`)[\s(\[]*([^\W\d_])[)\].:]*\1(?!\w)")
_ABBREVIATED = re.compile(r"\bans\.", re.IGNORECASE)
_SECOND_THOUGHT = re.compile(r"\bon second thoughts?\b", re.IGNORECASE)
_ANSWER_KEYS = re.compile(r"(?:final|correct|chosen|selected|my|the|best)?[_\s-]*(?:answer|choice|option|letter|response)s?\Z", re.IGNORECASE)
_VOWELS = frozenset("aeiouy")
"""Letters that are words of their own in some language ("a", Italian "e" and "i", Portuguese "o", Spanish "y")."""


class Token(NamedTuple):
    """A word, a mark or a line break, with its classes; letters of options have their index."""

    text: str
    classes: WordClass
    letter: int | None
    start: int
    end: int


class Mention(NamedTuple):
    """Letters of options that stand together, by the positions of their first and last token."""

    first: int
    last: int
    letters: tuple[int, ...]


class Statement(NamedTuple):
    """A letter stated as the answer; None stands for several at once."""

    letter: int | None
    explicit: bool
    """False if an option is only called correct ("C is correct")."""
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
    text = _normalise(text)
    found, value = _json_answer(text)
    if found:
        return _read(value, options, texts, depth - 1) if isinstance(value, str) and depth else None
    text = _without_boxes(text, options, depth)
    reader = _Reader(text, options)
    chosen = reader.choice()
    if texts:
        if chosen is not None and reader.contradicted(chosen, texts):
            return None
        if chosen is None and not reader.mentions:
            return _repeated(text, texts)
    return chosen


def _normalise(text: str) -> str:
    """Return an answer's text without thoughts, special tokens, invisible characters and markup."""
    text = text.rpartition("</think>")[2]
    if text.lstrip().startswith("<think>"):
        return ""
    text = unicodedata.normalize("NFKC", text).translate(_SQUARED)
    text = "".join(
        character
        for character in text
        if unicodedata.category(character) != "Cf" and not 0xFE00 <= ord(character) <= 0xFE0F
    )
    for segment in _SPECIAL.split(text):
        bare = segment.strip().casefold()
        if bare in _OTHER_ROLES:
            return ""
        if bare and bare not in _ROLES:
            text = segment
            break
    for role in _OTHER_ROLES:
        text = re.split(rf"\n{role}\n", text)[0]
    text = _ROLE.sub("", text)
    if (following := _NEXT_QUESTION.search(text)) and text[: following.start()].strip():
        text = text[: following.start()]
    text = _SECOND_THOUGHT.sub("wait", _ABBREVIATED.sub("ans:", text))
    text = _TAGS.sub(lambda tag: "\n" if tag[0][1] == "/" else "\nanswer: ", text)
    text = _LATEX.sub(" ", text)
    return _EMPHASISED.sub(r" (\2) ", text).replace("**", "")


def _json_answer(text: str) -> tuple[bool, Any]:
    """Return whether a text has a JSON object with an answer, and the answer of the last such object."""
    found, value = False, None
    position = 0
    for _ in range(20):
        position = text.find("{", position)
        if position < 0:
            break
        data: Any = None
        end = position + 1
        with suppress(ValueError, RecursionError):
            data, end = json.JSONDecoder(strict=False).raw_decode(text, position)
        if data is None and 0 < (closing := text.find("}", position)) < position + 2000:
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
                data, end = ast.literal_eval(text[position : closing + 1]), closing + 1
        if isinstance(data, dict):
            for key in data:
                if isinstance(key, str) and _ANSWER_KEYS.fullmatch(key.strip()):
                    found, value = True, data[key]
        position = max(end, position + 1)
    return found, value


def _without_boxes(text: str, options: int, depth: int) -> str:
    r"""Replace each ``\boxed{...}`` by the statement that it makes, or by a word if it holds something else."""
    parts = []
    position = 0
    for box in _BOX.finditer(text):
        if box.start() < position:
            continue
        level, end = 1, box.end()
        while end < len(text) and level:
            level += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        content = text[box.end() : end - (level == 0)]
        letter = _read(content, options, (), depth - 1) if depth and len(content) < 300 else None
        several = letter is None and len(re.findall(r"(?<!\w)[A-Za-z](?!\w)", content)) > 1 and "\\" not in content
        stated = "formula" if letter is None else f"answer: {chr(97 + letter)}"
        parts += [text[position : box.start()], "\n", "answer: a or b" if several else stated, "\n"]
        position = end
    return "".join([*parts, text[position:]])


def _repeated(text: str, texts: Sequence[str]) -> int | None:
    """Return the index of the only option whose text is the whole answer."""
    bare = _bare(re.sub(r"\A(?:\W*the)?(?:\W*(?:correct|final|best))?\W*answer\s*(?:is|:)\W*", "", text, flags=re.I))
    matching = [index for index, option in enumerate(texts) if _bare(unicodedata.normalize("NFKC", option)) == bare]
    if len(matching) != 1:
        matching = [index for index in matching if _bare(texts[index], fold=False) == _bare(text, fold=False)]
    return matching[0] if len(matching) == 1 else None


def _bare(text: str, fold: bool = True) -> str:
    words = " ".join(re.sub(r"[*_`]", "", text).split()).strip(" \t.\"'“”‘’«»()[]")
    return words.casefold() if fold else words


@cache
def _lexicon() -> tuple[dict[str, WordClass], re.Pattern[str]]:
    """Return the classes of each word, and a pattern that splits a text into words and marks."""
    classes: dict[str, WordClass] = {}
    for word_class, words in WORDS.items():
        for word in words.split():
            folded = _folded(word)
            classes[folded] = classes.get(folded, W(0)) | word_class
    unspaced = sorted((word for word in {*classes, *_CLOSING_WORDS} if re.match(f"[{_UNSPACED}]", word)), key=len)
    phrases = "|".join(map(re.escape, reversed(unspaced)))
    pattern = rf"{phrases}|[{_UNSPACED}]|{_WORD_CHARACTER}+(?:['’–-]{_WORD_CHARACTER}+)*|=>|->|\n|[^\s\w]"
    return classes, re.compile(pattern)


@cache
def _folded(word: str) -> str:
    word = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    if len(word) == 1 or re.match(f"[{_UNSPACED}]", word):
        return word
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", word)))


class _Reader:
    """One normalised answer with its words, its letters, and what is stated of them."""

    def __init__(self, text: str, options: int) -> None:
        self.text = text
        self.tokens = tuple(self._tokenise(text, options))
        self.mentions = tuple(self._group())
        self.rejected: list[tuple[int, int]] = []
        """Letters with the positions of their tokens."""

    def choice(self) -> int | None:
        """Return the letter of the last statement, unless it is taken back or contradicted."""
        statements = [statement for mention in self.mentions if (statement := self._statement(mention))]
        if not statements:
            return self._only_label()
        last = statements[-1]
        explicit = [statement for statement in statements if statement.explicit]
        if not last.explicit and explicit and explicit[-1].letter != last.letter:
            between = self.tokens[explicit[-1].end : last.position]
            if not any(token.classes & (W.NOT | W.RETRACT | W.BUT) or token.text == "?" for token in between):
                return None
        if last.letter is None:
            return None
        if any(letter == last.letter and position > last.position for letter, position in self.rejected):
            return None
        rest = self.tokens[last.end + 1 :]
        return None if any(token.classes & W.RETRACT for token in rest) or self._unsaid(rest) else last.letter

    def contradicted(self, letter: int, texts: Sequence[str]) -> bool:
        """Return whether the text of another option follows the letter's last mention as its wording."""
        for mention in reversed(self.mentions):
            if mention.letters == (letter,):
                following = _bare(self.text[self.tokens[mention.last].end :].lstrip(" \t)].:,-–—*\"'(").split("\n")[0])
                wordings = [_bare(unicodedata.normalize("NFKC", option)) for option in texts]
                begun = [
                    index
                    for index, wording in enumerate(wordings)
                    if wording and re.match(rf"{re.escape(wording)}(?!\w)", following)
                ]
                if begun:
                    longest = max(begun, key=lambda index: len(wordings[index]))
                    return wordings[longest] != wordings[letter]
        return False

    # Words and letters

    @staticmethod
    def _tokenise(text: str, options: int) -> Iterator[Token]:
        classes, pattern = _lexicon()
        for match in pattern.finditer(text):
            word = match[0]
            letter = None
            if len(word) == 1 and word.isalpha():
                latin = _LATIN.get(word, word).casefold()
                code = ord(latin) - 97
                before = text[match.start() - 1] if match.start() else ""
                if 0 <= code < options and before not in ("°", "º", "\\"):
                    letter = code
            known = classes.get(_folded(word), W(0))
            if "'" in word or "’" in word:
                known |= W.NOT if _folded(word).endswith("n't") or _folded(word).startswith("n'") else W(0)
                if not known and re.fullmatch(r"(?:it|that|here|what|answer|option|c|qu|d)'\w+", _folded(word)):
                    known = W.IT | W.LINK
            if _folded(word) == "also" and text[: match.start()].rstrip(" ")[-1:] not in ("", ".", "\n", "!", "?", ";"):
                known &= ~W.SO  # the English word, not the German one
            yield Token(word, known, letter, match.start(), match.end())

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
            elif token.classes & W.NOT or not (token.classes & W.OPTION or token.text in _OPENING | {"the"}):
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
            if successor.start == self.tokens[following].end and successor.text[:1].isalpha() and letter.islower():
                return True
            if is_single and letter.islower() and successor.text.islower() and self._text(following + 2) == ".":
                return True
        if after in ("'", "’") and glued and self._text(following + 2) != after and not self._opened(position):
            return True
        if letter == "I" and after == ",":
            return True
        before = self.tokens[position - 1] if position else None
        if before is not None and before.text == "." and before.end == token.start and letter.islower():
            return True
        if not is_vowel:
            return False
        if following >= len(self.tokens) or not re.match(rf"{_WORD_CHARACTER}", after):
            # "A (relatively) small share": what follows in brackets must be the end.
            if after == "(":
                rest = self.text[self.tokens[following].start :]
                return not re.fullmatch(r"\([^()]*\)\W*", rest.split("\n")[0])
            return after in ("“", "„", "«") or (after == '"' and not self._opened(position))
        if self.tokens[following].letter is not None and not self._class(following) & W.AND:
            return True
        classes = self._class(following)
        return not (
            classes & (W.LINK | W.NOT | W.BECAUSE | W.AND | W.BUT | W.GOOD | W.MATCH)
            or _folded(after) in _CLOSING_WORDS
            or (self._opened(position) and after in _QUOTES)
        ) or (classes & W.BECAUSE == W.BECAUSE and _folded(after) in ("given", "due", "which", "for"))

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

    def _statement(self, mention: Mention) -> Statement | None:
        """Return what is stated by a mention, or None; note a letter that is rejected."""
        before, start = self._before(mention.first)
        after, negated = self._after(mention.last)
        closed = self._closed(mention)
        clause = self._clause(start)
        letter = mention.letters[0] if len(mention.letters) == 1 else None
        excluded = bool(clause & W.EXCLUDE) or bool(before & W.EXCLUDE)
        corrects = bool(before & W.BUT) and closed and any(position < mention.first for _, position in self.rejected)
        if not corrects and ((clause | before) & (W.NOT | W.BAD) or excluded or negated):
            for rejected in mention.letters:
                self.rejected.append((rejected, mention.first))
            return None
        if (clause | before) & (W.IF | W.DOUBT) or self._asked(mention):
            return None
        single_line = self._alone(mention)
        explicit = closed and (
            bool(before & W.NOUN)
            or bool(before & W.CHOOSE)
            or bool(before & W.GOOD and before & (W.LINK | W.OPTION))
            or bool(before & W.OPTION and before & W.LINK)
            or bool(before & (W.IT | W.MATCH) and before & (W.LINK | W.MATCH))
            or bool(before & W.SO)
            or corrects
            or single_line
            or self._leads(mention)
        )
        called_correct = bool(after & (W.GOOD | W.NOUN) and after & W.LINK) or bool(after & W.MATCH)
        if not (explicit or called_correct):
            return None
        return Statement(letter, explicit, mention.first, mention.last)

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
            elif token.letter is not None and _LATIN.get(token.text, token.text).casefold() in _VOWELS:
                if not self._is_word(index):
                    break
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
                if index == self._skip(position + 1, _QUOTES) and _folded(token.text) in _REJECTING:
                    return W(0), True
                break
            classes |= token.classes
            index += 1
        if classes & W.GOOD and not classes & (W.LINK | W.MATCH):
            classes &= ~W.GOOD
        if classes & W.NOUN and classes & W.LINK and not classes & W.GOOD and not classes & W.FILL:
            # "C is answer" in languages without articles.
            return classes, False
        return classes, False

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
            return not token.classes & W.LINK or bool(self._after(mention.last)[0] & W.GOOD)
        if _folded(token.text) in _CLOSING_WORDS or token.classes & (W.BECAUSE | W.AND | W.BUT | W.NOT):
            return True
        after, _ = self._after(mention.last)
        return bool(after & (W.GOOD | W.NOUN) and after & (W.LINK | W.OPTION))

    def _bracketed(self, mention: Mention) -> bool:
        return self._text(mention.last + 1) in (")", "]", "}", "】", "」")

    def _clause(self, start: int) -> WordClass:
        """Return the classes that bear on a statement from the words of its sentence before it."""
        classes = W(0)
        same_clause = True
        for index in range(start - 1, max(-1, start - 40), -1):
            token = self.tokens[index]
            if token.text in _SENTENCE_ENDS or token.classes & W.BUT or self._answers_no(index) or (token.classes & W.SO and token.text.isalpha()):
                break
            if token.text in (",", ":", "，") or token.letter is not None:
                same_clause = same_clause and token.letter is not None
                if token.text == ":":
                    same_clause = not classes
            classes |= token.classes & (W.DOUBT if not same_clause else W.DOUBT | W.IF | W.NOT | W.BAD | W.EXCLUDE)
        return classes

    def _answers_no(self, position: int) -> bool:
        """Return whether a word is a "No" that answers a question and negates nothing after it."""
        begins = position == 0 or self._text(position - 1) in _SENTENCE_ENDS
        return begins and _folded(self._text(position)) in ("no", "nein", "non") and self._text(position + 1) in ",:-–—"

    def _asked(self, mention: Mention) -> bool:
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
        return last + 1 == len(self.tokens) and self._text(first - 1) in ("", "\n")

    def _leads(self, mention: Mention) -> bool:
        """Return whether an answer begins with a letter, and is no list of the options."""
        opening = self.tokens[: mention.first]
        if any(self._is_content(token) and not token.classes & (W.LEAD | W.OPTION | W.SO) for token in opening):
            return False
        if any(token.text in ("?",) for token in opening):
            return False
        line_end = self._text(self._skip(mention.last + 1, _QUOTES)) in ("\n", "")
        for other in self.mentions:
            if other.first <= mention.last or not self._labels(other):
                continue
            if len(mention.letters) > 1:
                return True
            begins_list = mention.letters[0] == 0 or other.letters[0] == mention.letters[0] + 1
            explained = any(
                token.classes & (W.BAD | W.BECAUSE) or _folded(token.text) in ("explanation", "reason", "reasoning", "why")
                for token in self.tokens[mention.last : other.first]
            )
            if begins_list and not (explained or line_end):
                return False
        return not self._repeats(mention)

    def _labels(self, mention: Mention) -> bool:
        """Return whether a letter stands before something as its label, at the beginning of a line or clause."""
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
        """Return whether what follows a statement begins with a denial, as "The answer is A? No." does."""
        words = [token for token in rest if self._is_content(token)]
        return len(words) == 1 and bool(words[0].classes & W.NOT)

    def _only_label(self) -> int | None:
        """Return the only letter written as a label, if nothing in the answer is rejected or doubted."""
        unclear = W.NOT | W.BAD | W.EXCLUDE | W.DOUBT | W.IF | W.RETRACT
        if any(token.classes & unclear for token in self.tokens):
            return None
        letters = set()
        for mention in self.mentions:
            bracketed = self._text(mention.last + 1) == ")" and (
                self._text(mention.first - 1) == "(" or self._text(mention.first - 1) in ("", "\n", ",", ":", ";", ".")
            )
            named = self._class(mention.first - 1) & W.OPTION and self._closed(mention)
            if bracketed or named:
                letters.update(mention.letters)
        others = {letter for mention in self.mentions for letter in mention.letters} - letters
        return letters.pop() if len(letters) == 1 and not others else None


_REJECTING = frozenset("ignores fails confuses contradicts cannot describes-weather doesn't isn't can't lacks misses".split())
