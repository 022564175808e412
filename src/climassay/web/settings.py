"""Settings of a server."""

import ipaddress
import re
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL, ModelOptions
from climassay.settings import settings

PublicAccess = Literal["nothing", "read"]
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]", "::1")


class Networks:
    """Set of IP addresses and networks.

    Args:
        text: Addresses and networks separated by commas, like ``127.0.0.1, 10.0.0.0/8``; ``*`` contains all.

    Raises:
        InputError: A part is neither an address nor a network.
    """

    def __init__(self, text: str) -> None:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        self.everything = "*" in parts
        try:
            self._networks = [ipaddress.ip_network(part, strict=False) for part in parts if part != "*"]
        except ValueError as error:
            raise InputError(f"Proxies are addresses or networks like 10.0.0.0/8, or *: {error}.") from None

    def __contains__(self, host: str) -> bool:
        """Return whether an IP address is in one of the networks; False for other host names."""
        if self.everything:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


@settings(subject="The server")
class ServerSettings:
    """Settings of ``climassay serve``."""

    host: str = "127.0.0.1"
    """IP address to listen on; 0.0.0.0 for all networks."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on; 0 for any free port."""
    address: str = ""
    """Public URL of the server if it is behind a proxy, for example https://example.org/climassay."""
    public: PublicAccess = "nothing"
    """Access without an account: nothing, or read (results, checks and library)."""
    publisher: str = ""
    """Organisation named in published verdicts."""
    debates: tuple[Path, ...] = ()
    """Debate configuration file; repeat to offer a choice. By default, each collection has an advocate."""
    model: str = DEFAULT_MODEL
    """Model for debates without a configuration file."""
    model_options: ModelOptions = field(default_factory=ModelOptions)
    """Options for reaching, loading and calling models."""
    upload_bytes: Annotated[int, Field(ge=1)] = 200 * 2**20
    """Maximum size of an upload in bytes."""
    originals: bool = True
    """Keep uploaded files, so that citations lead to pages of a PDF."""
    form_bytes: Annotated[int, Field(ge=1)] = 2**20
    """Maximum size, in bytes, of the body of a request that is not an upload."""
    session_days: Annotated[float, Field(gt=0)] = 14.0
    proxies: str = "127.0.0.1,::1"
    """IP addresses or networks of trusted proxies, separated by commas; * for any."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        is_address = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment
        if self.address and not (is_address and re.fullmatch(r"[\w/.~-]*", parts.path, re.ASCII)):
            raise InputError(
                "The address must look like https://climassay.example.org or https://example.org/climassay, "
                f"got {self.address!r}."
            )
        Networks(self.proxies)

    @property
    def root(self) -> str:
        """URL of the start page without the final slash: the public address or, by default, host and port."""
        if self.address:
            return self.address.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{self.port}"

    @property
    def prefix(self) -> str:
        """Path of the public address, below which all pages are, such as ``/climassay``; empty if there is none."""
        return urlsplit(self.address).path.rstrip("/")

    @property
    def https(self) -> bool:
        """Whether the public address uses HTTPS; cookies are then sent over HTTPS only."""
        return self.address.startswith("https://")

    @property
    def local(self) -> bool:
        """Whether the server can be reached from this machine only."""
        return self.host in LOCAL_HOSTS and not self.address

    @property
    def hosts(self) -> tuple[str, ...]:
        """Accepted values of the ``Host`` header; other requests are refused to prevent DNS rebinding."""
        if self.host in ("0.0.0.0", "::") and not self.address:
            return ("*",)
        public_host = urlsplit(self.address).hostname
        return tuple(dict.fromkeys(host for host in (*LOCAL_HOSTS, self.host, public_host) if host))
