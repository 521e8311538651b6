"""Fits the weights of `perdure.engine.bearing` on the goals to tune on, and says how well that carries over to unseen worlds.

Each world of the tune part is held out in turn. The report part is not read here. Run: python bench/overseer_fit.py [--write]
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from perdure.engine.bearing import FEATURES, Candidate, Catalogue, goal_features, measure
from perdure.engine.goal_cues import GOAL_FEATURES
from perdure.engine.timewords import find_times
from perdure.parts import word_vectors

GOALS = Path(__file__).parent / "overseer_goals" / "tune.json"
WEIGHTS = Path(__file__).parents[1] / "src" / "perdure" / "engine" / "bearing_weights.py"
GATE = 0.55
NOW = datetime(2026, 6, 15, 8, tzinfo=UTC)


def catalogue_of(world: dict[str, Any]) -> Catalogue:
    state = [Candidate("state", key, "", json.dumps(value)[:101]) for key, value in world["state"].items()]
    series = [Candidate("series", one["name"], one["description"]) for one in world["series"]]
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


class World:
    def __init__(self, data: dict[str, Any]) -> None:
        self.catalogue = catalogue_of(data)
        self.ids = [one.id for one in self.catalogue.candidates]
        self.goals = data["goals"]
        self.timed = [bool(find_times(goal["goal"], NOW, "UTC")) for goal in self.goals]
        self.rows = [
            measure(goal["goal"], self.catalogue, timed=timed) for goal, timed in zip(self.goals, self.timed, strict=True)
        ]


def fit(worlds: list[World]) -> tuple[np.ndarray, np.ndarray]:
    rows, wanted, weight = [], [], []
    for world in worlds:
        for goal, measured in zip(world.goals, world.rows, strict=True):
            for place, key in enumerate(world.ids):
                if goal["needs"] and key not in goal.get("fine", ()):
                    rows.append(measured[place])
                    wanted.append(key in goal["needs"])
                    weight.append(1.0)
    keys = fitted(np.array(rows), np.array(wanted, float), np.array(weight), ridge=3.0)
    cues, needs = [], []
    for world in worlds:
        for goal, measured, timed in zip(world.goals, world.rows, world.timed, strict=True):
            scores = squashed(measured @ keys[:-1] + keys[-1])
            cues.append(goal_features(goal["goal"], world.catalogue, measured, scores, timed=timed))
            needs.append(bool(goal["needs"]))
    gate = fitted(np.array(cues), np.array(needs, float), np.ones(len(needs)), ridge=1.0)
    return keys, gate


def judged(world: World, keys: np.ndarray, gate: np.ndarray) -> list[tuple[dict[str, Any], float, np.ndarray]]:
    found = []
    for goal, measured, timed in zip(world.goals, world.rows, world.timed, strict=True):
        scores = squashed(measured @ keys[:-1] + keys[-1])
        cues = goal_features(goal["goal"], world.catalogue, measured, scores, timed=timed)
        found.append((goal, float(squashed(cues @ gate[:-1] + gate[-1])), scores))
    return found


def write(keys: np.ndarray, gate: np.ndarray) -> None:
    """Put the weights where the engine reads them."""
    lines = [f'"""Fitted by `bench/overseer_fit.py --write` on {GOALS.parent.name}/{GOALS.name}; do not change by hand."""', ""]
    for name, names, values in (("KEY", FEATURES, keys), ("GOAL", GOAL_FEATURES, gate)):
        lines += [f"{name}_BIAS = {values[-1]:.3f}", f"{name}_WEIGHTS = {{"]
        lines += [f'    "{one}": {value:.3f},' for one, value in zip(names, values[:-1], strict=True)]
        lines += ["}"]
    WEIGHTS.write_text("\n".join(lines) + "\n")


def main() -> None:
    worlds = [World(data) for data in json.loads(GOALS.read_text())]
    held = []
    for out in worlds:
        keys, gate = fit([world for world in worlds if world is not out])
        held += [(out, *one) for one in judged(out, keys, gate)]
    print(f"{len(held)} goals of {len(worlds)} worlds, each world judged by weights fitted on the others")
    for least in (0.3, 0.4, 0.5, 0.6, 0.7):
        nothing = [needs >= least for _, goal, needs, _ in held if not goal["needs"]]
        something = [needs >= least for _, goal, needs, _ in held if goal["needs"]]
        print(f"  gate {least}: false {np.mean(nothing):.3f}, let through {np.mean(something):.3f}")
    for most in (1, 2, 3, 4, 5, 6, 8, 10):
        got = total = 0
        for world, goal, _, scores in held:
            best = {world.ids[place] for place in np.argsort(-scores)[:most]}
            got += len(best & set(goal["needs"]))
            total += len(goal["needs"])
        print(f"  best {most:2}: {got / total:.3f} of the needed")
    for share in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5):
        for most in (6, 8, 10):
            got = total = shown = 0
            for world, goal, needs, scores in held:
                best = [place for place in np.argsort(-scores)[:most] if scores[place] >= share * scores.max()]
                if goal["needs"] and needs >= GATE:
                    got += len({world.ids[place] for place in best} & set(goal["needs"]))
                    shown += len(best)
                total += len(goal["needs"])
            print(
                f"  share {share} most {most}: recall {got / total:.3f}, {shown / sum(bool(g['needs']) for _, g, _, _ in held):.1f} shown"
            )
    keys, gate = fit(worlds)
    print("FEATURES", {name: round(float(value), 2) for name, value in zip((*FEATURES, "bias"), keys, strict=True)})
    print("GOAL", {name: round(float(value), 2) for name, value in zip((*GOAL_FEATURES, "bias"), gate, strict=True)})
    if "--write" in sys.argv:
        write(keys, gate)
    if "--misses" in sys.argv:
        for world, goal, needs, scores in held:
            best = [world.ids[place] for place in np.argsort(-scores)[:6]]
            if (needs >= 0.5) != bool(goal["needs"]) or not set(goal["needs"]) <= set(best):
                print(f"{needs:.2f} {goal['goal']!r} needs {goal['needs']} best {best}")


if __name__ == "__main__":
    main()
