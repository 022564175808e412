"""The types of questions: a folder each, with its prompts and everything that is particular to it.

A folder holds the prompts of its type and a module that sets ``TYPE`` to an instance of a class below
:class:`~climassay.questions.types.base.QuestionType`. Nothing else has to know of a new folder.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from climassay.questions.types.base import QuestionType

__all__ = ["TYPES", "QuestionType", "prompt_files"]

FOLDER = Path(__file__).parent


def _found() -> Mapping[str, QuestionType]:
    folders = [path.parent.name for path in FOLDER.glob("*/__init__.py")]
    types: list[QuestionType] = [import_module(f"{__name__}.{folder}").TYPE for folder in folders]
    return MappingProxyType({one.name: one for one in sorted(types, key=lambda one: (one.place, one.name))})


TYPES: Mapping[str, QuestionType] = _found()
"""By the kind of question, in the order of tables."""


def prompt_files() -> dict[str, Path]:
    """Files of the types' prompts by the prompts' names."""
    return {path.stem: path for path in sorted(FOLDER.glob("*/*.prompt"))}
