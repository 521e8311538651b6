"""The routes, a module for each noun.

`ROUTERS` is all of them. A request is matched against one after the
other, so what agents ask for in every turn comes first."""

from __future__ import annotations

from perdure.interfaces.http.routes import (
    agents,
    entities,
    history,
    instructions,
    keys,
    lessons,
    memories,
    messages,
    oversight,
    portability,
    recall,
    series,
    series_asking,
    sessions,
    state,
    store,
    system,
    todos,
    tools,
    transcripts,
)

ROUTERS = (
    messages.appends, messages.router, recall.router, messages.writes, sessions.router, memories.router, entities.router,
    todos.router, instructions.router, lessons.router, state.router, state.writes, series.router, series.writes,
    series_asking.router, oversight.router, oversight.writes, history.router, history.writes, portability.router,
    transcripts.router, tools.router, agents.router, store.router, store.writes, keys.router, system.router,
)  # fmt: skip
