"""Benchmark questions: the record that generation writes and evaluation reads, and the file formats it comes in."""

from climassay.questions.formats import QuestionSet, join_questions, read_questions
from climassay.questions.question import GAP, KINDS, LETTERS, LEVELS, Criterion, Kind, Level, Question, option_letter
from climassay.questions.types import TYPES, QuestionType

__all__ = [
    "GAP",
    "KINDS",
    "LETTERS",
    "LEVELS",
    "TYPES",
    "Criterion",
    "Kind",
    "Level",
    "Question",
    "QuestionSet",
    "QuestionType",
    "join_questions",
    "option_letter",
    "read_questions",
]
