"""Which texts are secrets: the published forms are, and what only resembles them is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.secrets import FORMS, may_hold_secrets, without_secrets, without_secrets_in

LETTERS = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1BcD4eFg7HiJ0kLm"
SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + LETTERS + "\n-----END RSA PRIVATE KEY-----",
    "API key": "sk-proj-" + LETTERS,
    "payment key": "sk_" + "live_" + LETTERS,
    "AWS key": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + LETTERS[:36],
    "GitLab token": "glpat-" + LETTERS[:20],
    "Slack token": "xoxb-" + "123456789012-" + LETTERS[:20],
    "Google key": "AIza" + LETTERS[:35],
    "package token": "npm_" + LETTERS[:36],
    "model hub token": "hf_" + LETTERS[:34],
    "perdure key": "pdr_ab12cd34_" + LETTERS,
    "web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + LETTERS,
    "password": "hunter2-and-more",
}


def sentence(name: str) -> str:
    secret = SECRETS[name]
    return f"use postgresql://ana:{secret}@db/x please" if name == "password" else f"it is {secret} please"


def test_there_is_an_example_of_every_form() -> None:
    assert list(SECRETS) == [name for name, _ in FORMS]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_gives_way_to_a_marker_that_names_its_kind(name: str) -> None:
    told = without_secrets(sentence(name))
    assert SECRETS[name] not in told
    assert f"[secret removed: {name}]" in told
    assert told.endswith(" please")
    assert may_hold_secrets(sentence(name))


@pytest.mark.parametrize("name", SECRETS)
def test_taking_out_secrets_again_changes_nothing(name: str) -> None:
    once = without_secrets(sentence(name))
    assert without_secrets(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "the password is wrong, and pass: 1234",
        "sk-learn-contrib-imbalanced-learning is a package",
        "see https://example.org/a:b@c and mailto:ana@example.org",
        "AKIA is a prefix, ghp_ too, and eyJhbGciOi alone is half a token",
        "order 4111 1111 1111 1111 of 2024",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----",
        "task-force_lives_test_and_more_words_here",
    ],
)
def test_what_only_resembles_a_secret_stays_as_it_was_said(text: str) -> None:
    assert without_secrets(text) == text


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


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_inside_json_wherever_it_stands(name: str) -> None:
    value = {"a": [{"b": f"first line\n{sentence(name)}"}], sentence(name): 1}
    told = json.dumps(without_secrets_in(value))
    assert json.dumps(SECRETS[name])[1:-1] not in told
    assert told.count(f"[secret removed: {name}]") == 2


def test_a_long_text_of_one_letter_is_looked_through_at_once() -> None:
    """Each form is bounded or anchored: none begins anew at every character."""
    for beginning in ("://", "sk-", "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJaaaaaaaa.eyJ"):
        assert len(without_secrets(beginning + "a" * 1_000_000)) > 1_000
