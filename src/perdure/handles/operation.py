"""An operation is declared once, on the method of a handle: its parameters with their words and bounds, and what it is for.

    @operation("read", span=SEARCH)
    def recall(self, query: Query, *, limit: Annotated[int, Arg("Hits at most.", ge=1, le=100)] = 10) -> Recall: ...

Tracing and the access log stand around the method; the faces read `describe(method)` and add only what is their own.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from perdure.domain.access import Action, Permission
from perdure.domain.scope import Address, Scope, shared_owner
from perdure.domain.values import dataclass, is_dataclass, replace
from perdure.services.access.log import TRACE, AccessLog, in_span
from perdure.services.access.mentions import Mention
from perdure.services.jobs.catch_up import CatchUp, reading

P = ParamSpec("P")
T = TypeVar("T")
H = TypeVar("H", bound="Handle")
MISSING: Any = inspect.Parameter.empty
"""The default of a parameter that has none."""


WITHIN = {"tasks": "todos.tasks", "transcripts": "conversation.transcripts", "documents": "conversation.documents"}
"""Namespaces that are reached through another one."""


class Unset(Enum):
    """The default of a parameter for which `None` says something: what is left out stays as it is."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return self.name


UNSET = Unset.UNSET


def stated(**given: object) -> dict[str, object]:
    """What was given, without what was left out."""
    return {name: value for name, value in given.items() if value is not UNSET}


@dataclass(frozen=True, slots=True)
class Arg:
    """What every face says of a parameter, and the bounds that a schema can state. Stands in `Annotated`."""

    text: str
    gt: float | None = None
    ge: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    """Characters of a text, or items of a list."""
    pattern: str | None = None
    """Of a text, or of each text of a list; as JSON Schema means it."""
    example: object = None
    choices: tuple[str, ...] = ()
    """Where the type does not name them."""


