"""`Memory.lessons`: how to behave, as learned before. `Memory.prompt`: what an agent is told of itself, with these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from perdure.domain.lessons import Lesson, LessonScope, RefusedLesson, ReplyReport
from perdure.domain.scope import Scope
from perdure.domain.values import dataclass, replace
from perdure.handles import arguments as arg
from perdure.handles.operation import Arg, Handle, operation
from perdure.services.access.log import AccessLog
from perdure.services.context.assembly import PromptService
from perdure.services.lessons.lessons import Lessons

LessonId = Annotated[str, arg.an_id("The lesson's id.", "l-1")]
Reach = Annotated[LessonScope | None, Arg("Its scope; the one that lessons from here have, if left out.")]
OfAgent = Annotated[str | None, arg.an_id("One agent, in place of a scope.", "coach")]


@dataclass(frozen=True, slots=True)
class LessonServices:
    """What the handles call."""

    lessons: Lessons
    prompts: PromptService

    def confined(self) -> LessonServices:
        """The same where what reaches every user of the space can only be read."""
        return replace(self, lessons=replace(self.lessons, confined=True))

    def by_agent(self) -> LessonServices:
        """The same for what an agent adds: notes of its own."""
        return replace(self, lessons=replace(self.lessons, writer="agent"))


class LessonHandle(Handle, namespace="lessons"):
    """The lessons that apply here: of the space, agent, user and channel.

    Where no scope is given, the one is meant that lessons from here go to: the setting `lessons_scope`, or `channel` where
    others talk, too (`conversation.configure(shared=True)`); in a set-up of one user (the setting `user`) `agent` where the
    channel is mapped to one, else `global`; and `user` otherwise.
    """

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, lessons: Lessons, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = lessons

    @operation("read")
    def list(
        self,
        scope: Annotated[LessonScope | None, Arg("Of this scope only.")] = None,
        *,
        archived: Annotated[bool, Arg("Also archived ones.")] = False,
        ended: Annotated[bool, Arg("Also removed ones.")] = False,
        limit: arg.Limit = 100,
    ) -> Sequence[Lesson]:
        """List the lessons that hold here, the widest scope first. `archived=True` adds what is kept but not shown,
        `ended=True` what was taken back.
        """
        return self._do.list_(self.scope, scope, archived=archived, ended=ended, limit=limit)

    @operation("change")
    def add(
        self,
        text: Annotated[str, Arg("The rule, in one line.", min_length=1, max_length=240, pattern=arg.WORDS)],
        scope: Reach = None,
        *,
        agent: OfAgent = None,
    ) -> Lesson:
        """Keep a lesson; the same words again change nothing. It is of a scope, or of one agent.

        `InvalidInput` says why if it is none: boilerplate, an order to a model, a secret, hidden characters; or if
        others talk on this channel and it would reach everybody.
        """
        return self._do.add(self.scope, text, scope, agent)

    @operation("change")
    def remove(self, id: LessonId) -> Lesson:
        """A lesson holds no longer, and is not drawn again. `restore` brings it back."""
        return self._do.change(self.scope, id, "end")

    @operation("change")
    def archive(self, id: LessonId) -> Lesson:
        """Keep a lesson, but show it no longer."""
        return self._do.change(self.scope, id, "archive")

    @operation("change")
    def restore(self, id: LessonId) -> Lesson:
        """Show a lesson again that was archived or taken back."""
        return self._do.change(self.scope, id, "restore")

    @operation("change")
    def pin(self, id: LessonId) -> Lesson:
        """Show a lesson before others, and never archive it for space."""
        return self._do.change(self.scope, id, "pin")

    @operation("change")
    def unpin(self, id: LessonId) -> Lesson:
        """Treat a lesson as the others."""
        return self._do.change(self.scope, id, "unpin")

    @operation("change")
    def take_from(
        self,
        reply: Annotated[str, Arg("What the model said.", max_length=arg.TEXT_CHARS_MAX, pattern=arg.PLAIN)],
        *,
        message: Annotated[str | None, arg.an_id("The message as which the reply is logged.")] = None,
    ) -> ReplyReport:
        """Keep what a model's reply asks to remember. It asks with lines such as `MEMORY_APPEND: text`, or for one agent alone
        `MEMORY_APPEND agent:007 text`. Show the user the `text` of the answer.

        Name the `message` as which the reply is logged, and forgetting that takes its lessons along.
        """
        return self._do.take_from(self.scope, reply, message)

    @operation("read")
    def text(self, scope: Reach = None, *, agent: OfAgent = None) -> str:
        """Give the lessons of a scope as text to edit. It is the file if there is one, else a list."""
        return self._do.text(self.scope, scope, agent)

    @operation("change")
    def edit(
        self,
        text: Annotated[str, Arg("The file as it should be.", max_length=arg.TEXT_CHARS_MAX, pattern=arg.PLAIN)],
        scope: Reach = None,
        *,
        agent: OfAgent = None,
        was: Annotated[
            str | None,
            Arg("The text that was edited: lines added meanwhile stay.", max_length=arg.TEXT_CHARS_MAX, pattern=arg.PLAIN),
        ] = None,
    ) -> Sequence[RefusedLesson]:
        """Replace the lessons of a scope by an edited text. Lines that are gone end their lessons, new ones become lessons.
        With `was`, the text that was edited, lines that came in meanwhile stay. The answer names lines that are no lessons,
        and why.
        """
        return self._do.edit(self.scope, text, scope, agent, was=was)
