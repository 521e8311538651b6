"""The log of a user's conversations from the command line, and its counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from perdure.domain.conversation.messages import Message, ToolCall
from perdure.domain.errors import InvalidInput
from perdure.domain.scope import ToolCallId
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import read_instant
from perdure.handles.memory import Memory
from perdure.interfaces.cli.derived import JSON, STDIN, Form, Reader, derived
from perdure.interfaces.cli.input import read_json, read_text
from perdure.interfaces.cli.output import Columns, Output, safe

# -- messages as they are given


def _message(line: str, number: int) -> dict[str, Any]:
    where = f"line {number}"
    try:
        given = json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{where} is not JSON ({error}); write one object on each line") from None
    if not isinstance(given, dict):
        raise InvalidInput(f"{where} is a `{type(given).__name__}`; write one object on each line")
    for name in ("role", "content"):
        if name not in given and not given.keys() & {"tool_calls", "type"}:
            raise InvalidInput(f"{where} has no `{name}`; each message needs a role and a content")
    if isinstance(given.get("at"), str):
        given["at"] = read_instant(given["at"], f"at of {where}")
    return given


def _calls(given: Json, name: str) -> Sequence[ToolCall]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InvalidInput(f"`{name}` must be a list of objects with `id`, `name` and `arguments`; correct it")
    try:
        return [ToolCall(ToolCallId(one["id"]), one["name"], one.get("arguments")) for one in given]
    except KeyError as error:
        raise InvalidInput(f"a call of `{name}` has no {error}; each needs `id` and `name`") from None


def _messages(file: str) -> list[dict[str, Any]]:
    return [_message(line, number) for number, line in enumerate(read_text(file).splitlines(), 1) if line.strip()]


TOOL_CALLS = Reader(
    lambda text: _calls(read_json(text), "--tool-calls"), "A JSON list of objects with id, name and arguments; or @FILE."
)

# -- the commands


def _appended(memory: Memory, fields: Mapping[str, Any], *, file: str | None) -> Message | Sequence[Message]:
    """The message that is given, or those of a file: all of them, in order, or none."""
    if file is None:
        if "role" not in fields or "content" not in fields:
            raise InvalidInput("no message is given; write ROLE and CONTENT, or name a file with `--file`")
        return memory.append(**fields)
    if fields.keys() - {"failed"} or fields.get("failed"):
        raise InvalidInput("`--file` has the messages with all that belongs to them; leave the rest out")
    return memory.append_many(_messages(file))


@derived(
    (Memory, "append"),
    example='perdure append --user ana user "I moved to Seattle"',
    form=Form(read={"content": STDIN, "metadata": JSON, "tool_calls": TOOL_CALLS}, defaults={"role": None, "content": None}),
    call=_appended,
)
def append(
    out: Output,
    done: Message | Sequence[Message],
    *,
    file: Annotated[str | None, typer.Option(help="Many at once: a JSON object on each line, or - for stdin.")] = None,  # noqa: ARG001 - read by the call
) -> None:
    """Log a message, or all messages of a file.

    A line of a file has `role`, `content`, and what else there are options for, or what a client's messages have. All of its
    messages are logged, or none.
    """
    if isinstance(done, Message):
        out.value(done, [_logged(done)])
    else:
        out.entries(done, [_logged(one) for one in done], empty="there was nothing to log")


COLUMNS: Columns = {
    "session": lambda one: f"{one.session_number}.{one.seq}",
    "at": "at",
    "role": "role",
    "content": "content",
}


@derived((Memory, "messages"), example="perdure messages --user ana --limit 5")
def messages(out: Output, found: Sequence[Message]) -> None:
    out.table(found, COLUMNS, empty="no messages here yet")


def _logged(message: Message) -> str:
    again = " (already held)" if message.repeated else ""
    return f"{safe(message.id)}  session {safe(message.session)}  seq {message.seq}{again}"
