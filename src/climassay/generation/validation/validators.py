"""Validators: how they read drafts, who says whether one is valid, what training leaves, and the step that decides.

A draft is put before a model that calls it VALID or INVALID, or turned into features: an encoder's vectors and what
rules see in the words, or the hidden states of that model.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.generation.draft import Decision, Draft, Subject, apply_where
from climassay.generation.validation.labels import (
    LabelledDraft,
    ValidatorScores,
    labels_array,
    score_validator,
    source_groups,
)
from climassay.io import first_problem, parse_json, read_text, write_file
from climassay.learning import (
    ActivationStore,
    Calibrator,
    LinearModel,
    ModelFormat,
    Provenance,
    SavedModel,
    Threshold,
    checked_array,
    harvest,
)
from climassay.metrics.pair_features import NAMES, content_words, pair_features
from climassay.models import load_model
from climassay.models.contract import (
    PLACEHOLDERS,
    Encoder,
    Generator,
    OpenWeights,
    OptionRequest,
    OptionScorer,
    OptionScores,
    content_free_correction,
    option_probabilities,
)
from climassay.prompts import ProfileSettings, Prompt, load_prompt, profile_of
from climassay.questions import KINDS, TYPES, option_letter

FloatArray = NDArray[np.float64]
Progress = Callable[[int], None]

ANSWERS = (" VALID", " INVALID")
"""Ends of the model's answer."""
LONGEST_CONTEXT = 8000
"""Characters of a context that a model is shown: the main passage appears first and is never what is cut."""
_KINDS = {"mcq": "multiple-choice questions", "freeform": "freeform questions", "cloze": "fill-in-the-gap statements"}
PAIRS = ("context and answer", "context and question", "answer and question")
OWN = (
    "words of question", "words of answer", "words of context", "options", "answer longer than options",
    "likest option", "question in context", "answer in context", "multiple choice", "cloze",
)  # fmt: skip
"""Features of a draft by itself, in order."""
TEXT_FEATURES = tuple(f"{pair}: {name}" for pair in PAIRS for name in NAMES) + OWN
"""Names of the first block of :class:`TextReader`."""
DEPTH = 0.6
"""Depth of the layer that is read by default: what a model makes of a text is most legible above its middle."""


def validation_prompt(overrides: Path | None = None) -> Prompt:
    """The template, the user's own where the folder has one."""
    return load_prompt("validate", overrides)


def check_prompt(trained: Provenance, prompt: Prompt) -> None:
    """Make sure that a validator is asked in the words of its training.

    Raises:
        InputError: The template has another text.
    """
    if prompt.sha256 != trained.template_sha256:
        raise InputError(
            f"This validator was trained with another text of the prompt {prompt.name}: give that one, or train it "
            "again."
        )


def validation_request(draft: Draft, prompt: Prompt, subject: Subject) -> OptionRequest:
    """The question whether a draft is valid (ClimaQA, appendix A.5.2: question, answer, context)."""
    wording, context = draft.wording, draft.context[:LONGEST_CONTEXT]
    return _request(prompt, subject, draft.kind, wording.question, wording.options, wording.answer, context)


def content_free_request(kind: str, options: int, text: str, prompt: Prompt, subject: Subject) -> OptionRequest:
    """The same with a text that says nothing, for example ``N/A``, in every place where content belongs."""
    return _request(prompt, subject, kind, text, (text,) * options, text, text)


