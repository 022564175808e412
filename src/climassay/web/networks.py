"""Addresses and networks, as one writes them into an option."""

import ipaddress

from climassay.errors import InputError


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
