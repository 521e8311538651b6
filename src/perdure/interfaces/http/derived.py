"""Routes made of the operations that handles declare: their parameters, permission, words and answer are the operation's.

    Route("GET /todos", "listTodos", "todos.list", page=listed("id"))

A route adds what is HTTP's own: path and status, what is told beside, pages, links and examples.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from fastapi import APIRouter, Path, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from perdure.app import Engine
from perdure.domain.access import Permission
from perdure.domain.errors import PerdureError
from perdure.domain.values import KW_ONLY, dataclass, field, replace
from perdure.handles.memory import Memory
from perdure.handles.operation import Arg, OperationSpec, Parameter, describe
from perdure.interfaces.errors import HTTP_STATUSES
from perdure.interfaces.http.answers import answer, held_in, page_behind, page_of
from perdure.interfaces.http.description import described, many
from perdure.interfaces.http.fields import body_of, in_path, in_query, is_told, json_type, named
from perdure.interfaces.http.idempotency import OnceRoute
from perdure.interfaces.http.requests import OF_USER, Paged, PageRequest, StrictRoute, Whole, repeated
from perdure.interfaces.http.shortcut import ShortRoute, short_route

USER = "/v1/users/{user:id}"
ANSWER = ""
"""In what a route tells: what the call answers. Other words are names of its parameters."""
IN_PATH = re.compile(r"\{(\w+)\}")
PYTHON = re.compile(r"`([A-Z]\w+)`|`(\w+)=True`|\bNone\b")
ONCE = "Your own id of the request: repeated with it, the request is carried out once."


@dataclass(frozen=True, slots=True)
class Place:
    """A handle that paths name themselves: its class, how it is reached from a memory, and the arguments for that."""

    kind: type
    reach: Callable[[Any, dict[str, Any]], Any]
    """It takes the arguments that are its own."""
    named: Mapping[str, Arg] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paging:
    """How a list is told page by page: all of it is listed, up to the end of the page, or what comes behind a place."""

    name: Callable[[Any], object]
    """What a cursor remembers of an item."""
    parameter: str = ""
    """By which the call takes a place to go on behind."""
    read: Callable[[str], Any] = str
    """The place that a cursor names."""
    both_ways: bool = False

    def arguments(self, page: PageRequest, _given: Mapping[str, Any]) -> dict[str, Any]:
        """What the call is given for a page."""
        if not self.parameter:
            return {"limit": page.rows}
        place = {} if page.cursor is None else {self.parameter: self.read(page.cursor)}
        return {"limit": page.rows_behind, **place}

    def response(self, found: Sequence[Any], page: PageRequest, _given: Mapping[str, Any]) -> Response:
        """The page."""
        return (page_behind if self.parameter else page_of)(found, page, self.name)


def listed(*names: str) -> Paging:
    """A list whose items differ in these attributes; without any, in themselves."""
    return Paging(attrgetter(*names) if names else lambda item: item)


def behind(parameter: str, kind: type[str] | type[int], name: str) -> Paging:
    """A list that goes on behind the id or the number of an item."""
    return Paging(attrgetter(name), parameter, lambda text: held_in(text, kind))


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made, for what a route tells of it."""

    request: Request
    held: Any
    """The memory, or the engine."""
    given: Mapping[str, Any]
    value: Any


