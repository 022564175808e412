"""Ask for known vulnerabilities of the pinned packages; say clearly where that is not possible.

    python requirements/audit.py PIP_AUDIT [CONSTRAINTS]

The auditing program calls a package that its source does not know "skipped", and still says that nothing was found. So
one package is asked for first: where nothing is said of it there is no source here, and the step is skipped, without a
failure and without the claim that all is well. Exit code 1 only where a vulnerability is known.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CONSTRAINTS = Path(__file__).with_name("constraints.txt")
PROBE = "jinja2"
PATIENCE = 600.0
"""Seconds for the whole list; a package takes a fraction of a second."""
PROBE_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found."""

    asked: int
    vulnerable: tuple[str, ...] = ()
    """One line each: package, version, advisory and the version that mends it."""
    unknown: tuple[str, ...] = ()
    """Packages of which the source said nothing."""

    @property
    def possible(self) -> bool:
        """Whether anything was learned at all."""
        return self.asked > len(self.unknown)


def parse(report: str) -> Audit:
    """Read the auditing program's JSON report.

    Raises:
        ValueError: It is none.
    """
    try:
        entries = json.loads(report)["dependencies"]
        unknown = tuple(entry["name"] for entry in entries if "skip_reason" in entry)
        vulnerable = tuple(
            f"{entry['name']} {entry['version']}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'nothing'}"
            for entry in entries
            for one in entry.get("vulns", ())
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"The auditing program gave no report ({error}).") from None
    return Audit(len(entries), vulnerable, unknown)


def pinned(text: str) -> list[str]:
    """The pins of a requirements file, without comments and hashes."""
    lines = (line.split("#")[0].split(" --hash")[0].strip() for line in text.splitlines())
    return [line for line in lines if "==" in line]


def ask(program: str, pins: list[str], patience: float) -> Audit | None:
    """Audit some pins; None where the program cannot be run, or does not come back with a report."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pins.txt"
        file.write_text("\n".join(pins) + "\n", encoding="utf-8")
        options = [
            "--requirement",
            str(file),
            "--no-deps",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "--format",
            "json",
        ]
        try:
            done = subprocess.run([program, *options], capture_output=True, text=True, timeout=patience, check=False)
            return parse(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None


def main(program: str, constraints: str = str(CONSTRAINTS)) -> int:
    """Run the audit and print what it learned; the exit code."""
    pins = pinned(Path(constraints).read_text(encoding="utf-8"))
    probe = next((pin for pin in pins if pin.lower().startswith(f"{PROBE}==")), pins[0])
    first = ask(program, [probe], PROBE_PATIENCE)
    audit = ask(program, pins, PATIENCE) if first is not None and first.possible else None
    if audit is None or not audit.possible:
        print(
            "audit: NOT POSSIBLE here: pip-audit, or its source of advisories, cannot be reached. Nothing was checked."
        )
        return 0
    for line in audit.vulnerable:
        print(f"audit: {line}")
    for name in audit.unknown:
        print(f"audit: nothing is known of {name}")
    print(f"audit: {audit.asked - len(audit.unknown)} packages checked, {len(audit.vulnerable)} known vulnerabilities.")
    return 1 if audit.vulnerable else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