def _request(
    prompt: Prompt, subject: Subject, kind: str, question: str, options: tuple[str, ...], answer: str, context: str
) -> OptionRequest:
    lettered = [{"letter": option_letter(place), "text": option} for place, option in enumerate(options)]
    rendered = prompt.render(
        kind=_KINDS.get(kind) or f"{TYPES[kind].title.lower()} questions",
        field=subject.field,
        question=question,
        options=lettered,
        answer=answer,
        context=context,
    )
    return OptionRequest(rendered.messages, ANSWERS, rendered.assistant_prefix)


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """Features of some drafts."""

    blocks: tuple[FloatArray, ...]
    """Each of shape [drafts, features], of one kind; zeros where a draft could not be read."""
    failed: dict[int, str]
    """Why a draft could not be read, by its place."""

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Shape [drafts]."""
        size = len(self.blocks[0])
        return ~np.isin(np.arange(size), list(self.failed))


class Reader(Protocol):
    """Anything that turns drafts into features."""

    @property
    def provenance(self) -> Provenance:
        """Whose output is read, and as ``kind`` among the settings in which way."""

    def check(self, trained: Provenance) -> None:
        """Make sure that what was trained on features can be given these.

        Raises:
            InputError: It was trained on those of another encoder, model or prompt.
        """

    def read(self, drafts: Sequence[Draft], *, on_read: Progress | None = None) -> Read:
        """Features of drafts; ``on_read`` is called with the number read since the last call."""


@dataclass(frozen=True)
class TextReader:
    """Vectors of question, answer and context and how they differ, and what rules see in the words."""

    encoder: Encoder

    @property
    def provenance(self) -> Provenance:
        """See :class:`Reader`."""
        return Provenance(settings={"kind": "features"}).reading(self.encoder)

    def check(self, trained: Provenance) -> None:
        """See :class:`Reader`."""
        trained.check("validator", encoder=self.encoder)

    def read(self, drafts: Sequence[Draft], *, on_read: Progress | None = None) -> Read:
        """Two blocks: :data:`TEXT_FEATURES`, and vectors q, a, |q - a| and |a - c|; none fails.

        A draft without words or without a passage is read as it is: an empty text has a vector too.
        """
        if not drafts:
            return Read((np.zeros((0, len(TEXT_FEATURES))), np.zeros((0, 4 * self.encoder.width))), {})
        asked = [draft.wording.question for draft in drafts]
        said = [draft.wording.answer for draft in drafts]
        given = [draft.context for draft in drafts]
        pairs = [
            pair_features(list(zip(*texts, strict=True)), self.encoder)
            for texts in ((given, said), (given, asked), (said, asked))
        ]
        own = np.array([self._own(draft) for draft in drafts], dtype=np.float64)
        width = self.encoder.width
        # Of context and answer come c, a, |c - a|; of answer and question a, q, |a - q|.
        answer, apart = pairs[0].vectors[:, width : 2 * width], pairs[0].vectors[:, 2 * width : 3 * width]
        question, differs = pairs[2].vectors[:, width : 2 * width], pairs[2].vectors[:, 2 * width : 3 * width]
        if on_read is not None:
            on_read(len(drafts))
        named = np.concatenate([*(pair.named for pair in pairs), own], axis=1)
        return Read((named, np.concatenate([question, answer, differs, apart], axis=1)), {})

    def _own(self, draft: Draft) -> tuple[float, ...]:
        wording, context = draft.wording, draft.context
        answer_words = len(wording.answer.split())
        others = [text for place, text in enumerate(wording.options) if place != wording.correct]
        longer, likest = 0.0, 0.0
        if others:
            mean = sum(len(text.split()) for text in others) / len(others)
            longer = float(np.log((1 + answer_words) / (1 + mean)))
            vectors = self.encoder.encode([wording.answer, *others]).astype(np.float64)
            likest = float((vectors[1:] @ vectors[0]).max())
        known, asked = content_words(context), content_words(wording.question)
        return (
            float(np.log1p(len(wording.question.split()))),
            float(np.log1p(answer_words)),
            float(np.log1p(len(context.split()))),
            float(len(wording.options)),
            longer,
            likest,
            len(asked & known) / max(1, len(asked)),
            float(" ".join(wording.answer.casefold().split()) in " ".join(context.casefold().split())),
            float(draft.kind == "mcq"),
            float(draft.kind == "cloze"),
        )


@dataclass(frozen=True)
class StateReader:
    """Hidden states of a model whose verdict on a draft is made to end in VALID and in INVALID.

    What both ends have in common is the draft, and what differs is how each verdict follows from it (Burns et al. 2023,
    arXiv 2212.03827): both are kept, as two blocks.
    """

    model: OpenWeights
    prompt: Prompt = field(default_factory=validation_prompt)
    layers: tuple[int, ...] = ()
    """Side by side in each block, numbered as in :meth:`~climassay.models.contract.OpenWeights.harvest`; by default one
    at :data:`DEPTH`."""
    store: ActivationStore | None = None
    """Where states are kept, so that nothing is computed twice."""
    subject: Subject = field(default_factory=Subject)

    def __post_init__(self) -> None:
        if not self.layers:
            object.__setattr__(self, "layers", (max(1, round(DEPTH * self.model.layers)),))

    @property
    def provenance(self) -> Provenance:
        """See :class:`Reader`."""
        return Provenance(
            layers=self.layers,
            template=self.prompt.name,
            template_sha256=self.prompt.sha256,
            settings={"kind": "probe", "subject": asdict(self.subject)},
        ).reading(model=self.model)

    def check(self, trained: Provenance) -> None:
        """See :class:`Reader`."""
        trained.check("validator", model=self.model)
        check_prompt(trained, self.prompt)

    def read(self, drafts: Sequence[Draft], *, on_read: Progress | None = None) -> Read:
        """Two blocks: VALID - INVALID, and the mean of both; shape [drafts, layers * width] each."""
        requests = [validation_request(draft, self.prompt, self.subject) for draft in drafts]
        result = harvest(self.model, requests, layers=self.layers, store=self.store, on_progress=on_read)
        states = result.states.astype(np.float64)
        size = len(drafts)
        contrast = (states[:, 0] - states[:, 1]).reshape(size, -1) if size else np.zeros((0, 0))
        mean = states.mean(axis=1).reshape(size, -1) if size else np.zeros((0, 0))
        return Read((contrast, mean), result.failed)


def draft_vectors(drafts: Sequence[Draft], encoder: Encoder) -> NDArray[np.float32]:
    """Unit vectors of question and answer together, shape [drafts, width]: what drafts are about, for clusters."""
    return encoder.encode([f"{draft.wording.question} {draft.wording.answer}" for draft in drafts])


ASKED_FORMAT = "climassay-asked-validator"
FACTS_FILE = "climassay-validator.json"
"""Beside an adapter."""
REASON = "invalid by the validator"
"""Reason of the decision that rejects a draft."""
DEFAULT_THRESHOLD = 0.5
LoadModel = Callable[..., Generator]
"""Like :func:`climassay.models.load_model`, of which a validator that a server fine-tuned gives the ``base_url``,
and a probe the ``dtype``."""


class Validator(Protocol):
    """Anything that gives a draft a probability of being valid."""

    @property
    def name(self) -> str:
        """For decisions and reports."""

    @property
    def threshold(self) -> Threshold | None:
        """From which P(valid) on a draft is kept; None where none was chosen on labels."""

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """P(valid) of each draft, in order; None where it failed or the validator does not know the kind.

        ``on_judged`` is called with the number of drafts judged since the last call.
        """

    def predict_proba(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> FloatArray:
        """P(invalid) and P(valid), shape [drafts, 2]; NaN where a draft could not be judged."""
        valid = np.array(self.judge(drafts, on_judged=on_judged), dtype=np.float64)
        return np.stack([1 - valid, valid], axis=1)

    def predict(self, drafts: Sequence[Draft]) -> list[bool | None]:
        """Whether each draft is kept; None where it could not be judged."""
        decided = validate([replace(one, decisions=()) for one in drafts], self)
        return [draft.decisions[-1].accepted if draft.decisions else None for draft in decided]

    def score(
        self, labelled: Sequence[LabelledDraft], *, seed: int = 0, on_judged: Progress | None = None
    ) -> ValidatorScores:
        """Figures on labelled drafts; they say something only of drafts that were not trained on.

        Raises:
            InputError: All that could be judged are of one kind.
        """
        drafts = [one.draft for one in labelled]
        given = self.predict_proba(drafts, on_judged=on_judged)[:, 1]
        return score_validator(labels_array(labelled), given, source_groups(drafts), seed=seed)


def validate(
    drafts: Sequence[Draft], validator: Validator, threshold: float | None = None, *, on_judged: Progress | None = None
) -> list[Draft]:
    """Let a validator decide on all drafts that are still usable; the others stay as they are.

    Args:
        drafts: Any number.
        validator: Who decides.
        threshold: Least P(valid) that is accepted; by default the validator's own, else one half.
        on_judged: Called with the number of drafts judged since the last call.

    Returns:
        The drafts in their order, with a decision of the step ``validate`` on each usable one.

    Raises:
        InputError: The threshold is not a probability.
    """
    if isinstance(validator, ByKind):
        decided = list(drafts)
        for kind, one in validator.validators.items():
            own = partial(validate, validator=one, threshold=threshold, on_judged=on_judged)
            decided = apply_where(lambda draft, kind=kind: draft.kind == kind, own, decided)  # type: ignore[misc]
        return decided
    if threshold is None:
        threshold = DEFAULT_THRESHOLD if validator.threshold is None else validator.threshold.value
    if not 0 <= threshold <= 1:
        raise InputError(f"The threshold of a validator is {threshold}: give a probability, for example 0.5.")

    def decision(chance: float | None) -> Decision:
        if chance is None:
            detail = "The validator gave no probability for this question."
            return Decision("validate", validator.name, None, detail=detail)
        detail = f"P(valid) is {chance:.3f}, wanted is at least {threshold:.3f}."
        reason = "" if chance >= threshold else REASON
        return Decision("validate", validator.name, not reason, reason, detail, chance)

    def judged(usable: Sequence[Draft]) -> list[Draft]:
        given = validator.judge(usable, on_judged=on_judged)
        return [draft.with_decisions(decision(chance)) for draft, chance in zip(usable, given, strict=True)]

    return apply_where(lambda draft: draft.usable, judged, drafts)


@dataclass(frozen=True, slots=True)
class Learned:
    """What experts' labels made of a scorer: its calibration, its threshold, and where both come from."""

    provenance: Provenance
    """Among its settings: ``kind`` (features, probe or asked), ``kinds`` of questions it was trained on and judges,
    ``subject`` (the science, where a model was asked) and ``invalid`` (labels)."""
    calibrator: Calibrator | None
    """Fitted on labels that the scorer did not see; None where there were too few of them."""
    threshold: Threshold | None
    """None where no precision was asked for, or it was out of reach."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of questions it was trained on: it judges no others."""
        return tuple(self.provenance.settings["kinds"])

    @property
    def subject(self) -> Subject:
        """The science that the model was asked about."""
        return Subject(**self.provenance.settings.get("subject", {}))

    def facts(self) -> dict[str, Any]:
        """What JSON can write; :meth:`read` gives the same again."""
        return asdict(self)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "Learned":
        """From the JSON of a file, also of one that was written before all of it was called provenance.

        Raises:
            KeyError, TypeError, ValueError: A value is missing or of another kind.
        """
        from pydantic import TypeAdapter

        renamed: dict[str, str] = {}
        given = facts.get("provenance")
        if given is None:
            given = {k: v for k, v in dict(facts.get("source", facts)).items() if k not in _NO_PROVENANCE}
            given.setdefault("kind", "asked")
            renamed = {"items": "labels", "measured": "held_out" if "held_out" in given else "cross_validated"}
            if given["kind"] == "features":
                renamed |= {"encoder": "model", "encoder_fingerprint": "fingerprint"}
        held = {name: facts[name] for name in ("calibrator", "threshold")}
        result = TypeAdapter(cls).validate_python({"provenance": Provenance.read(given, **renamed), **held})
        if not result.kinds or result.subject is None:
            raise ValueError("it judges no kind of questions")
        return result


