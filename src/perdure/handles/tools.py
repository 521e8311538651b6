"""`ana.tools`: the seeds' functions and tools, under their own names, as an agent calls them.

A tool never raises: it answers `{"success": false, "error": …, "remedy": …}`. Descriptions are written for a model that
has to choose between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from perdure.domain.errors import InvalidInput, NotFound, PerdureError, Unavailable, Unsupported
from perdure.domain.oversight import KeptResult
from perdure.domain.series import CoverageRule, Infer
from perdure.domain.text.rules import Json, brief, check_choice, check_texts
from perdure.domain.values import dataclass
from perdure.handles.operation import Handle, operation, unlogged
from perdure.handles.registry.shapes import plain
from perdure.handles.registry.toolset import (
    HOST,
    OPERATION_TOOLS,
    HostTool,
    HostTools,
    KeptValues,
    OperationTool,
    parameter_schema,
    shown_parameters,
)
from perdure.handles.series import SeriesHandle, UserSeries, answer_dict, cleanup_dict, merge_dict
from perdure.handles.state import State
from perdure.services.access.log import AccessLog
from perdure.services.oversight.after import ResultKeeper
from perdure.services.series.series import FRESH_S

Permission = Literal["read", "write"]
Result = dict[str, Json]
ID_FIELD, TIMESTAMP_FIELD = "id", "timestamp"
LOGGED = "it makes calls that log it"
SETS = ("state", "series", "knowledge", "todos", "lessons", HOST)
TIME = ["string", "number"]
INFER = {"type": "string", "description": "Without a window: batch_span if none is missing between the entries. Default none."}
PREVIEW = {"type": "boolean", "description": "Also give the first 100 characters of each value. Default false."}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a model sees it, and what it calls."""

    name: str
    description: str
    permission: Permission
    parameters: Mapping[str, Json]
    call: Callable[..., Result]
    required: Sequence[str] | None = None
    """None: all whose description names no default."""
    set: str = "state"

    def schema(self) -> Result:
        """Its parameters as JSON Schema."""
        named = [name for name, spec in self.parameters.items() if "Default" not in spec.get("description", "")]
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": named if self.required is None else list(self.required),
            "additionalProperties": False,
        }


