"""Parts that other distributions bring along: named in a setting, found by entry point, made when an engine opens.

An entry point is a callable that takes one text, what stands behind the name and a colon in the setting, and returns the part:
`toy` calls it with an empty text, `toy:fast` with `fast`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal, cast

from perdure.compose.models import HostModels
from perdure.domain.errors import InvalidInput, LimitExceeded, PerdureError
from perdure.domain.portability import IMPORT_FORMATS
from perdure.domain.text.rules import brief
from perdure.settings import Settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

Group = Literal["embedders", "rerankers", "extractors", "summarisers", "importers", "stores"]
BUILT_IN = {
    "embedder": ("static", "none", "onnx:FOLDER", "openai:URL#MODEL", "ollama:URL#MODEL"),
    "reranker": (),
    "extractor": (),
    "summariser": (),
}
"""What a setting may name besides plugins; empty: nothing, or the part that is built in."""
ENTRIES_MAX = 1_000_000
_GROUPS: dict[str, Group] = {
    "embedder": "embedders",
    "reranker": "rerankers",
    "extractor": "extractors",
    "summariser": "summarisers",
}


def plugin_names(group: Group) -> list[str]:
    """The names of the plugins of a kind that are installed, in order."""
    return sorted({point.name for point in _points(group)})


def plugin(group: Group, name: str, options: str) -> object | None:
    """What the plugin of this name makes of its options; None if there is none. `InvalidInput` if it fails."""
    found = next(iter(_points(group).select(name=name)), None)
    if found is None:
        return None
    try:
        return cast("Callable[[str], object]", found.load())(options)
    except PerdureError:
        raise
    except Exception as error:  # the plugin edge: it is anybody's code
        why = type(error).__name__
        raise InvalidInput(
            f"plugin {name!r:.60} of `perdure.{group}` cannot be used ({why}); fix or remove {found.value!r:.80}"
        ) from error


def _points(group: Group) -> EntryPoints:
    from importlib.metadata import entry_points  # loaded when a plugin is looked for: it brings along what reads archives

    return entry_points(group=f"perdure.{group}")


def unknown(what: str, value: str, group: Group, built_in: Sequence[str]) -> InvalidInput:
    """One line that says what there is."""
    names = [*built_in, *plugin_names(group)]
    there = f"use one of {', '.join(names)}, or" if names else "there is none yet:"
    return InvalidInput(f"{what} = {brief(value, 60)} is unknown; {there} install a plugin (entry point `perdure.{group}`)")


def with_plugins(settings: Settings, given: HostModels) -> HostModels:
    """What the host brought along, and where it brought nothing, the plugins that the settings name."""
    found: dict[str, object] = dict(given)
    for name, group in _GROUPS.items():
        setting = getattr(settings, name)
        kind, _, options = setting.partition(":")
        if kind in {one.partition(":")[0] for one in BUILT_IN[name]} or (not setting and name != "embedder"):
            continue
        if (made := plugin(group, kind, options)) is None:
            raise unknown(f"setting `{name}`", setting, group, BUILT_IN[name])
        if found.get(name) is None:
            found[name] = made
    return cast("HostModels", found)


class InstalledImporters:
    """The importers that are installed. Theirs is the text of a file; what they return are memories, as mem0 exports them."""

    def check(self, name: str) -> None:
        if name not in plugin_names("importers"):
            raise unknown("`format` (`--format`)", name, "importers", IMPORT_FORMATS)

    def entries(self, name: str, text: str) -> Sequence[Mapping[str, object]]:
        found = plugin("importers", name, text)
        entries = list(islice(found, ENTRIES_MAX + 1)) if isinstance(found, Iterable) else [found]
        if len(entries) > ENTRIES_MAX:
            raise LimitExceeded(f"importer {name!r:.60} found more than {ENTRIES_MAX} memories; import them in parts")
        if not all(isinstance(one, Mapping) and isinstance(one.get("memory"), str) for one in entries):
            raise InvalidInput(f"importer {name!r:.60} must return mappings with a text under `memory`; fix it")
        return cast("list[Mapping[str, object]]", entries)
