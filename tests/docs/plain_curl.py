"""`curl` for machines without it: as much of it as the documentation uses. What it does not know, it refuses."""

from __future__ import annotations

import argparse
import sys
import urllib.error
import urllib.request
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", "--data-binary", dest="body")
    parser.add_argument("-o", dest="out", type=Path)
    parser.add_argument("-w", dest="written", choices=[r"%{http_code}\n"])
    options = parser.parse_args()
    body = options.body and (Path(options.body[1:]).read_bytes() if options.body.startswith("@") else options.body.encode())
    headers = dict(one.split(": ", 1) for one in options.headers)
    request = urllib.request.Request(options.url, body, headers, method=options.method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        status, text = refused.code, refused.read()
    if options.out is not None:
        options.out.write_bytes(text)
    else:
        sys.stdout.buffer.write(text)
    if options.written:
        print(status)


if __name__ == "__main__":
    main()
