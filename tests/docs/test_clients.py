"""The pages on MCP clients: what a reader pastes is well formed, and starts a server that answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "how-to" / "clients").glob("*.md"))
FENCE = re.compile(r"^```(json|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEYS = {"json": ("mcpServers", "servers"), "toml": ("mcp_servers",)}
ASKED = (
    {
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    },
    {"method": "tools/list"},
)

pytestmark = pytest.mark.slow


def servers_in(page: Path) -> list[dict[str, Any]]:
    """The servers that the configurations on a page name."""
    found = []
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        read = json.loads(block) if language == "json" else tomllib.loads(block)
        [key] = read
        assert key in KEYS[language], (page.name, key)
        found += read[key].values()
    return found


@pytest.mark.parametrize("page", [one for one in PAGES if one.stem != "python"], ids=lambda page: page.stem)
def test_what_a_page_has_a_client_start_offers_tools(page: Path, tmp_path: Path) -> None:
    started = [server for server in servers_in(page) if "command" in server]
    assert started, page.name
    env = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    asked = "".join(json.dumps({"jsonrpc": "2.0", "id": number, **one}) + "\n" for number, one in enumerate(ASKED))
    for server in started:
        assert Path(server["command"]).name == "perdure"
        done = subprocess.run(
            [str(Path(sys.executable).with_name("perdure")), *server["args"]],
            input=asked,
            cwd=tmp_path,
            env=env | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        answers = {one["id"]: one["result"] for one in map(json.loads, done.stdout.splitlines()) if "id" in one}
        assert answers[0]["serverInfo"]["name"] == "perdure"
        assert {"remember", "recall"} <= {tool["name"] for tool in answers[1]["tools"]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_server_that_a_page_has_a_client_reach_is_named_by_its_address_and_a_token(page: Path) -> None:
    for server in servers_in(page):
        if "command" not in server:
            assert server["url"].startswith("http://127.0.0.1:8765/mcp?user=")
            assert server["headers"]["Authorization"].startswith("Bearer ")
