"""Run in the SDK's own environment: the six commands of the memory tool as they are documented, sync and async."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

import httpx2
from anthropic import Anthropic
from anthropic.lib.tools import ToolError

import perdure
from perdure.integrations.anthropic import AsyncPerdureMemoryTool, PerdureMemoryTool

Call = Callable[..., str]
HEAD = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:"
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
MISSING = "The path {} does not exist. Please provide a valid path."
OUTSIDE = [
    "/memories/../secrets",
    "/memories/../../etc/passwd",
    "/memories/a/../../b",
    "/memories/..",
    "/memories/%2e%2e/etc",
    "/memories/%2e%2e%2fetc",
    "/memories/%252e%252e/etc",
    "/memories/..\\..\\windows",
]
NOT_UNDER = ["/etc/passwd", "memories/a", "/memoriesx/a", "", "/", "../memories/a"]


def refused(call: Call, command: str, **given: Any) -> str:
    try:
        answer = call(command, **given)
    except ToolError as error:
        return str(error.content)
    raise AssertionError(f"{command} {given} was carried out: {answer}")


def numbered(*lines: tuple[int, str]) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in lines)


def check_view(call: Call) -> None:
    assert call("view", path="/memories") == HEAD.format("/memories") + "\n0B\t/memories"
    call("create", path="/memories/notes.txt", file_text="one\ntwo\nthree\nfour")
    call("create", path="/memories/a/b/deep.txt", file_text="x" * 1_536)
    call("create", path="/memories/.hidden", file_text="no")
    call("create", path="/memories/node_modules/x.js", file_text="no")
    listed = call("view", path="/memories").split("\n")
    assert listed[0] == HEAD.format("/memories")
    assert listed[2:] == ["1.5K\t/memories/a/", "1.5K\t/memories/a/b/", "21B\t/memories/notes.txt"], listed
    assert call("view", path="/memories/a").split("\n")[1:] == [
        "1.5K\t/memories/a",
        "1.5K\t/memories/a/b/",
        "1.5K\t/memories/a/b/deep.txt",
    ]
    whole = "Here's the content of /memories/notes.txt with line numbers:\n"
    assert call("view", path="/memories/notes.txt") == whole + numbered((1, "one"), (2, "two"), (3, "three"), (4, "four"))
    assert call("view", path="/memories/notes.txt", view_range=[2, 3]) == whole + numbered((2, "two"), (3, "three"))
    assert call("view", path="/memories/notes.txt", view_range=[3, -1]) == whole + numbered((3, "three"), (4, "four"))
    assert call("view", path="/memories/./a/../notes.txt", view_range=[1, 1]).endswith(numbered((1, "one")))
    assert "[1, 4]" in refused(call, "view", path="/memories/notes.txt", view_range=[9, 10])
    assert "view_range" in refused(call, "view", path="/memories/notes.txt", view_range=["a", 2])
    assert refused(call, "view", path="/memories/none") == MISSING.format("/memories/none")


def check_create(call: Call) -> None:
    assert call("create", path="/memories/new.md", file_text="") == "File created successfully at: /memories/new.md"
    assert call("view", path="/memories/new.md").endswith(numbered((1, "")))
    assert refused(call, "create", path="/memories/new.md", file_text="b") == "File /memories/new.md already exists"
    assert refused(call, "create", path="/memories/a", file_text="b") == "File /memories/a already exists"
    assert "is a file, not a directory" in refused(call, "create", path="/memories/new.md/x", file_text="b")
    for path in ("/memories", "/memories/", "/memories/folder/"):
        assert "is a directory" in refused(call, "create", path=path, file_text="b")
    assert "400" in refused(call, "create", path="/memories/" + "x" * 500, file_text="b")
    call("create", path="/memories/[a]*?.txt", file_text="odd")
    assert refused(call, "view", path="/memories/[a]") == MISSING.format("/memories/[a]")
    assert call("delete", path="/memories/[a]*?.txt") == "Successfully deleted /memories/[a]*?.txt"


def check_str_replace(call: Call) -> None:
    path = "/memories/notes.txt"
    changed = call("str_replace", path=path, old_str="two", new_str="2\n2b")
    assert changed == f"{EDITED}\n" + numbered((1, "one"), (2, "2"), (3, "2b"), (4, "three"), (5, "four"))
    call("str_replace", path=path, old_str="2\n2b", new_str="two")
    assert refused(call, "str_replace", path=path, old_str="zzz", new_str="") == (
        f"No replacement was performed, old_str `zzz` did not appear verbatim in {path}."
    )
    assert refused(call, "str_replace", path=path, old_str="o", new_str="0") == (
        "No replacement was performed. Multiple occurrences of old_str `o` in lines: 1, 2, 4. Please ensure it is unique"
    )
    assert "did not appear" in refused(call, "str_replace", path=path, old_str="", new_str="x")
    assert refused(call, "str_replace", path="/memories/none", old_str="a", new_str="b") == MISSING.format("/memories/none")
    assert refused(call, "str_replace", path="/memories/a", old_str="a", new_str="b") == "The path /memories/a is not a file."


def check_insert(call: Call) -> None:
    path = "/memories/lines.txt"
    call("create", path=path, file_text="one\ntwo\n")
    assert call("insert", path=path, insert_line=0, insert_text="zero\n") == f"The file {path} has been edited."
    call("insert", path=path, insert_line=3, insert_text="three")
    assert call("view", path=path).endswith(numbered((1, "zero"), (2, "one"), (3, "two"), (4, "three"), (5, "")))
    wrong = "Invalid `insert_line` parameter: {}. It should be within the range of lines of the file: [0, 4]"
    assert refused(call, "insert", path=path, insert_line=5, insert_text="x") == wrong.format(5)
    assert refused(call, "insert", path=path, insert_line=-1, insert_text="x") == wrong.format(-1)
    assert refused(call, "insert", path="/memories/none", insert_line=0, insert_text="x") == MISSING.format("/memories/none")
    assert refused(call, "insert", path="/memories/a", insert_line=0, insert_text="x") == "The path /memories/a is not a file."


def check_delete_and_rename(call: Call) -> None:
    moved = call("rename", old_path="/memories/a", new_path="/memories/z/y")
    assert moved == "Successfully renamed /memories/a to /memories/z/y"
    assert call("view", path="/memories/z/y/b/deep.txt").endswith("x" * 1_536)
    assert refused(call, "view", path="/memories/a") == MISSING.format("/memories/a")
    taken = {"old_path": "/memories/new.md", "new_path": "/memories/notes.txt"}
    assert refused(call, "rename", **taken) == "The destination /memories/notes.txt already exists"
    gone = {"old_path": "/memories/none", "new_path": "/memories/other"}
    assert refused(call, "rename", **gone) == "The path /memories/none does not exist"
    root = {"old_path": "/memories", "new_path": "/memories/other"}
    assert refused(call, "rename", **root) == "Cannot rename the /memories directory itself"
    assert "into itself" in refused(call, "rename", old_path="/memories/z", new_path="/memories/z/w")
    assert call("delete", path="/memories/z") == "Successfully deleted /memories/z"
    assert refused(call, "view", path="/memories/z/y/b/deep.txt") == MISSING.format("/memories/z/y/b/deep.txt")
    assert refused(call, "delete", path="/memories/z") == "The path /memories/z does not exist"
    assert refused(call, "delete", path="/memories") == "Cannot delete the /memories directory itself"


def check_paths_and_other_nonsense(call: Call) -> None:
    for path in OUTSIDE:
        for command, fields in COMMANDS.items():
            assert "would escape /memories" in refused(call, command, **{**fields, "path": path, "old_path": path}), (
                command,
                path,
            )
        assert "would escape /memories" in refused(call, "rename", old_path="/memories/notes.txt", new_path=path)
    for path in NOT_UNDER:
        assert refused(call, "view", path=path) == f"Path must start with /memories, got: {path}"
    assert "`path`" in refused(call, "view")
    assert "`path`" in refused(call, "view", path=7)
    assert "`insert_line`" in refused(call, "insert", path="/memories/notes.txt", insert_line="one", insert_text="x")
    assert "Unknown command" in refused(call, "format")
    assert "NUL" in refused(call, "create", path="/memories/nul", file_text="a\0b")


COMMANDS: dict[str, dict[str, Any]] = {
    "view": {},
    "create": {"file_text": "x"},
    "str_replace": {"old_str": "a", "new_str": "b"},
    "insert": {"insert_line": 0, "insert_text": "x"},
    "delete": {},
    "rename": {"new_path": "/memories/other"},
}


def check_all(engine: perdure.Engine, user: str, tool: Any) -> None:
    memory = engine.memory(user)

    def call(command: str, **given: Any) -> str:
        answer = tool.call({"command": command, **given})
        return str(asyncio.run(answer) if inspect.iscoroutine(answer) else answer)

    for check in (
        check_view,
        check_create,
        check_str_replace,
        check_insert,
        check_delete_and_rename,
        check_paths_and_other_nonsense,
    ):
        check(call)
    check_undo(call, tool, memory)


def check_undo(call: Call, tool: Any, memory: perdure.Memory) -> None:
    def undo(path: str) -> str | None:
        answer = tool.undo(path)
        return asyncio.run(answer) if inspect.iscoroutine(answer) else answer

    path = "/memories/undone.txt"
    call("create", path=path, file_text="first")
    call("str_replace", path=path, old_str="first", new_str="second")
    assert undo(path) == "first"
    call("delete", path=path)
    assert undo(path) == "first"
    assert [one.number for one in memory.state.history(path)] == [5, 4, 3, 2, 1]
    memory.state.restore(path, 2)
    assert call("view", path=path).endswith(numbered((1, "second")))
    call("create", path="/memories/once.txt", file_text="once")
    assert undo("/memories/once.txt") is None
    assert refused(call, "view", path="/memories/once.txt") == MISSING.format("/memories/once.txt")
    try:
        undo("/memories/never.txt")
    except perdure.NotFound:
        pass
    else:
        raise AssertionError("there was nothing to undo")
    cleared = tool.clear_all_memory()
    assert (asyncio.run(cleared) if inspect.iscoroutine(cleared) else cleared) == "All memory cleared"
    assert call("view", path="/memories").endswith("0B\t/memories")
    assert undo(path) == "second"


def check_the_runner(engine: perdure.Engine) -> None:
    """The client's own loop, with an API that answers by a script."""
    uses = [
        {"command": "create", "path": "/memories/likes.md", "file_text": "Ana likes coffee."},
        {"command": "create", "path": "/memories/likes.md", "file_text": "again"},
    ]
    sent: list[Any] = []

    def api(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        turn = len(sent) - 1
        content: list[dict[str, Any]] = [{"type": "text", "text": "Done."}]
        if turn < len(uses):
            content = [{"type": "tool_use", "id": f"toolu_{turn}", "name": "memory", "input": uses[turn]}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        reason = "tool_use" if turn < len(uses) else "end_turn"
        body = {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }
        return httpx2.Response(200, json=body)

    memory = engine.memory("carla")
    client = Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(api)))
    said: Any = {"role": "user", "content": "Remember that I like coffee."}
    last = client.beta.messages.tool_runner(
        model="m", max_tokens=100, messages=[said], tools=[PerdureMemoryTool(memory)]
    ).until_done()
    assert last.stop_reason == "end_turn"
    assert sent[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    [first], [second] = (one["messages"][-1]["content"] for one in sent[1:])
    assert (first["content"], first.get("is_error")) == ("File created successfully at: /memories/likes.md", None)
    assert (second["content"], second["is_error"]) == ("File /memories/likes.md already exists", True)
    assert memory.state.load("/memories/likes.md") == "Ana likes coffee."
    assert "coffee" in memory.before("What coffee does Ana like?").text, "other agents of the user are given it"


with perdure.open("memory:", background=False) as opened:
    check_all(opened, "ana", PerdureMemoryTool(opened.memory("ana")))
    check_all(opened, "ben", AsyncPerdureMemoryTool(opened.memory("ben")))
    check_the_runner(opened)
    assert opened.verify().clean
print("3 passed")  # the tool, its async form, and the SDK's own runner
