"""Fits the weights of `engine.oversight.relevance` on the goals to tune on, and says how well they carry over to unseen worlds.

Each world of the tune part is held out in turn. The report part is not read here. Run: python bench/overseer_fit.py [--write]
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from perdure.adapters.embedding.static import StaticEmbedder, word_vectors
from perdure.engine.oversight.relevance import FEATURES, Catalogue, SavedItem, goal_feature_names, goal_features, measure
from perdure.engine.times.question import extract_time_range

FOLDER = Path(__file__).parent / "overseer_goals"
WEIGHTS = Path(__file__).parents[1] / "src" / "perdure" / "engine" / "oversight" / "weights.json"
FALSE_SHARE = 0.09
"""How many goals that need nothing may pass for ones that do: less than the aim, as unseen ones are harder."""
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
    return worlds


class World:
    def __init__(self, data: dict[str, Any]) -> None:
        self.catalogue = catalogue_of(data)
        self.ids = [one.id for one in self.catalogue.candidates]
        self.goals = data["goals"]
        self.timed = [extract_time_range(goal["goal"], NOW) is not None for goal in self.goals]
        self.rows = [
            measure(goal["goal"], self.catalogue, timed=timed) for goal, timed in zip(self.goals, self.timed, strict=True)
        ]


def fit(worlds: list[World]) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the candidates' features, and those of the goals' cues with what the goal means as a whole."""
    rows, wanted = [], []
    for world in worlds:
        for goal, measured in zip(world.goals, world.rows, strict=True):
            for place, key in enumerate(world.ids):
                if goal["needs"] and key not in goal.get("fine", ()):
                    rows.append(measured[place])
                    wanted.append(key in goal["needs"])
    keys = fitted(np.array(rows), np.array(wanted, float), np.ones(len(rows)), ridge=3.0)
    cues = np.array([one for world in worlds for one in gate_rows(world, keys)])
    needs = np.array([bool(goal["needs"]) for world in worlds for goal in world.goals], float)
    # As if as many goals needed something as nothing: how many do is different from user to user.
    weight = np.where(needs > 0, (1 - needs).sum() / needs.sum(), 1.0)
    return keys, fitted(cues, needs, weight, ridge=1.0)


def gate_rows(world: World, keys: np.ndarray) -> list[np.ndarray]:
    meant = word_vectors([goal["goal"] for goal in world.goals])
    found = []
    for goal, measured, timed, vector in zip(world.goals, world.rows, world.timed, meant, strict=True):
        scores = squashed(measured @ keys[:-1] + keys[-1])
        cues = goal_features(goal["goal"], world.catalogue, measured, scores, timed=timed)
        found.append(np.concatenate([cues, MEANING_SCALE * vector]))
    return found


def judged(world: World, keys: np.ndarray, gate: np.ndarray) -> list[tuple[dict[str, Any], float, np.ndarray]]:
    needs = squashed(np.array(gate_rows(world, keys)) @ gate[:-1] + gate[-1])
    scores = [squashed(measured @ keys[:-1] + keys[-1]) for measured in world.rows]
    return list(zip(world.goals, needs.tolist(), scores, strict=True))


def write(keys: np.ndarray, gate: np.ndarray, least: float) -> None:
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
        "goal_bias": rounded(gate[-1], 3),
        "goal_weights": {name: rounded(value, 3) for name, value in zip(names, gate, strict=False)},
        "meaning_weights": [rounded(value, 2) for value in meaning],
    }
    WEIGHTS.write_text(json.dumps(document, indent=1) + "\n")


def rounded(value: float, places: int) -> float:
    return round(float(value), places)


def main() -> None:
    worlds = [World(data) for data in tuning()]
    held = []
    for out in worlds:
        keys, gate = fit([world for world in worlds if world is not out])
        held += [(out, *one) for one in judged(out, keys, gate)]
    print(f"{len(held)} goals of {len(worlds)} worlds, each world judged by weights fitted on the others")
    quiet = np.sort([needs for _, goal, needs, _ in held if not goal["needs"]])
    gate_min = float(quiet[int(len(quiet) * (1 - FALSE_SHARE))])
    for least in (0.3, 0.4, 0.5, 0.6, 0.7, gate_min):
        nothing = [needs >= least for _, goal, needs, _ in held if not goal["needs"]]
        something = [needs >= least for _, goal, needs, _ in held if goal["needs"]]
        print(f"  gate {least:.2f}: false {np.mean(nothing):.3f}, let through {np.mean(something):.3f}")
    for most in (1, 2, 3, 4, 5, 6, 8, 10):
        got = total = 0
        for world, goal, _, scores in held:
            best = {world.ids[place] for place in np.argsort(-scores)[:most]}
            got += len(best & set(goal["needs"]))
            total += len(goal["needs"])
        print(f"  best {most:2}: {got / total:.3f} of the needed")
    asking = [goal for _, goal, _, _ in held if goal["needs"]]
    for share in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5):
        for most in (6, 8, 10):
            got = total = shown = 0
            for world, goal, needs, scores in held:
                best = [place for place in np.argsort(-scores)[:most] if scores[place] >= share * scores.max()]
                if goal["needs"] and needs >= gate_min:
                    got += len({world.ids[place] for place in best} & set(goal["needs"]))
                    shown += len(best)
                total += len(goal["needs"])
            print(f"  share {share} most {most}: recall {got / total:.3f}, {shown / len(asking):.1f} shown")
    keys, gate = fit(worlds)
    print("FEATURES", {name: round(float(value), 2) for name, value in zip((*FEATURES, "bias"), keys, strict=True)})
    print("GOAL", {name: round(float(value), 2) for name, value in zip(goal_feature_names(), gate, strict=False)})
    if "--write" in sys.argv:
        write(keys, gate, gate_min)
    if "--misses" in sys.argv:
        for world, goal, needs, scores in held:
            best = [world.ids[place] for place in np.argsort(-scores)[:6]]
            if (needs >= gate_min) != bool(goal["needs"]) or not set(goal["needs"]) <= set(best):
                print(f"{needs:.2f} {goal['goal']!r} needs {goal['needs']} best {best}")


if __name__ == "__main__":
    main()
