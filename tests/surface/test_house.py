"""The rules of the house, read from the source: layers, cycles, sizes, names, and what may be caught."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import perdure

SRC = Path(perdure.__file__).parent
ROOT = SRC.parents[1]
TESTS = ROOT / "tests"
MIRRORS = ("flows", "unit")
"""Folders of tests that are divided as the rooms of the source are."""

MAY_IMPORT = {
    "domain": {"domain"},
    "ports": {"domain", "ports"},
    "engine": {"domain", "engine"},
    "services": {"domain", "ports", "engine", "services"},
    "adapters": {"domain", "ports", "adapters"},
    "settings": {"domain"},
    "handles": {"domain", "ports", "engine", "services", "handles"},
    "compose": {"domain", "ports", "engine", "services", "adapters", "settings", "handles", "compose"},
    "app": {"domain", "ports", "engine", "services", "adapters", "settings", "handles", "compose", "documents"},
    "aio": {"domain", "ports", "engine", "services", "settings", "handles", "app", "compose", "aio"},
    # Context documents work on a folder alone, without an engine: their own composition root.
    "types": {"domain", "ports", "engine", "services", "handles"},
    "documents": {"domain", "ports", "engine", "services", "adapters", "app", "aio", "documents"},
    # The day that `perdure demo` shows is lived on a stopped clock, and keeps context documents, too.
    "interfaces": {
        "",
        "domain",
        "ports",
        "services",
        "settings",
        "handles",
        "app",
        "aio",
        "documents",
        "types",
        "testing",
        # Those that need no framework: what a hook is handed and answers.
        "integrations",
        "interfaces",
    },
    # Adapters for frameworks: users of the public calls.
    "integrations": {"domain", "handles", "integrations"},
    "testing": {"domain", "ports", "engine", "services", "testing"},
    "__main__": {"interfaces"},
    "__init__": {"app", "domain", "engine", "handles", "services", "settings"},
}
SHELVES = {
    "engine": (
        {"words"},
        {"text", "times", "names"},
        {"extraction", "search", "series"},
        {"conversation", "lessons"},
        {"context", "knowledge", "models", "summary"},
        {"documents", "laws", "oversight", "portability"},
    ),
    "services": (
        {"jobs", "models"},
        {"index"},
        {"knowledge", "series"},
        {"lessons"},
        {"conversation"},
        {"context", "forget", "store"},
        {"access", "documents", "oversight", "portability"},
    ),
}
"""The folders of a layer from the bottom up: each may import those in the sets before its own, and none beside it."""
SHARED = {"adapters": {"sql", "files"}, "interfaces": {"demo"}}
"""Folders that stand at the bottom of their room, for the others to use."""
MODULES_MAX = 12
CORRIDORS: dict[str, int] = {}
"""Folders that are still too long. This list may only shrink."""
ROOT_HOLDS = {
    ".ci",
    ".git",
    ".gitattributes",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "README.md",
    "SECURITY.md",
    "bench",
    "conftest.py",
    "constraints.txt",
    "docs",
    "examples",
    "mkdocs.yml",
    "proof",
    "pyproject.toml",
    "src",
    "tests",
    "tools",
}
NAMED_TWICE = {
    "PerdureRetriever": "LangChain and LlamaIndex each call their interface `BaseRetriever`; nobody imports both into one module",
}
"""Public class names that are defined in more than one place, each with the reason. Fewer than ten."""
NOUNS_IN_ING = {"embedding", "keyring", "ranking", "serving", "spelling", "testing", "tracing"}
"""Names of modules and folders that end like a verb's form and are nouns."""
RIDDLES = {
    "arms",
    "asked",
    "bearing",
    "common",
    "found",
    "given",
    "heard",
    "held",
    "helpers",
    "known",
    "misc",
    "once",
    "parts",
    "said",
    "shelf",
    "shown",
    "stacks",
    "taken",
    "things",
    "told",
    "touched",
    "utils",
    "whole",
}
"""Names of modules that do not say what is inside."""
VAGUE = {"asked", "found", "given", "heard", "held", "known", "said", "shown", "taken", "told"}
"""One word for many meanings: functions are named by the noun or verb that they mean."""
UNDERSCORED = {"_asdict", "_exit", "_fields", "_make", "_replace"}
"""Public and documented, whatever their names look like: of named tuples, and `os._exit`."""
BORROWED = {
    "adapters/postgres/connections.py: errors._WaitTimeout": "the driver has no public name for the end of its patience",
    "interfaces/http/requests.py: found._body": "a request whose body was read is read again, by another class of the framework's",
    "interfaces/http/requests.py: request._body": "the same",
}
"""Private parts of libraries that are reached for, with the reason. This list may only shrink."""
PURE = {"domain", "engine"}
FORBIDDEN_IN_PURE = {
    "os",
    "time",
    "random",
    "pathlib",
    "logging",
    "socket",
    "subprocess",
    "threading",
    "apsw",
    "psycopg",
    "sqlite3",
}

