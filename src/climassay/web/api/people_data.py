"""People in the API's words: oneself, and everybody's accounts."""

from pydantic import Field

from climassay.web.accounts import Purpose, Role, User
from climassay.web.api.fields import Data, Moment, Name, ShortText, moment
from climassay.web.settings import Public


class UserData(Data):
    """Somebody with an account."""

    name: str = Field(examples=["ada"])
    role: Role = Field(examples=["annotator"])
    """Each may do what those before may: annotator, adjudicator, admin."""
    shown: str = Field(examples=["Ada Lovelace"])
    """As others see it."""
    active: bool = Field(examples=[True])
    """Whether they are let in."""
    made_at: Moment


class MeData(Data):
    """Who a token or session belongs to, and what this server offers."""

    user: UserData
    version: str = Field(examples=["0.7.0"])
    """Of climassay."""
    public: Public = Field(examples=["nothing"])
    """What people without an account may do: `nothing`, `read`, or `check` claims too."""
    publisher: str = Field(examples=["Example Institute"])
    """Named in published verdicts; empty where verdicts are not published."""


class Invitation(Data):
    """Somebody to be let in."""

    name: Name = Field(examples=["ada"])
    """2 to 40 small letters, digits, dots, dashes, underscores."""
    role: Role = Field(default="annotator", examples=["annotator"])
    shown: ShortText = Field(default="", examples=["Ada Lovelace"])
    """As others see it; by default the name."""


class UserChange(Data):
    """What is to change; what is left out stays."""

    role: Role | None = Field(default=None, examples=["adjudicator"])
    shown: ShortText | None = Field(default=None, min_length=1, max_length=120, examples=["Ada L."])
    active: bool | None = Field(default=None, examples=[True])
    """False ends all sessions and tokens."""


class LinkData(Data):
    """A link that lets somebody in once."""

    user: UserData
    purpose: Purpose = Field(examples=["invitation"])
    address: str = Field(examples=["http://127.0.0.1:8000/enter/TWmZ2q"])
    """Shown this once; send it to them by a way that others do not read."""


def user_data(user: User) -> UserData:
    """A user as they are answered."""
    return UserData(name=user.name, role=user.role, shown=user.shown, active=user.active, made_at=moment(user.made_at))
