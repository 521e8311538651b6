"""Anthropic's memory tool on a user's state, with undo.

```python
tool = PerdureMemoryTool(engine.memory("ana"))
client.beta.messages.tool_runner(model=…, max_tokens=…, messages=[…], tools=[tool]).until_done()
```

A file is a value of the state whose key is its path, `/memories/…`; a folder is there while it has files. Every change is a
revision, so that `undo` can take it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from perdure.domain.errors import Conflict, NotFound, PerdureError
from perdure.domain.text.rules import brief
from perdure.handles.memory import Memory
from perdure.integrations.thread import in_thread

ROOT = "/memories"
LINES_MAX = 999_999
NUMBER_WIDTH = len(str(LINES_MAX))
DEPTH = 2
AROUND = 2
"""So many lines are shown on either side of a replacement."""
ENTRIES_SHOWN = 1_000
PLACES_MAX = 100
KILO = 1_024
PATTERN_CHARS_MAX = 300
TRIES_MAX = 20
UNSHOWN = "node_modules"


class MemoryFiles:
    """Files of a user under `/memories`, and the six commands of the tool. What is wrong is a `ToolError` for the model."""

    def __init__(self, memory: Memory) -> None:
        self._state = memory.as_agent().state

    # -- the commands

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """A file with the numbers of its lines, or what a folder holds, two levels deep."""
        key = _checked(path)
        text = self._find(key)[0]
        if text is None:
            below = self._below(key)
            if not below and key != ROOT:
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            return _listing(path, key, below)
        lines = text.split("\n")
        if len(lines) > LINES_MAX:
            raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = 1, len(lines)
        if view_range:
            first, last = _checked_range(view_range, len(lines))
        return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"

    def create(self, path: str, file_text: str) -> str:
        """Make a file that is not there."""
        key = _checked_file(path)
        held, revision = self._find(key)
        if held is not None or self._below(key):
            raise ToolError(f"File {path} already exists")
        self._refuse_inside_file(key)
        self._save(key, file_text, revision, f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Put one text in the place of another that stands once in the file."""

        def replaced(text: str) -> tuple[str, str]:
            places = _places(text, old_str)
            if not places:
                raise ToolError(f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}.")
            if len(places) > 1:
                numbers = ", ".join(str(text.count("\n", 0, place) + 1) for place in places)
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {numbers}. "
                    "Please ensure it is unique"
                )
            new = text[: places[0]] + new_str + text[places[0] + len(old_str) :]
            start = text.count("\n", 0, places[0]) + 1
            lines = new.split("\n")
            shown = _numbered(lines, max(1, start - AROUND), min(len(lines), start + new_str.count("\n") + AROUND))
            return new, f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

        return self._edit(path, replaced)

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put a text behind a line; behind line 0, at the beginning."""

        def inserted(text: str) -> tuple[str, str]:
            ends = text.endswith("\n")
            lines = (text[:-1] if ends else text).split("\n") if text else []
            if not 0 <= insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {insert_line}. "
                    f"It should be within the range of lines of the file: [0, {len(lines)}]"
                )
            new = [*lines[:insert_line], insert_text.removesuffix("\n"), *lines[insert_line:]]
            return "\n".join(new) + "\n", f"The file {path} has been edited."

        return self._edit(path, inserted)

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all that it holds. The revisions stay."""
        key = _checked(path)
        if key == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        gone = [self._state.delete(one) for one in (key, *self._below(key))]
        if not any(gone):
            raise ToolError(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Move a file or a folder to a path where nothing is."""
        old, new = _checked(old_path), _checked_file(new_path)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        moved = [key for key in (old, *self._below(old)) if self._find(key)[0] is not None]
        if not moved:
            raise ToolError(f"The path {old_path} does not exist")
        if self._find(new)[0] is not None or self._below(new):
            raise ToolError(f"The destination {new_path} already exists")
        if new.startswith(f"{old}/"):
            raise ToolError(f"Cannot rename {old_path} into itself: {new_path}")
        self._refuse_inside_file(new)
        # All are there before the first one goes: a rename that ends halfway loses nothing.
        for key in moved:
            text, _ = self._find(key)
            target = new + key.removeprefix(old)
            self._save(target, text or "", self._find(target)[1], f"The destination {new_path} already exists")
        for key in moved:
            self._state.delete(key)
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Delete all files; each can be brought back by `undo`."""
        for key in self._below(ROOT):
            self._state.delete(key)
        return "All memory cleared"

    # -- for the program, not for the model

    def undo(self, path: str) -> str | None:
        """Take back the newest change of a file; its text now, or None if it is gone. `NotFound` if there is none before."""
        key = _checked_file(path)
        revisions = self._state.history(key, limit=2)
        if not revisions:
            raise NotFound(f"{path} has never been there; `view` shows what is")
        if len(revisions) == 1 or revisions[1].body is None:
            self._state.delete(key, expected=revisions[0].number)
            return None
        self._state.restore(key, revisions[1].number)
        return self._find(key)[0]

    # -- how

    def _find(self, key: str) -> tuple[str | None, int]:
        """The text of a file, and the revision that a change has to name. A value of another kind is shown as JSON."""
        held = self._state.find(key)
        if not held.found or isinstance(held.value, str):
            return (held.value if held.found else None), held.revision
        return json.dumps(held.value, ensure_ascii=False, indent=2, default=str), held.revision

    def _below(self, key: str) -> dict[str, int]:
        """The files in a folder and below it, with their sizes as they are stored: a line break counts two."""
        start = re.split(r"[*?\[]", f"{key}/")[0][:PATTERN_CHARS_MAX]
        # The quotes of the stored text do not count.
        return {one.key: max(0, one.size_bytes - 2) for one in self._state.list(f"{start}*") if one.key.startswith(f"{key}/")}

    def _refuse_inside_file(self, key: str) -> None:
        above = key.rpartition("/")[0]
        while above != ROOT:
            if self._find(above)[0] is not None:
                raise ToolError(f"The path {above} is a file, not a directory")
            above = above.rpartition("/")[0]

    def _edit(self, path: str, change: Callable[[str], tuple[str, str]]) -> str:
        key = _checked(path)
        for _ in range(TRIES_MAX):
            text, revision = self._find(key)
            if text is None:
                if key == ROOT or self._below(key):
                    raise ToolError(f"The path {path} is not a file.")
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            new, said = change(text)
            try:
                self._save(key, new, revision)
            except Conflict:
                continue  # another writer was faster: look again at what is there
            return said
        raise ToolError(f"The file {path} was changed {TRIES_MAX} times by others meanwhile. Please try again.")

    def _save(self, key: str, text: str, revision: int, taken: str = "") -> None:
        try:
            self._state.save(key, text, expected=revision)
        except Conflict as error:
            if not taken:
                raise
            raise ToolError(taken) from error


class PerdureMemoryTool(BetaAbstractMemoryTool):
    """The memory tool, for `client.beta.messages.tool_runner(tools=[…])`."""

    def __init__(self, memory: Memory, **more: Any) -> None:
        super().__init__(**more)
        self.files = MemoryFiles(memory)

    def execute(self, command: Any) -> str:
        return carry_out(self.files, command)

    view = create = str_replace = insert = delete = rename = execute

    def clear_all_memory(self) -> str:
        return self.files.clear()

    def undo(self, path: str) -> str | None:
        """Take back the newest change of a file; its text now, or None if it is gone."""
        return self.files.undo(path)


class AsyncPerdureMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`."""

    def __init__(self, memory: Memory, **more: Any) -> None:
        super().__init__(**more)
        self.files = MemoryFiles(memory)

    async def execute(self, command: Any) -> str:
        return await in_thread(carry_out, self.files, command)

    view = create = str_replace = insert = delete = rename = execute

    async def clear_all_memory(self) -> str:
        return await in_thread(self.files.clear)

    async def undo(self, path: str) -> str | None:
        """Take back the newest change of a file; its text now, or None if it is gone."""
        return await in_thread(self.files.undo, path)


COMMANDS: Mapping[str, Mapping[str, type]] = {
    "view": {"path": str, "view_range": list},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
OPTIONAL = ("view_range", "new_str")


def carry_out(files: MemoryFiles, command: Any) -> str:
    """What a command answers. A model sent it, so that it may be anything; whatever is wrong is a `ToolError` that says so."""
    name = getattr(command, "command", None)
    takes = COMMANDS.get(name) if isinstance(name, str) else None
    if takes is None:
        raise ToolError(f"Unknown command {brief(name, 60)}. Use one of {', '.join(COMMANDS)}.")
    given = {}
    for field, kind in takes.items():
        value = getattr(command, field, None)
        if value is None and field in OPTIONAL:
            continue
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ToolError(f"Invalid `{field}` parameter of {name}: {brief(value, 60)}. It should be of type {kind.__name__}.")
        given[field] = value
    try:
        return str(getattr(files, str(name))(**given))
    except PerdureError as error:
        raise ToolError(f"{name} failed: {error}") from error


def _checked(path: str) -> str:
    """The key of a path. It stays within `/memories`, however it is written."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    for read in (path, unquote(unquote(path)).replace("\\", "/")):
        whole = normpath(read)
        if whole != ROOT and not whole.startswith(f"{ROOT}/"):
            raise ToolError(f"Path {path} would escape {ROOT} directory")
    return normpath(path)


def _checked_file(path: str) -> str:
    if (key := _checked(path)) == ROOT or path.endswith("/"):
        raise ToolError(f"The path {path} is a directory. Please name a file in it.")
    return key


def _checked_range(view_range: Sequence[int], count: int) -> tuple[int, int]:
    numbers = [one for one in view_range if isinstance(one, int) and not isinstance(one, bool)]
    first, last = (max(1, numbers[0]), numbers[1]) if len(numbers) == len(view_range) == 2 else (1, 0)
    last = count if last == -1 else min(last, count)
    if first > last:
        raise ToolError(
            f"Invalid `view_range` parameter: {brief(list(view_range), 60)}. "
            f"It should be [first, last] within the lines of the file: [1, {count}]; -1 is the last line."
        )
    return first, last


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{lines[number - 1]}" for number in range(first, last + 1))


def _places(text: str, part: str) -> list[int]:
    """Where a part begins, also where it overlaps itself; as many as are worth telling."""
    found: list[int] = []
    place = text.find(part) if part else -1
    while place >= 0 and len(found) < PLACES_MAX:
        found.append(place)
        place = text.find(part, place + 1)
    return found


def _listing(path: str, key: str, sizes: Mapping[str, int]) -> str:
    """What a folder holds, two levels deep; a folder is as large as its files."""
    entries: dict[tuple[str, ...], int] = {}
    for one, size in sizes.items():
        parts = tuple(one.removeprefix(f"{key}/").split("/"))
        if any(part.startswith(".") or part == UNSHOWN for part in parts):
            continue
        for depth in range(1, min(len(parts), DEPTH) + 1):
            name = parts[:depth] if depth == len(parts) else (*parts[:depth], "")
            entries[name] = entries.get(name, 0) + size
    base = path.rstrip("/")
    lines = [f"{_size(sum(sizes.values()))}\t{base}"]
    lines += [f"{_size(entries[name])}\t{base}/{'/'.join(name)}" for name in sorted(entries)[:ENTRIES_SHOWN]]
    if len(entries) > ENTRIES_SHOWN:
        lines.append(f"… and {len(entries) - ENTRIES_SHOWN} more; view a directory to see what is in it")
    head = f"Here're the files and directories up to {DEPTH} levels deep in {path}, excluding hidden items and {UNSHOWN}:"
    return "\n".join([head, *lines])


def _size(count: float) -> str:
    if count < KILO:
        return f"{count}B"
    for unit in "KM":
        count /= KILO
        if count < KILO:
            return f"{count:.1f}{unit}"
    return f"{count / KILO:.1f}G"
