"""Reading questions: climassay's own JSONL, the tables of the published ClimaQA dataset, and those of Pira 2.

``primer`` names the bundled questions, ``primer:long_answers`` the bundled long-form ones, ``hub:OWNER/NAME`` a dataset
of the hub.

The format is recognised by the columns, not by the file name:

==========  =======================================================================================================
climassay   ``id, kind, level, question, options, correct, answer, passage, document, section`` (JSONL): ``correct`` is
            the letter of the correct option and ``answer`` its text; without ``correct``, the answer may be either,
            unless it could be both. Long-form questions also ``audience, rubric``; their answer may be missing
MMLU, ARC   ``question, choices, answer`` with the correct option's index from 0; ``options`` with ``answer_index``;
            ``{"text": [...], "label": [...]}`` with ``answerKey``
rubrics     ``question`` and ``rubric`` or ``criteria`` (CLINB and others: a list, or one criterion per line of a cell),
            perhaps ``question_id``, ``audience``, ``reference_answer``
plain       ``question`` alone, or a ``.txt`` file of one question per line: long-form questions without a rubric
ClimaQA     ``Question, Options, Answer, Context, Complexity, Validation``; options as ``a) ...`` lines joined by a
            line of 20 dashes; freeform without Options; cloze with ``<MASK>`` (also ``<blank>``, ``<mask>``)
Pira 2      ``id, text, question, A, B, C, D, E, correct, alternative`` (multiple choice);
            ``id_qa, abstract, question_en_origin, answer_en_origin`` with human ratings (freeform)
==========  =======================================================================================================

Each can be CSV, TSV, JSONL, a JSON array or Parquet, gzip included.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

from climassay.errors import InputError, MissingExtraError
from climassay.io import Row, parse_json, parse_rows, read_bytes
from climassay.io.decoding import decode_text
from climassay.questions.types import KINDS, LETTERS, LEVELS, TYPES, Kind, Level, Question, option_letter
from climassay.questions.types.cloze import GAPS
from climassay.questions.types.multiple_choice.keys import (
    LabelledOptions,
    find_option,
    named_options,
    without_labels,
)

PRIMER = "primer"
"""Names the 120 bundled questions where a question file can be named."""
LONG_ANSWERS = "primer:long_answers"
"""Names the 24 bundled long-form questions, which have rubrics, likewise."""
_BUNDLED = {PRIMER: ("physical_climate", "aerosols_clouds"), LONG_ANSWERS: ("long_answers",)}
_TELLING = {"answer", "answerKey", "answer_key", "rubric", "criteria", "kind"}
_OPTION_FIELDS = ("options", "choices")
_ANSWER_FIELDS = ("answer", "answerKey", "answer_key")
_SHAPES = {bool: "a truth value", list: "a list", tuple: "a list", dict: "a table", bytes: "binary"}
_PLAIN = {"question", "id", "audience", "reference_answer"}
"""Columns of climassay's format: one of the first tells it; these alone are questions that want long answers."""
_SHOWN_CHARACTERS = 300
"""Maximum number of characters of the columns that a message names: a damaged header may be a whole file long."""
_DASHES = re.compile(r"^\s*-{5,}\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of one file and what could not be used of it."""

    name: str
    questions: tuple[Question, ...]
    skipped: tuple[str, ...]
    """One sentence for each row that was left out, with its number."""
    sha256: str
    """SHA-256 of the file's bytes; part of every run's configuration."""

    def of_kind(self, kind: Kind) -> tuple[Question, ...]:
        """The questions of one kind."""
        return tuple(question for question in self.questions if question.kind == kind)


def bundled_files(name: str) -> tuple[Path, ...]:
    """Files of :data:`PRIMER` or :data:`LONG_ANSWERS`, in climassay's own JSONL."""
    folder = Path(__file__).parents[1] / "primer" / "questions"
    return tuple(folder / f"{stem}.jsonl" for stem in _BUNDLED[name])


def read_questions(path: str | Path) -> QuestionSet:
    """Read a question file, the bundled questions, or a dataset of the hub; see the module's table of formats.

    Of ``hub:OWNER/NAME`` all tables are read; of a folder of ``climassay generate publish`` the test split, or all if
    there is none. Rows that cannot be used are listed in ``skipped`` and do not stop the others. Duplicate ids get a
    suffix.

    Raises:
        InputError: The file is missing, unreadable, of no known format, or has no usable question.
    """
    name = str(path)
    if name.startswith(HUB):
        return join_questions(name.removeprefix(HUB), [read_questions(file) for file in fetch_questions(name)])
    if name in _BUNDLED:
        return join_questions(name, [read_questions(file) for file in bundled_files(name)])
    file = Path(path)
    if file.is_dir():
        tables = sorted(file.glob("jsonl/*/test.jsonl")) or sorted(file.glob("jsonl/*/*.jsonl"))
        if not tables:
            raise InputError(f"{file} is a folder without questions: name a file, or a folder of generate publish.")
        return join_questions(file.resolve().name, [read_questions(table) for table in tables])
    data = read_bytes(file)
    if file.suffix.lower() == ".txt" and not data.lstrip().startswith((b"{", b"[")):
        data = json.dumps([{"question": line} for line in _lines(file, data)]).encode()
    rows = list(parse_rows(file, data))
    if not rows:
        raise InputError(f"{file} has no rows: a question file needs at least one.")
    convert = row_converter(file, rows[0])
    questions: list[Question] = []
    skipped: list[str] = []
    for number, row in enumerate(rows, start=1):
        try:
            questions.append(convert(row, number))
        except InputError as error:
            skipped.append(f"row {number}: {error}")
    if not questions:
        raise InputError(f"{file} has no usable question; the first row fails because {skipped[0]}")
    return QuestionSet(file.name, _numbered(questions), tuple(skipped), hashlib.sha256(data).hexdigest())


def _lines(file: Path, data: bytes) -> list[str]:
    """Return the lines of a text file that are not blank.

    Raises:
        InputError: It is not text.
    """
    try:
        text = decode_text(data)
    except ValueError as error:
        raise InputError(f"{file} {error}: save it as UTF-8.") from None
    return [line for line in text.splitlines() if line.strip()]


def question_row(question: Question) -> dict[str, Any]:
    """Return a question in climassay's own format, without the fields that it does not have.

    ``answer`` is always a text; for questions with options, ``correct`` is the letter of the correct one.
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
    """Several question sets as one.

    Files number their questions each for itself: where two have the same id, all get their kind before it, and what
    is still the same gets a suffix.

    Raises:
        InputError: There is none.
    """
    if not sets:
        raise InputError(f"{name} has no question file.")
    questions = [question for one in sets for question in one.questions]
    if len({question.id for question in questions}) < len(questions):
        questions = [replace(question, id=f"{question.kind}-{question.id}") for question in questions]
    skipped = tuple(f"{one.name}, {sentence}" for one in sets for sentence in one.skipped)
    digests = [one.sha256 for one in sets]
    digest = digests[0] if len(sets) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    return QuestionSet(name, _numbered(questions), skipped, digest)


def _numbered(questions: Sequence[Question]) -> tuple[Question, ...]:
    """The second question of an id gets ``-2`` behind it, and so on."""
    seen: Counter[str] = Counter()
    kept = []
    for question in questions:
        seen[question.id] += 1
        kept.append(question if seen[question.id] == 1 else replace(question, id=f"{question.id}-{seen[question.id]}"))
    return tuple(kept)


def row_converter(file: Path, row: Row) -> Callable[[Row, int], Question]:
    """What makes questions of the rows of a file, and of their numbers, by the columns of its first row.

    Raises:
        InputError: The columns are of no known format.
    """
    names = set(row)
    if {"question", "alternative", "A", "B"} <= names:
        return _from_pira
    if {"question_en_origin", "answer_en_origin"} <= names:
        return _from_pira_freeform
    if {"Question", "Answer"} <= names:
        return _from_climaqa
    if "question" in names and (_TELLING & names or names <= _PLAIN):
        return _from_climassay
    shown = shorten(", ".join(sorted(map(str, names))), _SHOWN_CHARACTERS, placeholder=" ...")
    raise InputError(
        f"{file} has the columns {shown}, which match none of the known question formats: "
        "climassay (question, answer, options ...; question, rubric), ClimaQA (Question, Options, Answer ...), Pira "
        "(A, B, alternative; or question_en_origin, answer_en_origin)."
    )


def _text(row: Row, name: str) -> str:
    """Return a field as a text on one line; empty if it is missing, null or NaN.

    Raises:
        InputError: It is a list, a table, a truth value or another thing that is no text.
    """
    return _plain(name, row.get(name))


def _plain(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"the field {name!r} is {_SHAPES.get(type(value), 'no text')} instead of a text")
    return " ".join(str(value).split())


def _needed(row: Row, name: str) -> str:
    value = _text(row, name)
    if not value:
        raise InputError(f"the field {name!r} is empty")
    return value


def _level(value: str) -> Level | None:
    lowered = value.lower()
    if lowered in LEVELS:
        return lowered
    if lowered in ("", "none", "nan"):
        return None
    raise InputError(f"the level {value!r} is not one of {', '.join(LEVELS)}")


def _from_climassay(row: Row, number: int) -> Question:
    kind = _text(row, "kind") or _text(row, "task") or _kind_by_content(row)
    if kind not in KINDS:
        raise InputError(f"the kind {kind!r} is not one of {', '.join(KINDS)}")
    name = next((name for name in _OPTION_FIELDS if row.get(name) not in (None, "", [], {})), "options")
    options = _read_options(name, row.get(name))
    key = next((name for name in _ANSWER_FIELDS if name in row), "answer")
    correct = _read_correct(row, options, key, name) if options.texts else None
    if correct is not None:
        answer = options.texts[correct]
    elif TYPES[kind].fixed and isinstance(row.get(key), bool):
        answer = str(row[key])
    else:
        answer = _needed(row, key) if TYPES[kind].answered else _text(row, key) or _text(row, "reference_answer")
    content = TYPES[kind].read(_needed(row, "question"), answer, options.texts, correct)
    return Question(
        id=_text(row, "id") or _text(row, "question_id") or f"q{number:05d}",
        kind=kind,
        **content._asdict(),
        level=_level(_text(row, "level")),
        context=_text(row, "passage") or _text(row, "context") or None,
        document=_text(row, "document") or None,
        section=_text(row, "section") or None,
        **TYPES[kind].fields(row),
    )


def _kind_by_content(row: Row) -> Kind:
    if any(row.get(name) for name in _OPTION_FIELDS):
        return "mcq"
    if {"rubric", "criteria"} & set(row) or not {*_ANSWER_FIELDS, "Answer", "options"} & set(row):
        return "longform"
    return "cloze" if GAPS.search(_text(row, "question")) else "freeform"


def _read_options(name: str, value: Any) -> LabelledOptions:
    """Return the options of a field: a list, a text of labelled lines, ``{label: text}`` or ``{text: [], label: []}``.

    Raises:
        InputError: It is none of these, or an option is no text; the message names the field.
    """
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        with suppress(ValueError):
            value = parse_json(value)
    if isinstance(value, str):
        return without_labels(_split_options(value))
    if isinstance(value, Mapping) and isinstance(value.get("text"), Sequence) and not isinstance(value["text"], str):
        value = [{"text": text, "label": label} for text, label in _paired(name, value)]
    if isinstance(value, Mapping):
        by_label = {str(label).strip().lower(): text for label, text in value.items()}
        if not all((len(label) == 1 and label in LETTERS) or label.isdecimal() for label in by_label):
            entries = ", ".join(map(str, list(value)[:5]))
            raise InputError(f"the field {name!r} has the entries {entries} instead of lettered options")
        ordered = sorted(by_label, key=lambda label: (len(label), label))
        return LabelledOptions(tuple(_plain(name, by_label[label]) for label in ordered), tuple(ordered))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return LabelledOptions((), ())
    if not isinstance(value, Sequence):
        raise InputError(f"the options are {str(value)[:40]!r} instead of a list")
    if value and all(isinstance(option, Mapping) and {"text", "label"} <= option.keys() for option in value):
        labels = [_plain(name, option["label"]).lower() for option in value]
        if len(set(labels)) < len(labels):
            raise InputError(f"two options of the field {name!r} have the same label")
        return LabelledOptions(tuple(_plain(name, option["text"]) for option in value), tuple(labels))
    return without_labels([_plain(name, option) for option in value])


def _paired(name: str, value: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    texts, labels = value["text"], value.get("label", value.get("labels"))
    if labels is None:
        labels = LETTERS[: len(texts)]
    if not isinstance(labels, Sequence) or len(labels) != len(texts):
        raise InputError(f"the field {name!r} has not one label for each text")
    return list(zip(texts, labels, strict=True))


def _read_correct(row: Row, options: LabelledOptions, key: str, name: str) -> int | None:
    """Return the index of the correct option; None if the row has no key.

    It is what ``answer_index`` (from 0) or ``correct`` (a label, or an index from 0) says, else what the answer names:
    a label, a text, or with ``choices``, as in MMLU, an index from 0.

    Raises:
        InputError: The key names no option, could name several, or the fields contradict each other.
    """
    answer = row.get(key)
    indices = [row[field] for field in ("answer_index", "correct") if type(row.get(field)) is int]
    if type(answer) is int and name == "choices" and not indices:
        indices, answer = [answer], None
    if type(answer) is int and not indices:
        raise InputError(
            f"the field {key!r} is the number {answer}: write the option's letter, or 'answer_index' from 0"
        )
    for index in indices:
        if not 0 <= index < len(options.texts):
            raise InputError(f"the index {index} of the correct option is not one of 0 to {len(options.texts) - 1}")
    answer_text = "" if type(answer) is int else _plain(key, answer)
    if not indices and (label := _text(row, "correct")):
        if label.lower() not in options.labels:
            raise InputError(f"the field 'correct' is {label!r} instead of one of {', '.join(options.labels)}")
        indices = [options.labels.index(label.lower())]
    if not indices:
        return find_option(answer_text, options) if answer_text else None
    if "correct" in row and answer_text in options.texts:
        # Beside 'correct', an answer is a text, though it may look like another option's letter.
        indices.append(options.texts.index(answer_text))
    if len(set(indices)) > 1 or (answer_text and indices[0] not in named_options(answer_text, options)):
        raise InputError(f"the field {key!r} and the index or letter of the correct option name different options")
    return int(indices[0])


def _split_options(text: str) -> list[str]:
    """Split a cell into options: lines joined by a line of dashes, lines with labels, or lines."""
    if _DASHES.search(text):
        parts = _DASHES.split(text)
    else:
        labelled = re.split(r"\n(?=\s*\(?(?:[A-Za-z]|\d{1,2})\s*[).:])", text)
        parts = labelled if len(labelled) > 1 else text.split("\n")
    return [" ".join(part.split()) for part in parts if part.strip()]


def _from_climaqa(row: Row, number: int) -> Question:
    validation = _text(row, "Validation").lower()
    if validation in ("invalid", "false", "0", "no"):
        raise InputError("experts marked it invalid")
    question, answer = _needed(row, "Question"), _needed(row, "Answer")
    options = _read_options("Options", row.get("Options"))
    kind = _kind_by_content({"question": question, "answer": answer, "options": options.texts})
    correct = find_option(answer, options) if options.texts else None
    content = TYPES[kind].read(question, answer, options.texts, correct)
    return Question(
        id=f"{kind}-{number:05d}",
        kind=kind,
        **content._asdict(),
        level=_level(_text(row, "Complexity")),
        context=_text(row, "Context") or None,
    )


def _from_pira(row: Row, number: int) -> Question:
    letters = [letter for letter in "ABCDEFGH" if _text(row, letter)]
    options = [_text(row, letter) for letter in letters]
    marked = _needed(row, "alternative").upper()
    if marked not in letters:
        raise InputError(f"the alternative {marked!r} is not one of {', '.join(letters)}")
    content = TYPES["mcq"].read(_needed(row, "question"), "", options, letters.index(marked))
    return Question(
        id=_text(row, "id") or f"pira-{number:05d}", kind="mcq", **content._asdict(), context=_text(row, "text") or None
    )


def _from_pira_freeform(row: Row, number: int) -> Question:
    """A question of Pira 2 with its free answer, unless its raters found the pair unusable.

    Unusable means: the answer is not in the text, the question makes no sense (rated 2 or less of 5), or the answer of
    a second person was not the same (2 or less). Rows that were not rated are kept.
    """
    for name, least, sentence in (
        ("answer_in_text", 1.0, "its answer is not in the text"),
        ("question_meaningful", 3.0, "the question makes little sense"),
        ("answer_equivalent", 3.0, "a second person answered differently"),
    ):
        rating = _text(row, name)
        try:
            low = bool(rating) and float(rating) < least
        except ValueError:
            raise InputError(f"the rating {rating!r} in {name!r} is not a number") from None
        if low:
            raise InputError(f"its raters found that {sentence}")
    return Question(
        id=_text(row, "id_qa") or f"pira-{number:05d}",
        kind="freeform",
        question=_needed(row, "question_en_origin"),
        answer=_needed(row, "answer_en_origin"),
        context=_text(row, "abstract") or None,
    )


HUB = "hub:"
_TABLES = ("*.csv", "*.tsv", "*.jsonl", "*.json", "*.parquet", "*.csv.gz", "*.jsonl.gz")


def fetch_questions(name: str) -> list[Path]:
    """Download the tables of a dataset, or find them among those downloaded before; nothing of it is ever run.

    The name is ``hub:OWNER/NAME`` for all tables, with ``/PATTERN`` behind it for those whose path fits.

    Raises:
        InputError: The name is none, there is no such dataset or no such table in it, or the hub cannot be reached.
        MissingExtraError: The package for the hub is not installed.
    """
    owner, _, rest = name.removeprefix(HUB).partition("/")
    dataset, _, pattern = rest.partition("/")
    if not owner or not dataset:
        raise InputError(f"A dataset of the hub is named hub:OWNER/NAME, as hub:UCSD-GENIE/ClimaQA, not {name}.")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise MissingExtraError(
            "Datasets of the hub need the package huggingface_hub: install it with `pip install 'climassay[local]'`."
        ) from error
    wanted = [pattern] if pattern else list(_TABLES)
    failures: tuple[type[Exception], ...] = (*connection_errors(), LocalEntryNotFoundError, ValueError)
    try:
        folder = snapshot_download(f"{owner}/{dataset}", repo_type="dataset", allow_patterns=wanted)
    except RepositoryNotFoundError as error:
        raise InputError(f"The hub has no public dataset {owner}/{dataset}: check the name, or log in.") from error
    except failures as error:
        raise InputError(f"The hub could not be reached to look for the dataset {owner}/{dataset}.") from error
    files = sorted({file for one in wanted for file in Path(folder).rglob(one) if file.is_file()})
    if not files:
        raise InputError(f"The dataset {owner}/{dataset} has no table of the kinds {', '.join(wanted)}.")
    return files


def connection_errors() -> tuple[type[Exception], ...]:
    """What the hub's package raises when the hub refuses or cannot be reached; the package must be installed."""
    from huggingface_hub.errors import HfHubHTTPError

    # The package has changed its HTTP client twice; the base of its own error is the client's, whichever that is. Not
    # every client's errors are of the system's (OSError), which stand for a lost connection or a full disk as well.
    bases = (base for base in HfHubHTTPError.__mro__ if issubclass(base, Exception) and base is not Exception)
    return tuple(dict.fromkeys((*bases, OSError)))
