"""Accounts of users: passwords, sessions, one-time links, and API tokens."""

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
"""Roles in ascending order of permissions; each role includes the permissions of the roles before it."""
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
"""Lowest role that may perform each action; permission checks name an action, never a role."""
Purpose = Literal["enter", "invitation", "password"]

MIN_PASSWORD_LENGTH = 10
MAX_PASSWORD_LENGTH = 1000
USER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,39}")
MAX_ATTEMPTS = 5
"""Maximum number of failed attempts to sign in with a name from one address within :data:`WINDOW_SECONDS`."""
MAX_ATTEMPTS_PER_ADDRESS = 30
MAX_ATTEMPTS_PER_DEVICE = 10
"""Maximum number of failed attempts to sign in from a browser in which the user has signed in before."""
MAX_ATTEMPTS_WITHOUT_DELAY = 20
"""Maximum number of failed attempts to sign in with a name, from all addresses, before further attempts are delayed."""
MAX_DELAY = 8.0
"""Maximum delay of an attempt to sign in, in seconds. The delay starts at 1 and doubles with each failed attempt."""
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
    """Error for an attempt to sign in after too many wrong passwords."""


@dataclass(frozen=True, slots=True)
class User:
    """User of the web pages."""

    name: str
    role: Role
    display_name: str
    """Name shown to other users."""
    active: bool
    made_at: float
    """Creation time in seconds since 1970-01-01 UTC."""
    has_password: bool

    def may(self, action: Action) -> bool:
        """Return whether the user's role permits an action, according to :data:`RIGHTS`."""
        return ROLES.index(self.role) >= ROLES.index(RIGHTS[action])


@dataclass(frozen=True, slots=True)
class Link:
    """Valid one-time link with which a user sets a password or signs in."""

    user: User
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class ApiToken:
    """API token of a user, without the secret itself."""

    id: str
    label: str
    made_at: float
    revoked_at: float | None


