"""What can go wrong between us and a model's server, in perdure's words. The one place that knows.

The server's own words stay out of the messages: some servers quote the text they were sent, some the key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import TYPE_CHECKING

from perdure.domain.errors import InvalidInput, PerdureError, Unavailable, Unsupported

if TYPE_CHECKING:
    import httpx2

RETRY_AFTER_MAX_S = 3600.0
BUSY = {408, 425, 429, 500, 502, 503, 504}
MAY_BE_LENGTH = {400, 413, 422}
PARAMS = ("max_tokens", "temperature", "response_format")
"""Of a chat request, what servers may not take."""
REASONS = ("content_filter", "content_policy_violation", "context_length_exceeded", "exceed_context_size_error")
REMEDY = {
    401: "it wants another API key",
    403: "it wants another API key",
    404: "the model or the path is unknown to it; load the model there, or correct the URL",
    405: "the path is for something else; correct the URL",
}


class Passing(Unavailable):
    """May pass while the call still waits; `after_s` is what the server asked for, if it asked for something."""

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=1.0 if after_s is None else after_s)
        self.after_s = after_s


class Late(Unavailable):
    """The deadline of the call has passed."""


class Refused(InvalidInput):
    """The server will not take this request.

    `may_be_length` says whether a shorter text could help; `param` and `reason` are what the server says is wrong, if that
    is one of the words we know.
    """

    def __init__(self, message: str, *, status: int, param: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.may_be_length = status in MAY_BE_LENGTH
        self.param = param
        self.reason = reason


# By class: what happened, and whether it may pass while the call still waits. A timeout has used up that time.
MEANING: dict[str, tuple[type[PerdureError], str, bool]] = {
    "ConnectError": (Unavailable, "no connection; check the URL and that the server runs", True),
    "ConnectTimeout": (Unavailable, "no connection in time; check the URL and the network", True),
    "PoolTimeout": (Unavailable, "all connections are in use", True),
    "ReadError": (Unavailable, "the connection broke", True),
    "WriteError": (Unavailable, "the connection broke", True),
    "CloseError": (Unavailable, "the connection broke", True),
    "RemoteProtocolError": (Unavailable, "the connection broke, or the answer is no HTTP", True),
    "ProxyError": (Unavailable, "the proxy gave no connection; check its settings", True),
    "ReadTimeout": (Late, "no answer within the deadline; raise it, or use a faster model", False),
    "WriteTimeout": (Late, "the server did not take the question within the deadline", False),
    "DecodingError": (Unavailable, "the answer cannot be unpacked", False),
    "UnsupportedProtocol": (InvalidInput, "the URL must begin with http:// or https://", False),
    "InvalidURL": (InvalidInput, "the URL cannot be read; correct it", False),
    "LocalProtocolError": (InvalidInput, "the request cannot be sent; check the URL and the API key", False),
    "TooManyRedirects": (InvalidInput, "it leads elsewhere; name the final URL", False),
    "HTTPError": (Unavailable, "the exchange failed", False),
}


def http_library() -> ModuleType:
    try:
        import httpx2
    except ImportError as error:
        raise Unsupported(
            "models over HTTP need httpx2; install `perdure[models]`, or use the built-in embedder and the rules"
        ) from error
    return httpx2


@contextmanager
def translated(who: str) -> Iterator[None]:
    """Everything the client raises inside leaves as one of our errors, with the cause kept where it quotes nothing of ours."""
    httpx2 = http_library()
    try:
        yield
        return
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        ours = in_our_words(error, who)
        cause = None if isinstance(ours, InvalidInput) else error
    # What cannot be sent is quoted by the client, headers and all; so that error is left behind, even as a context.
    raise ours from cause


def in_our_words(error: Exception, who: str) -> PerdureError:
    kind, words, passing = next(
        (MEANING[one.__name__] for one in type(error).__mro__ if one.__name__ in MEANING), MEANING["HTTPError"]
    )
    message = f"{who}: {words}"
    return Passing(message) if passing else kind(message)


def check_status(reply: httpx2.Response, who: str, said: Callable[[], object]) -> None:
    """Return for 200; anything else is `Passing` or `Refused`. `said` reads the server's own words, for a few codes in them."""
    status = reply.status_code
    if status == 200:
        return
    if status in BUSY or status > 500:
        raise Passing(f"{who} is busy or ill (HTTP {status})", after_s=_wanted_pause(reply))
    remedy = REMEDY.get(
        status, "it leads elsewhere; name the final URL" if 300 <= status < 400 else "it does not take the request"
    )
    param, reason = _codes(said()) if status in MAY_BE_LENGTH else ("", "")
    raise Refused(f"{who}: {remedy} (HTTP {status})", status=status, param=param, reason=reason)


def unreadable(who: str, why: str) -> Unavailable:
    return Unavailable(f"the answer of {who} is not used: {why}; check that the URL and the model are meant")


def late(who: str, deadline_s: float) -> Late:
    return Late(f"{who} did not answer within {deadline_s:g} s; raise the deadline, or use a faster model")


def _codes(said: object) -> tuple[str, str]:
    """Which of the parameters and reasons that we know a server names in an error in OpenAI's form."""
    error = said.get("error") if isinstance(said, dict) else None
    if not isinstance(error, dict):
        return "", ""
    param, reason = error.get("param"), error.get("code")
    inner = error.get("innererror")
    if isinstance(inner, dict) and inner.get("code") == "ResponsibleAIPolicyViolation":
        reason = "content_filter"
    return param if param in PARAMS else "", reason if reason in REASONS else ""


def _wanted_pause(reply: httpx2.Response) -> float | None:
    """Retry-After, in seconds from now; it comes as seconds or as a date."""
    value = reply.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), RETRY_AFTER_MAX_S)
    try:
        wanted = parsedate_to_datetime(value).timestamp() - time.time()
    except ValueError:
        return None
    return min(max(wanted, 0.0), RETRY_AFTER_MAX_S)
