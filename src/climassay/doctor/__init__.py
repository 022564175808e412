"""What a machine and a workspace lack for climassay to work, and how to get it. Nothing is made or changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Finding", "Level", "examine", "is_healthy"]

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


def examine(workspace: Path | None = None, *, online: bool = False) -> Iterator[Finding]:
    """Look at everything that climassay needs, one thing after the other.

    Args:
        workspace: Its folder; by default ``$CLIMASSAY_WORKSPACE``, else ``.climassay`` in the current folder.
        online: Whether to ask the server of ``openai:`` models; without it no network is touched.

    Returns:
        Findings as they are made: installation, machine, workspace, servers.
    """
    from climassay.doctor.machine import examine_installation, examine_machine
    from climassay.doctor.servers import examine_servers
    from climassay.doctor.workspace_files import examine_workspace

    yield from examine_machine()
    yield from examine_installation()
    yield from examine_workspace(workspace)
    yield from examine_servers(online=online)


def is_healthy(findings: list[Finding]) -> bool:
    """Whether the main paths work: nothing that they need is missing or broken."""
    return not any(finding.stops for finding in findings)
