"""Run in LangGraph's own environment: its conformance suite on our checkpointer; prints how much passed and failed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator

from langgraph.checkpoint.conformance import checkpointer_test, validate

import perdure
from perdure.integrations.langgraph import PerdureSaver


@checkpointer_test(name="PerdureSaver")
async def ours() -> AsyncGenerator[PerdureSaver, None]:
    with perdure.open(sys.argv[1], background=False) as engine:
        yield PerdureSaver(engine.memory("ana"))
        assert engine.verify().clean


report = asyncio.run(validate(ours))
for name, one in report.results.items():
    print(name, one.tests_passed, one.tests_failed, *one.failures)
print(sum(one.tests_passed for one in report.results.values()), "passed")
