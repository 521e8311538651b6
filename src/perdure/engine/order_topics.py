"""What a standing order is about, and which held order a new one, or one that is taken back, puts out of force.

Careful: what is not clearly about the same thing, under the same condition, stays. Of two that clash, the newest stands
last anyway.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from perdure.domain.instructions import OrderKind

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

# Each language under one name, in the four languages that orders are read in.
_LANGUAGES = {
    name: words.split()[0]
    for words in (
        "english englisch anglais inglés", "french französisch français francés", "german deutsch allemand alemán",
        "spanish spanisch espagnol español castellano", "italian italienisch italien italiano",
        "portuguese portugiesisch portugais portugués", "dutch niederländisch néerlandais holandés",
        "polish polnisch polonais polaco", "russian russisch russe ruso", "turkish türkisch turc turco", "greek", "swedish",
        "norwegian", "danish", "finnish", "czech", "hungarian", "romanian", "ukrainian",
        "arabic arabisch arabe árabe", "hebrew", "hindi", "bengali", "urdu", "persian",
        "chinese mandarin chinesisch chinois chino", "cantonese", "japanese japanisch japonais japonés", "korean", "vietnamese",
        "thai", "indonesian", "latin", "catalan", "welsh", "irish",
    )
    for name in words.split()
}  # fmt: skip
_SPOKEN = re.compile(
    rf"\b(?:in|into|auf|en|to|speak|talk|only|nur|back to|answering in)(?: plain| simple| only)? ({'|'.join(_LANGUAGES)})\b"
    r"(?! (?:words?|dishes|food|restaurants?|films?|movies?|books?|recipes?|terms?|names?|spelling|cuisine))",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?i:\b(?:call(?:ing)? me|address(?:ing)? me as|refer(?:ring)? to me as|be called|nenne? mich|appelle[z]?[- ]moi"
    r"|llámame)(?: (?:just|simply|bitte|einfach|nur|by my))*) ((?:(?:[Dd]r|[Mm]rs?|[Mm]s"
    r"|[Pp]rof)\.? )?[^\W\d_a-zà-ÿ][\w'’-]*|sir|madam|ma'am|boss|captain)"
)
# Things that are wanted one way or the other: each way by its words.
_EITHER: Mapping[str, Mapping[str, str]] = {
    "units": {"metric": r"metric|metrische\w*|métri\w+|kilomet(?:er|re)s?", "imperial": r"imperial|miles"},
    "temperature": {"celsius": r"celsius|centigrade", "fahrenheit": r"fahrenheit"},
    "clock": {"12": r"(?:12|twelve)[- ]hour|am/pm", "24": r"(?:24|twenty-four)[- ]hour|24h"},
    "spelling": {"british": r"british (?:english|spelling)", "american": r"(?:american|us) (?:english|spelling)"},
    "dates": {
        "mdy": r"month[- /]day[- /]year|mm[-/]dd[-/]yyyy|month before the day",
        "dmy": r"day[- /]month[- /]year|dd[-/.]mm[-/.]yyyy|day before the month|tag\.monat\.jahr",
        "ymd": r"year[- /]month[- /]day|yyyy-mm-dd|iso(?: 8601)?(?: dates?| format)?",
    },
    "length": {
        "short": r"(?:keep (?:it|your answers|your replies|answers|replies) )?(?:short(?:er)?|brief(?:er)?|concise)"
        r"(?: answers| replies| responses)?|kürzer|kurze|plus brefs?|más cortas",
        "long": r"(?:long(?:er)?|detailed|in depth|in detail|thorough)(?: answers| replies| responses)?|ausführlich\w*",
    },
    "register": {
        "formal": r"formal(?:ly)?|sieze|vouvoie|usted",
        "informal": r"informal(?:ly)?|casual(?:ly)?|duze|tutoie|tutéame",
    },
    # These are used or not.
    "emoji": {"emoji": r"emojis?|emoticons?|smileys?"},
    "exclamation": {"mark": r"exclamation (?:mark|point)s?|ausrufezeichen|points d['’]exclamation|signos de exclamación"},
    "bullets": {"bullets": r"bullet(?:[- ]points?|s)\b"},
    "markdown": {"markdown": r"markdown"},
    "rhymes": {"rhymes": r"rhymes?|haikus?"},
    "jargon": {"jargon": r"jargon"},
    "contractions": {"contractions": r"contractions"},
}
_FORMS = {
    topic: {value: re.compile(rf"\b(?:{words})(?!\w)", re.IGNORECASE) for value, words in either.items()}
    for topic, either in _EITHER.items()
}
_UNCLEAR = "?"
_DENIED = re.compile(
    r"\b(?:never|not|don['’]?t|no|avoid|without|stop|quit|skip|refrain|kein\w*|nie(?:mals)?|nicht|jamais|plus d|arrête"
    r"|nunca|no uses|deja)\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"(?:^|[,;:–—]\s*|\b(?:please|now on|forwards?|future|and|but|notice|you (?:to|should|must)),? )(?:please )?(?:never"
    r"|don['’]t|do not|no|avoid|stop|not)\b|\b(?:kein\w*|nie(?:mals)?|nunca|jamais)\b|\bn(?:e |['’])\w+ plus\b|\bno \w+s\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:when|whenever|if|every ?time|each time|any ?time|unless|except|while|during|before|after|wenn|falls|jedes ?mal"
    r"|quand|lorsque|si|chaque fois|cuando|cada vez)\b|\b(?:in|for|with|on) (?:e-?mails?|code|recipes|dates|my|the|all|any"
    r"|every)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:[,;–—]| because| since) *(?:so )?(?:i|i['’]m|it|it['’]s|my|we|that|because|since)\b.*", re.IGNORECASE | re.DOTALL
)
# Ways to take an order back: as something to forget, as no longer asked for; else it is something that is allowed again.
_FORGET = re.compile(
    r"\b(?:forget|ignore|disregard|scrap|drop|cancel|lift|undo|scratch|never ?mind|take back|changed my mind"
    r"|no longer (?:applies|counts|holds)|vergiss|oubliez?|olvida)\b",
    re.IGNORECASE,
)
_DROP = re.compile(
    r"\b(?:stop|quit|cease|(?:don['’]t|do not) (?:have|need) to|needn['’]t|no need|no longer (?:have|need)|hör|musst|brauchst"
    r"|arrêtez?|plus (?:besoin|obligée?)|deja|para|ya no)\b",
    re.IGNORECASE,
)

# Words that an order has besides what it is about: they tell no two orders apart. Endings are taken off, as `_root` does.
_CARRIERS = """
    a an the is are be been being do does of in on at by for with and or but so as to too also just only me my mine you
    your yours i i'm we us our it its this that these those there here please pls kindly ok okay thanks hey hi always
    never ever whenever every each any all time times from now forward going moving henceforth future default rule until
    further notice anymore more longer again no not don't dont doesn't want need like would could should must can may
    will shall have has expect prefer make sure remember remind keep let lets answer reply respond response write use
    format give include show tell speak talk explain provide add list ask suggest recommend mention bring up avoid put
    call address refer send say answers replies stop quit calling using forget ignore disregard scrap drop cancel mind
    per temperature temperatures what said told earlier before about regarding instruction order request limit needn't
    feel free fine go back switch take changed applies something anything everything thing things one ones lot lots much
    many very really new when if bitte ab jetzt immer nie niemals nicht mehr auf kein keine keinen ich du mich mir dir
    was über zu gesagt habe die der das den ein eine möchte dass wieder kannst darfst musst antworte benutze benutzen
    verwende nenn nenne nennst vergiss von nun unit units clock date dates system spelling einheit sistema système s'il
    te plaît toujours jamais ne pas plus de des d' la le les un une je tu ce que j'ai dit sur à partir maintenant
    désormais réponds utilise utiliser n'utilise appelle-moi oublie peux nouveau en besoin d'emojis por favor siempre
    nunca más el los las una ahora lo dije sobre responde usa uses usar olvida puedes volver ya it's that's let's i've you're
