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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from perdure import Engine, Memory, types
from perdure.domain.errors import PerdureError
from perdure.domain.scope import ID_BYTES_MAX
from perdure.handles.operation import Parameter, parameters

ROOT = Path(__file__).parents[1]
CALLS, SETTINGS = (ROOT / "docs" / "reference" / name for name in ("python-calls.md", "settings.md"))

MODULES = {
    "perdure": "The core. `open` gives an `Engine`, which gives a `Memory` for a user.",
    "perdure.handles": "The parts of a `Memory` or an `Engine`: `ana.state`, `ana.todos`, `engine.agents`.",
    "perdure.types": "The values that calls return, and those that your extractor, model or embedder gets.",
    "perdure.documents": "Context documents: one JSON file per session, with or without a store.",
    "perdure.testing": "For tests of your own.",
    "perdure.aio": "The same for asyncio: every class has the calls of its twin, as coroutines.",
}
HANDLES = {
    "perdure.handles.conversation": ("Conversation", "DocumentHandle", "TranscriptHandle", "Turn"),
    "perdure.handles.knowledge": ("Memories", "EntityHandle", "TodoHandle", "TaskHandle", "InstructionHandle"),
    "perdure.handles.lessons": ("LessonHandle",),
    "perdure.handles.state": ("State",),
    "perdure.handles.series": ("UserSeries", "SeriesHandle"),
    "perdure.handles.tools": ("Tools",),
    "perdure.handles.admin": ("JournalHandle", "AdminHandle", "AgentHandle", "ApiKeyHandle"),
}
INTRO = """# Python calls

Every public name, written from the code by `tools/reference.py`. `help(call)` has the whole contract, [Parameters](#parameters)
what can be given; [Python](python.md) shows how the calls work together.
"""
ABOUT_PARAMETERS = "Parameters of several calls. Counts are 0 or more, limits 1 or more.\n"
ERRORS = "Errors, each with its code and whether to retry: {}. See [Errors](errors.md).\n"
ON_ANOTHER_PAGE = {"Settings": "settings.md", "Layers": "settings.md#layers", "Limits": "settings.md#limits"}
"""Classes whose fields another page lists."""
LARGE = 10**9
"""A bound from here on is only that of the number itself."""
SELF_EVIDENT = re.compile(r"The \w+('s \w+)?\.")
"""What says no more than the name of the parameter."""
SENTENCE_END = re.compile(r"(?<=[.?!])(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z`])")
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
        variable = "none" if name in settings.PYTHON_ONLY else f"`{settings.PREFIX}{name.upper()}`"
        shown = "empty" if default == "" else f"`{default}`"
        lines.append(f"| `{name}` | {variable} | {shown} | {about.text} |")
    return "\n".join([*lines, "", ""])


# The calls


class Attribute(NamedTuple):
    declared: str
    text: str

    @property
    def name(self) -> str:
        return self.declared.partition(":")[0]


def calls() -> str:
    parts = [INTRO]
    for name, about in MODULES.items():
        parts.append(f"## {name}\n\n{about}\n")
        if name == "perdure.aio":
            parts.append(
                f"{', '.join(f'`{one}`' for one in public(name) if not one.startswith('Async'))}; `AsyncX` for each `X`.\n"
            )
            continue
        told = [
            one_class(title, value) if inspect.isclass(value) else one_value(title, value)
            for title, value in public(name).items()
            if inspect.isroutine(value) or inspect.isclass(value) or hasattr(value, "__args__")
        ]
        lines = [one for one in told if one.startswith("- ")]
        parts += ["\n".join([*lines, ""])] if lines else []
        parts += [one for one in told if one not in lines]
        parts += [ERRORS.format(", ".join(f"`{one}`" for one in errors))] if (errors := errors_of(name)) else []
    return "\n".join([*parts, "## Parameters\n", ABOUT_PARAMETERS, *meanings(), ""])


def public(module: str) -> dict[str, Any]:
    """What a module offers, by name; errors have a page of their own."""
    if module == "perdure.handles":
        return {one: getattr(importlib.import_module(home), one) for home, classes in HANDLES.items() for one in classes}
    found = importlib.import_module(module)
    return {one: value for one in sorted(found.__all__, key=str.lower) if not is_error(value := getattr(found, one))}


def errors_of(module: str) -> list[str]:
    found = importlib.import_module(module)
    return sorted(one for one in getattr(found, "__all__", ()) if is_error(getattr(found, one)))


