"""Recipe of a paper's tables: which of them the user's data suffice for, and how they are reproduced."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from climassay.api.benchmarks import Models
from climassay.errors import InputError
from climassay.models import Generator
from climassay.reporting.paper_tables import (
    PaperTable,
    Reproduction,
    ReproductionEstimate,
    choose_tables,
    load_paper_tables,
)
from climassay.session import Place, Session

CHARACTERS_PER_TOKEN = 4.0


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC):
    """Data and settings with which the tables of a paper are reproduced."""

    published_file: ClassVar[Path]
    """TOML file of the published tables."""
    numbers: Sequence[str]
    """Numbers of the tables; if empty, all tables for which the user has data."""
    limit: int | None
    """Maximum number of items of each part of the data; None for all."""
    seed: int

    @abstractmethod
    def estimate(self, models: Sequence[Generator | str], session: Session) -> ReproductionEstimate:
        """Estimate calls, tokens and cost without calling a model.

        Raises:
            InputError: A table does not exist, or its data are missing or cannot be read.
        """

    @abstractmethod
    def run(self, models: Sequence[Generator | str], session: Session) -> Reproduction:
        """Ask the models, and return the published tables with our rows.

        Raises:
            InputError: A table does not exist, or its data are missing or cannot be read.
            ModelError: A model cannot be loaded.
        """

    @abstractmethod
    def find_missing_input(self, number: str) -> str | None:
        """Return a description of the first input missing for a table; None if the table can be reproduced."""

    def published_tables(self) -> dict[str, PaperTable]:
        """Return the published tables by number."""
        return load_paper_tables(self.published_file)

    def select_tables(self) -> dict[str, PaperTable]:
        """Return the published tables that can be reproduced, by number.

        Raises:
            InputError: Input is missing for a table that the user named, or for all tables.
        """
        tables = choose_tables(self.published_tables(), self.numbers)
        missing = {number: reason for number in tables if (reason := self.find_missing_input(number)) is not None}
        if missing and self.numbers:
            number, reason = next(iter(missing.items()))
            raise InputError(f"Table {number} needs {reason}.")
        if len(missing) == len(tables):
            raise InputError(f"Name the data of a table: {'; '.join(dict.fromkeys(missing.values()))}.")
        return {number: table for number, table in tables.items() if number not in missing}

    def note_omissions(self) -> Iterator[str]:
        """Yield a sentence for each table that is left out because its data are missing."""
        for number in () if self.numbers else self.published_tables():
            if (reason := self.find_missing_input(number)) is not None:
                yield f"Table {number} is left out: it needs {reason}."

    def reproduce(
        self, models: Models, *, estimate: bool, output: Path | str | None, workspace: Place
    ) -> Reproduction | ReproductionEstimate:
        """Estimate the recipe, or run it and write its tables to the folder ``output``, if one is named."""
        model_list = models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
        with Session.opened(workspace) as session:
            if estimate:
                return self.estimate(model_list, session)
            reproduction = self.run(model_list, session)
        if output is not None:
            reproduction.write(Path(output))
        return reproduction


def name_of(model: Generator | str) -> str:
    """Return the name of a model."""
    return model if isinstance(model, str) else model.name
