"""An estimate of how many tokens a text costs, without a tokenizer file.

Characters divided by four is right for English only: it finds a quarter of the tokens of Chinese. Here each script has its
own measure, set between the encodings `cl100k` and `o200k`, which disagree by up to three times outside Latin script.
"""

from __future__ import annotations

from perdure.domain.text.patterns import pattern

# Pieces that the common byte-pair encodings make of text. Per token there are about:
_PIECES = pattern(
    r"[A-Za-z]{1,8}"  # Latin: a word, up to eight letters
    r"|[0-9]{1,3}"  # digits: three
    r"|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"  # Chinese, Japanese, Korean: one character
    r"|[\u0370-\u03ff\u0590-\u08ff\u0900-\u0dff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]{1,2}"  # Greek, Semitic, Indic: two
    r"|[^\W\d_A-Za-z]{1,3}"  # Cyrillic and Latin letters with marks: three
    r"|[\U00010000-\U0010ffff]"  # emoji and rare characters: half of one, see below
    r"|[^\w\s]{1,2}"  # punctuation: two
    r"|[\d_]"
)
_HALF_TOKENS = pattern("[\U00010000-\U0010ffff]")


def estimate_tokens(text: str) -> int:
    """About as many tokens as a model counts in chat text; 0 for blank text."""
    # No piece has a blank in it, and most words of most texts were met before.
    return sum(map(_KNOWN.__getitem__, text.split()))


WORDS_KEPT_MAX = 20_000
WORD_CHARS_KEPT_MAX = 32


class _TokenCounts(dict[str, int]):
    """Words of letters and signs, with their tokens."""

    def __missing__(self, word: str) -> int:
        if word.isascii():
            count = (len(word) + 7) // 8 if word.isalpha() else len(_PIECES.findall(word))
        else:
            count = len(_PIECES.findall(word)) + len(_HALF_TOKENS.findall(word))
        if len(word) <= WORD_CHARS_KEPT_MAX:
            if len(self) >= WORDS_KEPT_MAX:
                self.clear()
            self[word] = count
        return count


_KNOWN = _TokenCounts()
