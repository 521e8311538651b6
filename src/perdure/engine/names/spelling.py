"""How alike two words are written and sound: accents, scripts, slips of the pen, and a key of sounds.

Everything here proposes. What a likeness of words means for two names is decided per type of name.

Also the verdicts on two names, and how single findings add up to one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass, field
from perdure.engine.words import sections


@dataclass(frozen=True, slots=True)
class Same:
    """Two spellings of one name: may be merged without asking."""

    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Likely:
    """Perhaps one entity: worth a suggestion, never a merge by itself."""

    evidence: tuple[str, ...]
    score: float
    """Between 0 and 1. It orders suggestions; it is no probability."""


@dataclass(frozen=True, slots=True)
class Different:
    """Two entities, or nothing that speaks for one."""

    evidence: tuple[str, ...]


Likeness = Same | Likely | Different


WEAK_MAX = 1
"""One guess may be right; two guesses about one pair of names are not evidence."""


@dataclass(slots=True)
class LikenessEvidence:
    """Collects what speaks for and against. Whatever is neither doubted nor denied is certain."""

    evidence: list[str] = field(default_factory=list)
    score: float = 1.0
    weak: int = 0
    denied: bool = False

    def note(self, what: str) -> None:
        """A difference that does not matter."""
        if what not in self.evidence:
            self.evidence.append(what)

    def doubt(self, what: str, score: float, *, weak: bool = False) -> None:
        """A difference that may matter. `weak`: what is left is a guess."""
        self.note(what)
        self.score *= score
        self.weak += weak

    def deny(self, what: str) -> None:
        """A difference that settles the matter."""
        self.evidence, self.denied = [what], True

    def verdict(self) -> Likeness:
        """What all findings together say."""
        if self.denied:
            return Different(tuple(self.evidence))
        if self.weak > WEAK_MAX:
            return Different(("more than one difference that only a guess explains", *self.evidence))
        if self.score < 1.0:
            return Likely(tuple(self.evidence), round(self.score, 3))
        return Same(tuple(self.evidence) or ("written alike",))


WORD_CHARS_MAX = 60
"""Longer words are compared for equality only."""


_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "'", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
# Points that writers of Latin, Greek, Cyrillic, Hebrew and Arabic leave out. In other scripts such marks are letters.
_POINTS = pattern("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u06d6-\u06ed\u0640]")
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ə": "e", "ς": "σ"}
    | {"ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه"}
)
_DIGRAPHS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_KATAKANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}
# Characters frequent in names of people, places and firms whose traditional form differs from the simplified one.
_TRADITIONAL = (
    "張陳劉楊黃趙吳馬許鄭謝馮蔣葉盧魯蘇呂賈鄧龔嚴賴鐘錢偉華麗軍傑強靜濤東國學輝紅鳳龍雲蘭慶愛榮貴樹寶興銀"
    "車電業動團廣灣門島縣區鎮爾羅遠達聖飛鵬輔濱滬漢臺銘詩瑋穎"
)
_SIMPLIFIED = (
    "张陈刘杨黄赵吴马许郑谢冯蒋叶卢鲁苏吕贾邓龚严赖钟钱伟华丽军杰强静涛东国学辉红凤龙云兰庆爱荣贵树宝兴银"
    "车电业动团广湾门岛县区镇尔罗远达圣飞鹏辅滨沪汉台铭诗玮颖"
)
_HAN = str.maketrans(_TRADITIONAL, _SIMPLIFIED)
_CYRILLIC = str.maketrans(
    dict(zip("абвгдезийклмнопрстуфыэіґ", "abvgdeziiklmnoprstufyeig", strict=True))
    | {"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "iu", "я": "ia", "є": "ie", "ё": "e"}
    | {"ъ": "", "ь": "", "ї": "i", "ј": "j", "љ": "lj", "њ": "nj", "ћ": "c", "ђ": "dj", "џ": "dz", "ў": "u"}
)
_GREEK_PAIRS = (("ου", "ou"), ("αυ", "av"), ("ευ", "ev"), ("μπ", "b"), ("ντ", "nt"), ("γγ", "ng"), ("γκ", "g"))
_GREEK = str.maketrans(
    dict(zip("αβγδεζηικλμνξοπρστυφω", "avgdeziiklmnxoprstyfo", strict=True)) | {"θ": "th", "χ": "ch", "ψ": "ps", "σ": "s"}
)
# Ways to romanise one sound, made one. Applied to both sides, so that it only has to be even-handed.
_ROUGH = tuple(
    (pattern(spelled), sound)
    for spelled, sound in (
        ("ksh", "x"),
        ("gk", "g"),
        ("kh", "h"),
        ("(?<!s)ch", "h"),
        ("ph", "f"),
        ("th", "t"),
        ("tz|cz", "ts"),
        ("ou|oo", "u"),
        ("ee", "i"),
        ("ks", "x"),
        ("w", "v"),
        ("[yj]", "i"),
        (r"(.)\1+", r"\1"),
    )
)
_VOWELS = "aeiouy"
_UNITS = frozenset("123456789")
_ORDINAL = pattern(r"(\d+)(?:st|nd|rd|th)")


def plain(text: str) -> str:
    """`text` in lower case with ordinary quotes and single spaces, without invisible characters."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_QUOTES)
    seen = "".join(" " if (kind := unicodedata.category(char)) == "Cc" else "" if kind == "Cf" else char for char in text)
    return " ".join(seen.split())


