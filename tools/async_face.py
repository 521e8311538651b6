"""Writes the async face from the handles: the same calls with the same signatures, each sent whole to a thread.

    python tools/async_face.py            # writes src/perdure/aio/generated.py
    python tools/async_face.py --check    # writes nothing; exit 1 if the module is not what the handles say

What differs from its sync twin in more than that (`run`, `fetch`, `close`) is written by hand, in `perdure.aio.awaited`.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
TARGET = SRC / "perdure" / "aio" / "generated.py"
BY_HAND = {"Engine": {"close"}, "Memory": {"run"}, "SeriesHandle": {"fetch", "tool"}}
"""Calls that stand in `perdure.aio.awaited`, in the class `Awaited…` of the same name."""
IMMEDIATE = {"Engine": {"worker"}, "Tools": {"names", "permissions", "schemas"}}
"""Calls that touch no store, and so need no thread."""
HEADER = '''"""The async face. Written by `python tools/async_face.py` from the handles: do not edit, run it again."""

from __future__ import annotations
'''
REPR = '''    def __repr__(self) -> str:
        return f"Async{self._sync!r}"'''


@dataclass
class Module:
    """A module with handles in it, and where the names come from that it uses."""

    name: str
    tree: ast.Module
    homes: dict[str, str] = field(default_factory=dict)
    """The import statement that brings a name."""

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    renamed = f" as {one.asname}" if one.asname else ""
                    self.homes[one.asname or one.name] = f"from {node.module} import {one.name}{renamed}"
            elif isinstance(node, ast.Import):
                for one in node.names:
                    self.homes[one.asname or one.name] = f"import {one.name}"
        for node in self.tree.body:
            bound = [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
            made = [node.name] if isinstance(node, ast.ClassDef | ast.FunctionDef) else bound
            self.homes.update({name: f"from {self.name} import {name}" for name in made})

    def handles(self) -> Iterator[ast.ClassDef]:
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and "Handle" in map(ast.unparse, node.bases):
                yield node


def modules() -> list[Module]:
    """Those that have handles."""
    paths = [SRC / "perdure" / "app.py", *sorted((SRC / "perdure" / "handles").rglob("*.py"))]
    found = [
        Module(".".join(path.relative_to(SRC).with_suffix("").parts), ast.parse(path.read_text(encoding="utf-8")))
        for path in paths
    ]
    return [module for module in found if any(module.handles())]


class Plain(ast.NodeTransformer):
    """An annotation without the words that stand in `Annotated`, and with the async twins of handles."""

    def __init__(self, kinds: set[str]) -> None:
        self.kinds = kinds

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.visit(node.slice.elts[0])
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(f"Async{node.id}" if node.id in self.kinds else node.id)


class Face:
    """The module as it is being written."""

    def __init__(self) -> None:
        self.modules = modules()
        self.kinds = {kind.name for module in self.modules for kind in module.handles()}
        self.imports: dict[str, str] = {}
        """By the name that it brings: where a name means two things, that is an error here."""

    def text(self) -> str:
        body = "\n\n\n".join(self.one_class(module, kind) for module in self.modules for kind in module.handles())
        lines = "\n".join(sorted(set(self.imports.values())))
        return formatted(f"{HEADER}\n{lines}\n\n\n{body}\n")

    def bring(self, line: str) -> None:
        name = line.split()[-1]
        if self.imports.setdefault(name, line) != line:
            sys.exit(f"`{name}` means two things: {self.imports[name]!r} and {line!r}; give one of them another name")

    def one_class(self, module: Module, kind: ast.ClassDef) -> str:
        base = f"Awaited{kind.name}" if kind.name in BY_HAND else f"Awaited[{kind.name}]"
        self.bring(f"from perdure.aio.awaited import {base.partition('[')[0]}")
        if kind.name not in BY_HAND:
            self.bring(f"from {module.name} import {kind.name}")
        methods = [node for node in kind.body if isinstance(node, ast.FunctionDef)]
        return "\n\n".join(
            [
                f'class Async{kind.name}({base}):\n    """`{module.name}.{kind.name}`, awaited."""',
                "    __slots__ = ()",
                *(
                    f"    @property\n    def {name}(self) -> str:\n        return self._sync.{name}"
                    for name in public_slots(kind)
                ),
                *(self.one_call(module, kind, node) for node in methods if self.is_public(kind, node)),
                *(REPR for node in methods if node.name == "__repr__"),
            ]
        )

    def is_public(self, kind: ast.ClassDef, node: ast.FunctionDef) -> bool:
        return (not node.name.startswith("_") or node.name == "__call__") and node.name not in BY_HAND.get(kind.name, ())

    def one_call(self, module: Module, kind: ast.ClassDef, node: ast.FunctionDef) -> str:
        returns = self.annotation(module, node.returns)
        parameters = self.parameters(module, node.args)
        called = f"self._sync.{node.name}" if node.name != "__call__" else "self._sync"
        head = f"    def {node.name}({parameters}) -> {returns}:"
        if any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list):
            twin = returns in {f"Async{one}" for one in self.kinds}
            answer = f"{returns}({called}, self._threads)" if twin else called
            return f"    @property\n{head}\n        return {answer}"
        given = ", ".join(arguments(node.args))
        if returns.startswith("AbstractContextManager["):
            self.bring("from contextlib import AbstractAsyncContextManager")
            inner = returns.removeprefix("AbstractContextManager[").removesuffix("]")
            head = head.replace("AbstractContextManager", "AbstractAsyncContextManager")
            return f"{head}\n        return self._threads.entered({called}({given}), {inner})"
        if returns.startswith("Iterator["):
            self.bring("from collections.abc import AsyncIterator")
            head = head.replace("-> Iterator", "-> AsyncIterator")
            return f"{head}\n        return self._threads.each({called}({given}))"
        if returns in {f"Async{one}" for one in self.kinds}:
            return f"{head}\n        return {returns}({called}({given}), self._threads)"
        if node.name in IMMEDIATE.get(kind.name, ()):
            return f"{head}\n        return {called}({given})"
        whole = f"{called}, {given}" if given else called
        return f"    async{head.removeprefix('   ')}\n        return await self._threads.run({whole})"

    def parameters(self, module: Module, args: ast.arguments) -> str:
        for one in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            if one.annotation is not None:
                one.annotation = ast.parse(self.annotation(module, one.annotation), mode="eval").body
        for default in (*args.defaults, *args.kw_defaults):
            if default is not None:
                self.names(module, default)
        return ast.unparse(args)

    def annotation(self, module: Module, node: ast.expr | None) -> str:
        if node is None:
            return "None"
        plain = Plain(self.kinds).visit(node)
        self.names(module, plain)
        return ast.unparse(plain)

    def names(self, module: Module, node: ast.AST) -> None:
        """Bring every name that stands in an expression, except those that only stand for themselves."""
        for one in ast.walk(node):
            if isinstance(one, ast.Name) and one.id in module.homes and one.id not in ("AbstractContextManager", "Iterator"):
                self.bring(module.homes[one.id])


def public_slots(kind: ast.ClassDef) -> list[str]:
    """Public attributes that a handle declares beside its calls; all of them are texts."""
    for node in kind.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("_")]
    return []


def arguments(args: ast.arguments) -> Iterator[str]:
    """What a call passes on."""
    yield from (one.arg for one in (*args.posonlyargs, *args.args) if one.arg != "self")
    yield from (f"{one.arg}={one.arg}" for one in args.kwonlyargs)


def formatted(text: str) -> str:
    for step in (["check", "--fix-only", "--select", "I"], ["format"]):
        command = [sys.executable, "-m", "ruff", *step, "--quiet", "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout  # noqa: S603
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the async face from the handles.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the module is not what the handles say")
    options = parser.parse_args()
    text = Face().text()
    stale = not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text
    if stale and not options.check:
        TARGET.write_text(text, encoding="utf-8")
    if stale:
        name = TARGET.relative_to(ROOT)
        print(f"{name} is not what the handles say" if options.check else f"wrote {name}")
    sys.exit(stale and options.check)


if __name__ == "__main__":
    main()