@dataclass(frozen=True)
class Route:
    """An operation over HTTP."""

    where: str
    """Method and path; what stands in braces is a parameter of the call."""
    id: str
    call: str
    """The method by its namespaces, as in `todos.list`. Of several, as in `todos.skip|reopen`, the path names an `{action}`."""
    _: KW_ONLY
    on: type | Place = Memory
    """Where the namespaces begin."""
    summary: str = ""
    """In place of the words of the id."""
    doc: str = ""
    """In place of the operation's own words."""
    page: Paging | None = None
    tells: Mapping[str, str | bool] = field(default_factory=dict)
    """The fields of the answer, if the call answers no object: each a parameter, `ANSWER`, or what is always so."""
    respond: Callable[[Made], Response] | None = None
    status: int = 200
    also: int | None = None
    errors: tuple[int, ...] | None = None
    """Besides those that every route may tell; 404 if the path names something."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Where the answer leads, and from where a parameter is known there: `{"getTask": "task=/id"}`."""
    headers: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Parameters that the path or the query calls otherwise, by the name they have there."""
    only: tuple[str, ...] | None = None
    """The parameters that are taken; all of them, if None."""
    types: Mapping[str, Any] = field(default_factory=dict)
    """Where Python takes several forms, the one that JSON has."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the request does not have: always the same, or made by a dependency."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the body for reaching the handle."""
    key: str = ""
    """The parameter that takes `Idempotency-Key`; the id of a thing may stand in the body instead."""
    permission: Permission | None = None
    once: bool | None = None
    """Whether `Idempotency-Key` is looked after here; by default for what changes something and has no `key`."""
    or_else: Any = None
    """What it may answer in place of what the annotation says, if a parameter asks for it."""

    @cached_property
    def place(self) -> Place:
        """The handle that is called."""
        if isinstance(self.on, Place):
            return self.on
        kind: Any = self.on
        spaces = self.call.split(".")[:-1]
        for one in spaces:
            kind = get_type_hints(getattr(kind, one).fget)["return"]
        return Place(kind, (lambda held, _: attrgetter(".".join(spaces))(held)) if spaces else (lambda held, _: held))

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """The methods that it may make."""
        return tuple(self.call.rpartition(".")[2].split("|"))

    @cached_property
    def operation(self) -> OperationSpec:
        """As it is declared; of several, the first."""
        return describe(self.place.kind, self.calls[0])

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Those of the call, as JSON has them."""
        found = {one.name: one for one in self.operation.parameters}
        return found | {name: replace(found[name], type=kind, item=None) for name, kind in self.types.items()}

    @property
    def words(self) -> str:
        """What it does."""
        said = {name: PYTHON.sub(_in_http, describe(self.place.kind, name).doc) for name in self.calls}
        if self.doc or len(said) == 1:
            return self.doc or said[self.calls[0]]
        return "\n".join(f"- `{name}`: {text}" for name, text in said.items())

    @property
    def whole(self) -> bool:
        """Whether it concerns the whole store."""
        return self.on is Engine


def _in_http(found: re.Match[str]) -> str:
    """What Python's words are over HTTP: errors are statuses, and a yes is the name of what is on."""
    error, flag = found.groups()
    if error is None:
        return "null" if flag is None else f"`{flag}`"
    return next((str(HTTP_STATUSES[one.code]) for one in PerdureError.__subclasses__() if one.__name__ == error), found[0])


ROUTES: dict[str, Route] = {}
"""Every route that was made, by its id."""
SHORT_ROUTES: dict[str, ShortRoute] = {}
"""Those that take the short way when a request is plain, by what comes behind the user in a path."""


def table(tag: str, *routes: Route) -> APIRouter:
    """A router with these routes, in this order."""
    made = APIRouter(tags=[tag])
    for one in routes:
        _add(made, one)
    return made


def _add(to: APIRouter, route: Route) -> None:
    ROUTES[route.id] = route
    method, _, path = route.where.partition(" ")
    changes = method != "GET" and route.operation.action != "read" and not route.key
    errors = route.errors if route.errors is not None else (404,) if "{" in path else ()
    endpoint = _endpoint(route)
    endpoint.__signature__ = inspect.Signature(list(_signature(route, method, path)))  # type: ignore[attr-defined]
    to.add_api_route(
        ("/v1" if route.whole else USER) + IN_PATH.sub(lambda found: _segment(route, found[1]), path),
        endpoint,
        methods=[method],
        summary=route.summary or re.sub("[A-Z]", lambda found: f" {found[0].lower()}", route.id).capitalize(),
        description=route.words,
        route_class_override=OnceRoute if (changes if route.once is None else route.once) else StrictRoute,
        **described(
            route.id,
            _shape(route),
            status=route.status,
            also=route.also,
            errors=errors,
            links=route.links,
            headers=route.headers,
        ),
    )
    elsewhere = any(_is_dependency(value) for value in route.given.values())
    if method == "POST" and "{" not in path and not (route.whole or route.page or elsewhere):
        short = short_route(to.routes[-1], route.permission or route.operation.permission)
        SHORT_ROUTES.update({} if short is None else {path[1:]: short})