class AccountStore:
    """Accounts, sessions, one-time links and API tokens of a workspace.

    Args:
        database: Database that contains the accounts.
        clock: Function that returns the current time in seconds since 1970-01-01 UTC.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.database = database
        self._clock = clock
        database.create_tables(metadata)

    # People

    def users(self) -> list[User]:
        """Return all users sorted by name, including blocked ones."""
        return [_user(row) for row in self.database.rows(sa.select(users).order_by(users.c.name))]

    def user(self, name: str) -> User:
        """Return the user with the given name.

        Raises:
            InputError: The user does not exist.
        """
        row = self.database.first(sa.select(users).where(users.c.name == name))
        if row is None:
            raise InputError(f"There is no user {name!r}.")
        return _user(row)

    def add(self, name: str, role: Role = "annotator", display_name: str = "") -> User:
        """Add a user without a password; an invitation link or :meth:`set_password` enables the first sign-in.

        Raises:
            InputError: The name is invalid or taken, or the role does not exist.
        """
        if not USER_NAME.fullmatch(name):
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
            InputError: The user or the role does not exist, or no admin would be left.
        """
        user = self.user(name)
        if role is not None:
            _check_role(role)
        changes = {"role": role, "display_name": display_name, "active": active}
        values = {key: value for key, value in changes.items() if value is not None}

        def write(connection: sa.Connection) -> None:
            connection.execute(users.update().where(users.c.name == name).values(values))
            admins = sa.select(sa.func.count()).where(users.c.role == "admin", users.c.active)
            if connection.execute(admins).scalar_one() == 0 and user.may("manage users"):
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
        """Set a user's password and end the user's sessions, except the session with the token ``keep_session``.

        Raises:
            InputError: The password is too short, too long or too easy to guess, or the user does not exist.
        """
        self.user(name)
        password_hash = hash_password(name, password)
        self.database.write(lambda connection: _store_password(connection, name, password_hash, keep_session))

    def check_password(self, name: str, password: str, address: str, device: str = "") -> User | None:
        """Return the user with the given name and password, or None if either is wrong.

        The duration of the check does not reveal which of them is wrong. Strangers cannot lock a user out: only further
        attempts from the same address are refused, and attempts from other addresses are delayed
        (:meth:`sign_in_delay`). A browser in which the user has signed in before has a separate limit.

        Args:
            name: Submitted user name.
            password: Submitted password.
            address: IP address of the request, for the limit of attempts.
            device: Device cookie from :meth:`make_device_cookie`; empty if the browser has none.

        Raises:
            TooManyAttempts: Too many wrong passwords for this name and address, this address, or this browser.
        """
        name = name.strip().lower()
        row = self.database.first(sa.select(users).where(users.c.name == name))
        password_hash = row.password if row is not None and row.active else None
        limits_by_hash: dict[bytes, int | None]
        if self._is_known_device(device, name, password_hash):
            limits_by_hash = {digest(f"device {device}"): MAX_ATTEMPTS_PER_DEVICE}
        else:
            limits_by_hash = {
                digest(f"name {name} from {address}"): MAX_ATTEMPTS,
                digest(f"address {address}"): MAX_ATTEMPTS_PER_ADDRESS,
                digest(f"name {name}"): None,
            }
        attempt_ids = self._record_attempt(limits_by_hash)
        is_correct = matches_hash(password_hash, password)  # also computed for unknown names, so that it takes as long
        if row is None or not is_correct:
            return None
        cleared_hashes = [
            subject_hash
            for subject_hash, max_attempts in limits_by_hash.items()
            if max_attempts != MAX_ATTEMPTS_PER_ADDRESS and max_attempts is not None
        ]
        is_deletable = sa.or_(failures.c.subject.in_(cleared_hashes), failures.c.id.in_(attempt_ids))
        self.database.execute(failures.delete().where(is_deletable))
        return _user(row)

    def sign_in_delay(self, name: str, device: str = "") -> float:
        """Return the delay of an attempt to sign in, in seconds, which depends on failed attempts for the name.

        Browsers with a valid device cookie are never delayed.
        """
        name = name.strip().lower()
        query = sa.select(sa.func.count()).where(
            failures.c.subject == digest(f"name {name}"), failures.c.at > self._clock() - WINDOW_SECONDS
        )
        n_excess: int = self.database.scalar(query) - MAX_ATTEMPTS_WITHOUT_DELAY
        password_hash = self.database.scalar(sa.select(users.c.password).where(users.c.name == name))
        if n_excess < 0 or self._is_known_device(device, name, password_hash):
            return 0.0
        return min(MAX_DELAY, 2.0 ** min(n_excess, 10))

    def make_device_cookie(self, name: str) -> str:
        """Return a cookie that marks a browser in which the user has signed in.

        A change of the password invalidates the cookie.
        """
        password_hash = self.database.scalar(sa.select(users.c.password).where(users.c.name == name))
        nonce = random_secrets.token_urlsafe(12)
        return f"{nonce}.{self._sign_device(nonce, name, password_hash or '')}"

    def _is_known_device(self, device: str, name: str, password_hash: str | None) -> bool:
        nonce, _, signature = device.partition(".")
        if not signature or not password_hash:
            return False
        return hmac.compare_digest(
            signature.encode("utf-8", "replace"), self._sign_device(nonce, name, password_hash).encode()
        )

    def _sign_device(self, nonce: str, name: str, password_hash: str) -> str:
        signed_text = f"{nonce}|{name}|{password_hash}".encode("utf-8", "replace")
        return hmac.new(self.secret_key("device"), signed_text, hashlib.sha256).hexdigest()

    def _record_attempt(self, limits_by_hash: Mapping[bytes, int | None]) -> list[int]:
        """Record an attempt as failed before its password is checked, so that simultaneous attempts count as well.

        ``limits_by_hash`` has the maximum number of failures, or None for no maximum, by the hash of a name, address or
        device. The ids of the recorded rows are returned; the caller deletes these rows if the attempt succeeds.

        Raises:
            TooManyAttempts: A maximum is exceeded.
        """
        now = self._clock()

        def insert(connection: sa.Connection) -> list[int]:
            connection.execute(failures.delete().where(failures.c.at < now - WINDOW_SECONDS))
            rows = [{"subject": subject, "at": now} for subject in sorted(limits_by_hash)]
            keys = [connection.execute(failures.insert().values(row)).inserted_primary_key for row in rows]
            return [int(key[0]) for key in keys if key is not None]

        attempt_ids = self.database.write(insert)
        # Counted after the commit, so that of simultaneous attempts no more than the maximum succeed.
        n_recent = sa.select(sa.func.count()).where(failures.c.at > now - WINDOW_SECONDS)
        if any(
            self.database.scalar(n_recent.where(failures.c.subject == subject)) > max_attempts
            for subject, max_attempts in limits_by_hash.items()
            if max_attempts is not None
        ):
            self.database.execute(failures.delete().where(failures.c.id.in_(attempt_ids)))
            raise TooManyAttempts(f"Too many attempts: wait {WINDOW_SECONDS / 60:.0f} minutes, then try again.")
        return attempt_ids

    # Sessions

    def begin_session(self, name: str, days: float) -> str:
        """Begin a session of ``days`` days and return its token for the cookie; only the token's hash is stored."""
        token, now = random_secrets.token_urlsafe(32), self._clock()
        row = {"token": digest(token), "user": name, "made_at": now, "expires_at": now + days * 86400}

        def write(connection: sa.Connection) -> None:
            connection.execute(sessions.delete().where(sessions.c.expires_at < now))
            connection.execute(sessions.insert().values(row))

        self.database.write(write)
        return token

    def session_user(self, token: str) -> User | None:
        """Return the user of the session with the given token; None if the session does not exist or has expired."""
        is_valid = sa.and_(sessions.c.token == digest(token), sessions.c.expires_at > self._clock())
        return self._find_owner(sessions, is_valid)

    def end_session(self, token: str) -> None:
        """End the session with the given token."""
        self.database.execute(sessions.delete().where(sessions.c.token == digest(token)))

    # One-time links

    def make_link(self, name: str, purpose: Purpose) -> str:
        """Create a one-time link and return its token. Delete the user's earlier links for the same purpose.

        Raises:
            InputError: The user does not exist.
        """
        self.user(name)
        token, now = random_secrets.token_urlsafe(24), self._clock()
        expires_at = now + LINK_HOURS[purpose] * 3600
        row = {"token": digest(token), "user": name, "purpose": purpose, "expires_at": expires_at}

        def write(connection: sa.Connection) -> None:
            is_earlier_link = sa.and_(links.c.user == name, links.c.purpose == purpose)
            connection.execute(links.delete().where(sa.or_(is_earlier_link, links.c.expires_at < now)))
            connection.execute(links.insert().values(row))

        self.database.write(write)
        return token

    def find_link(self, token: str) -> Link | None:
        """Return the one-time link with the given token, or None if it is invalid, expired or used."""
        query = sa.select(users, links.c.purpose).join(links, links.c.user == users.c.name)
        query = query.where(links.c.token == digest(token), links.c.expires_at > self._clock())
        row = self.database.first(query.where(links.c.used_at.is_(None), users.c.active))
        return None if row is None else Link(_user(row), row.purpose)

    def use_link(self, token: str, password: str | None = None) -> Link | None:
        """Mark a one-time link as used and return it. If a new password is given, set it for the user.

        Returns:
            The link; None if it is not valid, or if a simultaneous request has used it.

        Raises:
            InputError: The password is too short, too long or too easy to guess; the link remains valid.
        """
        link = self.find_link(token)
        if link is None:
            return None
        name = link.user.name
        password_hash = None if password is None else hash_password(name, password)
        is_unused = sa.and_(links.c.token == digest(token), links.c.used_at.is_(None))
        usage_update = links.update().where(is_unused).values(used_at=self._clock())

        def write(connection: sa.Connection) -> bool:
            if not connection.execute(usage_update).rowcount:
                return False
            if password_hash is not None:
                _store_password(connection, name, password_hash)
            return True

        return link if self.database.write(write) else None

    # Tokens for programs

    def make_token(self, name: str, label: str) -> str:
        """Create an API token for a user and return it; only its hash is stored."""
        token, label = f"climassay_{random_secrets.token_urlsafe(32)}", " ".join(label.split())[:120] or "token"
        row = {"token": digest(token), "id": random_secrets.token_hex(6), "user": name, "label": label}
        self.database.execute(api_tokens.insert().values(made_at=self._clock(), **row))
        return token

    def tokens(self, name: str) -> list[ApiToken]:
        """Return the API tokens of a user, newest first, including revoked ones."""
        query = sa.select(api_tokens).where(api_tokens.c.user == name).order_by(api_tokens.c.made_at.desc())
        return [build_record(ApiToken, row) for row in self.database.rows(query)]

    def token_user(self, token: str) -> User | None:
        """Return the user of an API token, or None if it is invalid or revoked."""
        is_valid = sa.and_(api_tokens.c.token == digest(token), api_tokens.c.revoked_at.is_(None))
        return self._find_owner(api_tokens, is_valid)

    def revoke_token(self, name: str, token_id: str) -> None:
        """Revoke an API token of a user.

        Raises:
            InputError: The user has no valid token with that id.
        """
        is_valid = sa.and_(api_tokens.c.user == name, api_tokens.c.id == token_id, api_tokens.c.revoked_at.is_(None))
        revoke = api_tokens.update().where(is_valid).values(revoked_at=self._clock())
        if not self.database.execute(revoke):
            raise InputError("There is no such token.")

    # Keys

    def secret_key(self, name: str) -> bytes:
        """Return the random key (32 bytes) with the given name, which is created and stored on first use."""
        row = {"name": name, "value": random_secrets.token_bytes(32)}
        self.database.write(lambda connection: self.database.insert_new(connection, secrets, [row]))
        return bytes(self.database.scalar(sa.select(secrets.c.value).where(secrets.c.name == name)))

    def _find_owner(self, table: sa.Table, condition: sa.ColumnElement[bool]) -> User | None:
        query = sa.select(users).join(table, table.c.user == users.c.name).where(condition, users.c.active)
        row = self.database.first(query)
        return None if row is None else _user(row)


