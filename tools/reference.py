"""Writes the parts of the reference that stand in the code: every public name, and the tables of the settings.

    python tools/reference.py            # writes docs/reference/python-calls.md and the tables of docs/reference/settings.md
    python tools/reference.py --check    # writes nothing; exit 1 if a page is not what the code says

What is written by hand around the tables stays.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import inspect
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from perdure import Engine, Memory, types
from perdure.domain.errors import PerdureError
from perdure.domain.scope import ID_BYTES_MAX
from perdure.handles.operation import Arg, Handle, Parameter, parameters

ROOT = Path(__file__).parents[1]
CALLS, SETTINGS = (ROOT / "docs" / "reference" / name for name in ("python-calls.md", "settings.md"))

MODULES = {
    "perdure": "The core. `open` gives an `Engine`, which gives a `Memory` for a user.",
    "perdure.handles": "What hangs on a `Memory` or an `Engine`, reached as `ana.state`, `ana.todos`, `engine.agents`.",
    "perdure.types": "The values that calls answer with, and what an extractor, a model or an embedder of yours is given.",
    "perdure.documents": "Context documents: one JSON file per session, with or without a store.",
    "perdure.testing": "For tests of your own.",
    "perdure.aio": "The same for asyncio: every class has the calls of its twin, as coroutines.",
}
HANDLES = {
    "perdure.handles.conversation": ("Conversation", "TranscriptHandle", "Turn"),
    "perdure.handles.sessions.documents": ("DocumentHandle",),
    "perdure.handles.knowledge": ("Memories", "EntityHandle", "TodoHandle", "TaskHandle", "InstructionHandle"),
    "perdure.handles.lessons": ("LessonHandle",),
    "perdure.handles.state": ("State",),
    "perdure.handles.series": ("UserSeries", "SeriesHandle"),
    "perdure.handles.tools": ("Tools",),
    "perdure.handles.admin": ("JournalHandle", "AdminHandle", "AgentHandle", "ApiKeyHandle"),
}
INTRO = """# Python calls

Every public name, generated from the code by `tools/reference.py`. [Python](python.md) shows how they work together.

