"""Signing in on the page: a token or an API key is shown once, and a cookie stands for it from then on."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from perdure.interfaces.serving.guard import Guard
from perdure.interfaces.serving.keyring import cookie_of, set_cookie
from perdure.interfaces.serving.request import GuardRefusal, IncomingRequest, form_of

NEXT_CHARS_MAX = 2_000
LoginPage = Callable[..., Response]
"""`login_page(request, *, error, next, csrf)`."""


def router(guard: Guard, login_page: LoginPage) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/login")
    async def show(request: Request) -> Response:
        there = _inside(request.query_params.get("next", "/"))
        given = request.query_params.get("token")
        if given is not None:
            # The link that `perdure serve` prints. Only the machine's own token: nobody can make a link that signs others in.
            return await entering(request, given, there, token_only=True)
        if request.state.access.permissions:
            return _to(there)  # anyone who is here already need not sign in
        return login_page(request, error=None, next=there, csrf=request.state.csrf)

    @routes.post("/login")
    async def sign_in(request: Request) -> Response:
        fields = form_of(await request.body())
        return await entering(request, fields.get("key", ""), _inside(fields.get("next", "/")))

    async def entering(request: Request, secret: str, there: str, *, token_only: bool = False) -> Response:
        """To the page that was wanted, with a cookie and without the secret in the address; or the form again."""
        asked = IncomingRequest.of(request.scope)
        try:
            access = await guard.admit_secret(secret.strip(), asked, token_only=token_only)
        except GuardRefusal as refused:
            guard.metrics.refused(refused.reason)
            answer = login_page(request, error=refused.detail, next=there, csrf=request.state.csrf)
            answer.status_code = refused.status
            answer.headers.update({name: value for name, value in refused.headers.items() if name == "Retry-After"})
            return answer
        _leave(guard, asked)
        return _to(there, set_cookie(guard.visits.begin(access.name), secure=asked.secure))

    @routes.post("/logout")
    async def sign_out(request: Request) -> Response:
        asked = IncomingRequest.of(request.scope)
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


def _leave(guard: Guard, asked: IncomingRequest) -> None:
    name = cookie_of(asked.headers.get(b"cookie", b""))
    if name is not None:
        guard.visits.end(name)