_NO_PROVENANCE = ("format", "calibrator", "threshold")


@dataclass(frozen=True, eq=False)
class TrainedValidator(SavedModel, Validator):
    """A calibrated regression on what is read of drafts: features of the text, or hidden states of a model."""

    FORMAT = ModelFormat("climassay-validator", 2, "validator", "climassay generate validate train")

    model: LinearModel
    """Figures of the classes invalid and valid."""
    learned: Learned
    reader: Reader | None = None
    """What it reads with; not saved."""
    name: str = "validator"

    @property
    def threshold(self) -> Threshold | None:
        """The one chosen in training."""
        return self.learned.threshold

    def with_reader(self, reader: Reader) -> "TrainedValidator":
        """The same, able to read.

        Raises:
            InputError: Another encoder, model or prompt than in training.
        """
        reader.check(self.learned.provenance)
        return replace(self, reader=reader)

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """See :class:`Validator`."""
        if self.reader is None:
            raise InputError("This validator was loaded without the encoder or model that it reads: open it with that.")
        known = [place for place, draft in enumerate(drafts) if draft.kind in self.learned.kinds]
        result: list[float | None] = [None] * len(drafts)
        if not known:
            return result
        read = self.reader.read([drafts[place] for place in known], on_read=on_judged)
        given = _chances(self.learned.calibrator, self.model.log_odds(read.blocks))
        for number, place in enumerate(known):
            result[place] = None if number in read.failed else given[number]
        return result

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """See :class:`SavedModel`."""
        return {"weights": self.model.weights, "bias": self.model.bias}, self.learned.facts()

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """See :class:`SavedModel`; what it reads with is not kept."""
        if facts["version"] == 1:
            weights = checked_array("weights", arrays["weights"], (None,))
            # One column of weights for the log-odds, where today each class has its own.
            bias = checked_array("bias", np.array([-0.5, 0.5]) * float(facts["bias"]), (2,))
            model = LinearModel("nominal", np.stack([-weights, weights], axis=1) / 2, bias)
        else:
            parts = (("weights", (None, 2)), ("bias", (2,)))
            model = LinearModel("nominal", *(checked_array(name, arrays[name], shape) for name, shape in parts))
        return cls(model, Learned.read(facts))

    @classmethod
    def load(cls, path: Path) -> Self:
        """See :class:`SavedModel`; it is called as its file."""
        return replace(super().load(path), name=path.name)


