"""P12: limits are stated and enforced; what comes too fast is pushed back, not piled up."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import threading
from dataclasses import fields
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import perdure
from perdure.domain.limits import Limits
from perdure.engine.names import compare
from perdure.interfaces.http.fields import LIMIT_MAX
from perdure.interfaces.mcp.stdio import LINE_BYTES_MAX
from proof import bounds, crowding
from proof.bounds import Bound, Scene
from proof.harness import Promise, Round
from proof.mcp_probes import HELLO, Listener, tell
from proof.served import Served, serving, speaking_mcp
from proof.servers import fresh_sqlite
from proof.wholeness import check_heals
from proof.workers.flooded import flood
from proof.workers.growing import grow

GROWTH_BYTES_MAX = 96 * 2**20
"""What a process may grow by under a flood: caches of words and vectors fill up to their bounds, and nothing else."""
MESSAGE_CHARS_MAX = 1_000
QUEUE_MAX = 40
FOLLOWING_MAX = 5
"""A job that was let in may cause others, of so many kinds at most; none is let in meanwhile."""
FLOOD_S = 300.0
GROW_S = 900.0
GROWN_BYTES_MAX = 32 * 2**20
"""What a process may grow by while it appends: SQLite's pages in memory, up to their bound."""
COST_RATIO_MAX = 2.0
RATE = 10
BODY_BYTES = 64 * 1024
SLOW_BODIES, SILENT = 520, 2_100
"""More than there are places for requests, and for connections."""
SLOW_S = 15.0
LOOK_ALIKES = ("Katherine Andersson", "Catherine Anderson", "Kathrin Andersen", "Katharina Andersonn")
COMPARED_MAX = 100
"""Pairs of names that are judged for a new one: some of those known, and those among them that seem to be the same."""


def run(round: Round) -> None:
    scene = Scene(round.folder)
    try:
        told = [*bounds.limit_bounds(scene), *bounds.stated_bounds(scene), *bounds.floors()]
        stated = {one.named for one in told} | {one.name for one in told}
        missing = {one.name for one in fields(Limits)} - {name.partition(" ")[0] for name in stated}
        round.check(not missing, "not tried", f"no bound is tried for {', '.join(sorted(missing))}")
        for case in round.cases(quick=len(told), full=len(told), name="bounds"):
            _exact(round, told[case.number])
        round.check(not scene.engine.verify().findings, "not whole", "the store of the bounds")
    finally:
        scene.close()
    if round.begins:
        _http(round)
        _mcp(round)
        _new_names(round)
        _flood(round)
        _grow(round)


def _exact(round: Round, bound: Bound) -> None:
    """At the bound it passes; one more is refused, by a refusal that names the bound."""
    try:
        bound.send(bound.most)
        round.met("at the limit")
    except Exception as error:
        round.wrong("not exact", f"{bound.name}: {bound.most} is within it and was refused: {type(error).__name__}: {error}")
    try:
        bound.send(bound.most + bound.step)
    except perdure.PerdureError as error:
        said = str(error)
        round.met("one over")
        round.check(bound.named in said, "not named", f"{bound.name}: the refusal of one more does not name it: {said[:300]}")
        round.check(len(said) <= MESSAGE_CHARS_MAX, "not named", f"{bound.name}: the refusal has {len(said)} characters")
    except Exception as error:
        round.wrong("not exact", f"{bound.name}: one more than {bound.most} ended in {type(error).__name__}: {error}")
    else:
        round.wrong("not exact", f"{bound.name}: one more than {bound.most} was let in")


# -- over the network


