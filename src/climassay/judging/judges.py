"""Which judge compares: a method by its name, or a trained probe."""

from collections.abc import Sequence
from typing import Literal, get_args

from climassay.errors import InputError
from climassay.judging.asking import Questions
from climassay.judging.preferences import Method
from climassay.judging.probe import PairProbe, PointProbe, check_compatible
from climassay.judging.probing import ContrastProbe, Harvester, PointwiseProbe, ZeroShotContrast
from climassay.judging.prompting import DirectScoring, PairwisePrompt
from climassay.models.contract import OpenWeights, OptionScorer

JudgeName = Literal["zero-shot", "pairs", "direct", "direct-expected"]
JUDGES: tuple[JudgeName, ...] = get_args(JudgeName)
"""Methods that need no labels."""


def named_judge(name: str, model: OptionScorer, questions: Questions, harvester: Harvester | None) -> Method:
    """A method that needs no labels.

    Args:
        name: One of :data:`JUDGES`.
        model: Gives the answers, with records around it where they are to be kept.
        questions: Templates of the quality.
        harvester: Of the same model and quality, for ``zero-shot``; None where its weights are not at hand.

    Raises:
        InputError: There is no such method, or the model cannot do what it needs.
    """
    if name == "direct":
        return DirectScoring(model, questions)
    if name == "direct-expected":
        return DirectScoring(model, questions, rule="expected")
    if name == "pairs":
        return PairwisePrompt(model, questions)
    if name != "zero-shot":
        raise InputError(f"There is no method {name!r} without a probe: there are {', '.join(JUDGES)}.")
    if harvester is None:
        raise InputError(f"The method zero-shot reads hidden states: use a local: model, not {model.name}.")
    return ZeroShotContrast(harvester)


def probe_judge(probe: PairProbe | PointProbe, harvester: Harvester) -> Method:
    """A trained probe as a method.

    Args:
        probe: From :func:`climassay.judging.train_probe` or a file.
        harvester: Of the model that the probe was trained on, with the probe's layers.

    Raises:
        InputError: The probe belongs to another model, or to other layers.
    """
    model = harvester.model
    check_compatible(probe, model.fingerprint, harvester.layers, model=model.name)
    if isinstance(probe, PairProbe):
        return ContrastProbe(harvester, probe)
    return PointwiseProbe(harvester, probe)


def open_weights(model: object, purpose: str) -> OpenWeights:
    """The model as one whose hidden states can be read.

    Raises:
        InputError: They cannot; ``purpose`` begins the sentence that says so.
    """
    if isinstance(model, OpenWeights):
        return model
    raise InputError(f"{purpose} reads hidden states: use a local: model, not {getattr(model, 'name', 'this one')}.")


def layer_choices(model: object, layers: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Sets of layers to choose among: those named, else four over the upper half of the model, the last one included.

    Which layer tells better from worse differs from quality to quality (docs/results/judging.md), so that
    cross-validation decides.

    Args:
        model: Asked for its number of layers where none are named.
        layers: Sets of layers, or none.
    """
    if layers or not isinstance(model, OpenWeights):
        return tuple(map(tuple, layers)) or ((-1,),)
    inner = {round(model.layers * share) for share in (8 / 15, 2 / 3, 4 / 5)} - {0, model.layers}
    return (*((layer,) for layer in sorted(inner)), (-1,))


def layers_of(sets: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """All layers of several sets, each once, those counted from the end last: what has to be harvested."""
    return tuple(sorted({layer for layers in sets for layer in layers}, key=lambda layer: (layer < 0, layer)))