Counts are 0 or more, limits 1 or more. A parameter that means the same in several calls of a class is described at the first of
them. Fields of the values in `perdure.types` that say what they are stand by name alone.
"""
ERRORS = "Errors, each with its code and whether to retry, are listed in [Errors](errors.md): {}.\n"
ON_ANOTHER_PAGE = {"Settings": "settings.md", "Layers": "settings.md#layers", "Limits": "settings.md#limits"}
"""Classes whose fields another page lists."""
COMMON_MIN = 4
"""A parameter that means the same in so many calls is described once."""
LARGE = 10**9
"""A bound from here on is only that of the number itself."""
SELF_EVIDENT = re.compile(r"The \w+('s \w+)?\.")
"""What says no more than the name of the parameter."""
PART = re.compile(r"(?P<start><!-- keys: (?P<name>\w+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not what the code says")
    options = parser.parse_args()
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is not what the code says" if options.check else f"wrote {path.relative_to(ROOT)}")
        if not options.check:
            path.write_text(pages()[path], encoding="utf-8")
    sys.exit(bool(stale) and options.check)


def pages() -> dict[Path, str]:
    """Each generated page as it should be."""
    written = SETTINGS.read_text(encoding="utf-8")
    return {CALLS: calls(), SETTINGS: PART.sub(lambda part: part["start"] + keys(part["name"]) + part["end"], written)}


# The settings


def keys(group: str) -> str:
    """The table of the keys of `Settings` itself (`own`), or of one of its groups."""
    from perdure import settings

    owner: type = settings.Settings if group == "own" else settings.GROUPS[group]
    said, standard, lines = attributes(owner), owner(), ["", "| Name | Variable | Default | Meaning |", "|---|---|---|---|"]
    for name, about in said.items():
        if name in settings.GROUPS and owner is settings.Settings:
            continue
        default = getattr(standard, name)
        variable = "in Python only" if name in settings.PYTHON_ONLY else f"`{settings.PREFIX}{name.upper()}`"
        shown = "empty" if default == "" else f"`{default}`"
        lines.append(f"| `{name}` | {variable} | {shown} | {about.text} |")
    return "\n".join([*lines, "", ""])


# The calls


@dataclass(frozen=True)
class Attribute:
    declared: str
    text: str

    def whole(self) -> str:
        return self.declared

    def named(self) -> str:
        return self.declared.partition(":")[0]

    def typed(self) -> str:
        return self.declared.partition(" = ")[0]


def calls() -> str:
    common = repeated()
    parts = [INTRO, "## Common parameters\n", "\n".join([*common, ""])]
    for name, about in MODULES.items():
        parts.append(f"## {name}\n\n{about}\n")
        if name == "perdure.handles":
            for module, classes in HANDLES.items():
                parts += [described(one, getattr(importlib.import_module(module), one), common) for one in classes]
            continue
        module = importlib.import_module(name)
        if name == "perdure.aio":
            parts.append(twins(module))
            continue
        public = {one: getattr(module, one) for one in sorted(module.__all__, key=str.lower)}
        errors = [f"`{one}`" for one, value in public.items() if is_error(value)]
        parts += [ERRORS.format(", ".join(errors))] if errors else []
        parts += [described(one, value, common) for one, value in public.items() if not is_error(value)]
    return "\n".join(parts)


def repeated() -> list[str]:
    """The lines of parameters that many calls have, with the same words: they stand once, before all calls."""
    handles = [getattr(importlib.import_module(module), one) for module, classes in HANDLES.items() for one in classes]
    kinds = [Engine, Memory, *handles]
    lines = Counter(line for kind in kinds for _, node, owner in methods(kind) for line in given(kind, node, owner))
    return sorted(line for line, count in lines.items() if count >= COMMON_MIN)


def is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, PerdureError)


def twins(module: ModuleType) -> str:
    """Names alone: what they do stands at their twins."""
    lines = [f"- `{one}`: {first(inspect.getdoc(getattr(module, one)) or '')}" for one in sorted(module.__all__, key=str.lower)]
    return "\n".join([*lines, ""])


def described(title: str, value: Any, common: Collection[str]) -> str:
    if inspect.isclass(value):
        return one_class(title, value, common)
    if inspect.isfunction(value):
        [node] = ast.parse(textwrap.dedent(inspect.getsource(value))).body
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)  # noqa: S101 - it is the source of a function
        return "\n".join(
            [f"### `{title}`", "", f"`{signature(node)}`", "", prose(inspect.getdoc(value) or ""), "", *unpacked(node, value)]
        )
    return f"### `{title}`\n\n{kind_of(value)}\n"


def kind_of(value: Any) -> str:
    choices = getattr(value, "__args__", ())
    if choices and all(isinstance(one, str) for one in choices):
        return f"One of {', '.join(f'`{one}`' for one in choices)}."
    if isinstance(value, dict):
        return f"A table of {len(value)}: {', '.join(f'`{one}`' for one in value)}."
    return f"A constant: {type(value).__name__}."


def one_class(title: str, kind: type, common: Collection[str]) -> str:
    lines = [f"### `{title}`", "", *filter(None, [prose(own_doc(kind))]), ""]
    if page := ON_ANOTHER_PAGE.get(kind.__name__):
        return "\n".join([*lines, f"Its fields: [Settings]({page}).", ""])
    fields = [one for one in attributes(kind).values() if not one.declared.startswith("kind: RecordKind")]
    form = Attribute.typed if title in types.__all__ else Attribute.whole
    bare = Attribute.named if title in types.__all__ else Attribute.whole
    plain = ", ".join(f"`{bare(one)}`" for one in fields if not one.text)
    lines += [f"- {plain}"] if plain else []
    lines += [f"- `{form(one)}`: {one.text}" for one in fields if one.text]
    seen = set(common)
    for name, node, owner in methods(kind):
        said = inline(ast.get_docstring(node) or "")
        if not said or not for_callers(title, node):
            continue
        is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
        returned = f": {ast.unparse(node.returns)}" if node.returns else ""
        shown = f"{name}{returned}" if is_property else called(node) if declared(kind, name) else signature(node)
        lines.append(f"- `{shown}`: {said}")
        if not said.startswith("As `"):
            lines += [f"    {line}" for line in given(kind, node, owner) if line not in seen]
            seen.update(given(kind, node, owner))
    return "\n".join([*lines, ""])


def for_callers(title: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Not the tests of a contract, and not what stores do with a value: its row, its terms, the next version of it."""
    written = node.returns is not None and ast.unparse(node.returns) == title
    return not node.name.startswith("test_") and not (title in types.__all__ and (written or node.name in ("terms", "body")))


def declared(kind: type, name: str) -> bool:
    """Whether it is an operation, whose parameters say what they mean."""
    return issubclass(kind, Handle) and inspect.isfunction(inspect.getattr_static(kind, name))


def given(kind: type, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: type) -> list[str]:
    """What a method takes, a line for each."""
    return list(taken(inspect.getattr_static(kind, node.name)) if declared(kind, node.name) else unpacked(node, owner))