"""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What an order wants of its topic, or does not want."""

    value: str
    denied: bool = False

    def clashes(self, other: _Wish) -> bool:
        """Whether no agent can follow both."""
        if _UNCLEAR in (self.value, other.value) or (self.denied and other.denied):
            return False
        return (self.value == other.value) == (self.denied or other.denied)


def withdraws(said: str, held: Sequence[str], *, kind: OrderKind) -> int | None:
    """Which of the `held` orders `said` puts out of force; None if none, or if that is not sure.

    An order does so if it is of the same topic and says something else of it; what takes back, if it names one of them.
    """
    fits = _replaces if kind == "order" else _takes_back
    found = [index for index, order in enumerate(held) if fits(said, order)]
    if kind == "order":
        return found[-1] if found else None
    return found[0] if len(found) == 1 else None


def says_same_order(one: str, other: str) -> bool:
    """Whether two orders are the same words, but for case, punctuation and courtesy."""
    return _plain_words(one) == _plain_words(other)


def _replaces(said: str, order: str) -> bool:
    if _CONDITION.search(said) or _CONDITION.search(order):
        return False
    new, old = _topics(said), _topics(order)
    if len(old) != 1 or _says_more(order):
        return False
    [(topic, wish)] = old.items()
    return topic in new and new[topic].clashes(wish)


