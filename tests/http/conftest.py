"""A client of the API over a store in memory, in this process. Tests share it, and each has a user of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from fastapi.testclient import TestClient

import perdure
from perdure.interfaces.server import Options, build

NUMBERS = count(1)


@pytest.fixture(scope="session")
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as engine:
        yield engine


@pytest.fixture(scope="session")
def client(engine: perdure.Engine) -> TestClient:
    # Describing 130 routes takes a while; a test that changes the application makes its own.
    return TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1")


@pytest.fixture
def home() -> str:
    """The path of a user that no other test knows."""
    return f"/v1/users/u{next(NUMBERS)}"
