"""How a page is made: the templates, what every one of them may use, and the answers that a handler gives.

Text from memory is data. It is escaped wherever it is shown, and what no eye sees is made visible, without a template having
to ask for it: the environment does both to every value.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from perdure.domain.access import Permission
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.journal import Operation
from perdure.domain.scope import DEFAULT, Address
from perdure.domain.text.rules import brief
from perdure.handles.memory import Memory
from perdure.interfaces import paths as paths  # registers the convertor `id`
from perdure.interfaces.access import CallerAccess, Door
from perdure.interfaces.visible import visible
from perdure.interfaces.web import filters


class Section(NamedTuple):
    path: str
    """Behind `/u/{user}`; empty: the first page."""
    title: str
    key: str
    """`g` and this key go there."""
    icon: str


NAVIGATION: tuple[tuple[str, tuple[Section, ...]], ...] = (
    (
        "",
        (
            Section("", "Home", "h", "home"),
            Section("chat", "Chat", "a", "chat"),
            Section("search", "Search", "f", "search"),
        ),
    ),
    (
        "Knowledge",
        (
            Section("memories", "Memories", "m", "memory"),
            Section("entities", "Entities", "e", "entity"),
            Section("todos", "Todos", "t", "todo"),
            Section("lessons", "Lessons", "l", "lesson"),
        ),
    ),
    (
        "Conversations & data",
        (
            Section("conversations", "Conversations", "c", "conversation"),
            Section("series", "Series", "s", "series"),
            Section("state", "State", "k", "state"),
        ),
    ),
    (
        "Activity",
        (
            Section("context", "Context", "x", "context"),
            Section("journal", "Journal", "j", "journal"),
            Section("jobs", "Jobs", "b", "jobs"),
            Section("data", "Data", "d", "archive"),
            Section("status", "Status", "u", "check"),
        ),
    ),
)


PART_OF = {"timeline": "memories", "entities/graph": "memories"}
"""Pages that belong to another part of the navigation than their address says."""
STATIC = Path(__file__).parent / "static"


@cache
def asset_path(name: str) -> str:
    """Where an asset is. Another content has another address, so that a browser may keep what it has."""
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


TEMPLATES = Path(__file__).parent / "templates"
SHARED_TEMPLATES = ("base.html", "parts.html")
NOTICE = "perdure_notice"
"""The cookie that carries what an action has to say over to the page that is shown next."""
IN_LOCATION = "/?&=%#:;,+@!$'()*~-._"
"""What stands for itself in a header that says where to go; anything else is encoded."""
NOTICE_CHARS_MAX = 600
NOTICE_S = 60
OPERATIONS_LOOKED_AT = 20
SESSIONS_LOOKED_AT = 100
"""So many of the last sessions tell where a user talks."""


@cache
def environment() -> Environment:
    """The one environment. Every value is escaped; a name that nobody gave is an error."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible_value,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols"],
    )
    made.filters.update(filters.FILTERS)
    made.globals.update(asset=asset_path, navigation=NAVIGATION)
    return made


def template_names() -> Sequence[str]:
    """All templates, those that every page needs first."""
    return sorted(environment().list_templates(), key=lambda name: name not in SHARED_TEMPLATES)


def compile_template(name: str) -> None:
    """Compile a template, so that no request has to; the environment keeps it."""
    environment().get_template(name)