def _takes_back(said: str, order: str) -> bool:
    """Whether the order is meant: allowed again, no longer asked for, or named as something to forget."""
    forgets = _FORGET.search(said) is not None
    drops = not forgets and _DROP.search(said) is not None
    named, old = _topics(said), _topics(order)
    if named and old:
        if len(named) != 1 or len(old) != 1 or named.keys() != old.keys() or not _beside(said) <= _content(order):
            return False
        [mine], [theirs] = named.values(), old.values()
        if forgets:
            return mine.value == theirs.value
        if drops:
            return mine.value == theirs.value and not theirs.denied
        return _Wish(mine.value).clashes(theirs)
    words = _content(said)
    if not words or not words <= _content(order):
        return False
    return forgets or drops != (_FORBIDS.search(order) is not None)


def _topics(text: str) -> Mapping[str, _Wish]:
    """What an order is about, with what it wants of it."""
    found: dict[str, _Wish] = {}
    if (spoken := _SPOKEN.search(text)) is not None:
        found["language"] = _Wish(_LANGUAGES.get(spoken[1].casefold(), spoken[1]), _denies(text, spoken))
    if (name := _NAME.search(text)) is not None:
        found["name"] = _Wish(name[1].casefold(), _denies(text, name))
    for topic, either in _FORMS.items():
        places = [(value, match) for value, form in either.items() if (match := form.search(text)) is not None]
        if places:
            value, match = places[0]
            found[topic] = _Wish(value, _denies(text, match)) if len(places) == 1 else _Wish(_UNCLEAR)
    return found


def _denies(text: str, match: re.Match[str]) -> bool:
    """Whether the order is against what it names here."""
    return _DENIED.search(text, 0, match.start()) is not None


def _says_more(order: str) -> bool:
    """Whether an order says something besides its one topic, which would be lost with it; why it is given does not count."""
    return bool(_beside(_REASON.sub("", order)))


def _beside(text: str) -> frozenset[str]:
    """What a text is about besides the topics that have a name."""
    for form in (_SPOKEN, _NAME, *(form for either in _FORMS.values() for form in either.values())):
        text = form.sub(" ", text)
    return _content(text)


def _content(text: str) -> frozenset[str]:
    """The words by which an order is told from others, without endings."""
    return frozenset(root for word in _WORD.findall(text) if (root := _root(word)) not in _carriers())


def _root(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold().replace("’", "'"))
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    for ending in ("ing", "ed", "es", "s", "en", "e"):
        if plain.endswith(ending) and len(plain) - len(ending) >= 3:
            plain = plain[: -len(ending)]
            break
    return plain[:-1] if len(plain) > 3 and plain[-1] == plain[-2] else plain


@lru_cache(maxsize=1)
def _carriers() -> frozenset[str]:
    return frozenset(map(_root, _CARRIERS.split()))


_POLITE = "please pls plz kindly ok okay hey hi so and but also just bitte thanks favor por"
_COURTESY = frozenset(_POLITE.split())


def _plain_words(text: str) -> list[str]:
    words = _WORD.findall(text.casefold().replace("’", "'").replace("do not ", "don't "))
    return [word for word in words if word not in _COURTESY]
