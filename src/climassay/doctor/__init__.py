"""What a machine and a workspace lack for climassay to work, and how to get it. Nothing is made or changed."""

from collections.abc import Iterator
from pathlib import Path

from climassay.doctor.finding import Finding, Level

__all__ = ["Finding", "Level", "examine", "is_healthy"]


def examine(workspace: Path | None = None, *, online: bool = False) -> Iterator[Finding]:
    """Look at everything that climassay needs, one thing after the other.

    Args:
        workspace: Its folder; by default ``$CLIMASSAY_WORKSPACE``, else ``.climassay`` in the current folder.
        online: Whether to ask the server of ``openai:`` models; without it no network is touched.

    Returns:
        Findings as they are made: installation, machine, workspace, servers.
    """
    from climassay.doctor.installation import examine_installation
    from climassay.doctor.machine import examine_machine
    from climassay.doctor.servers import examine_servers
    from climassay.doctor.workspace_files import examine_workspace

    yield from examine_machine()
    yield from examine_installation()
    yield from examine_workspace(workspace)
    yield from examine_servers(online=online)


def is_healthy(findings: list[Finding]) -> bool:
    """Whether the main paths work: nothing that they need is missing or broken."""
    return not any(finding.stops for finding in findings)
