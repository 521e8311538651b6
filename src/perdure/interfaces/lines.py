"""An answer that tells how work goes on: a line of JSON for each thing it says, and at last how it ended."""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from perdure.domain.errors import PerdureError
from perdure.interfaces.errors import as_json

LOG = logging.getLogger("perdure.server")
LINES = "application/x-ndjson"
Line = dict[str, Any]
Say = Callable[[Line], None]


def work_lines(what: str, work: Callable[[Say], Line]) -> Iterator[bytes]:
    """What `work` says while it goes on, and what it returns; `{"error": …}` if it fails.

    It ends by itself: a caller who goes away stops nothing halfway.
    """
    said: queue.Queue[Line | None] = queue.Queue()

    def run() -> None:
        try:
            said.put(work(said.put))
        except PerdureError as error:
            said.put(as_json(error))
        except Exception as error:  # noqa: BLE001 - the interface edge: what was promised is an end with an error
            LOG.error("%s failed with %s; this is a bug in perdure", what, type(error).__name__)
            said.put(as_json(PerdureError("this is a bug in perdure; the server's log names it")))
        finally:
            said.put(None)

    threading.Thread(target=run, name="perdure-lines", daemon=True).start()
    while (line := said.get()) is not None:
        yield json.dumps(line).encode() + b"\n"
