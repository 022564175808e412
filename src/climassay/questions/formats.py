"""Reading question files of climassay, ClimaQA, Pira 2, MMLU, ARC, C-Eval and of spreadsheets.

The name ``primer`` stands for the bundled questions, ``primer:long_answers`` for the bundled long-form questions and
``hub:OWNER/NAME`` for a dataset of the Hugging Face hub, or ``hub:OWNER/NAME/SUBSET`` if its card lists several.

A file can be CSV, TSV, JSONL, a JSON array (perhaps inside ``{"data": [...]}``) or Parquet, gzip included. Its columns
are recognised by name, in any case and with spaces, hyphens or underscores:

=========  ========================================================================================================
question   ``question``, ``question_text`` or ``prompt``; ``statement`` or ``claim`` for one that is true or false;
           ``<MASK>`` in it makes it a cloze
options    ``options`` or ``choices``: a list, a text of labelled options or of options separated by lines, bars or
           semicolons, ``{"A": ...}``, or ``{"text": [...], "label": [...]}``; or a column for each: ``A``, ``B`` ...,
           ``option_a`` ..., ``choice_1`` ..., ``answer_1`` ...
answer     ``answer``, ``answerKey``, ``label`` ...: label or text of the correct option, or the answer itself; with
           ``choices``, as in MMLU, an index from 0. ``correct`` and ``alternative`` hold the label of the correct
           option, ``answer_index`` its index from 0, and ``answer_idx`` either
others     ``id``, ``kind``, ``level`` or ``complexity``, ``passage`` or ``context``, ``document``, ``section``,
           ``audience``, ``rubric`` or ``criteria``, ``validation``
=========  ========================================================================================================

A question without answer and options is a long-form question, as is each line of a ``.txt`` file. Free questions of
Pira 2 (``question_en_origin``, ``answer_en_origin``) are filtered by the ratings of people.
"""

import ast
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from textwrap import shorten
from typing import Any

from climassay.errors import InputError
from climassay.io import Row, normalise_column_name, parse_json, parse_rows, read_bytes
from climassay.io.decoding import decode_text
from climassay.questions.hub import HUB, TABLE_PATTERNS, fetch_questions
from climassay.questions.types import (
    CHOICE_KIND,
    GAP_KIND,
    KINDS,
    LETTERS,
    LEVELS,
    PROSE_KIND,
    RUBRIC_KIND,
    TYPES,
    Kind,
    Level,
    Question,
    kinds_where,
    option_letter,
)
from climassay.questions.types.cloze import GAPS
from climassay.questions.types.multiple_choice.keys import (
    LabelledOptions,
    find_named_options,
    find_option,
    strip_labels,
)

