"""Settings and fixtures that all tests share."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

from required_programs import summary_of_skipped

pytest_plugins = ["groups", "reach", "browser", "postgres_server", "web_parts", "command_line"]

# The user's own database, workspace and configuration are no place for tests.
for variable in ("CLIMASSAY_DATABASE_URL", "CLIMASSAY_RECORDS", "CLIMASSAY_WORKSPACE"):
    os.environ.pop(variable, None)

# The same number format on every processor, so that numbers can be compared exactly.
os.environ["CLIMASSAY_DTYPE"] = "float32"

os.environ["CLIMASSAY_CONFIG"] = str(Path(__file__).with_name("no_providers.toml"))

# The same examples in every run, so that a change is judged by what it changed: few, or as many as make test-all draws;
# the last profile looks for new ones. A test sets a number of its own only where an example takes long.
# No deadlines, and no check of how fast examples come: that says more about what else the machine is doing.
settings.register_profile(
    "few", max_examples=20, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", settings.get_profile("few"), max_examples=100)
settings.register_profile("search", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))


def pytest_terminal_summary(terminalreporter):
    """Say in one line which tests were left out for want of a program."""
    skipped = terminalreporter.stats.get("skipped", [])
    line = summary_of_skipped([str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)])
    if line:
        terminalreporter.write_line(line, yellow=True)
