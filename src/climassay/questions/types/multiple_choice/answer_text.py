"""Normalisation of answers: characters, markup, LaTeX, JSON and special tokens."""

import ast
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from climassay.questions.thoughts import separate_thoughts

MAX_OBJECTS = 20
"""Maximum number of opening braces in an answer at which parsing of a JSON object is tried."""
MAX_DICTIONARY_LENGTH = 2000
"""Maximum number of characters of a Python dictionary in an answer."""
MAX_BOX_LENGTH = 300
"""Maximum number of characters in a LaTeX box that names an option."""
_SQUARED_LETTERS = {
    code: chr(65 + (code - first_code))
    for first_code in (0x1F130, 0x1F150, 0x1F170)
    for code in range(first_code, first_code + 26)
}
_SPECIAL_TOKEN = re.compile(
    r"<\|[^<>|\n]{1,40}\|>|<0x[0-9A-Fa-f]{2}>|</?s>|<(?:bos|eos|pad|unk|(?:start|end)_of_turn)>|\[/?INST\]|\[(?:BOS|EOS)\]",
    re.IGNORECASE,
)
_ROLES = frozenset(("assistant", "model", "final", "ai", "bot", "assistantfinal"))
_OTHER_ROLES = frozenset(("user", "system", "human", "tool"))
_ROLE = re.compile(r"\A\s*(?:(?:assistant|model|ai|bot)\s*[:\n]|a\s*:(?=\W*[a-z]\W*\Z))", re.IGNORECASE)
_NEXT_QUESTION = re.compile(
    r"\n\W{0,6}(?:question|q|user|human|frage|pregunta|pergunta|domanda|问题|問題|질문)\s*\d*\W{0,3}[:：]",
    re.IGNORECASE,
)
_TAGS = re.compile(r"</?\s*(?:final[_ ]?)?(?:answer|final|choice|option|result|output)\s*>", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_LATEX = re.compile(r"\\(?:rm|bf|it|sf|tt)\b|\\(?:text|math)\w*\s*(?=\{)|\\[()\[\],;! ]|\\(?=[*_$])")
_MATHS = re.compile(r"\$\$(.{1,2000}?)\$\$|\$([^$\n]{1,400})\$|\\\((.{1,400}?)\\\)|\\\[(.{1,2000}?)\\\]", re.DOTALL)
_MATHS_LETTER = re.compile(r"[\W_]*(?:\\(?:text|math)\w*\s*\{)?[\W_]*(?:option\s*)?([^\W\d_])[\W_]*", re.IGNORECASE)
_MATHS_SIGNS = re.compile(r"[\\=^_{}<>+*/≈≤≥]")
_EMPHASISED_LETTER = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|`)[\s(\[]*([^\W\d_])[)\].:]*\1(?!\w)")
_TURKISH_IS = re.compile(r"\b([A-Z])['’]d[ıiuü]r\b")
_ABBREVIATION = re.compile(r"\bans\.", re.IGNORECASE)
_RETRACTION = re.compile(
    r"\bon second thoughts?\b|\blet me (?:reconsider|re-?think|correct)\b|\bscratch that\b"
    r"|\bI(?: have)? made an? (?:mistake|error)\b|\bcorrection\s*:|\bMoment(?:,| mal)",
    re.IGNORECASE,
)
_OPERATOR_AFTER = re.compile(
    r"\s*(?:[°=+*×÷^≈≤≥<·±∧∨⊃≡→]|\\|\{|[-−/]\s*\d|/[A-Za-z]{2}|\(\w\s*,|(?<=\w)\(\w{1,2}\)|\(\s*[\d\w]\s*\)\s*=)"
)
_OPERATOR_BEFORE = re.compile(
    r"(?:[+*×÷^≈≤≥·±∧∨⊃≡~¬\\]|\w\s*[<−]|(?:\b\w|\))\s+-|[\w)]\s*/|\d\s*[-=]|\d[ \t]+|(?P<equals>\w+)\s*=)\s*\Z"
)
_NAMES_ANSWER = re.compile(r"(?:answer|ans|choice|option|letter|solution|key|correct)\Z", re.IGNORECASE)
_ANSWER_KEYS = re.compile(
    r"(?:final|correct|chosen|selected|my|the|best)?[_\s-]*(?:answer|choice|option|letter|response)(?:_letter)?s?\Z",
    re.IGNORECASE,
)
_LABELLED_LINE = re.compile(r"[\s>*_\-•(\[|]*(?:option\s+)?([A-Za-z])[)\].:|*_\s\-–—]+(.*)", re.IGNORECASE)
_CORRECTNESS_MARKS = r"[✓✔✅☑✗✘❌✖☒]|correct|incorrect|right|wrong|true|false"
_MARK_AT_END = re.compile(rf"(?:\A|[\s(\[:—–-])({_CORRECTNESS_MARKS})[\s)\].*_|]*\Z", re.IGNORECASE)
_MARK_AT_START = re.compile(rf"[\s(\[*_|]*({_CORRECTNESS_MARKS})(?:[\s)\].:,;*_|—–-]|\Z)", re.IGNORECASE)
_CORRECT = re.compile("[✓✔✅☑]|correct|right|true", re.IGNORECASE)


def normalise_answer(text: str) -> str:
    """Remove thoughts, special tokens, invisible characters and markup from an answer."""
    text = unicodedata.normalize("NFKC", separate_thoughts(text).answer).translate(_SQUARED_LETTERS)
    text = "".join(
        character
        for character in text
        if unicodedata.category(character) != "Cf" and not 0xFE00 <= ord(character) <= 0xFE0F
    )
    for segment in _SPECIAL_TOKEN.split(text):
        role = segment.strip().casefold()
        if role in _OTHER_ROLES:
            return ""
        if role and role not in _ROLES:
            text = segment
            break
    for role in _OTHER_ROLES:
        text = re.split(rf"\n{role}\n", text)[0]
    text = _TURKISH_IS.sub(r"\1 ", _ROLE.sub("", text.lstrip("\u2581\u0120 ")))
    if (next_question := _NEXT_QUESTION.search(text)) and text[: next_question.start()].strip():
        text = text[: next_question.start()]
    text = _RETRACTION.sub(" wait, ", _ABBREVIATION.sub("ans:", text))
    text = _TAGS.sub(lambda tag: "\n" if tag[0][1] == "/" else "\nanswer: ", text)
    text = _LATEX.sub(" ", _MATHS.sub(_replace_formula, text))
    return _EMPHASISED_LETTER.sub(r" (\2) ", text).replace("**", "")


def _replace_formula(maths: re.Match[str]) -> str:
    """Return the replacement of a LaTeX formula.

    A formula that consists of a single letter is replaced by this letter. A formula that contains a box, or no
    mathematical sign, is kept. All others are replaced by the word "formula".
    """
    content = next(filter(None, maths.groups()), "")
    if letter := _MATHS_LETTER.fullmatch(content):
        return f" {letter[1]} "
    return maths[0] if _BOX.search(content) or not _MATHS_SIGNS.search(content) else " formula "


def replace_json(text: str) -> str:
    """Replace each JSON object that has a field for the answer by a line ``answer: VALUE``."""
    parts = []
    position = start = 0
    for _ in range(MAX_OBJECTS):
        position = text.find("{", position)
        if position < 0:
            break
        data, end = _parse_object(text, position)
        answers = [data[key] for key in data if isinstance(key, str) and _ANSWER_KEYS.fullmatch(key.strip())]
        if answers:
            parts += [text[start:position], "\nanswer: ", _get_answer_text(answers[-1]), "\n"]
            start = end
        position = max(end, position + 1)
    return "".join([*parts, text[start:]])


def _get_answer_text(answer: Any) -> str:
    """Return an answer that is a text, or the only entry of a list or object; ``none`` for anything else."""
    if isinstance(answer, list | dict) and len(answer) == 1:
        return _get_answer_text(next(iter(answer.values() if isinstance(answer, dict) else answer)))
    return answer if isinstance(answer, str) else "none"


def _parse_object(text: str, position: int) -> tuple[dict[Any, Any], int]:
    """Parse the JSON object or Python dictionary at a position, and return it and its end; {} if there is none."""
    with suppress(ValueError, RecursionError):
        data, end = json.JSONDecoder(strict=False).raw_decode(text, position)
        return (data, end) if isinstance(data, dict) else ({}, end)
    brace_index = text.find("}", position, position + MAX_DICTIONARY_LENGTH)
    if brace_index > 0:
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            data = ast.literal_eval(text[position : brace_index + 1])
            return (data, brace_index + 1) if isinstance(data, dict) else ({}, position + 1)
    return {}, position + 1


def replace_boxes(text: str, find_letter: Callable[[str], int | None]) -> str:
    r"""Replace each ``\boxed{...}`` by a line ``answer: LETTER``, or by a line ``formula`` if it names no option.

    Args:
        text: Answer of a model.
        find_letter: Function that returns the index of the option that the content of a box names, or None.
    """
    parts = []
    position = 0
    for box in _BOX.finditer(text):
        if box.start() < position:
            continue
        depth, end = 1, box.end()
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        content = text[box.end() : end - (depth == 0)]
        letter = find_letter(content) if len(content) < MAX_BOX_LENGTH else None
        names_several_letters = (
            letter is None and len(re.findall(r"(?<!\w)[A-Za-z](?!\w)", content)) > 1 and "\\" not in content
        )
        replacement = "formula" if letter is None else f"answer: {chr(97 + letter)}"
        parts += [text[position : box.start()], "\n", "answer: a or b" if names_several_letters else replacement, "\n"]
        position = end
    return "".join([*parts, text[position:]])


def find_repeated_option(text: str, texts: Sequence[str]) -> int | None:
    """Return the index of the option whose text is the whole answer; None if no option or several match."""
    answer = strip_markup(
        re.sub(r"\A(?:\W*the)?(?:\W*(?:correct|final|best))?\W*answer\s*(?:is|:)\W*", "", text, flags=re.I)
    )
    indices = [
        index for index, option in enumerate(texts) if strip_markup(unicodedata.normalize("NFKC", option)) == answer
    ]
    if len(indices) != 1:
        exact_answer = strip_markup(text, fold_case=False)
        indices = [index for index in indices if strip_markup(texts[index], fold_case=False) == exact_answer]
    return indices[0] if len(indices) == 1 else None


def label_options(text: str, texts: Sequence[str]) -> str:
    """Replace texts of options in an answer by labels, for example "I choose methane" by "I choose (b)".

    Longer texts are replaced first. If two options differ only in case, the answer is returned unchanged.
    """
    labels = {strip_markup(unicodedata.normalize("NFKC", option)): f"({chr(97 + i)})" for i, option in enumerate(texts)}
    wordings = sorted(filter(None, labels), key=len, reverse=True)
    if len(wordings) < len(texts):
        return text
    pattern = "|".join(re.escape(wording).replace(r"\ ", r"\s+") for wording in wordings)
    return re.sub(
        rf"(?<![\w-])(?:{pattern})(?![\w-])",
        lambda match: labels[" ".join(match[0].split()).casefold()],
        text,
        flags=re.IGNORECASE,
    )


def find_marked_option(text: str, options: int) -> tuple[int | None, str]:
    """Return the only option that a list marks as correct, as in "B) ... ✓", and the text without the list.

    If the text has no list of two or more marked options, or if the number of options marked as correct is not exactly
    one, the option is None and the text is unchanged.
    """
    other_lines, correctness = [], {}
    for line in text.split("\n"):
        label = _LABELLED_LINE.match(line)
        index = ord(label[1].casefold()) - 97 if label else options
        mark = _MARK_AT_END.search(label[2]) or _MARK_AT_START.match(label[2]) if label and index < options else None
        if mark is None:
            other_lines.append(line)
        else:
            correctness[index] = bool(_CORRECT.fullmatch(mark[1]))
    correct_options = [index for index, is_correct in correctness.items() if is_correct]
    if len(correctness) < 2 or len(correct_options) != 1:
        return None, text
    return correct_options[0], "\n".join(other_lines)


def strip_markup(text: str, fold_case: bool = True) -> str:
    """Remove markup, and quotation marks, brackets and punctuation around a text; optionally fold its case."""
    words = " ".join(re.sub(r"[*_`]", "", text).split()).strip(" \t.\"'“”‘’«»()[]")
    return words.casefold() if fold_case else words


def is_variable(text: str, start: int, end: int) -> bool:
    """Return whether the letter ``text[start:end]`` is a variable in a formula, as in "C = 3.7" or "h * A"."""
    if _OPERATOR_AFTER.match(text, end):
        text_after = text[end:].lstrip()
        return not (text_after[0] in "+*<" and re.match(r"(?:\*+|\+\s*[A-Za-z]\b|<[/|a-z])", text_after))
    operator_before = _OPERATOR_BEFORE.search(text[max(0, start - 24) : start])
    if operator_before is None:
        return False
    if operator_before["equals"]:
        return not (
            _NAMES_ANSWER.search(operator_before["equals"])
            or (len(operator_before["equals"]) > 1 and not operator_before["equals"].isascii())
        )
    # "**B" is markup; "A/B" and "A + C" are several letters.
    operator = operator_before[0].strip()
    return not (re.search(r"[*~]\Z", operator) or re.match(r"[A-Za-z]?\s*[/+]\Z", operator))
