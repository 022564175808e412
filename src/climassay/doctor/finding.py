"""What an examination finds."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "missing", "broken"]
"""``ok``; ``warning``: it works, but look at it; ``missing``: not there; ``broken``: there, and of no use."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    area: str
    """For example ``installation``."""
    name: str
    level: Level
    said: str
    """What was found, in words."""
    advice: str = ""
    """What to do about it; empty where there is nothing to do."""
    needed: bool = False
    """Whether the main paths (documents, answers, evaluation, fact-checks) do not work without it."""

    @property
    def stops(self) -> bool:
        """Whether something that is needed cannot be used."""
        return self.needed and self.level in ("missing", "broken")
