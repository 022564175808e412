"""Benchmark questions: the record that generation writes and evaluation reads, and the file formats it comes in."""

from climassay.questions.formats import QuestionSet, read_questions
from climassay.questions.question import LETTERS, Kind, Level, Question, option_letter

__all__ = ["LETTERS", "Kind", "Level", "Question", "QuestionSet", "option_letter", "read_questions"]
