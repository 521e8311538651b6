"""What one `forget` takes of time and memory, by the size of the SQLite store, and what the job takes that follows it.

Run it with another version of perdure on the path (`PYTHONPATH=…/src python bench/erasure/forget.py`) to compare the two.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import apsw

import crowd
import perdure

NUMBERS = (
    "WITH RECURSIVE counted(n) AS (VALUES ({first}) UNION ALL SELECT n + 1 FROM counted WHERE n < {last}) SELECT n FROM counted"
)

MEASURED = """
import json, sys, time
import perdure
def peak():
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
engine = perdure.open(sys.argv[1])
ana = engine.memory("ana")
ana.append("user", "my code is QX-7781", id="m1")
ana.append("user", "thanks", id="m2")
at_rest, began = peak(), time.perf_counter()
answer = ana.forget(messages=("m1", "m1"))
took_s, after = time.perf_counter() - began, peak()
began = time.perf_counter()
if getattr(answer, "bytes_remain", ""):
    engine.purge()
job_s = time.perf_counter() - began
told = {"at_rest_mb": at_rest, "after_mb": after, "forget_s": took_s, "job_s": job_s, "job_mb": peak()}
held = b"".join(file.path.read_bytes() for file in engine.files())
assert b"QX-7781" not in held, "its bytes are still there"
print(json.dumps(told))
"""


def fill(path: Path, megabytes: int) -> None:
    with perdure.open(f"sqlite:///{path}") as engine:
        crowd.make_template(engine, 40)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA synchronous = OFF")

    def columns(table: str) -> list[str]:
        return [str(name) for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]

    users = 0
    while path.stat().st_size < megabytes * 1_000_000:
        connection.execute("BEGIN")
        crowd.multiply(lambda sql: connection.execute(sql), columns, users + 1, users + 100, NUMBERS)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        users += 100
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 72, 143, 286])
    parser.add_argument("--dir", type=Path, help="where the stores are made; a folder of a real disk")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=chosen.dir) as folder:
        for megabytes in chosen.megabytes:
            path = Path(folder) / f"{megabytes}.db"
            fill(path, megabytes)
            command = [sys.executable, "-c", MEASURED, f"sqlite:///{path}"]
            began = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({"mb": path.stat().st_size / 1e6, **json.loads(done.stdout), "all_s": time.perf_counter() - began})
            path.unlink()
    if chosen.json:
        print(json.dumps(rows))
        return
    print("store MB  forget s  RAM at rest MB  after forget MB  job s  after job MB")
    for row in rows:
        print(
            f"{row['mb']:8.0f}  {row['forget_s']:8.3f}  {row['at_rest_mb']:14.0f}  {row['after_mb']:15.0f}"
            f"  {row['job_s']:5.2f}  {row['job_mb']:12.0f}"
        )


if __name__ == "__main__":
    main()
