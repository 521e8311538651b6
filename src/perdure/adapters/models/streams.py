"""Answers that come in pieces, put together in the form that they have when they come at once.

OpenAI's servers send events, Ollama's a JSON object on each line. A server that answers at once all the same is fine, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from perdure.domain.text.rules import Json

DONE = b"[DONE]"


class TextStream:
    """Takes lines as they come, and tells the text as far as it has come."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._rest = b""
        self._pieces = 0
        self.text = ""
        self.ended = False

    def take(self, part: bytes) -> None:
        """More bytes; whole lines of them are read."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            self._read(line)

    def whole(self) -> object:
        """The answer; None if it did not come in pieces."""
        self._read(self._rest)
        if not self._pieces:
            return None
        # One that broke off is no answer: what is missing is not guessed.
        return self._answer() if self.ended else {}

    def _read(self, line: bytes) -> None:
        line = line.strip().removeprefix(b"data:").strip()
        if line == DONE:
            self.ended = True
            return
        try:
            piece: Any = json.loads(line)
            added = self._take_piece(piece)
        except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
            return  # a comment, the name of an event, or no piece
        self._pieces += 1
        if added:
            self.text += added
            self._tell(self.text)

    def _take_piece(self, piece: Any) -> str:
        """The words that a piece adds; whatever it raises means that it is none."""
        raise NotImplementedError

    def _answer(self) -> Json:
        raise NotImplementedError


class OpenAIStream(TextStream):
    """`data: {"choices": [{"delta": {"content": "Hel"}}]}`, a line each; the last one has the cost and no choice."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(tell)
        self._finish: str | None = None
        self._refusal = ""
        self._usage: Json = None

    def _take_piece(self, piece: Any) -> str:
        self._usage = piece.get("usage") or self._usage
        if not piece["choices"]:
            return ""
        choice = piece["choices"][0]
        delta = choice["delta"]
        self._finish = choice.get("finish_reason") or self._finish
        self.ended = self.ended or self._finish is not None
        self._refusal += str(delta.get("refusal") or "")
        return str(delta.get("content") or "")

    def _answer(self) -> Json:
        message = {"content": self.text, "refusal": self._refusal or None}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}


class OllamaStream(TextStream):
    """`{"message": {"content": "Hel"}, "done": false}`, a line each; the last one has the cost."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(tell)
        self._last: dict[str, Json] = {}

    def _take_piece(self, piece: Any) -> str:
        content = piece["message"]["content"]
        self._last = dict(piece)
        self.ended = piece.get("done") is True
        return str(content or "")

    def _answer(self) -> Json:
        return {**self._last, "message": {"content": self.text}}
