"""The routes, a module for each noun. `ROUTERS` is all of them, in the order of the API's description."""

from __future__ import annotations

from perdure.interfaces.http.routes import state

ROUTERS = (state.router,)
