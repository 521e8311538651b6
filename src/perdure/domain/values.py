"""Data classes as the standard library makes them, whose methods are written when they are first called.

The library compiles six functions for every class when its module is imported. That was half the time of opening a store,
most of it for values that the process never makes. Here a class gets its fields, and methods that write themselves.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from dataclasses import KW_ONLY as KW_ONLY
from dataclasses import asdict as asdict
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import is_dataclass as is_dataclass
from dataclasses import replace as replace
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, order=False, kw_only=False):
        """As `dataclasses.dataclass`, for what perdure asks of it: there is no `InitVar`."""

        def made(given):
            if any(is_dataclass(base) for base in given.__mro__[1:]):
                return dataclasses.dataclass(frozen=frozen, slots=slots, order=order, kw_only=kw_only)(given)
            return _with_fields(given, frozen=frozen, slots=slots, order=order, kw_only=kw_only)

        return made if cls is None else made(cls)


class _FromFactory:
    """What stands in a signature for a value that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


FROM_FACTORY = _FromFactory()
OPERATORS = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def _with_fields(given: Any, *, frozen: bool, slots: bool, order: bool, kw_only: bool) -> type:
    own, doc = set(vars(given)), given.__doc__
    given.__doc__ = doc or given.__name__  # without one the library would ask for the signature, to make one of it
    shared: dict[str, Any] = {"__repr__": _repr, "__signature__": _SIGNATURE}
    if frozen:
        shared |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    if frozen and slots:
        shared |= {"__getstate__": _state, "__setstate__": _set_state}
    for name in shared.keys() - own:
        setattr(given, name, shared[name])
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(given)
    cls.__doc__, cls.__dataclass_params__.frozen = doc, frozen
    if not frozen and "__hash__" not in own:
        cls.__hash__ = None
    written = {"__init__", "__eq__", *(("__hash__",) if frozen else ()), *(OPERATORS if order else ())}
    for name in written - own:
        _write_later(cls, name)
    return cls  # type: ignore[no-any-return]


def _write_later(cls: type, name: str) -> None:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _write(cls, name)(self, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    method.writes = cls  # type: ignore[attr-defined]
    setattr(cls, name, method)


def _write(cls: type, name: str) -> Any:
    """Put the method in the place of the one that asked for it. Done twice, it is the same."""
    made_of = fields(cls)
    makers = {"__init__": _init, "__hash__": _hash}
    method = makers[name](cls, made_of) if name in makers else _comparison(cls, made_of, OPERATORS.get(name, "=="))
    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    setattr(cls, name, method)
    return method


def _function(cls: type, parameters: str, lines: list[str], names: dict[str, Any]) -> Any:
    """A function with these parameters and lines, which knows these names and those of the module of the class."""
    body = "\n".join(f"    {line}" for line in lines)
    text = f"def make({', '.join(names)}):\n def method({parameters}):\n{body}\n return method"
    found: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), found)  # noqa: S102 - its text is made of the names of fields
    return found["make"](**names)


def _init(cls: type, made_of: tuple[dataclasses.Field[Any], ...]) -> Any:
    names: dict[str, Any] = {"FROM_FACTORY_": FROM_FACTORY}
    parameters: dict[bool, list[str]] = {False: ["self"], True: []}
    lines = ["pass"]
    for one in made_of:
        name, value = one.name, one.name
        if one.default_factory is not dataclasses.MISSING:
            names[f"make_{name}_"] = one.default_factory
            value = f"make_{name}_() if {name} is FROM_FACTORY_ else {name}" if one.init else f"make_{name}_()"
            default = "=FROM_FACTORY_"
        elif one.default is not dataclasses.MISSING:
            names[f"default_{name}_"] = one.default
            default = f"=default_{name}_"
            value = name if one.init else f"default_{name}_"
        elif one.init:
            default = ""
        else:
            continue
        if one.init:
            parameters[bool(one.kw_only)].append(f"{name}{default}")
        lines.append(_assigning(cls, name, value, names))
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    by_name = ["*", *parameters[True]] if parameters[True] else []
    made = _function(cls, ", ".join([*parameters[False], *by_name]), lines, names)
    made.__annotations__ = {one.name: one.type for one in made_of if one.init} | {"return": None}
    return made


def _assigning(cls: Any, name: str, value: str, names: dict[str, Any]) -> str:
    if not cls.__dataclass_params__.frozen:
        return f"self.{name} = {value}"
    slot = vars(cls).get(name)
    if inspect.ismemberdescriptor(slot):
        # What a slot's own descriptor sets costs a third of `object.__setattr__`, which looks for it by name.
        names[f"set_{name}_"] = slot.__set__
        return f"set_{name}_(self, {value})"
    names["set_"] = object.__setattr__
    return f"set_(self, {name!r}, {value})"


def _hash(cls: type, made_of: tuple[dataclasses.Field[Any], ...]) -> Any:
    hashed = [one.name for one in made_of if (one.compare if one.hash is None else one.hash)]
    return _function(cls, "self", [f"return hash({_tuple('self', hashed)})"], {})


def _comparison(cls: type, made_of: tuple[dataclasses.Field[Any], ...], operator: str) -> Any:
    compared = [one.name for one in made_of if one.compare]
    lines = [
        "if other.__class__ is self.__class__:",
        f"    return {_tuple('self', compared)} {operator} {_tuple('other', compared)}",
        "return NotImplemented",
    ]
    return _function(cls, "self, other", lines, {})


def _tuple(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


# -- what all classes share


@recursive_repr()
def _repr(self: Any) -> str:
    said = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(said)})"


def _refuse_assignment(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


class _LateSignature:
    """The signature of a class, for those who ask before anybody has made a value of it."""

    def __get__(self, instance: object, cls: Any) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        init = cls.__init__
        said = inspect.signature(_write(init.writes, "__init__") if hasattr(init, "writes") else init)
        return said.replace(parameters=list(said.parameters.values())[1:])


_SIGNATURE = _LateSignature()
