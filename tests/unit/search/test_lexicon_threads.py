"""Terms are the same whichever threads ask for them at the same time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.engine.search import lexicon

WORDS = [
    f"{stem}{end}"
    for stem in ("gener", "relat", "nation", "hope", "activ", "operat")
    for end in ("alisations", "ingly", "fulness", "ization")
]
TEXTS = [" ".join(WORDS[place:] + WORDS[:place]) for place in range(len(WORDS))] * 4


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    held = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(held)


@pytest.mark.usefixtures("often_interrupted")
def test_threads_that_stem_at_once_find_the_same_terms() -> None:
    alone = [lexicon.lexemes(text) for text in TEXTS]
    for _ in range(5):
        lexicon._stemmer.cache_clear()
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lexicon.lexemes, TEXTS)) == alone
