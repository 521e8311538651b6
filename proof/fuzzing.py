"""The judge of a fuzz: one call with one input, under a watchdog, and whether what came of it is an answer or a named refusal."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import signal
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import _AsyncGeneratorContextManager, _GeneratorContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import perdure
from perdure.domain.text.rules import has_more_parts
from proof.harness import Round
from proof.hostile import CallersOwn, Failing, Hostile, failing_function
from proof.surface import Call, Plausible

CALL_S = 60.0
"""Of processor time: no call with a bounded input may take more."""
MESSAGE_CHARS_MAX = 1_000
ITEMS_READ_MAX = 200
CALLED = ("progress", "fetcher", "agent", "redact", "is_relevant", "count_tokens")
"""Arguments that are functions: one that the caller brings may fail as it pleases, in its own words."""
Fate = Literal["answered", "refused", "wrong"]


class Hung(BaseException):
    """The watchdog barked: no `Exception`, so that nothing on the way takes it for one of its own."""


@dataclass
class Tally:
    """What became of each call."""

    answered: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")


@contextmanager
def watchdog() -> Iterator[None]:
    """Inside, `judged` may set the alarm."""

    def bark(*_: object) -> None:
        raise Hung

    held = signal.signal(signal.SIGPROF, bark)
    try:
        yield
    finally:
        watch(0)
        signal.signal(signal.SIGPROF, held)


def watch(seconds: float) -> None:
    """Let the watchdog bark when this process has used so many seconds of processor time; 0 calls it off."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def judged(
    round: Round,
    tally: Tally,
    name: str,
    attempt: Callable[[], Any],
    *,
    told: Callable[[], str],
    binds: bool = True,
    own: bool = False,
) -> Fate:
    """Make one attempt; anything but an answer or a named refusal is a violation, told with what was given."""
    round.counts["inputs"] += 1
    began = time.process_time()
    watch(CALL_S)
    try:
        consumed(attempt())
        fate: Fate = "answered"
    except perdure.PerdureError as error:
        watch(0)
        is_due = own and isinstance(error, perdure.Corrupt)
        fate = "refused" if is_due or _is_well_said(round, name, error, told) else "wrong"
        tally.kinds[type(error).__name__] += 1
    except CallersOwn:
        tally.kinds["the caller's own"] += 1
        fate = "refused"
    except TypeError as error:
        fate = "refused" if not binds else _unhandled(round, name, error, told)
    except Hung:
        round.wrong("hangs", f"{name} did not end within {CALL_S:.0f} s of processor time: {told()}")
        fate = "wrong"
    except Exception as error:
        watch(0)
        fate = _unhandled(round, name, error, told)
    finally:
        watch(0)
    took = time.process_time() - began
    if took > tally.slowest[0]:
        tally.slowest = (took, name)
    if fate != "wrong":
        (tally.answered if fate == "answered" else tally.refused)[name] += 1
    return fate


def consumed(answer: Any) -> None:
    """Read what is given piece by piece: some calls do their work only then."""
    if isinstance(answer, Iterator):
        for _ in itertools.islice(answer, ITEMS_READ_MAX):
            pass
    elif isinstance(answer, perdure.Engine):
        answer.close()
    elif isinstance(answer, _GeneratorContextManager):
        with answer:
            pass


def _unhandled(round: Round, name: str, error: Exception, told: Callable[[], str]) -> Fate:
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "/perdure/" in one.filename][-3:]
    where = " < ".join(f"{one.filename.rpartition('/perdure/')[2]}:{one.lineno} {one.name}" for one in reversed(frames))
    round.wrong("unhandled", f"{name}: {type(error).__name__}: {ascii(str(error))[:200]} at {where}; given {told()}")
    return "wrong"


def _is_well_said(round: Round, name: str, error: perdure.PerdureError, told: Callable[[], str]) -> bool:
    said = str(error)
    flaw = None
    if not said.strip():
        flaw = "says nothing"
    elif len(said) > MESSAGE_CHARS_MAX:
        flaw = f"is {len(said)} characters long"
    elif not said.isascii() and not _is_text(said):
        flaw = "cannot be printed"
    elif "\0" in said:
        flaw = "contains NUL"
    elif isinstance(error, perdure.Corrupt) or type(error) is perdure.PerdureError:
        flaw = "is no refusal of the input"
    if flaw is not None:
        round.wrong("badly said", f"{name}: {type(error).__name__} {flaw}: {ascii(said)[:200]}\n  given {told()}")
    return flaw is None


def _is_text(said: str) -> bool:
    try:
        said.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(value: Any) -> str:
    """What was given, as far as it can be told in a line."""
    if isinstance(value, list | dict | tuple) and has_more_parts(value, 10_000):
        return f"<{type(value).__name__} with more than 10,000 parts>"
    try:
        text = ascii(value)
    except BaseException as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    kind = "" if type(value) in (str, int, float, bool, type(None), list, dict, tuple) else f"{type(value).__name__} "
    return kind + (text if len(text) <= 160 else f"{text[:100]}…{len(text)} characters")


def told_of(args: Sequence[Any], named: Mapping[str, Any]) -> str:
    return ", ".join([*map(shown, args), *(f"{name}={shown(one)}" for name, one in named.items())])[:1_000]


def given_to(call: Call, plausible: Plausible, hostile: Hostile, *, sound: bool) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for a call: as it asks for them, or with some of them hostile; rarely too many or too few."""
    chance = hostile.chance
    share = 0.0 if sound else chance.choice((0.0, 0.25, 0.5, 0.5, 1.0))
    named: dict[str, Any] = {}
    for one in call.fields:
        if not one.required and chance.random() < (0.75 if sound else 0.5):
            continue
        if chance.random() >= share:
            named[one.name] = plausible.of(call, one)
        else:
            spoilt = chance.random() < 0.2
            value = hostile.spoilt_value(plausible.of(call, one)) if spoilt else hostile.any()
            is_function = one.name in CALLED and callable(value) and not isinstance(value, Failing)
            named[one.name] = failing_function if is_function else value
    if share and len(call.fields) > 1 and all(one.required for one in call.fields) is False and chance.random() < 0.3:
        # One thing wrong and the rest right reaches deeper than everything wrong.
        spoilt = chance.choice([*named]) if named else None
        for one in call.fields:
            if one.name in named and one.name != spoilt:
                named[one.name] = plausible.of(call, one)
    args: list[Any] = []
    for one in call.fields:
        if not one.positional or one.name not in named or chance.random() < 0.5:
            break
        args.append(named.pop(one.name))
    if not sound and chance.random() < 0.02:
        if named and chance.random() < 0.5:
            named.pop(chance.choice([*named]))
        else:
            named["no_such_argument"] = 1
    return args, named


def run_awaited(loop: asyncio.AbstractEventLoop, answer: Any) -> Any:
    """What a call of the async face comes to."""

    async def whole() -> Any:
        value = await answer if inspect.isawaitable(answer) else answer
        if isinstance(value, _AsyncGeneratorContextManager):
            async with value:
                return None
        if isinstance(value, AsyncIterator):
            found = []
            async for one in value:
                found.append(one)
                if len(found) >= ITEMS_READ_MAX:
                    break
            return found
        return value

    return loop.run_until_complete(whole())