@dataclass(frozen=True, slots=True)
class OperationSpec:
    """What an operation is, no matter who asks for it."""

    name: str
    """As the access log has it: `recall`, `memories.pin`."""
    action: Action
    permission: Permission
    parameters: tuple[Parameter, ...]
    returns: Any
    """The annotation of its answer."""
    doc: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as the faces read it."""

    name: str
    type: Any
    """Its annotation without `Annotated`, without `None`, and without values that only Python can make."""
    optional: bool
    """Whether `None` may be given."""
    default: Any
    """`MISSING` if it has to be given; `UNSET` if leaving it out says something else than `None` does."""
    arg: Arg
    keyword: bool
    """Whether it is given by name only."""
    item: Any = None
    """The type of its items if it is a list; else None."""
    item_arg: Arg = Arg("")
    """The words and bounds of each item."""

    @property
    def required(self) -> bool:
        """Whether it has to be given."""
        return self.default is MISSING

    @property
    def choices(self) -> tuple[str, ...]:
        """The words of a choice, of the parameter or of each of its items; none if it is no choice."""
        kind = self.item or self.type
        return get_args(kind) if get_origin(kind) is Literal else self.arg.choices


class Handle:
    """What a caller holds: bound to one scope, and to the log that its calls are in."""

    _namespace = ""
    __slots__ = ("_catch_up", "_log", "_noted", "scope")

    def __init_subclass__(cls, *, namespace: str = "") -> None:
        """`namespace` stands before the names of its operations, as in `memories.pin`."""
        super().__init_subclass__()
        cls._namespace = namespace

    def __init__(self, scope: Scope, log: AccessLog | None = None) -> None:
        self.scope = scope
        self._catch_up: CatchUp | None = None
        self._log = log
        self._noted: list[object] | None = None

    def _unlogged(self: H) -> H:
        """The same handle for the inside of a call: what the call itself asks for is not logged again."""
        twin = copy.copy(self)
        twin._log = None
        twin._noted = []
        return twin

    def _itself(self) -> Iterable[object]:
        """What every call of this handle touches."""
        return ()

    def _note(self, *touched: object) -> None:
        """Have the log of this call name what it touched, where its answer does not say so."""
        if self._noted is not None:
            self._noted.extend(touched)


def space_scope(space: str, address: Address | None = None) -> Scope:
    """Where a call is logged that concerns no single user."""
    return Scope(shared_owner(space), Address() if address is None else address)


About = Callable[[Any, Mapping[str, Any], Any], Iterable[object]]
"""From the handle, the arguments by name, and the answer: what the call touched besides what the answer says."""


class PendingList(list[T]):
    """A list, and how much was still to be learned when it was made."""

    def __init__(self, items: Iterable[T], pending: int) -> None:
        super().__init__(items)
        self.pending = pending
        """Jobs that have still to learn from what was written; 0: the list has all of it."""


def names(kind: str, argument: str) -> About:
    """The record that an argument names, which is there if the call succeeds, and which the answer does not name."""

    def about(_handle: Any, given: Mapping[str, Any], answer: Any) -> Iterable[object]:
        if answer is False:  # there was none
            return ()
        value = given.get(argument)
        return (Mention(kind, str(value)),) if isinstance(value, str | int) else (value,)

    return about


def operation(
    action: Action,
    *,
    name: str | None = None,
    permission: Permission | None = None,
    about: About | None = None,
    first: bool = False,
    logged_at: Callable[[Scope, Mapping[str, Any]], Scope] | None = None,
    span: str | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Declare a method of a handle an operation: traced in a `span`, in the access log, and known to the faces.

    `permission` is what a key must permit; by default `read` for what reads, `admin` for upkeep, `write` for the rest. With
    `first` the call is in the log before it begins: it gives data elsewhere than in its answer, or replaces all there is.
    `logged_at` names another scope whose log it is in.
    """
    needed: Permission = permission or ("read" if action == "read" else "admin" if action == "admin" else "write")

    def wrap(method: Callable[P, T]) -> Callable[P, T]:
        plain: Any = method

        @functools.wraps(method)
        def run(*args: P.args, **named: P.kwargs) -> T:
            handle: Any = args[0]
            log: AccessLog | None = handle._log
            traced = span is not None and TRACE in sys.modules
            if log is None and not traced:
                return method(*args, **named)
            inner = handle._unlogged()
            work: Callable[[], T] = functools.partial(plain, inner, *args[1:], **named)
            if span is not None and traced:
                work = functools.partial(in_span, span, handle.scope, work)
            if log is None:
                return work()

            def touched(answer: Any) -> Sequence[object]:
                given = inspect.signature(plain).bind(inner, *args[1:], **named).arguments
                return (*inner._itself(), *(() if about is None else about(inner, given, answer)), *inner._noted)

            place = handle.scope if logged_at is None else logged_at(handle.scope, named)
            return log.around(place, operation_name(type(handle), run), action, work, touched, first=first)

        run.__dict__["_operation"] = Declared(action, needed, name, first=first or action == "erase")
        return run

    return wrap


def _with_pending(answer: Any, pending: int) -> Any:
    if type(answer) is list:
        return PendingList(answer, pending)
    return replace(answer, pending=pending) if pending and hasattr(answer, "pending") else answer


def fresh_as(other: Handle, handle: H) -> H:
    """The handle, whose calls that read first do what those of the other one do."""
    return fresh_by(other._catch_up, handle)


def fresh_by(catch_up: CatchUp | None, handle: H) -> H:
    """The handle, whose calls that read first have `catch_up` do what is due."""
    handle._catch_up = catch_up
    return handle


