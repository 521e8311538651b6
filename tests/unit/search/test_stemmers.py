"""The two stemmers, in Python and in C, agree on every word that the package knows: an index does not depend on which made it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.engine.search.lexicon import folded, load_stemmers, stopwords

PACKAGE = Path(perdure.__file__).parent
WORDS_LEAST = 10_000


def known_words() -> list[str]:
    """The words of all word lists, prompts and modules, folded as they are indexed."""
    files = [path for path in PACKAGE.rglob("*") if path.suffix in (".txt", ".toml", ".md", ".py")]
    words = {word for path in files for word in re.findall(r"[^\W\d_]+", folded(path.read_text(encoding="utf-8")))}
    return sorted(words | {word for stops in stopwords().values() for word in stops})


@pytest.mark.parametrize("language", sorted(stopwords()))
def test_both_stemmers_make_the_same_of_every_word(language: str) -> None:
    compiled = pytest.importorskip("Stemmer").Stemmer(language)
    module = importlib.import_module(f"snowballstemmer.{language}_stemmer")
    plain: Any = getattr(module, f"{language.capitalize()}Stemmer")()
    words = known_words()
    assert len(words) >= WORDS_LEAST
    assert [word for word in words if plain.stemWord(word) != compiled.stemWord(word)] == []


def test_the_stemmer_in_c_is_used_where_it_is_there() -> None:
    compiled = pytest.importorskip("Stemmer")
    assert isinstance(load_stemmers()("english"), compiled.Stemmer)
