"""Where models come from: the part of a model's name before the colon, and what loads those of that part."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature

from climassay.errors import InputError
from climassay.models.contract import Generator
from climassay.registry import Registry

Load = Callable[..., Generator]
_CIRCUMSTANCES = ("folder", "policy", "price", "provider")
"""What a loader is given if it takes it; other options are the user's wish, and refused where no loader takes them."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A source of models."""

    name: str
    """Before the colon."""
    load: Load
    """From what follows the colon, and the options that it has parameters for, to a model."""
    served: bool = True
    """Whether its models are behind a server: no weights at hand, prices, log-probabilities not for certain."""

    def open(self, rest: str, **options: object) -> Generator:
        """Load a model with the options that were given (not None).

        Raises:
            InputError: An option does not go with this provider.
            ModelError: The model cannot be found or loaded.
        """
        known = signature(self.load).parameters
        given = {name: value for name, value in options.items() if value is not None}
        strange = next((name for name in given if name not in known and name not in _CIRCUMSTANCES), None)
        if strange is not None:
            raise InputError(f"The option --{strange.replace('_', '-')} does not go with {self.name}: models.")
        return self.load(rest, **{name: value for name, value in given.items() if name in known})


PROVIDERS: Registry[ModelProvider] = Registry("provider", "climassay.providers", ["climassay.models.registry"])
"""By the part of a name before the colon; servers of the user's configuration come beside them."""


def provider(name: str, *, served: bool = True) -> Callable[[Load], Load]:
    """Add a function as the loader of a provider's models.

    It is called with what follows the colon and, by keyword, those options of
    :func:`climassay.models.load_model` that it has parameters for; users are told where an option has no effect.

    Example:
        >>> @provider("echo")
        ... def load_echo(name, *, max_output_tokens=None):
        ...     return EchoModel(name, max_output_tokens)
    """

    def add(function: Load) -> Load:
        PROVIDERS.add(name, ModelProvider(name, function, served), function.__module__)
        return function

    return add
