"""The sentences of WordNet 3.0: what its words mean and how they are used. Read from the Debian package or its files."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from pathlib import Path

GET_IT = "apt-get download wordnet-base"
SHA256 = {
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "data.verb": "adcf43e35b581e8036d8b5a52d63d9cd3d3b4870b2720d3c03c799df44777bc2",
    "data.adj": "c89120dfc1f046ddff4a631bf9b7e9fa1a36b5e86565a23bf82dbe14f30b88a7",
    "data.adv": "444a63bf3955080ab7524f5079cfc07ff9bc682cb98bdb1db73b0fb9829f1139",
}
WORDS_MAX = 3
"""Words named before a meaning: the first ones are the usual ones."""


def sentences(path: Path) -> tuple[list[str], list[str]]:
    """The examples (`the roses ramped over the wall`) and the meanings (`dog, domestic dog: a member of the genus …`).

    `path` is the Debian package, or a directory with the `data` files. Files of another content are refused.
    """
    contents = _package(path) if path.is_file() else {name: _file(path, name) for name in SHA256}
    examples: list[str] = []
    meanings: list[str] = []
    for name, wanted in SHA256.items():
        found = hashlib.sha256(contents.get(name, b"")).hexdigest()
        if found != wanted:
            raise SystemExit(f"{name} in {path} has sha256 {found}, wanted {wanted}; get it with: {GET_IT}")
        for line in contents[name].decode().splitlines():
            if not line.startswith("  "):  # the licence stands at the top, indented
                _read(line, examples, meanings)
    return examples, meanings


def _read(line: str, examples: list[str], meanings: list[str]) -> None:
    """A line is `offset file type count word id word id … | meaning; "example"; "example"`, the count in hexadecimal."""
    head, _, gloss = line.partition(" | ")
    fields = head.split()
    words = [re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
    examples += [example.strip() for example in re.findall(r'"([^"]+)"', gloss)]
    meaning = re.sub(r';?\s*"[^"]*"[^;"]*', "", gloss).strip(" ;")
    meanings.append(f"{', '.join(words[:WORDS_MAX])}: {meaning}")


def _file(folder: Path, name: str) -> bytes:
    for file in sorted(folder.rglob(name)):
        return file.read_bytes()
    raise SystemExit(f"no {name} in {folder}; get it with: {GET_IT}")


def _package(path: Path) -> dict[str, bytes]:
    """The `data` files of a .deb: an ar archive with a header of 60 bytes before each member, one of them a tar archive."""
    content = path.read_bytes()
    at = len(b"!<arch>\n")
    while at + 60 <= len(content):
        name, size = content[at : at + 16].decode().strip(" /"), int(content[at + 48 : at + 58])
        if name.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(content[at + 60 : at + 60 + size])) as archive:
                wanted = [member for member in archive.getmembers() if Path(member.name).name in SHA256]
                files = {Path(member.name).name: archive.extractfile(member) for member in wanted}
                return {name: file.read() for name, file in files.items() if file}
        at += 60 + size + size % 2
    raise SystemExit(f"{path} is no Debian package; get it with: {GET_IT}")
