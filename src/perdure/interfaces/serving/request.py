"""A request as the guard sees it: where it goes, and what its headers say. And how it is refused."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from perdure.domain.values import dataclass, field
from perdure.interfaces.serving.options import LOOPBACK_NAMES, is_address, is_loopback
from perdure.interfaces.serving.places import Places

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
MACHINE_PATHS = ("/v1", "/mcp", "/healthz", "/readyz", "/metrics", "/openapi.json")
"""What programs ask for. Everything else is the page's."""
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json", "/login", "/favicon.ico"})
HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
STATIC = "/static/"
FIELDS_MAX = 1_000
IMPORTS = re.compile("/v1/(users/[^/]+/)?import")
REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{8,64}")
# An id need not be secret. Asking the system for chance lets go of the interpreter, which a busy server waits to get back.
_PROCESS, _COUNT = secrets.token_hex(4), itertools.count()


class GuardRefusal(Exception):
    """The guard lets this request go no further."""

    def __init__(self, status: int, code: str, detail: str, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.reason = reason
        """A word for the metrics."""
        self.headers = dict(headers or {})


@dataclass(slots=True)
class IncomingRequest:
    scope: Any
    method: str
    path: str
    headers: dict[bytes, bytes] = field(default_factory=dict)
    hosts: int = 0
    authorizations: int = 0
    head_bytes: int = 0
    place: tuple[Places, str] | None = None
    """What it holds until it is answered, and as whom."""

    @classmethod
    def of(cls, scope: Any) -> IncomingRequest:
        asked = cls(scope, scope["method"], scope["path"])
        for name, value in scope["headers"]:
            asked.headers[name] = value
            asked.hosts += name == b"host"
            asked.authorizations += name == b"authorization"
            asked.head_bytes += len(name) + len(value)
        return asked

    @property
    def unsafe(self) -> bool:
        return self.method not in SAFE_METHODS

    @property
    def client(self) -> str:
        """Where it comes from."""
        client = self.scope.get("client")
        return "unknown" if client is None else network_of(str(client[0]))

    def under(self, prefix: str) -> bool:
        return self.path == prefix or self.path.startswith(prefix + "/")

    @property
    def web(self) -> bool:
        return not any(self.under(prefix) for prefix in MACHINE_PATHS)

    @property
    def open(self) -> bool:
        """Whether nobody need say who they are; those who do are still known."""
        return self.path in OPEN_PATHS or self.path.startswith(STATIC)

    @property
    def checks_health(self) -> bool:
        """Whether it only asks how the server is, which takes no place: it must be told also when all are taken."""
        return self.path in HEALTH_PATHS and not self.unsafe

    @property
    def at_import(self) -> bool:
        """Whether files are taken here; by which method, the route says."""
        return IMPORTS.fullmatch(self.path) is not None

    @property
    def importing(self) -> bool:
        """Whether it may bring as much as a whole store."""
        return self.method == "POST" and self.at_import

    @property
    def has_body(self) -> bool:
        return self.headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self.headers

    @property
    def content_type(self) -> str:
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")

    @property
    def from_elsewhere(self) -> bool:
        """Whether the one who asks need not be on this machine: by their address, or because somebody forwarded it."""
        client = self.scope.get("client")
        address = "" if client is None else str(client[0])
        if address not in LOOPBACK_NAMES and is_address(address) and not is_loopback(address):
            return True
        return any(name in self.headers for name in (b"x-forwarded-for", b"forwarded", b"x-real-ip"))

    @property
    def secure(self) -> bool:
        forwarded = self.headers.get(b"x-forwarded-proto", b"").strip().lower() == b"https"
        return bool(self.scope.get("scheme") == "https") or forwarded

    @property
    def wants_page(self) -> bool:
        return b"text/html" in self.headers.get(b"accept", b"")

    def request_id(self) -> str:
        """The caller's own, if it is a plain one."""
        given = self.headers.get(b"x-request-id", b"")
        return given.decode() if REQUEST_ID.fullmatch(given) else f"{_PROCESS}{next(_COUNT):08x}"


def network_of(address: str) -> str:
    """An address of IPv6 stands for the network that one host has to itself."""
    return ":".join(address.split(":")[:4]) if ":" in address else address


def form_of(body: bytes) -> dict[str, str]:
    """The fields of a form, the first of each name."""
    try:
        found = parse_qs(body.decode("latin-1"), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise GuardRefusal(400, "invalid_input", f"the form has more than {FIELDS_MAX} fields; send fewer", "form") from None
    return {name: values[0] for name, values in found.items()}
