"""Chat models behind a server, in both protocols, against a server on this machine that misbehaves as told (T-16, B-16, B-27)."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

import perdure
from perdure.adapters.models.chat import (
    OLLAMA,
    OPENAI,
    ChatProtocol,
    ModelServer,
    RequestForm,
    ServedModel,
    openai_model,
    sendable,
)
from perdure.compose.models import embedder_of, model_of
from perdure.domain.errors import InvalidInput, Unavailable, Unsupported
from perdure.domain.models import ChatMessage, ChatReply, ChatRequest
from perdure.ports.models import ModelRefused, ModelTimeout
from perdure.settings import Settings
from perdure.testing.model_server import (
    FAULTS,
    ModelExchange,
    ScriptedModelServer,
    after,
    answer,
    answer_well,
    body,
    status,
    streamed,
)

pytest.importorskip("httpx2", reason="the extra `models` is not installed")

KEY = "sk-very-secret-4711"
SCHEMA = {
    "type": "object",
    "properties": {"keys": {"type": "array", "items": {"type": "string", "maxLength": 9}}},
    "required": ["keys"],
    "additionalProperties": False,
}
PROTOCOLS = {"openai": OPENAI, "ollama": OLLAMA}


def asking(text: str = "Hello?", **more: Any) -> ChatRequest:
    return ChatRequest((ChatMessage("user", text),), **{"deadline_s": 20.0, **more})


@pytest.fixture
def server() -> Iterator[ScriptedModelServer]:
    with ScriptedModelServer() as server:
        yield server


@pytest.fixture(params=["openai", "ollama"])
def protocol(request: pytest.FixtureRequest) -> ChatProtocol:
    return PROTOCOLS[request.param]


@pytest.fixture
def paused() -> list[float]:
    return []


@pytest.fixture
def model(server: ScriptedModelServer, protocol: ChatProtocol, paused: list[float]) -> Iterator[ServedModel]:
    made = ServedModel(ModelServer(server.url, "m", api_key=KEY), protocol, pause=paused.append)
    yield made
    made.close()


def test_an_answer_comes_with_its_cost(model: ServedModel, server: ScriptedModelServer) -> None:
    server.script(answer("Fine."))
    assert model.chat(asking()) == ChatReply("Fine.", 11, 7, cut=False)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_openai_is_sent_the_schema_natively(server: ScriptedModelServer) -> None:
    model = openai_model(ModelServer(server.url + "/v1/", "gpt"))
    model.chat(asking(purpose="relevance", schema=SCHEMA, tokens_max=77))
    [asked] = server.asked
    assert asked.path == "/v1/chat/completions"
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "gpt",
        "messages": [{"role": "user", "content": "Hello?"}],
        "max_tokens": 77,
        "temperature": 0.0,
        "stream": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "relevance", "strict": True, "schema": sendable(SCHEMA)},
        },
    }
    model.close()


def test_ollama_is_sent_the_schema_and_its_window_and_told_to_cut_nothing(server: ScriptedModelServer) -> None:
    model = ServedModel(ModelServer(server.url, "qwen2.5:7b", num_ctx=16_384), OLLAMA)
    model.chat(asking(schema=SCHEMA, tokens_max=77))
    [asked] = server.asked
    assert asked.path == "/api/chat"
    assert asked.body == {
        "model": "qwen2.5:7b",
        "messages": [{"role": "user", "content": "Hello?"}],
        "stream": False,
        "truncate": False,
        "options": {"num_ctx": 16_384, "num_predict": 77, "temperature": 0.0},
        "format": sendable(SCHEMA),
    }
    model.close()


def test_bounds_of_texts_are_not_sent_because_some_servers_refuse_them() -> None:
    assert sendable(SCHEMA)["properties"]["keys"]["items"] == {"type": "string"}
    odd = {"type": "object", "properties": {"maxLength": {"type": "string", "maxLength": 3}}}
    assert sendable(odd) == {"type": "object", "properties": {"maxLength": {"type": "string"}}}


def test_an_answer_that_reached_its_length_says_so(model: ServedModel, server: ScriptedModelServer) -> None:
    server.script(answer("One, two", cut=True))
    assert model.chat(asking()).cut


def test_an_answer_in_parts_is_put_together(server: ScriptedModelServer) -> None:
    server.script(
        body(b'{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"x"},{"type":"text","text":"b"}]}}]}')
    )
    model = openai_model(ModelServer(server.url, "m"))
    assert model.chat(asking()) == ChatReply("ab")
    model.close()


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_after_a_pause_of_chance(
    code: int, model: ServedModel, server: ScriptedModelServer, paused: list[float]
) -> None:
    server.script(status(code), status(code))
    assert model.chat(asking()).text
    assert len(server.asked) == 3
    assert 0 <= paused[0] <= 0.25
    assert 0 <= paused[1] <= 0.5


def test_the_pause_a_server_asks_for_is_kept_or_left_to_the_caller(
    model: ServedModel, server: ScriptedModelServer, paused: list[float]
) -> None:
    server.script(status(429, retry_after="7"))
    assert model.chat(asking()).text
    assert paused == [7.0]
    server.script(status(429, retry_after="120"))
    with pytest.raises(Unavailable) as caught:
        model.chat(asking())
    assert caught.value.retry_after_s == 120
    assert not isinstance(caught.value, ModelTimeout | ModelRefused)
    assert paused == [7.0]


@pytest.mark.parametrize(
    ("fault", "error", "calls"),
    [
        ("silent", ModelTimeout, 1),
        ("drips", ModelTimeout, 1),
        ("drips_headers", ModelTimeout, 1),
        ("resets", Unavailable, 3),
        ("busy", Unavailable, 1),
        ("ill", Unavailable, 3),
        ("half_answer", Unavailable, 3),
        ("no_json", Unavailable, 1),
        ("huge", Unavailable, 1),
        ("wrong_key", ModelRefused, 1),
        ("no_such_model", ModelRefused, 1),
        ("redirects", ModelRefused, 1),
    ],
)
def test_every_fault_is_an_error_of_the_port_within_the_deadline(
    fault: str, error: type[Unavailable], calls: int, model: ServedModel, server: ScriptedModelServer
) -> None:
    server.always(answer_well)
    assert model.chat(asking()).text == "Noted."  # what a first request loads is loaded
    server.asked.clear()
    server.always(FAULTS[fault])
    started = time.monotonic()
    deadline_s = 0.3 if error is ModelTimeout else 20.0
    with pytest.raises(Unavailable) as caught:
        model.chat(asking("my secret is 42", schema=SCHEMA, deadline_s=deadline_s))
    assert type(caught.value) is error or (error is Unavailable and not isinstance(caught.value, ModelTimeout | ModelRefused))
    assert time.monotonic() - started < 10
    assert len(server.asked) == calls
    assert "secret" not in str(caught.value)
    server.always(answer_well)
    assert model.chat(asking()).text == "Noted."


@pytest.mark.parametrize("fault", ["refuses", "filtered"])
def test_a_refusal_in_the_answer_is_refused(fault: str, server: ScriptedModelServer) -> None:
    model = openai_model(ModelServer(server.url, "m"))
    server.script(FAULTS[fault])
    with pytest.raises(ModelRefused, match="refuses"):
        model.chat(asking())
    assert len(server.asked) == 1
    model.close()


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"code": "content_filter", "message": f"you sent {KEY}"}},
        {"error": {"code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
    ],
)
def test_a_filter_that_answers_400_is_refused_and_not_asked_in_another_form(
    error: dict[str, Any], server: ScriptedModelServer
) -> None:
    model = openai_model(ModelServer(server.url, "m"))
    server.script(status(400, error))
    with pytest.raises(ModelRefused, match="content") as caught:
        model.chat(asking(schema=SCHEMA))
    assert len(server.asked) == 1
    assert KEY not in str(caught.value)
    model.close()


@pytest.mark.parametrize(
    "answer_body",
    [b"[]", b"{}", b'{"choices": []}', b'{"message": {"content": 5}, "choices": [{"message": {}}]}', b"null", b'"x"'],
)
def test_an_answer_of_another_shape_is_unavailable(answer_body: bytes, model: ServedModel, server: ScriptedModelServer) -> None:
    server.script(body(answer_body))
    with pytest.raises(Unavailable, match="no words"):
        model.chat(asking())


def test_a_server_without_schemas_is_asked_in_a_form_it_knows_and_that_is_remembered(
    model: ServedModel, server: ScriptedModelServer, protocol: ChatProtocol
) -> None:
    server.script(status(400), status(400), answer("{}"), answer("{}"))
    assert model.chat(asking(schema=SCHEMA)).text == "{}"
    forms = [asked.body.get("response_format", asked.body.get("format")) for asked in server.asked]
    assert forms[1] == ({"type": "json_object"} if protocol is OPENAI else "json")
    assert forms[2] is None
    model.chat(asking(schema=SCHEMA))
    assert len(server.asked) == 4
    assert server.asked[3].body == server.asked[2].body


def test_a_server_that_refuses_every_form_is_refused_and_nothing_is_remembered(
    model: ServedModel, server: ScriptedModelServer
) -> None:
    server.script(*[status(400)] * 3)
    with pytest.raises(ModelRefused, match="HTTP 400"):
        model.chat(asking(schema=SCHEMA))
    assert model._manner == RequestForm()
    model.chat(asking(schema=SCHEMA))
    assert server.asked[3].schema is not None


def test_a_model_that_wants_other_parameters_gets_them(server: ScriptedModelServer) -> None:
    model = openai_model(ModelServer(server.url, "o9"))
    server.script(
        status(400, {"error": {"param": "max_tokens", "code": "unsupported_parameter"}}),
        status(400, {"error": {"param": "temperature", "code": "unsupported_value"}}),
    )
    model.chat(asking(schema=SCHEMA))
    body = server.asked[2].body
    assert (body["max_completion_tokens"], "max_tokens" in body, "temperature" in body) == (1_024, False, False)
    assert server.asked[2].schema is not None
    model.close()


def test_no_redirect_is_followed_so_nothing_reaches_another_host(model: ServedModel, server: ScriptedModelServer) -> None:
    with ScriptedModelServer() as elsewhere:
        for code in (301, 302, 307, 308):
            server.script(status(code, location=f"{elsewhere.url}/v1/chat/completions"))
            with pytest.raises(ModelRefused, match="final URL"):
                model.chat(asking())
        assert elsewhere.asked == []


def test_no_server_is_unavailable(protocol: ChatProtocol, paused: list[float]) -> None:
    model = ServedModel(ModelServer("http://127.0.0.1:9", "m"), protocol, pause=paused.append)
    with pytest.raises(Unavailable, match="no connection"):
        model.chat(asking(deadline_s=5))
    assert len(paused) == 2


def test_only_a_few_questions_are_under_way_at_once_and_waiting_counts(
    server: ScriptedModelServer, protocol: ChatProtocol
) -> None:
    model = ServedModel(ModelServer(server.url, "m"), protocol)
    server.always(after(30))

    def ask() -> None:
        with pytest.raises(Unavailable, match="closed"):
            model.chat(asking(deadline_s=30))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(server.asked) < 4:
        time.sleep(0.01)
    with pytest.raises(ModelTimeout, match=r"within 0\.2 s"):
        model.chat(asking(deadline_s=0.2))
    assert len(server.asked) == 4, "the fifth got no turn and was never sent"
    model.close()
    for thread in threads:
        thread.join(10)


@pytest.mark.parametrize("fault", ["silent", "drips", "drips_headers"])
def test_a_server_that_holds_on_to_questions_holds_up_no_later_ones(
    fault: str, server: ScriptedModelServer, protocol: ChatProtocol
) -> None:
    model = ServedModel(ModelServer(server.url, "m"), protocol)
    for _ in range(6):
        server.script(answer_well, FAULTS[fault])  # so that some go over a connection that was there
        assert model.chat(asking()).text
        with pytest.raises(ModelTimeout):
            model.chat(asking(deadline_s=0.1))
    assert model.chat(asking()).text == "Noted."
    model.close()


def test_cutting_a_connection_costs_the_others_no_more_than_a_second_try(
    server: ScriptedModelServer, protocol: ChatProtocol
) -> None:
    model = ServedModel(ModelServer(server.url, "m"), protocol)
    server.script(after(0.5, answer("slow")), answer_well)
    found: list[str] = []
    slow = threading.Thread(target=lambda: found.append(model.chat(asking()).text))
    slow.start()
    while not server.asked:
        time.sleep(0.01)
    model.chat(asking())
    server.script(FAULTS["drips_headers"])
    with pytest.raises(ModelTimeout):
        model.chat(asking(deadline_s=0.1))
    slow.join(10)
    assert found in (["slow"], ["Noted."])
    model.close()


def test_many_threads_share_a_model(server: ScriptedModelServer, protocol: ChatProtocol) -> None:
    model = ServedModel(ModelServer(server.url, "m"), protocol)
    server.always(after(0.02))
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(model.chat(asking()).text)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == ["Noted."] * 12
    model.close()


def test_closing_ends_the_waiting(server: ScriptedModelServer, protocol: ChatProtocol) -> None:
    model = ServedModel(ModelServer(server.url, "m"), protocol)
    server.script(after(30))
    caught: list[Unavailable] = []

    def ask() -> None:
        try:
            model.chat(asking(deadline_s=30))
        except Unavailable as error:
            caught.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not server.asked:
        time.sleep(0.01)
    model.close()
    thread.join(5)
    assert "closed" in str(caught[0])
    assert model.chat(asking()).text == "Noted."
    model.close()


def test_half_a_surrogate_can_be_asked_about(model: ServedModel, server: ScriptedModelServer) -> None:
    model.chat(asking("caf\ud83d"))
    assert server.asked[0].body["messages"][0]["content"] == "caf?"


# -- keys (T-16): in a header, and nowhere else


def chained(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def test_the_key_is_in_no_representation_error_traceback_or_log(
    server: ScriptedModelServer, protocol: ChatProtocol, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    spec = ModelServer(server.url, "m", api_key=KEY)
    model = ServedModel(spec, protocol, pause=lambda seconds: None)
    shown = [repr(spec), repr(model), repr(model._wire), str(vars(model)["_protocol"])]
    quoting = {"error": {"message": f"wrong key {KEY}", "code": KEY, "param": KEY}}
    acts = [status(code, quoting) for code in (400, 401, 403, 404, 429, 500)]
    acts += [body(KEY.encode()), body(f'["{KEY}"]'.encode()), body(f'{{"message": {{"content": ["{KEY}"]}}}}'.encode())]
    acts += [FAULTS["resets"], FAULTS["half_answer"], FAULTS["silent"]]
    for act in acts:
        server.always(act)
        with pytest.raises(Unavailable) as caught:
            model.chat(asking(deadline_s=0.5))
        shown.append("".join(traceback.format_exception(caught.value)))
        for error in chained(caught.value):
            shown += [repr(error), str(error), repr(vars(error))]
    shown += [record.getMessage() for record in caplog.records]
    assert all(KEY not in text for text in shown)
    model.close()


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", f"{KEY} ", f"{KEY} x", f"{KEY}é", f"{KEY}\x7f"])
def test_a_key_that_no_header_can_carry_is_refused_without_quoting_it(key: str) -> None:
    for make in (lambda: ModelServer("http://host", "m", api_key=key), lambda: embedder_of("openai:http://host#m", key)):
        with pytest.raises(InvalidInput, match="API key") as caught:
            make()
        assert KEY not in "".join(traceback.format_exception(caught.value))


# -- settings


def test_the_setting_names_protocol_server_and_model(server: ScriptedModelServer) -> None:
    for setting, path in (
        (server.setting("openai", "org/some#model"), "/v1/chat/completions"),
        (server.setting("ollama", "qwen2.5:7b"), "/api/chat"),
        (server.setting("ollama", "qwen2.5:7b?num_ctx=16384"), "/api/chat"),
    ):
        model = model_of(Settings(model=setting, model_key=KEY))
        assert isinstance(model, ServedModel)
        model.chat(asking())
        assert server.asked[-1].path == path
        assert server.asked[-1].headers["authorization"] == f"Bearer {KEY}"
        model.close()
    assert server.asked[0].body["model"] == "org/some#model"
    assert [asked.body["options"]["num_ctx"] for asked in server.asked[1:]] == [8_192, 16_384]
    assert {asked.body["model"] for asked in server.asked[1:]} == {"qwen2.5:7b"}


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_the_embedder_sends_its_own_key_and_cuts_nothing(name: str, server: ScriptedModelServer) -> None:
    settings = Settings(url="memory:", embedder=server.setting(name, "e"), embedder_key=KEY)
    with perdure.open(settings=settings) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I live in Austin.")
        engine.process(30)
        ana.recall("Where do I live?")
        assert KEY not in repr(settings)
    assert server.asked
    assert all(asked.wants_vectors and asked.headers["authorization"] == f"Bearer {KEY}" for asked in server.asked)
    assert all(asked.body.get("truncate") is (None if name == "openai" else False) for asked in server.asked)


def test_no_setting_is_no_model() -> None:
    assert model_of(Settings()) is None


@pytest.mark.parametrize(
    "setting",
    [
        "gpt-4o",
        "openai",
        "openai:",
        "openai:#m",
        "openai:http://host",
        "openai:http://host#",
        "ollama:host#m",
        "other:http://host#m",
        "openai:http://me:hunter2@host#m",
        "openai:https://host/v1?key=hunter2#m",
        "ollama:http://host#m?num_ctx=many",
        "ollama:http://host#m?num_ctx=1",
        "ollama:http://host#m?window=5",
        "openai:http://host#m?num_ctx=8192",
        "openai:http://host#m\nx",
    ],
)
def test_a_setting_that_names_no_model_is_refused_with_its_form_and_quotes_no_secret(setting: str) -> None:
    with pytest.raises(InvalidInput, match="model") as caught:
        model_of(Settings(model=setting, model_key=KEY))
    assert "hunter2" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_without_the_extra_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(Unsupported, match=r"perdure\[models\]"):
        model_of(Settings(model="openai:http://127.0.0.1:9#m"))


# -- answers that come in pieces


def test_an_answer_can_be_seen_while_it_comes(model: ServedModel, server: ScriptedModelServer) -> None:
    server.script(streamed("Fi", "ne", "."))
    seen: list[str] = []
    assert model.chat(asking(on_text=seen.append)) == ChatReply("Fine.", 11, 7, cut=False)
    assert seen == ["Fi", "Fine", "Fine."]
    assert server.asked[0].body["stream"] is True


def test_a_server_that_answers_at_once_all_the_same_is_heard(model: ServedModel, server: ScriptedModelServer) -> None:
    server.script(answer("Fine."))
    assert model.chat(asking(on_text=[].append)).text == "Fine."


def test_a_server_that_does_not_stream_is_asked_without(model: ServedModel, server: ScriptedModelServer) -> None:
    server.script(status(400), answer("Fine."), answer("Fine again."))
    assert model.chat(asking(on_text=[].append)).text == "Fine."
    assert model.chat(asking(on_text=[].append)).text == "Fine again."
    assert [one.body["stream"] for one in server.asked] == [True, False, False]


def test_an_answer_in_pieces_that_breaks_off_is_asked_for_again(model: ServedModel, server: ScriptedModelServer) -> None:
    def breaks_off(exchange: ModelExchange) -> None:
        exchange.begin_stream()
        exchange.piece("Never ")
        exchange.reset()

    server.script(breaks_off, streamed("Fine."))
    seen: list[str] = []
    assert model.chat(asking(on_text=seen.append)).text == "Fine."
    assert seen[-1] == "Fine."


def test_an_answer_in_pieces_without_an_end_is_not_used(model: ServedModel, server: ScriptedModelServer) -> None:
    def ends_early(exchange: ModelExchange) -> None:
        exchange.begin_stream()
        exchange.piece("Half of")
        exchange.write(b"0\r\n\r\n")

    server.always(ends_early)
    with pytest.raises(Unavailable, match="not used"):
        model.chat(asking(on_text=[].append))


def test_an_object_is_never_asked_for_in_pieces(model: ServedModel, server: ScriptedModelServer) -> None:
    server.script(answer({"keys": []}))
    model.chat(asking(schema=SCHEMA, on_text=[].append))
    assert server.asked[0].body["stream"] is False
