"""Embedders over HTTP against a real server on this machine that can be told to misbehave."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from perdure.adapters import wire
from perdure.adapters.embedding import http
from perdure.adapters.embedding.http import OLLAMA, OPENAI, Dialect, HttpEmbedder, ServerModel, ollama_embedder, openai_embedder
from perdure.domain.errors import InvalidInput, PerdureError, Unavailable, Unsupported
from perdure.ports.models import Embedder

httpx2 = pytest.importorskip("httpx2", reason="the extra `models` is not installed")

KEY = "sk-very-secret"
Reply = tuple[int, dict[str, str], bytes]
Act = Callable[[dict[str, Any]], Reply | None]


class Server:
    """Answers as a model of three dimensions would; each act in `acts` replaces one answer."""

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.stopping = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, question))
                act = outer.acts.pop(0) if outer.acts else good
                reply = act({**question, "path": self.path})
                if reply is None:
                    self.close_connection = True
                    return
                status, headers, body = reply
                self.send_response(status)
                for name, value in {"content-length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def vector(text: str) -> list[float]:
    return [3.0 * len(text), 4.0 * len(text), 0.0]


def in_its_shape(path: str, rows: list[Any]) -> bytes:
    if path.startswith("/api"):
        return json.dumps({"model": "m", "embeddings": rows}).encode()
    entries = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return json.dumps({"data": entries[::-1]}).encode()  # the order is not promised


def good(question: dict[str, Any]) -> Reply:
    return 200, {}, in_its_shape(question["path"], [vector(text) for text in question["input"]])


def rows(make: Callable[[list[str]], list[Any]]) -> Act:
    return lambda question: (200, {}, in_its_shape(question["path"], make(question["input"])))


def status(code: int, **headers: str) -> Act:
    return lambda question: (
        code,
        {name.replace("_", "-"): value for name, value in headers.items()},
        b"you sent: " + KEY.encode(),
    )


def body(content: bytes) -> Act:
    return lambda question: (200, {}, content)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def paused() -> list[float]:
    return []


@pytest.fixture(params=["openai", "ollama"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return OPENAI if request.param == "openai" else OLLAMA


@pytest.fixture
def embedder(server: Server, dialect: Dialect, paused: list[float]) -> Iterator[HttpEmbedder]:
    made = HttpEmbedder(ServerModel(server.url, "m", api_key=KEY, deadline_s=20), dialect, pause=paused.append)
    yield made
    made.close()


def test_rows_come_in_the_order_of_the_texts_and_at_length_one(embedder: Embedder) -> None:
    found = embedder.embed(["a", "bcd", "ef"])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.6, 0.8, 0.0]] * 3, rtol=1e-6)
    assert (embedder.name, embedder.version, embedder.dims) == ("m", "", 3)


def test_openai_is_asked_as_its_protocol_says(server: Server) -> None:
    embedder = openai_embedder(ServerModel(server.url + "/v1/", "text-embedding-3-small", api_key=KEY))
    embedder.embed(["hello"])
    path, headers, question = server.asked[0]
    assert path == "/v1/embeddings"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert question == {"model": "text-embedding-3-small", "input": ["hello"]}
    embedder.close()


def test_ollama_is_asked_as_its_protocol_says_and_cuts_nothing_silently(server: Server) -> None:
    embedder = ollama_embedder(ServerModel(server.url, "nomic-embed-text"))
    embedder.embed(["hello"])
    path, headers, question = server.asked[0]
    assert path == "/api/embed"
    assert "authorization" not in headers
    assert question == {"model": "nomic-embed-text", "input": ["hello"], "truncate": False}
    embedder.close()


def test_questions_and_passages_get_their_own_prefix(server: Server) -> None:
    embedder = openai_embedder(ServerModel(server.url, "m", query_prefix="query: ", passage_prefix="passage: "))
    embedder.embed(["a"], kind="query")
    embedder.embed(["a"])
    assert [question["input"] for _, _, question in server.asked] == [["query: a"], ["passage: a"]]
    assert embedder.version != ""
    embedder.close()


def test_blank_texts_are_not_sent_and_are_near_nothing(server: Server, embedder: Embedder) -> None:
    found = embedder.embed(["", "a", " \n"])
    assert [question["input"] for _, _, question in server.asked] == [["a"]]
    assert np.linalg.norm(found, axis=1).tolist() == pytest.approx([0, 1, 0])
    assert embedder.embed([]).shape == (0, 3)


def test_only_blank_texts_still_have_the_right_width(embedder: Embedder) -> None:
    assert embedder.embed([""]).shape == (1, 3)


def test_half_a_surrogate_can_be_sent(server: Server, embedder: Embedder) -> None:
    embedder.embed(["caf\ud83d"])
    assert server.asked[0][2]["input"] == ["caf?"]


def test_many_texts_go_in_bounded_batches(server: Server, embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BATCH_CHARS_MAX", 100)
    texts = ["x"] * 150 + ["y" * 60] * 3
    assert embedder.embed(texts).shape == (153, 3)
    assert [len(question["input"]) for _, _, question in server.asked] == [64, 64, 23, 1, 1]


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504, 520])
def test_a_busy_server_is_asked_again(code: int, server: Server, embedder: Embedder, paused: list[float]) -> None:
    server.acts = [status(code), status(code)]
    assert embedder.embed(["a"]).shape == (1, 3)
    assert len(server.asked) == 3
    assert 0 <= paused[0] <= 0.25
    assert 0 <= paused[1] <= 0.5


def test_a_connection_that_breaks_is_tried_again(server: Server, embedder: Embedder) -> None:
    server.acts = [lambda question: None]
    assert embedder.embed(["a"]).shape == (1, 3)


def test_a_server_that_stays_busy_is_unavailable_after_two_retries(server: Server, embedder: Embedder) -> None:
    server.acts = [status(500)] * 5
    with pytest.raises(Unavailable, match="HTTP 500"):
        embedder.embed(["a"])
    assert len(server.asked) == 3


def test_the_pause_a_server_asks_for_is_kept(server: Server, embedder: Embedder, paused: list[float]) -> None:
    server.acts = [status(429, retry_after="7"), status(429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")]
    embedder.embed(["a"])
    assert paused == [7.0, 0.0]


def test_a_pause_beyond_the_deadline_is_left_to_the_caller(server: Server, embedder: Embedder, paused: list[float]) -> None:
    server.acts = [status(429, retry_after="120")]
    with pytest.raises(Unavailable) as caught:
        embedder.embed(["a"])
    assert caught.value.retry_after_s == 120
    assert paused == []


@pytest.mark.parametrize("value", ["soon", "", "-5", "١"])
def test_a_pause_that_cannot_be_read_is_none(value: str) -> None:
    reply = httpx2.Response(429, headers={"retry-after": value.encode()})
    assert wire._wanted_pause(reply) is None


def test_no_server_is_unavailable(paused: list[float]) -> None:
    embedder = openai_embedder(ServerModel("http://127.0.0.1:9", "m", deadline_s=5))
    embedder._wire._pause = paused.append
    with pytest.raises(Unavailable, match="no connection"):
        embedder.embed(["a"])
    assert len(paused) == 2


def test_a_silent_server_is_unavailable_at_the_deadline(server: Server, dialect: Dialect) -> None:
    server.acts = [lambda question: (server.stopping.wait(10), None)[1]]
    embedder = HttpEmbedder(ServerModel(server.url, "m", deadline_s=0.2), dialect)
    started = time.monotonic()
    with pytest.raises(Unavailable, match="deadline"):
        embedder.embed(["a"])
    assert time.monotonic() - started < 5
    embedder.close()


def test_a_call_whose_time_is_up_asks_no_more(server: Server, embedder: HttpEmbedder) -> None:
    with pytest.raises(Unavailable, match="within 20 s"):
        embedder._vectors(["a"], time.monotonic() - 1)
    assert server.asked == []


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (body(b'{"data": [{"index": 0, "embe'), "no JSON"),
        (body(b"\xff\xfe"), "no JSON"),
        (body(b"[" * 100_000), "no JSON"),
        (body(b"[]"), "no rows"),
        (body(b"null"), "no rows"),
        (body(b'{"data": [{"index": 0}, {"index": 1}]}'), "no rows"),
        (body(b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}'), "no rows"),
        (body(b'{"embeddings": 3, "data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}'), "rows"),
        (rows(lambda texts: [[1.0, 2.0]] * (len(texts) + 1)), "3 rows for 2 texts"),
        (rows(lambda texts: [[1.0, 2.0]]), "1 rows for 2 texts"),
        (rows(lambda texts: [[1.0], [1.0, 2.0]]), "no rows"),
        (rows(lambda texts: [["1.0"], ["2.0"]]), "not numbers"),
        (rows(lambda texts: [[None], [None]]), "not numbers"),
        (rows(lambda texts: [[True], [False]]), "not numbers"),
        (rows(lambda texts: [[], []]), "not numbers"),
        (rows(lambda texts: ["1", "2"]), "not numbers"),
        (rows(lambda texts: [[[1.0]], [[1.0]]]), "not numbers"),
        (rows(lambda texts: [[1.0], [float("nan")]]), "not finite"),
        (rows(lambda texts: [[1.0], [float("inf")]]), "not finite"),
        (rows(lambda texts: [[1.0], [1e200]]), "not finite"),
    ],
)
def test_an_answer_that_cannot_be_trusted_is_not_used(act: Act, why: str, server: Server, embedder: Embedder) -> None:
    server.acts = [act]
    with pytest.raises(Unavailable, match=why):
        embedder.embed(["a", "b"])
    assert len(server.asked) == 1
    assert embedder.embed(["a", "b"]).shape == (2, 3), "the next answer is used"


def test_an_endless_answer_is_cut_off(server: Server, dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REPLY_BYTES_MAX", 1000)
    embedder = HttpEmbedder(ServerModel(server.url, "m"), dialect)
    server.acts = [body(b" " * 100_000)]
    with pytest.raises(Unavailable, match="more than 1000 bytes"):
        embedder.embed(["a"])
    embedder.close()


def test_a_model_that_changes_its_width_is_another_model_once_it_keeps_to_it(server: Server, embedder: Embedder) -> None:
    embedder.embed(["a"])
    server.acts = [rows(lambda texts: [[1.0, 2.0]])]
    with pytest.raises(Unavailable, match="2 numbers a text, where 3 were given before"):
        embedder.embed(["a"])
    assert embedder.embed(["a"]).shape == (1, 3), "one odd answer is forgotten with the next"
    server.acts = [rows(lambda texts: [[1.0, 2.0]]), rows(lambda texts: [[1.0, 2.0]])]
    with pytest.raises(Unavailable):
        embedder.embed(["a"])
    assert embedder.embed(["a"]).shape == (1, 2)
    assert embedder.dims == 2, "a model that goes on so is another one, and needs no restart"


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (400, "not take"),
        (401, "API key"),
        (403, "API key"),
        (404, "load the model"),
        (405, "correct the URL"),
        (301, "final URL"),
        (204, "not take"),
    ],
)
def test_a_refusal_is_final_and_says_what_to_do(code: int, remedy: str, server: Server, embedder: Embedder) -> None:
    server.acts = [status(code)]
    with pytest.raises(InvalidInput, match=remedy):
        embedder.embed(["a"])
    assert len(server.asked) == 1


def test_a_text_that_is_too_long_is_read_as_far_as_the_model_reads(server: Server, embedder: Embedder) -> None:
    def strict(question: dict[str, Any]) -> Reply:
        return status(400)(question) or good(question) if max(map(len, question["input"])) > 5000 else good(question)

    server.acts = [strict] * 50
    found = embedder.embed(["a", "b" * 16_000, "c", "d"])
    assert np.linalg.norm(found, axis=1) == pytest.approx(1)
    longest = [max(map(len, question["input"])) for _, _, question in server.asked]
    assert longest == [16_000, 16_000, 1, 16_000, 8000, 4000, 1]


def test_the_key_is_shown_nowhere(server: Server, embedder: Embedder) -> None:
    spec = ServerModel(server.url, "m", api_key=KEY)
    shown = [repr(spec), repr(embedder), str(embedder)]
    for act in (status(401), status(500), body(KEY.encode()), rows(lambda texts: [])):
        server.acts = [act] * 3
        with pytest.raises(PerdureError) as caught:
            embedder.embed(["a"])
        shown.append(f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}")
    assert all(KEY not in text for text in shown)


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "ftp://host", "http://", "http://me:secret@host", "http://host\n.evil"])
def test_a_url_that_is_none_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(InvalidInput, match="URL") as caught:
        ServerModel(url, "m")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"model": ""}, {"model": "a\nb"}, {"api_key": "a\nb"}, {"api_key": "ключ"}, {"deadline_s": 0}]
)
def test_a_server_that_cannot_be_asked_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        ServerModel(**{"base_url": "http://host", "model": "m", **wrong})


def test_without_the_extra_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(Unsupported, match=r"perdure\[models\]"):
        openai_embedder(ServerModel("http://127.0.0.1:9", "m")).embed(["a"])


def test_every_error_of_the_client_has_a_meaning() -> None:
    errors = [one for one in vars(httpx2).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert len(errors) > 25
    for error in errors:
        instance = error.__new__(error)
        Exception.__init__(instance, f"about {KEY}")
        ours = wire.in_our_words(instance, "http://host")
        assert isinstance(ours, PerdureError)
        assert KEY not in str(ours)


def test_threads_can_share_an_embedder(embedder: Embedder) -> None:
    found: list[tuple[int, int]] = []
    threads = [threading.Thread(target=lambda: found.append(embedder.embed(["a", "b"]).shape)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(2, 3)] * 8
