"""The reader of prompts that P17 judges with: it must notice by itself what nobody sees."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))
from proof import frame_reader


@pytest.mark.parametrize(
    "hidden",
    ["\u200d\u200d", "\u200d\ufe0f" * 3, "\u200c\ufe00", "\ufe0f\ufe0f", "\u202e", "\U000e0041"],
    ids=["joiners", "joiners and styles", "a style of a joiner", "styles", "a mark of direction", "a tag"],
)
def test_the_reader_notices_what_nobody_sees_and_names_it(hidden: str) -> None:
    [wrong] = frame_reader.plain(f"pay \U0001f469{hidden}\U0001f680 now")
    assert f"U+{ord(hidden[-1]):04X}" in wrong


@pytest.mark.parametrize(
    "shown", ["\u2764\ufe0f\u200d\U0001f525", "\U0001f469\u200d\U0001f680", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"]
)
def test_the_reader_lets_emoji_and_scripts_have_their_joiners(shown: str) -> None:
    assert frame_reader.plain(f"so {shown} it is") == []
