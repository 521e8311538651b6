"""An estimate of how many tokens a text costs, without a tokenizer file."""

from __future__ import annotations

import re

# Pieces that the common byte-pair encodings make of text: an ASCII word is one token up to about eight letters,
# three digits are one, a CJK character is about one, letters of other scripts come two or three to a token.
_PIECES = re.compile(
    r"[A-Za-z]{1,8}"
    r"|[0-9]{1,3}"
    r"|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    r"|[^\W\d_A-Za-z]{1,3}"
    r"|[^\w\s]{1,2}"
    r"|[\d_]"
)


def estimate_tokens(text: str) -> int:
    """About as many tokens as `cl100k` counts in chat text; 0 for blank text."""
    if not text.isascii():
        return len(_PIECES.findall(text))
    # The same count, faster: most words of most texts are plain, and for those the length tells.
    return sum((len(word) + 7) // 8 if word.isalpha() else len(_PIECES.findall(word)) for word in text.split())
