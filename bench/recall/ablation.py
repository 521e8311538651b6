"""What each arm and each rule of recall is worth: how much worse the product finds when one of them is left out.

    PERDURE_BENCH_DATA=DIR python bench/recall/ablation.py [locomo lme48 lme-all beam-100K] [--limit N] [--only ROW …]

Everything goes through the product, as in `engine.py`: each question is one call of `recall`. A rule is left out by putting
a value in its place under which it does nothing; the embedder and the blend are settings, and get a store of their own.
With `PERDURE_BENCH_MINILM`, the folder that `tools/build_onnx.py` makes, the extra `local` is measured, too.
The tables, in Markdown: how good each setting is, that by kind of question, and the points lost by what was left out, question
by question beside the product as it is. Intervals are 95 % of 2,000 resamplings of the questions, drawn with the seed 0;
the sessions among which LongMemEval's questions are asked are drawn by the ids of the questions. Weights are not set anew when
an arm is gone, so what others could make up for is counted as its worth. DIR is the folder that holds `recall/`; the loaders
of the data are those of `recall_bench`, which must be importable.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from perdure.engine.search import question as asking
from perdure.engine.search import ranking

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine
from recall.engine import Engine

SETS = ("locomo", "lme48", "lme-all", "beam-100K")
FOUND_MAX = 60
KS = (5, 10, 20)


class Figure(NamedTuple):
    """A column of a table: of which questions, and what of them."""

    set: str
    level: str
    """`turn` for messages, `session` for the sessions they stand in."""
    metric: str
    category: str = ""

    @property
    def title(self) -> str:
        metric = self.metric.replace("recall", "r")
        level = "" if self.level == "turn" else f"{self.level} "
        return f"{self.category or self.set} {level}{metric}"


QUALITY = (("turn", "recall@5"), ("turn", "recall@10"), ("turn", "recall@20"), ("session", "all@5"), ("session", "all@10"))
WORTH = (
    Figure("locomo", "turn", "recall@10"),
    Figure("locomo", "turn", "recall@10", "multi-hop"),
    Figure("lme48", "turn", "recall@10"),
    Figure("lme48", "session", "all@5"),
    Figure("lme-all", "turn", "recall@10"),
    Figure("lme-all", "session", "all@10"),
    Figure("beam-100K", "turn", "recall@10"),
)


def weighed(**weights: float) -> AbstractContextManager[Any]:
    """Recall with other weights."""
    return patch.object(ranking, "fused", partial(ranking.fused, weights=replace(ranking.WEIGHTS, **weights)))


def nothing(shelf: Any, *_: Any) -> Any:
    """An arm that finds nothing."""
    return np.zeros(shelf.items, np.float32)


RULES: Mapping[str, AbstractContextManager[Any]] = {
    "words": patch.object(ranking, "words_scores", nothing),
    "meaning": weighed(meaning=0.0),
    "near words": patch.object(asking, "NEAR_PER_WORD_MAX", 0),
    "session": weighed(session=0.0),
    "around": weighed(around=0.0),
    "around: only the next message": patch.object(ranking, "HOPS", 1),
    "around: long messages as short ones": weighed(brief_terms=1e9),
    "speaker": weighed(speaker=0.0),
    "names of speakers are words": patch.object(asking, "_speakers_named", lambda *_: {}),
    "telling": weighed(telling=0.0),
    "voice": weighed(machine=1.0),
    "voice: no look at who is asked": patch.object(asking, "_OF_THE_ASSISTANT", re.compile("(?!)")),
    "time": weighed(time_times=0.0, time_plus=0.0),
    "time: not of what is named": patch.object(ranking, "MENTION_FIT", 0.0),
    "words of a time in full": patch.object(asking, "TIME_WEIGHT", 1.0),
    "words of the frame in full": patch.object(asking, "FRAME_WEIGHT", 1.0),
}
AS_IT_IS, MINILM = "as it is", "embedder: MiniLM"
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "embedder: none": {"embedder": "none"},
    MINILM: {"embedder": f"onnx:{os.environ.get('PERDURE_BENCH_MINILM', '')}"},
    "blend: 40/30/30": {"recall_blend": "on"},
}


class Asked(NamedTuple):
    """How well one question was answered."""

    category: str
    turn: Mapping[str, float]
    session: Mapping[str, float]


Answers = Mapping[str, Sequence[Asked]]
"""Of each set, its questions in their order."""


class Store:
    """One engine that holds all conversations of the sets."""

    def __init__(self, sets: Mapping[str, Sequence[Any]], limit: int | None, **settings: str) -> None:
        self._sets, self._limit = sets, limit
        self._engine = Engine(**settings)
        # Two sets may ask about the same conversations.
        for hay in {hay.name: hay for haystacks in sets.values() for hay in haystacks}.values():
            self._engine.ingest(hay.name, hay.units)

    def answers(self) -> Answers:
        return {
            name: [self._asked(hay, question) for hay in haystacks for question in hay.questions[: self._limit]]
            for name, haystacks in self._sets.items()
        }

    def _asked(self, hay: Any, question: Any) -> Asked:
        from recall_bench.metrics import score

        found = self._engine.search(hay.name, question.text, FOUND_MAX, question.asked_at, question.pool)
        order = list(dict.fromkeys(found))
        session = {unit.id: unit.session for unit in hay.units}
        sessions = list(dict.fromkeys(session[one] for one in order))
        of_turns = score(order, set(question.gold), KS) if question.gold else {}
        return Asked(question.category, of_turns, score(sessions, set(question.gold_sessions), KS))

    def close(self) -> None:
        self._engine.memory.close()


def values(answers: Answers, figure: Figure) -> Any:
    """The figure of each question that it can be told of."""
    asked = [one for one in answers[figure.set] if figure.category in ("", one.category) and getattr(one, figure.level)]
    return np.array([getattr(one, figure.level)[figure.metric] for one in asked])


def mean(of_questions: Any) -> machine.Interval:
    return machine.resampled(lambda places: float(of_questions[list(places)].mean()), len(of_questions))


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def heading(*cells: str) -> None:
    print()
    row(*cells)
    row(*("---" for _ in cells))


def show_quality(found: Mapping[str, Answers], *, by_category: bool) -> None:
    """The figures of each setting, by set, or within each set by kind of question."""
    heading("set", "questions", "n", "setting", *(Figure("", level, metric).title.strip() for level, metric in QUALITY))
    for name, asked in found[AS_IT_IS].items():
        for category in dict.fromkeys(one.category for one in asked) if by_category else ("",):
            for setting, answers in found.items():
                of = [values(answers, Figure(name, level, metric, category)) for level, metric in QUALITY]
                row(name, category or "all", str(len(of[0])), setting, *(_share(mean(one)) for one in of))


def _share(figure: machine.Interval) -> str:
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"


def show_worth(name: str, left_out: Answers, whole: Answers) -> None:
    """Points lost, each question beside itself."""
    cells = [mean(values(whole, one) - values(left_out, one)) for one in WORTH if one.set in whole]
    row(name, *(f"{100 * one.value:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]" for one in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS, help=", ".join(SETS))
    parser.add_argument("--limit", type=int, help="questions per conversation")
    parser.add_argument("--only", nargs="+", choices=[*RULES, *SETTINGS], help="rows of the table of what is lost")
    args = parser.parse_args()
    root = os.environ.get("PERDURE_BENCH_DATA")
    if not root:
        raise SystemExit("set PERDURE_BENCH_DATA to the folder that holds `recall/`")
    from recall_bench.data import LOADERS

    wanted = args.only or [*RULES, *(name for name in SETTINGS if name != MINILM or os.environ.get("PERDURE_BENCH_MINILM"))]
    for name, value in machine.facts(Path.cwd()).items():
        print(f"{name}: {value}")
    measure({name: LOADERS[name](f"{root}/recall") for name in args.sets}, args.limit, wanted)


def measure(sets: Mapping[str, Sequence[Any]], limit: int | None, wanted: Sequence[str]) -> None:
    started = time.perf_counter()

    def answers(name: str, store: Store) -> Answers:
        found = store.answers()
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
        return found

    store = Store(sets, limit)
    found = {AS_IT_IS: answers(AS_IT_IS, store)}
    heading("left out", *(one.title for one in WORTH if one.set in sets))
    for name in RULES:
        if name in wanted:
            with RULES[name]:
                show_worth(name, answers(name, store), found[AS_IT_IS])
    store.close()
    for name in SETTINGS:
        if name in wanted:
            store = Store(sets, limit, **SETTINGS[name])
            found[name] = answers(name, store)
            store.close()
            show_worth(name, found[name], found[AS_IT_IS])
    show_quality(found, by_category=False)
    show_quality(found, by_category=True)


if __name__ == "__main__":
    main()
