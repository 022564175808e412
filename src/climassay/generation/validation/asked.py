"""What is kept of a fine-tuned validator beside its model: how to ask it, its calibration and its threshold."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.generation.validation.calibrator import Calibrator
from climassay.generation.validation.head import calibrator_from, threshold_from
from climassay.generation.validation.threshold import Threshold
from climassay.generation.validation.validators import PromptedValidator
from climassay.given_files import parse_json, read_text
from climassay.models.contract import OptionScorer
from climassay.prompts import Prompt

FACTS_FILE = "climassay-validator.json"
"""Beside an adapter."""
FORMAT = "climassay-asked-validator"


@dataclass(frozen=True, slots=True)
class AskedFacts:
    """How a fine-tuned model is asked, and what its answers are worth."""

    kinds: tuple[str, ...]
    """Kinds of questions it was trained on: it judges no others."""
    subject: Subject
    template_sha256: str
    data: str
    data_sha256: str
    labels: int
    """Trained on, those for validation included."""
    invalid: int
    """Of them."""
    calibrator: Calibrator | None
    """Fitted on labels held out; None where there were too few of them."""
    threshold: Threshold | None
    held_out: tuple[tuple[str, float], ...] = ()
    """``auroc``, ``auroc_low``, ``auroc_high``, ``constant``, ``brier``, ``brier_constant``."""
    trained_on: tuple[str, ...] = ()
    """Ids of the drafts."""

    def to_data(self) -> dict[str, Any]:
        """As JSON can write it."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "AskedFacts":
        """Read what :meth:`to_data` and JSON made of it.

        Raises:
            InputError: It is something else, or damaged.
        """
        try:
            given = dict(data)
            if given.pop("format") != FORMAT:
                raise ValueError("another format")
            calibrator = given["calibrator"]
            return cls(
                **{
                    **given,
                    "kinds": tuple(given["kinds"]),
                    "subject": Subject(**given["subject"]),
                    "calibrator": None if calibrator is None else calibrator_from(calibrator),
                    "threshold": threshold_from(given["threshold"]),
                    "held_out": tuple((name, value) for name, value in given["held_out"]),
                    "trained_on": tuple(given["trained_on"]),
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"What is kept of the validator is damaged ({error}); train it again.") from error

    def validator(self, model: OptionScorer, prompt: Prompt, name: str) -> PromptedValidator:
        """The validator that asks a model so.

        Raises:
            InputError: Another text of the prompt than in training.
        """
        if prompt.sha256 != self.template_sha256:
            raise InputError(
                f"The validator {name} was trained with another text of the prompt {prompt.name}: give that one, or "
                "train it again."
            )
        return PromptedValidator(
            model,
            prompt,
            self.subject,
            content_free=False,
            calibrator=self.calibrator,
            threshold=self.threshold,
            kinds=self.kinds,
            name=name,
        )


def write_facts(facts: AskedFacts, folder: Path) -> None:
    """Write the facts beside an adapter, whole.

    Raises:
        InputError: They cannot be written.
    """
    part = folder / (FACTS_FILE + ".part")
    try:
        part.write_text(json.dumps(facts.to_data(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        part.replace(folder / FACTS_FILE)
    except OSError as error:
        raise InputError(f"The validator cannot be kept in {folder}: {error.strerror or error}.") from error


def read_facts(folder: Path) -> AskedFacts:
    """Read the facts beside an adapter.

    Raises:
        InputError: There are none, or they are damaged.
    """
    file = folder / FACTS_FILE
    try:
        return AskedFacts.from_data(parse_json(read_text(file)))
    except FileNotFoundError:
        raise InputError(
            f"{folder} is no trained validator: train one with climassay validator train --method adapter."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({error}); train the validator again.") from error
