"""Which texts are secrets: the published forms are, what only resembles them is not, and no text takes long to look through."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief, check_id
from perdure.domain.text.secrets import FORMS, may_hold_secrets, secret_in, without_secrets, without_secrets_in

LETTERS = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1BcD4eFg7HiJ0kLm"
HEX = "0123456789abcdef" * 4
LINE = LETTERS + LETTERS[:21]
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{LINE}\n{LINE}\nMIIEow==\n-----END RSA PRIVATE KEY-----"
# Put together here, so that no scanner takes the examples for keys that were left lying about.
SECRETS: tuple[tuple[str, str], ...] = (
    ("private key", PEM),
    ("private key", PEM.replace("\n", "\\n")),
    ("private key", PEM.replace("\n", " ")),
    ("private key", PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK").replace("\n", "\nVersion: GnuPG v2\n\n", 1)),
    ("API key", "sk-" + LETTERS),
    ("API key", "sk-proj-" + LETTERS + "_" + LETTERS),
    ("API key", "sk-ant-api03-" + LETTERS + "-" + LETTERS),
    ("API key", "sk-or-v1-" + HEX),
    ("API key", "sk-" + HEX[:32]),
    ("API key", "gsk_" + LETTERS),
    ("API key", "xai-" + LETTERS * 2),
    ("API key", "pplx-" + LETTERS),
    ("payment key", "sk_" + "live_" + LETTERS),
    ("payment key", "rk_" + "test_" + LETTERS),
    ("payment key", "whsec_" + LETTERS[:32]),
    ("AWS key", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("AWS key", "ASIA" + "IOSFODNN7EXAMPLE"),
    ("AWS key", "ABIA" + "IOSFODNN7EXAMPLE"),
    ("GitHub token", "ghp_" + LETTERS[:36]),
    ("GitHub token", "github_pat_" + LETTERS[:22] + "_" + LETTERS),
    ("GitLab token", "glpat-" + LETTERS[:20]),
    ("GitLab token", "glrt-" + LETTERS[:20]),
    ("Slack token", "xoxb-" + "123456789012-" + LETTERS[:20]),
    ("Slack token", "xapp-" + "1-A0123-456-" + HEX),
    ("Google key", "AIza" + LETTERS[:35]),
    ("Google token", "ya29." + "a0" + LETTERS),
    ("Google secret", "GOCSPX-" + LETTERS[:28]),
    ("package token", "npm_" + LETTERS[:36]),
    ("package token", "pypi-" + "AgEIcHlwaS5vcmc" + LETTERS),
    ("model hub token", "hf_" + LETTERS[:34]),
    ("model hub token", "r8_" + LETTERS[:37]),
    ("mail key", "SG." + LETTERS[:22] + "." + LETTERS),
    ("vault token", "hvs." + LETTERS),
    ("registry token", "dckr_pat_" + LETTERS[:27]),
    ("hosting token", "dop_v1_" + HEX),
    ("shop token", "shpat_" + HEX[:32]),
    ("bot token", "123456789:" + "AA" + LETTERS[:33]),
    ("perdure key", "pdr_ab12cd34_" + LETTERS),
    ("web token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + LETTERS),
    ("login", "dXNlcjpwYXNzd29yZA=="),
    ("password", "hunter2-and-more"),
    ("password", "p@ssword"),
    ("password", "p@ss/word"),
    ("password", "with/slash"),
    ("password", "%40dmin"),
    ("password", "12345"),
)
AROUND = {"password": "use postgresql://ana:{}@db/x please", "login": "send Authorization: Basic {} please"}
EDGES = ("MY_", "A=1\\n", "%3D", "\\u0022", "\\x22", "\t", '"', "(", "export KEY=", "\x1b[31m", "ключ")
each = pytest.mark.parametrize(("name", "secret"), SECRETS, ids=[f"{name}: {text[:12]}" for name, text in SECRETS])


def sentence(name: str, secret: str) -> str:
    return AROUND.get(name, "it is {} please").format(secret)


def test_there_is_an_example_of_every_form() -> None:
    assert {name for name, _ in SECRETS} == {form.name for form in FORMS}


@each
def test_a_secret_gives_way_to_a_marker_that_names_its_kind(name: str, secret: str) -> None:
    told = sentence(name, secret)
    assert without_secrets(told) == sentence(name, f"[secret removed: {name}]")
    assert may_hold_secrets(told)
    assert secret_in(told) == name
    assert without_secrets(without_secrets(told)) == without_secrets(told)


@pytest.mark.parametrize("edge", EDGES)
@each
def test_a_secret_is_found_behind_whatever_is_no_part_of_a_word(name: str, secret: str, edge: str) -> None:
    if name not in AROUND:
        assert without_secrets(edge + secret) == f"{edge}[secret removed: {name}]"


@each
def test_a_secret_is_found_inside_json_wherever_it_stands(name: str, secret: str) -> None:
    value = {"a": [{"b": f"first line\n{sentence(name, secret)}"}], sentence(name, secret): 1}
    told = json.dumps(without_secrets_in(value))
    assert json.dumps(secret)[1:-1] not in told
    assert told.count(f"[secret removed: {name}]") == 2
    assert secret not in without_secrets(json.dumps({"text": sentence(name, secret)}))


@pytest.mark.parametrize(
    "text",
    [
        "the password is wrong, and pass: 1234",
        "sk-learn-contrib-imbalanced-learning is a package, sk-Regional-Report-of-2024-Final is a file",
        "see https://example.org/a:b@c and mailto:ana@example.org",
        "AKIA is a prefix, ghp_ too, and eyJhbGciOi alone is half a token",
        "order 4111 1111 1111 1111 of 2024",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----",
        "task-force_lives_test_and_more_words_here",
        "postgresql://{user}:{password}@{host}/{db}",
        "postgresql://{{ user }}:{{password}}@db",
        "amqp://guest:guest@localhost",
        "https://example.com:443@x and http://example.org:8080/x@y and http://localhost:3000/@scope/name",
        "redis://ana:<password>@db redis://ana:$PASSWORD@db redis://ana:${PASSWORD}@db redis://ana:****@db",
        "postgres://user:password@localhost redis://ana:%(password)s@db redis://ana:xxxxx@db",
        "http://[::1]:8080/a@b and git@github.com:perdure/perdure.git",
        "at 12:30:AA the train left, 123456789:AAA",
        "Authorization: Basic and Bearer are schemes",
        f"data {'-_'.join([LETTERS] * 100)}sk-{LETTERS * 20}",
    ],
)
def test_what_only_resembles_a_secret_stays_as_it_was_said(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "a key starts with -----BEGIN RSA PRIVATE KEY----- on its first line. IMPORTANT FACT.",
            "a key starts with [secret removed: private key] on its first line. IMPORTANT FACT.",
        ),
        (
            f"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,AB\n\n{LINE}\n{LINE}\nab=\nThen we met.",
            "[secret removed: private key]\nThen we met.",
        ),
        (
            f"-----BEGIN PRIVATE KEY-----\\n{LINE}\\n{LINE}\\nab=\\n Then we met.",
            "[secret removed: private key]\\n Then we met.",
        ),
        (f"-----BEGIN PRIVATE KEY----- {LINE} {LINE} and so on", "[secret removed: private key] and so on"),
        ("-----BEGIN PRIVATE KEY-----\nIMPORTANT\nfact", "[secret removed: private key]\nIMPORTANT\nfact"),
        ("https://ana:pw12@npm.example.org/@scope/a", "https://ana:[secret removed: password]@npm.example.org/@scope/a"),
        ("mongodb://ana:pw12@a:1,b:2/db?x=a@b", "mongodb://ana:[secret removed: password]@a:1,b:2/db?x=a@b"),
        ("redis://:pw12@db", "redis://:[secret removed: password]@db"),
        ('"postgres:\\/\\/ana:pw12@db"', '"postgres:\\/\\/ana:[secret removed: password]@db"'),
        (f"xxx.{SECRETS[20][1]}. Then we met.", "xxx.[secret removed: GitLab token]. Then we met."),
        (
            "https://api.telegram.org/bot123456789:AA" + LETTERS[:33] + "/x",
            "https://api.telegram.org/bot[secret removed: bot token]/x",
        ),
    ],
)
def test_what_stands_around_a_secret_is_kept(text: str, told: str) -> None:
    assert without_secrets(text) == told


@given(st.text())
def test_text_without_a_hint_is_given_back_as_it_is(text: str) -> None:
    assert may_hold_secrets(text) or without_secrets(text) is text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)
    )
)
def test_json_without_secrets_stays_the_same(value: object) -> None:
    assert without_secrets_in(value) == value


def test_fields_whose_names_are_secrets_stay_as_many_as_they_were() -> None:
    tokens = [f"ghp_{LETTERS[number:36]}{LETTERS[:number]}" for number in range(3)]
    marker = "[secret removed: GitHub token]"
    value = {tokens[0]: 1, f"{marker} 2": 2, tokens[1]: 3, "a": 4, tokens[2]: 5}
    told = {marker: 1, f"{marker} 2": 2, f"{marker} 3": 3, "a": 4, f"{marker} 4": 5}
    assert without_secrets_in(value) == told
    assert list(without_secrets_in(value)) == list(told)
    assert without_secrets_in(told) == told


def test_many_fields_whose_names_are_secrets_are_numbered_at_once() -> None:
    value = {f"ghp_{number:036}": number for number in range(50_000)}
    assert list(without_secrets_in(value).values()) == list(range(50_000))


@each
def test_an_id_that_holds_a_secret_is_refused_and_not_repeated(name: str, secret: str) -> None:
    with pytest.raises(InvalidInput, match=f"^`session` looks like an? {name}; use an id that is none$"):
        check_id(sentence(name, secret), "session", bytes_max=4_000)


@each
def test_no_error_repeats_a_secret(name: str, secret: str) -> None:
    assert secret not in str(InvalidInput(f"`a` = {sentence(name, secret)!r} is odd"))
    assert secret[:30] not in brief(sentence(name, secret))
    assert secret[:30] not in brief(secret, 80) or name in AROUND


HANG_S = 20.0
"""Far more than it takes on any machine; what grows with the square of the length takes many times as long."""
BEGINNINGS = (
    *(secret[: 4 + len(secret) // 8] for _, secret in SECRETS),
    *(
        "sk-",
        "-eyJ",
        "_eyJaaaaaaaa.eyJ",
        "://",
        "://a:",
        "://a:b@",
        "://a:b/@",
        "a:1@b/",
        "pypi-",
        "SG.",
        "1:AA",
        "xox",
        "hvs.",
        "-",
        "_",
    ),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n" + LINE + "\n"),
    *("-----BEGIN PRIVATE KEY----- a a a a", "-----BEGIN PRIVATE KEY-----\\n", "-----BEGIN PRIVATE KEY-----\nVersion: "),
    *(
        "Authorization: Basic ",
        "Authorization",
        "\\n",
        "\\",
        "%20",
        "sk-" + "a-1" * 130 + " ",
        "glpat-",
        "-github_pat_",
        "pdr_aaaaaa_",
    ),
)


@pytest.mark.parametrize(
    "ending", ["", "a" * 1_000_000, "\n" * 100_000, "A1" * 100_000], ids=["nothing", "a letter", "lines", "a key"]
)
def test_a_long_text_after_one_beginning_is_looked_through_at_once(ending: str) -> None:
    begun = time.monotonic()
    for beginning in BEGINNINGS:
        without_secrets(beginning + ending)
    assert time.monotonic() - begun < HANG_S


@pytest.mark.parametrize("beginning", dict.fromkeys(BEGINNINGS))
def test_a_text_that_begins_a_secret_again_and_again_is_looked_through_at_once(beginning: str) -> None:
    """Twice: as it is, and with what could not be a part of it between."""
    begun = time.monotonic()
    size = 2**18 if beginning in ("sk-", "-eyJ", "://", "pypi-") else 2**16
    without_secrets(beginning * (size // len(beginning)))
    without_secrets(f"{beginning} " * (size // (len(beginning) + 1)))
    assert time.monotonic() - begun < HANG_S / 4
