"""Who debates on a server: what its files say, or every collection of the workspace."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from climassay.corpus import list_collections
from climassay.errors import InputError
from climassay.factcheck.configuration import AdvocateSettings, DebateSettings, load_settings
from climassay.factcheck.scales import load_scale
from climassay.web.place import Place


@dataclass(frozen=True, slots=True)
class SetUp:
    """One way to debate that a visitor can choose."""

    name: str
    settings: DebateSettings

    @property
    def told(self) -> str:
        """Who takes part, in words."""
        names = ", ".join(advocate.name for advocate in self.settings.advocates)
        return f"{names}; model {self.settings.model}, at most {self.settings.rounds} rounds"


def set_ups(place: Place) -> tuple[SetUp, ...]:
    """The set-ups that visitors can choose from, the first of which is chosen where nobody does.

    Files are read once a server. Without files every collection that has passages now is an advocate of equal weight,
    and where there is none the model debates with itself, without documents.

    Raises:
        InputError: A file cannot be read, sets up no debate, or has the name of another one.
    """
    if place.settings.debates:
        return place.shared("debate set-ups", lambda: _from_files(place.settings.debates))
    names = [one.name for one in list_collections(place.workspace) if one.passages]
    if names:
        return (SetUp("every collection", DebateSettings(_advocates(names), model=place.settings.model)),)
    plain = (AdvocateSettings("model", "plain"),)
    return (SetUp("the model alone", DebateSettings(plain, model=place.settings.model)),)


def chosen(place: Place, name: str) -> SetUp:
    """The set-up of a name; the first one for an empty name.

    Raises:
        InputError: There is none of that name.
    """
    every = set_ups(place)
    for one in every:
        if name in ("", one.name):
            return one
    raise InputError(f"There is no set-up {name!r}; there are {', '.join(one.name for one in every)}.")


def _from_files(paths: Sequence[Path]) -> tuple[SetUp, ...]:
    files = [file for path in paths for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]
    if not files:
        raise InputError(f"{paths[0]} has no .toml files that set up debates: climassay factcheck init writes one.")
    made = []
    for file in files:
        settings = load_settings(file)
        load_scale(settings.scale)
        if not settings.advocates:
            raise InputError(f"{file} has no [[advocate]], so nobody would debate.")
        made.append(SetUp(file.stem, settings))
    names = [one.name for one in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"Two files that set up debates are called {twice}: rename one.")
    return tuple(made)


def _advocates(collections: Sequence[str]) -> tuple[AdvocateSettings, ...]:
    """One for each collection, under its name as far as that can be an advocate's."""
    taken = {"mediator"}
    made = []
    for collection in collections:
        name = collection
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        made.append(AdvocateSettings(name, collections=(collection,)))
    return tuple(made)
