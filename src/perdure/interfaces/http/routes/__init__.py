"""The routes, a module for each noun.

`ROUTERS` is all of them. A request is matched against one after the
other, so what agents ask for in every turn comes first."""

from __future__ import annotations

from perdure.interfaces.http.routes import (
    access,
    context,
    conversation,
    knowledge,
    lessons,
    oversight,
    portability,
    series,
    state,
    store,
    todos,
    tools,
)

MODULES = (conversation, context, oversight, knowledge, todos, lessons, state, series, access, portability, store, tools)
ROUTERS = tuple(module.router for module in MODULES)