def own_doc(kind: type) -> str:
    """A dataclass without a docstring has its signature for one, and a protocol that of all protocols: they say nothing new."""
    doc = inspect.cleandoc(kind.__doc__ or "")
    return "" if doc.startswith(f"{kind.__name__}(") else doc


def attributes(kind: type) -> dict[str, Attribute]:
    """The public fields that a class declares, with the text under each."""
    found: dict[str, Attribute] = {}
    for owner in reversed(ours(kind)):
        body = body_of(owner)
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.Assign) and (name := ast.unparse(node.targets[0])) in found:  # a subclass says otherwise
                declared = f"{found[name].declared.partition(' = ')[0]} = {ast.unparse(node.value)}"
                found[name] = Attribute(declared, found[name].text)
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.target.id.startswith("_"):
                continue
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found[node.target.id] = Attribute(ast.unparse(node), inline(str(said)))
    return found


def methods(kind: type) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, type]]:
    seen: set[str] = set()
    for owner in ours(kind):
        for node in body_of(owner):
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and not node.name.startswith("_")
                and node.name not in seen
            ):
                seen.add(node.name)
                if not any("overload" in ast.unparse(one) or "setter" in ast.unparse(one) for one in node.decorator_list):
                    yield node.name, node, owner


def ours(kind: type) -> list[type]:
    return [one for one in kind.__mro__ if one.__module__.startswith("perdure")]


def body_of(kind: type) -> list[ast.stmt]:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    return next((node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == kind.__name__), [])


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args)).removeprefix("/, ")
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({arguments}){returned}"


def called(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The signature of an operation by names and defaults: its parameters follow, one by one."""
    bare = copy.deepcopy(node)
    for one in (*bare.args.posonlyargs, *bare.args.args, *bare.args.kwonlyargs):
        one.annotation = None
    return signature(bare)


def taken(method: Callable[..., Any]) -> Iterator[str]:
    """What a call of a handle takes: types, words and bounds, as every face has them."""
    for one in parameters(method):
        given = "None" if one.optional else ""
        hint = " | ".join(part for part in (type_name(one.type), given) if part)
        if one.arg.text and not SELF_EVIDENT.fullmatch(one.arg.text):
            yield f"- `{one.name}: {hint}`: {' '.join(filter(None, (one.arg.text, bounds(one))))}"


def type_name(hint: Any) -> str:
    """A type in few words."""
    if get_origin(hint) is Annotated:
        return type_name(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(type_name(one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return " | ".join(repr(one) for one in get_args(hint))
    if get_origin(hint) is Callable:
        return "Callable"
    name = getattr(hint, "__name__", str(hint))
    inner = ", ".join("..." if one is ... else type_name(one) for one in get_args(hint))
    return f"{name}[{inner}]" if inner else name


def bounds(one: Parameter) -> str:
    """What a number may be, or how long a text or a list."""
    arg = one.arg
    if arg.choices:
        return f"One of {', '.join(f'`{choice}`' for choice in arg.choices)}."
    if arg.max_length and not is_id(arg):
        return f"At most {arg.max_length:,} {'characters' if one.item is None else 'items'}."
    highest = arg.le if arg.le is not None and arg.le < LARGE else None
    lowest = arg.ge if arg.ge not in (0, 1) or highest is not None else None
    if arg.gt is not None:
        return f"More than {arg.gt:,}." if highest is None else f"More than {arg.gt:,}, at most {highest:,}."
    if highest is not None:
        return f"{lowest:,} to {highest:,}." if lowest is not None else f"At most {highest:,}."
    return "" if lowest is None else f"At least {lowest:,}."


def is_id(arg: Arg) -> bool:
    """Whether its length is that of every id, which need not be said each time."""
    return arg.max_length == ID_BYTES_MAX


def unpacked(node: ast.FunctionDef | ast.AsyncFunctionDef, where: Any) -> list[str]:
    """The keywords that stand behind `**fields: Unpack[…]`."""
    annotation = node.args.kwarg.annotation if node.args.kwarg else None
    found = re.fullmatch(r"Unpack\[(\w+)\]", ast.unparse(annotation)) if annotation else None
    if found is None:
        return []
    kind = getattr(sys.modules[where.__module__], found[1])
    return [f"- `{one.declared}`{': ' if one.text else ''}{one.text}" for one in attributes(kind).values()]


def inline(text: str) -> str:
    """A docstring in one line, as it stands in a list."""
    return " ".join(text.split())


def first(text: str) -> str:
    return inline(text.partition("\n\n")[0])


def prose(text: str) -> str:
    return "\n\n".join(
        part if part.startswith(("|", "- ", "    ")) else inline(part) for part in inspect.cleandoc(text).split("\n\n")
    )


if __name__ == "__main__":
    main()
