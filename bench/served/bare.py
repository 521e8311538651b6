"""The least that a server can do: an application on the same uvicorn that reads the request and answers with so many bytes.

    python bench/served/bare.py

Prints the port. `/1234` answers with 1,234 bytes.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    body = b"x" * int(scope["path"].strip("/"))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    import uvicorn

    # Named as TCP, for uvloop turns Nagle's algorithm off only then: it would hold every answer back for 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main()