@dataclass(frozen=True)
class PromptedValidator(Validator):
    """A model asked for VALID or INVALID (ClimaQA, appendix A.5.2); a fine-tuned one is asked the same way."""

    model: OptionScorer
    prompt: Prompt = field(default_factory=validation_prompt)
    subject: Subject = field(default_factory=Subject)
    content_free: bool | None = None
    """Take out what the model prefers where there is no content (:mod:`climassay.models.contract`);
    by default as the model's profile says. Fine-tuned models are asked without: for them the preference is what the
    labels taught."""
    learned: Learned | None = None
    """What a fine-tuned one learned; without it probabilities are the model's own, and all kinds are judged."""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"prompted:{self.model.name}")

    @classmethod
    def fine_tuned(cls, model: OptionScorer, prompt: Prompt, learned: Learned, name: str) -> "PromptedValidator":
        """A fine-tuned model with what is kept of its training.

        Raises:
            InputError: Another text of the prompt than in training.
        """
        check_prompt(learned.provenance, prompt)
        return cls(model, prompt, learned.subject, content_free=False, learned=learned, name=name)

    @property
    def threshold(self) -> Threshold | None:
        """The one chosen in training."""
        return None if self.learned is None else self.learned.threshold

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """See :class:`Validator`."""
        scores = self.log_odds(drafts, on_judged=on_judged)
        calibrator = None if self.learned is None else self.learned.calibrator
        given = iter(_chances(calibrator, [score for score in scores if score is not None]))
        return [None if score is None else next(given) for score in scores]

    def log_odds(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """Log-odds of VALID against INVALID, before any calibration on labels; None where the model failed."""
        kinds = KINDS if self.learned is None else self.learned.kinds
        places = [place for place, draft in enumerate(drafts) if draft.kind in kinds]
        requests = [validation_request(drafts[place], self.prompt, self.subject) for place in places]

        def count(_: int, __: OptionScores) -> None:
            if on_judged is not None:
                on_judged(1)

        shapes = [(drafts[place].kind, len(drafts[place].wording.options)) for place in places]
        try:
            scores = self.model.option_logprobs(requests, on_result=count) if requests else []
            corrections = {shape: self._correction(*shape) for shape in dict.fromkeys(shapes)}
        except ModelError as error:
            # The pipeline goes on without a validator's word; what could not be asked is decided by nobody.
            scores, corrections = [OptionScores.failed(str(error)) for _ in places], {}
        result: list[float | None] = [None] * len(drafts)
        for place, shape, score in zip(places, shapes, scores, strict=True):
            if score.error is None:
                valid, invalid = option_probabilities(score, corrections[shape])
                result[place] = float(np.log(max(valid, 1e-300)) - np.log(max(invalid, 1e-300)))
        return result

    def _correction(self, kind: str, options: int) -> tuple[float, ...] | None:
        """What the model answers without content to a prompt of this shape; None where that is not taken out."""
        if not (profile_of(self.model).calibrated if self.content_free is None else self.content_free):
            return None
        return content_free_correction(
            self.model, lambda text: content_free_request(kind, options, text, self.prompt, self.subject), PLACEHOLDERS
        )


def _chances(calibrator: Calibrator | None, log_odds: FloatArray | Sequence[float]) -> list[float]:
    from scipy.special import expit

    given = np.asarray(log_odds, dtype=np.float64)
    return [float(one) for one in (expit(given) if calibrator is None else calibrator(given))]


@dataclass(frozen=True)
class ByKind(Validator):
    """One validator for each kind of question, as in the paper; kinds without one are judged by nobody."""

    validators: Mapping[str, Validator]

    @property
    def name(self) -> str:
        """The names of all."""
        return ", ".join(f"{kind}={one.name}" for kind, one in self.validators.items())

    @property
    def threshold(self) -> Threshold | None:
        """None: each has its own, which :func:`validate` takes."""
        return None

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """See :class:`Validator`."""
        result: list[float | None] = [None] * len(drafts)
        for kind, validator in self.validators.items():
            if places := [place for place, draft in enumerate(drafts) if draft.kind == kind]:
                given = validator.judge([drafts[place] for place in places], on_judged=on_judged)
                for place, probability in zip(places, given, strict=True):
                    result[place] = probability
        return result


def load_validator(
    name: str,
    *,
    load: LoadModel = load_model,
    encoder: Encoder | None = None,
    prompts: Path | None = None,
    subject: Subject | None = None,
    store: ActivationStore | None = None,
    profile: ProfileSettings | None = None,
) -> Validator:
    """A validator by its name.

    Args:
        name: One of

            - ``prompted:MODEL``: a model asked for VALID or INVALID, not trained;
            - ``adapter:FOLDER``: an adapter that ``climassay generate validate train --method adapter`` left;
            - ``api:STATE.json``: a fine-tuning job that ``--method api`` finished;
            - a file that ``--method features`` or ``probe`` wrote, or the folder or state file of the two above;
            - ``mcq=NAME,freeform=NAME``: one of these for each kind of question.
        load: From a model's name to the model.
        encoder: Encoder for features; loaded by its name if None.
        prompts: Folder of the user's own templates.
        subject: The science, for ``prompted:``; trained ones know theirs.
        store: Where hidden states are kept.
        profile: Whether ``prompted:`` is corrected by content-free prompts, where the user has set it.

    Raises:
        InputError: The name is not one of these, or the model cannot serve.
        ModelError: The model cannot be loaded.
    """
    parts = [part.partition("=") for part in name.split(",")]
    if all(kind.strip() in KINDS and rest for kind, _, rest in parts):
        again = partial(
            load_validator,
            load=load, encoder=encoder, prompts=prompts, subject=subject, store=store, profile=profile,
        )  # fmt: skip
        return ByKind({kind.strip(): again(rest.strip()) for kind, _, rest in parts})
    how, _, rest = name.partition(":")
    template = validation_prompt(prompts)
    if how == "prompted" and rest:
        asked = _scorer(rest, load)
        corrected = profile_of(asked, profile).calibrated
        return PromptedValidator(asked, template, subject or Subject(), content_free=corrected)
    place = Path(rest if how in ("adapter", "api") and rest else name).expanduser()
    kind = how if how in ("adapter", "api") and rest else kind_of(place)
    if kind == "adapter":
        from climassay.tuning import read_result

        learned, result = read_learned(place, kind), read_result(place)
        if result is None:
            raise InputError(f"The adapter in {place} is not finished: run climassay generate validate train again.")
        return PromptedValidator.fine_tuned(_scorer(result.model, load), template, learned, f"adapter:{place.name}")
    if kind == "api":
        from climassay.models.openai.finetuning import read_state

        learned, state = read_learned(place, kind), read_state(place)
        model = _scorer(state.model_name, partial(load, base_url=state.base_url))
        return PromptedValidator.fine_tuned(model, template, learned, f"api:{state.model}")
    if not place.is_file():
        raise InputError(
            f"{name!r} names no validator: write prompted:MODEL, adapter:FOLDER, api:STATE.json, or the file of a "
            "trained one."
        )
    trained = TrainedValidator.load(place)
    source = trained.learned.provenance
    if source.encoder:
        from climassay.models.encoders import load_encoder

        return trained.with_reader(TextReader(encoder or load_encoder(source.encoder)))
    read = load(source.model, dtype=source.dtype or None)
    if not isinstance(read, OpenWeights):
        raise InputError(f"The validator {name} reads hidden states: give it a local: model, not a wrapper around one.")
    return trained.with_reader(StateReader(read, template, source.layers, store, trained.learned.subject))


def _scorer(name: str, load: LoadModel) -> OptionScorer:
    model = load(name)
    if not isinstance(model, OptionScorer):
        raise InputError(f"{name} gives no probabilities of answers: use another model as validator.")
    return model


def kind_of(place: Path) -> str:
    """How what lies there was trained: ``adapter``, ``api``, or ``file`` for features and probes."""
    if (place / FACTS_FILE).is_file():
        return "adapter"
    if not place.is_file():
        return "file"
    with place.open("rb") as opened:
        start = opened.read(200)
    # A safetensors file begins with the length of its header.
    return "api" if start.lstrip()[:1] == b"{" and TrainedValidator.FORMAT.name.encode() not in start else "file"


def write_learned(learned: Learned, folder: Path) -> None:
    """Keep beside an adapter how it is asked and what its answers are worth.

    Raises:
        InputError: It cannot be written.
    """
    text = json.dumps({"format": ASKED_FORMAT, **learned.facts()}, indent=1, allow_nan=False)
    write_file(folder / FACTS_FILE, (text + "\n").encode())


def read_learned(place: Path, kind: str | None = None) -> Learned:
    """What a trained validator (file, folder or state file; see :func:`kind_of`) says of itself; no model is loaded.

    Raises:
        InputError: It is not one of these, damaged, or its training was not finished.
    """
    kind = kind or kind_of(place)
    if kind == "file":
        return TrainedValidator.load(place).learned
    if kind == "adapter":
        file = place / FACTS_FILE
        try:
            data = parse_json(read_text(file))
        except FileNotFoundError:
            raise InputError(
                f"{place} is not a trained validator: train one with "
                "climassay generate validate train --method adapter."
            ) from None
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read ({error}); train the validator again.") from error
    else:
        from climassay.models.openai.finetuning import read_state

        state = read_state(place)
        data = dict(state.facts).get("validator")
        if data is None:
            raise InputError(
                f"The fine-tuning of {state.base_model} ({state.status}) was not finished: run climassay generate "
                "validate train again with the same file."
            )
    try:
        if data["format"] != ASKED_FORMAT:
            raise ValueError("another format")
        return Learned.read(data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The stored state of the validator is damaged ({first_problem(error)}); train it again."
        ) from error
