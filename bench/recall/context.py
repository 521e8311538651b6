"""Evidence in context: for how many questions is all the evidence inside `context(question)` of a given size?

    PERDURE_BENCH_DATA=DIR python bench/recall/context.py [locomo lme48 beam-100K] [--limit N] [--category NAME]

Beside it, of the same size by the same counter: the latest messages that fit, and the messages that plain BM25 finds.
Evidence counts only where a message stands there whole. DIR is the folder that holds `recall/`; the loaders of the data are
those of `recall_bench`, which must be importable.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from machine import facts
from perdure.engine.text.tokens import estimate_tokens
from recall.engine import Engine

BUDGETS = (1_000, 2_000, 4_000, 8_000)
LINE_TOKENS = 8
"""What date and speaker of a line cost: the plain lists are shown like ours."""


class Bm25:
    """Plain BM25 over single messages: lower-case words, k1 1.5, b 0.75."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(_words(text)) for text in texts]
        self._holders = Counter(word for counts in self._counts for word in counts)
        self._usual = sum(sum(counts.values()) for counts in self._counts) / max(1, len(texts))

    def order(self, question: str, allowed: Callable[[int], bool]) -> list[int]:
        words = set(_words(question))
        total = len(self._counts)
        scored = []
        for place, counts in enumerate(self._counts):
            score = 0.0
            if allowed(place):
                length = sum(counts.values())
                for word in words & counts.keys():
                    rarity = math.log1p((total - self._holders[word] + 0.5) / (self._holders[word] + 0.5))
                    score += rarity * counts[word] * 2.5 / (counts[word] + 1.5 * (0.25 + 0.75 * length / self._usual))
            if score:
                scored.append((-score, place))
        return [place for _, place in sorted(scored)]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def fitting(order: Sequence[int], tokens: Sequence[int], budget: int) -> set[int]:
    """The first of `order` that fit; one that does not is passed over."""
    kept = set()
    for place in order:
        if tokens[place] + LINE_TOKENS <= budget:
            kept.add(place)
            budget -= tokens[place] + LINE_TOKENS
        if budget < LINE_TOKENS:
            break
    return kept


def measure(name: str, haystacks: Sequence[Any], limit: int | None, category: str | None) -> None:
    found = {(kind, budget): [] for kind in ("perdure", "latest", "bm25") for budget in BUDGETS}
    for hay in haystacks:
        engine = Engine()
        engine.ingest(hay.name, hay.units)
        tokens = [estimate_tokens(unit.text) for unit in hay.units]
        plain = Bm25([f"{unit.speaker}: {unit.text}" for unit in hay.units])
        for question in hay.questions[:limit]:
            if not question.gold or category not in (None, question.category):
                continue
            gold = set(question.gold)
            allowed = [place for place, unit in enumerate(hay.units) if question.pool is None or unit.session in question.pool]
            inside = set(allowed)
            orders = {"latest": allowed[::-1], "bm25": plain.order(question.text, inside.__contains__)}
            for budget in BUDGETS:
                for kind, order in orders.items():
                    ids = {hay.units[place].id for place in fitting(order, tokens, budget)}
                    found[(kind, budget)].append(gold <= ids)
                if question.pool is None:
                    shown = engine.context(hay.name, question.text, budget, question.asked_at)
                    found[("perdure", budget)].append(gold <= shown)
        engine.memory.close()
    print(f"{name}: {len(found[('latest', BUDGETS[0])])} questions; share whose whole evidence is in the context")
    for kind in ("perdure", "latest", "bm25"):
        shares = [_share(found[(kind, budget)]) for budget in BUDGETS]
        print(f"  {kind:8s}" + "  ".join(f"{budget // 1000}K {share}" for budget, share in zip(BUDGETS, shares, strict=True)))


def _share(hits: Sequence[bool]) -> str:
    if not hits:
        return "-"
    share = sum(hits) / len(hits)
    half = 1.96 * math.sqrt(share * (1 - share) / len(hits))
    return f"{share:.3f} ±{half:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=["locomo", "lme-all", "beam-100K"])
    parser.add_argument("--limit", type=int, help="questions per conversation")
    parser.add_argument("--category", help="only questions of this kind, such as BEAM's instruction_following")
    args = parser.parse_args()
    root = os.environ.get("PERDURE_BENCH_DATA")
    if not root:
        raise SystemExit("set PERDURE_BENCH_DATA to the folder that holds `recall/`")
    from recall_bench.data import LOADERS

    for name, value in facts(Path.cwd()).items():
        print(f"{name}: {value}")
    for name in args.sets:
        measure(name, LOADERS[name](f"{root}/recall"), args.limit, args.category)


if __name__ == "__main__":
    main()