PRIMER = "primer"
"""Name of the 120 bundled questions, which can be given instead of a question file."""
LONG_ANSWERS = "primer:long_answers"
"""Name of the 24 bundled long-form questions with rubrics, which can be given instead of a question file."""
_BUNDLED_FILES = {PRIMER: ("physical_climate", "aerosols_clouds"), LONG_ANSWERS: ("long_answers",)}
_STATEMENT_COLUMNS = ("statement", "claim")
_QUESTION_COLUMNS = ("question", "question_text", "prompt", *_STATEMENT_COLUMNS)
_OPTION_FIELDS = ("options", "choices")
_ANSWER_FIELDS = ("answer", "answerkey", "answer_key", "correct_answer", "label", "target")
_LABEL_FIELDS = ("correct", "alternative", "correct_option")
_FORMAT_COLUMNS = {*_ANSWER_FIELDS, *_LABEL_FIELDS, "answer_index", "rubric", "criteria", "kind"}
_OPTION_COLUMN = re.compile(r"(?:(?:option|choice|opt|answer)_?)?([a-z])|(?:option|choice|opt|answer)_?(\d{1,2})")
_INLINE_LABEL = re.compile(r"(?<!\S)\(?(?:[A-Z]|[a-z]|\d{1,2})[).:](?=\s)")
"""Pattern of the label of an option within a line."""
_WHOLE_NUMBER = re.compile(r"\d+(?:\.0)?")
"""Pattern of an index; tables with missing numbers, as pandas writes them, have 1.0 instead of 1."""
_REJECTION_WORDS = ("invalid", "false", "0", "no")
"""Values of ClimaQA's column Validation for questions that experts rejected."""
_TYPE_NAMES = {bool: "a truth value", list: "a list", tuple: "a list", dict: "a table", bytes: "binary"}
_LONG_FORM_COLUMNS = {"question", "id", "audience", "reference_answer"}
"""Columns that a file of long-form questions may have if it has none of ``_FORMAT_COLUMNS``."""
_MAX_MESSAGE_COLUMNS = 300
"""Maximum number of characters of the column names in an error message."""
_DASHED_LINE = re.compile(r"^\s*-{5,}\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of a file or dataset."""

    name: str
    questions: tuple[Question, ...]
    skipped: tuple[str, ...]
    """One sentence for each row that was skipped, with its number and the reason."""
    sha256: str
    """SHA-256 of the file's bytes; of several files, the SHA-256 of their digests."""

    def of_kind(self, kind: Kind) -> tuple[Question, ...]:
        """Return the questions of one kind."""
        return tuple(question for question in self.questions if question.kind == kind)

    def select(self, kinds: Collection[Kind]) -> "QuestionSet":
        """Return the set with only the questions of the given kinds."""
        return replace(self, questions=tuple(question for question in self.questions if question.kind in kinds))


def bundled_files(name: str) -> tuple[Path, ...]:
    """Return the files of :data:`PRIMER` or :data:`LONG_ANSWERS`, in climassay's format."""
    folder = Path(__file__).parents[1] / "primer" / "questions"
    return tuple(folder / f"{stem}.jsonl" for stem in _BUNDLED_FILES[name])


def read_questions(path: str | Path) -> QuestionSet:
    """Read a question file, a folder of question files, the bundled questions, or a dataset of the hub.

    From a folder that ``climassay generate publish`` wrote, only the test split is read if there is one. Rows that
    cannot be used are listed in ``skipped``. Duplicate ids get a suffix.

    Args:
        path: A file or folder, :data:`PRIMER`, :data:`LONG_ANSWERS`, or ``hub:OWNER/NAME``.

    Raises:
        InputError: The file is missing, unreadable, of unknown format, or has no usable question.
    """
    name = str(path)
    if name.startswith(HUB):
        return join_questions(name.removeprefix(HUB), [read_questions(file) for file in fetch_questions(name)])
    if name in _BUNDLED_FILES:
        return join_questions(name, [read_questions(file) for file in bundled_files(name)])
    file = Path(path)
    if file.is_dir():
        tables = (
            sorted(file.glob("jsonl/*/test.jsonl"))
            or sorted(file.glob("jsonl/*/*.jsonl"))
            or sorted(table for pattern in TABLE_PATTERNS for table in file.rglob(pattern))
        )
        if not tables:
            raise InputError(f"{file} is a folder without tables: name a file, or a folder with tables of questions.")
        return join_questions(file.resolve().name, [read_questions(table) for table in tables])
    data = read_bytes(file)
    if file.suffix.lower() == ".txt" and not data.lstrip().startswith((b"{", b"[")):
        data = json.dumps([{"question": line} for line in _nonblank_lines(file, data)]).encode()
    rows = list(parse_rows(file, data))
    if not rows:
        raise InputError(f"{file} has no rows: a question file needs at least one.")
    convert = row_converter(file, rows[0])
    questions: list[Question] = []
    skipped_rows: list[str] = []
    for row_number, row in enumerate(rows, start=1):
        try:
            questions.append(convert(row, row_number))
        except InputError as error:
            skipped_rows.append(f"row {row_number}: {error}")
    if not questions:
        raise InputError(f"{file} has no usable question; the first row fails because {skipped_rows[0]}")
    return QuestionSet(file.name, _make_ids_unique(questions), tuple(skipped_rows), hashlib.sha256(data).hexdigest())


def _nonblank_lines(file: Path, data: bytes) -> list[str]:
    try:
        text = decode_text(data)
    except ValueError as error:
        raise InputError(f"{file} {error}: save it as UTF-8.") from None
    return [line for line in text.splitlines() if line.strip()]


def question_row(question: Question) -> dict[str, Any]:
    """Convert a question to a row of climassay's format; empty fields are omitted.

    ``correct`` is the letter of the correct option and ``answer`` its text.
    """
    fields = {
        "id": question.id,
        "kind": question.kind,
        "level": question.level,
        "question": question.question,
        "options": list(question.options) or None,
        "correct": None if question.correct is None else option_letter(question.correct),
        "answer": question.answer,
        "passage": question.context,
        "document": question.document,
        "section": question.section,
        "audience": question.audience or None,
        "rubric": [asdict(criterion) for criterion in question.rubric] or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def join_questions(name: str, sets: Sequence[QuestionSet]) -> QuestionSet:
    """Join question sets and make their ids unique.

    If two questions have the same id, all ids are prefixed with the kind. Ids that are still duplicates get a suffix.

    Raises:
        InputError: There is no question set.
    """
    if not sets:
        raise InputError(f"{name} has no question file.")
    questions = [question for question_set in sets for question in question_set.questions]
    if len({question.id for question in questions}) < len(questions):
        questions = [replace(question, id=f"{question.kind}-{question.id}") for question in questions]
    skipped_rows = tuple(
        f"{question_set.name}, {sentence}" for question_set in sets for sentence in question_set.skipped
    )
    digests = [question_set.sha256 for question_set in sets]
    digest = digests[0] if len(sets) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    return QuestionSet(name, _make_ids_unique(questions), skipped_rows, digest)


def _make_ids_unique(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Make duplicate ids unique: append ``-2`` to the second question with an id, ``-3`` to the third, and so on."""
    counts: Counter[str] = Counter()
    results = []
    for question in questions:
        counts[question.id] += 1
        count = counts[question.id]
        results.append(question if count == 1 else replace(question, id=f"{question.id}-{count}"))
    return tuple(results)


def row_converter(file: Path, row: Row) -> Callable[[Row, int], Question]:
    """Return a function that converts a row of a file and its number to a question.

    Args:
        file: Name of the file, for messages.
        row: First row of the file, from whose columns the format is recognised.

    Raises:
        InputError: The columns belong to no known format.
    """
    names = set(_normalise_columns(row))
    if {"question_en_origin", "answer_en_origin"} <= names:
        return lambda row, number: _convert_pira_row(_normalise_columns(row), number)
    if names & set(_QUESTION_COLUMNS) and (_FORMAT_COLUMNS & names or names <= _LONG_FORM_COLUMNS):
        return lambda row, number: _convert_row(_normalise_columns(row), number)
    columns = shorten(", ".join(map(str, row)), _MAX_MESSAGE_COLUMNS, placeholder=" ...")
    lacks_names = any(str(name).rstrip().endswith("?") for name in row)
    hint = " Its first line looks like a question: put the names of the columns before it." if lacks_names else ""
    raise InputError(
        f"{file} has the columns {columns}, which match none of the known question formats: question and answer; "
        "question, A, B, C, D and answer; question, options and answer; question and rubric; statement and label."
        f"{hint}"
    )


def _normalise_columns(row: Row) -> dict[str, Any]:
    """Return a row whose column names are in lower case with underscores; fields of a nested question are added."""
    fields: dict[str, Any] = {}
    for name, value in row.items():
        key = normalise_column_name(name)
        if _is_empty(fields.get(key)):
            fields[key] = value
    if "answer_idx" in fields:
        is_index = _WHOLE_NUMBER.fullmatch(str(fields["answer_idx"])) is not None
        fields.setdefault("answer_index" if is_index else "correct", fields["answer_idx"])
    if isinstance(question := fields.get("question"), Mapping) and "stem" in question:  # ARC's own files
        fields |= {**question, "question": question["stem"]}
    return fields


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {}) or (isinstance(value, float) and math.isnan(value))


def _find_field(row: Row, names: Sequence[str], default: str) -> str:
    """Return the first of ``names`` with a value in a row, else the first that is in the row, else ``default``."""
    row_names = [name for name in names if name in row]
    return next((name for name in row_names if not _is_empty(row[name])), row_names[0] if row_names else default)


def _get_text(row: Row, name: str) -> str:
    """Return a field as a text on one line; empty if the field is missing, null or NaN."""
    return _format_value(name, row.get(name))


def _format_value(name: str, value: Any) -> str:
    if _is_empty(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"the field {name!r} is {_TYPE_NAMES.get(type(value), 'no text')} instead of a text")
    return " ".join(str(value).split())


def _require_text(row: Row, name: str) -> str:
    value = _get_text(row, name)
    if not value:
        raise InputError(f"the field {name!r} is empty")
    return value


def _parse_level(value: str) -> Level | None:
    level = value.lower()
    if level in LEVELS:
        return level
    if level in ("", "none", "nan"):
        return None
    raise InputError(f"the level {value!r} is not one of {', '.join(LEVELS)}")


def _convert_row(row: Row, row_number: int) -> Question:
    if _get_text(row, "validation").lower() in _REJECTION_WORDS:
        raise InputError("experts marked it invalid")
    question_field = _find_field(row, _QUESTION_COLUMNS, "question")
    question = _require_text(row, question_field)
    options_field, options = _find_options(row)
    kind = _get_text(row, "kind") or _get_text(row, "task") or _infer_kind(row, question_field, options)
    if kind not in KINDS:
        raise InputError(f"the kind {kind!r} is not one of {', '.join(KINDS)}")
    question_type = TYPES[kind]
    answer_field = _find_field(row, _ANSWER_FIELDS, "answer")
    correct = _find_correct(row, options, answer_field, options_field) if options.texts else None
    if correct is not None:
        answer = options.texts[correct]
    elif question_type.fixed_options and isinstance(row.get(answer_field), bool):
        answer = str(row[answer_field])
    else:
        answer = (
            _require_text(row, answer_field)
            if question_type.has_reference
            else _get_text(row, answer_field) or _get_text(row, "reference_answer")
        )
    content = question_type.parse(question, answer, options.texts, correct)
    context_fields = ("passage", "context", *(("text",) if "alternative" in row else ()))
    return Question(
        id=_get_text(row, "id") or _get_text(row, "question_id") or f"q{row_number:05d}",
        kind=kind,
        **content._asdict(),
        level=_parse_level(_get_text(row, "level") or _get_text(row, "complexity")),
        context=_get_text(row, _find_field(row, context_fields, "passage")) or None,
        document=_get_text(row, "document") or None,
        section=_get_text(row, "section") or None,
        **question_type.row_fields(row),
    )


def _infer_kind(row: Row, question_field: str, options: LabelledOptions) -> Kind:
    if options.texts:
        return CHOICE_KIND
    if {"rubric", "criteria"} & set(row) or not {*_ANSWER_FIELDS, *_OPTION_FIELDS} & set(row):
        return RUBRIC_KIND
    if GAPS.search(_get_text(row, question_field)):
        return GAP_KIND
    if question_field in _STATEMENT_COLUMNS:
        return kinds_where(lambda question_type: question_type.is_statement and bool(question_type.fixed_options))[0]
    return PROSE_KIND


def _find_options(row: Row) -> tuple[str, LabelledOptions]:
    """Return the name of the field with the options of a row, and the options.

    If each option has a column of its own, the name is ``options``.
    """
    field = _find_field(row, _OPTION_FIELDS, "options")
    if not _is_empty(row.get(field)):
        return field, _parse_options(field, row[field])
    columns = {(match[1] or match[2]): name for name in row if (match := _OPTION_COLUMN.fullmatch(name))}
    first_label = next((label for label in ("a", "0", "1") if label in columns), "a")
    labels = [*LETTERS] if first_label == "a" else [str(number) for number in range(int(first_label), len(LETTERS))]
    texts_by_label = {label: row[columns[label]] for label in takewhile(columns.__contains__, labels)}
    nonempty_texts = {label: value for label, value in texts_by_label.items() if not _is_empty(value)}
    return field, _parse_options(field, nonempty_texts if len(texts_by_label) > 1 else None)


def _parse_options(name: str, value: Any) -> LabelledOptions:
    """Parse options, which can be a list, a text of labelled lines, ``{label: text}`` or ``{text: [], label: []}``."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        with suppress(ValueError):
            value = parse_json(value)
    if isinstance(value, str) and value.lstrip().startswith("["):  # a list as Python writes it, as in CSV of pandas
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            value = ast.literal_eval(value)
    if isinstance(value, str):
        return strip_labels(_split_options(value))
    if isinstance(value, Mapping) and isinstance(value.get("text"), Sequence) and not isinstance(value["text"], str):
        value = [{"text": text, "label": label} for text, label in _text_label_pairs(name, value)]
    if isinstance(value, Mapping):
        texts_by_label = {str(label).strip().lower(): text for label, text in value.items()}
        if not all((len(label) == 1 and label in LETTERS) or label.isdecimal() for label in texts_by_label):
            entries = ", ".join(map(str, list(value)[:5]))
            raise InputError(f"the field {name!r} has the entries {entries} instead of lettered options")
        labels = sorted(texts_by_label, key=lambda label: (len(label), label))
        return LabelledOptions(tuple(_format_value(name, texts_by_label[label]) for label in labels), tuple(labels))
    if _is_empty(value):
        return LabelledOptions((), ())
    if not isinstance(value, Sequence):
        raise InputError(f"the options are {str(value)[:40]!r} instead of a list")
    if value and all(isinstance(option, Mapping) and {"text", "label"} <= option.keys() for option in value):
        labels = [_format_value(name, option["label"]).lower() for option in value]
        if len(set(labels)) < len(labels):
            raise InputError(f"two options of the field {name!r} have the same label")
        return LabelledOptions(tuple(_format_value(name, option["text"]) for option in value), tuple(labels))
    return strip_labels([_format_value(name, option) for option in value])


def _text_label_pairs(name: str, value: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    texts, labels = value["text"], value.get("label", value.get("labels"))
    if labels is None:
        labels = LETTERS[: len(texts)]
    if not isinstance(labels, Sequence) or len(labels) != len(texts):
        raise InputError(f"the field {name!r} has not one label for each text")
    return list(zip(texts, labels, strict=True))


def _find_correct(row: Row, options: LabelledOptions, answer_field: str, options_field: str) -> int | None:
    """Return the index of the correct option; None if the row does not name it.

    It is named by ``answer_index`` (from 0), by ``correct`` (a label, or an index from 0), or by the answer. The answer
    is a label, a text, or, if the field of the options is ``choices`` as in MMLU, an index from 0.

    Args:
        row: Row with normalised column names.
        options: Options of the row.
        answer_field: Name of the field with the answer.
        options_field: Name of the field with the options.

    Raises:
        InputError: A field names no option or several, or the fields contradict each other.
    """
    answer = row.get(answer_field)
    if isinstance(answer, bool) or (isinstance(answer, float) and answer.is_integer() and not _is_empty(answer)):
        answer = str(answer) if isinstance(answer, bool) else int(answer)
    if type(answer) is int and options.labels[0].isdecimal():
        answer = str(answer)
    label_field = _find_field(row, _LABEL_FIELDS, "correct")
    indices = [row[field] for field in ("answer_index", label_field) if type(row.get(field)) is int]
    if _WHOLE_NUMBER.fullmatch(_get_text(row, "answer_index")) and not indices:
        indices = [int(float(_get_text(row, "answer_index")))]
    if options_field == "choices" and not indices and (index := _parse_index(answer, options)) is not None:
        indices, answer = [index], None
    if type(answer) is int and not indices:
        raise InputError(
            f"the field {answer_field!r} is the number {answer}: write the option's letter, or 'answer_index' from 0"
        )
    for index in indices:
        if not 0 <= index < len(options.texts):
            raise InputError(f"the index {index} of the correct option is not one of 0 to {len(options.texts) - 1}")
    answer_text = "" if type(answer) is int else _format_value(answer_field, answer)
    if not indices and (label := _get_text(row, label_field)):
        # The label of an option goes before the text of another one.
        has_label = label.lower() in options.labels
        indices = [options.labels.index(label.lower()) if has_label else find_option(label, options)]
    if not indices:
        return find_option(answer_text, options) if answer_text else None
    if label_field in row and answer_text in options.texts:
        # With 'correct', the answer is a text, even if it looks like the letter of another option.
        indices.append(options.texts.index(answer_text))
    if len(set(indices)) > 1 or (answer_text and indices[0] not in find_named_options(answer_text, options)):
        raise InputError(
            f"the field {answer_field!r} and the index or letter of the correct option name different options"
        )
    return int(indices[0])


def _parse_index(answer: Any, options: LabelledOptions) -> int | None:
    """Parse an answer that is the index of an option, as a number or as digits; return None for labels and texts.

    Raises:
        InputError: The digits could also be the text of another option.
    """
    if type(answer) is int:
        return answer
    if not isinstance(answer, str) or not answer.strip().isdecimal() or options.labels[0].isdecimal():
        return None
    if find_named_options(answer, options) - {int(answer)}:
        raise InputError(f"the answer {answer!r} could be an index from 0 or the text of an option")
    return int(answer)


def _split_options(text: str) -> list[str]:
    """Split a text into options, which are separated by lines of dashes, begin with labels, or are single lines.

    On a single line, options begin with consecutive labels (``A) ... B) ...``) or are separated by bars or semicolons.
    """
    if _DASHED_LINE.search(text):
        parts = _DASHED_LINE.split(text)
    else:
        option_texts = re.split(r"\n(?=\s*\(?(?:[A-Za-z]|\d{1,2})\s*[).:])", text)
        parts = option_texts if len(option_texts) > 1 else text.strip().split("\n")
    if len(parts) == 1:
        parts = _split_at_labels(parts[0]) or parts[0].split("|" if "|" in parts[0] else ";")
    return [" ".join(part.split()) for part in parts if part.strip()]


def _split_at_labels(line: str) -> list[str]:
    """Split a line before its labels; return [] unless it begins with a label and the labels are consecutive."""
    starts = [match.start() for match in _INLINE_LABEL.finditer(line)]
    parts = [line[start:end].strip(" ,;|") for start, end in pairwise([*starts, len(line)])]
    has_labels = len(parts) > 1 and starts[0] == 0 and list(strip_labels(parts).texts) != parts
    return parts if has_labels else []


def _convert_pira_row(row: Row, row_number: int) -> Question:
    """Convert a row of Pira 2 with a free answer to a question.

    Rows without ratings are accepted.

    Raises:
        InputError: By its ratings the row is unusable: the answer is not in the text, or the question's meaningfulness
            or the agreement of a second person's answer is rated 2 or less of 5.
    """
    for name, min_rating, sentence in (
        ("answer_in_text", 1.0, "its answer is not in the text"),
        ("question_meaningful", 3.0, "the question makes little sense"),
        ("answer_equivalent", 3.0, "a second person answered differently"),
    ):
        rating = _get_text(row, name)
        try:
            is_low = bool(rating) and float(rating) < min_rating
        except ValueError:
            raise InputError(f"the rating {rating!r} in {name!r} is not a number") from None
        if is_low:
            raise InputError(f"its raters found that {sentence}")
    return Question(
        id=_get_text(row, "id_qa") or f"pira-{row_number:05d}",
        kind=PROSE_KIND,
        question=_require_text(row, "question_en_origin"),
        answer=_require_text(row, "answer_en_origin"),
        context=_get_text(row, "abstract") or None,
    )
