"""Reads the section ``Example:`` of our docstrings as what it is, code with its output.

Google's style calls the section ``Examples:``; under the other name its brackets would be taken for links.
"""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Calls the section by the name that the parser knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section in the docstring of an object that was just loaded."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"(?m)^( *)Example:$", r"\1Examples:", obj.docstring.value)
