"""`Memory.lessons`: how to behave, as learned before. `Memory.prompt`: what an agent is told of itself, with these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.domain.lessons import Heard, Lesson, LessonScope, Refused
from perdure.domain.scope import Scope
from perdure.services.lessons import Lessons
from perdure.services.prompting import Prompting


@dataclass(frozen=True, slots=True)
class LessonServices:
    """What the handles call."""

    lessons: Lessons
    prompting: Prompting


class LessonHandle:
    """The lessons that hold at this address: those of the space, of its agent, of the user, and of the channel.

    Where no scope is given, the one is meant that lessons from here go to: the setting `lessons_scope`, or `channel` where
    others talk, too (`conversation.configure(shared=True)`); in a set-up of one user (the setting `user`) `agent` where the
    channel is mapped to one, else `global`; and `user` otherwise.
    """

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, lessons: Lessons) -> None:
        self._scope = scope
        self._do = lessons

    def list(
        self, scope: LessonScope | None = None, *, archived: bool = False, ended: bool = False, limit: int = 100
    ) -> Sequence[Lesson]:
        """What holds here, the widest scope first; with what is kept but not shown, and with what was taken back."""
        return self._do.list_(self._scope, scope, archived=archived, ended=ended, limit=limit)

    def add(self, text: str, scope: LessonScope | None = None, *, agent: str | None = None) -> Lesson:
        """Keep a lesson: of a scope, or of one agent. The same words again change nothing.

        `InvalidInput` says why if it is none: boilerplate, an order to a model, a secret, characters that nobody sees; or if
        others talk on this channel and it would reach everybody.
        """
        return self._do.add(self._scope, text, scope, agent)

    def remove(self, id: str) -> Lesson:
        """It holds no longer, and is not drawn again; `restore` brings it back."""
        return self._do.change(self._scope, id, "end")

    def archive(self, id: str) -> Lesson:
        """Keep it, but show it no longer."""
        return self._do.change(self._scope, id, "archive")

    def restore(self, id: str) -> Lesson:
        """Show it again, whether it was archived or taken back."""
        return self._do.change(self._scope, id, "restore")

    def pin(self, id: str) -> Lesson:
        """Show it before others, and never archive it to make room."""
        return self._do.change(self._scope, id, "pin")

    def unpin(self, id: str) -> Lesson:
        """Treat it as the others."""
        return self._do.change(self._scope, id, "unpin")

    def take_from(self, reply: str, *, message: str | None = None) -> Heard:
        """Take out of a model's reply what it wants remembered, and keep that: `MEMORY_APPEND: text`, or for one agent alone
        `MEMORY_APPEND agent:007 text`. Show the user the `text` of the answer.

        Name the `message` as which the reply is logged, and forgetting that takes its lessons along.
        """
        return self._do.take_from(self._scope, reply, message)

    def text(self, scope: LessonScope | None = None, *, agent: str | None = None) -> str:
        """The book of a scope, as text that can be edited: the file if there is one, else a list."""
        return self._do.text(self._scope, scope, agent)

    def edit(
        self, text: str, scope: LessonScope | None = None, *, agent: str | None = None, was: str | None = None
    ) -> Sequence[Refused]:
        """Put another text in its place, as an edit of the file would: lines that are gone end their lessons, new ones become
        lessons. With `was`, the text that was edited, lines that came in meanwhile stay. Which lines are no lessons, and why.
        """
        return self._do.edit(self._scope, text, scope, agent, was=was)