def folded(text: str) -> str:
    """`text`, already plain, without what writers leave out: accents, vowel points, kinds of kana."""
    if text.isascii():
        return text
    bare = _POINTS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare).translate(_LETTERS).translate(_KATAKANA).translate(_HAN)


def differ_in_accents_only(one: str, other: str) -> bool | None:
    """None if they differ otherwise. True if one side leaves accents out or spells them; False if they contradict."""
    if one == other:
        return True
    bare_one, bare_other = folded(one), folded(other)
    if bare_one == bare_other:
        return one == bare_one or other == bare_other or _points_agree(one, other)
    spelled_one, spelled_other = folded(one.translate(_DIGRAPHS)), folded(other.translate(_DIGRAPHS))
    if spelled_one in (bare_other, spelled_other) or bare_one == spelled_other:
        return True
    return None


def romanised(text: str) -> str | None:
    """Cyrillic or Greek in Latin letters, made rough; Latin made rough alike. None for other scripts."""
    lettered = folded(text)
    for pair, sound in _GREEK_PAIRS:
        lettered = lettered.replace(pair, sound)
    lettered = lettered.translate(_CYRILLIC).translate(_GREEK)
    if not lettered.isascii():
        return None
    for spelled, sound in _ROUGH:
        lettered = spelled.sub(sound, lettered)
    return lettered


def is_latin(text: str) -> bool:
    """Whether `text` is in Latin letters, once accents are gone."""
    return folded(text).isascii()


def numerals(words: Iterable[str]) -> list[str]:
    """The words with `seven` as `7`, `fifth` as `5th`, `twenty one` as `21`."""
    in_words, in_tens = numbers_in_words(), tens_in_words()
    made: list[str] = []
    tens = 0
    for word in words:
        number = f"{int(match[1][:9])}th" if (match := _ORDINAL.fullmatch(word)) else in_words.get(word, word)
        if tens and number in _UNITS:
            made[-1] = str(tens + int(number))
            tens = 0
        else:
            tens = in_tens.get(word, 0)
            made.append(str(tens) if tens else number)
    return made


@cache
def numbers_in_words() -> dict[str, str]:
    """`seven` is 7, `seventh` is 7th, up to twenty."""
    listed = sections(__package__, "numbers.txt")
    cardinals = {word: str(number) for number, word in enumerate(listed["cardinals"])}
    return cardinals | {word: f"{number}th" for number, word in enumerate(listed["ordinals"])}


@cache
def tens_in_words() -> dict[str, int]:
    """`twenty` is 20, up to ninety."""
    return {word: 20 + 10 * number for number, word in enumerate(sections(__package__, "numbers.txt")["tens"])}


def distance(one: str, other: str, *, most: int = 3) -> int:
    """Letters to add, drop, change or swap to get from one to the other; above `most` it is `most + 1`."""
    from rapidfuzz.distance import OSA  # loaded at the first use: importing names must cost nothing

    return int(OSA.distance(one, other, score_cutoff=most))


def is_slip(one: str, other: str, *, endings: bool = True) -> bool:
    """Whether two Latin words may be one, misheard or mistyped. Short words must also sound alike.

    `endings`: a last vowel tells two words apart, as it does given names.
    """
    one, other = folded(one), folded(other)
    shorter, longer = sorted((len(one), len(other)))
    if shorter < 3 or longer > WORD_CHARS_MAX or one == other or not (one + other).isalpha() or not is_latin(one + other):
        return False
    alike = sounds(one) & sounds(other)
    if (one[0] != other[0] and not alike) or (endings and _differ_in_ending(one, other)):
        return False
    if respelled(one) == respelled(other):
        return True
    if shorter < 4:
        return False
    apart = distance(one, other)
    if apart == 1:
        if not alike:
            return shorter >= 8 or (shorter >= 6 and sorted(one) == sorted(other))
        # `Lola` and `Lila`, `Diana` and `Dina`: where there are few consonants, the vowels make the name.
        return _skeleton(one) != _skeleton(other) or (shorter >= 5 and max(map(len, alike)) > 2)
    if apart == 2:
        return shorter >= (6 if alike else 10)
    return apart == 3 and shorter >= 10 and bool(alike)


def respelled(word: str) -> str | None:
    """`nicky` and `nikki`, `geeta` and `gita` alike: what differs is only how a sound is written."""
    return romanised(_HARD_C.sub("k", _I_ENDING.sub("i", word)))


