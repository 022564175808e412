import json
from dataclasses import replace

import numpy as np
import pytest

from climassay.errors import InputError
from climassay.judging import ProbeSettings, train_probe
from climassay.judging.training import PROBE_METHODS, load_quality, plot_regularisation_path
from climassay.learning import Provenance
from planted_model import DIRECTION, WIDTH, PlantedModel, extractor, items


@pytest.mark.parametrize("method", PROBE_METHODS)
def test_a_planted_quality_is_found_and_measured_on_held_out_groups(method):
    trained = train_probe(items(), extractor(), method=method, settings=ProbeSettings(seed=1))
    weights = trained.probe.weights / np.linalg.norm(trained.probe.weights)
    # Not all of it: the penalty is on standardised features, so that quiet ones get larger weights.
    assert weights @ DIRECTION == np.abs(weights).max() > 0.6
    assert trained.accuracy.value > 0.9
    assert trained.accuracy.low <= trained.accuracy.value <= trained.accuracy.high
    # Lengths are drawn at random.
    assert trained.longer.value < 0.75
    assert trained.versus_longer.difference.value == pytest.approx(trained.accuracy.value - trained.longer.value)
    assert trained.calibration.brier < 0.15 < trained.calibration.brier_constant == pytest.approx(0.25)
    assert (trained.n_items, trained.n_groups, trained.n_pairs, trained.failed) == (32, 8, 48, 0)


@pytest.mark.parametrize("method", ["ppairs", "principal", "pointwise"])
def test_random_labels_are_not_learnable(method):
    rng = np.random.default_rng(3)
    shuffled = [replace(item, label=float(rng.integers(1, 6))) for item in items(groups=16)]
    trained = train_probe(shuffled, extractor(), method=method)
    assert 0.3 < trained.accuracy.value < 0.7


def test_a_probe_says_where_it_comes_from():
    asked = extractor(layers=(1, -1))
    trained = train_probe(items(), asked, settings=ProbeSettings(layers=((1,), (1, -1))))
    source = trained.probe.provenance
    assert (source.model, source.fingerprint, source.dtype) == ("local:planted", "ab" * 32, "float32")
    assert source.layers in ((1,), (1, -1))
    assert trained.probe.weights.size == WIDTH * len(source.layers)
    assert (source.template, source.template_sha256) == (
        "judge_own_contrast",
        asked.quality_requests.prompt("contrast").sha256,
    )
    assert load_quality(source) == asked.quality_requests.quality
    assert trained.regularisation_path.chosen == source.regularisation


@pytest.mark.parametrize(("groups", "units"), [(1, "items"), (8, "groups")])
def test_the_evidence_names_what_its_intervals_resample(groups, units):
    labelled = [replace(item, group=f"{index % groups}") for index, item in enumerate(items())]
    [table] = train_probe(labelled, extractor(), method="pointwise").tables()
    assert table.note.endswith(f"bootstrap over {units}.")


def test_all_of_the_picture_of_the_regularisation_lies_in_its_frame():
    plot = plot_regularisation_path(train_probe(items(), extractor()))
    assert [series.name for series in plot.series] == ["probe", "a coin"]
    for point in (point for series in plot.series for point in series.points):
        assert 0 <= plot.x.share(point.x) <= 1
        assert 0 <= plot.y.share(point.y) <= 1


def test_a_failed_request_is_left_out_and_counted():
    trained = train_probe(items(), extractor(PlantedModel(fail=("3-1",))))
    # Item 3-1 meets three others, in both orders.
    assert trained.failed == 6
    assert len(trained.projection.truth) == 96 - 6


@pytest.mark.parametrize("method", PROBE_METHODS)
def test_a_model_that_gives_no_activations_at_all_is_told(method):
    with pytest.raises(InputError, match="no activations for any of the"):
        train_probe(items(), extractor(PlantedModel(fail=("v",))), method=method)


def test_by_default_a_probe_reads_the_layers_of_the_extractor():
    trained = train_probe(items(), extractor(layers=(2, 3)))
    assert trained.probe.provenance.layers == (2, 3)
    assert trained.probe.weights.size == 2 * WIDTH
    with pytest.raises(InputError, match=r"Layer -1 was not requested .*; the layers are 2, 3"):
        train_probe(items(), extractor(layers=(2, 3)), settings=ProbeSettings())


def test_pairs_can_be_given():
    trained = train_probe(items(), extractor(), pairs=np.array([[a, a + 1] for a in range(0, 32, 4)]))
    assert (trained.n_pairs, trained.n_items, trained.n_groups) == (8, 16, 8)


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        (items(), {"method": "magic"}, "no probe is trained"),
        ([replace(item, label=None) for item in items()[:3]], {}, "3 of 3 items have no label"),
        ([replace(item, group=item.id) for item in items()], {}, "only one of its group"),
        ([replace(item, label=1.0) for item in items()], {}, "equal labels"),
    ],
    ids=["method", "labels", "groups", "ties"],
)
def test_what_cannot_be_trained_on(given, options, sentence):
    reader = extractor()
    with pytest.raises(InputError, match=f"(?i){sentence}"):
        train_probe(given, reader, **options)
    assert reader.cost.passes == 0, "said before anything is computed"


@pytest.mark.parametrize("text", ["", "relevance", json.dumps({"kind": "text"})], ids=["none", "word", "part"])
def test_a_probe_that_does_not_say_its_quality(text):
    with pytest.raises(InputError, match="name one with --kind"):
        load_quality(Provenance(settings={"quality": text}))