def _http(round: Round) -> None:
    folder = round.folder / "http"
    folder.mkdir()
    with serving(folder, "--body-max-mb", str(BODY_BYTES / 2**20), "--rate", str(RATE), "--no-auth") as server:
        for size, wanted in ((BODY_BYTES, False), (BODY_BYTES + 1, True)):
            status, body = _asked(server, "PUT", "/v1/users/ana/state/k", _json_of(size))
            round.check(
                (status == 413) == wanted,
                "not exact",
                f"a body of {size} bytes, of {BODY_BYTES} allowed, is answered with {status}: {body[:200]!r}",
            )
            round.met("one over" if wanted else "at the limit")
        for limit, wanted in ((LIMIT_MAX, False), (LIMIT_MAX + 1, True)):
            status, body = _asked(server, "GET", f"/v1/users/ana/messages?limit={limit}")
            round.check(
                (status == 422) == wanted,
                "not exact",
                f"`limit` = {limit}, of {LIMIT_MAX} allowed, is answered with {status}: {body[:200]!r}",
            )
        _http_flood(round, server)
    _http_crowd(round)


def _http_crowd(round: Round) -> None:
    """One weak key, then nobody in particular, hold every place they can get: all others are answered meanwhile."""
    folder = round.folder / "crowd"
    folder.mkdir()
    with perdure.open(f"sqlite:///{folder / 'served.db'}") as engine:
        weak, other = (engine.api_keys.create(name, permission="read").secret for name in ("weak", "other"))
    with serving(folder) as server:
        with crowding.slow_bodies(server.port, weak, SLOW_BODIES) as lines:
            _others_are_served(round, server, other, f"{SLOW_BODIES} slow bodies of one key")
            told = crowding.answers(lines, SLOW_S)
            round.check(
                len(told) == len(lines) and set(told) <= {408, 503},
                "slow senders",
                f"{len(lines) - len(told)} of {len(lines)} still hold a place after {SLOW_S:.0f} s; told: {sorted(set(told))}",
            )
            round.met("slow senders were cut", told.count(408))
        with crowding.silent(server.port, SILENT):
            _others_are_served(round, server, other, f"{SILENT} silent connections")


def _others_are_served(round: Round, server: Served, secret: str, meanwhile: str) -> None:
    for path, key in (("/healthz", None), ("/readyz", None), ("/v1/users", secret)) * 3:
        heard = crowding.ask(server.port, path, key)
        round.check(
            heard.status == 200, "crowded out", f"{heard.who} got {heard.status} in {heard.seconds:.1f} s beside {meanwhile}"
        )
        round.met("others were answered in a crowd")


