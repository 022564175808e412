"""Users and how they get in: passwords, sessions, one-time links, and tokens for programs."""

import hashlib
import hmac
import re
import secrets as random_secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.records.database import Database, build_record

Role = Literal["annotator", "adjudicator", "admin"]
ROLES: tuple[Role, ...] = ("annotator", "adjudicator", "admin")
"""Roles in ascending order; each includes the permissions of those before it."""
Action = Literal[
    "have an account",
    "ask",
    "annotate",
    "adjudicate",
    "moderate checks",
    "add documents",
    "follow others' work",
    "manage datasets",
    "remove documents",
    "stop others' work",
    "manage users",
]
RIGHTS: dict[Action, Role] = {
    "have an account": "annotator",
    "ask": "annotator",
    "annotate": "annotator",
    "adjudicate": "adjudicator",
    "moderate checks": "adjudicator",
    "add documents": "adjudicator",
    "follow others' work": "adjudicator",
    "manage datasets": "admin",
    "remove documents": "admin",
    "stop others' work": "admin",
    "manage users": "admin",
}
"""Lowest role that may do each action. Every route, page and program that depends on a role names an action of it."""
Purpose = Literal["enter", "invitation", "password"]

MIN_PASSWORD_LENGTH = 10
MAX_PASSWORD_LENGTH = 1000
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,39}")
MAX_ATTEMPTS = 5
"""Maximum number of wrong passwords for a name from one address within the window; further ones are refused."""
MAX_ATTEMPTS_PER_ADDRESS = 30
MAX_ATTEMPTS_PER_DEVICE = 10
"""Maximum number of wrong passwords from a browser in which the user has signed in before."""
MAX_ATTEMPTS_WITHOUT_DELAY = 20
"""Number of wrong passwords for a name from any address after which each attempt is delayed."""
MAX_DELAY = 8.0
"""Maximum delay in seconds; it starts at 1 and doubles with each wrong password."""
WINDOW_SECONDS = 15 * 60.0
LINK_HOURS: dict[Purpose, float] = {"enter": 24.0, "invitation": 7 * 24.0, "password": 24.0}


# Secrets are kept as hashes only.
metadata = sa.MetaData()

