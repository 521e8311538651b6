"""Run in the SDK's own environment: the conformance suite for session stores, on a store of its own for each contract."""

from __future__ import annotations

import asyncio
import sys
from itertools import count

from claude_agent_sdk.testing import run_session_store_conformance

import perdure
from perdure.integrations.claude import PerdureSessionStore

users = count()
with perdure.open(sys.argv[1], background=False) as engine:
    asyncio.run(run_session_store_conformance(lambda: PerdureSessionStore(engine.memory(f"user-{next(users)}"))))
    assert engine.verify().clean
# The suite looks at one store to see what it can do, and then makes one for each contract that it tries.
print(next(users) - 1, "passed")
