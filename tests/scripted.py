"""A summariser that does what a test tells it to: answers, fails, or waits, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from perdure import Summary, SummaryRequest, Unavailable

WAIT_S = 20.0


class ScriptedSummariser:
    """Says how many messages it was shown, after what it was given to continue."""

    name = "scripted/1"

    def __init__(self, *, lessons: Sequence[str] = (), answer: Callable[[SummaryRequest], Summary] | None = None) -> None:
        self.requests: list[SummaryRequest] = []
        self.down = False
        self.lessons = tuple(lessons)
        self._answer = answer

    def summarise(self, request: SummaryRequest) -> Summary:
        self.requests.append(request)
        if self.down:
            raise Unavailable("the model does not answer; try later", retry_after_s=1)
        if self._answer is not None:
            return self._answer(request)
        told = f"{request.kind} of {len(request.messages)} from {request.messages[0].content!r:.40}"
        return Summary(" | ".join(part for part in (request.previous, told) if part)[-request.chars_max :], self.lessons)

    def kinds(self) -> list[str]:
        return [request.kind for request in self.requests]


class WaitingSummariser(ScriptedSummariser):
    """Stands still in its first answer until it is told to go on, so that something can happen meanwhile."""

    def __init__(self, *, fails: bool = False, lessons: Sequence[str] = ()) -> None:
        super().__init__(lessons=lessons)
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self._fails = fails

    def summarise(self, request: SummaryRequest) -> Summary:
        first = not self.asked.is_set()
        self.asked.set()
        if first:
            assert self.go_on.wait(WAIT_S), "nobody let the summariser go on"
            if self._fails:
                self.requests.append(request)
                raise Unavailable("the model gave up; try later", retry_after_s=1)
        return super().summarise(request)

    def while_it_works(self, call: Callable[[], object], meanwhile: Callable[[], object]) -> None:
        """Run `call` in a thread; once it waits for the summary, do something; then let it end."""
        trouble: list[BaseException] = []

        def run() -> None:
            try:
                call()
            except BaseException as error:  # handed on to the test below
                trouble.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert self.asked.wait(WAIT_S), "the summariser was never asked"
            meanwhile()
        finally:
            self.go_on.set()
            thread.join(WAIT_S)
        assert not thread.is_alive()
        if trouble:
            raise trouble[0]