users = sa.Table(
    "web_users",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("display_name", sa.String(120), nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("password", sa.Text),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    comment="People with an account; who was removed stays as the author of what they said.",
)
sessions = sa.Table(
    "web_sessions",
    metadata,
    sa.Column("token", sa.LargeBinary(32), primary_key=True),
    sa.Column("user", sa.String(40), sa.ForeignKey("web_users.name"), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Index("web_sessions_by_user", "user"),
    comment="Who is signed in: SHA-256 of the cookie.",
)
links = sa.Table(
    "web_links",
    metadata,
    sa.Column("token", sa.LargeBinary(32), primary_key=True),
    sa.Column("user", sa.String(40), sa.ForeignKey("web_users.name"), nullable=False),
    sa.Column("purpose", sa.String(12), nullable=False),
    sa.Column("expires_at", sa.Float, nullable=False),
    sa.Column("used_at", sa.Float),
    comment="Links that let somebody in once: the first sign-in, an invitation, a new password.",
)
api_tokens = sa.Table(
    "web_api_tokens",
    metadata,
    sa.Column("token", sa.LargeBinary(32), primary_key=True),
    sa.Column("id", sa.String(16), nullable=False, unique=True),
    sa.Column("user", sa.String(40), sa.ForeignKey("web_users.name"), nullable=False),
    sa.Column("label", sa.String(120), nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.Column("revoked_at", sa.Float),
    comment="Tokens for programs, each of one user.",
)
failures = sa.Table(
    "web_sign_in_failures",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("subject", sa.LargeBinary(32), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Index("web_failures_by_subject", "subject", "at"),
    comment="Wrong passwords, by the hash of a name or an address, for the limit of attempts.",
)
secrets = sa.Table(
    "web_secrets",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.LargeBinary(32), nullable=False),
    comment="Random keys of this installation.",
)


class TooManyAttempts(InputError):
    """Too many wrong passwords in a short time."""


@dataclass(frozen=True, slots=True)
class User:
    """A user."""

    name: str
    role: Role
    display_name: str
    """Name that others see."""
    active: bool
    made_at: float
    """Seconds since 1970-01-01 UTC."""
    has_password: bool

    def may(self, action: Action) -> bool:
        """Return whether the user's role may do an action, by :data:`RIGHTS`."""
        return ROLES.index(self.role) >= ROLES.index(RIGHTS[action])


@dataclass(frozen=True, slots=True)
class Link:
    """A valid one-time link."""

    user: User
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of a user, without its secret."""

    id: str
    label: str
    made_at: float
    revoked_at: float | None


class AccountStore:
    """The accounts of one workspace.

    Args:
        database: Database of the accounts.
        clock: Returns the time in seconds since 1970-01-01 UTC.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self._clock = clock
        database.create_tables(metadata)

    # People

    def users(self) -> list[User]:
        """Return all users by name, including blocked ones."""
        return [_user(row) for row in self.database.rows(sa.select(users).order_by(users.c.name))]

    def user(self, name: str) -> User:
        """Return a user.

        Raises:
            InputError: There is no user of that name.
        """
        row = self.database.first(sa.select(users).where(users.c.name == name))
        if row is None:
            raise InputError(f"There is no user {name!r}.")
        return _user(row)

    def add(self, name: str, role: Role = "annotator", display_name: str = "") -> User:
        """Add a user, who gets in by an invitation or a password that is set.

        Raises:
            InputError: The name is invalid or taken, or the role does not exist.
        """
        if not NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot be a user name: 2 to 40 lower-case letters, digits, dots, dashes, underscores."
            )
        _check_role(role)
        row = {
            "name": name,
            "display_name": " ".join(display_name.split())[:120] or name,
            "role": role,
            "made_at": self._clock(),
        }

        def insert(connection: sa.Connection) -> bool:
            if connection.execute(sa.select(users.c.name).where(users.c.name == name)).first() is not None:
                return False
            connection.execute(users.insert().values(active=True, **row))
            return True

        if not self.database.write(insert):
            raise InputError(f"There is already a user {name!r}.")
        return self.user(name)

    def change(
        self, name: str, *, role: Role | None = None, display_name: str | None = None, active: bool | None = None
    ) -> User:
        """Change a user's role or display name, or block or unblock the account.

        Blocking ends all sessions, links and tokens of the user.

        Raises:
            InputError: There is no such user or role, or no admin would be left.
        """
        before = self.user(name)
        if role is not None:
            _check_role(role)
        fields = {"role": role, "display_name": display_name, "active": active}
        values = {key: value for key, value in fields.items() if value is not None}

        def write(connection: sa.Connection) -> None:
            connection.execute(users.update().where(users.c.name == name).values(values))
            admins = sa.select(sa.func.count()).where(users.c.role == "admin", users.c.active)
            if connection.execute(admins).scalar_one() == 0 and before.role == "admin":
                raise InputError("There must be at least one admin: make somebody else an admin first.")
            if active is False:
                connection.execute(sessions.delete().where(sessions.c.user == name))
                connection.execute(links.delete().where(links.c.user == name))
                is_valid_token = sa.and_(api_tokens.c.user == name, api_tokens.c.revoked_at.is_(None))
                connection.execute(api_tokens.update().where(is_valid_token).values(revoked_at=self._clock()))

        if values:
            self.database.write(write)
        return self.user(name)

    # Passwords

    def set_password(self, name: str, password: str, keep_session: str | None = None) -> None:
        """Set a password and end all other sessions of the user.

        Raises:
            InputError: The password is too short, too long or too easy, or there is no such user.
        """
        self.user(name)
        hashed = hashed_password(name, password)
        self.database.write(lambda connection: _store_password(connection, name, hashed, keep_session))

    def check_password(self, name: str, password: str, address: str, device: str = "") -> User | None:
        """Return the user of a name and password, or None if either is wrong; both cases take the same time.

        Strangers cannot lock a user out: wrong passwords count for the address that they come from, and only delay
        attempts from elsewhere (:meth:`delay`). A browser in which the user has signed in before is counted separately.

        Args:
            name: Submitted name.
            password: Submitted password.
            address: Address of the request, for the limit of attempts.
            device: Cookie of the browser, as :meth:`device` returned it; empty without one.

        Raises:
            TooManyAttempts: Too many wrong passwords for this name and address, this address, or this browser.
        """
        name = name.strip().lower()
        row = self.database.first(sa.select(users).where(users.c.name == name))
        hashed = row.password if row is not None and row.active else None
        subjects: dict[bytes, int | None]
        if self._is_known_device(device, name, hashed):
            subjects = {digest(f"device {device}"): MAX_ATTEMPTS_PER_DEVICE}
        else:
            subjects = {
                digest(f"name {name} from {address}"): MAX_ATTEMPTS,
                digest(f"address {address}"): MAX_ATTEMPTS_PER_ADDRESS,
                digest(f"name {name}"): None,
            }
        attempt = self._begin_attempt(subjects)
        is_correct = is_password(hashed, password)  # also for nobody, so that it takes as long
        if row is None or not is_correct:
            return None
        cleared = [
            subject
            for subject, max_attempts in subjects.items()
            if max_attempts != MAX_ATTEMPTS_PER_ADDRESS and max_attempts is not None
        ]
        is_cleared = sa.or_(failures.c.subject.in_(cleared), failures.c.id.in_(attempt))
        self.database.execute(failures.delete().where(is_cleared))
        return _user(row)

    def delay(self, name: str, device: str = "") -> float:
        """Return the seconds that an attempt must wait because of many wrong passwords for its name."""
        name = name.strip().lower()
        since = sa.and_(failures.c.subject == digest(f"name {name}"), failures.c.at > self._clock() - WINDOW_SECONDS)
        n_over = self.database.scalar(sa.select(sa.func.count()).where(since)) - MAX_ATTEMPTS_WITHOUT_DELAY
        hashed = self.database.scalar(sa.select(users.c.password).where(users.c.name == name))
        return (
            0.0 if n_over < 0 or self._is_known_device(device, name, hashed) else min(MAX_DELAY, 2.0 ** min(n_over, 10))
        )

    def device(self, name: str) -> str:
        """Return the device cookie of a browser in which a user signed in; a new password invalidates it."""
        hashed = self.database.scalar(sa.select(users.c.password).where(users.c.name == name))
        nonce = random_secrets.token_urlsafe(12)
        return f"{nonce}.{self._device_mark(nonce, name, hashed or '')}"

    def _is_known_device(self, device: str, name: str, hashed: str | None) -> bool:
        nonce, _, mark = device.partition(".")
        if not mark or not hashed:
            return False
        return hmac.compare_digest(mark.encode("utf-8", "replace"), self._device_mark(nonce, name, hashed).encode())

    def _device_mark(self, nonce: str, name: str, hashed: str) -> str:
        message = f"{nonce}|{name}|{hashed}".encode("utf-8", "replace")
        return hmac.new(self.secret("device"), message, hashlib.sha256).hexdigest()

    def _begin_attempt(self, subjects: Mapping[bytes, int | None]) -> list[int]:
        """Count an attempt as failed before its password is checked, so that simultaneous guesses count as well.

        Args:
            subjects: Hashes that are counted, each with its maximum number of failures; None for no maximum.

        Returns:
            Ids of the rows, which are deleted if the attempt succeeds.

        Raises:
            TooManyAttempts: A maximum is exceeded.
        """
        clock = self._clock()

        def insert(connection: sa.Connection) -> list[int]:
            connection.execute(failures.delete().where(failures.c.at < clock - WINDOW_SECONDS))
            rows = [{"subject": subject, "at": clock} for subject in sorted(subjects)]
            keys = [connection.execute(failures.insert().values(row)).inserted_primary_key for row in rows]
            return [int(key[0]) for key in keys if key is not None]

        attempt = self.database.write(insert)
        # Whoever commits later sees who committed before, so that no more pass than are borne.
        since = failures.c.at > clock - WINDOW_SECONDS
        if any(
            self.database.scalar(sa.select(sa.func.count()).where(failures.c.subject == subject, since)) > max_attempts
            for subject, max_attempts in subjects.items()
            if max_attempts is not None
        ):
            self.database.execute(failures.delete().where(failures.c.id.in_(attempt)))
            raise TooManyAttempts(f"Too many attempts: wait {WINDOW_SECONDS / 60:.0f} minutes, then try again.")
        return attempt

    # Sessions

    def begin_session(self, name: str, days: float) -> str:
        """Begin a session and return its token for the cookie; only a hash of the token is stored."""
        token, clock = random_secrets.token_urlsafe(32), self._clock()
        row = {"token": digest(token), "user": name, "made_at": clock, "expires_at": clock + days * 86400}

        def work(connection: sa.Connection) -> None:
            connection.execute(sessions.delete().where(sessions.c.expires_at < clock))
            connection.execute(sessions.insert().values(row))

        self.database.write(work)
        return token

    def session_user(self, token: str) -> User | None:
        """Return the user of a session, or None if it has ended."""
        return self._owner(sessions, sa.and_(sessions.c.token == digest(token), sessions.c.expires_at > self._clock()))

    def end_session(self, token: str) -> None:
        """End a session."""
        self.database.execute(sessions.delete().where(sessions.c.token == digest(token)))

    # One-time links

    def make_link(self, name: str, purpose: Purpose) -> str:
        """Return the token of a new one-time link; earlier links of the same purpose are deleted.

        Raises:
            InputError: There is no such user.
        """
        self.user(name)
        token, clock = random_secrets.token_urlsafe(24), self._clock()
        until = clock + LINK_HOURS[purpose] * 3600
        row = {"token": digest(token), "user": name, "purpose": purpose, "expires_at": until}

        def work(connection: sa.Connection) -> None:
            earlier = sa.and_(links.c.user == name, links.c.purpose == purpose)
            connection.execute(links.delete().where(sa.or_(earlier, links.c.expires_at < clock)))
            connection.execute(links.insert().values(row))

        self.database.write(work)
        return token

    def link(self, token: str) -> Link | None:
        """Return a link, or None if it is invalid, expired or used."""
        good = sa.and_(links.c.token == digest(token), links.c.expires_at > self._clock(), links.c.used_at.is_(None))
        query = sa.select(users, links.c.purpose).join(links, links.c.user == users.c.name)
        row = self.database.first(query.where(good, users.c.active))
        return None if row is None else Link(_user(row), row.purpose)

    def use_link(self, token: str, password: str | None = None) -> Link | None:
        """Use up a link and return it; of two simultaneous requests, one gets None and changes nothing.

        Raises:
            InputError: The password is refused; the link remains valid.
        """
        link = self.link(token)
        if link is None:
            return None
        name = link.user.name
        hashed = None if password is None else hashed_password(name, password)
        unused = sa.and_(links.c.token == digest(token), links.c.used_at.is_(None))
        use = links.update().where(unused).values(used_at=self._clock())

        def work(connection: sa.Connection) -> bool:
            if not connection.execute(use).rowcount:
                return False
            if hashed is not None:
                _store_password(connection, name, hashed)
            return True

        return link if self.database.write(work) else None

    # Tokens for programs

    def make_token(self, name: str, label: str) -> str:
        """Create an API token and return it; only a hash of it is stored."""
        token, label = f"climassay_{random_secrets.token_urlsafe(32)}", " ".join(label.split())[:120] or "token"
        row = {"token": digest(token), "id": random_secrets.token_hex(6), "user": name, "label": label}
        self.database.execute(api_tokens.insert().values(made_at=self._clock(), **row))
        return token

    def tokens(self, name: str) -> list[ApiToken]:
        """Return the tokens of a user, newest first."""
        query = sa.select(api_tokens).where(api_tokens.c.user == name).order_by(api_tokens.c.made_at.desc())
        return [build_record(ApiToken, row) for row in self.database.rows(query)]

    def token_user(self, token: str) -> User | None:
        """Return the user of an API token, or None if it is invalid or revoked."""
        return self._owner(api_tokens, sa.and_(api_tokens.c.token == digest(token), api_tokens.c.revoked_at.is_(None)))

    def revoke_token(self, name: str, token_id: str) -> None:
        """Revoke a token of a user.

        Raises:
            InputError: The user has no such token.
        """
        is_valid = sa.and_(api_tokens.c.user == name, api_tokens.c.id == token_id, api_tokens.c.revoked_at.is_(None))
        revoke = api_tokens.update().where(is_valid).values(revoked_at=self._clock())
        if not self.database.execute(revoke):
            raise InputError("There is no such token.")

    # Keys

    def secret(self, name: str) -> bytes:
        """Return a random key of this installation (32 bytes); it is created at the first use and stored."""
        row = {"name": name, "value": random_secrets.token_bytes(32)}
        self.database.write(lambda connection: self.database.insert_new(connection, secrets, [row]))
        return bytes(self.database.scalar(sa.select(secrets.c.value).where(secrets.c.name == name)))

    def _owner(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> User | None:
        query = sa.select(users).join(table, table.c.user == users.c.name).where(condition, users.c.active)
        row = self.database.first(query)
        return None if row is None else _user(row)


def digest(secret: str) -> bytes:
    """Return the hash of a token; tokens are long and random, so that a plain hash is safe."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _user(row: sa.Row[Any]) -> User:
    return build_record(User, row, has_password=row.password is not None)


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise InputError(f"There is no role {role!r}: choose one of {', '.join(ROLES)}.")


def _store_password(connection: sa.Connection, name: str, hashed: str, keep_session: str | None = None) -> None:
    connection.execute(users.update().where(users.c.name == name).values(password=hashed))
    ended_sessions = sessions.c.user == name
    if keep_session is not None:
        ended_sessions = sa.and_(ended_sessions, sessions.c.token != digest(keep_session))
    connection.execute(sessions.delete().where(ended_sessions))


def hashed_password(name: str, password: str) -> str:
    """Return the hash of a new password.

    Raises:
        InputError: The password is too short, too long or too easy.
    """
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise InputError(f"A password must have {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters.")
    if password.lower() == name or len(set(password)) < 4:
        raise InputError("This password is too easy to guess.")
    return str(password_hasher().hash(password))


def is_password(hashed: str | None, password: str) -> bool:
    """Return whether a password has a hash; takes the same time if the hash is None."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        password_hasher().verify(hashed or _placeholder_hash(), password[:MAX_PASSWORD_LENGTH])
    except (VerificationError, InvalidHashError):
        return False
    return bool(hashed)


@cache
def password_hasher() -> Any:
    """Return an Argon2id hasher with the parameters of RFC 9106 for machines with little memory."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _placeholder_hash() -> str:
    """Return the hash that passwords of unknown users are compared with."""
    return str(password_hasher().hash(random_secrets.token_urlsafe(16)))
