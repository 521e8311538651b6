"""Parameters as the framework reads them: the types, bounds and words of an operation as fields of a body, a path, a query."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from perdure.domain.errors import InvalidInput
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span
from perdure.handles.operation import UNSET, Arg, OperationSpec, Parameter
from perdure.handles.registry.shapes import MORE

LIMIT_MAX = 1_000
"""Rows that one request may ask for."""
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)?")


class Body(BaseModel):
    """What a request carries. What is not described is refused, and so is a number that JSON cannot carry back."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _count(cls, given: object) -> object:
        """To JSON, 2.0 is a whole number; to Python it is none."""
        if isinstance(given, dict):
            whole = {name: int(value) for name, value in given.items() if _is_whole(value) and name in _counts(cls)}
            return {**given, **whole} if whole else given
        return given

    def stands_for(self) -> Any:
        """What it stands for: the arguments that were given."""
        return {name: _value(getattr(self, name)) for name in self.model_fields_set}


def _is_whole(value: object) -> bool:
    return type(value) is float and value.is_integer()


@cache
def _counts(model: type[BaseModel]) -> frozenset[str]:
    """The fields of a body that are whole numbers."""
    return frozenset(name for name, field in model.model_fields.items() if field.annotation in (int, int | None))


def _value(given: Any) -> Any:
    if isinstance(given, Body):
        return given.stands_for()
    return [_value(one) for one in given] if isinstance(given, list) else given


# -- times


def _instant(given: object) -> object:
    # Only what the description says: a bare number, which would be taken for unix seconds, is a mistake here.
    if isinstance(given, datetime):
        return given
    if not isinstance(given, str) or not _INSTANT.fullmatch(given):
        raise PydanticCustomError("instant", "must be a time with its zone, such as 2026-01-31T09:30:00Z")
    return given


Instant = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_instant)]
"""A time with its zone."""


class TimeWindow(Body):
    """Two moments, which Python takes as a pair."""

    start: Instant = Field(description="From here on.", examples=["2026-01-01T00:00:00Z"])
    end: Instant = Field(description="Up to here, which is not included.", examples=["2026-02-01T00:00:00Z"])

    def stands_for(self) -> Any:
        """As a pair."""
        return self.start, self.end


class SpanOfTime(TimeWindow):
    """The same inside a value that was answered before."""

    def stands_for(self) -> Any:
        """As it is held."""
        if self.start >= self.end:
            raise InvalidInput(f"a window ends at {self.end.isoformat()}, not after its start; swap them")
        return Span(to_us(self.start), to_us(self.end))


# -- the fields of a parameter


def json_type(hint: Any) -> Any:
    """A type in JSON's terms; None for what JSON does not have, such as a stream or a function."""
    if (found := SIMPLE.get(hint) if isinstance(hint, type) else None) is not None:
        return found
    if isinstance(hint, NewType):
        return json_type(hint.__supertype__)
    if inspect.isclass(hint) and issubclass(hint, Body):
        return hint
    if dataclasses.is_dataclass(hint):
        return model_of(hint)  # type: ignore[arg-type]  # it is a class, as all hints are
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:
        return hint
    if origin is Annotated:
        return json_type(args[0])
    if origin in (Union, UnionType):
        kinds = [json_type(one) for one in args]
        return None if None in kinds else Union[tuple(kinds)]  # noqa: UP007 - made of a list
    if origin is tuple and len(args) == 2 and args[1] is not Ellipsis:
        return TimeWindow
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return dict[str, Any]
    if inspect.isclass(origin) and issubclass(origin, Iterable) and (inner := json_type(args[0])) is not None:
        return list[inner]  # type: ignore[valid-type]
    return None


SIMPLE: Mapping[type, Any] = {
    str: str,
    int: int,
    float: float,
    bool: bool,
    NoneType: NoneType,
    object: Any,
    datetime: Instant,
    Span: SpanOfTime,
}
MODELS: dict[type, type[Body]] = {}
"""Bodies that stand for a value."""