DECLARED = ("operation", "unlogged")
"""Decorators of what callers call: a parameter that an editor completes is better than a value to make first."""
FUNCTION_LINES = 70
MODULE_LINES = 500
CLASS_LINES = 400
PARAMETERS = 7
# Places over a hard limit, with the reason. This list may only shrink.
KNOWN = {
    "interfaces/cli/commands.py:options": "each global option of the command line is a parameter; typer knows no other way",
}
BROAD_EXCEPTS = {
    "compose/models.py": "a plugin is anybody's code",
    "services/jobs/worker.py": "the job loop",
    "services/models/writer.py": "the plugin edge: a summariser may be the caller's code",
    "services/knowledge/extraction.py": "the plugin edge: an extractor may be the caller's code",
    "handles/tools.py": "the plugin edge: a tool of the host is the caller's code",
    "services/series/fetch.py": "the plugin edge: a fetcher is the caller's code",
    "adapters/wire.py": "a thread's error is raised again where its answer is waited for",
    "services/oversight/after.py": "the plugin edge: what a tool returns may be the caller's code",
    "services/models/consultant.py": "the plugin edge: a chat model may be the caller's code; a thread's error is raised again",
    "services/models/embedders.py": "the plugin edge: an embedder may be the caller's code",
    "services/context/recall.py": "the plugin edge: an embedder and a reranker may be the caller's code",
    "adapters/sqlite/store.py": "the plugin edge: work handed to the store",
    "interfaces/lines.py": "the interface edge: a stream ends with what went wrong",
    "interfaces/cli/commands.py": "the interface edge",
    "interfaces/cli/agents/connect.py": "the interface edge: a hook never fails the turn that it belongs to",
    "interfaces/mcp/server.py": "the interface edge",
    "interfaces/serving/guard.py": "the interface edge",
}


@cache
def modules() -> dict[str, ast.Module]:
    return {str(path.relative_to(SRC)): ast.parse(path.read_text()) for path in sorted(SRC.rglob("*.py"))}


