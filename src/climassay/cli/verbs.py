"""Commands that are verbs of the API: what the user gives is passed on by name, and what comes back is given out."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from climassay.cli.model_options import ModelSetup
from climassay.cli.output import WorkspaceOptions
from climassay.session import ModelOptions

if TYPE_CHECKING:
    from climassay.reporting.results import Result


def verb(function: "Callable[..., Result]") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a verb.

    The function that is decorated only declares the command: its help, and its options under the names of the verb's
    parameters. What the user leaves out has the verb's default. Not the verb's own are options of models and of
    workspaces, which open the session (of :class:`ModelSetup` the verb gets what it takes); ``files``, in which the
    result is saved too; and ``as_json``.

    Args:
        function: A verb, whose ``workspace``, if it takes one, is the session of the command.

    Raises:
        TypeError: The command declares what the verb does not take.
    """
    taken = inspect.signature(function).parameters

    def declare(command: Callable[..., None]) -> Callable[..., None]:
        unknown = [
            name
            for name, parameter in inspect.signature(command).parameters.items()
            if name not in {*taken, "files", "as_json"}
            and not (isinstance(parameter.default, WorkspaceOptions | ModelOptions))
        ]
        if unknown:
            raise TypeError(f"{function.__name__} takes no {', '.join(unknown)}.")

        @wraps(command)
        def run(**given: Any) -> None:
            to, reach = WorkspaceOptions(as_json=given.pop("as_json", False)), None
            for name, options in list(given.items()):
                if isinstance(options, WorkspaceOptions):
                    to = given.pop(name)
                elif isinstance(options, ModelOptions):
                    reach = given.pop(name)
            if isinstance(to, ModelSetup):
                given |= {name: getattr(to, name) for name in ("model", "token_budget") if name in taken}
            files = given.pop("files", None)
            known = {name: value for name, value in given.items() if value is not None}
            if "workspace" not in taken:
                to.emit(function(**known), files)
                return
            with to.session(reach) as session:
                result = function(**known, workspace=session)
            to.emit(result, files)

        return run

    return declare
