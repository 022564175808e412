"""What stands in a wheel and an sdist: all of the package, nothing else, and the same wheel again from the sdist.

python .ci/check_distributions.py SDIST WHEEL WHEEL_FROM_SDIST     run in the checkout; ends with 1 where it is wrong
"""

import hashlib
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path("src/climassay")
LARGEST_WHEEL = 8 << 20
"""Bytes: models and data come from elsewhere."""
SDIST_HOLDS = ("src/climassay/", "requirements/")
SDIST_FILES = {"PKG-INFO", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", ".gitignore"}
DATA = (
    "climassay/py.typed",
    "climassay/models/bundled_requirements.txt",
    "climassay/confidence/tagging/tagger.safetensors",
    "climassay/primer/books/physical_climate.md",
    "climassay/primer/questions/physical_climate.jsonl",
    "climassay/prompts/ask.prompt",
)
"""What the demo cannot do without; that all other files are there is told by the checkout."""


def main(sdist: Path, wheel: Path, again: Path) -> int:
    """Print every fault; how many there are."""
    faults = [*wheel_faults(wheel), *sdist_faults(sdist)]
    if contents(wheel) != contents(again):
        differing = sorted(name for name, _ in set(contents(wheel).items()) ^ set(contents(again).items()))
        faults.append(f"the wheel made of the sdist differs in {', '.join(dict.fromkeys(differing))}")
    for fault in faults:
        print(f"release-check: {fault}", file=sys.stderr)
    return len(faults)


def contents(wheel: Path) -> dict[str, str]:
    """SHA-256 of every file of a wheel, by its name."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: hashlib.sha256(opened.read(name)).hexdigest() for name in opened.namelist()}


def package_files() -> dict[str, str]:
    """SHA-256 of every file of the package in the checkout, by its name in the wheel."""
    files = [file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {
        file.relative_to(PACKAGE.parent).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files
    }


def wheel_faults(wheel: Path) -> Iterator[str]:
    """What a wheel lacks, has too much of, or says wrongly."""
    found, wanted = contents(wheel), package_files()
    about = {name for name in found if re.fullmatch(r"climassay-[^/]+\.dist-info/.+", name)}
    for name in sorted(set(wanted) - set(found)):
        yield f"{wheel.name} lacks {name}"
    for name in sorted(set(found) - set(wanted) - about):
        yield f"{wheel.name} holds {name}, which is no part of the package"
    for name in sorted(set(wanted) & set(found)):
        if wanted[name] != found[name]:
            yield f"{name} in {wheel.name} is another one than in the checkout"
    for name in DATA:
        if name not in found:
            yield f"{wheel.name} lacks {name}, which the demo needs"
    if not any(name.endswith("/licenses/LICENSE") for name in about):
        yield f"{wheel.name} carries no licence"
    if wheel.stat().st_size > LARGEST_WHEEL:
        yield f"{wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB: something is in it that does not belong there"
    yield from metadata_faults(wheel)


def metadata_faults(wheel: Path) -> Iterator[str]:
    """What a wheel says of itself that is not true."""
    with zipfile.ZipFile(wheel) as opened:
        [place] = [name.rpartition("/")[0] for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        said = opened.read(f"{place}/METADATA").decode()
        scripts = opened.read(f"{place}/entry_points.txt").decode()
    [version] = re.findall(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text("utf-8"), re.MULTILINE)
    if f"\nVersion: {version}\n" not in said:
        yield f"{wheel.name} is not version {version}"
    for line in ("License-Expression: Apache-2.0", "Requires-Python: >=3.11", "Classifier: Typing :: Typed"):
        if f"\n{line}\n" not in said:
            yield f"{wheel.name} does not say {line!r}"
    if "climassay = climassay.cli.main:main" not in scripts:
        yield f"{wheel.name} brings no command"


def sdist_faults(sdist: Path) -> Iterator[str]:
    """What an sdist lacks or has too much of."""
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    for name in sorted({f"src/{one}" for one in package_files()} - names):
        yield f"{sdist.name} lacks {name}"
    for name in sorted(names):
        if name not in SDIST_FILES and not name.startswith(SDIST_HOLDS):
            yield f"{sdist.name} holds {name}, which no user needs"


if __name__ == "__main__":
    sys.exit(bool(main(*map(Path, sys.argv[1:]))))
