"""People and what lets them in: passwords, sessions, one-time links, tokens for programs."""

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
from climassay.records.database import Database, record_of

Role = Literal["annotator", "adjudicator", "admin"]
ROLES: tuple[Role, ...] = ("annotator", "adjudicator", "admin")
"""Each may do what those before it may."""
Purpose = Literal["enter", "invitation", "password"]

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,39}")
ATTEMPTS = 5
"""Wrong passwords for one name from one address within the window, until its next ones are not even looked at."""
ATTEMPTS_BY_ADDRESS = 30
ATTEMPTS_BY_DEVICE = 10
"""Wrong passwords from a browser that the account was entered from before; nobody else's count against it."""
ATTEMPTS_WITHOUT_DELAY = 20
"""Wrong passwords for one name from anywhere, until an attempt has to wait; it is looked at all the same."""
LONGEST_DELAY = 8.0
"""Seconds of that wait, which begins with one and doubles with every further wrong password."""
WINDOW_SECONDS = 15 * 60.0
LINK_HOURS: dict[Purpose, float] = {"enter": 24.0, "invitation": 7 * 24.0, "password": 24.0}


# Secrets are kept as hashes only.
metadata = sa.MetaData()

users = sa.Table(
    "web_users",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("shown", sa.String(120), nullable=False),
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
    """Somebody with an account."""

    name: str
    role: Role
    shown: str
    """As others see it."""
    active: bool
    made_at: float
    """Seconds since 1970-01-01 UTC."""
    has_password: bool

    def may(self, role: Role) -> bool:
        """Whether what a role may do is allowed."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Link:
    """A one-time link that is still good."""

    user: User
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of a user; what it is itself is shown once and not kept."""

    id: str
    label: str
    made_at: float
    revoked_at: float | None


class AccountStore:
    """The accounts of one workspace.

    ``now`` is the clock, in seconds since 1970-01-01 UTC.
    """

    def __init__(self, database: Database, now: Callable[[], float] = time.time) -> None:
        self.database = database
        self._now = now
        database.create_tables(metadata)

    # People

    def users(self) -> list[User]:
        """Everybody, those removed included, by name."""
        return [_user(row) for row in self.database.rows(sa.select(users).order_by(users.c.name))]

    def user(self, name: str) -> User:
        """One of them.

        Raises:
            InputError: There is nobody of that name.
        """
        row = self.database.first(sa.select(users).where(users.c.name == name))
        if row is None:
            raise InputError(f"There is no user {name!r}.")
        return _user(row)

    def add(self, name: str, role: Role = "annotator", shown: str = "") -> User:
        """Add somebody, who gets in by an invitation or a password set for them.

        Raises:
            InputError: The name cannot be used or is taken, or there is no such role.
        """
        if not NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot be a user name: 2 to 40 lower-case letters, digits, dots, dashes, underscores."
            )
        _check_role(role)
        row = {"name": name, "shown": " ".join(shown.split())[:120] or name, "role": role, "made_at": self._now()}

        def work(connection: sa.Connection) -> bool:
            if connection.execute(sa.select(users.c.name).where(users.c.name == name)).first() is not None:
                return False
            connection.execute(users.insert().values(active=True, **row))
            return True

        if not self.database.write(work):
            raise InputError(f"There is already a user {name!r}.")
        return self.user(name)

    def change(
        self, name: str, *, role: Role | None = None, shown: str | None = None, active: bool | None = None
    ) -> User:
        """Change somebody's role, name or being let in at all; who is shut out is signed out everywhere.

        Raises:
            InputError: There is nobody of that name, no such role, or no admin would be left.
        """
        before = self.user(name)
        if role is not None:
            _check_role(role)
        given = {"role": role, "shown": shown, "active": active}
        values = {key: value for key, value in given.items() if value is not None}

        def work(connection: sa.Connection) -> None:
            connection.execute(users.update().where(users.c.name == name).values(values))
            admins = sa.select(sa.func.count()).where(users.c.role == "admin", users.c.active)
            if connection.execute(admins).scalar_one() == 0 and before.role == "admin":
                raise InputError("There must be at least one admin: make somebody else an admin first.")
            if active is False:
                connection.execute(sessions.delete().where(sessions.c.user == name))
                connection.execute(links.delete().where(links.c.user == name))
                theirs = sa.and_(api_tokens.c.user == name, api_tokens.c.revoked_at.is_(None))
                connection.execute(api_tokens.update().where(theirs).values(revoked_at=self._now()))

        if values:
            self.database.write(work)
        return self.user(name)

    # Passwords

    def set_password(self, name: str, password: str, keep_session: str | None = None) -> None:
        """Set a password; all other sessions of the user end.

        Raises:
            InputError: It is too short or too long, or there is nobody of that name.
        """
        self.user(name)
        kept = hashed_password(name, password)
        self.database.write(lambda connection: _keep_password(connection, name, kept, keep_session))

    def check_password(self, name: str, password: str, address: str, device: str = "") -> User | None:
        """Who signs in; None for a wrong name or password, in the same time.

        No stranger can lock somebody out: wrong passwords count for the address that they come from, and those from
        elsewhere only make an attempt wait (:meth:`delay`). A browser that the account was entered from counts alone.

        Args:
            name: As typed.
            password: As typed.
            address: Where the request comes from, for the limit of attempts.
            device: What :meth:`device` gave to this browser; empty or invented where it did not.

        Raises:
            TooManyAttempts: For this name from this address, or from this address, or from this browser.
        """
        name = name.strip().lower()
        row = self.database.first(sa.select(users).where(users.c.name == name))
        kept = row.password if row is not None and row.active else None
        subjects: dict[bytes, int | None]
        if self._knows(device, name, kept):
            subjects = {digest(f"device {device}"): ATTEMPTS_BY_DEVICE}
        else:
            subjects = {
                digest(f"name {name} from {address}"): ATTEMPTS,
                digest(f"address {address}"): ATTEMPTS_BY_ADDRESS,
                digest(f"name {name}"): None,
            }
        attempt = self._begin_attempt(subjects)
        fitting = password_fits(kept, password)  # also for nobody, so that it takes as long
        if row is None or not fitting:
            return None
        own = [subject for subject, most in subjects.items() if most != ATTEMPTS_BY_ADDRESS and most is not None]
        forgiven = sa.or_(failures.c.subject.in_(own), failures.c.id.in_(attempt))
        self.database.execute(failures.delete().where(forgiven))
        return _user(row)

    def delay(self, name: str, device: str = "") -> float:
        """Seconds that an attempt waits before it is looked at, because many wrong passwords came for its name."""
        name = name.strip().lower()
        since = sa.and_(failures.c.subject == digest(f"name {name}"), failures.c.at > self._now() - WINDOW_SECONDS)
        over = self.database.scalar(sa.select(sa.func.count()).where(since)) - ATTEMPTS_WITHOUT_DELAY
        kept = self.database.scalar(sa.select(users.c.password).where(users.c.name == name))
        return 0.0 if over < 0 or self._knows(device, name, kept) else min(LONGEST_DELAY, 2.0 ** min(over, 10))

    def device(self, name: str) -> str:
        """What a browser keeps from which an account was entered; a new password of the account makes it worthless."""
        kept = self.database.scalar(sa.select(users.c.password).where(users.c.name == name))
        nonce = random_secrets.token_urlsafe(12)
        return f"{nonce}.{self._device_mark(nonce, name, kept or '')}"

    def _knows(self, device: str, name: str, kept: str | None) -> bool:
        nonce, _, mark = device.partition(".")
        if not mark or not kept:
            return False
        return hmac.compare_digest(mark.encode("utf-8", "replace"), self._device_mark(nonce, name, kept).encode())

    def _device_mark(self, nonce: str, name: str, kept: str) -> str:
        said = f"{nonce}|{name}|{kept}".encode("utf-8", "replace")
        return hmac.new(self.secret("device"), said, hashlib.sha256).hexdigest()

    def _begin_attempt(self, subjects: Mapping[bytes, int | None]) -> list[int]:
        """Count an attempt as a failure before its password is looked at, so that guesses at one moment count, too.

        Args:
            subjects: What is counted, each with how many failures are borne; None bears any number.

        Returns:
            The rows of the attempt, to be taken back where it succeeds.
        """
        now = self._now()

        def begin(connection: sa.Connection) -> list[int]:
            connection.execute(failures.delete().where(failures.c.at < now - WINDOW_SECONDS))
            rows = [{"subject": subject, "at": now} for subject in sorted(subjects)]
            made = [connection.execute(failures.insert().values(row)).inserted_primary_key for row in rows]
            return [int(key[0]) for key in made if key is not None]

        attempt = self.database.write(begin)
        # Whoever commits later sees who committed before, so that no more pass than are borne.
        since = failures.c.at > now - WINDOW_SECONDS
        if any(
            self.database.scalar(sa.select(sa.func.count()).where(failures.c.subject == subject, since)) > most
            for subject, most in subjects.items()
            if most is not None
        ):
            self.database.execute(failures.delete().where(failures.c.id.in_(attempt)))
            raise TooManyAttempts(f"Too many attempts: wait {WINDOW_SECONDS / 60:.0f} minutes, then try again.")
        return attempt

    # Sessions

    def begin_session(self, name: str, days: float) -> str:
        """A new session; gives the token for the cookie, of which only a hash is kept."""
        token, now = random_secrets.token_urlsafe(32), self._now()
        row = {"token": digest(token), "user": name, "made_at": now, "expires_at": now + days * 86400}

        def work(connection: sa.Connection) -> None:
            connection.execute(sessions.delete().where(sessions.c.expires_at < now))
            connection.execute(sessions.insert().values(row))

        self.database.write(work)
        return token

    def session_user(self, token: str) -> User | None:
        """Who a session belongs to; None where it has ended."""
        return self._owner(sessions, sa.and_(sessions.c.token == digest(token), sessions.c.expires_at > self._now()))

    def end_session(self, token: str) -> None:
        """Sign out."""
        self.database.execute(sessions.delete().where(sessions.c.token == digest(token)))

    # One-time links

    def make_link(self, name: str, purpose: Purpose) -> str:
        """A token for a one-time link; earlier ones of the same purpose no longer work.

        Raises:
            InputError: There is nobody of that name.
        """
        self.user(name)
        token, now = random_secrets.token_urlsafe(24), self._now()
        until = now + LINK_HOURS[purpose] * 3600
        row = {"token": digest(token), "user": name, "purpose": purpose, "expires_at": until}

        def work(connection: sa.Connection) -> None:
            earlier = sa.and_(links.c.user == name, links.c.purpose == purpose)
            connection.execute(links.delete().where(sa.or_(earlier, links.c.expires_at < now)))
            connection.execute(links.insert().values(row))

        self.database.write(work)
        return token

    def link(self, token: str) -> Link | None:
        """What a link is for; None where it is not good or was used."""
        good = sa.and_(links.c.token == digest(token), links.c.expires_at > self._now(), links.c.used_at.is_(None))
        query = sa.select(users, links.c.purpose).join(links, links.c.user == users.c.name)
        row = self.database.first(query.where(good, users.c.active))
        return None if row is None else Link(_user(row), row.purpose)

    def use_link(self, token: str, password: str | None = None) -> Link | None:
        """Use a link up; of two requests at the same time one gets None, and changes nothing.

        Raises:
            InputError: The password cannot be used; the link is still good.
        """
        result = self.link(token)
        if result is None:
            return None
        name = result.user.name
        kept = None if password is None else hashed_password(name, password)
        unused = sa.and_(links.c.token == digest(token), links.c.used_at.is_(None))
        used = links.update().where(unused).values(used_at=self._now())

        def work(connection: sa.Connection) -> bool:
            if not connection.execute(used).rowcount:
                return False
            if kept is not None:
                _keep_password(connection, name, kept)
            return True

        return result if self.database.write(work) else None

    # Tokens for programs

    def make_token(self, name: str, label: str) -> str:
        """A token for the API; shown once."""
        token, label = f"climassay_{random_secrets.token_urlsafe(32)}", " ".join(label.split())[:120] or "token"
        row = {"token": digest(token), "id": random_secrets.token_hex(6), "user": name, "label": label}
        self.database.execute(api_tokens.insert().values(made_at=self._now(), **row))
        return token

    def tokens(self, name: str) -> list[ApiToken]:
        """Those of a user, the newest first."""
        query = sa.select(api_tokens).where(api_tokens.c.user == name).order_by(api_tokens.c.made_at.desc())
        return [record_of(ApiToken, row) for row in self.database.rows(query)]

    def token_user(self, token: str) -> User | None:
        """Whom a program works for; None where the token is not good."""
        return self._owner(api_tokens, sa.and_(api_tokens.c.token == digest(token), api_tokens.c.revoked_at.is_(None)))

    def revoke_token(self, name: str, token_id: str) -> None:
        """End a token of a user.

        Raises:
            InputError: The user has no such token.
        """
        ours = sa.and_(api_tokens.c.user == name, api_tokens.c.id == token_id, api_tokens.c.revoked_at.is_(None))
        ended = api_tokens.update().where(ours).values(revoked_at=self._now())
        if not self.database.execute(ended):
            raise InputError("There is no such token.")

    # Keys

    def secret(self, name: str) -> bytes:
        """A random key of this installation, the same at every start; 32 bytes."""
        row = {"name": name, "value": random_secrets.token_bytes(32)}
        self.database.write(lambda connection: self.database.insert_new(connection, secrets, [row]))
        return bytes(self.database.scalar(sa.select(secrets.c.value).where(secrets.c.name == name)))

    def _owner(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> User | None:
        query = sa.select(users).join(table, table.c.user == users.c.name).where(condition, users.c.active)
        row = self.database.first(query)
        return None if row is None else _user(row)


def digest(secret: str) -> bytes:
    """What is kept of a token: it is random and long, so that a plain hash cannot be turned back."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _user(row: sa.Row[Any]) -> User:
    return record_of(User, row, has_password=row.password is not None)


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise InputError(f"There is no role {role!r}: choose one of {', '.join(ROLES)}.")


def _keep_password(connection: sa.Connection, name: str, kept: str, keep_session: str | None = None) -> None:
    connection.execute(users.update().where(users.c.name == name).values(password=kept))
    others = sessions.c.user == name
    if keep_session is not None:
        others = sa.and_(others, sessions.c.token != digest(keep_session))
    connection.execute(sessions.delete().where(others))


def hashed_password(name: str, password: str) -> str:
    """What is kept of a new password.

    Raises:
        InputError: It is too short, too long or too easy.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"A password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")
    if password.lower() == name or len(set(password)) < 4:
        raise InputError("This password is too easy to guess.")
    return str(password_hasher().hash(password))


def password_fits(kept: str | None, password: str) -> bool:
    """Whether a password is the one that was kept; where nothing was kept, the answer takes as long."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        password_hasher().verify(kept or _nobodys(), password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False
    return bool(kept)


@cache
def password_hasher() -> Any:
    """Argon2id with the parameters of RFC 9106 for machines with little memory."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _nobodys() -> str:
    """What the password of nobody is compared with."""
    return str(password_hasher().hash(random_secrets.token_urlsafe(16)))
