"""Signing in on the page: an API key is shown once, and a cookie stands for it from then on."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from perdure.interfaces.serving.asked import Asked, Refused, form_of
from perdure.interfaces.serving.guard import Guard
from perdure.interfaces.serving.visits import cookie_of, set_cookie

NEXT_CHARS_MAX = 2_000
LoginPage = Callable[..., Response]
"""`login_page(request, *, error, next, csrf)`."""


def router(guard: Guard, login_page: LoginPage) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/login")
    async def show(request: Request) -> Response:
        there = _inside(request.query_params.get("next", "/"))
        if request.state.access.permissions:
            return _to(there)  # whoever is here already need not sign in
        return login_page(request, error=None, next=there, csrf=request.state.csrf)

    @routes.post("/login")
    async def sign_in(request: Request) -> Response:
        asked = Asked.of(request.scope)
        fields = form_of(await request.body())
        there = _inside(fields.get("next", "/"))
        try:
            key = await guard.admit_secret(fields.get("key", "").strip(), asked.client)
        except Refused as refused:
            guard.metrics.refused(refused.reason)
            answer = login_page(request, error=refused.detail, next=there, csrf=request.state.csrf)
            answer.status_code = refused.status
            answer.headers.update({name: value for name, value in refused.headers.items() if name == "Retry-After"})
            return answer
        _leave(guard, asked)
        return _to(there, set_cookie(guard.visits.begin(key.id), secure=asked.secure))

    @routes.post("/logout")
    async def sign_out(request: Request) -> Response:
        asked = Asked.of(request.scope)
        _leave(guard, asked)
        return _to("/login", set_cookie("", secure=asked.secure))

    return routes


def _inside(path: str) -> str:
    """A path of this server: a link to somewhere else must not come out of the sign-in."""
    outside = not path.startswith("/") or path.startswith("//") or "\\" in path or not path.isprintable()
    return "/" if outside or len(path) > NEXT_CHARS_MAX or path.startswith("/login") else path


def _to(path: str, cookie: str | None = None) -> Response:
    headers = {"Location": quote(path, safe="/?&=%#:;,+@!$'()*~-._")}
    return Response(status_code=303, headers=headers if cookie is None else {**headers, "Set-Cookie": cookie})


def _leave(guard: Guard, asked: Asked) -> None:
    name = cookie_of(asked.headers.get(b"cookie", b""))
    if name is not None:
        guard.visits.end(name)
