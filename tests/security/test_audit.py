"""Licences of what is installed, pins and hashes of what is downloaded, and what the audit says where it cannot ask."""

import importlib.util
import json
import re
import stat
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FREE = re.compile(
    r"apache|\bmit\b|mit-0|mit-cmu|bsd|\bisc\b|psf|python software foundation|zlib|cc0|bsl-1\.0|unlicense|cnri",
    re.IGNORECASE,
)
COPYLEFT = re.compile(
    r"\bA?GPL|GNU (?:Affero )?General Public|SSPL|EUPL|\bCC-BY-(?:NC|SA)|Commons Clause", re.IGNORECASE
)
WEAK = re.compile(r"LGPL|Lesser General|MPL|Mozilla", re.IGNORECASE)
WEAK_ALLOWED = {
    "certifi": "a list of certificates, unchanged",
    "chardet": "a dependency of lm-eval's, in the extra for it alone; imported, unchanged",
    "hypothesis": "tests only", "orjson": "imported, unchanged", "pathspec": "mypy's, tests only",
    "psycopg": "the extra for PostgreSQL; imported, unchanged, and replaceable by the user",
    "psycopg-binary": "as psycopg", "tqdm": "imported, unchanged", "fqdn": "imported, unchanged",
}  # fmt: skip
"""Weak copyleft: it binds those who change the package itself, which nobody does here."""
READ_BY_US = {
    "agent-client-protocol": "Apache-2.0 by its licence file; the metadata say nothing",
    "axe-playwright-python": "MIT by its licence file; the axe-core within is MPL-2.0, unchanged; tests only",
    "locate": "MIT by its licence file; the metadata say 'other'",
    "umap-learn": "BSD-3-Clause by its licence file",
    "hdbscan": "BSD-3-Clause by its licence file",
}
"""Where metadata do not tell, and somebody has read the file."""


def stated(found: metadata.Distribution) -> str:
    """What a distribution says of its licence: the expression, else the classifiers, else the first line."""
    about = found.metadata
    kinds = [
        line.split("::")[-1].strip() for line in about.get_all("Classifier") or () if line.startswith("License ::")
    ]
    first = (about.get("License") or "").strip().partition("\n")[0]
    return about.get("License-Expression") or "; ".join(kinds) or first


def judge(name: str, licence: str) -> str:
    """Why a package may not be depended on; empty where it may."""
    weak = WEAK.search(licence)
    if COPYLEFT.search(WEAK.sub("", licence)):
        return f"{name}: {licence} is not a licence to build on"
    if weak:
        return "" if name in WEAK_ALLOWED else f"{name}: {licence} must be looked at, and listed with a reason"
    if FREE.search(licence) or name in READ_BY_US:
        return ""
    return f"{name}: {licence or 'no licence stated'} must be looked at"


def pins(file: Path) -> dict[str, str]:
    lines = (line.split("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    split = (line.partition("==") for line in lines if line)
    return {name.lower().replace("_", "-"): rest for name, _, rest in split}


def test_nothing_that_is_installed_binds_those_who_use_climassay():
    pinned = pins(ROOT / "requirements" / "constraints.txt")
    found = {one.metadata["Name"].lower().replace("_", "-"): stated(one) for one in metadata.distributions()}
    ours = {name: licence for name, licence in found.items() if name in pinned}
    assert len(ours) > 100
    assert [said for name, licence in ours.items() if (said := judge(name, licence))] == []


def test_what_is_downloaded_to_be_read_is_pinned_by_hash():
    bundled = (ROOT / "requirements" / "bundled.txt").read_text(encoding="utf-8")
    lines = [line for line in bundled.splitlines() if line and not line.startswith("#")]
    assert lines
    assert all(re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--require-hashes -r requirements/bundled.txt" in makefile
    assert all("-c requirements/constraints.txt" in line for line in makefile.splitlines() if "-e '.[" in line)


def test_every_pin_is_exact():
    text = (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert [line for line in lines if not re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.+!-]+(\s*;.*)?$", line)] == []


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("climassay_audit", ROOT / "requirements" / "audit.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


UNKNOWN = {"name": "jinja2", "skip_reason": "not found"}
SAFE = {"name": "jinja2", "version": "3.1.6", "vulns": []}
BAD = {"name": "other", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}


def program(folder: Path, *reports: str) -> str:
    """A stand-in for the auditing program: the reports one after the other."""
    for number, report in enumerate(reports):
        (folder / str(number)).write_text(report)
    file = folder / "audit"
    file.write_text(
        f"#!{sys.executable}\nfrom pathlib import Path\nfolder = Path({str(folder)!r})\n"
        "number = len(list(folder.glob('asked*')))\n(folder / f'asked{number}').touch()\n"
        "print((folder / str(number)).read_text())\n"
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def report(*entries) -> str:
    return json.dumps({"dependencies": entries, "fixes": []})


@pytest.mark.parametrize(
    ("reports", "code", "said", "asked"),
    [
        ([report(UNKNOWN)], 0, "NOT POSSIBLE", 1),
        (["No connection"], 0, "NOT POSSIBLE", 1),
        ([report(SAFE), "No connection"], 0, "NOT POSSIBLE", 2),
        ([report(SAFE), report(SAFE, UNKNOWN)], 0, "1 packages checked, 0 known vulnerabilities", 2),
        ([report(SAFE), report(SAFE, BAD)], 1, "other 1.0: PYSEC-1, mended in 1.1", 2),
    ],
    ids=["nothing-known", "no-report", "breaks-off", "safe", "vulnerable"],
)
def test_the_audit_says_what_it_could_learn(reports, code, said, asked, audit, tmp_path, capsys):
    assert audit.main(program(tmp_path, *reports)) == code
    out = capsys.readouterr().out
    assert said in out
    assert ("known vulnerabilities." in out) is ("NOT POSSIBLE" not in out)
    assert len(list(tmp_path.glob("asked*"))) == asked


def test_the_tests_that_the_page_names_exist():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tests/[\w/]+/)?test_\w+\.py)`", page))
    assert len(named) > 15
    missing = [name for name in named if not (ROOT / (name if "/" in name else f"tests/security/{name}")).is_file()]
    assert missing == []
    here = {file.name for file in Path(__file__).parent.glob("test_*.py")}
    assert here <= {name.rpartition("/")[2] for name in named}