def _visible_value(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


# -- answers


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """A whole page. Templates find `request`, `user`, `here` (links), `csrf`, `may` (permissions), `zone` and `notice`."""
    notice = _notice(request)
    text = rendered(request, template, notice=notice, **values)
    headers = {"Cache-Control": "no-store", "Vary": "HX-Request"}
    response = Response(text.encode(errors="replace"), status, headers, "text/html; charset=utf-8")
    if notice is not None:
        response.delete_cookie(NOTICE, httponly=True, samesite="strict")
    return response


def rendered(request: Request, template: str, **values: Any) -> str:
    """A template as text: a page, or a piece of one."""
    shared: dict[str, Any] = {
        "request": request,
        "user": request.path_params.get("user"),
        "here": PageLinks(request),
        "csrf": getattr(request.state, "csrf", ""),
        "may": _permissions(request),
        "zone": zone_of(request),
        "notice": None,
        "scripted": request.headers.get("hx-request") == "true",
    }
    return environment().get_template(template).render({**shared, **values})


def redirect_with_notice(request: Request, to: str, text: str, *, undo: Operation | None = None, bad: bool = False) -> Response:
    """The answer to an action: go to `to`, where `text` is shown once, with a button that takes the action back."""
    body = {"text": text[:NOTICE_CHARS_MAX], "undo": None if undo is None else undo.seq, "bad": bad}
    response = Response(status_code=303, headers={"Location": quote(to, safe=IN_LOCATION), "Cache-Control": "no-store"})
    value = urlsafe_b64encode(json.dumps(body).encode()).decode()
    secure = request.url.scheme == "https"
    response.set_cookie(NOTICE, value, max_age=NOTICE_S, httponly=True, samesite="strict", secure=secure)
    return response


def acted(request: Request, handle: Any, key: str, action: str, told: Mapping[str, str]) -> tuple[Any, str]:
    """Do to the thing with this key what the address names: what the call answers, and what to say of it."""
    if action not in told:
        noun = request.scope["path"].split("/")[3]
        raise InvalidInput(f"{brief(action)} is nothing that can be done with {noun}; use one of {', '.join(told)}")
    return getattr(handle, action)(key), told[action]


def _notice(request: Request) -> Mapping[str, Any] | None:
    try:
        told = json.loads(urlsafe_b64decode(request.cookies[NOTICE].encode()))
        undo = told.get("undo")
        whole = undo if isinstance(undo, int) and not isinstance(undo, bool) else None
        return {"text": str(told["text"])[:NOTICE_CHARS_MAX], "undo": whole, "bad": told.get("bad") is True}
    except (KeyError, ValueError, AttributeError, TypeError, RecursionError):
        return None


def undoable(memory: Memory, kind: str, key: str) -> Operation | None:
    """The newest change of a row by a person, by which `undo` takes back what was just done."""
    newest = memory.journal.list(OPERATIONS_LOOKED_AT)
    return next((one for one in newest if one.kind == kind and one.key == key and one.actor == "user"), None)


# -- whose pages


def door(request: Request) -> Door:
    """The engine as this caller sees it."""
    return Door(request.app.state.engine, request.state.access, "web")


def memory_of(request: Request, need: Permission = "read") -> Memory:
    """The handle of the user in the path, and of the agent and channel that the page looks at."""
    at = place_of(request)
    return door(request).memory(request.path_params["user"], need, agent=at.agent, channel=at.channel)


def places_of(request: Request) -> tuple[Address, ...]:
    """Where this user talked, the last active place first."""
    if not hasattr(request.state, "places"):
        memory = door(request).memory(request.path_params["user"], "read")
        sessions = memory.conversation.list_sessions(limit=SESSIONS_LOOKED_AT)
        request.state.places = tuple(dict.fromkeys(one.session.address for one in sessions))
    held: tuple[Address, ...] = request.state.places
    return held


def place_of(request: Request) -> Address:
    """What the page looks at: the agent and channel that its address names, or else where the user talks."""
    asked = request.query_params
    if getattr(request.state, "failed", False):
        return Address()  # what the address names may be what is wrong
    if asked.get("agent") or asked.get("channel"):
        return Address(asked.get("agent") or DEFAULT, asked.get("channel") or DEFAULT)
    places = places_of(request)
    return Address() if not places or Address() in places else places[0]


def zone_of(request: Request) -> ZoneInfo:
    """The time zone of the users, in which times are shown."""
    return ZoneInfo(request.app.state.engine.zone)


def _permissions(request: Request) -> frozenset[Permission]:
    """What the caller may do; nothing, on pages for those who are not known yet."""
    access: CallerAccess | None = getattr(request.state, "access", None)
    return frozenset() if access is None else access.permissions


def own_page(request: Request, back: str) -> str:
    """Where to go back to, if that is a page of this user; else to the first one."""
    first = address(request.path_params["user"])
    # It goes into a header, where a line break would begin another one.
    if not back.isascii() or not back.isprintable():
        return first
    return back if back == first or back.startswith((f"{first}/", f"{first}?")) else first


class PageLinks:
    """The links of a page: they stay with the user, and with the agent and channel that are looked at."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @cached_property
    def place(self) -> Address:
        """The agent and channel that are looked at."""
        return place_of(self._request)

    @cached_property
    def places(self) -> tuple[Address, ...]:
        """All there are, the last active first."""
        return places_of(self._request)

    @cached_property
    def kept(self) -> Mapping[str, str]:
        """What a form that asks (GET) must carry along in hidden fields."""
        at = self.place
        return {} if at == Address() else {"agent": at.agent, "channel": at.channel}

    def __call__(self, *parts: object, **query: object) -> str:
        """`here("memories", key, tab="history")`: a page of this user. A value of None or "" is left out."""
        return address(self._request.path_params["user"], *parts, **{**self.kept, **query})

    def again(self, **changed: object) -> str:
        """This page, with some of its questions asked otherwise."""
        told = _query_text({**dict(self._request.query_params), **changed})
        return f"{self._request.url.path}{'?' + told if told else ''}"

    def narrowed(self, name: str, value: str | None) -> str:
        """This page from its beginning, with one more question asked, or asked no longer."""
        return self.again(**{name: value, "behind": None})

    def query(self, name: str, default: str = "") -> str:
        """A question of this page's address."""
        return self._request.query_params.get(name, default)

    def at(self, section: str) -> bool:
        """Whether this page belongs to that part of the navigation."""
        user = self._request.path_params.get("user")
        path = self._request.scope.get("path", "")
        pieces = path.split("/")[3:]  # "", "u", the user
        part = pieces[0] if pieces else ""
        return user is not None and PART_OF.get("/".join(pieces), PART_OF.get(part, part)) == section


def address(user: str, *parts: object, **query: object) -> str:
    """The address of a page of a user."""
    path = "/".join(["/u", *(quote(str(part), safe="", errors="replace") for part in (user, *parts) if part != "")])
    told = _query_text(query)
    return f"{path}{'?' + told if told else ''}"


def _query_text(query: Mapping[str, object]) -> str:
    return urlencode({name: str(value) for name, value in query.items() if value not in (None, "", False)}, errors="replace")
