"""Fits the weights of `engine.oversight` on the goals to tune on, and says how well they carry over to unseen worlds.

Each world to tune on is held out in turn: those of `overseer.py`, which have keys and series, and those of `before.py`, which
have memories as well. The parts `report` and `held` are not read here. Run: python bench/overseer_fit.py [--write] [--grid]
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from perdure.adapters.embedding.static import StaticEmbedder, word_vectors
from perdure.engine.oversight.choice import SCORE_MIN, SHARE_MIN, SHOWN_MAX, TOLD_MAX, TOLD_MIN, TOLD_SHARE_MIN, is_whole
from perdure.engine.oversight.relevance import FEATURES, Catalogue, SavedItem, goal_feature_names, goal_features, measure
from perdure.engine.oversight.statements import TOLD_FEATURES, Told, asks_about_the_user, measure_told
from perdure.engine.times.question import extract_time_range

FOLDER = Path(__file__).parent / "overseer_goals"
WEIGHTS = Path(__file__).parents[1] / "src" / "perdure" / "engine" / "oversight" / "weights.json"
FALSE_SHARE = 0.09
"""How many goals that need nothing may pass for ones that do: less than the aim, as unseen ones are harder."""
EITHER_WAY = frozenset(["is_series", "state_in_time", "order", "health", "who", "likes", "profile_order", "gift_who"])
"""Of what kind something is, not how well it fits: this may speak for or against it."""
WHOLE_WORTH = 3.0
"""What a goal of a world with memories counts: there are five times as many of the others, which share more words with keys."""
MEANING_SCALE = 1.0
NOW = datetime(2026, 6, 15, 8, tzinfo=UTC)


def catalogue_of(world: dict[str, Any]) -> Catalogue:
    state = [SavedItem("state", key, "", json.dumps(value)[:101]) for key, value in world["state"].items()]
    series = [SavedItem("series", one["name"], one["description"]) for one in world["series"]]
    return Catalogue([*state, *series], word_vectors)


def fitted(rows: np.ndarray, wanted: np.ndarray, weight: np.ndarray, *, ridge: float, rounds: int = 60) -> np.ndarray:
    """Logistic regression by Newton's method; the last weight is the bias, which is not held back."""
    wide = np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float64)
    beta = np.zeros(wide.shape[1])
    hold = np.full(len(beta), ridge)
    hold[-1] = 1e-6
    for _ in range(rounds):
        guess = 1 / (1 + np.exp(-np.clip(wide @ beta, -30, 30)))
        slope = wide.T @ (weight * (guess - wanted)) + hold * beta
        curve = (wide * (weight * guess * (1 - guess))[:, None]).T @ wide + np.diag(hold)
        step = np.linalg.solve(curve, slope)
        beta -= step
        if np.abs(step).max() < 1e-8:
            break
    return beta


def squashed(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(values, -30, 30)))


def tuning() -> list[dict[str, Any]]:
    """The worlds of the tune part with their further goals; the goals that need nothing are dealt out among them."""
    worlds = json.loads((FOLDER / "tune.json").read_text())
    more = {one["world"]: one["goals"] for one in json.loads((FOLDER / "more.json").read_text())}
    nothing = json.loads((FOLDER / "nothing.json").read_text())
    alike = {one["world"]: one["goals"] for one in json.loads((FOLDER / "same_words.json").read_text())}
    for place, world in enumerate(worlds):
        world["goals"] += more[world["world"]]
        quiet = [*nothing[place :: len(worlds)], *alike[world["world"]]]
        world["goals"] += [{"goal": goal, "kind": "nothing", "needs": []} for goal in quiet]
    return worlds + [json.loads(path.read_text()) for path in sorted((FOLDER / "worlds" / "tune").glob("*.json"))]


class World:
    """A world with all its features measured."""

    def __init__(self, data: dict[str, Any]) -> None:
        now = datetime.fromisoformat(data["now"]) if "now" in data else NOW
        memories = data.get("memories", [])
        self.name: str = data["world"]
        self.told_ids = [one["id"] for one in memories]
        told = Told([one["text"] for one in memories], word_vectors)
        self.told_rows = [measure_told(goal["goal"], told) if memories else None for goal in data["goals"]]
        self.catalogue = catalogue_of(data)
        self.ids = [one.id for one in self.catalogue.candidates]
        self.goals = data["goals"]
        self.timed = [extract_time_range(goal["goal"], now) is not None for goal in self.goals]
        self.rows = [
            measure(goal["goal"], self.catalogue, timed=timed) for goal, timed in zip(self.goals, self.timed, strict=True)
        ]


