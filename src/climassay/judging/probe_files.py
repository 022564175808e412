"""Probes as files: one .safetensors file with the arrays, and everything else as text in its header. No pickle."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from climassay.errors import InputError
from climassay.judging.probe import FloatArray, PairProbe, PointProbe, Provenance
from climassay.learning.model_file import ModelFormat, checked_array

FORMAT = ModelFormat("climassay-probe", 1, "probe", "climassay judge train")

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
    kind = "pair" if isinstance(probe, PairProbe) else "point"
    needed, optional = _ARRAYS[kind]
    arrays = {name: getattr(probe, name) for name in needed}
    arrays |= {name: value for name in optional if (value := getattr(probe, name)) is not None}
    facts = {
        "probe": kind,
        "scale": probe.scale,
        "tie_band": probe.tie_band,
        "provenance": dataclasses.asdict(probe.provenance),
    }
    FORMAT.save(path, arrays, facts)


def load_probe(path: Path) -> PairProbe | PointProbe:
    """Read a probe exactly as it was saved.

    Raises:
        InputError: The file is missing, damaged, not a probe, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    return FORMAT.load(path, _build)


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
            f"This probe was trained on {trained} and cannot read activations of {given}: the weights or the"
            " number format (--dtype) differ; use that one, or train a probe on this one."
        )
    if layers is not None and source.layers and tuple(layers) != source.layers:
        raise InputError(
            f"This probe reads layers {_listed(source.layers)} and not {_listed(layers)}; harvest the probe's layers."
        )


def _named(model: str, fingerprint: str) -> str:
    return f"{model} ({fingerprint[:12]})" if model else f"the model {fingerprint[:12]}"


def _listed(layers: Sequence[int]) -> str:
    return ", ".join(str(layer) for layer in layers)


def _build(facts: dict[str, Any], arrays: dict[str, FloatArray]) -> PairProbe | PointProbe:
    kind = facts["probe"]
    needed, optional = _ARRAYS[kind]
    given: dict[str, Any] = {name: arrays[name] for name in needed} | {name: arrays.get(name) for name in optional}
    for name, array in given.items():
        if array is not None:
            checked_array(name, array, (len(arrays["weights"]),))
    source = dict(facts["provenance"])
    source["layers"] = tuple(source["layers"])
    scale, band = float(facts["scale"]), float(facts["tie_band"])
    if not np.isfinite([scale, band]).all() or band < 0:
        raise ValueError("scale or tie band is not a number it can be")
    rest: dict[str, Any] = {"scale": scale, "tie_band": band, "provenance": Provenance(**source)}
    return _CLASSES[kind](**given, **rest)
