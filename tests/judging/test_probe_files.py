import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from climassay.errors import InputError
from climassay.judging.probe import (
    Contrast,
    PairProbe,
    PointProbe,
    ProbeProvenance,
    check_compatible,
    load_probe,
    save_probe,
)

SOURCE = ProbeProvenance(
    method="supervised",
    items=100,
    pairs=9_900,
    regularisation=0.1,
    quality="coherence",
    model="local:smollm2",
    fingerprint="a" * 64,
    layers=(12, -1),
    dtype="float32",
    template="contrast_quality",
    template_sha256="b" * 64,
)


def _pair_probe(slope=True):
    rng = np.random.default_rng(0)
    return PairProbe(
        weights=rng.normal(size=6),
        mean_plus=rng.normal(size=6),
        mean_minus=rng.normal(size=6),
        scale=1 / 3,
        length_slope=rng.normal(size=6) if slope else None,
        tie_band=0.1 + 0.2,
        provenance=SOURCE,
    )


def _point_probe():
    rng = np.random.default_rng(1)
    return PointProbe(rng.normal(size=6), rng.normal(size=6), 2 / 7, None, 0.0, SOURCE)


@pytest.mark.parametrize(
    "probe", [_pair_probe(), _pair_probe(slope=False), _point_probe()], ids=["pair", "pair-no-length", "point"]
)
def test_round_trip_is_exact(tmp_path, probe):
    save_probe(probe, tmp_path / "probe.safetensors")
    again = load_probe(tmp_path / "probe.safetensors")
    assert type(again) is type(probe)
    for field in dataclasses.fields(probe):
        before, after = getattr(probe, field.name), getattr(again, field.name)
        assert np.array_equal(before, after) if isinstance(before, np.ndarray) else before == after
    assert [path.name for path in tmp_path.iterdir()] == ["probe.safetensors"]


def test_loaded_probe_says_the_same(tmp_path):
    probe = _pair_probe()
    save_probe(probe, tmp_path / "p.safetensors")
    states = np.random.default_rng(2).normal(size=(2, 5, 6)).astype(np.float32)
    contrast = Contrast(states[0], states[1])
    lengths = np.linspace(-1, 1, 5)
    assert np.array_equal(
        load_probe(tmp_path / "p.safetensors").log_odds(contrast, lengths), probe.log_odds(contrast, lengths)
    )


@pytest.mark.parametrize("kept", [0, 4, 40, 500], ids=["empty", "length-only", "half-header", "half"])
def test_damaged_file_is_refused_in_one_sentence(tmp_path, kept):
    path = tmp_path / "probe.safetensors"
    save_probe(_pair_probe(), path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"probe\.safetensors is damaged"):
        load_probe(path)


def test_missing_foreign_and_newer_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="There is no probe"):
        load_probe(tmp_path / "none.safetensors")
    save_file({"weight": np.zeros(3)}, tmp_path / "foreign.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match="no probe of climassay"):
        load_probe(tmp_path / "foreign.safetensors")
    path = tmp_path / "newer.safetensors"
    save_probe(_pair_probe(), path)
    _change_header(path, version=99)
    with pytest.raises(InputError, match="version 99"):
        load_probe(path)


def _change_header(path, **changes):
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        header = file.metadata()
    save_file(load_file(path), path, header | {key: json.dumps(value) for key, value in changes.items()})


@pytest.mark.parametrize(
    "changes",
    [{"probe": "point"}, {"probe": ["pair"]}, {"scale": "much"}, {"provenance": {"layers": [1]}}, {"tie_band": -1}],
    ids=["kind", "kind-type", "scale", "provenance", "band"],
)
def test_header_that_contradicts_itself_is_refused(tmp_path, changes):
    path = tmp_path / "probe.safetensors"
    save_probe(_pair_probe(), path)
    _change_header(path, **changes)
    with pytest.raises(InputError, match="damaged"):
        load_probe(path)


def test_arrays_of_other_shapes_or_not_finite_are_refused(tmp_path):
    path = tmp_path / "probe.safetensors"
    for bad in (np.zeros(5), np.full(6, np.nan)):
        save_probe(dataclasses.replace(_pair_probe(), mean_plus=bad), path)
        with pytest.raises(InputError, match="mean_plus"):
            load_probe(path)


def test_nowhere_to_write_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        save_probe(_pair_probe(), Path(__file__) / "p.safetensors")


def test_other_model_is_refused_and_both_are_named():
    with pytest.raises(InputError, match=r"local:smollm2 \(a{12}\).*local:other \(c{12}\)"):
        check_compatible(_pair_probe(), "c" * 64, model="local:other")


def test_same_model_passes_and_other_layers_do_not():
    check_compatible(_pair_probe(), "a" * 64, (12, -1))
    with pytest.raises(InputError, match="12, -1"):
        check_compatible(_pair_probe(), "a" * 64, (-1,))


def test_probe_of_unknown_origin_fits_any_model():
    probe = dataclasses.replace(_point_probe(), provenance=ProbeProvenance(method="pointwise", items=10, pairs=45))
    check_compatible(probe, "c" * 64, (-1,))
