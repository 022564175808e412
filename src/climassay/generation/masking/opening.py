"""A masker by its name."""

from collections.abc import Callable, Iterable
from pathlib import Path

from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.generation.masking.choosing import Masker
from climassay.generation.masking.prompted_masker import PromptedMasker
from climassay.generation.masking.statistics_masker import StatisticsMasker
from climassay.generation.masking.trained_masker import load_masker
from climassay.models import load_model
from climassay.models.contract import Generator, OptionScorer
from climassay.models.profiles import ProfileSettings, profile_of

STATISTICS = "statistics"
_PROMPTED = "prompted"


def open_masker(
    name: str = STATISTICS,
    *,
    model: Generator | None = None,
    passages: Iterable[str] = (),
    glossary: Iterable[str] = (),
    subject: Subject | None = None,
    prompts: Path | None = None,
    load: Callable[[str], Generator] = load_model,
    profile: ProfileSettings | None = None,
) -> Masker:
    """The masker of a name.

    Args:
        name: ``statistics``, ``prompted:MODEL`` or the file of a trained masker.
        model: What ``prompted`` asks, with or without a name behind it; loaded by that name if None.
        passages: Of the collection, for ``statistics``.
        glossary: Terms, for ``statistics``.
        subject: For ``prompted``.
        prompts: Folder of templates that replace built-in ones, for ``prompted``.
        load: From the name of a model to the model.
        profile: Whether ``prompted`` is calibrated, where the user has set it.

    Raises:
        InputError: There is no such masker, or the model cannot weigh options.
    """
    if name == STATISTICS:
        return StatisticsMasker(passages, glossary)
    kind, _, asked = name.partition(":")
    if kind == _PROMPTED:
        scorer = _scorer(model, asked, load)
        calibrated = profile_of(scorer, profile).calibrated
        return PromptedMasker(scorer, subject=subject, prompts=prompts, calibrated=calibrated)
    if not Path(name).is_file():
        raise InputError(
            f"There is no masker {name!r}: write statistics, prompted:MODEL, or the file of a trained one."
        )
    return load_masker(Path(name))


def _scorer(model: Generator | None, name: str, load: Callable[[str], Generator]) -> OptionScorer:
    if model is None and not name:
        raise InputError("The masker 'prompted' asks a model: name one, as in prompted:local:smollm2.")
    if model is None:
        model = load(name)
    if not isinstance(model, OptionScorer):
        raise InputError(f"{model.name} gives no log-probabilities, which the masker 'prompted' needs.")
    return model
