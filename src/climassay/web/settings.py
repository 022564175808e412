"""How a server is set up."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from climassay.errors import InputError
from climassay.models import Generator
from climassay.session import ModelOptions
from climassay.workspace import Workspace

Public = Literal["nothing", "read", "check"]
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]", "::1")


class Networks:
    """Addresses and networks by commas, as in ``127.0.0.1, 10.0.0.0/8``; ``*`` is all of them.

    Raises:
        InputError: One is neither.
    """

    def __init__(self, written: str) -> None:
        parts = [part.strip() for part in written.split(",") if part.strip()]
        self.everything = "*" in parts
        try:
            self._networks = [ipaddress.ip_network(part, strict=False) for part in parts if part != "*"]
        except ValueError as error:
            raise InputError(f"Proxies are addresses or networks like 10.0.0.0/8, or *: {error}.") from None

    def __contains__(self, host: str) -> bool:
        """Whether an address is one of them."""
        if self.everything:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _load(name: str, workspace: Workspace, **own: Any) -> Generator:
    return ModelOptions(**own).open_model(name, workspace.root)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of ``climassay serve``."""

    host: str = "127.0.0.1"
    port: int = 8000
    address: str = ""
    """Where people reach the server, for example ``https://climassay.example.org`` or ``https://example.org/climassay``;
    empty: host and port."""
    public: Public = "nothing"
    """What is open to people without an account: ``nothing``, to ``read`` results, checks and the library, or to have
    claims ``check``-ed as well."""
    publisher: str = ""
    """Organisation named in published verdicts (ClaimReview)."""
    debates: tuple[Path, ...] = ()
    """Files that set up debates (``climassay factcheck init``); without one every collection is an advocate."""
    model: str = "local:smollm2"
    """Model of debates that no file sets up."""
    load: Callable[..., Generator] = _load
    """From the name of a model and the workspace to the model; a debate's own options are given as well."""
    upload_bytes: int = 200 * 2**20
    """Largest upload."""
    originals: bool = True
    """Whether uploaded files are kept, so that citations lead to the pages of a PDF."""
    form_bytes: int = 2**20
    """Largest body of any other request."""
    session_days: float = 14.0
    visitor_checks: int = 20
    """Claims and questions an hour that somebody without an account may have checked and answered."""
    proxies: str = "127.0.0.1,::1"
    """Addresses or networks of proxies, by commas, whose word on a visitor's address is taken; ``*``: of anybody."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        known = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
        if self.address and not (known and re.fullmatch(r"[\w/.~-]*", parts.path, re.ASCII)):
            raise InputError(
                "The address must look like https://climassay.example.org or https://example.org/climassay, "
                f"got {self.address!r}."
            )
        if min(self.upload_bytes, self.form_bytes, self.visitor_checks) < 1 or self.session_days <= 0:
            raise InputError("Limits of a server must be above 0.")
        Networks(self.proxies)

    @property
    def root(self) -> str:
        """The address, without a slash at its end."""
        if self.address:
            return self.address.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{self.port}"

    @property
    def prefix(self) -> str:
        """Path below which people reach the pages, as in ``/climassay``; empty at the top of a host."""
        return urlsplit(self.address).path.rstrip("/")

    @property
    def https(self) -> bool:
        """Whether people come by HTTPS, so that cookies may be bound to it."""
        return self.address.startswith("https://")

    @property
    def local(self) -> bool:
        """Whether only this machine reaches the server."""
        return self.host in LOCAL_HOSTS and not self.address

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names under which the server answers; others are refused, or a foreign page could reach a local server."""
        if self.host in ("0.0.0.0", "::") and not self.address:
            return ("*",)
        named = urlsplit(self.address).hostname
        return tuple(dict.fromkeys(host for host in (*LOCAL_HOSTS, self.host, named) if host))
