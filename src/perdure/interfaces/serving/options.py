"""How a server is asked to behave. These are arguments of `perdure serve`, not settings: they concern one process."""

from __future__ import annotations

import ipaddress

from perdure.domain.errors import InvalidInput
from perdure.domain.values import dataclass, field

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - they are recognised here, not bound
RATE_LOOPBACK, RATE_ELSEWHERE = 5_000.0, 100.0
"""Requests a second of one caller, by default."""
MEBIBYTE = 1024 * 1024
HOSTS_MAX = 100


@dataclass(frozen=True, slots=True)
class Options:
    host: str = "127.0.0.1"
    """The address it listens at."""
    allow_hosts: tuple[str, ...] = ()
    """Further names that it is reached by."""
    token: str | None = field(default=None, repr=False)
    """What lets the person at this machine in; None: only API keys do."""
    no_auth: bool = False
    """Let everybody in who reaches loopback, other accounts of this machine included."""
    rate: float | None = None
    """Requests a second of one caller; None: generous on loopback, less elsewhere."""
    body_max_mb: float = 10.0
    tools: str = "default"
    """Which tools MCP offers."""
    user: str | None = None
    """Whose memory MCP is about, if neither key nor request names somebody."""

    def __post_init__(self) -> None:
        if self.no_auth and not self.on_loopback:
            raise InvalidInput(f"`no_auth` is for this machine alone, and `host` = {self.host!r:.60} is reached from others")
        if self.rate is not None and not 0 < self.rate <= 1_000_000:
            raise InvalidInput(f"`rate` = {self.rate} must be more than 0 and at most 1,000,000 requests a second")
        if not 0 < self.body_max_mb <= 1_000:
            raise InvalidInput(f"`body_max_mb` = {self.body_max_mb} must be more than 0 and at most 1,000")
        if len(self.allow_hosts) > HOSTS_MAX:
            raise InvalidInput(f"`allow_hosts` has {len(self.allow_hosts)} names, more than {HOSTS_MAX}; name fewer")
        for name in self.allow_hosts:
            if host_of(name.encode("ascii", "replace")) is None:
                raise InvalidInput(f"`allow_hosts` has {name!r:.60}, which is no host name; write e.g. memory.example.org")

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def rate_per_s(self) -> float:
        if self.rate is not None:
            return self.rate
        return RATE_LOOPBACK if self.on_loopback else RATE_ELSEWHERE

    @property
    def body_bytes_max(self) -> int:
        return int(self.body_max_mb * MEBIBYTE)

    def names(self) -> frozenset[str]:
        """The names that a request may say it is for."""
        asked = {host_of(name.encode()) or "" for name in (*self.allow_hosts, self.host)}
        return frozenset(asked | LOOPBACK_NAMES) - EVERYWHERE - {""}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address, as far as its name tells."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Whether it is an address, not a name: anyone who uses one has looked nothing up."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_of(value: bytes) -> str | None:
    """The host of a `Host` header, without its port; None if it is none."""
    try:
        text = value.decode("ascii").strip().lower()
    except UnicodeDecodeError:
        return None
    if text.startswith("["):
        host, closed, port = text[1:].partition("]")
        if not closed or not is_address(host) or (port and not _is_port(port)):
            return None
        return host
    if text.count(":") > 1:  # an address of IPv6 as people write it on a command line
        return text if is_address(text) else None
    host, colon, port = text.partition(":")
    if (colon and not _is_port(":" + port)) or not host or not all(char.isalnum() or char in "-._" for char in host):
        return None
    return host.removesuffix(".") or None


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isdigit() and len(text) < 7
