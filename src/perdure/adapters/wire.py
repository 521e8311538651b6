"""The wire to a model's server: one question as JSON, one answer as JSON, within a deadline. Needs the extra `models`.

What the question and the answer mean is left to the embedders and chat models that use it. What can go wrong
on the way is told in our words.
"""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from perdure.domain.errors import InvalidInput, PerdureError, Unavailable, Unsupported
from perdure.domain.values import dataclass, field

if TYPE_CHECKING:
    import httpx2

    from perdure.domain.text.rules import Json

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


class TransientFailure(Unavailable):
    """May pass while the call still waits; `after_s` is what the server asked for, if it asked for something."""

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=1.0 if after_s is None else after_s)
        self.after_s = after_s


class DeadlinePassed(Unavailable):
    """The deadline of the call has passed."""


class RequestRefused(InvalidInput):
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
    "ReadTimeout": (DeadlinePassed, "no answer within the deadline; raise it, or use a faster model", False),
    "WriteTimeout": (DeadlinePassed, "the server did not take the question within the deadline", False),
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
    return TransientFailure(message) if passing else kind(message)


def check_status(reply: httpx2.Response, who: str, error_body: Callable[[], object]) -> None:
    """Return for 200; anything else is `TransientFailure` or `RequestRefused`.

    `error_body` reads what the server says of it, for a few codes in that.
    """
    status = reply.status_code
    if status == 200:
        return
    if status in BUSY or status > 500:
        raise TransientFailure(f"{who} is busy or ill (HTTP {status})", after_s=_wanted_pause(reply))
    remedy = REMEDY.get(
        status, "it leads elsewhere; name the final URL" if 300 <= status < 400 else "it does not take the request"
    )
    param, reason = _codes(error_body()) if status in MAY_BE_LENGTH else ("", "")
    raise RequestRefused(f"{who}: {remedy} (HTTP {status})", status=status, param=param, reason=reason)


def unreadable(who: str, why: str) -> Unavailable:
    return Unavailable(f"the answer of {who} is not used: {why}; check the URL and the model")


def late(who: str, deadline_s: float) -> DeadlinePassed:
    return DeadlinePassed(f"{who} did not answer within {deadline_s:g} s; raise the deadline, or use a faster model")


def _codes(body: object) -> tuple[str, str]:
    """Which of the parameters and reasons that we know a server names in an error in OpenAI's form."""
    error = body.get("error") if isinstance(body, dict) else None
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


RETRIES_MAX = 2
PAUSE_S = 0.25
"""The first pause is at most this long, the next twice that; chance spreads them, so that clients do not come in step."""
CONNECT_S = 5.0
ERROR_BYTES_MAX = 65_536
"""Of an answer that says no, so much is read for the codes in it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a server is, what its messages are called by, and its bounds. The key goes into a header and is shown nowhere."""

    what: str
    """`embedder` or `model`."""
    url: str
    api_key: str = field(default="", repr=False)
    reply_bytes_max: int = 4 * 1024 * 1024
    calls_max: int = 4
    """Questions under way at once; the others wait, and their waiting counts."""

    @property
    def who(self) -> str:
        return f"the {self.what} at {self.url}"


def check_address(what: str, base_url: str, model: str, api_key: str) -> None:
    """`InvalidInput` unless such a server can be asked. Neither is quoted: what stands before an @ is a password."""
    scheme, _, rest = base_url.partition("://")
    host = rest.partition("/")[0]
    wrong = not host or not base_url.isprintable() or any(char in base_url for char in "@?# ")
    if scheme not in ("http", "https") or wrong:
        raise InvalidInput(
            f"the {what}'s URL must be `http://HOST[:PORT]` or `https://…`, without a name, a password, a `?` or a `#`"
        )
    if not model or not model.isprintable():
        raise InvalidInput(f"the {what}'s model must have a name, such as `nomic-embed-text` or `qwen2.5:7b`")
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise InvalidInput(f"the {what}'s API key has characters that no header can carry; copy it again")


class AnswerStream(Protocol):
    """Reads an answer that comes in pieces."""

    def take(self, part: bytes) -> None:
        """More of it has come."""

    def whole(self) -> object:
        """The answer in the form that it has when it comes at once; None if it came in no pieces."""


