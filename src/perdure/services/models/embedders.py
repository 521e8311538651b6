"""Which embedder compares meaning: the one in use, made when it is first asked for, or the one whose vectors are held."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from perdure.domain.errors import InvalidInput, Unavailable
from perdure.ports.models import Embedder
from perdure.services.models.writer import in_short, wanted_pause

if TYPE_CHECKING:
    from perdure.ports.models import TextKind, Vectors

BUILT_IN = "static"


def embedder_id(embedder: Embedder) -> str:
    """What vectors are kept under: those of another version or size are others."""
    return f"{embedder.name}/{embedder.version}/{embedder.dims}"


def embedded(embedder: Embedder, texts: Sequence[str], kind: TextKind) -> Vectors:
    """One vector of the embedder's length per text. Whatever else it answers with is `InvalidInput`: it may be anybody's."""
    import numpy as np

    found = np.asarray(embedder.embed(texts, kind=kind), np.float64)
    if found.shape != (len(texts), embedder.dims) or not np.isfinite(found).all():
        told = f"{found.shape} numbers for {len(texts)} texts of {embedder.dims} each"
        raise InvalidInput(f"embedder {embedder.name!r:.60} answered with {told}, or not with numbers; correct it")
    # Length 1, whatever came; what has no length is near nothing.
    most = np.abs(found).max(axis=1, keepdims=True, initial=0.0)
    found = found / np.where(most > 0, most, 1)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    unit: Vectors = (found / np.where(length > 0, length, 1)).astype(np.float32)
    return unit


@contextmanager
def awaited() -> Iterator[None]:
    """Whatever an embedder raises inside is `Unavailable`: a key can be fixed, a model loaded, and the work then goes on."""
    try:
        yield
    except Exception as error:  # the plugin edge: an embedder may be anybody's code
        why = in_short(error)
        raise Unavailable(
            f"the embedder failed ({why.reason}{': ' + why.detail if why.detail else ''}); "
            "what waits for it is found by its words meanwhile, and it is asked again",
            retry_after_s=wanted_pause(error),
        ) from error


class Embedders:
    def __init__(self, setting: str, given: Embedder | None, make: Callable[[str], Embedder]) -> None:
        self._setting = setting
        self._given = given
        self._make = make
        self._lock = threading.Lock()
        self._made: dict[str, Embedder] = {}
        _check_setting(setting)
        _check_given(given)

    @property
    def in_use(self) -> bool:
        """Whether meaning is compared at all."""
        return self._given is not None or self._setting != "none"

    @property
    def built_in(self) -> bool:
        """Whether it is the one in this package, or none."""
        return self._given is None and self._setting in (BUILT_IN, "none")

    def current(self) -> Embedder | None:
        """The one in use; None: meaning is not compared."""
        if self._given is not None or self._setting == "none":
            return self._given
        return self._kept(self._setting)

    def is_another(self, name: str) -> bool:
        """Whether the one in use is certainly not the one whose vectors are held, so that others are to be made."""
        if not name or not self.in_use:
            return False
        try:
            current = self.current()
            return current is not None and embedder_id(current) != name
        except Exception:  # noqa: BLE001 - the plugin edge: one that cannot say who it is now can be asked later
            return False

    def named(self, name: str) -> Embedder | None:
        """The one whose vectors these are (`embedder_id`), if this process can have it."""
        current = self.current()
        if current is not None and embedder_id(current) == name:
            return current
        built_in = self._kept(BUILT_IN)
        return built_in if embedder_id(built_in) == name else None

    def close(self) -> None:
        """Give back what the ones that were made here hold, such as connections. They can be used again."""
        with self._lock:
            made = list(self._made.values())
        for embedder in made:
            getattr(embedder, "close", lambda: None)()

    def _kept(self, setting: str) -> Embedder:
        with self._lock:
            if setting not in self._made:
                self._made[setting] = self._make(setting)
            return self._made[setting]


def _check_given(embedder: object) -> None:
    if embedder is None:
        return
    if not callable(getattr(embedder, "embed", None)) or not isinstance(getattr(embedder, "name", None), str):
        kind = type(embedder).__name__
        raise InvalidInput(f"`embedder` is a `{kind}`; it needs `name`, `version`, `dims` and a method `embed(texts, kind=…)`")


def _check_setting(setting: str) -> None:
    kind, _, rest = setting.partition(":")
    address, _, model = rest.rpartition("#")
    if setting in (BUILT_IN, "none") or (kind == "onnx" and rest) or (kind in ("openai", "ollama") and address and model):
        return
    raise InvalidInput(
        f"setting `embedder` = {setting!r:.80} is unknown; use static, none, onnx:FOLDER, openai:URL#MODEL or ollama:URL#MODEL"
    )