def stand_for(kind: type, operation: OperationSpec) -> None:
    """Have values of that kind read as an operation reads its parameters, with their words and bounds."""
    MODELS[kind] = _makes(kind, body_of(kind.__name__, operation.parameters, {}, ()))


def model_of(kind: type) -> type[Body]:
    """A body that stands for a value: one that was answered before, or is made of JSON."""
    if kind not in MODELS:
        hints = get_type_hints(kind)
        told: dict[str, Any] = {}
        for field in dataclasses.fields(kind):
            has_none = field.default is dataclasses.MISSING
            told[field.name] = (json_type(hints[field.name]), Field(... if has_none else field.default))
        # What is answered beside the fields may come back with them; it says nothing new.
        beside: dict[str, Any] = dict.fromkeys(MORE.get(kind, ()), (Any, None))
        MODELS[kind] = _makes(kind, create_model(kind.__name__, __base__=Body, **told, **beside))
    return MODELS[kind]


def _makes(kind: type, model: type[Body]) -> type[Body]:
    names = {field.name for field in dataclasses.fields(kind)}

    def stands_for(self: Body) -> Any:
        return kind(**{name: given for name, given in Body.stands_for(self).items() if name in names})

    return type(f"{kind.__name__}Body", (model,), {"__module__": __name__, "stands_for": stands_for})


def body_of(name: str, parameters: Iterable[Parameter], more: Mapping[str, Any], examples: Iterable[object]) -> type[Body]:
    """A body with these parameters, and with fields that are the route's own."""
    told: dict[str, Any] = {one.name: (_type(one), _said_of(Field, one)) for one in parameters}
    found: list[Any] = list(examples)
    base = type("Body", (Body,), {"model_config": ConfigDict(json_schema_extra={"examples": found}), "__module__": __name__})
    model: type[Body] = create_model(name, __base__=base if found else Body, **told, **more)
    return model


def in_query(parameter: Parameter) -> inspect.Parameter:
    """A parameter that is given in the query."""
    default = inspect.Parameter.empty if parameter.required else parameter.default
    return named(parameter.name, Annotated[_type(parameter), _said_of(Query, parameter)], default)


def in_path(name: str, kind: Any, arg: Arg) -> inspect.Parameter:
    """A parameter that stands in the path, and so is always given."""
    examples = None if arg.example is None else [arg.example]
    text = re.sub("; [^;]*, if left out", "", arg.text)
    return named(name, Annotated[kind, Path(description=text, examples=examples, **_bounds(arg))])


def named(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """A parameter of a route's function."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def is_told(parameter: Parameter) -> bool:
    """Whether JSON has something for it."""
    return json_type(parameter.item or parameter.type) is not None


def _type(parameter: Parameter) -> Any:
    if parameter.choices and parameter.item is None:
        kind: Any = Literal[parameter.choices]
    elif parameter.item is not None:
        item: Any = json_type(parameter.item)
        bounds = {**_bounds(parameter.item_arg), **({"pattern": parameter.arg.pattern} if parameter.arg.pattern else {})}
        kind = list[Annotated[item, Field(**bounds)]]
    else:
        kind = json_type(parameter.type)
    return kind | None if parameter.optional and kind is not Any else kind


def _said_of(make: Callable[..., Any], parameter: Parameter) -> Any:
    """Its words and bounds, and for a field of a body what it is if it is left out."""
    bounds = _bounds(parameter.arg)
    if parameter.item is not None:
        bounds.pop("pattern", None)
    if parameter.name == "limit":
        bounds.setdefault("le", LIMIT_MAX)
    if parameter.arg.example is not None:
        bounds["examples"] = [parameter.arg.example]
    if make is Field and parameter.default is UNSET:
        bounds["default_factory"] = lambda: UNSET
    elif make is Field and not parameter.required:
        bounds["default"] = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
    return make(description=parameter.arg.text, **bounds)


def _bounds(arg: Arg) -> dict[str, Any]:
    names = ("gt", "ge", "le", "min_length", "max_length", "pattern")
    return {name: getattr(arg, name) for name in names if getattr(arg, name) is not None}
