"""Agents as folders: `agent-ID/` with `soul.md`, `mood.md` and `skill.md`, below a folder that people look after."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perdure.adapters.files import original_name, replace_file, safe_name, sync_folder, writing
from perdure.adapters.folders import check_regular, followed, make_folder, reading
from perdure.domain.errors import Corrupt, InvalidInput

TEXTS = ("soul", "mood", "skill")
PREFIX = "agent-"
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_-])?")


def agent_folder(root: Path, agent: str) -> Path:
    """The folder of an agent. No id leads out of `root`: what is not a plain name is escaped."""
    return root / f"{PREFIX}{agent if _PLAIN.fullmatch(agent) else safe_name(agent)}"


@dataclass(frozen=True, slots=True)
class AgentFolders:
    root: Path

    def find(self, agent: str) -> dict[str, str] | None:
        folder = agent_folder(self.root, agent)
        with reading(folder):
            if not folder.is_dir():
                return None
        texts = {name: _text(folder / f"{name}.md") for name in TEXTS}
        return {name: text for name, text in texts.items() if text is not None}

    def put(self, agent: str, texts: dict[str, str]) -> None:
        folder = agent_folder(self.root, agent)
        if not _PLAIN.fullmatch(agent) and original_name(safe_name(agent)) != agent:
            raise InvalidInput(f"agent {agent!r:.60} has too long an id to name a folder; use at most 100 characters")
        make_folder(folder)
        for name, text in texts.items():
            path = folder / f"{name}.md"
            if text:
                replace_file(followed(path), text.encode())
            else:
                with writing(path):
                    path.unlink(missing_ok=True)
                    sync_folder(folder)

    def list_(self) -> list[str]:
        with reading(self.root):
            if not self.root.is_dir():
                return []
            names = [one.name.removeprefix(PREFIX) for one in self.root.glob(f"{PREFIX}*") if one.is_dir()]
        ids = [name if _PLAIN.fullmatch(name) else original_name(name) for name in names]
        return sorted(one for one in ids if one is not None)

    def remove(self, agent: str) -> bool:
        folder = agent_folder(self.root, agent)
        paths = [folder / f"{name}.md" for name in TEXTS]
        with writing(folder):
            found = [path for path in paths if path.is_file()]
            for path in found:
                path.unlink(missing_ok=True)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
            if found:
                sync_folder(folder if folder.is_dir() else self.root)
        return bool(found)


def _text(path: Path) -> str | None:
    with reading(path):
        check_regular(path)
        try:
            return path.read_bytes().decode().removeprefix("\ufeff").replace("\r\n", "\n").strip()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise Corrupt(f"{path} is not UTF-8 at byte {error.start}; save it in that encoding") from error
