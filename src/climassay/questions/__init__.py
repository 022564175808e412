"""Benchmark questions: the record that generation writes and evaluation reads, and the file formats it comes in."""

from climassay.questions.formats import (
    LONG_ANSWERS as LONG_ANSWERS,
    PRIMER as PRIMER,
    QuestionSet as QuestionSet,
    join_questions as join_questions,
    question_row as question_row,
    read_questions as read_questions,
)
from climassay.questions.types import (
    CHOICE_KIND as CHOICE_KIND,
    GAP as GAP,
    GAP_KIND as GAP_KIND,
    PROSE_KIND as PROSE_KIND,
    RUBRIC_KIND as RUBRIC_KIND,
    TYPES as TYPES,
    QuestionType as QuestionType,
    KINDS as KINDS,
    LETTERS as LETTERS,
    LEVELS as LEVELS,
    Criterion as Criterion,
    Kind as Kind,
    Level as Level,
    Question as Question,
    kinds_where as kinds_where,
    option_letter as option_letter,
)
