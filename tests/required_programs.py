"""Programs that some tests need and not every machine has: without them tests are skipped, or fail where asked to.

``CLIMASSAY_REQUIRE=browser,postgres`` names what must be there (``.ci/run`` sets it): its absence is then a failure.
"""

import os
from collections import Counter

import pytest

REQUIRE_VARIABLE = "CLIMASSAY_REQUIRE"
SHOWN = {"postgres": "on PostgreSQL", "browser": "in a browser"}
"""What may be missing, and how the line at the end of a run calls its tests."""


def missing(program: str, reason: str) -> None:
    """Leave the test that asks for ``program`` ("browser" or "postgres"), which is not there."""
    required = {one.strip() for one in os.environ.get(REQUIRE_VARIABLE, "").split(",")}
    if program in required:
        pytest.fail(f"{REQUIRE_VARIABLE} asks for {program}, but {reason}", pytrace=False)
    pytest.skip(f"[{program}] {reason}")


def summary_of_skipped(reasons: list[str]) -> str:
    """One line on what was not tested for want of programs; empty where nothing was skipped for that."""
    parts = []
    for program, shown in SHOWN.items():
        found = Counter(reason.partition(f"[{program}] ")[2] for reason in reasons if f"[{program}] " in reason)
        if found:
            count = found.total()
            parts.append(f"{count} test{'s' if count > 1 else ''} {shown} ({'; '.join(found)})")
    return f"Not run here: {' and '.join(parts)}; .ci/run installs what they need." if parts else ""
