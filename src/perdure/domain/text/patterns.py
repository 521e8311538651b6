"""Regular expressions that are compiled when first used: importing a module costs nothing for what is never searched."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split", "pattern", "flags")


def pattern(source: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` returns, compiled at the first search; `source` may be made then, of words in a file."""
    return cast("re.Pattern[str]", _Pattern(source, flags))


class _Pattern:
    """Stands in for a compiled pattern, whose methods it has as its own from the first use on."""

    def __init__(self, source: str | Callable[[], str], flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        source = self._source if isinstance(self._source, str) else self._source()
        compiled = re.compile(source, self._flags)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)
