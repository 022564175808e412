"""Judges: texts in order by a quality, and probes that learn it from labels."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL, Generator
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.judging import Inserted, Item, ItemRanking, PairProbe, PointProbe, Quality, TrainedProbe
    from climassay.judging.preferences import Method
    from climassay.records import Run


def rank(
    texts: "Sequence[str | Item]",
    quality: "Quality | str | None" = None,
    *,
    probe: "PairProbe | PointProbe | Path | None" = None,
    model: Generator | str = DEFAULT_MODEL,
    workspace: Place = None,
    seed: int = 0,
) -> "ItemRanking":
    """Put texts in order by a quality, the best first, from comparisons of pairs in both orders.

    Args:
        texts: Texts, or items with a context and a group.
        quality: ``relevance`` and other aspects, ``claims`` (accuracy), ``confidence``, or a sentence that describes a
            quality of your own; by default what the probe was trained for.
        probe: From :func:`train_judge`, or its file; without one the model is asked zero-shot, or by prompts where
            its hidden states are not at hand.
        model: Who compares; a probe needs the one it was trained on.
        workspace: Where records lie.
        seed: Shuffles the texts before they are sorted.

    Raises:
        InputError: There is nothing to rank, no quality is named, or the probe belongs to another model.
        ModelError: The model cannot be loaded.

    Example:
        >>> ranking = rank(["The sea level rises.", "Ice is a fruit."], "claims", workspace=folder)
        >>> [row.place for row in ranking.ranked]
        [1, 2]
    """
    from climassay.judging import rank_items

    items = _items(texts)
    with (
        Session.opened(workspace) as session,
        _judging(session, "judge rank", items, quality, probe, model, seed) as at,
    ):
        return rank_items(items, at.method, seed=seed)


def insert(
    texts: "Sequence[str | Item]",
    anchors: "Sequence[Item]",
    levels: Sequence[str],
    quality: "Quality | str | None" = None,
    *,
    probe: "PairProbe | PointProbe | Path | None" = None,
    model: Generator | str = DEFAULT_MODEL,
    samples: int = 10,
    workspace: Place = None,
    seed: int = 0,
) -> "Inserted":
    """Give new texts a label on an ordered scale, by comparing them with labelled anchors.

    Args:
        texts: New texts or items; labels of their own, if they have any, only score the result.
        anchors: Labelled items; a label is an index into ``levels``.
        levels: Names of the labels, lowest first.
        quality: As in :func:`rank`.
        probe: As in :func:`rank`.
        model: As in :func:`rank`.
        samples: Anchors of a label that a text is compared with.
        workspace: Where records lie.
        seed: Seed of the draws of anchors.

    Raises:
        InputError: A label has no anchors, a text is among the anchors, or no quality is named.
        ModelError: The model cannot be loaded.
    """
    from climassay.judging import insert_items
    from climassay.judging.anchor_labelling import TIE_BAND

    items = _items(texts)
    with (
        Session.opened(workspace) as session,
        _judging(session, "judge insert", items, quality, probe, model, seed) as at,
    ):
        band = at.tie_band if at.tie_band > 0 else TIE_BAND
        found = insert_items(items, anchors, levels, at.method, samples=samples, tie_band=band, seed=seed)
        at.run.save_results("labels", found.rows())
        return found


class _Judge(NamedTuple):
    method: "Method"
    run: "Run"
    tie_band: float
    """Of the probe; 0 without one."""


@contextmanager
def _judging(
    session: Session,
    command: str,
    items: "Sequence[Item]",
    quality: "Quality | str | None",
    probe: "PairProbe | PointProbe | Path | None",
    model: Generator | str,
    seed: int,
) -> Iterator[_Judge]:
    """A way of comparing texts, with a run in which its answers are kept."""
    from climassay.judging import Harvester, Questions, load_probe
    from climassay.judging.judges import named_judge, open_weights, probe_judge
    from climassay.judging.training import quality_of
    from climassay.models import OpenWeights

    known = load_probe(probe) if isinstance(probe, Path) else probe
    if quality is None and known is None:
        raise InputError('Say by which quality to rank: quality="relevance", or a probe that was trained for one.')
    wanted = quality_of(known.provenance) if quality is None and known is not None else _quality(quality)
    asked = Questions(wanted)
    loaded = session.model(model, dtype=None if known is None else known.provenance.dtype)
    config = {"quality": wanted.name, "model": loaded.name, "items": len(items), "probe": known is not None}
    with session.run(command, config, {"seed": seed}) as run:
        if known is not None:
            layers = known.provenance.layers or (-1,)
            weights = open_weights(loaded, "A probe")
            method = probe_judge(known, Harvester(weights, asked, layers, session.activations))
            yield _Judge(method, run, known.tie_band)
            return
        harvester = None
        if isinstance(loaded, OpenWeights):
            harvester = Harvester(loaded, asked, (-1,), session.activations)
        name = "pairs" if harvester is None else "zero-shot"
        yield _Judge(named_judge(name, session.recorded(loaded, run), asked, harvester), run, 0.0)


def train_judge(
    items: "Sequence[Item]",
    quality: "Quality | str",
    *,
    model: Generator | str = DEFAULT_MODEL,
    pairs_per_item: int | None = None,
    output: Path | None = None,
    workspace: Place = None,
    seed: int = 0,
) -> "TrainedProbe":
    """Train a probe on labelled items, as a judge of new ones; measured on items that it has not seen.

    Args:
        items: With labels, more is better; those of one group are compared with each other.
        quality: As in :func:`rank`.
        model: An open-weights model, whose hidden states are read.
        pairs_per_item: Compare each item with so many others instead of all of its group.
        output: File to save the probe in.
        workspace: Whose session loads the model.
        seed: Of pairs, folds and bootstrap.

    Returns:
        The probe, and its accuracy on held-out items beside that of "the longer text is better".

    Raises:
        InputError: Items have no labels, too few or only equal ones, or the model's hidden states cannot be read.
        ModelError: The model cannot be loaded.

    Example:
        >>> from climassay import Item, primer
        >>> level = primer.VERDICTS.index  # from wrong to right
        >>> labelled = [Item(one.id, one.claim, label=level(one.verdict)) for one in primer.claims()[:16]]
        >>> trained = train_judge(labelled, "claims")
        >>> trained.n_items, trained.n_pairs
        (16, 120)
    """
    from climassay.judging import Harvester, ProbeSettings, Questions, save_probe, train_probe
    from climassay.judging.judges import layer_choices, layers_of, open_weights

    asked = Questions(_quality(quality))
    with Session.opened(workspace) as session:
        weights = open_weights(session.model(model), "Training a probe")
        settings = ProbeSettings(layer_choices(weights, ()), seed=seed)
        harvester = Harvester(weights, asked, layers_of(settings.layers), session.activations)
        trained = train_probe(items, harvester, settings=settings, pairs_per_item=pairs_per_item, seed=seed)
    if output is not None:
        save_probe(trained.probe, output)
    return trained


def _quality(wanted: "Quality | str | None") -> "Quality":
    from climassay.judging import Quality, aspect_names, quality

    if isinstance(wanted, Quality):
        return wanted
    word = wanted or ""
    if word == "claims" or word == "confidence":
        return quality(word)  # type: ignore[arg-type]
    return quality("text", word) if word in aspect_names() else quality("own", sentence=word)


def _items(texts: "Sequence[str | Item]") -> "list[Item]":
    from climassay.judging import Item
    from climassay.judging.items import clean_text

    return [Item(str(n), clean_text(one)) if isinstance(one, str) else one for n, one in enumerate(texts, start=1)]