def is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, PerdureError)


def one_value(title: str, value: Any) -> str:
    """A function, or the values of a literal, in a line."""
    if not inspect.isfunction(value):
        return f"- `{title}`: One of {', '.join(f'`{one}`' for one in value.__args__)}."
    [node] = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)  # noqa: S101 - it is the source of a function
    return f"- `{called(node)}`: {first_sentence(inspect.getdoc(value) or '')}"


def one_class(title: str, kind: type) -> str:
    """What it is, its fields by name, and a line for each call; one without calls is a line itself."""
    about = first_sentence(own_doc(kind))
    if page := ON_ANOTHER_PAGE.get(kind.__name__):
        return f"- `{title}`: {about} Its fields: [Settings]({page})."
    fields = [one.name for one in attributes(kind).values() if one.name != "kind" or "RecordKind" not in one.declared]
    told = [(node, ast.get_docstring(node) or "") for node in methods(kind) if for_callers(title, node)]
    lines = [f"- `{called(node)}`: {first_sentence(said)}" for node, said in told if said]
    named = f"{title}({', '.join(fields)})" if fields else title
    if not lines:
        return f"- `{named}`: {about}" if about else f"- `{named}`"
    return "\n".join(
        [f"### `{title}`", "", *([about, ""] if about else []), *([f"`{named}`", ""] if fields else []), *lines, ""]
    )


def for_callers(title: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Not the parts of a contract, and not what stores do with a value: its row, its terms, the next version of it."""
    written = node.returns is not None and ast.unparse(node.returns) == title
    return title != "StoreContract" and not (title in types.__all__ and (written or node.name in ("terms", "body")))


def meanings() -> list[str]:
    """What the parameters that several operations take mean: once, in the words that most of them have for it."""
    said: dict[str, Counter[str]] = {}
    for kind in (Engine, Memory, *public("perdure.handles").values()):
        for node in methods(kind):
            method = inspect.getattr_static(kind, node.name)
            for one in parameters(method) if inspect.isfunction(method) else ():
                text = " ".join(filter(None, (one.arg.text, bounds(one))))
                if one.arg.text and not SELF_EVIDENT.fullmatch(one.arg.text):
                    said.setdefault(one.name, Counter())[text] += 1
    return [f"- `{name}`: {texts.most_common(1)[0][0]}" for name, texts in sorted(said.items()) if texts.total() > 1]


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
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.target.id.startswith("_"):
                continue
            said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found[node.target.id] = Attribute(ast.unparse(node), inline(str(said)))
    return found


def methods(kind: type) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
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
                    yield node


def ours(kind: type) -> list[type]:
    return [one for one in kind.__mro__ if one.__module__.startswith("perdure")]


def body_of(kind: type) -> list[ast.stmt]:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    return next((node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == kind.__name__), [])


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args)).removeprefix("/, ")
    returned = f" -> {ast.unparse(node.returns)}" if node.returns and ast.unparse(node.returns) != "None" else ""
    return f"{node.name}({arguments}){returned}"


def called(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The signature of a call by names and defaults, or a property with its type."""
    if any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list):
        return f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name
    bare = copy.deepcopy(node)
    for one in (*bare.args.posonlyargs, *bare.args.args, *bare.args.kwonlyargs):
        one.annotation = None
    return signature(bare)


def bounds(one: Parameter) -> str:
    """What a number may be, or how long a text or a list."""
    arg = one.arg
    if arg.choices:
        return f"One of {', '.join(f'`{choice}`' for choice in arg.choices)}."
    if arg.max_length and arg.max_length != ID_BYTES_MAX:
        return f"At most {arg.max_length:,} {'characters' if one.item is None else 'items'}."
    highest = arg.le if arg.le is not None and arg.le < LARGE else None
    lowest = arg.ge if arg.ge not in (0, 1) or highest is not None else None
    if arg.gt is not None:
        return f"More than {arg.gt:,}." if highest is None else f"More than {arg.gt:,}, at most {highest:,}."
    if highest is not None:
        return f"{lowest:,} to {highest:,}." if lowest is not None else f"At most {highest:,}."
    return "" if lowest is None else f"At least {lowest:,}."


def inline(text: str) -> str:
    """A docstring in one line."""
    return " ".join(text.split())


def first_sentence(text: str) -> str:
    return SENTENCE_END.split(inline(text.partition("\n\n")[0]), maxsplit=1)[0]


if __name__ == "__main__":
    main()
