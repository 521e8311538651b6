"""The verdicts on two names, and how single findings add up to one. What is found is left to the modules per type."""

from __future__ import annotations

from dataclasses import dataclass, field


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
