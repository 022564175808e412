"""Probes as files: one .safetensors file with the arrays, and everything else as text in its header. No pickle."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from climassay.errors import InputError, MissingExtraError
from climassay.judging.probe import FloatArray, PairProbe, PointProbe, Provenance

FORMAT = "climassay-probe"
VERSION = 1

_ARRAYS = {
    "pair": (("weights", "mean_plus", "mean_minus"), ("length_slope",)),
    "point": (("weights", "mean"), ("length_slope",)),
}
_CLASSES: dict[str, type[PairProbe] | type[PointProbe]] = {"pair": PairProbe, "point": PointProbe}


def save_probe(probe: PairProbe | PointProbe, path: Path) -> None:
    """Write a probe; an existing file is replaced at once, never left half written.

    Args:
        probe: The probe.
        path: The file, by custom named ``.safetensors``.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: safetensors is not installed.
    """
    _, to_bytes = _safetensors()
    kind = "pair" if isinstance(probe, PairProbe) else "point"
    needed, optional = _ARRAYS[kind]
    arrays = {name: np.ascontiguousarray(getattr(probe, name)) for name in needed}
    arrays |= {name: np.ascontiguousarray(value) for name in optional if (value := getattr(probe, name)) is not None}
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "probe": kind,
        "scale": probe.scale,
        "tie_band": probe.tie_band,
        "provenance": dataclasses.asdict(probe.provenance),
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # JSON writes a float so that reading it gives the same number.
        temporary.write_bytes(to_bytes(arrays, {key: json.dumps(value) for key, value in facts.items()}))
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"The probe cannot be written to {path}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def load_probe(path: Path) -> PairProbe | PointProbe:
    """Read a probe exactly as it was saved.

    Raises:
        InputError: The file is missing, damaged, not a probe, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    if not path.is_file():
        raise InputError(f"There is no probe file {path}; train one first, or check the path.")
    facts, arrays = _read(path)
    version = facts["version"]
    if not isinstance(version, int) or version > VERSION:
        raise InputError(f"The probe {path} has format version {version}, newer than this climassay reads; update it.")
    try:
        return _build(facts, arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The probe {path} is damaged ({error}); train it again.") from error


def check_compatible(
    probe: PairProbe | PointProbe, fingerprint: str, layers: Sequence[int] | None = None, *, model: str = ""
) -> None:
    """Make sure that a probe reads the activations it was trained on. Another domain or quality is fine.

    Args:
        probe: The probe; one without a known fingerprint fits any model.
        fingerprint: Fingerprint of the model at hand.
        layers: Layers of the activations at hand; None: not checked.
        model: Name of the model at hand, for the message.

    Raises:
        InputError: Another model, or other layers.
    """
    source = probe.provenance
    if source.fingerprint and source.fingerprint != fingerprint:
        trained, given = _named(source.model, source.fingerprint), _named(model, fingerprint)
        raise InputError(
            f"This probe was trained on {trained} and cannot read activations of {given}; train one on that model."
        )
    if layers is not None and source.layers and tuple(layers) != source.layers:
        raise InputError(
            f"This probe reads layers {_listed(source.layers)} and not {_listed(layers)}; harvest the probe's layers."
        )


def _named(model: str, fingerprint: str) -> str:
    return f"{model} ({fingerprint[:12]})" if model else f"the model {fingerprint[:12]}"


def _listed(layers: Sequence[int]) -> str:
    return ", ".join(str(layer) for layer in layers)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    safe_open, _ = _safetensors()
    from safetensors import SafetensorError

    try:
        with safe_open(path, framework="numpy") as file:
            facts = {key: _parsed(value) for key, value in (file.metadata() or {}).items()}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged or is no safetensors file: {error}.") from error
    if facts.get("format") != FORMAT or "version" not in facts:
        raise InputError(f"{path} is a safetensors file but no probe of climassay; give a file that judging saved.")
    return facts, arrays


def _parsed(text: str) -> Any:
    """The value of a header entry; other programs' headers hold plain text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _build(facts: dict[str, Any], arrays: dict[str, FloatArray]) -> PairProbe | PointProbe:
    kind = facts["probe"]
    needed, optional = _ARRAYS[kind]
    given: dict[str, Any] = {name: arrays[name] for name in needed} | {name: arrays.get(name) for name in optional}
    shape = arrays["weights"].shape
    for name, array in given.items():
        if array is not None and (array.shape != shape or array.ndim != 1 or array.dtype != np.float64):
            raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}")
        if array is not None and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
    source = dict(facts["provenance"])
    source["layers"] = tuple(source["layers"])
    scale, band = float(facts["scale"]), float(facts["tie_band"])
    if not np.isfinite([scale, band]).all() or band < 0:
        raise ValueError("scale or tie band is not a number it can be")
    rest: dict[str, Any] = {"scale": scale, "tie_band": band, "provenance": Provenance(**source)}
    return _CLASSES[kind](**given, **rest)


def _safetensors() -> tuple[Any, Any]:
    try:
        from safetensors import safe_open
        from safetensors.numpy import save
    except ModuleNotFoundError as error:
        raise MissingExtraError("Probe files need safetensors: pip install 'climassay[local]'.") from error
    return cast(Any, safe_open), cast(Any, save)