def digest(secret: str) -> bytes:
    """Return the SHA-256 hash of a token. Random tokens, unlike passwords, need no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _user(row: sa.Row[Any]) -> User:
    return build_record(User, row, has_password=row.password is not None)


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise InputError(f"There is no role {role!r}: choose one of {', '.join(ROLES)}.")


def _store_password(connection: sa.Connection, name: str, password_hash: str, keep_session: str | None = None) -> None:
    connection.execute(users.update().where(users.c.name == name).values(password=password_hash))
    is_obsolete = sessions.c.user == name
    if keep_session is not None:
        is_obsolete = sa.and_(is_obsolete, sessions.c.token != digest(keep_session))
    connection.execute(sessions.delete().where(is_obsolete))


def hash_password(user_name: str, password: str) -> str:
    """Return the hash of a new password.

    Raises:
        InputError: The password is too short, too long or too easy to guess.
    """
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise InputError(f"A password must have {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters.")
    if password.lower() == user_name or len(set(password)) < 4:
        raise InputError("This password is too easy to guess.")
    return str(password_hasher().hash(password))


def matches_hash(password_hash: str | None, password: str) -> bool:
    """Return whether a password matches a hash; if the hash is None, return False after the same time."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        password_hasher().verify(password_hash or _placeholder_hash(), password[:MAX_PASSWORD_LENGTH])
    except (VerificationError, InvalidHashError):
        return False
    return bool(password_hash)


@cache
def password_hasher() -> Any:
    """Return an Argon2id hasher with the parameters of RFC 9106 for machines with little memory."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _placeholder_hash() -> str:
    """Return a hash for verifying passwords of unknown users, so that timing does not reveal valid names."""
    return str(password_hasher().hash(random_secrets.token_urlsafe(16)))