def fit_items(worlds: list[World], ids: str, rows: str, names: tuple[str, ...]) -> np.ndarray:
    """The weights by which the needed ones are told from those that are neither needed nor fine.

    That something fits the goal better never speaks against it: else a few things much alike would be judged oddly.
    """
    found, wanted, weight = [], [], []
    for world in worlds:
        for goal, measured in zip(world.goals, getattr(world, rows), strict=True):
            for place, name in enumerate(getattr(world, ids)):
                if goal["needs"] and name not in goal.get("fine", ()):
                    found.append(measured[place])
                    wanted.append(name in goal["needs"])
                    weight.append(WHOLE_WORTH if world.told_ids else 1.0)
    measured_rows, free = np.array(found), np.array([name in EITHER_WAY for name in names])
    used = np.ones(len(names), bool)
    while True:
        some = fitted(measured_rows[:, used], np.array(wanted, float), np.array(weight), ridge=1.0)
        beta = np.zeros(len(names) + 1)
        beta[np.append(used, True)] = some
        against = np.where(free, 0, beta[:-1])
        if against.min() >= 0:
            return beta
        used[against.argmin()] = False


def fit(worlds: list[World]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights of saved things, of what was told, and of the goals' cues with what the goal means as a whole."""
    keys = fit_items(worlds, "ids", "rows", FEATURES)
    told = fit_items(worlds, "told_ids", "told_rows", TOLD_FEATURES)
    cues = np.array([one for world in worlds for one in gate_rows(world, keys)])
    needs = np.array([bool(goal["needs"]) for world in worlds for goal in world.goals], float)
    # As if as many goals needed something as nothing: how many do is different from user to user.
    weight = np.where(needs > 0, (1 - needs).sum() / needs.sum(), 1.0)
    return keys, told, fitted(cues, needs, weight, ridge=1.0)


def gate_rows(world: World, keys: np.ndarray) -> list[np.ndarray]:
    meant = word_vectors([goal["goal"] for goal in world.goals])
    found = []
    for goal, measured, timed, vector in zip(world.goals, world.rows, world.timed, meant, strict=True):
        scores = squashed(measured @ keys[:-1] + keys[-1])
        cues = goal_features(goal["goal"], world.catalogue, measured, scores, timed=timed)
        found.append(np.concatenate([cues, MEANING_SCALE * vector]))
    return found


@dataclass(frozen=True)
class Judged:
    """A goal by weights that were fitted on other worlds."""

    world: World
    goal: dict[str, Any]
    needs: float
    keys: np.ndarray
    told: np.ndarray

    def opens(self, least: float) -> bool:
        text = self.goal["goal"]
        return not is_whole(text) and (self.needs >= least or asks_about_the_user(text))

    def given(self, cut: Cut) -> tuple[set[str], set[str]]:
        """Keys and memories."""
        keys = set() if asks_about_the_user(self.goal["goal"]) else best_of(self.world.ids, self.keys, *cut[:3])
        return keys, best_of(self.world.told_ids, self.told, *cut[3:])


Cut = tuple[float, float, int, float, float, int]
"""Of keys and of memories: the least share of the best score, the least score, and how many."""


def best_of(ids: list[str], scores: np.ndarray, share: float, least: float, most: int) -> set[str]:
    if not len(scores):
        return set()
    order = np.argsort(-scores)[:most]
    return {ids[place] for place in order if scores[place] >= max(share * scores.max(), least)}


def judged(world: World, keys: np.ndarray, told: np.ndarray, gate: np.ndarray) -> list[Judged]:
    needs = squashed(np.array(gate_rows(world, keys)) @ gate[:-1] + gate[-1])
    found = []
    for goal, needed, rows, told_rows in zip(world.goals, needs.tolist(), world.rows, world.told_rows, strict=True):
        heard = np.zeros(0) if told_rows is None else squashed(told_rows @ told[:-1] + told[-1])
        found.append(Judged(world, goal, needed, squashed(rows @ keys[:-1] + keys[-1]), heard))
    return found


def figures(some: list[Judged], gate: float, cut: Cut) -> str:
    """What `before` would give with that gate and cut."""
    needed = got = shown = right = told = told_right = alarms = quiet = 0
    for one in some:
        keys, heard = one.given(cut) if one.opens(gate) else (set(), set())
        needs, fine = set(one.goal["needs"]), set(one.goal.get("fine", ()))
        needed, got = needed + len(needs), got + len(needs & (keys | heard))
        shown, right = shown + len(keys), right + len(keys & (needs | fine))
        told, told_right = told + len(heard), told_right + len(heard & (needs | fine))
        quiet, alarms = quiet + (not needs), alarms + bool(not needs and (keys | heard))
    asked = max(len(some) - quiet, 1)
    return (
        f"needed given {got / max(needed, 1):.3f}, precision of keys {right / max(shown, 1):.3f} ({shown / asked:.1f} each), "
        f"of memories {told_right / max(told, 1):.3f} ({told / asked:.1f} each), alarms {alarms / max(quiet, 1):.3f}"
    )


def write(keys: np.ndarray, told: np.ndarray, gate: np.ndarray, least: float) -> None:
    """Put the weights where the engine reads them."""
    names = goal_feature_names()
    meaning = gate[len(names) : -1] * MEANING_SCALE
    document = {
        "about": (
            "Fitted by `bench/overseer_fit.py --write` on the goals to tune on; do not change by hand. `embedder`: whose "
            "vectors the weights of meaning are for. `needs_min`: of goals of other worlds that need nothing, "
            f"{FALSE_SHARE:.0%} are above it."
        ),
        "embedder": f"{StaticEmbedder().name}/{StaticEmbedder().version}",
        "needs_min": rounded(least, 3),
        "key_bias": rounded(keys[-1], 3),
        "key_weights": {name: rounded(value, 3) for name, value in zip(FEATURES, keys, strict=False)},
        "told_bias": rounded(told[-1], 3),
        "told_weights": {name: rounded(value, 3) for name, value in zip(TOLD_FEATURES, told, strict=False)},
        "goal_bias": rounded(gate[-1], 3),
        "goal_weights": {name: rounded(value, 3) for name, value in zip(names, gate, strict=False)},
        "meaning_weights": [rounded(value, 2) for value in meaning],
    }
    WEIGHTS.write_text(json.dumps(document, indent=1) + "\n")


def rounded(value: float, places: int) -> float:
    return round(float(value), places)


def main() -> None:
    worlds = [World(data) for data in tuning()]
    held: list[Judged] = []
    for out in worlds:
        held += judged(out, *fit([world for world in worlds if world is not out]))
    print(f"{len(held)} goals of {len(worlds)} worlds, each world judged by weights fitted on the others")
    quiet = np.sort([one.needs for one in held if not one.goal["needs"]])
    gate_min = float(quiet[int(len(quiet) * (1 - FALSE_SHARE))])
    whole = [one for one in held if one.world.told_ids]
    for least in (0.3, 0.4, 0.5, 0.6, gate_min):
        nothing, something = ([one.opens(least) for one in held if bool(one.goal["needs"]) == needs] for needs in (False, True))
        print(f"  gate {least:.2f}: false {np.mean(nothing):.3f}, let through {np.mean(something):.3f}")
    cut: Cut = (SHARE_MIN, SCORE_MIN, SHOWN_MAX, TOLD_SHARE_MIN, TOLD_MIN, TOLD_MAX)
    if "--grid" in sys.argv:
        show_grid(held, whole, gate_min)
    print("worlds without memories:", figures([one for one in held if not one.world.told_ids], gate_min, cut))
    print("worlds with memories:   ", figures(whole, gate_min, cut))
    for name in dict.fromkeys(one.world.name for one in whole):
        print(f"  {name:20}", figures([one for one in whole if one.world.name == name], gate_min, cut))
    keys, told, gate = fit(worlds)
    print("KEYS", {name: round(float(value), 2) for name, value in zip((*FEATURES, "bias"), keys, strict=True)})
    print("TOLD", {name: round(float(value), 2) for name, value in zip((*TOLD_FEATURES, "bias"), told, strict=True)})
    if "--write" in sys.argv:
        write(keys, told, gate, gate_min)


def show_grid(held: list[Judged], whole: list[Judged], gate: float) -> None:
    others = [one for one in held if not one.world.told_ids]
    for share in (0.1, 0.2, 0.3):
        for least in (0.02, 0.05, 0.08, 0.12):
            for most in (3, 4, 5):
                cut: Cut = (share, least, most, 0.2, 0.05, 10)
                print(f"  keys {share} {least} {most}:", figures(whole, gate, cut), "|", figures(others, gate, cut))
    for share in (0.1, 0.2, 0.3):
        for least in (0.02, 0.04, 0.06, 0.1):
            for most in (8, 12):
                print(f"  told {share} {least} {most}:", figures(whole, gate, (0.3, 0.05, 5, share, least, most)))


if __name__ == "__main__":
    main()
