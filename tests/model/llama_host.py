"""A process that serves one model as an OpenAI-compatible server on this machine, until its standard input ends.

    python llama_host.py MODEL.gguf NAME THREADS

It prints the server's address when the model is loaded. Ending with its input, it cannot outlive whoever started it.
"""

from __future__ import annotations

import os
import sys

import xllamacpp

CONTEXT_TOKENS = 8192
BATCH_TOKENS = 128
"""Read at once. Between two batches the server looks whether somebody still waits for the answer."""
POLITENESS = 10
"""Others work on this machine, too."""


def main() -> None:
    path, name, threads = sys.argv[1:]
    os.nice(POLITENESS)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    # What was read before would change in which pieces a prompt is read, with it the last digits, and with them the answer.
    params.cache_prompt = False
    params.cache_ram_mib = 0
    # Also while a prompt is read: so that whoever passes the answer on can see early that nobody waits for it any more.
    params.sse_ping_interval = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # The server's threads may be in the middle of an answer that nobody waits for.
    os._exit(0)


if __name__ == "__main__":
    main()
