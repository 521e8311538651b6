"""Which way a question looks: words around a time that point ahead of it or back, in four languages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from perdure.engine.timegrammar import STOPS, compiled

_AHEAD = (
    r"\b(?:will|shall|would|won['’]t|going to|gonna|plan(?:ning|ned|s)? (?:to|for)|let['’]s|remind|schedule[ds]?|upcoming|"
    r"tomorrow|next|no later than|not later than|at the latest|do (?:i|we) have|have (?:i|we) got|what['’]s on|deadline|due|by|"
    r"werde\w*|wird|wirst|nächste\w*|steht|morgen|habe ich (?:einen?|einem) (?:termin|besprechung|treffen|prüfung|verabredung)|"
    r"vais|vas|va|vont|allons|allez|prochaine?s?|dois|voy a|vas a|va a|vamos a|van a|próxim\w+|tengo que)\b|['’]ll\b"
)
_BEHIND = (
    r"\b(?:was|were|did|didn['’]t|had|went|got|came|saw|met|made|took|bought|left|said|told|sent|gave|began|started|used to|"
    r"ago|yesterday|(?:until|till|through|to) now|since|been|last|"
    r"(?<!half )(?<!quarter )(?<!\d )(?<!five )(?<!ten )(?<!twenty )(?<!minutes )(?<!mins )past|"
    r"(?!(?:need|feed|seed|speed|indeed|hundred|proceed|succeed|exceed)\b)[a-z]{2,}ed|war|waren|hatte\w*|gestern|letzte\w*|seit|étais|était|depuis|hier|fui|fue|"
    r"estaba|desde|ayer)\b"
)
AROUND_CHARS = 120


@dataclass(frozen=True, slots=True)
class Cues:
    """Where in a text words point ahead, where they point back, and where sentences end; each in order."""

    ahead: tuple[tuple[int, int], ...]
    behind: tuple[tuple[int, int], ...]
    stops: tuple[int, ...]

    def tense(self, start: int, end: int, bias: int) -> int:
        """1 or -1 for the time that stands there: by the nearest cue before it in its sentence, else after it, else `bias`."""
        place = bisect_left(self.stops, start)
        low = max(start - AROUND_CHARS, self.stops[place - 1] if place else 0)
        ahead, behind = (_last(cues, low, start) for cues in (self.ahead, self.behind))
        if ahead != behind:
            return 1 if ahead > behind else -1
        place = bisect_left(self.stops, end)
        high = min(end + AROUND_CHARS, self.stops[place] if place < len(self.stops) else end + AROUND_CHARS)
        if _any(self.ahead, end, high):
            return 1
        return -1 if _any(self.behind, end, high) else bias


def cues_of(text: str) -> Cues:
    return Cues(
        tuple(match.span() for match in compiled(_AHEAD).finditer(text)),
        tuple(match.span() for match in compiled(_BEHIND).finditer(text)),
        tuple(match.start() for match in STOPS.finditer(text)),
    )


def _last(cues: tuple[tuple[int, int], ...], low: int, high: int) -> int:
    """The end of the last cue between the two places, or -1."""
    place = bisect_right(cues, high, key=lambda cue: cue[1])
    return cues[place - 1][1] if place and cues[place - 1][0] >= low else -1


def _any(cues: tuple[tuple[int, int], ...], low: int, high: int) -> bool:
    place = bisect_left(cues, low, key=lambda cue: cue[0])
    return place < len(cues) and cues[place][1] <= high