def fresh(*, indexed: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Have the method of an operation see what was written: what is due for its user is done first, as far as the time goes.
    Stands below `@operation`; `indexed`: the search index is brought up to date, too.
    """

    def wrap(method: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(method)
        def run(*args: P.args, **named: P.kwargs) -> T:
            handle: Any = args[0]
            if handle._catch_up is None:
                return method(*args, **named)
            with reading(handle.scope.owner, handle._catch_up, indexed=indexed) as call:
                answer = method(*args, **named)
            return cast(T, _with_pending(answer, call.pending))

        return run

    return wrap


@dataclass(frozen=True, slots=True)
class Declared:
    """What `@operation` says of a method."""

    action: Action
    permission: Permission
    name: str | None
    first: bool
    """Whether it is in the log before it begins."""


def unlogged(reason: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Declare a public call that is not in the access log, and say why. The faces do not offer it."""

    def mark(method: Callable[P, T]) -> Callable[P, T]:
        method.__dict__["_unlogged"] = reason
        return method

    return mark


def operation_name(kind: type[Handle], method: Callable[..., Any]) -> str:
    """An operation as the access log names it: its namespace and its own name."""
    own = declared(method).name or method.__name__.rstrip("_")
    return f"{kind._namespace}.{own}" if kind._namespace else own


def declared(method: Callable[..., Any]) -> Declared:
    """What `@operation` says of a method of a handle."""
    found: Declared = method.__dict__["_operation"]
    return found


def is_operation(member: object) -> bool:
    """Whether a member of a handle's class is one."""
    return callable(member) and "_operation" in getattr(member, "__dict__", {})


@cache
def describe(kind: type, name: str) -> OperationSpec:
    """The operation `name` of a handle's class, as it is declared."""
    method = inspect.getattr_static(kind, name)
    said = declared(method)
    plain = inspect.unwrap(method)
    hints = get_type_hints(plain, include_extras=True)
    return OperationSpec(
        name=operation_name(kind, method),
        action=said.action,
        permission=said.permission,
        parameters=_parameters_of(plain, hints),
        returns=hints.get("return"),
        doc=inspect.getdoc(plain) or "",
    )


def parameters(method: Callable[..., Any]) -> tuple[Parameter, ...]:
    """What a method of a handle takes, be it an operation or not."""
    plain = inspect.unwrap(method)
    return _parameters_of(plain, get_type_hints(plain, include_extras=True))


def _parameters_of(plain: Callable[..., Any], hints: Mapping[str, Any]) -> tuple[Parameter, ...]:
    return tuple(
        _parameter(one, hints[one.name])
        for one in inspect.signature(plain).parameters.values()
        if one.name != "self" and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    )


def reached(memory: Handle, spec: OperationSpec) -> Any:
    """The handle that an operation is a call of, from the memory on."""
    space, _, _ = spec.name.rpartition(".")
    return functools.reduce(getattr, filter(None, WITHIN.get(space, space).split(".")), memory)


def operations(kind: type) -> Mapping[str, OperationSpec]:
    """Every operation of a handle's class, by the name of its method."""
    return {name: describe(kind, name) for name in dir(kind) if is_operation(inspect.getattr_static(kind, name))}


def _parameter(given: inspect.Parameter, hint: Any) -> Parameter:
    kind, arg, optional = _stripped(hint)
    item, item_arg = None, Arg("")
    if inspect.isclass(origin := get_origin(kind)) and issubclass(origin, Iterable) and not issubclass(origin, Mapping | tuple):
        item, item_arg, _ = _stripped(get_args(kind)[0])
    return Parameter(
        name=given.name,
        type=kind,
        optional=optional,
        default=given.default,
        arg=arg,
        keyword=given.kind is given.KEYWORD_ONLY,
        item=item,
        item_arg=item_arg,
    )


def _stripped(hint: Any) -> tuple[Any, Arg, bool]:
    """A type as the faces read it, what is said of it, and whether it may be `None`."""
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        kind, arg, optional = _stripped(inner)
        return kind, next((one for one in extras if isinstance(one, Arg)), arg), optional
    if get_origin(hint) not in (Union, UnionType):
        return hint, Arg(""), False
    kinds = [one for one in get_args(hint) if one not in (NoneType, Unset)]
    kinds = [one for one in kinds if not is_dataclass(one)] or kinds
    optional = NoneType in get_args(hint)
    if len(kinds) > 1:
        return Union[tuple(kinds)], Arg(""), optional  # noqa: UP007 - made of a list
    kind, arg, _ = _stripped(kinds[0])
    return kind, arg, optional
