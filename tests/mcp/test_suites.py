"""The public suites: MCP's conformance suite for both eras of the protocol, and its inspector's strict look at the tools."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import mcp_suites
from tests.mcp.live_mcp import PERDURE, Live
from tests.mcp.test_wire import asked

EXPECTED = Path(__file__).parent / "expected_failures.yaml"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    try:
        mcp_suites.install()
    except mcp_suites.Missing as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def suite(name: str, *args: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [*mcp_suites.command(name), *args]
    environment = {**os.environ, "HOME": str(home), "NO_COLOR": "1"}
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("revision", "passed_min"), [("2025-11-25", 35), ("2026-07-28", 100)])
def test_the_conformance_suite_passes_but_for_the_expected(live: Live, tmp_path: Path, revision: str, passed_min: int) -> None:
    # The suite also counts passes when nobody answers: ask first.
    assert live.post(asked(method="tools/list")).json()["result"]["tools"]
    done = suite(
        "conformance",
        "server",
        "--url",
        live.url,
        "--requirements",
        revision,
        "--expected-failures",
        str(EXPECTED),
        "--output-dir",
        str(tmp_path / "found"),
        home=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr
    total = re.search(r"Total: (\d+) passed", done.stdout)
    assert total is not None
    assert int(total[1]) >= passed_min


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_finds_no_fault_in_the_tools(live: Live, tmp_path: Path, transport: str) -> None:
    target = (
        [live.url, "--transport", "http"]
        if transport == "http"
        else [PERDURE, "mcp", "--user", "ana", "--url", "memory:", "--tools", "all"]
    )
    done = suite("inspector", "--cli", *target, "--method", "tools/list", "--strict", home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(done.stdout)["tools"]) == 35
    # `saveState` and `afterTool` take any JSON, on purpose. Nothing else is worth a warning.
    warned = set(re.findall(r"Path: (\S+)", done.stderr))
    assert warned == {f"inputSchema.properties.{name}" for name in ("value", "result", "default")}