def _http_flood(round: Round, server: Served) -> None:
    """Ask far more often than is allowed: 429 with `Retry-After`, bounded memory, and work goes on afterwards."""
    began = server.memory_bytes()
    count = round.sized(quick=240, full=8_000)
    answers: list[tuple[int, str]] = []

    def ask() -> None:
        mine = [_status_and_wait(server) for _ in range(count // 4)]
        answers.extend(mine)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(FLOOD_S)
    grown = server.memory_bytes() - began
    pushed = [wait for status, wait in answers if status == 429]
    round.met("pushed back over HTTP", len(pushed))
    round.check(bool(pushed), "flood", f"none of {len(answers)} requests was pushed back, of {RATE} a second that are allowed")
    odd = sorted({status for status, _ in answers} - {200, 429})
    round.check(not odd, "flood", f"the flood was also answered with {odd}")
    round.check(
        all(wait.isdigit() and int(wait) >= 1 for wait in pushed), "flood", f"a 429 without `Retry-After`: {set(pushed)}"
    )
    round.check(grown <= GROWTH_BYTES_MAX, "grows", f"the server grew by {grown / 2**20:.0f} MiB under {len(answers)} requests")
    round.facts["server growth"] = f"{grown / 2**20:.1f} MiB over {len(answers)} requests"
    threading.Event().wait(2.0)
    status, _ = _status_and_wait(server)
    round.check(status == 200, "does not heal", f"two seconds after the flood a request is answered with {status}")


def _status_and_wait(server: Served) -> tuple[int, str]:
    raw = _raw(server, "GET", "/v1/users/ana/state")
    head = raw.partition(b"\r\n\r\n")[0].decode("latin-1").lower().split("\r\n")
    wait = next((line.partition(":")[2].strip() for line in head if line.startswith("retry-after:")), "")
    return int(head[0].split()[1]) if head[0] else 0, wait


def _asked(server: Served, method: str, target: str, body: bytes | None = None) -> tuple[int, bytes]:
    raw = _raw(server, method, target, body)
    return int(raw.split()[1]) if raw else 0, raw.partition(b"\r\n\r\n")[2]


def _raw(server: Served, method: str, target: str, body: bytes | None = None) -> bytes:
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n"
    head += "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        line.sendall(head.encode() + b"\r\n" + (body or b""))
        answer = b""
        while some := line.recv(65_536):
            answer += some
    return answer


def _json_of(size: int) -> bytes:
    empty = json.dumps({"value": ""}).encode()
    return json.dumps({"value": "x" * (size - len(empty))}).encode()


def _mcp(round: Round) -> None:
    """A line of as many bytes as are taken, and of one more: both ids are answered, the second with a refusal."""
    folder = round.folder / "mcp"
    folder.mkdir()
    with speaking_mcp(folder) as served:
        listener = Listener(served)
        tell(served, json.dumps(HELLO).encode())
        for id, size in ((1, LINE_BYTES_MAX), (2, LINE_BYTES_MAX + 1)):
            empty = json.dumps({"jsonrpc": "2.0", "method": "ping", "params": {"x": ""}, "id": id}).encode()
            tell(
                served,
                json.dumps({"jsonrpc": "2.0", "method": "ping", "params": {"x": "x" * (size - len(empty))}, "id": id}).encode(),
            )
            told: Any = listener.wait(id)
            refused = isinstance(told, dict) and "error" in told
            round.check(
                told is not None and refused == (id == 2),
                "not exact",
                f"a line of {size} bytes, of {LINE_BYTES_MAX} allowed: {str(told)[:200]}",
            )
            round.met("one over" if id == 2 else "at the limit")
        os.close(served.writing)
        round.check(listener.join(), "hangs", "`perdure mcp` did not end")


# -- more names than can be compared


def _new_names(round: Round) -> None:
    """A new name is compared with a few of those that look like it, however many there are; none of it in the transaction."""
    compared: list[int] = []
    real = compare.compare

    def counting(*names: Any, **more: Any) -> Any:
        compared[-1] += 1
        return real(*names, **more)

    with perdure.open(fresh_sqlite(round.folder)) as engine, patch.object(compare, "compare", counting):
        ana = engine.memory("ana")
        for number in range(round.sized(quick=150, full=1_500)):
            compared.append(0)
            name = f"{LOOK_ALIKES[number % len(LOOK_ALIKES)]} {number}"
            ana.remember(f"{name} likes tea", "PEOPLE", entities=[f"person:{name}"])
            round.met("a name was added to many like it")
        most = max(compared)
        round.facts["comparisons"] = f"{most} at most for one new name among {len(compared)} that look like it"
        round.check(most <= COMPARED_MAX, "grows", f"{most} names were compared for one new one, more than {COMPARED_MAX}")
        check_heals(round, engine, when="many names", seconds=60)


# -- more than the jobs can do


def _flood(round: Round) -> None:
    url = fresh_sqlite(round.folder)
    writes = round.sized(quick=600, full=20_000)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=flood, args=(there, url, writes, QUEUE_MAX))
    process.start()
    there.close()
    told: dict[str, Any] | None = here.recv() if here.poll(FLOOD_S) else None
    process.join(30)
    if process.is_alive():
        process.kill()
        process.join()
    if told is None:
        round.wrong("hangs", f"the flood of {writes} writes told nothing for {FLOOD_S:.0f} s")
        return
    refused, acknowledged = told["refused"], told["acknowledged"]
    round.count("flooded writes", writes)
    round.met("pushed back", len(refused))
    round.check(bool(refused), "flood", f"none of {writes} writes was pushed back, though {QUEUE_MAX} jobs may wait")
    round.met("acknowledged in the flood", len(acknowledged))
    for kind, retriable, said in refused:
        if not retriable or (kind and ("queue_jobs_max" not in said or kind != "LimitExceeded")):
            round.wrong("flood", f"a write was refused with {kind} ({'' if retriable else 'not '}retriable): {said[:300]}")
    round.check(told["most_waiting"] <= QUEUE_MAX * FOLLOWING_MAX, "grows", f"{told['most_waiting']} jobs waited at once")
    round.check(
        told["grown"] <= GROWTH_BYTES_MAX, "grows", f"the process grew by {told['grown'] / 2**20:.0f} MiB under {writes} writes"
    )
    round.facts["growth"] = f"{told['grown'] / 2**20:.1f} MiB over {writes} writes"
    with perdure.open(url) as engine:
        lost = [id for id in acknowledged if not _is_held(engine, id)]
        round.check(not lost, "lost", f"{len(lost)} of {len(acknowledged)} acknowledged writes are not there: {lost[:5]}")
        engine.memory("ana", agent="agent-after").append("user", "after the flood")
        check_heals(round, engine, when="the flood", seconds=120)


# -- more and more


def _grow(round: Round) -> None:
    """Message after message of one user: no append costs more than those before, and nothing grows but the file, evenly."""
    folder = round.folder / "growing"
    folder.mkdir()
    appends = round.sized(quick=1_000, full=100_000)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=grow, args=(there, str(folder / "store.db"), appends))
    process.start()
    there.close()
    told: dict[str, Any] | None = here.recv() if here.poll(GROW_S) else None
    if told is None:
        process.kill()
    process.join(30)
    if told is None:
        round.wrong("hangs", f"{appends} appends were not done within {GROW_S:.0f} s")
        return
    round.count("appends in a row", appends)
    round.check(told["last"] == f"m{appends - 1}", "lost", f"the last message is {told['last']}")
    parts = told["parts"]
    grown = parts[-1]["memory"] - parts[1]["memory"]
    round.check(grown <= GROWN_BYTES_MAX, "grows", f"memory grew by {grown / 2**20:.0f} MiB from the second tenth to the last")
    # The least of three tenths each: whatever else the machine does can only make it more.
    early, late = (min(one["append_s"] for one in some) for some in (parts[1:4], parts[-3:]))
    round.check(
        late <= COST_RATIO_MAX * early, "grows", f"an append costs {late * 1e6:.0f} µs late, and {early * 1e6:.0f} early"
    )
    steps = [after["bytes"] - before["bytes"] for before, after in pairwise(parts[1:])]
    half = len(steps) // 2
    more = sum(steps[-half:]) / max(1, sum(steps[:half]))
    round.check(more <= COST_RATIO_MAX, "grows", f"the file grows {more:.1f} times as fast in the end: {steps}")
    round.met("appended in a row")
    round.facts["growth over appends"] = (
        f"{appends} appends: {early * 1e6:.0f} µs of CPU each early, {late * 1e6:.0f} late; memory {grown / 2**20:+.1f} MiB; "
        f"the file {parts[-1]['bytes'] / 2**20:.0f} MiB, {sum(steps) / (len(steps) * appends / len(parts)):.0f} bytes an append"
    )


def _is_held(engine: perdure.Engine, id: str) -> bool:
    try:
        return engine.memory("ana", agent=f"agent-{id.partition('-')[2]}").conversation.message(id).id == id
    except perdure.NotFound:
        return False


PROMISE = Promise(
    id="P12",
    says="limits are stated and enforced; back-pressure, not growth",
    tried_by="each bound met exactly and exceeded by one, in Python, over HTTP and MCP; floods of writes and of requests; "
    "places held by slow bodies of one key and by silent connections, while others ask; 100,000 appends of one user",
    run=run,
    evidence=(
        "at the limit",
        "one over",
        "pushed back",
        "acknowledged in the flood",
        "pushed back over HTTP",
        "slow senders were cut",
        "others were answered in a crowd",
        "appended in a row",
    ),
    figure="{bounds} bounds exact, {wrong} not; {pushed back} of {flooded writes} writes pushed back, memory bounded, also over "
    "{appends in a row} appends",
)
