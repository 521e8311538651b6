"""What trials name in modules of perdure is there: a name that moved is told here, not after the long rounds began."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
TRIALS = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "proof").rglob("*.py"))}


def missing(tree: ast.Module) -> Iterator[str]:
    modules: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "perdure":
            held = importlib.import_module(node.module or "")
            for one in node.names:
                whole = f"{node.module}.{one.name}"
                if hasattr(held, "__path__") and importlib.util.find_spec(whole):
                    modules[one.asname or one.name] = importlib.import_module(whole)
                elif not hasattr(held, one.name):
                    yield whole
    named = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    for node in named:
        if node.value.id in modules and not hasattr(modules[node.value.id], node.attr):
            yield f"{node.value.id}.{node.attr}"


@pytest.mark.parametrize("name", TRIALS)
def test_what_a_trial_names_in_perdure_is_there(name: str) -> None:
    assert [*missing(ast.parse(TRIALS[name].read_text()))] == []


def test_a_name_that_is_not_there_is_told() -> None:
    source = "from perdure.domain import limits\nfrom perdure.domain.limits import Bounds\nlimits.Limits, limits.Bounds"
    assert [*missing(ast.parse(source))] == ["perdure.domain.limits.Bounds", "limits.Bounds"]