def layer(name: str) -> str:
    return name.split("/")[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or "", node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node


def test_layers_point_inward() -> None:
    wrong = [
        f"{name} imports {module}"
        for name, tree in modules().items()
        for module, node in imports(tree)
        if module.split(".")[0] == "perdure"
        and (module + ".").split(".")[1] not in MAY_IMPORT[layer(name)]
        and not (
            module == "perdure" and isinstance(node, ast.ImportFrom) and {a.name for a in node.names} <= MAY_IMPORT[layer(name)]
        )
    ]
    assert wrong == []


def test_siblings_do_not_import_one_another() -> None:
    wrong = [
        f"{name} imports {module}"
        for room in ("adapters", "interfaces")
        for name, tree in modules().items()
        if name.startswith(f"{room}/") and name.count("/") >= 2
        for module, _ in imports(tree)
        if module.startswith(f"perdure.{room}.")
        and (SRC / room / module.split(".")[2]).is_dir()
        and module.split(".")[2] != name.split("/")[1]
        and module.split(".")[2] not in SHARED[room]
    ]
    assert wrong == []


def test_shelves_stand_in_order() -> None:
    wrong = []
    for room, levels in SHELVES.items():
        height = {shelf: number for number, level in enumerate(levels) for shelf in level}
        assert height.keys() == {path.stem for path in (SRC / room).iterdir() if not path.name.startswith("__")}
        for name, tree in modules().items():
            if layer(name) != room or name.count("/") == 1:
                continue
            own = name.split("/")[1].removesuffix(".py")
            wrong += [
                f"{name} imports {module}"
                for module, _ in imports(tree)
                if module.startswith(f"perdure.{room}.")
                and (other := module.split(".")[2]) != own
                and height[other] >= height[own]
            ]
    assert wrong == []


def test_no_folder_is_a_corridor() -> None:
    folders: dict[str, int] = {}
    for name in modules():
        if not name.endswith("__init__.py"):
            folder = name.rpartition("/")[0]
            folders[folder] = folders.get(folder, 0) + 1
    assert {folder: count for folder, count in folders.items() if count > MODULES_MAX} == CORRIDORS


def test_tests_stand_on_the_shelves_of_what_they_test() -> None:
    """The folders of a room are its shelves, a module that stands beside them is one, and so is a room that has none."""
    divided = {layer(name) for name in modules() if name.count("/") > 1}
    shelves = {Path(name).parts[1].removesuffix(".py") for name in modules() if layer(name) in divided}
    nouns = shelves | {layer(name) for name in modules()} - divided
    places = [path.relative_to(TESTS).parts for path in TESTS.rglob("*.py")]
    assert [parts for parts in places if parts[0] in MIRRORS and not (len(parts) == 3 and parts[1] in nouns)] == []


def test_no_folder_of_tests_is_a_corridor() -> None:
    counts = Counter(path.parent for path in TESTS.rglob("test_*.py"))
    assert {str(folder): count for folder, count in counts.items() if count > MODULES_MAX} == {}


def test_tests_are_named_by_what_they_test() -> None:
    names = {path: path.stem.removeprefix("test_") for path in TESTS.rglob("*.py")}
    verbs = [str(path) for path, name in names.items() if name.endswith("ing") and name.split("_")[-1] not in NOUNS_IN_ING]
    assert verbs == []
    assert [str(path) for path, name in names.items() if name in RIDDLES] == []


def test_the_root_holds_what_is_listed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {line.split("/")[0] for line in listed.stdout.splitlines()} <= ROOT_HOLDS


def test_only_the_composition_root_names_adapters() -> None:
    wrong = [
        name
        for name, tree in modules().items()
        for module, _ in imports(tree)
        if module.startswith("perdure.adapters") and layer(name) not in ("adapters", "app", "compose", "documents")
    ]
    assert wrong == []


def test_decisions_do_no_input_or_output() -> None:
    wrong = [
        f"{name} imports {module}"
        for name, tree in modules().items()
        if layer(name) in PURE
        for module, _ in imports(tree)
        if module.split(".")[0] in FORBIDDEN_IN_PURE and not (name == "domain/reports.py" and module == "pathlib")
    ]
    assert wrong == []


def test_there_are_no_import_cycles() -> None:
    def dotted(name: str) -> str:
        return ("perdure." + name.removesuffix(".py").replace("/", ".")).removesuffix(".__init__")

    names = {dotted(name) for name in modules()}
    # Imports inside functions and for the type checker happen later, or never.
    graph = {dotted(name): set[str]() for name in modules()}
    for name, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for module, _ in imports(node):
                    targets = {module} | (
                        {f"{module}.{a.name}" for a in node.names} if isinstance(node, ast.ImportFrom) else set()
                    )
                    graph[dotted(name)] |= (targets & names) - {"perdure", dotted(name)}
    done: set[str] = set()

    def walk(node: str, path: tuple[str, ...]) -> None:
        assert node not in path, f"cycle: {' -> '.join((*path, node))}"
        if node not in done:
            for target in graph[node]:
                walk(target, (*path, node))
            done.add(node)

    for node in graph:
        walk(node, ())


def test_nothing_outgrows_the_house() -> None:
    wrong = set()
    for name, tree in modules().items():
        length = len((SRC / name).read_text().splitlines())
        if length > MODULE_LINES:
            wrong.add(f"{name}: {length} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                count = 0 if is_declared(name, node) else len([one for one in given if one.arg not in ("self", "cls")])
                lines = (node.end_lineno or 0) - node.lineno + 1
                if node.name == "__init__" or layer(name) == "compose":
                    lines = 0  # what puts things together names each of them once, on a line of its own
                if (lines > FUNCTION_LINES or count > PARAMETERS) and f"{name}:{node.name}" not in KNOWN:
                    wrong.add(f"{name}:{node.name}: {lines} lines, {count} parameters")
            elif isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno + 1 > CLASS_LINES:
                wrong.add(f"{name}:{node.name}: a class of over {CLASS_LINES} lines")
    assert wrong == set()


def is_declared(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a public call of a handle, or its twin of the async face."""
    return name.startswith("aio/") or any(ast.unparse(one).startswith(DECLARED) for one in node.decorator_list)


def test_known_exceptions_still_exist() -> None:
    there = {
        f"{name}:{node.name}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert KNOWN.keys() <= there


def test_broad_excepts_stand_only_at_the_edges() -> None:
    found = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and catches_all(node) and not name.startswith("testing/")
    }
    assert found == BROAD_EXCEPTS.keys()


def catches_all(node: ast.ExceptHandler) -> bool:
    """Even an interruption, unless it only cleans up and lets the error go on."""
    if node.type is None or not isinstance(node.type, ast.Name):
        return node.type is None
    goes_on = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    return node.type.id == "Exception" or (node.type.id == "BaseException" and not goes_on)


def test_only_the_command_line_prints() -> None:
    wrong = [
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and not name.startswith("interfaces/cli/")
    ]
    assert wrong == []


def test_only_settings_read_the_environment() -> None:
    wrong = [
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") and name != "settings.py"
    ]
    assert wrong == []


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, tree in modules().items() if not ast.get_docstring(tree)] == []


def test_what_a_docstring_names_is_there() -> None:
    """A module of ours, or a name in one, between backticks; `engine.agents` and the like are calls of an open engine."""
    rooms = "|".join(sorted({layer(name) for name in modules()} - {"__init__"}))
    named = re.compile(rf"`(?:perdure\.)?((?:{rooms})(?:\.\w+)+)")
    wrong = [
        f"{name}: {match[1]}"
        for name in modules()
        for match in named.finditer((SRC / name).read_text())
        if not is_there(match[1].split(".")) and not hasattr(perdure.Engine, match[1].removeprefix("engine."))
    ]
    assert wrong == []


def is_there(parts: list[str]) -> bool:
    """Whether it is a module, or the first name behind the module stands in it."""
    for size in range(len(parts), 0, -1):
        path = SRC.joinpath(*parts[:size])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.is_file():
            return size == len(parts) or re.search(rf"\b{parts[size]}\b", file.read_text()) is not None
    return False


def test_every_public_call_has_a_docstring() -> None:
    wrong = [
        f"{name}:{owner.name}.{node.name}"
        for name, tree in modules().items()
        if layer(name) in ("app", "handles", "ports")
        for owner in ast.walk(tree)
        if isinstance(owner, ast.ClassDef) and not owner.name.startswith("_")
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert wrong == []


def test_importing_perdure_does_nothing() -> None:
    """No driver, no framework, no module of ours: names load when they are asked for."""
    code = "import sys; before = set(sys.modules); import perdure; print(*sorted(set(sys.modules) - before), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("perdure")} == {"perdure"}


def test_opening_a_store_loads_only_what_that_store_needs() -> None:
    code = "import sys, perdure; perdure.open('memory:'); print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    heavy = {"apsw", "psycopg", "typer", "rich", "pydantic", "asyncio", "pytest", "sqlite3"}
    assert heavy & set(done.stdout.split()) == set()


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = {}
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in NAMED_TWICE} == {}
    assert NAMED_TWICE.keys() <= twice.keys(), "what is unique by now needs no reason"
    assert len(NAMED_TWICE) < 10


def test_modules_are_named_by_what_they_hold() -> None:
    words = {(name, part) for name in modules() for part in Path(name).with_suffix("").parts}
    verbs = {(name, part) for name, part in words if part.endswith("ing") and part.split("_")[-1] not in NOUNS_IN_ING}
    assert verbs == set()
    assert {(name, part) for name, part in words if part in RIDDLES} == set()


def test_functions_are_named_by_what_they_mean() -> None:
    vague = [
        f"{name}:{node.lineno} {node.name}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.strip("_") in VAGUE
    ]
    assert vague == []


def test_nobody_reaches_for_the_private_parts_of_another_module() -> None:
    """A private name is used in the module that gives it to something, and through `self` and `cls` by its heirs."""
    wrong = {
        f"{name}: {ast.unparse(node)}"
        for name, tree in modules().items()
        for own in [private_names(tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in own
        and node.attr not in UNDERSCORED
        and ast.unparse(node.value) not in ("self", "cls", "super()")
    }
    assert wrong == BORROWED.keys()


def private_names(tree: ast.Module) -> set[str]:
    """Private names that a module defines, or that its classes use of themselves."""
    own: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            own.add(node.attr)
    return own


def test_nothing_is_squeezed() -> None:
    """The formatter decides how lines are broken, and values of more than five fields are built by name."""
    folders = (SRC, *(ROOT / name for name in ("tests", "proof", "bench", "tools", "examples")))
    files = [path for folder in folders for path in folder.rglob("*.py") if path != Path(__file__)]
    assert [str(path) for path in files if "fmt: skip" in path.read_text()] == []
    crowded = [
        f"{name}:{node.lineno} {ast.unparse(node.func)}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and len(node.args) > 5 and ast.unparse(node.func).rpartition(".")[2][:1].isupper()
        if ast.unparse(node.func) != "TypeVar"
    ]
    assert crowded == []