class Tools(Handle, namespace="tools"):
    """Tools bound to one scope, in sets. `read_only()` returns one that cannot write, `only()` one with some sets."""

    __slots__ = ("_host", "_keeper", "_kept", "_memory", "_open_series", "_read_only", "_sets", "_state", "_tools")

    def __init__(
        self,
        memory: Any,
        keeper: ResultKeeper,
        host: HostTools,
        log: AccessLog | None = None,
        *,
        sets: Sequence[str] = SETS,
        read_only: bool = False,
    ) -> None:
        super().__init__(memory.scope, log)
        self._memory = memory
        self._state: State = memory.state
        self._open_series: UserSeries = memory.series
        self._kept = KeptValues(self._state, self._open_series, keeper.state.limits.page_rows_max)
        self._keeper = keeper
        self._host = host
        self._sets = sets
        self._read_only = read_only
        every = [*self._state_tools(), *self._series_tools(), *self._operation_tools(), *self._host_tools()]
        kept = [tool for tool in every if tool.set in sets and not (read_only and tool.permission == "write")]
        self._tools = {tool.name: tool for tool in kept}

    @unlogged("it opens a handle")
    def read_only(self) -> Tools:
        """The same tools without those that write."""
        return Tools(self._memory, self._keeper, self._host, self._log, sets=self._sets, read_only=True)

    @unlogged("it opens a handle")
    def only(self, sets: Sequence[str]) -> Tools:
        """The tools of some sets: `state`, `series`, `knowledge`, `todos`, `lessons`, and `host` for your own."""
        for name in check_texts(sets, "sets"):
            check_choice(name, "sets", SETS)
        kept = [name for name in self._sets if name in sets]
        return Tools(self._memory, self._keeper, self._host, self._log, sets=kept, read_only=self._read_only)

    @unlogged("it returns no data")
    def names(self) -> Sequence[str]:
        """The tools there are."""
        return list(self._tools)

    @unlogged("it returns no data")
    def sets(self) -> Mapping[str, Sequence[str]]:
        """The names of the tools, by set."""
        return {name: [one.name for one in self._tools.values() if one.set == name] for name in self._sets}

    @unlogged("it returns no data")
    def permissions(self) -> Mapping[str, Permission]:
        """What each tool may do."""
        return {name: tool.permission for name, tool in self._tools.items()}

    @unlogged("it returns no data")
    def schemas(self, style: str = "openai") -> list[Result]:
        """Definitions in the form that an API takes: `openai`, `anthropic` or `mcp`."""
        shapes: dict[str, Callable[[Tool], Result]] = {
            "openai": lambda tool: {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema()},
            },
            "anthropic": lambda tool: {"name": tool.name, "description": tool.description, "input_schema": tool.schema()},
            "mcp": lambda tool: {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.schema(),
                "annotations": {"readOnlyHint": tool.permission == "read"},
            },
        }
        check_choice(style, "style", shapes)
        return [shapes[style](tool) for tool in self._tools.values()]

    @unlogged(LOGGED)
    def call_tool(self, name: str, params: Any = None) -> Result:
        """Call a tool by name. Whatever is wrong comes back as an answer."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return failed(InvalidInput(f"there is no tool {brief(name, 60)} here; use one of {', '.join(self._tools)}"))
        return call_checked(tool, params)

    @operation("change")
    def accept(self, suggested: KeptResult, result: object) -> KeptResult:
        """Save what `after` suggested; `result` is the one it was made of."""
        self._refuse_writing("accept")
        return self._keeper.accept(self.scope, suggested, result)

    # -- the seeds' functions

    @unlogged(LOGGED)
    def merge_timeseries_state(
        self,
        state_key: str,
        new_entries: Sequence[object],
        id_field: str = ID_FIELD,
        timestamp_field: str = TIMESTAMP_FIELD,
        *,
        window_start: object = None,
        window_end: object = None,
        complete: bool = True,
        newest_first: bool = True,
        id_template: str | None = None,
        infer: Infer = "none",
        strict: bool = False,
        api_calls: int = 1,
        request: str | None = None,
    ) -> Result:
        """Merge entries into a series by id; see `SeriesHandle.merge`."""
        self._refuse_writing("merge_timeseries_state")
        series = self._series(state_key, id_field, timestamp_field, id_template)
        if (window_start is None) != (window_end is None):
            raise InvalidInput("a window needs both `window_start` and `window_end`; give both or neither")
        window = None if window_start is None else (window_start, window_end)
        if infer not in ("none", "batch_span"):
            raise InvalidInput(f"`infer` = {brief(infer)} is unknown; use none or batch_span")
        done = series.merge(
            new_entries,
            window=window,
            complete=complete,
            newest_first=newest_first,
            infer=infer,
            strict=strict,
            api_calls=api_calls,
            request=request,
        )
        return merge_dict(done)

    @unlogged(LOGGED)
    def query_timeseries_state(
        self,
        state_key: str,
        start_time: object = None,
        end_time: object = None,
        timestamp_field: str = TIMESTAMP_FIELD,
        *,
        start: object = None,
        end: object = None,
        coverage: CoverageRule = "ledger",
        fresh_for_s: float | None = None,
        limit: int | None = None,
        page: str | None = None,
        by_first_seen: bool = False,
    ) -> Result:
        """Entries in a range and what is covered of it. Its ends are times, or words such as `2 days ago` and `now`.

        `start` and `end` are other names of `start_time` and `end_time`.
        """
        series = self._series(state_key, ID_FIELD, timestamp_field, None)
        answer = series.query(
            _either(start_time, start, "start"),
            _either(end_time, end, "end"),
            limit=limit,
            page=page,
            coverage=coverage,
            fresh_for_s=fresh_for_s,
            by_first_seen=by_first_seen,
        )
        return answer_dict(answer)

    @unlogged(LOGGED)
    def cleanup_old_timeseries(self, state_key: str, keep_days: float = 90, timestamp_field: str = TIMESTAMP_FIELD) -> Result:
        """Remove entries older than `keep_days`, and the claim to know that time."""
        self._refuse_writing("cleanup_old_timeseries")
        return cleanup_dict(self._series(state_key, ID_FIELD, timestamp_field, None).cleanup(keep_days))

    def _refuse_writing(self, what: str) -> None:
        if self._read_only:
            raise Unsupported(f"`{what}` writes, and these tools are read-only; ask the host for others")

    def _series(self, name: str, id_field: str, timestamp_field: str, id_template: str | None) -> SeriesHandle:
        # The seeds' defaults say nothing about a series that has fields of its own.
        stated: dict[str, Any] = {}
        if id_field != ID_FIELD:
            stated["id_field"] = id_field
        if timestamp_field != TIMESTAMP_FIELD:
            stated["timestamp_field"] = timestamp_field
        if id_template is not None:
            stated["id_template"] = id_template
        return self._open_series(name, **stated)

    # -- tools over state

    def _save(self, key: str, value: Json) -> Result:
        return {"success": True, "key": key, "revision": self._state.save(key, value)}

    def _load(self, key: str, **given: Json) -> Result:
        told = self._kept.load(key)
        if told["found"]:
            return {"success": True, **told}
        if "default" in given:
            return {"success": True, **told, "value": given["default"]}
        missing = NotFound(f"nothing is kept under {brief(key, 80)}; `listStateKeys` tells what there is")
        return {**failed(missing), **told}

    def _list(self, include_values: bool = False) -> Result:
        keys = self._kept.keys(previews=include_values)
        return {"success": True, "count": len(keys), "keys": keys}

    def _search(self, pattern: str, limit: int | None = None) -> Result:
        return self._kept.search(pattern, limit)

    def _delete(self, key: str) -> Result:
        return {"success": True, "key": key, "deleted": self._state.delete(key)}

    def _state_tools(self) -> list[Tool]:
        key = {"type": "string", "description": "The name it is kept under."}
        return [
            Tool(
                "saveState",
                "Keep a value under a key for later conversations. Earlier values stay in its history.",
                "write",
                {"key": key, "value": {"description": "Any JSON value."}},
                self._save,
            ),
            Tool(
                "loadState",
                "Get the value kept under a key, or the newest entries of a series. `found` tells whether there is one.",
                "read",
                {"key": key, "default": {"description": "What to answer if there is none. Default: that it is missing."}},
                self._load,
            ),
            Tool(
                "listStateKeys",
                "List what is kept, values and series, by key, with time and size. Loads no values.",
                "read",
                {"include_values": PREVIEW},
                self._list,
            ),
            Tool(
                "searchState",
                "Get all values whose key matches a pattern such as kudos* or *_givers (case matters).",
                "read",
                {
                    "pattern": {"type": "string", "description": "A glob: * any text, ? one character."},
                    "limit": {"type": "integer", "description": "At most this many. Default 100."},
                },
                self._search,
            ),
            Tool("deleteState", "Remove the value under a key. It stays in the history.", "write", {"key": key}, self._delete),
        ]

    # -- tools over series

    def _merge_tool(self, key: str, entries: Sequence[object], **more: Any) -> Result:
        return self.merge_timeseries_state(key, entries, **more)

    def _query_tool(self, key: str, start_time: object, end_time: object, **more: Any) -> Result:
        held = self._keeper.series.find(self.scope.owner, key)
        fresh_for_s = FRESH_S if held is None else max(FRESH_S, held.spec.fresh_for_s)
        return self.query_timeseries_state(key, start_time, end_time, fresh_for_s=fresh_for_s, **more)

    def _cleanup_tool(self, key: str, keep_days: float = 90) -> Result:
        return self.cleanup_old_timeseries(key, keep_days)

    def _series_tools(self) -> list[Tool]:
        key = {"type": "string", "description": "The series, e.g. kudos_timeseries."}
        start, end = (
            {"type": TIME, "description": f"{edge} of the range: ISO 8601, or words such as 2 days ago, now."}
            for edge in ("Start", "End")
        )
        stamp = {"type": "string", "description": "The field with the time. Default: the series' own."}
        return [
            Tool(
                "mergeTimeseriesState",
                "Add fetched entries to a series. Known ones are recognised by id. Say which window was fetched, so that it "
                "need not be fetched again, also when nothing came.",
                "write",
                {
                    "key": key,
                    "entries": {"type": "array", "items": {"type": "object"}, "description": "What the API returned."},
                    "id_field": {"type": "string", "description": "The field with the id. Default: the series' own."},
                    "timestamp_field": stamp,
                    "id_template": {"type": "string", "description": "Makes ids, e.g. kudos_{activity_id}. Default none."},
                    "window_start": {"type": TIME, "description": "Start of what was asked for. Default unknown."},
                    "window_end": {"type": TIME, "description": "End of what was asked for. Default unknown."},
                    "complete": {"type": "boolean", "description": "False if the API cut the answer off. Default true."},
                    "infer": INFER,
                },
                self._merge_tool,
                set="series",
            ),
            Tool(
                "queryTimeseriesState",
                "Answer from a series before calling an API: entries in a range, whether that is all (coverage full, partial, "
                "none), and the exact gaps to fetch.",
                "read",
                {
                    "key": key,
                    "start_time": start,
                    "end_time": end,
                    "timestamp_field": stamp,
                    "limit": {"type": "integer", "description": "At most this many entries. Default 1000."},
                    "page": {"type": "string", "description": "`next_page` of the answer before. Default: the newest."},
                },
                self._query_tool,
                set="series",
            ),
            Tool(
                "cleanupTimeseriesState",
                "Remove entries older than some days from a series.",
                "write",
                {"key": key, "keep_days": {"type": "number", "description": "Default 90."}},
                self._cleanup_tool,
                set="series",
            ),
        ]

    # -- declared operations, and tools of the host

    def _operation_tools(self) -> list[Tool]:
        return [self._operation_tool(one) for one in OPERATION_TOOLS if one.set in self._sets]

    def _operation_tool(self, one: OperationTool) -> Tool:
        declared = one.declared(self._memory)
        takes = shown_parameters(declared, one.takes, one.name)

        def call(**given: Any) -> Result:
            told = plain(one.call(self._memory, given))
            return {"success": True, **(told if isinstance(told, dict) else {"items": told})}

        return Tool(
            name=one.name,
            description=one.description,
            permission="read" if declared.permission == "read" else "write",
            parameters={**{each.name: parameter_schema(each, one.words.get(each.name)) for each in takes}, **one.extra},
            call=call,
            required=[each.name for each in takes if each.required],
            set=one.set,
        )

    def _host_tools(self) -> list[Tool]:
        return [
            Tool(
                name=one.name,
                description=one.description,
                permission="read" if one.permission == "read" else "write",
                parameters=one.parameters,
                call=_hosted(one),
                required=one.required,
                set=HOST,
            )
            for one in self._host.held.values()
        ]


def _hosted(one: HostTool) -> Callable[..., Result]:
    def call(**given: Any) -> Result:
        try:
            told = one.function(**given)
        except PerdureError:
            raise
        except Exception as error:  # the plugin edge: a tool of the host is the host's code
            raise Unavailable(
                f"tool {one.name} failed ({type(error).__name__}: {error!s:.200}); try again or without it"
            ) from error
        return {"success": True, **told} if isinstance(told, dict) else {"success": True, "result": told}

    return call


def _either(named: object, short: object, edge: str) -> object:
    """One end of a range, under whichever of its two names it was given."""
    if (named is None) == (short is None):
        said = "missing" if named is None else f"given twice, as `{edge}` as well"
        raise InvalidInput(f"`{edge}_time` is {said}; give it once, as a time or as words such as 2 days ago")
    return short if named is None else named


KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list, tuple),
    "object": (dict,),
}


def call_checked(tool: Tool, params: Any = None) -> Result:
    """Call a tool with what a model sent, which may be anything. Whatever is wrong comes back as an answer."""
    given = {} if params is None else params
    if not isinstance(given, Mapping):
        return failed(InvalidInput(f"`params` of {tool.name} is a `{type(given).__name__}`; pass an object"))
    schema = tool.schema()
    # Models send null for what they leave out. In place of a yes or no it may mean either, and in place of how much to keep
    # it would remove what the default says: there it is refused.
    spare = [name for name, spec in schema["properties"].items() if spec.get("type") not in ("boolean", "number")]
    left_out = [name for name in given if given[name] is None and name in spare and name not in schema["required"]]
    given = {name: value for name, value in given.items() if name not in left_out}
    unknown = [one for one in given if one not in schema["properties"]]
    missing = [one for one in schema["required"] if one not in given]
    if unknown or missing:
        what = f"does not take `{unknown[0]!s:.60}`" if unknown else f"needs `{missing[0]}`"
        return failed(InvalidInput(f"tool {tool.name} {what}; it takes {', '.join(schema['properties'])}"))
    wrong = [one for one, value in given.items() if not _fits(value, schema["properties"][one])]
    if wrong:
        kinds = schema["properties"][wrong[0]]["type"]
        told = kinds if isinstance(kinds, str) else " or ".join(kinds)
        kind = type(given[wrong[0]]).__name__
        return failed(InvalidInput(f"`{wrong[0]}` of {tool.name} is a `{kind}`; send a JSON {told}"))
    try:
        return tool.call(**given)
    except PerdureError as error:
        return failed(error)
    except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError, RecursionError) as error:
        kind = type(error).__name__
        return failed(InvalidInput(f"tool {tool.name} cannot use these params ({kind}); check their types"))


def _fits(value: Json, spec: Mapping[str, Json]) -> bool:
    """Whether a parameter has a type its schema names. A model may send "false" for false, which would mean the opposite."""
    kinds = spec.get("type")
    if kinds is None:
        return True
    named = [kinds] if isinstance(kinds, str) else kinds
    allowed = tuple(kind for one in named for kind in KINDS[one])
    return isinstance(value, allowed) and (not isinstance(value, bool) or "boolean" in named)


def failed(error: PerdureError) -> Result:
    """The error as an answer; our messages end with what to do about it."""
    return {"success": False, **told_apart(str(error)), "code": error.code}


def told_apart(text: str) -> dict[str, str]:
    """What went wrong, and what to do about it: our messages say both, in this order."""
    error, _, remedy = text.rpartition("; ")
    return {"error": error or text, "remedy": remedy if error else text}