def differ_in_a_vowel(one: str, other: str) -> bool:
    """`hamburg` and `homburg`: a vowel in place of another; `i` and `y` count as one."""
    one, other = (folded(word).replace("y", "i") for word in (one, other))
    return one != other and len(one) == len(other) and _skeleton(one) == _skeleton(other)


def is_short_form(one: str, other: str) -> bool:
    """`Zeb` or `Zebby` for `Zebulon`, `Becca` for `Rebecca`: the beginning or end of the other, perhaps with an ending."""
    short, long = sorted((folded(one), folded(other)), key=len)
    if len(short) > 3 and len(long) > len(short) + 1 and long.endswith(short):
        return True
    stem = _DOUBLED.sub(r"\1", _PET_ENDING.sub("", short)) if len(short) > 3 else short
    if not 3 <= len(stem) <= 5 or not long.startswith(stem) or len(long) < max(len(short) + 1, len(stem) + 2):
        return False
    return _WOMENS_ENDING.fullmatch(long.removeprefix(stem)) is None


def differ_in_doubling(one: str, other: str) -> bool:
    """`zimmerman` and `zimmermann`: the same letters, one of them written twice."""
    return one != other and _DOUBLED.sub(r"\1", folded(one)) == _DOUBLED.sub(r"\1", folded(other))


_Rules = tuple[tuple[re.Pattern[str], str], ...]
# In the manner of Metaphone, written for names of many languages: how a name may sound to somebody who writes it down.
_SOUND_RULES: _Rules = tuple(
    (pattern(spelled), sound)
    for spelled, sound in (
        ("^(?:kn|gn|pn|mn)", "n"),
        ("^wr", "r"),
        ("^ps", "s"),
        ("^x", "s"),
        ("^mac(?=[^aeiouyh])|^mc", "mk"),
        ("ksh", "ks"),
        ("tsch|sch|sh|tch", "X"),
        ("ch(?=[rl])|^ch(?=[rlaou]r)", "k"),
        ("ch|cz", "X"),
        ("ph|bh(?=$)", "f"),
        ("th|dh", "t"),
        ("kh|ck|q|gh(?=[aeiouy])", "k"),
        ("(?<=[aeiouy])gh", ""),
        ("bh", "b"),
        ("dg(?=[eiy])|jh", "j"),
        ("c(?=[eiy])|z", "s"),
        ("c", "k"),
        ("x", "ks"),
        ("w(?=[^aeiouy]|$)", ""),
        ("(?<=m)p(?=[st])", ""),
        ("(?<!^)y", "i"),
        (r"(?<=[^aeiou])h|h(?=[^aeiou]|$)", ""),
    )
)
_VOICED = str.maketrans("dbvgw", "tpfkf")
_I_ENDING = pattern("(?:ie|ey|ee|y|i)$")
_HARD_C = pattern("ck|c(?![ehiy])")
_PET_ENDING = pattern("(?:ie|ey|y)$")
_WOMENS_ENDING = pattern("na|ne|ina|ine|ia|ie|la|le|lla|elle|ta|te|tta|tte|ette|ita|ra")
_SOFT_G = pattern("(?<!g)g(?=[eiy])")
_DOUBLED = pattern(r"(.)\1+")


@lru_cache(maxsize=16_384)
def sounds(word: str) -> frozenset[str]:
    """One or two keys of how a Latin word sounds; words that share one may be heard for one another. It never decides."""
    letters = re.sub("[^a-z]", "", folded(word))[:WORD_CHARS_MAX]
    if not letters:
        return frozenset()
    return frozenset(_sound(spelled) for spelled in {letters, _SOFT_G.sub("j", letters)})


def _sound(letters: str) -> str:
    for spelled, sound in _SOUND_RULES:
        letters = spelled.sub(sound, letters)
    # Which vowel stands where is what dictation gets wrong first; that a name begins with one is heard.
    head, rest = letters[:1], re.sub("[aeiou]", "", letters[1:])
    return _DOUBLED.sub(r"\1", (("a" if head in _VOWELS and head != "y" else head) + rest).translate(_VOICED))


def _differ_in_ending(one: str, other: str) -> bool:
    """Whether only the last vowel differs: `mario` and `maria`, `martin` and `martine` are two names."""

    one, other = (_I_ENDING.sub("i", word) for word in (one, other))
    return one != other and one.rstrip("aeo").rstrip("i") == other.rstrip("aeo").rstrip("i")


def _skeleton(word: str) -> str:
    return _DOUBLED.sub(r"\1", re.sub("[aeiouy]", "", word))


def _points_agree(one: str, other: str) -> bool:
    """Whether the accents of one side are a part of the other's."""
    marks_one, marks_other = (set(_POINTS.findall(unicodedata.normalize("NFD", text))) for text in (one, other))
    return marks_one <= marks_other or marks_other <= marks_one