def _segment(route: Route, name: str) -> str:
    """A part of a path. Ids may hold any character; an action is one of those there are."""
    if name == "action":
        one_of = type("Action", (StringConvertor,), {"regex": "|".join(route.calls)})
        register_url_convertor(route.id, one_of())
        return f"{{action:{route.id}}}"
    known = route.parameters.get(route.renamed.get(name, name))
    return f"{{{name}:id}}" if name in route.place.named or (known is not None and known.type is str) else f"{{{name}}}"


def _shape(route: Route) -> object:
    """What is answered, by the annotation of the call."""
    returns = route.operation.returns
    if route.or_else is not None:
        [one] = get_args(returns) or (returns,)
        return one | route.or_else if route.page is None else many(one | route.or_else)
    if route.tells:
        kinds: dict[str | bool, Any] = {name: one.type for name, one in route.parameters.items()}
        kinds |= {ANSWER: returns, True: bool}
        return {name: kinds.get(of, str) for name, of in route.tells.items()}
    origin, args = get_origin(returns), get_args(returns)
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return {"items": list[args[0]]} if route.page is None else many(args[0], both_ways=route.page.both_ways)  # type: ignore[valid-type]
    return returns


def _endpoint(route: Route) -> Callable[..., Response]:
    """The function behind a route."""
    page, fixed = route.page, {name: value for name, value in route.given.items() if not _is_dependency(value)}
    needed = route.permission or route.operation.permission

    # Names with a line below them are no parameters of a call.
    def endpoint(*, request_: Request, held_: Any, **given: Any) -> Response:
        held = held_.whole(needed) if route.whole else held_
        wanted, body, key = (given.pop(name, None) for name in ("page_", "body_", "key_"))
        method = given.pop("action", route.calls[0])
        asked = {route.renamed.get(name, name): value for name, value in given.items()} | fixed
        if body is not None:
            asked |= body.stands_for()
        if key is not None and asked.get(route.key) is None:
            asked[route.key] = key
        arguments = dict(asked)
        if page is not None:
            placed = page.arguments(wanted, asked)
            arguments |= {name: value for name, value in placed.items() if name in route.parameters}
        found = getattr(route.place.reach(held, arguments), method)(**arguments)
        if page is not None:
            return page.response(found, wanted, asked)
        made = Made(request_, held, asked, found)
        return answer(_answer_of(route, made), route.status) if route.respond is None else route.respond(made)

    endpoint.__name__ = route.id
    return endpoint


def _answer_of(route: Route, made: Made) -> object:
    if route.tells:
        said: dict[Any, Any] = {**made.given, ANSWER: made.value, True: True}
        return {name: said[of] for name, of in route.tells.items()}
    return {"items": made.value} if isinstance(made.value, list | tuple) else made.value


def _is_dependency(value: object) -> bool:
    return get_origin(value) is Annotated


def _signature(route: Route, method: str, path: str) -> Iterator[inspect.Parameter]:
    """What the framework reads from the request."""
    yield named("request_", Request)
    yield named("held_", Whole if route.whole else OF_USER[route.permission or route.operation.permission])
    rest = dict(route.parameters)
    for name in IN_PATH.findall(path):
        if name == "action":
            does = Path(description=f"What to do: {', '.join(route.calls)}.")
            yield named(name, Annotated[Literal[route.calls], does])
        elif name in route.place.named:
            yield in_path(name, str, route.place.named[name])
        else:
            one = rest.pop(route.renamed.get(name, name))
            yield in_path(name, json_type(one.type), one.arg)
    for name, value in route.given.items():
        if _is_dependency(value):
            yield named(name, value)
    if route.page is not None:
        yield named("page_", Paged)
    if route.key:
        yield named("key_", repeated(ONCE), None)
    taken = {*route.given, *({route.key} - {"id"}), *(() if route.page is None else ("limit", route.page.parameter))}
    left = [one for name, one in rest.items() if name not in taken and (route.only is None or name in route.only)]
    if unsaid := [one.name for one in left if one.required and not is_told(one)]:
        raise TypeError(f"{route.id} cannot be asked for {unsaid[0]!r}, which JSON does not have")
    left = [one for one in left if is_told(one)]
    if method in ("GET", "DELETE"):
        outside = {inner: outer for outer, inner in route.renamed.items()}
        yield from (in_query(replace(one, name=outside.get(one.name, one.name))) for one in left)
    elif left or route.more:
        yield named("body_", body_of(f"{route.id[0].upper()}{route.id[1:]}Body", left, route.more, route.examples))
