"""What users of the speed benchmark said and ask, made from a seed: nothing is taken from any data set."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

WORDS, ZIPF, SHIFT = 5_000, 1.0, 2.7
NAMES = ("Ana", "Ben", "Carla", "David", "Elena", "Farid", "Grace", "Hugo", "Irene", "Jonas", "Keiko", "Liam", "Mara", "Nadia")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "September", "October", "November", "December")
QUESTIONS = (
    "What did {name} say about the {0} and the {1}?",
    "Do you remember the {0}, the {1} and the {2}?",
    "When did we talk about {0} {1}?",
    "Why was the {0} {1} so {2}?",
    "{0} {1} {2}",
    "What was planned about the {0} and the {1} in {month}?",
)

Question = tuple[str, str]
"""Who asks, and what."""


class Talk:
    """Messages of one user: 8 to 40 English words each, as frequent as Zipf says, with names and numbers among them."""

    def __init__(self, seed: int, user: str) -> None:
        self._draw = random.Random(f"{seed} {user}")

    def texts(self, count: int) -> list[str]:
        return [self._text() for _ in range(count)]

    def _text(self) -> str:
        draw = self._draw
        words = draw.choices(_vocabulary(), cum_weights=_weights(), k=draw.randint(8, 40))
        for place, word in enumerate(words):
            chance = draw.random()
            words[place] = draw.choice(NAMES) if chance < 0.03 else str(draw.randint(1, 2_000)) if chance < 0.06 else word
        for place in range(7, len(words) - 1, 9):
            words[place] += ","
        text = " ".join(words) + draw.choice(".?!")
        return text[0].upper() + text[1:]

    def questions(self, texts: Sequence[str], count: int) -> list[str]:
        """Each about some of the rarer words of a text that is held; one in six names a month."""
        return [self._question(self._draw.choice(texts)) for _ in range(count)]

    def _question(self, text: str) -> str:
        draw, common = self._draw, set(_vocabulary()[:200])
        words = [word for word in text.strip(".?!").replace(",", "").split() if word.islower() and word not in common]
        about = draw.sample(words, 3) if len(words) >= 3 else [*words, *draw.choices(_vocabulary()[200:], k=3)][:3]
        month = f"{draw.choice(MONTHS)} {draw.randint(2020, 2025)}"
        return draw.choice(QUESTIONS).format(*about, name=draw.choice(NAMES), month=month)


@cache
def _vocabulary() -> list[str]:
    """Words that the embedder knows, by how common they are, which is how its table lists them."""
    from perdure.adapters.embedding.static import bundled

    known = (word for word in bundled().table.vocabulary if word.isascii() and word.isalpha() and len(word) > 1)
    return list(itertools.islice(known, WORDS))


@cache
def _weights() -> list[float]:
    return list(itertools.accumulate(1 / (rank + SHIFT) ** ZIPF for rank in range(WORDS)))


@dataclass(frozen=True)
class Crowd:
    """Users with as many memories each, and what is asked about them."""

    seed: int
    count: int
    each: int

    @cached_property
    def users(self) -> list[str]:
        return [f"user-{number}" for number in range(self.count)]

    def talk(self, user: str) -> tuple[Talk, list[str]]:
        talk = Talk(self.seed, user)
        return talk, talk.texts(self.each)

    def questions(self, count: int, users: Sequence[str] = ()) -> list[Question]:
        """Of users in an order that mixes them."""
        chosen = users or random.Random(self.seed).sample(self.users, min(count, self.count))
        made = [(user, *self.talk(user)) for user in chosen]
        share = -(-count // len(made))
        asked = [[(user, question) for question in talk.questions(texts, share)] for user, talk, texts in made]
        return [one for turn in zip(*asked, strict=True) for one in turn][:count]