class Wire:
    """Asks one server. Safe to share between threads; after a fork, the child connects anew."""

    def __init__(self, peer: Peer, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._peer = peer
        self._pause = pause
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._waiting: set[_Exchange] = set()
        self._opened: WeakSet[Any] = WeakSet()
        self._start_afresh()

    def __repr__(self) -> str:
        return f"Wire({self._peer.url!r})"

    def ask(
        self,
        question: Mapping[str, Json],
        *,
        until: float,
        deadline_s: float,
        stream: Callable[[], AnswerStream] | None = None,
    ) -> object:
        """The server's answer, parsed. Tries again where that can help, as long as the deadline (`until`) allows.

        `stream` makes what an answer that comes in pieces is read with; each try has its own.

        `DeadlinePassed` when it has passed; `TransientFailure` or another `Unavailable` when the exchange failed;
        `RequestRefused` when the server says that it will not.
        """
        body = json.dumps(question).encode()
        for retry in range(RETRIES_MAX):
            try:
                return self._exchange(body, until, deadline_s, stream)
            except TransientFailure as error:
                wait_s = PAUSE_S * 2**retry * random.random() if error.after_s is None else error.after_s
                if time.monotonic() + wait_s >= until:
                    raise
            self._pause(wait_s)
        return self._exchange(body, until, deadline_s, stream)

    def close(self) -> None:
        """Give the connections back; anyone who waits for an answer is told. It can be used again: it connects anew."""
        with self._lock:
            waiting = list(self._waiting)
        for one in waiting:
            one.break_off(Unavailable(f"{self._peer.who} was closed before it had answered"))
        self._cut_all()

    def _exchange(self, body: bytes, until: float, deadline_s: float, stream: Callable[[], AnswerStream] | None) -> object:
        """One question and its answer, in a thread that is left behind at the deadline.

        The client's timeouts count from byte to byte, and finding a host's address has none: a server that drips its
        headers would hold us for ever. The connection is cut, so that the thread ends; it gives its place back then.
        """
        slots = self._own_slots()
        if not slots.acquire(timeout=max(0.0, until - time.monotonic())):
            raise late(self._peer.who, deadline_s)
        if time.monotonic() >= until:
            slots.release()
            raise late(self._peer.who, deadline_s)
        pieces = None if stream is None else stream()
        running = _Exchange(lambda exchange: self._post(body, until, deadline_s, exchange, pieces), slots)
        with self._lock:
            self._waiting.add(running)
        try:
            running.start()
            if not running.ended.wait(max(0.0, until - time.monotonic())):
                # If it went over a connection of an earlier question, nobody knows which: all are cut, the others ask again.
                if running.stream is None or not _shut(running.stream):
                    self._cut_all()
                raise late(self._peer.who, deadline_s)
            return running.answer()
        finally:
            with self._lock:
                self._waiting.discard(running)

    def _cut_all(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            opened = list(self._opened)
            self._opened.clear()
        for stream in opened:
            _shut(stream)
        if client is not None:
            client.close()

    def _post(self, body: bytes, until: float, deadline_s: float, exchange: _Exchange, pieces: AnswerStream | None) -> object:
        who, client, left_s = self._peer.who, self._connected(), max(0.001, until - time.monotonic())
        timeout = http_library().Timeout(left_s, connect=min(CONNECT_S, left_s))

        def read(reply: httpx2.Response, bytes_max: int, each: Callable[[bytes], None] | None = None) -> bytes:
            content = bytearray()
            for part in reply.iter_bytes():
                content += part
                if each is not None:
                    each(part)
                if time.monotonic() > until:
                    raise late(who, deadline_s)
                if len(content) > bytes_max:
                    raise unreadable(who, f"it has more than {bytes_max} bytes")
            return bytes(content)

        def error_body(reply: httpx2.Response) -> object:
            try:
                return _parsed(read(reply, ERROR_BYTES_MAX), who)
            except PerdureError:
                return None

        def watch(event: str, told: Mapping[str, Any]) -> None:
            if event.endswith(("connect_tcp.complete", "start_tls.complete")):
                exchange.stream = told["return_value"]
                self._opened.add(exchange.stream)

        sent = client.stream("POST", self._peer.url, content=body, timeout=timeout, extensions={"trace": watch})
        with translated(who), sent as reply:
            check_status(reply, who, lambda: error_body(reply))
            content = read(reply, self._peer.reply_bytes_max, None if pieces is None else pieces.take)
        whole = None if pieces is None else pieces.whole()
        return _parsed(content, who) if whole is None else whole

    def _connected(self) -> httpx2.Client:
        library = http_library()
        with self._lock:
            if self._client is None:
                headers = {"content-type": "application/json"}
                if self._peer.api_key:
                    headers["authorization"] = f"Bearer {self._peer.api_key}"
                # Proxies and certificates are the machine's business, so the client may read them from the environment.
                # Redirects are not followed: the key and the conversation go to no other host.
                client: httpx2.Client = library.Client(
                    headers=headers, limits=library.Limits(max_connections=self._peer.calls_max), follow_redirects=False
                )
                self._client = client
            return self._client

    def _own_slots(self) -> threading.Semaphore:
        if self._pid != os.getpid():  # a child has neither the parent's threads nor any right to its connections
            self._lock = threading.Lock()
            self._start_afresh()
        return self._slots

    def _start_afresh(self) -> None:
        self._pid = os.getpid()
        self._client = None
        self._waiting = set()
        self._opened = WeakSet()
        self._slots = threading.Semaphore(self._peer.calls_max)


class _Exchange:
    """A call in a thread of its own. Anyone who waits for it may stop waiting."""

    def __init__(self, call: Callable[[_Exchange], object], slots: threading.Semaphore) -> None:
        self.ended = threading.Event()
        self.stream: Any = None
        """The connection it goes over, if it is a new one."""
        self._call = call
        self._slots = slots
        self._value: object = None
        self._error: BaseException | None = None

    def start(self) -> None:
        try:
            threading.Thread(target=self._run, name="perdure-model", daemon=True).start()
        except RuntimeError as error:
            self._slots.release()
            raise Unavailable("no thread is left to ask a model in; try again") from error

    def break_off(self, error: Unavailable) -> None:
        if not self.ended.is_set():
            self._error = error
            self.ended.set()

    def answer(self) -> object:
        if self._error is not None:
            raise self._error
        return self._value

    def _run(self) -> None:
        try:
            self._value = self._call(self)
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is waited for
            self._error = self._error or error
        finally:
            self._slots.release()
            self.ended.set()


def _shut(stream: Any) -> bool:
    """End a connection so that anyone who reads from it, in whatever thread, stops reading."""
    try:
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    except (OSError, ValueError, AttributeError):
        return False  # it is closed
    return True


def _parsed(content: bytes, who: str) -> object:
    try:
        answer: object = json.loads(content)
        return answer
    except (ValueError, RecursionError):
        pass
    # Outside: the parser's error carries the whole answer with it.
    raise unreadable(who, "it is no JSON")
