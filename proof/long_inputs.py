"""Long inputs of one shape for every parser: twice as much may take about twice as long, and never much longer."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable
from typing import Any

import perdure
from proof.fuzzing import Hung, watch
from proof.harness import Round
from proof.parsers import Parser

HALF, WHOLE = 50_000, 100_000
FLOOR_S = 0.25
"""Of CPU time: below that, what a machine does besides is seen instead of the parser."""
RATIO_MAX = 3.0
"""Twice as much in twice the time is 2, in the square of it 4."""
LONGEST_S = 20.0
"""Of CPU time; a shape that takes the square of its length at a small price is linear to nobody."""
TRIES = 3

PIECES = (
    *"([{<\"'\\`#*-_.,:;|/=&%$@!?0a \n\t\r",
    *(" a", "1 ", "1:", "9.", "a.", "a@", "://", "- ", "> ", "# ", "[[", "]]", "](", "{{", "\\u", "\\\\", '\\"', "''"),
    *("<a ", "</", "<think>", "</think>", "```", "```json\n", "~~~\n", "---\n", "\n\n", "\r\n", "MEMORY_APPEND: ", "{}", "[]"),
    *('{"a":', '[{"a":[', '"a":1,', "[1,", '{"proposals":[', "null,", "Aa ", "A. ", "Dr. ", "e.g. ", "John Doe ", "Mc", "O'"),
    *(
        "I like ",
        "not ",
        "and ",
        "because ",
        "if ",
        "my ",
        "remember ",
        "never ",
        "call ",
        "http://a.",
        "a@b.",
        "+1 ",
        "1,000 ",
    ),
    *(
        "at 5 ",
        "5pm ",
        "from 3 to ",
        "last ",
        "next ",
        "every ",
        "monday ",
        "monday and ",
        "2024-",
        "2024-05-01 ",
        "12/",
        "in 3 weeks ",
    ),
    *("every monday at ", "the day before ", "between ", "since ", "until ", "two ", "Q3 ", "von ", "el ", "le "),
    *(
        "\u200d",
        "\u0301",
        "\ufe0f",
        "\U0001f468\u200d",
        "\u00ad",
        "\u3000",
        "\u05d0",
        "\u4e2d",
        "\u0e01\u0e33",
        "\ufdfa",
        "\u1e9b\u0323",
    ),
)


def shapes(parser: Parser, chance: random.Random) -> list[tuple[str, Callable[[int], Any]]]:
    """Each a way to an input of any length: one piece over and over, within a sound sample or alone; the sample itself."""
    sample = parser.samples[0]
    as_text = isinstance(sample, str)
    text = sample if as_text else sample.decode(errors="replace") if isinstance(sample, bytes) else ""
    cut = chance.randrange(len(text) + 1)
    words = sorted({*text.replace("\n", " ").split(" ")} - {""}, key=lambda word: (len(word), word))[-6:]

    def filled(piece: str, before: str, after: str) -> Callable[[int], Any]:
        def of(length: int) -> Any:
            made = before + (piece * (length // len(piece) + 1))[: max(0, length - len(before) - len(after))] + after
            return made if as_text else made.encode()

        return of

    found = []
    for piece in (*PIECES, *(f"{word} " for word in words), text, f"{text}\n"):
        if piece:
            found.append((f"{piece[:20]!r}…", filled(piece, "", "")))
            found.append((f"{piece[:20]!r}… and an end", filled(piece, "", "!x\n")))
            found.append((f"{piece[:20]!r}… within a sample", filled(piece, text[:cut], text[cut:])))
    if text[:1] == "{":
        # A sound document with one very long value, or the first of several.
        try:
            with_long = json.loads(text)
        except ValueError:
            with_long = json.loads(text.splitlines()[0])
        for key in [*with_long][:4] if isinstance(with_long, dict) else ():
            found.append(
                (
                    f"a long {key}",
                    lambda length, key=key: _encoded(json.dumps({**with_long, key: "a, b " * (length // 5)}), as_text),
                )
            )
            found.append(
                (
                    f"many {key}",
                    lambda length, key=key: _encoded(json.dumps({**with_long, key: ["x"] * (length // 5)}), as_text),
                )
            )
    return found


def _encoded(text: str, as_text: bool) -> Any:
    return text if as_text else text.encode()


def read_long(round: Round, found: list[Parser], chance: random.Random, *, turn: int, turns: int) -> None:
    """For every parser the shapes whose turn it is: after so many turns, all of them were read."""
    for parser in found:
        for name, of in shapes(parser, chance)[turn % turns :: turns]:
            _judge(round, parser, name, of)


def _judge(round: Round, parser: Parser, name: str, of: Callable[[int], Any]) -> None:
    round.count("long inputs")
    try:
        whole = _cpu_s(parser, of(WHOLE))
    except Exception as error:
        round.wrong("unhandled", f"{parser.name}: {type(error).__name__} at {WHOLE} characters of {name}: {str(error)[:200]}")
        return
    round.met("read 100 KB")
    if whole > LONGEST_S:
        round.wrong("not linear", f"{parser.name}: {WHOLE} characters of {name} take {whole:.1f} s")
    if whole <= FLOOR_S:
        return
    # The least of several: whatever else the machine does can only make it more.
    ratios = []
    for _ in range(TRIES):
        half = _cpu_s(parser, of(HALF))
        ratios.append(whole / max(half, 1e-6))
        if ratios[-1] <= RATIO_MAX:
            return
        whole = _cpu_s(parser, of(WHOLE))
    round.wrong(
        "not linear",
        f"{parser.name}: {WHOLE} characters of {name} take {min(ratios):.1f} times as long as {HALF}: {whole:.2f} s",
    )


def _cpu_s(parser: Parser, value: Any) -> float:
    began = time.process_time()
    watch(2 * LONGEST_S)
    try:
        answer = parser.read(value)
        if hasattr(answer, "__next__"):
            for _ in itertools.islice(answer, 1_000_000):
                pass
    except (perdure.PerdureError, Hung):
        pass  # how it refuses is judged elsewhere; one that hangs has taken its time
    finally:
        watch(0)
    return time.process_time() - began
